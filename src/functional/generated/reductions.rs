//! Reductions: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, invoke, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// Options of [`Tensor::cumsum_with`](crate::Tensor::cumsum_with).
#[derive(Clone, Debug, Default)]
pub struct CumsumOptions {
    /// `Bool reverse=false`. `false` by default.
    pub reverse: bool,
}

/// Options of [`Tensor::var_with`](crate::Tensor::var_with).
#[derive(Clone, Debug)]
pub struct VarOptions {
    /// `Float correction=1.0`. `1.0` by default.
    pub correction: f64,
}

impl Default for VarOptions {
    fn default() -> VarOptions {
        VarOptions {
            correction: 1.0,
        }
    }
}

/// Options of [`Tensor::std_with`](crate::Tensor::std_with).
#[derive(Clone, Debug)]
pub struct StdOptions {
    /// `Float correction=1.0`. `1.0` by default.
    pub correction: f64,
}

impl Default for StdOptions {
    fn default() -> StdOptions {
        StdOptions {
            correction: 1.0,
        }
    }
}

/// Options of [`Tensor::normalize_with`](crate::Tensor::normalize_with).
#[derive(Clone, Debug)]
pub struct NormalizeOptions {
    /// `Float eps=1e-12`. `1e-12` by default.
    pub eps: f64,
}

impl Default for NormalizeOptions {
    fn default() -> NormalizeOptions {
        NormalizeOptions {
            eps: 1e-12,
        }
    }
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

    /// The running product along a dim. Integers and bools multiply to i64. Its gradient divides by nothing, so zeros need no care.
    ///
    /// ```text
    /// cumprod(Tensor x, Int dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn cumprod(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("cumprod"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())
    }

    /// The largest element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is NaN.
    ///
    /// ```text
    /// cummax(Tensor x, Int dim) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn cummax(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("cummax"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// The smallest element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is NaN.
    ///
    /// ```text
    /// cummin(Tensor x, Int dim) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn cummin(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("cummin"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// The logarithm of the running sum of eˣ along a dim, also where the powers overflow.
    ///
    /// ```text
    /// logcumsumexp(Tensor x, Int dim) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is no float tensor.
    #[track_caller]
    pub fn logcumsumexp(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("logcumsumexp"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())
    }

    /// The variance over dims (none given: all): the sum of squared distances from the mean, divided by the number of elements less
    /// `correction`. With the usual correction of 1 it is unbiased; of one element it is then NaN.
    ///
    /// ```text
    /// var(Tensor x, IntList dims=[], Bool keepdim=false, *, Float correction=1.0) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 3.0], [2], Device::Cpu)?;
    /// assert_eq!(x.var(())?.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn var(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::var(self, &dims.ints(), false, 1.0, CallSite::here())
    }

    /// [`Tensor::var`](crate::Tensor::var) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn var_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::var(self, &dims.ints(), true, 1.0, CallSite::here())
    }

    /// [`Tensor::var`](crate::Tensor::var) with its options.
    #[track_caller]
    pub fn var_with(&self, dims: impl IntList, options: &crate::functional::VarOptions) -> Result<Tensor> {
        super::super::reduce::var(self, &dims.ints(), false, options.correction, CallSite::here())
    }

    /// The standard deviation: the root of the variance.
    ///
    /// ```text
    /// std(Tensor x, IntList dims=[], Bool keepdim=false, *, Float correction=1.0) -> Tensor
    /// ```
    #[track_caller]
    pub fn std(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::std(self, &dims.ints(), false, 1.0, CallSite::here())
    }

    /// [`Tensor::std`](crate::Tensor::std) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn std_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::std(self, &dims.ints(), true, 1.0, CallSite::here())
    }

    /// [`Tensor::std`](crate::Tensor::std) with its options.
    #[track_caller]
    pub fn std_with(&self, dims: impl IntList, options: &crate::functional::StdOptions) -> Result<Tensor> {
        super::super::reduce::std(self, &dims.ints(), false, options.correction, CallSite::here())
    }

    /// The p-norm over dims (none given: all): the p-th root of the sum of |x| to the power p. For p = inf it is the largest |x|, for
    /// -inf the smallest, for 0 the number of elements that are not zero.
    ///
    /// ```text
    /// norm(Tensor x, Float p=2.0, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn norm(&self, p: f64, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::norm(self, p, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::norm`](crate::Tensor::norm) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn norm_keepdim(&self, p: f64, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::norm(self, p, &dims.ints(), true, CallSite::here())
    }

    /// The logarithm of the sum of eˣ over dims (none given: all), also where the powers overflow.
    ///
    /// ```text
    /// logsumexp(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn logsumexp(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::logsumexp(self, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::logsumexp`](crate::Tensor::logsumexp) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn logsumexp_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::logsumexp(self, &dims.ints(), true, CallSite::here())
    }

    /// The sum of the elements that are no NaN.
    ///
    /// ```text
    /// nansum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn nansum(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::nansum(self, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::nansum`](crate::Tensor::nansum) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn nansum_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::nansum(self, &dims.ints(), true, CallSite::here())
    }

    /// The mean of the elements that are no NaN.
    ///
    /// ```text
    /// nanmean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn nanmean(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::nanmean(self, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::nanmean`](crate::Tensor::nanmean) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn nanmean_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::nanmean(self, &dims.ints(), true, CallSite::here())
    }

    /// The smallest and the largest element over dims (none given: all).
    ///
    /// ```text
    /// aminmax(Tensor x, IntList dims=[], Bool keepdim=false) -> (Tensor min, Tensor max)
    /// ```
    #[track_caller]
    pub fn aminmax(&self, dims: impl IntList) -> Result<Vec<Tensor>> {
        super::super::reduce::aminmax(self, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::aminmax`](crate::Tensor::aminmax) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn aminmax_keepdim(&self, dims: impl IntList) -> Result<Vec<Tensor>> {
        super::super::reduce::aminmax(self, &dims.ints(), true, CallSite::here())
    }

    /// x divided by its p-norm along a dim; norms below `eps` count as `eps`.
    ///
    /// ```text
    /// normalize(Tensor x, Float p=2.0, Int dim=1, *, Float eps=1e-12) -> Tensor
    /// ```
    #[track_caller]
    pub fn normalize(&self, p: f64, dim: impl IntLike) -> Result<Tensor> {
        super::super::reduce::normalize(self, p, dim.int(), 1e-12, CallSite::here())
    }

    /// [`Tensor::normalize`](crate::Tensor::normalize) with its options.
    #[track_caller]
    pub fn normalize_with(
        &self,
        p: f64,
        dim: impl IntLike,
        options: &crate::functional::NormalizeOptions,
    ) -> Result<Tensor> {
        super::super::reduce::normalize(self, p, dim.int(), options.eps, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("var(Tensor x, IntList dims=[], Bool keepdim=false, *, Float correction=1.0) -> Tensor", |b| Ok(vec![super::super::reduce::var(b.given(0)?, b.ints(1)?, b.bool(2)?, b.float(3)?, b.site)?])),
    ("std(Tensor x, IntList dims=[], Bool keepdim=false, *, Float correction=1.0) -> Tensor", |b| Ok(vec![super::super::reduce::std(b.given(0)?, b.ints(1)?, b.bool(2)?, b.float(3)?, b.site)?])),
    ("norm(Tensor x, Float p=2.0, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::norm(b.given(0)?, b.float(1)?, b.ints(2)?, b.bool(3)?, b.site)?])),
    ("logsumexp(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::logsumexp(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("nansum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::nansum(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("nanmean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::nanmean(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("aminmax(Tensor x, IntList dims=[], Bool keepdim=false) -> (Tensor min, Tensor max)", |b| super::super::reduce::aminmax(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)),
    ("normalize(Tensor x, Float p=2.0, Int dim=1, *, Float eps=1e-12) -> Tensor", |b| Ok(vec![super::super::reduce::normalize(b.given(0)?, b.float(1)?, b.int(2)?, b.float(3)?, b.site)?])),
];
