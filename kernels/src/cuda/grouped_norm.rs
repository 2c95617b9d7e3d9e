//! Group norm; see [`crate::cpu::grouped_norm`]. A block has a row.

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::acc::acc_dtype;
use crate::cpu::grouped_norm::{Sizes, check};
use crate::{DType, Result, View};

pub(super) static GROUPED_NORM: Source = Source::file("grouped_norm", include_str!("../../cuda/grouped_norm.cu"))
    .forms(&["T={f32,f64} W=T B=T", "T=bf16 W={bf16,f32} B=bf16"]);

fn defines([t, w, b]: [DType; 3]) -> [Define; 3] {
    [Define::dtype("T", t), Define::dtype("W", w), Define::dtype("B", b)]
}

fn launch(q: &Queue, entry: &'static str, s: &Sizes, args: Args, dtypes: [DType; 3]) -> Result<()> {
    let f = q.function(&GROUPED_NORM, entry, &defines(dtypes))?;
    let args = args.value(s.rows() as u64).value(s.groups as u64).value(s.channels as u64).value(s.inner as u64);
    q.launch(f, Launch::new(s.rows().min(65535) as u32, 256), args)
}

/// See [`grouped_norm`](crate::cpu::grouped_norm::grouped_norm).
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
#[allow(clippy::too_many_arguments)]
pub fn grouped_norm(
    q: &Queue,
    x: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    eps: f64,
    y: &View,
    mean: &View,
    rstd: &View,
) -> Result<()> {
    let s = check(x, &[("y", y)], &[("mean", mean), ("rstd", rstd)], &[("weight", weight), ("bias", bias)])?;
    if s.rows() == 0 {
        return Ok(());
    }
    let of = |v: Option<&View>| v.map_or(x.dtype(), View::dtype);
    let args = Args::new().view(x).view(y).opt_view(weight).opt_view(bias).view(mean).view(rstd);
    let args = if x.dtype() == DType::F64 { args.value(eps) } else { args.value(eps as f32) };
    launch(q, "grouped_norm", &s, args, [x.dtype(), of(weight), of(bias)])
}

/// How much scratch memory [`grouped_norm_grad`] needs: two sums for each channel of each image.
pub fn grouped_norm_grad_workspace(dtype: DType, channels_of_images: usize) -> Result<usize> {
    Ok(2 * channels_of_images * acc_dtype(dtype)?.size())
}

/// See [`grouped_norm_grad`](crate::cpu::grouped_norm::grouped_norm_grad).
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
pub fn grouped_norm_grad(
    q: &Queue,
    dy: &View,
    x: &View,
    [mean, rstd]: [&View; 2],
    weight: Option<&View>,
    [dx, dweight, dbias]: [&View; 3],
    scratch: &View,
) -> Result<()> {
    let parameters = [("weight", weight), ("dweight", Some(dweight)), ("dbias", Some(dbias))];
    let s = check(x, &[("dy", dy), ("dx", dx)], &[("mean", mean), ("rstd", rstd)], &parameters)?;
    let dtypes = [x.dtype(), weight.map_or(x.dtype(), View::dtype), dweight.dtype()];
    if s.rows() > 0 {
        let args = Args::new().view(dy).view(x).view(mean).view(rstd).opt_view(weight).view(dx).view(scratch);
        launch(q, "grouped_norm_grad", &s, args, dtypes)?;
    }
    let all = s.groups * s.channels;
    if all == 0 {
        return Ok(());
    }
    let f = q.function(&GROUPED_NORM, "grouped_norm_sums", &defines(dtypes))?;
    let args = Args::new().view(scratch).view(dweight).view(dbias).value(s.batch as u64).value(all as u64);
    q.launch(f, Launch::new(q.blocks(all, 256, 1), 256), args)
}
