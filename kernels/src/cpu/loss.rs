//! Cross entropy over the last dim, whole or with the classes split over shards.
//!
//! With the classes split, each shard computes `logsumexp` of its part and [`nll_pick`]; the sums over shards (of the picks,
//! and of the exponentials under a common maximum) give loss and `lse`, and [`cross_entropy_grad`] finishes locally.

use super::acc::{acc_dtype, with_acc};
use super::rowmath;
use super::rows::{Buffered, Buffers, Rows, check_dims, check_dtype, check_float};
use crate::parallel::parallel_for;
use crate::{DType, KernelError, Result, View};

/// The classes of `target`.
#[derive(Clone, Copy, Debug)]
pub struct Classes {
    /// Number of classes of the logical tensor; a target outside `0..count` is an error.
    pub count: i64,
    /// Class of the first logit of this shard.
    pub first: i64,
    /// The target that is ignored: its row has loss 0 and gradient 0.
    pub ignore: Option<i64>,
    /// Label smoothing: the part of each target that is spread over all classes.
    pub smoothing: f64,
}

impl Classes {
    /// Makes the classes of a tensor that is not split, with no ignored target and no smoothing.
    pub fn whole(count: usize) -> Self {
        Classes { count: count as i64, first: 0, ignore: None, smoothing: 0.0 }
    }

    fn ignored(&self, target: i64) -> bool {
        self.ignore == Some(target)
    }

    /// The index of a target in a row of `len` logits, if it is in this shard.
    fn local(&self, target: i64, len: usize) -> Option<usize> {
        if self.ignored(target) {
            return None;
        }
        usize::try_from(target.checked_sub(self.first)?).ok().filter(|i| *i < len)
    }

    /// Share of a target that its class keeps, and share that every class gets: 1 and 0 without smoothing.
    pub(crate) fn parts(&self) -> (f64, f64) {
        (1.0 - self.smoothing, self.smoothing / self.count.max(1) as f64)
    }
}

/// Per row: `lse = logsumexp(logits)` and `loss = lse - logits[target]` (0 where the target is ignored). With label smoothing ε
/// the loss is `(1 - ε) (lse - logits[target])` plus ε times the mean of `lse - logits`.
/// `lse` is f32 for halves, else of the logits' dtype; `loss` may have any float dtype.
///
/// # Errors
/// If dims or dtypes do not match, a target is no class, or the logits are not all the classes.
pub fn cross_entropy(logits: &View, target: &View, loss: &View, lse: &View, classes: &Classes) -> Result<()> {
    check(logits, target, classes, &[("the loss", loss), ("lse", lse)])?;
    check_dtype("lse", lse, acc_dtype(logits.dtype())?)?;
    let here = logits.dims()[logits.rank() - 1];
    if classes.first != 0 || classes.count != here as i64 {
        return Err(KernelError::new(format!(
            "the fused loss needs all {} classes in one place; here are {here}, from class {}",
            classes.count, classes.first
        )));
    }
    with_acc!(logits.dtype(), forward(logits, target, loss, lse, classes));
    Ok(())
}

/// Per row: the logit of the target, or 0 where the target is ignored or its class is in another shard.
///
/// # Errors
/// If dims or dtypes do not match or a target is no class.
pub fn nll_pick(logits: &View, target: &View, out: &View, classes: &Classes) -> Result<()> {
    check(logits, target, classes, &[("the output", out)])?;
    with_acc!(logits.dtype(), pick(logits, target, out, classes));
    Ok(())
}

/// `dlogits = (exp(logits - lse) - onehot(target)) * dloss`, the one only where the target's class is in this shard;
/// 0 where the target is ignored. With label smoothing ε each class gets ε / classes, and the target 1 - ε more.
///
/// # Errors
/// If dims or dtypes do not match or a target is no class.
pub fn cross_entropy_grad(
    logits: &View,
    target: &View,
    lse: &View,
    dloss: &View,
    dlogits: &View,
    classes: &Classes,
) -> Result<()> {
    check(logits, target, classes, &[("lse", lse), ("dloss", dloss)])?;
    check_dims("dlogits", dlogits, logits.dims())?;
    check_dtype("dlogits", dlogits, logits.dtype())?;
    with_acc!(logits.dtype(), backward(logits, target, lse, dloss, dlogits, classes));
    Ok(())
}

/// Checks dims and dtypes; `per_row` have one float a row.
pub(crate) fn check_views(logits: &View, target: &View, per_row: &[(&str, &View)]) -> Result<()> {
    check_float("the logits view", logits)?;
    let Some((_, leading)) = logits.dims().split_last() else {
        return Err(KernelError::new("the logits have no dim of classes"));
    };
    check_dims("the target", target, leading)?;
    check_dtype("the target", target, DType::I64)?;
    for (what, view) in per_row {
        check_dims(what, view, leading)?;
        check_float(what, view)?;
    }
    Ok(())
}

fn check(logits: &View, target: &View, classes: &Classes, per_row: &[(&str, &View)]) -> Result<()> {
    check_views(logits, target, per_row)?;
    let targets = Rows::singles(target);
    for row in 0..targets.count {
        // SAFETY: rows are in range and i64 (checked); targets are only read.
        let value = unsafe { targets.get_i64(row) };
        if !(0..classes.count).contains(&value) && !classes.ignored(value) {
            return Err(KernelError::new(format!(
                "target {value} (row {row}) is not a class; there are {} classes",
                classes.count
            )));
        }
    }
    Ok(())
}

fn last(view: &View) -> Rows {
    Rows::along(view, view.rank() - 1)
}

fn forward<A: Buffered>(logits: &View, target: &View, loss: &View, lse: &View, classes: &Classes) {
    let (logits, targets) = (last(logits), Rows::singles(target));
    let (losses, lses) = (Rows::singles(loss), Rows::singles(lse));
    let (kept, spread) = classes.parts();
    let (kept, spread) = (A::from_f64(kept), A::from_f64(spread));
    parallel_for(logits.count, logits.grain(), &|range| {
        A::with_buffers(|Buffers { a, .. }| {
            for row in range {
                // SAFETY: rows are in range, of the dtypes checked; each number is written by one thread.
                unsafe {
                    let x = logits.read(row, a);
                    let lse = rowmath::logsumexp(x);
                    lses.set(row, lse);
                    let target = classes.local(targets.get_i64(row), x.len());
                    let loss = match target {
                        None => A::ZERO,
                        // An infinite logit has no share of the sum: the logarithm of inf / inf.
                        Some(_) if lse * A::ZERO != A::ZERO => A::NAN,
                        Some(i) if spread == A::ZERO => lse - x[i],
                        Some(i) => kept * (lse - x[i]) + spread * rowmath::sum_below(lse, x),
                    };
                    losses.set(row, loss);
                }
            }
        });
    });
}

fn pick<A: Buffered>(logits: &View, target: &View, out: &View, classes: &Classes) {
    let (logits, targets, out) = (last(logits), Rows::singles(target), Rows::singles(out));
    for row in 0..logits.count {
        // SAFETY: rows are in range, of the dtypes checked, and the index is inside the row.
        unsafe {
            let target = classes.local(targets.get_i64(row), logits.len);
            out.set::<A>(row, target.map_or(A::ZERO, |i| logits.get_at(row, i)));
        }
    }
}

fn backward<A: Buffered>(logits: &View, target: &View, lse: &View, dloss: &View, dlogits: &View, classes: &Classes) {
    let (logits, targets, dlogits) = (last(logits), Rows::singles(target), last(dlogits));
    let (lses, dlosses) = (Rows::singles(lse), Rows::singles(dloss));
    let (kept, spread) = classes.parts();
    let (kept, spread) = (A::from_f64(kept), A::from_f64(spread));
    parallel_for(logits.count, logits.grain(), &|range| {
        A::with_buffers(|Buffers { a, b, .. }| {
            for row in range {
                // SAFETY: rows are in range, of the dtypes checked; each row is written by one thread.
                unsafe {
                    let target = targets.get_i64(row);
                    if classes.ignored(target) {
                        dlogits.write(row, b, |dx: &mut [A]| dx.fill(A::ZERO));
                        continue;
                    }
                    let x = logits.read(row, a);
                    let (lse, dloss) = (lses.get(row), dlosses.get(row));
                    dlogits.write(row, b, |dx| {
                        rowmath::exp_scaled(x, lse, spread, dloss, dx);
                        if let Some(i) = classes.local(target, x.len()) {
                            dx[i] = ((x[i] - lse).exp() - (kept + spread)) * dloss;
                        }
                    });
                }
            }
        });
    });
}
