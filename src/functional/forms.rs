//! Calls with arguments left out, by name, as PyTorch's Python has them. In Rust other names say the same: `x.flatten(0, -1)?.argmax(0)`,
//! `x.clamp_min(lo)`.

use super::{Bound, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::Op;
use crate::tensor::Tensor;
use smallvec::smallvec;

by_name! {
    BY_NAME, "Choice", ByName;
    /// The position of the largest element of all, counted row-major.
    "argmax(Tensor x, *, Bool keepdim=false) -> Tensor" = |b| of_all(op!("argmax"), b);
    /// The position of the smallest element of all, counted row-major.
    "argmin(Tensor x, *, Bool keepdim=false) -> Tensor" = |b| of_all(op!("argmin"), b);
    /// The larger of each two elements.
    "max(Tensor x, Tensor other) -> Tensor" = |b| two(op!("maximum"), b.given(0)?, b.given(1)?, b.site);
    /// The smaller of each two elements.
    "min(Tensor x, Tensor other) -> Tensor" = |b| two(op!("minimum"), b.given(0)?, b.given(1)?, b.site);
    /// x, but not below `min`, element by element.
    "clamp_min(Tensor x, Tensor min) -> Tensor" = |b| two(op!("maximum"), b.given(0)?, b.given(1)?, b.site);
    /// x, but not above `max`, element by element.
    "clamp_max(Tensor x, Tensor max) -> Tensor" = |b| two(op!("minimum"), b.given(0)?, b.given(1)?, b.site);
    /// x without its dims of size 1.
    "squeeze(Tensor x) -> Tensor" = |b| {
        let x = b.given(0)?;
        let kept: Vec<usize> = x.shape().iter().copied().filter(|n| *n != 1).collect();
        Ok(vec![x.reshape_at(&kept, b.site)?.into_result()])
    };
    /// x, but not below `min` and not above `max`; one of them may be left out.
    "clamp(Tensor x, Scalar? min, Scalar? max) -> Tensor" = |b| {
        let (x, given) = (b.given(0)?, |i: usize| b.attr(i).map(|_| b.scalar(i)).transpose());
        let (op, numbers) = match (given(1)?, given(2)?) {
            (Some(lo), Some(hi)) => (op!("clamp"), smallvec![lo, hi]),
            (Some(lo), None) => (op!("clamp_min"), smallvec![lo]),
            (None, Some(hi)) => (op!("clamp_max"), smallvec![hi]),
            (None, None) => return Err(neither(x, b.site)),
        };
        Ok(vec![invoke1(op, &[Some(x)], smallvec![], numbers, b.site).map_err(|e| e.within(|| "clamp".into()))?])
    };
    /// x, but not below `min` and not above `max`, element by element; one of them may be left out.
    "clamp(Tensor x, Tensor? min, Tensor? max) -> Tensor" = |b| {
        let x = b.given(0)?;
        match (b.tensor(1), b.tensor(2)) {
            (Some(lo), Some(hi)) => {
                let inner = inner_calls();
                let above = two(op!("maximum"), x, lo, b.site)?;
                drop(inner);
                two(op!("minimum"), &above[0], hi, b.site)
            }
            (Some(lo), None) => two(op!("maximum"), x, lo, b.site),
            (None, Some(hi)) => two(op!("minimum"), x, hi, b.site),
            (None, None) => Err(neither(x, b.site)),
        }
    };
}

fn neither(x: &Tensor, site: CallSite) -> Error {
    Error::argument("give `min`, `max` or both").in_call(|| format!("clamp({})", x.short())).at(site)
}

fn two(op: Result<&'static Op>, a: &Tensor, b: &Tensor, site: CallSite) -> Result<Vec<Tensor>> {
    Ok(vec![invoke1(op, &[Some(a), Some(b)], smallvec![], smallvec![], site)?])
}

/// Along all elements as one line.
fn of_all(op: Result<&'static Op>, b: &Bound) -> Result<Vec<Tensor>> {
    let x = b.given(0)?;
    let inner = inner_calls();
    let line = x.reshape_at(&[x.numel()], b.site)?.into_result();
    drop(inner);
    let found = invoke1(op, &[Some(&line)], smallvec![0i64.into(), false.into()], smallvec![], b.site)?;
    Ok(vec![match b.bool(1)? {
        true => found.reshape_at(&vec![1; x.ndim()], b.site)?.into_result(),
        false => found,
    }])
}
