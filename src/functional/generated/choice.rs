//! Choice: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use smallvec::smallvec;

impl Tensor {
    /// How many elements over dims (none given: all) are not zero; NaN is not. The result is i64.
    ///
    /// ```text
    /// count_nonzero(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn count_nonzero(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("count_nonzero"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::count_nonzero`](crate::Tensor::count_nonzero) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn count_nonzero_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("count_nonzero"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The indices of the elements that are not zero (NaN is not): i64, `[count, rank]`, in row-major order. A tensor split along dim 0 gives indices split along dim 0. The call waits for the count, which decides the shape of the result.
    ///
    /// ```text
    /// nonzero(Tensor x) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![0.0f32, 3.0, 4.0, 0.0], [2, 2], Device::Cpu)?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// In a dry run, whose tensors have no values.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        invoke1(op!("nonzero"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The distinct values, smallest first, as a tensor of one dim. NaN come last; no two are equal. A global result is B. There is no gradient, and no kernel for GPUs.
    ///
    /// ```text
    /// unique(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// On a GPU; in a dry run.
    #[track_caller]
    pub fn unique(&self) -> Result<Tensor> {
        invoke1(op!("unique"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The elements of a dim by index. The dims of `ids` take the place of the dim; a list, as in PyTorch, keeps the rank.
    ///
    /// ```text
    /// index_select(Tensor x, Int dim, Tensor ids) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If an index is not within 0 and the size of the dim. The kernel finds it, so only ranks that hold the index return the error.
    #[track_caller]
    pub fn index_select(&self, dim: impl IntLike, ids: &Tensor) -> Result<Tensor> {
        invoke1(op!("index_select"), &[Some(self), Some(ids)], smallvec![dim.int().into()], smallvec![], CallSite::here())
    }

    /// The elements of each of the dims in reverse order, in new memory.
    ///
    /// ```text
    /// flip(Tensor x, IntList dims) -> Tensor
    /// ```
    #[track_caller]
    pub fn flip(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("flip"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints())], smallvec![], CallSite::here())
    }

    /// The elements where the bool tensor `mask` is true, in row-major order, as a tensor of one dim. Shapes broadcast. The gradient
    /// goes to the elements that were chosen. The call waits for the count, which decides the shape of the result.
    ///
    /// ```text
    /// masked_select(Tensor x, Tensor mask) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, -2.0, 3.0], [3], Device::Cpu)?;
    /// assert_eq!(x.masked_select(&x.gt(0.0)?)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast or the mask is no bool tensor; in a dry run.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        super::super::select::masked_select(self, mask, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("masked_select(Tensor x, Tensor mask) -> Tensor", |b| Ok(vec![super::super::select::masked_select(b.given(0)?, b.given(1)?, b.site)?])),
];
