//! Indexing: [`Tensor::index`], [`Tensor::index_put`] and [`Tensor::index_put_`] with integers, ranges, masks and index tensors.
//!
//! An index becomes ops that exist: integers and ranges are slices of a dim (views on local tensors), a negative step adds a
//! `flip`, index tensors become one index into the dims that they stand for, merged (`get.rs`). An assignment finds, for each
//! place, which element of the value it gets, and chooses between that and what was there (`put.rs`).

mod get;
mod put;
mod resolve;

use super::{Bound, IntLike, Operand, everywhere};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use resolve::Resolved;
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
pub(super) fn text_of(indices: &[TensorIndex]) -> String {
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

impl Tensor {
    /// Returns the elements that an index names, as PyTorch's `x[...]`: see [`TensorIndex`] for its members.
    ///
    /// Integers, ranges, `Ellipsis` and `NewAxis` give a view of a local tensor, unless a step is negative. Index tensors broadcast
    /// against each other; a mask counts as the list of its true places. Their common dims stand where the indexed dims stood if
    /// these are next to each other, else they come first. As in PyTorch, and unlike in NumPy, integers take no part in this. On a
    /// global tensor masks and index tensors are global on the same placement, or [`TensorIndex::Values`]. The result of a mask has
    /// a length that depends on values; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(12, Device::Cpu)?.reshape([3, 4])?;
    /// assert_eq!(x.index((1, 1..-1))?.to_vec::<i64>()?, [5, 6]);
    /// assert_eq!(x.index((TensorIndex::Ellipsis, (..).by(-3)))?.to_vec::<i64>()?, [3, 0, 7, 4, 11, 8]);
    /// let ids = from_vec(vec![2i64, -3], [2], Device::Cpu)?;
    /// assert_eq!(x.index((&ids, 0))?.to_vec::<i64>()?, [8, 0]);
    /// assert_eq!(x.index(&x.gt(9i64)?)?.to_vec::<i64>()?, [10, 11]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the index does not fit the tensor. An index tensor with a value out of range fails on the ranks that have the value, and
    /// that ends the job.
    #[track_caller]
    pub fn index(&self, indices: impl IntoIndices) -> Result<Tensor> {
        index(self, &indices.into_indices(), CallSite::here())
    }

    /// Returns a copy in which the elements that an index names are those of `value`, a number or a tensor that broadcasts to the
    /// shape of `self.index(indices)`. The value is converted to the dtype of the tensor.
    ///
    /// If an index tensor names a place several times, the last one counts; its element of the value alone gets a gradient.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([2, 3], Device::Cpu)?;
    /// assert_eq!(x.index_put((.., 1), 5.0)?.to_vec::<f32>()?, [0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::index`]; also if the value does not broadcast to what is indexed.
    #[track_caller]
    pub fn index_put<'a>(&self, indices: impl IntoIndices, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        index_put(self, &indices.into_indices(), &value.into(), CallSite::here())
    }

    /// [`Tensor::index_put`] in place, as PyTorch's `x[...] = value`. On a local tensor an index of integers and ranges writes only
    /// what it names; otherwise the whole tensor is written.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([2, 3], Device::Cpu)?;
    /// x.index_put_((0, ..2), &from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::index_put`] and [`Tensor::copy_`].
    #[track_caller]
    pub fn index_put_<'a>(&self, indices: impl IntoIndices, value: impl Into<Operand<'a>>) -> Result<&Tensor> {
        index_put_(self, &indices.into_indices(), &value.into(), CallSite::here())?;
        Ok(self)
    }
}

by_name! {
    BY_NAME, "Choice", ByName;
    /// The elements that an index of integers, slices, masks and index tensors names.
    "index(Tensor x, TensorIndex index) -> Tensor" = |b| Ok(vec![index(b.given(0)?, b.index(1)?, b.site)?]);
    /// A copy with the value, which broadcasts, at what an index names.
    "index_put(Tensor x, TensorIndex index, Tensor value) -> Tensor" = |b| put_by_name(b);
    /// A copy with the value at what an index names.
    "index_put(Tensor x, TensorIndex index, Scalar value) -> Tensor" = |b| put_by_name(b);
    /// The value, which broadcasts, is written to what an index names.
    "index_put_(Tensor x, TensorIndex index, Tensor value) -> Tensor" = |b| put_by_name_(b);
    /// The value is written to what an index names.
    "index_put_(Tensor x, TensorIndex index, Scalar value) -> Tensor" = |b| put_by_name_(b);
}

/// The value of an assignment: a tensor or a number.
fn value(b: &Bound) -> Result<Operand<'_>> {
    Ok(match b.tensor(2) {
        Some(t) => Operand::Tensor(t),
        None => Operand::Scalar(b.scalar(2)?),
    })
}

fn put_by_name(b: &Bound) -> Result<Vec<Tensor>> {
    Ok(vec![index_put(b.given(0)?, b.index(1)?, &value(b)?, b.site)?])
}

fn put_by_name_(b: &Bound) -> Result<Vec<Tensor>> {
    index_put_(b.given(0)?, b.index(1)?, &value(b)?, b.site)?;
    Ok(vec![b.given(0)?.clone()])
}

/// The index resolved against the shape, with its values where the tensor is.
fn resolved(x: &Tensor, indices: &[TensorIndex], site: CallSite) -> Result<Resolved> {
    if !indices.iter().any(|i| matches!(i, TensorIndex::Values(_))) {
        return Resolved::new(x.shape(), indices);
    }
    let inner = inner_calls();
    let lifted = |i: &TensorIndex| {
        Ok(match i {
            TensorIndex::Values(t) => TensorIndex::Tensor(everywhere(t, x, site)?),
            other => other.clone(),
        })
    };
    let indices = indices.iter().map(lifted).collect::<Result<Vec<_>>>()?;
    drop(inner);
    Resolved::new(x.shape(), &indices)
}

pub(super) fn index(x: &Tensor, indices: &[TensorIndex], site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let call = || format!("index({}, {})", x.short(), text_of(indices));
    let fitting = resolved(x, indices, site).map_err(|e| e.in_call(call).at(site))?;
    get::get(x, &fitting).map_err(|e| e.in_call(call).at(site))
}

/// The short form of an assignment.
fn put_text(name: &str, x: &Tensor, indices: &[TensorIndex], value: &Operand<'_>) -> String {
    let value = match value {
        Operand::Tensor(t) => t.short(),
        Operand::Scalar(s) => s.to_string(),
    };
    format!("{name}({}, {}, {value})", x.short(), text_of(indices))
}

pub(super) fn index_put(x: &Tensor, indices: &[TensorIndex], value: &Operand<'_>, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let call = |e: Error| e.in_call(|| put_text("index_put", x, indices, value)).at(site);
    let fitting = resolved(x, indices, site).map_err(call)?;
    Ok(put::put(x, &fitting, value).map_err(call)?.into_result())
}

pub(super) fn index_put_(x: &Tensor, indices: &[TensorIndex], value: &Operand<'_>, site: CallSite) -> Result<()> {
    let _scope = site.scope();
    let call = |e: Error| e.in_call(|| put_text("index_put_", x, indices, value)).at(site);
    let fitting = resolved(x, indices, site).map_err(call)?;
    put::put_in_place(x, &fitting, value).map_err(call)
}
