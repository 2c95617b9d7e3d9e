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

/// Options of [`Tensor::var_mean_with`](crate::Tensor::var_mean_with).
#[derive(Clone, Debug)]
pub struct VarMeanOptions {
    /// `Float correction=1.0`. `1.0` by default.
    pub correction: f64,
}

impl Default for VarMeanOptions {
    fn default() -> VarMeanOptions {
        VarMeanOptions {
            correction: 1.0,
        }
    }
}

/// Options of [`Tensor::std_mean_with`](crate::Tensor::std_mean_with).
#[derive(Clone, Debug)]
pub struct StdMeanOptions {
    /// `Float correction=1.0`. `1.0` by default.
    pub correction: f64,
}

impl Default for StdMeanOptions {
    fn default() -> StdMeanOptions {
        StdMeanOptions {
            correction: 1.0,
        }
    }
}

/// Options of [`Tensor::cov_with`](crate::Tensor::cov_with).
#[derive(Clone, Debug)]
pub struct CovOptions {
    /// `Int correction=1`. `1` by default.
    pub correction: i64,
    /// `Tensor? fweights`. Not given by default.
    pub fweights: Option<Tensor>,
    /// `Tensor? aweights`. Not given by default.
    pub aweights: Option<Tensor>,
}

impl Default for CovOptions {
    fn default() -> CovOptions {
        CovOptions {
            correction: 1,
            fweights: None,
            aweights: None,
        }
    }
}

/// Options of [`Tensor::quantile_with`](crate::Tensor::quantile_with).
#[derive(Clone, Debug)]
pub struct QuantileOptions {
    /// `String interpolation="linear"`. `"linear"` by default.
    pub interpolation: &'static str,
}

impl Default for QuantileOptions {
    fn default() -> QuantileOptions {
        QuantileOptions {
            interpolation: "linear",
        }
    }
}

/// Options of [`functional::quantiles_with`](crate::functional::quantiles_with).
#[derive(Clone, Debug)]
pub struct QuantilesOptions {
    /// `String interpolation="linear"`. `"linear"` by default.
    pub interpolation: &'static str,
}

impl Default for QuantilesOptions {
    fn default() -> QuantilesOptions {
        QuantilesOptions {
            interpolation: "linear",
        }
    }
}

/// Options of [`Tensor::nanquantile_with`](crate::Tensor::nanquantile_with).
#[derive(Clone, Debug)]
pub struct NanquantileOptions {
    /// `String interpolation="linear"`. `"linear"` by default.
    pub interpolation: &'static str,
}

impl Default for NanquantileOptions {
    fn default() -> NanquantileOptions {
        NanquantileOptions {
            interpolation: "linear",
        }
    }
}

/// Options of [`Tensor::histogram_with`](crate::Tensor::histogram_with).
#[derive(Clone, Debug, Default)]
pub struct HistogramOptions {
    /// `FloatList range=[]`. `vec![]` by default.
    pub range: Vec<f64>,
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `Bool density=false`. `false` by default.
    pub density: bool,
}

/// Options of [`functional::histogram_within_with`](crate::functional::histogram_within_with).
#[derive(Clone, Debug, Default)]
pub struct HistogramWithinOptions {
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `Bool density=false`. `false` by default.
    pub density: bool,
}

/// Options of [`Tensor::diff_with`](crate::Tensor::diff_with).
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// `Tensor? prepend`. Not given by default.
    pub prepend: Option<Tensor>,
    /// `Tensor? append`. Not given by default.
    pub append: Option<Tensor>,
}

/// Options of [`Tensor::trapezoid_with`](crate::Tensor::trapezoid_with).
#[derive(Clone, Debug)]
pub struct TrapezoidOptions {
    /// `Float dx=1.0`. `1.0` by default.
    pub dx: f64,
    /// `Int dim=-1`. `-1` by default.
    pub dim: i64,
}

impl Default for TrapezoidOptions {
    fn default() -> TrapezoidOptions {
        TrapezoidOptions {
            dx: 1.0,
            dim: -1,
        }
    }
}

/// Options of [`Tensor::cumulative_trapezoid_with`](crate::Tensor::cumulative_trapezoid_with).
#[derive(Clone, Debug)]
pub struct CumulativeTrapezoidOptions {
    /// `Float dx=1.0`. `1.0` by default.
    pub dx: f64,
    /// `Int dim=-1`. `-1` by default.
    pub dim: i64,
}

impl Default for CumulativeTrapezoidOptions {
    fn default() -> CumulativeTrapezoidOptions {
        CumulativeTrapezoidOptions {
            dx: 1.0,
            dim: -1,
        }
    }
}

/// The quantiles for several fractions `q`, along a new first dim.
///
/// ```text
/// quantile(Tensor x, FloatList q, Int? dim, Bool keepdim=false, *, String interpolation="linear") -> Tensor
/// ```
#[track_caller]
pub fn quantiles(x: &Tensor, q: impl AsRef<[f64]>, dim: Option<i64>) -> Result<Tensor> {
    super::super::statistics::quantiles(x, q.as_ref(), dim, false, "linear", CallSite::here())
}

/// [`functional::quantiles`](crate::functional::quantiles) with the reduced dims kept, with size 1.
#[track_caller]
pub fn quantiles_keepdim(x: &Tensor, q: impl AsRef<[f64]>, dim: Option<i64>) -> Result<Tensor> {
    super::super::statistics::quantiles(x, q.as_ref(), dim, true, "linear", CallSite::here())
}

/// [`functional::quantiles`](crate::functional::quantiles) with its options.
#[track_caller]
pub fn quantiles_with(
    x: &Tensor,
    q: impl AsRef<[f64]>,
    dim: Option<i64>,
    options: &crate::functional::QuantilesOptions,
) -> Result<Tensor> {
    super::super::statistics::quantiles(x, q.as_ref(), dim, false, options.interpolation, CallSite::here())
}

/// `histogram` with `bins` as the bounds of the intervals, in rising order.
///
/// ```text
/// histogram(Tensor x, Tensor bins, *, Tensor? weight, Bool density=false) -> (Tensor hist, Tensor bin_edges)
/// ```
#[track_caller]
pub fn histogram_within(x: &Tensor, bins: &Tensor) -> Result<Vec<Tensor>> {
    super::super::histograms::histogram_within(x, bins, None, false, CallSite::here())
}

/// [`functional::histogram_within`](crate::functional::histogram_within) with its options.
#[track_caller]
pub fn histogram_within_with(
    x: &Tensor,
    bins: &Tensor,
    options: &crate::functional::HistogramWithinOptions,
) -> Result<Vec<Tensor>> {
    super::super::histograms::histogram_within(x, bins, options.weight.as_ref(), options.density, CallSite::here())
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
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn logcumsumexp(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("logcumsumexp"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())
    }

    /// The mean over dims (none given: all); NaN if there are no elements. For integers and bools the result is f32, computed in f64, so
    /// that sums do not overflow and every layout gives the same bits. Over a split dim the mean of floats is P(sum).
    ///
    /// ```text
    /// mean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn mean(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::mean(self, &dims.ints(), false, CallSite::here())
    }

    /// [`Tensor::mean`](crate::Tensor::mean) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn mean_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::reduce::mean(self, &dims.ints(), true, CallSite::here())
    }

    /// The variance over dims (none given: all): the sum of squared distances from the mean, divided by the number of elements less
    /// `correction`. With the default correction of 1 the variance is unbiased, and NaN for a single element.
    ///
    /// ```text
    /// var(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> Tensor
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
    /// std(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> Tensor
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

    /// The logarithm of the sum of eˣ over dims (none given: all), without overflow of eˣ.
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

    /// The sum over dims (none given: all), with NaN counted as 0.
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

    /// The mean over dims (none given: all) of the elements that are not NaN; NaN if there are none.
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

    /// x divided by its p-norm along `dim`. A norm below `eps` is replaced by `eps`.
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

    /// The variance, as `var`, and the mean over dims (none given: all).
    ///
    /// ```text
    /// var_mean(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> (Tensor var, Tensor mean)
    /// ```
    #[track_caller]
    pub fn var_mean(&self, dims: impl IntList) -> Result<Vec<Tensor>> {
        super::super::statistics::var_mean(self, &dims.ints(), false, 1.0, CallSite::here())
    }

    /// [`Tensor::var_mean`](crate::Tensor::var_mean) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn var_mean_keepdim(&self, dims: impl IntList) -> Result<Vec<Tensor>> {
        super::super::statistics::var_mean(self, &dims.ints(), true, 1.0, CallSite::here())
    }

    /// [`Tensor::var_mean`](crate::Tensor::var_mean) with its options.
    #[track_caller]
    pub fn var_mean_with(
        &self,
        dims: impl IntList,
        options: &crate::functional::VarMeanOptions,
    ) -> Result<Vec<Tensor>> {
        super::super::statistics::var_mean(self, &dims.ints(), false, options.correction, CallSite::here())
    }

    /// The standard deviation, as `std`, and the mean over dims (none given: all).
    ///
    /// ```text
    /// std_mean(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> (Tensor std, Tensor mean)
    /// ```
    #[track_caller]
    pub fn std_mean(&self, dims: impl IntList) -> Result<Vec<Tensor>> {
        super::super::statistics::std_mean(self, &dims.ints(), false, 1.0, CallSite::here())
    }

    /// [`Tensor::std_mean`](crate::Tensor::std_mean) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn std_mean_keepdim(&self, dims: impl IntList) -> Result<Vec<Tensor>> {
        super::super::statistics::std_mean(self, &dims.ints(), true, 1.0, CallSite::here())
    }

    /// [`Tensor::std_mean`](crate::Tensor::std_mean) with its options.
    #[track_caller]
    pub fn std_mean_with(
        &self,
        dims: impl IntList,
        options: &crate::functional::StdMeanOptions,
    ) -> Result<Vec<Tensor>> {
        super::super::statistics::std_mean(self, &dims.ints(), false, options.correction, CallSite::here())
    }

    /// The covariance matrix of variables. Each row of x is a variable, each column an observation; a 1-d x is one variable.
    /// `fweights` are integer frequencies of the observations, `aweights` their importance. The sums are divided by the number of
    /// observations (their total weight, if there are weights) less `correction`, as in PyTorch.
    ///
    /// ```text
    /// cov(Tensor x, *, Int correction=1, Tensor? fweights, Tensor? aweights) -> Tensor
    /// ```
    #[track_caller]
    pub fn cov(&self) -> Result<Tensor> {
        super::super::statistics::cov(self, 1, None, None, CallSite::here())
    }

    /// [`Tensor::cov`](crate::Tensor::cov) with its options.
    #[track_caller]
    pub fn cov_with(&self, options: &crate::functional::CovOptions) -> Result<Tensor> {
        super::super::statistics::cov(self, options.correction, options.fweights.as_ref(), options.aweights.as_ref(), CallSite::here())
    }

    /// The correlations of variables, the rows of x: their covariances divided by both standard deviations.
    ///
    /// ```text
    /// corrcoef(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn corrcoef(&self) -> Result<Tensor> {
        super::super::statistics::corrcoef(self, CallSite::here())
    }

    /// The `q`-quantile: the value below which the fraction `q` of the elements along `dim` lies; without `dim`, of all elements. Between two
    /// elements `interpolation` decides: `linear`, `lower`, `higher`, `midpoint` or `nearest`. If an element is NaN, the quantile is NaN.
    ///
    /// ```text
    /// quantile(Tensor x, Float q, Int? dim, Bool keepdim=false, *, String interpolation="linear") -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![4.0f32, 1.0, 3.0, 2.0], [4], Device::Cpu)?;
    /// assert_eq!(x.quantile(0.25, None)?.to_vec::<f32>()?, [1.75]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `q` is not within 0 and 1, or there are no elements.
    #[track_caller]
    pub fn quantile(&self, q: f64, dim: Option<i64>) -> Result<Tensor> {
        super::super::statistics::quantile(self, q, dim, false, "linear", CallSite::here())
    }

    /// [`Tensor::quantile`](crate::Tensor::quantile) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn quantile_keepdim(&self, q: f64, dim: Option<i64>) -> Result<Tensor> {
        super::super::statistics::quantile(self, q, dim, true, "linear", CallSite::here())
    }

    /// [`Tensor::quantile`](crate::Tensor::quantile) with its options.
    #[track_caller]
    pub fn quantile_with(
        &self,
        q: f64,
        dim: Option<i64>,
        options: &crate::functional::QuantileOptions,
    ) -> Result<Tensor> {
        super::super::statistics::quantile(self, q, dim, false, options.interpolation, CallSite::here())
    }

    /// `quantile` of the elements that are not NaN; NaN where all elements are NaN.
    ///
    /// ```text
    /// nanquantile(Tensor x, Float q, Int? dim, Bool keepdim=false, *, String interpolation="linear") -> Tensor
    /// ```
    #[track_caller]
    pub fn nanquantile(&self, q: f64, dim: Option<i64>) -> Result<Tensor> {
        super::super::statistics::nanquantile(self, q, dim, false, "linear", CallSite::here())
    }

    /// [`Tensor::nanquantile`](crate::Tensor::nanquantile) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn nanquantile_keepdim(&self, q: f64, dim: Option<i64>) -> Result<Tensor> {
        super::super::statistics::nanquantile(self, q, dim, true, "linear", CallSite::here())
    }

    /// [`Tensor::nanquantile`](crate::Tensor::nanquantile) with its options.
    #[track_caller]
    pub fn nanquantile_with(
        &self,
        q: f64,
        dim: Option<i64>,
        options: &crate::functional::NanquantileOptions,
    ) -> Result<Tensor> {
        super::super::statistics::nanquantile(self, q, dim, false, options.interpolation, CallSite::here())
    }

    /// The most frequent value along `dim` (the smallest of equally frequent ones), and the index of its last occurrence.
    ///
    /// ```text
    /// mode(Tensor x, Int dim=-1, Bool keepdim=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn mode(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::statistics::mode(self, dim.int(), false, CallSite::here())
    }

    /// [`Tensor::mode`](crate::Tensor::mode) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn mode_keepdim(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::statistics::mode(self, dim.int(), true, CallSite::here())
    }

    /// The number of elements, or the sum of their `weight`, in each of `bins` equal intervals, and the intervals' bounds. `range` is the
    /// lowest and the highest bound; without it the call reads the smallest and the largest element of x, and waits for them. The last
    /// interval includes its upper bound; elements outside do not count. With `density` counts are divided by their sum and interval length.
    ///
    /// ```text
    /// histogram(Tensor x, Int bins=100, *, FloatList range=[], Tensor? weight, Bool density=false) -> (Tensor hist, Tensor bin_edges)
    /// ```
    #[track_caller]
    pub fn histogram(&self, bins: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::histograms::histogram(self, bins.int(), &[], None, false, CallSite::here())
    }

    /// [`Tensor::histogram`](crate::Tensor::histogram) with its options.
    #[track_caller]
    pub fn histogram_with(
        &self,
        bins: impl IntLike,
        options: &crate::functional::HistogramOptions,
    ) -> Result<Vec<Tensor>> {
        super::super::histograms::histogram(self, bins.int(), &options.range, options.weight.as_ref(), options.density, CallSite::here())
    }

    /// The differences of neighbours along `dim`, `n` times in a row; of bools whether they differ. `prepend` and `append` are put before
    /// and behind x first.
    ///
    /// ```text
    /// diff(Tensor x, Int n=1, Int dim=-1, *, Tensor? prepend, Tensor? append) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1i64, 4, 9], [3], Device::Cpu)?;
    /// assert_eq!(x.diff(1, -1)?.to_vec::<i64>()?, [3, 5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn diff(&self, n: impl IntLike, dim: impl IntLike) -> Result<Tensor> {
        super::super::differences::diff(self, n.int(), dim.int(), None, None, CallSite::here())
    }

    /// [`Tensor::diff`](crate::Tensor::diff) with its options.
    #[track_caller]
    pub fn diff_with(
        &self,
        n: impl IntLike,
        dim: impl IntLike,
        options: &crate::functional::DiffOptions,
    ) -> Result<Tensor> {
        super::super::differences::diff(self, n.int(), dim.int(), options.prepend.as_ref(), options.append.as_ref(), CallSite::here())
    }

    /// The integral along `dim` by the trapezoid rule: y are the values at `x`, a list or a tensor of y's shape, or at places that are `dx`
    /// apart.
    ///
    /// ```text
    /// trapezoid(Tensor y, Tensor? x, *, Float dx=1.0, Int dim=-1) -> Tensor
    /// ```
    #[track_caller]
    pub fn trapezoid(&self, x: Option<&Tensor>) -> Result<Tensor> {
        super::super::differences::trapezoid(self, x, 1.0, -1, CallSite::here())
    }

    /// [`Tensor::trapezoid`](crate::Tensor::trapezoid) with its options.
    #[track_caller]
    pub fn trapezoid_with(
        &self,
        x: Option<&Tensor>,
        options: &crate::functional::TrapezoidOptions,
    ) -> Result<Tensor> {
        super::super::differences::trapezoid(self, x, options.dx, options.dim, CallSite::here())
    }

    /// The integrals up to each place but the first, by the trapezoid rule.
    ///
    /// ```text
    /// cumulative_trapezoid(Tensor y, Tensor? x, *, Float dx=1.0, Int dim=-1) -> Tensor
    /// ```
    #[track_caller]
    pub fn cumulative_trapezoid(&self, x: Option<&Tensor>) -> Result<Tensor> {
        super::super::differences::cumulative_trapezoid(self, x, 1.0, -1, CallSite::here())
    }

    /// [`Tensor::cumulative_trapezoid`](crate::Tensor::cumulative_trapezoid) with its options.
    #[track_caller]
    pub fn cumulative_trapezoid_with(
        &self,
        x: Option<&Tensor>,
        options: &crate::functional::CumulativeTrapezoidOptions,
    ) -> Result<Tensor> {
        super::super::differences::cumulative_trapezoid(self, x, options.dx, options.dim, CallSite::here())
    }

    /// The p-norms of the differences of each row of `x1` `[.., m, d]` and each row of `x2` `[.., n, d]`, as `[.., m, n]`. Those of many
    /// rows for p = 2 come from a matrix product, which loses digits where rows are nearly equal.
    ///
    /// ```text
    /// cdist(Tensor x1, Tensor x2, Float p=2.0) -> Tensor
    /// ```
    #[track_caller]
    pub fn cdist(&self, x2: &Tensor, p: f64) -> Result<Tensor> {
        super::super::differences::cdist(self, x2, p, CallSite::here())
    }

    /// The p-norms of the differences of each two rows of a matrix: the upper triangle of `cdist(x, x)`, row by row.
    ///
    /// ```text
    /// pdist(Tensor x, Float p=2.0) -> Tensor
    /// ```
    #[track_caller]
    pub fn pdist(&self, p: f64) -> Result<Tensor> {
        super::super::differences::pdist(self, p, CallSite::here())
    }

    /// x1ᵀ W x2 + b for each matrix W of `weight` `[out, d1, d2]`: `[.., d1]` and `[.., d2]` give `[.., out]`.
    ///
    /// ```text
    /// bilinear(Tensor x1, Tensor x2, Tensor weight, Tensor? bias) -> Tensor
    /// ```
    #[track_caller]
    pub fn bilinear(&self, x2: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        super::super::differences::bilinear(self, x2, weight, bias, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("mean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::mean(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("var(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> Tensor", |b| Ok(vec![super::super::reduce::var(b.given(0)?, b.ints(1)?, b.bool(2)?, b.float(3)?, b.site)?])),
    ("std(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> Tensor", |b| Ok(vec![super::super::reduce::std(b.given(0)?, b.ints(1)?, b.bool(2)?, b.float(3)?, b.site)?])),
    ("norm(Tensor x, Float p=2.0, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::norm(b.given(0)?, b.float(1)?, b.ints(2)?, b.bool(3)?, b.site)?])),
    ("logsumexp(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::logsumexp(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("nansum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::nansum(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("nanmean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::reduce::nanmean(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("aminmax(Tensor x, IntList dims=[], Bool keepdim=false) -> (Tensor min, Tensor max)", |b| super::super::reduce::aminmax(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)),
    ("normalize(Tensor x, Float p=2.0, Int dim=1, *, Float eps=1e-12) -> Tensor", |b| Ok(vec![super::super::reduce::normalize(b.given(0)?, b.float(1)?, b.int(2)?, b.float(3)?, b.site)?])),
    ("var_mean(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> (Tensor var, Tensor mean)", |b| super::super::statistics::var_mean(b.given(0)?, b.ints(1)?, b.bool(2)?, b.float(3)?, b.site)),
    ("std_mean(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> (Tensor std, Tensor mean)", |b| super::super::statistics::std_mean(b.given(0)?, b.ints(1)?, b.bool(2)?, b.float(3)?, b.site)),
    ("cov(Tensor x, *, Int correction=1, Tensor? fweights, Tensor? aweights) -> Tensor", |b| Ok(vec![super::super::statistics::cov(b.given(0)?, b.int(1)?, b.tensor(2), b.tensor(3), b.site)?])),
    ("corrcoef(Tensor x) -> Tensor", |b| Ok(vec![super::super::statistics::corrcoef(b.given(0)?, b.site)?])),
    ("quantile(Tensor x, Float q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor", |b| Ok(vec![super::super::statistics::quantile(b.given(0)?, b.float(1)?, b.int(2).ok(), b.bool(3)?, b.text(4)?, b.site)?])),
    ("quantile(Tensor x, FloatList q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor", |b| Ok(vec![super::super::statistics::quantiles(b.given(0)?, b.floats(1)?, b.int(2).ok(), b.bool(3)?, b.text(4)?, b.site)?])),
    ("nanquantile(Tensor x, Float q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor", |b| Ok(vec![super::super::statistics::nanquantile(b.given(0)?, b.float(1)?, b.int(2).ok(), b.bool(3)?, b.text(4)?, b.site)?])),
    ("mode(Tensor x, Int dim=-1, Bool keepdim=false) -> (Tensor values, Tensor indices)", |b| super::super::statistics::mode(b.given(0)?, b.int(1)?, b.bool(2)?, b.site)),
    ("histogram(Tensor x, Int bins=100, *, FloatList range=[], Tensor? weight, Bool density=false) -> (Tensor hist, Tensor bin_edges)", |b| super::super::histograms::histogram(b.given(0)?, b.int(1)?, b.floats(2)?, b.tensor(3), b.bool(4)?, b.site)),
    ("histogram(Tensor x, Tensor bins, *, Tensor? weight, Bool density=false) -> (Tensor hist, Tensor bin_edges)", |b| super::super::histograms::histogram_within(b.given(0)?, b.given(1)?, b.tensor(2), b.bool(3)?, b.site)),
    ("diff(Tensor x, Int n=1, Int dim=-1, *, Tensor? prepend, Tensor? append) -> Tensor", |b| Ok(vec![super::super::differences::diff(b.given(0)?, b.int(1)?, b.int(2)?, b.tensor(3), b.tensor(4), b.site)?])),
    ("trapezoid(Tensor y, Tensor? x, *, Float dx=1.0, Int dim=-1) -> Tensor", |b| Ok(vec![super::super::differences::trapezoid(b.given(0)?, b.tensor(1), b.float(2)?, b.int(3)?, b.site)?])),
    ("cumulative_trapezoid(Tensor y, Tensor? x, *, Float dx=1.0, Int dim=-1) -> Tensor", |b| Ok(vec![super::super::differences::cumulative_trapezoid(b.given(0)?, b.tensor(1), b.float(2)?, b.int(3)?, b.site)?])),
    ("cdist(Tensor x1, Tensor x2, Float p=2.0) -> Tensor", |b| Ok(vec![super::super::differences::cdist(b.given(0)?, b.given(1)?, b.float(2)?, b.site)?])),
    ("pdist(Tensor x, Float p=2.0) -> Tensor", |b| Ok(vec![super::super::differences::pdist(b.given(0)?, b.float(1)?, b.site)?])),
    ("bilinear(Tensor x1, Tensor x2, Tensor weight, Tensor? bias) -> Tensor", |b| Ok(vec![super::super::differences::bilinear(b.given(0)?, b.given(1)?, b.given(2)?, b.tensor(3), b.site)?])),
];
