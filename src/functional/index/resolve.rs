//! An index against the shape of a tensor: which elements of each dim, which dims are new, which are indexed by tensors.

use super::TensorIndex;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// Effect of an index on a dim that needs no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basic {
    /// One element; the dim is removed.
    One(usize),
    /// `count` elements from `start` on by `step`, backwards if that is negative.
    Slice { start: usize, count: usize, step: i64 },
    /// All.
    Full,
    /// A new dim of size 1.
    New,
}

/// The elements of a dim as a slice that goes forward, and whether they are read backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub start: usize,
    pub end: usize,
    pub step: usize,
    pub backwards: bool,
}

impl Basic {
    /// The slice that it makes of a dim; none if it keeps all.
    pub(super) fn cut(self) -> Option<Cut> {
        match self {
            Basic::One(i) => Some(Cut { start: i, end: i + 1, step: 1, backwards: false }),
            Basic::Slice { count: 0, .. } => Some(Cut { start: 0, end: 0, step: 1, backwards: false }),
            Basic::Slice { start, count, step } => {
                let far = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
                // Between fewer than two elements there is no step.
                let (stride, span) = if count > 1 { (far, (count - 1) * far) } else { (1, 0) };
                let first = if step < 0 { start - span } else { start };
                Some(Cut { start: first, end: first + span + 1, step: stride, backwards: step < 0 && count > 1 })
            }
            Basic::Full | Basic::New => None,
        }
    }

    /// The same elements in rising order.
    pub(super) fn forward(self) -> Basic {
        match (self, self.cut()) {
            (Basic::Slice { count, .. }, Some(c)) => Basic::Slice { start: c.start, count, step: c.step as i64 },
            (other, _) => other,
        }
    }
}

/// A tensor that indexes dims of what the basic members leave.
#[derive(Clone, Debug)]
pub(super) struct Advanced {
    /// The first dim.
    pub dim: usize,
    /// How many dims: more than one for a mask.
    pub span: usize,
    /// The dim or dims of the tensor that the user indexes, for messages.
    pub of: usize,
    /// Indices, or a mask.
    pub tensor: Tensor,
}

impl Advanced {
    pub(super) fn is_mask(&self) -> bool {
        self.tensor.dtype() == DType::Bool
    }
    /// An index tensor without dims: it removes its dim, as an integer does.
    pub(super) fn is_one(&self) -> bool {
        !self.is_mask() && self.tensor.ndim() == 0
    }
}

/// An index that fits a shape.
pub(super) struct Resolved {
    /// For each dim of the tensor, with the new ones between them.
    pub basic: Vec<Basic>,
    /// In rising order of dims.
    pub advanced: Vec<Advanced>,
}

impl Resolved {
    pub(super) fn new(shape: &[usize], indices: &[TensorIndex]) -> Result<Resolved> {
        let rank = shape.len();
        let mut used = 0;
        for i in indices {
            used += dims_of(i)?;
        }
        if indices.iter().filter(|i| matches!(i, TensorIndex::Ellipsis)).count() > 1 {
            return Err(Error::argument("an index has one ellipsis at most"));
        }
        if used > rank {
            return Err(Error::index(format!("too many indices: {used} for a tensor of {rank} dims"))
                .help("an index has at most one member for each dim; a mask counts as many as it has dims"));
        }
        let mut r = Resolved { basic: vec![], advanced: vec![] };
        // Dims of the tensor so far, and of what the basic members leave.
        let (mut at, mut left) = (0, 0);
        let whole = |r: &mut Resolved, n: usize| r.basic.extend(std::iter::repeat_n(Basic::Full, n));
        for i in indices {
            match i {
                TensorIndex::Int(i) => {
                    r.basic.push(Basic::One(one(*i, at, shape[at])?));
                    at += 1;
                }
                TensorIndex::Slice { start, end, step } => {
                    r.basic.push(slice(*start, *end, *step, shape[at])?);
                    (at, left) = (at + 1, left + 1);
                }
                TensorIndex::Full => {
                    whole(&mut r, 1);
                    (at, left) = (at + 1, left + 1);
                }
                TensorIndex::Ellipsis => {
                    whole(&mut r, rank - used);
                    (at, left) = (at + rank - used, left + rank - used);
                }
                TensorIndex::NewAxis => {
                    r.basic.push(Basic::New);
                    left += 1;
                }
                TensorIndex::Tensor(t) | TensorIndex::Values(t) => {
                    let dims = dims_of(i)?;
                    let (mut tensor, mut span) = (t.clone(), dims);
                    if t.dtype() == DType::Bool {
                        if t.shape() != &shape[at..at + dims] {
                            return Err(Error::shape(format!(
                                "the mask has shape {:?}, the dims from {at} on are {:?}",
                                t.shape(),
                                &shape[at..at + dims]
                            )));
                        }
                        if dims == 0 {
                            // A mask without dims chooses all of the tensor or nothing, along a new dim.
                            r.basic.push(Basic::New);
                            (tensor, span) = (t.reshape([1])?, 1);
                        }
                    }
                    whole(&mut r, dims);
                    r.advanced.push(Advanced { dim: left, span, of: at, tensor });
                    (at, left) = (at + dims, left + span);
                }
            }
        }
        whole(&mut r, rank - at);
        Ok(r)
    }
}

/// How many dims of the tensor a member stands for.
fn dims_of(i: &TensorIndex) -> Result<usize> {
    Ok(match i {
        TensorIndex::Int(_) | TensorIndex::Slice { .. } | TensorIndex::Full => 1,
        TensorIndex::Ellipsis | TensorIndex::NewAxis => 0,
        TensorIndex::Tensor(t) | TensorIndex::Values(t) => match t.dtype() {
            DType::Bool => t.ndim(),
            DType::I32 | DType::I64 => 1,
            d => {
                return Err(Error::dtype(format!("a tensor in an index must be bool, i32 or i64, not {d}"))
                    .help("convert it with `.cast(dtype)`"));
            }
        },
    })
}

fn one(i: i64, dim: usize, size: usize) -> Result<usize> {
    let n = size as i64;
    match i {
        i if (0..n).contains(&i) => Ok(i as usize),
        i if (-n..0).contains(&i) => Ok((i + n) as usize),
        i => Err(Error::index(format!("index {i} is out of range for dim {dim} of size {size}"))),
    }
}

/// Python's slice of a dim.
fn slice(start: Option<i64>, end: Option<i64>, step: i64, size: usize) -> Result<Basic> {
    let (n, back) = (size as i128, step < 0);
    if step == 0 {
        return Err(Error::argument("the step of a slice cannot be 0"));
    }
    let (low, high) = if back { (-1, n - 1) } else { (0, n) };
    let bound = |b: i64| {
        let b = i128::from(b);
        (if b < 0 { b + n } else { b }).clamp(low, high)
    };
    let start = start.map_or(if back { high } else { low }, bound);
    let end = end.map_or(if back { low } else { high }, bound);
    let step_by = i128::from(step).abs();
    let span = if back { start - end } else { end - start };
    let count = if span > 0 { (span - 1) / step_by + 1 } else { 0 };
    Ok(match (start, count, step) {
        (0, all, 1) if all == n => Basic::Full,
        (_, 0, _) => Basic::Slice { start: 0, count: 0, step: 1 },
        (start, count, step) => Basic::Slice { start: start as usize, count: count as usize, step },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `range(n)[start:end:step]` gives, by its definition.
    #[test]
    fn slices_are_pythons() {
        let bounds = || (-9..=9).map(Some).chain([None, Some(i64::MIN), Some(i64::MAX)]);
        for n in 0..6usize {
            for (start, end, step) in
                bounds().flat_map(|a| bounds().flat_map(move |b| (-4..=4).filter(|s| *s != 0).map(move |s| (a, b, s))))
            {
                let wrap = |b: i64| if b < 0 { b.saturating_add(n as i64) } else { b };
                let first = start.map_or(if step < 0 { n as i64 - 1 } else { 0 }, |b| match wrap(b) {
                    b if step > 0 => b.max(0),
                    b => b.min(n as i64 - 1),
                });
                let last = end.map(wrap);
                let goes_on = |i: i64| match (last, step > 0) {
                    (Some(l), true) => i < l.min(n as i64),
                    (Some(l), false) => i > l.max(-1),
                    (None, true) => i < n as i64,
                    (None, false) => i > -1,
                };
                let mut want = vec![];
                let mut i = first;
                while goes_on(i) && i >= 0 {
                    want.push(i as usize);
                    i += step;
                }
                let have: Vec<usize> = match slice(start, end, step, n).unwrap() {
                    Basic::Full => (0..n).collect(),
                    s => {
                        let c = s.cut().unwrap();
                        let forward: Vec<usize> = (c.start..c.end).step_by(c.step).collect();
                        if c.backwards { forward.into_iter().rev().collect() } else { forward }
                    }
                };
                assert_eq!(have, want, "{start:?}:{end:?}:{step} of {n}");
            }
        }
    }
}
