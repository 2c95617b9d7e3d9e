//! Shapes: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;

/// The tensors one after another along a dim. Their other sizes must be equal.
///
/// ```text
/// cat(TensorTuple xs, Int dim=0) -> Tensor
/// ```
///
/// ```
/// use oflow::prelude::*;
/// let parts = arange(6, Device::Cpu)?.split(4, 0)?;
/// assert_eq!(cat(&parts, 0)?.shape(), [6]);
/// assert_eq!(cat([&parts[1], &parts[0]], 0)?.to_vec::<i64>()?, [4, 5, 0, 1, 2, 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn cat<T: Borrow<Tensor>>(xs: impl AsRef<[T]>, dim: impl IntLike) -> Result<Tensor> {
    let xs: SmallVec<[Option<&Tensor>; 4]> = xs.as_ref().iter().map(|t| Some(t.borrow())).collect();
    invoke1(op!("concat"), &xs, smallvec![dim.int().into()], smallvec![], CallSite::here())
}

/// Tensors of one shape along a new dim at position `dim`.
///
/// ```text
/// stack(TensorTuple xs, Int dim=0) -> Tensor
/// ```
#[track_caller]
pub fn stack<T: Borrow<Tensor>>(xs: impl AsRef<[T]>, dim: impl IntLike) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::shape::stack(&xs, dim.int(), CallSite::here())
}

impl Tensor {
    /// The dims in the order `dims`.
    ///
    /// ```text
    /// permute(Tensor x, IntList dims) -> Tensor
    /// ```
    #[track_caller]
    pub fn permute(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("permute"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints())], smallvec![], CallSite::here())
    }

    /// Zeros above a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it.
    ///
    /// ```text
    /// tril(Tensor x, Int diagonal=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn tril(&self, diagonal: impl IntLike) -> Result<Tensor> {
        invoke1(op!("tril"), &[Some(self)], smallvec![diagonal.int().into()], smallvec![], CallSite::here())
    }

    /// Zeros below a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it.
    ///
    /// ```text
    /// triu(Tensor x, Int diagonal=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn triu(&self, diagonal: impl IntLike) -> Result<Tensor> {
        invoke1(op!("triu"), &[Some(self)], smallvec![diagonal.int().into()], smallvec![], CallSite::here())
    }

    /// The same elements, in row-major order, as another shape. One size may be -1: it follows from the others.
    ///
    /// ```text
    /// reshape(Tensor x, IntList shape) -> Tensor
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: impl IntList) -> Result<Tensor> {
        super::super::shape::reshape(self, &shape.ints(), CallSite::here())
    }

    /// The dims from `start` to `end`, inclusive, as one. Negative dims count from the end.
    ///
    /// ```text
    /// flatten(Tensor x, Int start=0, Int end=-1) -> Tensor
    /// ```
    #[track_caller]
    pub fn flatten(&self, start: impl IntLike, end: impl IntLike) -> Result<Tensor> {
        super::super::shape::flatten(self, start.int(), end.int(), CallSite::here())
    }

    /// Exchanges two dims.
    ///
    /// ```text
    /// transpose(Tensor x, Int dim0, Int dim1) -> Tensor
    /// ```
    #[track_caller]
    pub fn transpose(&self, dim0: impl IntLike, dim1: impl IntLike) -> Result<Tensor> {
        super::super::shape::transpose(self, dim0.int(), dim1.int(), CallSite::here())
    }

    /// Exchanges the last two dims: the transpose of a matrix.
    ///
    /// ```text
    /// t(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        super::super::shape::t(self, CallSite::here())
    }

    /// Dims of size 1 repeated up to `shape`; -1 keeps the size of a dim.
    ///
    /// ```text
    /// expand(Tensor x, IntList shape) -> Tensor
    /// ```
    #[track_caller]
    pub fn expand(&self, shape: impl IntList) -> Result<Tensor> {
        super::super::shape::expand(self, &shape.ints(), CallSite::here())
    }

    /// A dim of size 1 more, at position `dim`.
    ///
    /// ```text
    /// unsqueeze(Tensor x, Int dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn unsqueeze(&self, dim: impl IntLike) -> Result<Tensor> {
        super::super::shape::unsqueeze(self, dim.int(), CallSite::here())
    }

    /// Without `dim`, if its size is 1; otherwise the tensor unchanged, as in PyTorch.
    ///
    /// ```text
    /// squeeze(Tensor x, Int dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn squeeze(&self, dim: impl IntLike) -> Result<Tensor> {
        super::super::shape::squeeze(self, dim.int(), CallSite::here())
    }

    /// Elements `start`, `start + step`, … below `end` of a dim. Negative bounds count from the end; bounds are clamped to the size.
    ///
    /// ```text
    /// slice(Tensor x, Int dim, Int start, Int end, Int step=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn slice(
        &self,
        dim: impl IntLike,
        start: impl IntLike,
        end: impl IntLike,
        step: impl IntLike,
    ) -> Result<Tensor> {
        super::super::shape::slice(self, dim.int(), start.int(), end.int(), step.int(), CallSite::here())
    }

    /// `len` elements of a dim from `start` on.
    ///
    /// ```text
    /// narrow(Tensor x, Int dim, Int start, Int len) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `start..start + len` is not within the size of the dim.
    #[track_caller]
    pub fn narrow(&self, dim: impl IntLike, start: impl IntLike, len: impl IntLike) -> Result<Tensor> {
        super::super::shape::narrow(self, dim.int(), start.int(), len.int(), CallSite::here())
    }

    /// The element `index` along `dim`, which is removed. A negative index counts from the end.
    ///
    /// ```text
    /// select(Tensor x, Int dim, Int index) -> Tensor
    /// ```
    #[track_caller]
    pub fn select(&self, dim: impl IntLike, index: impl IntLike) -> Result<Tensor> {
        super::super::shape::select(self, dim.int(), index.int(), CallSite::here())
    }

    /// Parts of a dim with `size` elements; the last part may be smaller.
    ///
    /// ```text
    /// split(Tensor x, Int size, Int dim=0) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn split(&self, size: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::shape::split(self, size.int(), dim.int(), CallSite::here())
    }

    /// At most `parts` parts of a dim with equal size (the last may be smaller), as PyTorch's `chunk`.
    ///
    /// ```text
    /// chunk(Tensor x, Int parts, Int dim=0) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn chunk(&self, parts: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::shape::chunk(self, parts.int(), dim.int(), CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("reshape(Tensor x, IntList shape) -> Tensor", |b| Ok(vec![super::super::shape::reshape(b.given(0)?, b.ints(1)?, b.site)?])),
    ("flatten(Tensor x, Int start=0, Int end=-1) -> Tensor", |b| Ok(vec![super::super::shape::flatten(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("transpose(Tensor x, Int dim0, Int dim1) -> Tensor", |b| Ok(vec![super::super::shape::transpose(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("t(Tensor x) -> Tensor", |b| Ok(vec![super::super::shape::t(b.given(0)?, b.site)?])),
    ("expand(Tensor x, IntList shape) -> Tensor", |b| Ok(vec![super::super::shape::expand(b.given(0)?, b.ints(1)?, b.site)?])),
    ("unsqueeze(Tensor x, Int dim) -> Tensor", |b| Ok(vec![super::super::shape::unsqueeze(b.given(0)?, b.int(1)?, b.site)?])),
    ("squeeze(Tensor x, Int dim) -> Tensor", |b| Ok(vec![super::super::shape::squeeze(b.given(0)?, b.int(1)?, b.site)?])),
    ("slice(Tensor x, Int dim, Int start, Int end, Int step=1) -> Tensor", |b| Ok(vec![super::super::shape::slice(b.given(0)?, b.int(1)?, b.int(2)?, b.int(3)?, b.int(4)?, b.site)?])),
    ("narrow(Tensor x, Int dim, Int start, Int len) -> Tensor", |b| Ok(vec![super::super::shape::narrow(b.given(0)?, b.int(1)?, b.int(2)?, b.int(3)?, b.site)?])),
    ("select(Tensor x, Int dim, Int index) -> Tensor", |b| Ok(vec![super::super::shape::select(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("split(Tensor x, Int size, Int dim=0) -> TensorTuple", |b| super::super::shape::split(b.given(0)?, b.int(1)?, b.int(2)?, b.site)),
    ("chunk(Tensor x, Int parts, Int dim=0) -> TensorTuple", |b| super::super::shape::chunk(b.given(0)?, b.int(1)?, b.int(2)?, b.site)),
    ("stack(TensorTuple xs, Int dim=0) -> Tensor", |b| Ok(vec![super::super::shape::stack(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.int(1)?, b.site)?])),
];
