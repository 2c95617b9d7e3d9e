//! Batch norm; see [`crate::cpu::batch_norm`]. A block has a channel.

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::batch_norm::{Sizes, check};
use crate::{DType, Result, View};

pub(super) static BATCH_NORM: Source = Source::file("batch_norm", include_str!("../../cuda/batch_norm.cu"))
    .forms(&["T={f32,f64} W=T B=T", "T=bf16 W={bf16,f32} B=bf16"]);

fn launch(q: &Queue, entry: &'static str, s: &Sizes, args: Args, eps: f64, [t, w, b]: [DType; 3]) -> Result<()> {
    let f = q.function(&BATCH_NORM, entry, &[Define::dtype("T", t), Define::dtype("W", w), Define::dtype("B", b)])?;
    let args = if t == DType::F64 { args.value(eps) } else { args.value(eps as f32) };
    let args = args.value(s.batch as u64).value(s.channels as u64).value(s.inner as u64);
    q.launch(f, Launch::new(s.channels.min(65535) as u32, 256), args)
}

/// See [`batch_norm`](crate::cpu::batch_norm::batch_norm).
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
#[allow(clippy::too_many_arguments)]
pub fn batch_norm(
    q: &Queue,
    x: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    eps: f64,
    y: &View,
    mean: &View,
    var: &View,
) -> Result<()> {
    let s = check(x, &[("y", y)], &[("mean", mean), ("var", var)], &[("weight", weight), ("bias", bias)])?;
    if s.channels == 0 {
        return Ok(());
    }
    let of = |v: Option<&View>| v.map_or(x.dtype(), View::dtype);
    let args = Args::new().view(x).view(y).opt_view(weight).opt_view(bias).view(mean).view(var);
    launch(q, "batch_norm", &s, args, eps, [x.dtype(), of(weight), of(bias)])
}

/// See [`batch_norm_grad`](crate::cpu::batch_norm::batch_norm_grad).
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
pub fn batch_norm_grad(
    q: &Queue,
    dy: &View,
    x: &View,
    [mean, var]: [&View; 2],
    weight: Option<&View>,
    eps: f64,
    [dx, dweight, dbias]: [&View; 3],
) -> Result<()> {
    let parameters = [("weight", weight), ("dweight", Some(dweight)), ("dbias", Some(dbias))];
    let s = check(x, &[("dy", dy), ("dx", dx)], &[("mean", mean), ("var", var)], &parameters)?;
    if s.channels == 0 {
        return Ok(());
    }
    let args = Args::new().view(dy).view(x).view(mean).view(var).opt_view(weight).view(dx).view(dweight).view(dbias);
    let w = weight.map_or(x.dtype(), View::dtype);
    launch(q, "batch_norm_grad", &s, args, eps, [x.dtype(), w, dweight.dtype()])
}
