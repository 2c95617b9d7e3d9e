//! Cross entropy over the last dim, whole or with the classes split over shards. A target that is no class is reported by
//! the kernel, and its row has loss 0.

use super::rows::{Extent, Rows, blocks};
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::acc::acc_dtype;
use crate::cpu::loss::{Classes, check_views};
use crate::cpu::rows::{check_dims, check_dtype};
use crate::{KernelError, Result, View};

pub(super) static LOSS: Source = Source::file("loss", include_str!("../../cuda/loss.cu")).forms(&[
    "T={f32,bf16,f64} L=f32 D=f32 PACKED=1 VEC={1,2} ROW={32,512}",
    "T=f32 L=f32 D=f32 PACKED=1 VEC=4 ROW=512",
    "T=bf16 L=f32 D=f32 PACKED=1 VEC=8 ROW={8,512}",
    "T=f32 L=f32 D=f32 PACKED=0 VEC=1 ROW=32",
]);

/// `of_classes`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wanted {
    count: i64,
    first: i64,
    ignore: i64,
    may_ignore: i32,
    pad: i32,
    kept: f64,
    spread: f64,
}

impl From<&Classes> for Wanted {
    fn from(c: &Classes) -> Wanted {
        let (Classes { count, first, ignore, .. }, (kept, spread)) = (*c, c.parts());
        let may_ignore = i32::from(ignore.is_some());
        Wanted { count, first, ignore: ignore.unwrap_or(0), may_ignore, pad: 0, kept, spread }
    }
}

/// Per row: `lse = logsumexp(logits)` and `loss = lse - logits[target]` (0 where the target is ignored), smoothed as
/// [`Classes::smoothing`] says. Both are f32 for halves, else of the logits' dtype.
///
/// # Errors
/// If dims or dtypes do not match, or the logits are not all the classes.
pub fn cross_entropy(
    q: &Queue,
    logits: &View,
    target: &View,
    loss: &View,
    lse: &View,
    classes: &Classes,
) -> Result<()> {
    check_views(logits, target, &[("the loss", loss), ("lse", lse)])?;
    check_dtype("lse", lse, acc_dtype(logits.dtype())?)?;
    check_dtype("the loss", loss, lse.dtype())?;
    let here = logits.dims()[logits.rank() - 1];
    if classes.first != 0 || classes.count != here as i64 {
        return Err(KernelError::new(format!(
            "the fused loss needs all {} classes in one place; here are {here}, from class {}",
            classes.count, classes.first
        )));
    }
    let parts = [Extent::Whole(logits), Extent::PerRow(target), Extent::PerRow(loss), Extent::PerRow(lse)];
    let rows = Rows::trailing(parts, 1)?;
    let packed = rows.packed(1);
    let width = if packed { rows.width(&[logits]) } else { 1 };
    let args = Args::new().view(logits).view(target).view(loss).view(lse);
    let args = q.fault_args(args).value(Wanted::from(classes));
    run(q, "cross_entropy", &[logits, lse, loss], &rows, packed, width, args)
}

/// Per row: the logit of the target, or 0 where the target is ignored or its class is in another shard.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn nll_pick(q: &Queue, logits: &View, target: &View, out: &View, classes: &Classes) -> Result<()> {
    check_views(logits, target, &[("the output", out)])?;
    check_dtype("the output", out, logits.dtype())?;
    let rows = Rows::trailing([Extent::Whole(logits), Extent::PerRow(target), Extent::PerRow(out)], 1)?;
    let args = q.fault_args(Args::new().view(logits).view(target).view(out)).value(Wanted::from(classes));
    let f = q.function(&LOSS, "nll_pick", &defines(&[logits, out, out], false, 1, 32))?;
    q.launch_with(f, Launch::new(blocks(rows.count, 256), 256), args, &rows)
}

/// `dlogits = (exp(logits - lse) - onehot(target)) * dloss`, the one only where the target's class is in this shard;
/// 0 where the target is ignored.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn cross_entropy_grad(
    q: &Queue,
    logits: &View,
    target: &View,
    lse: &View,
    dloss: &View,
    dlogits: &View,
    classes: &Classes,
) -> Result<()> {
    check_views(logits, target, &[("lse", lse), ("dloss", dloss)])?;
    check_dims("dlogits", dlogits, logits.dims())?;
    check_dtype("dlogits", dlogits, logits.dtype())?;
    let whole = [Extent::Whole(logits), Extent::Whole(dlogits)];
    let rows =
        Rows::trailing([whole[0], whole[1], Extent::PerRow(target), Extent::PerRow(lse), Extent::PerRow(dloss)], 1)?;
    let packed = rows.packed(2);
    let width = if packed { rows.width(&[logits, dlogits]) } else { 1 };
    let args = Args::new().view(logits).view(dlogits).view(target).view(lse).view(dloss);
    let args = q.fault_args(args).value(Wanted::from(classes));
    run(q, "cross_entropy_grad", &[logits, lse, dloss], &rows, packed, width, args)
}

/// The macros; `of` are the tensors that `T`, `L` and `D` are of.
fn defines(of: &[&View; 3], packed: bool, width: usize, threads: usize) -> [Define; 6] {
    [
        Define::dtype("T", of[0].dtype()),
        Define::dtype("L", of[1].dtype()),
        Define::dtype("D", of[2].dtype()),
        Define::int("PACKED", i64::from(packed)),
        Define::int("VEC", width as i64),
        Define::int("ROW", threads as i64),
    ]
}

fn run<const N: usize>(
    q: &Queue,
    entry: &str,
    of: &[&View; 3],
    rows: &Rows<N>,
    packed: bool,
    width: usize,
    args: Args,
) -> Result<()> {
    let groups = (rows.len as usize).div_ceil(width).max(1);
    let threads = match rows.len {
        0..=1024 => groups.next_power_of_two().min(32),
        1025..=16384 => 256,
        _ => 512,
    };
    let block = if threads > 32 { threads } else { 128 };
    let f = q.function(&LOSS, entry, &defines(of, packed, width, threads))?;
    let launch = Launch::new(blocks(rows.count, (block / threads) as u64), block as u32);
    q.launch_with(f, launch, args, rows)
}
