//! Reductions: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// Options of [`Tensor::cumsum_with`](crate::Tensor::cumsum_with).
#[derive(Clone, Debug, Default)]
pub struct CumsumOptions {
    /// `Bool reverse=false`. `false` by default.
    pub reverse: bool,
}

impl Tensor {
    /// The sum over dims (none given: all). Integers and bools sum to i64. Over a split dim the result is P(sum): it is reduced when a later op needs it.
    ///
    /// ```text
    /// sum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn sum(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("sum"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::sum`](crate::Tensor::sum) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn sum_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("sum"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The mean over dims (none given: all); of no elements NaN. Integers and bools give f32. Over a split dim the result is P(sum).
    ///
    /// ```text
    /// mean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn mean(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("mean"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::mean`](crate::Tensor::mean) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn mean_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("mean"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The product over dims (none given: all). Integers and bools multiply to i64.
    ///
    /// ```text
    /// prod(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn prod(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("prod"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::prod`](crate::Tensor::prod) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn prod_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("prod"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The largest element over dims (none given: all). Over a split dim the result is P(max).
    ///
    /// ```text
    /// amax(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn amax(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("amax"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::amax`](crate::Tensor::amax) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn amax_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("amax"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The smallest element over dims (none given: all). Over a split dim the result is P(min).
    ///
    /// ```text
    /// amin(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn amin(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("amin"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::amin`](crate::Tensor::amin) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn amin_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("amin"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// True if some element is not zero.
    ///
    /// ```text
    /// any(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn any(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("any"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::any`](crate::Tensor::any) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn any_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("any"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// True if no element is zero.
    ///
    /// ```text
    /// all(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn all(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("all"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::all`](crate::Tensor::all) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn all_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("all"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The i64 index of the largest element along a dim; among equals the first; NaN wins.
    ///
    /// ```text
    /// argmax(Tensor x, Int dim, Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn argmax(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("argmax"), &[Some(self)], smallvec![dim.int().into(), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::argmax`](crate::Tensor::argmax) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn argmax_keepdim(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("argmax"), &[Some(self)], smallvec![dim.int().into(), true.into()], smallvec![], CallSite::here())
    }

    /// The i64 index of the smallest element along a dim; among equals the first; NaN wins.
    ///
    /// ```text
    /// argmin(Tensor x, Int dim, Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn argmin(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("argmin"), &[Some(self)], smallvec![dim.int().into(), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::argmin`](crate::Tensor::argmin) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn argmin_keepdim(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("argmin"), &[Some(self)], smallvec![dim.int().into(), true.into()], smallvec![], CallSite::here())
    }

    /// The running sum along a dim, with `reverse` from its end.
    ///
    /// ```text
    /// cumsum(Tensor x, Int dim, *, Bool reverse=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn cumsum(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("cumsum"), &[Some(self)], smallvec![dim.int().into(), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::cumsum`](crate::Tensor::cumsum) with its options.
    #[track_caller]
    pub fn cumsum_with(&self, dim: impl IntLike, options: &crate::functional::CumsumOptions) -> Result<Tensor> {
        invoke1(op!("cumsum"), &[Some(self)], smallvec![dim.int().into(), options.reverse.into()], smallvec![], CallSite::here())
    }

    /// The biased variance over dims (none given: all): the sum of squares is divided by the number of elements.
    ///
    /// ```text
    /// var(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn var(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::var(self, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::var`](crate::Tensor::var) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn var_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::var(self, &dims.ints(), true, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("var(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::var(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
];
