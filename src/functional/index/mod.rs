//! Indexing: [`Tensor::index`], [`Tensor::index_put`] and [`Tensor::index_put_`] with integers, ranges, masks and index tensors.
//!
//! An index becomes ops that exist: integers and ranges are slices of a dim (views on local tensors), a negative step adds a
//! `flip`, index tensors become one index into the dims that they stand for, merged (`get.rs`). An assignment finds, for each
//! place, which element of the value it gets, and chooses between that and what was there (`put.rs`).

mod get;
mod member;
mod put;
mod resolve;

pub(super) use member::text_of;
pub use member::{IndexRange, IntoIndices, TensorIndex};

use super::{Bound, Operand, RightOperand, everywhere};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use resolve::Resolved;

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
    pub fn index_put<'a>(&self, indices: impl IntoIndices, value: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        index_put(self, &indices.into_indices(), &value.into().operand(), CallSite::here())
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
    pub fn index_put_<'a>(&self, indices: impl IntoIndices, value: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        index_put_(self, &indices.into_indices(), &value.into().operand(), CallSite::here())?;
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
    /// A copy with the value at what an index names, or with `accumulate` added to it, as often as the index names a place.
    "index_put(Tensor x, TensorIndex index, Tensor value, Bool accumulate) -> Tensor" = |b| match b.bool(3)? {
        true => Ok(vec![index_add(b.given(0)?, b.index(1)?, b.given(2)?, b.site)?]),
        false => put_by_name(b),
    };
    /// The value, which broadcasts, is written to what an index names.
    "index_put_(Tensor x, TensorIndex index, Tensor value) -> Tensor" = |b| put_by_name_(b);
    /// The value is written to what an index names.
    "index_put_(Tensor x, TensorIndex index, Scalar value) -> Tensor" = |b| put_by_name_(b);
    /// The value is written to what an index names, or with `accumulate` added to it, as often as the index names a place.
    "index_put_(Tensor x, TensorIndex index, Tensor value, Bool accumulate) -> Tensor" = |b| match b.bool(3)? {
        true => {
            let x = b.given(0)?;
            let inner = inner_calls();
            let sums = index_add(x, b.index(1)?, b.given(2)?, b.site)?;
            drop(inner);
            super::inplace::copy_(x, &sums, b.site)?;
            Ok(vec![x.clone()])
        }
        false => put_by_name_(b),
    };
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

fn index_add(x: &Tensor, indices: &[TensorIndex], value: &Tensor, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let call = |e: Error| e.in_call(|| put_text("index_put", x, indices, &Operand::Tensor(value))).at(site);
    let fitting = resolved(x, indices, site).map_err(call)?;
    Ok(put::add(x, &fitting, value).map_err(call)?.into_result())
}

pub(super) fn index_put_(x: &Tensor, indices: &[TensorIndex], value: &Operand<'_>, site: CallSite) -> Result<()> {
    let _scope = site.scope();
    let call = |e: Error| e.in_call(|| put_text("index_put_", x, indices, value)).at(site);
    let fitting = resolved(x, indices, site).map_err(call)?;
    put::put_in_place(x, &fitting, value).map_err(call)
}
