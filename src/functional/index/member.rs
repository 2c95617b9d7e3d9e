//! The members of an index, and the types of Rust that are one.

use crate::error::{Error, Result};
use crate::functional::IntLike;
use crate::tensor::Tensor;
use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::str::FromStr;

/// One member of an index, as PyTorch has them. Integers, ranges and tensors convert to it.
///
/// | Rust | PyTorch |
/// |---|---|
/// | `2`, `-1` | `2`, `-1` |
/// | `1..4`, `..-1`, `..`, `2..=5` | `1:4`, `:-1`, `:`, `2:6` |
/// | `(..).by(-1)`, `(1..9).by(2)` ([`IndexRange`]) | `::-1`, `1:9:2` |
/// | `TensorIndex::Ellipsis`, `TensorIndex::NewAxis` | `...`, `None` |
/// | `&mask` (bool), `&ids` (i32 or i64) | `mask`, `ids` |
#[derive(Clone, Debug)]
pub enum TensorIndex {
    /// One element of a dim, which is removed. Negative ones count from the end.
    Int(i64),
    /// Elements start, start + step, … before end. Negative bounds count from the end; bounds are clamped to the size.
    Slice {
        /// The first element; none is the first one in the direction of the step.
        start: Option<i64>,
        /// The first element that is left out; none goes to the end in the direction of the step.
        end: Option<i64>,
        /// The step, which is not 0. A negative one goes backwards.
        step: i64,
    },
    /// The whole dim: `..`.
    Full,
    /// As many whole dims as the other members leave.
    Ellipsis,
    /// A new dim of size 1.
    NewAxis,
    /// A bool tensor is a mask of as many dims as it has and chooses the elements where it is true, as one dim. A tensor of i32 or
    /// i64 chooses elements of one dim by index; negative indices count from the end.
    Tensor(Tensor),
    /// The same as `Tensor`, for values that the program itself has and that are the same on every rank: a local tensor made of a
    /// list. On a global tensor it is distributed as B over the tensor's placement; a hash of the values stands in the dispatch
    /// stream, so that ranks with other values are told apart.
    Values(Tensor),
}

impl TensorIndex {
    /// The slice `start:end:step`; `None` leaves a bound out. The same as a range, for bounds that Clippy would take for an empty
    /// range, as in `1..-1`.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(6, Device::Cpu)?;
    /// assert_eq!(x.index(TensorIndex::slice(4, 1, -1))?.to_vec::<i64>()?, [4, 3, 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn slice(start: impl Into<Option<i64>>, end: impl Into<Option<i64>>, step: i64) -> TensorIndex {
        TensorIndex::Slice { start: start.into(), end: end.into(), step }
    }
}

impl fmt::Display for TensorIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorIndex::Int(i) => write!(f, "{i}"),
            TensorIndex::Slice { start, end, step } => {
                let bound = |b: &Option<i64>| b.map_or(String::new(), |b| b.to_string());
                write!(f, "{}:{}", bound(start), bound(end))?;
                if *step == 1 { Ok(()) } else { write!(f, ":{step}") }
            }
            TensorIndex::Full => f.write_str(":"),
            TensorIndex::Ellipsis => f.write_str("..."),
            TensorIndex::NewAxis => f.write_str("newaxis"),
            TensorIndex::Tensor(t) | TensorIndex::Values(t) => f.write_str(&t.short()),
        }
    }
}

/// Reads the text of a member that is not a tensor: `3`, `1:5:-1`, `:`, `...`, `newaxis`.
///
/// ```
/// use oflow::functional::TensorIndex;
/// assert_eq!("1:-1:2".parse::<TensorIndex>()?.to_string(), "1:-1:2");
/// # Ok::<(), oflow::Error>(())
/// ```
impl FromStr for TensorIndex {
    type Err = Error;
    fn from_str(text: &str) -> Result<TensorIndex> {
        let bad = || {
            Error::parse(format!("'{text}' is not a member of an index"))
                .help("it is an integer, start:end:step with any of these left out, '...' or 'newaxis'")
        };
        let number = |t: &str| t.trim().parse::<i64>().map_err(|_| bad());
        let bound = |t: &str| if t.trim().is_empty() { Ok(None) } else { number(t).map(Some) };
        let parts: Vec<&str> = text.split(':').collect();
        Ok(match (text.trim(), parts.as_slice()) {
            ("...", _) => TensorIndex::Ellipsis,
            ("newaxis", _) => TensorIndex::NewAxis,
            (":", _) => TensorIndex::Full,
            (one, [_]) => TensorIndex::Int(number(one)?),
            (_, [start, end]) => TensorIndex::Slice { start: bound(start)?, end: bound(end)?, step: 1 },
            (_, [start, end, step]) => {
                TensorIndex::Slice { start: bound(start)?, end: bound(end)?, step: bound(step)?.unwrap_or(1) }
            }
            _ => return Err(bad()),
        })
    }
}

/// An index as text, as Python writes it: `[1, 2:5, ..., i64[3]]`.
pub(in crate::functional) fn text_of(indices: &[TensorIndex]) -> String {
    format!("[{}]", indices.iter().map(|i| i.to_string()).collect::<Vec<_>>().join(", "))
}

impl From<&Tensor> for TensorIndex {
    fn from(t: &Tensor) -> TensorIndex {
        TensorIndex::Tensor(t.clone())
    }
}
impl From<Tensor> for TensorIndex {
    fn from(t: Tensor) -> TensorIndex {
        TensorIndex::Tensor(t)
    }
}
impl From<&TensorIndex> for TensorIndex {
    fn from(i: &TensorIndex) -> TensorIndex {
        i.clone()
    }
}
impl From<RangeFull> for TensorIndex {
    fn from(_: RangeFull) -> TensorIndex {
        TensorIndex::Full
    }
}
impl IndexRange for RangeFull {
    fn by(self, step: i64) -> TensorIndex {
        TensorIndex::Slice { start: None, end: None, step }
    }
}

/// A range of a dim with a step: `(1..9).by(2)`, `(..).by(-1)`.
///
/// Bounds are those of Python's slices: `(5..1).by(-1)` are the elements 5, 4, 3, 2. A range with `..=` includes its end in the
/// direction of the step.
///
/// ```
/// use oflow::prelude::*;
/// let x = arange(6, Device::Cpu)?;
/// assert_eq!(x.index((..).by(-2))?.to_vec::<i64>()?, [5, 3, 1]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait IndexRange: Sized {
    /// The elements of the range in steps of `step`.
    fn by(self, step: i64) -> TensorIndex;
}

/// The end after the last element, in the direction of the step. Before the first element and after the last one there is no number.
fn after(last: i64, step: i64) -> Option<i64> {
    match (last, step < 0) {
        (-1, false) | (0, true) => None,
        (_, false) => Some(last.saturating_add(1)),
        (_, true) => Some(last - 1),
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for TensorIndex {
            fn from(i: $t) -> TensorIndex {
                TensorIndex::Int(i.int())
            }
        }
        numbers! { $t; Range, r, step, Some(r.start.int()), Some(r.end.int()) }
        numbers! { $t; RangeFrom, r, step, Some(r.start.int()), None }
        numbers! { $t; RangeTo, r, step, None, Some(r.end.int()) }
        numbers! { $t; RangeInclusive, r, step, Some((*r.start()).int()), after((*r.end()).int(), step) }
        numbers! { $t; RangeToInclusive, r, step, None, after(r.end.int(), step) }
    )*};
    ($t:ty; $range:ident, $r:ident, $step:ident, $start:expr, $end:expr) => {
        impl IndexRange for $range<$t> {
            fn by(self, $step: i64) -> TensorIndex {
                let $r = self;
                TensorIndex::Slice { start: $start, end: $end, step: $step }
            }
        }
        impl From<$range<$t>> for TensorIndex {
            fn from(r: $range<$t>) -> TensorIndex {
                r.by(1)
            }
        }
    };
}
numbers!(i64, i32, usize);

/// Types that can be an index: one member, or several in a tuple, array, slice or vector.
///
/// An array is not an index tensor: `x.index([0, 1])` is the element at row 0 and column 1.
pub trait IntoIndices {
    /// The members in order.
    fn into_indices(self) -> Vec<TensorIndex>;
}

impl<T: Into<TensorIndex>> IntoIndices for T {
    fn into_indices(self) -> Vec<TensorIndex> {
        vec![self.into()]
    }
}
impl IntoIndices for () {
    fn into_indices(self) -> Vec<TensorIndex> {
        vec![]
    }
}
impl<T: Into<TensorIndex>, const N: usize> IntoIndices for [T; N] {
    fn into_indices(self) -> Vec<TensorIndex> {
        self.into_iter().map(Into::into).collect()
    }
}
impl<T: Into<TensorIndex>> IntoIndices for Vec<T> {
    fn into_indices(self) -> Vec<TensorIndex> {
        self.into_iter().map(Into::into).collect()
    }
}
impl<T: Into<TensorIndex> + Clone> IntoIndices for &[T] {
    fn into_indices(self) -> Vec<TensorIndex> {
        self.iter().cloned().map(Into::into).collect()
    }
}
impl<T: Into<TensorIndex> + Clone> IntoIndices for &Vec<T> {
    fn into_indices(self) -> Vec<TensorIndex> {
        self.as_slice().into_indices()
    }
}
macro_rules! tuples {
    ($($($t:ident)*;)*) => {$(
        impl<$($t: Into<TensorIndex>),*> IntoIndices for ($($t,)*) {
            #[allow(non_snake_case)]
            fn into_indices(self) -> Vec<TensorIndex> {
                let ($($t,)*) = self;
                vec![$($t.into()),*]
            }
        }
    )*};
}
for_tuples!(tuples);
