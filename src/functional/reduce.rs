//! Reductions that are composed of several ops.

use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, Attrs, Op, normalize_dim};
use crate::placement::Device;
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Reductions";
    /// The mean over dims (none given: all); NaN if there are no elements. For integers and bools the result is f32, computed in f64, so
    /// that sums do not overflow and every layout gives the same bits. Over a split dim the mean of floats is P(sum).
    "mean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor" = mean;
    /// The variance over dims (none given: all): the sum of squared distances from the mean, divided by the number of elements less
    /// `correction`. With the default correction of 1 the variance is unbiased, and NaN for a single element.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 3.0], [2], Device::Cpu)?;
    /// assert_eq!(x.var(())?.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "var(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> Tensor" = var;
    /// The standard deviation: the root of the variance.
    "std(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> Tensor" = std;
    /// The p-norm over dims (none given: all): the p-th root of the sum of |x| to the power p. For p = inf it is the largest |x|, for
    /// -inf the smallest, for 0 the number of elements that are not zero.
    "norm(Tensor x, Float p=2.0, IntList dims=[], Bool keepdim=false) -> Tensor" = norm;
    /// The logarithm of the sum of eˣ over dims (none given: all), without overflow of eˣ.
    "logsumexp(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor" = logsumexp;
    /// The sum over dims (none given: all), with NaN counted as 0.
    "nansum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor" = nansum;
    /// The mean over dims (none given: all) of the elements that are not NaN; NaN if there are none.
    "nanmean(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor" = nanmean;
    /// The smallest and the largest element over dims (none given: all).
    "aminmax(Tensor x, IntList dims=[], Bool keepdim=false) -> (Tensor min, Tensor max)" = aminmax;
    /// x divided by its p-norm along `dim`. A norm below `eps` is replaced by `eps`.
    "normalize(Tensor x, Float p=2.0, Int dim=1, *, Float eps=1e-12) -> Tensor" = normalize;
}

/// Calls a reduction op over `dims` (none given: all).
pub(super) fn over(op: Result<&'static Op>, x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    invoke1(op, &[Some(x)], smallvec![AttrValue::from(dims), keepdim.into()], smallvec![], site)
}

/// A reduction of what a function of x gives, over `dims` of x. On CPUs nothing of it is stored where the dims are the last ones.
fn over_each(of: &Of, x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    let rank = x.ndim();
    let last = if dims.is_empty() { rank } else { dims.len() };
    let is_reduced = |d: usize| dims.is_empty() || dims.iter().any(|k| normalize_dim(*k, rank).is_ok_and(|k| k == d));
    let computes = x.device() == Device::Cpu && matches!(x.dtype(), DType::F32 | DType::F64);
    // As many dims as are to be reduced, so none is given twice.
    if !computes || last == 0 || last > rank || x.numel() == 0 || !(rank - last..rank).all(is_reduced) {
        let inner = inner_calls();
        let terms = (of.call)(x, site)?;
        drop(inner);
        let reduce = match of.reduce {
            "sum" => op!("sum"),
            "amax" => op!("amax"),
            _ => op!("amin"),
        };
        return over(reduce, &terms, dims, keepdim, site);
    }
    let attrs: Attrs = smallvec![
        of.chain.into(),
        x.dtype().into(),
        x.dtype().into(),
        of.reduce.into(),
        (last as i64).into(),
        keepdim.into()
    ];
    invoke1(op!("fused_reduce"), &[Some(x)], attrs, smallvec![], site)
}

/// A function of each element, and the reduction that reads it.
struct Of {
    chain: &'static str,
    call: fn(&Tensor, CallSite) -> Result<Tensor>,
    reduce: &'static str,
}

fn called(name: Result<&'static Op>, x: &Tensor, site: CallSite) -> Result<Tensor> {
    invoke1(name, &[Some(x)], smallvec![], smallvec![], site)
}

/// Number of elements that each element of the result is reduced from.
fn counted(x: &Tensor, dims: &[i64]) -> Result<usize> {
    let size = |d: &i64| Ok(x.shape().get(normalize_dim(*d, x.ndim())?).copied().unwrap_or(1));
    if dims.is_empty() { Ok(x.numel()) } else { dims.iter().map(size).product() }
}

/// Applies `f` to x in a dtype that is wide enough for its squares and sums, and casts the result back: f16 and bf16 are computed in f32;
/// integers and bools in f64 with a result in f32; other dtypes in their own.
fn in_wide(x: &Tensor, site: CallSite, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let (wide, result) = match x.dtype() {
        d if d.is_half() => (DType::F32, d),
        d if matches!(d.kind(), DTypeKind::Int | DTypeKind::Bool) => (DType::F64, DType::F32),
        _ => return f(x),
    };
    let inner = inner_calls();
    let y = f(&x.cast_at(wide, site)?)?;
    drop(inner);
    y.cast_at(result, site)
}

pub(super) fn mean(x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    let of = |x: &Tensor| over(op!("mean"), x, dims, keepdim, site);
    // The op itself sums f16 and bf16 in f32.
    if x.dtype().is_half() { of(x) } else { in_wide(x, site, of) }
}

/// The sum of squared distances from the mean, and the divisor that makes it the variance: the number of elements less `correction`, or
/// 0 if that is negative.
fn squared_distances(
    x: &Tensor,
    dims: &[i64],
    keepdim: bool,
    correction: f64,
    site: CallSite,
) -> Result<(Tensor, f64)> {
    let n = counted(x, dims)?;
    let _inner = inner_calls();
    let mean = over(op!("mean"), x, dims, true, site)?;
    let distance = invoke1(op!("sub"), &[Some(x), Some(&mean)], smallvec![], smallvec![], site)?;
    // For complex numbers: the squared magnitude of the distance.
    let distance = match x.dtype().is_complex() {
        true => invoke1(op!("abs"), &[Some(&distance)], smallvec![], smallvec![], site)?,
        false => distance,
    };
    let squares = invoke1(op!("square"), &[Some(&distance)], smallvec![], smallvec![], site)?;
    Ok((over(op!("sum"), &squares, dims, keepdim, site)?, (n as f64 - correction).max(0.0)))
}

fn divided(x: &Tensor, by: f64, site: CallSite) -> Result<Tensor> {
    invoke1(op!("div_scalar"), &[Some(x)], smallvec![], smallvec![Scalar::Float(by)], site)
}

pub(super) fn var(x: &Tensor, dims: &[i64], keepdim: bool, correction: f64, site: CallSite) -> Result<Tensor> {
    in_wide(x, site, |x| {
        let (sum, n) = squared_distances(x, dims, keepdim, correction, site)?;
        divided(&sum, n, site)
    })
}

pub(super) fn std(x: &Tensor, dims: &[i64], keepdim: bool, correction: f64, site: CallSite) -> Result<Tensor> {
    in_wide(x, site, |x| {
        let (sum, n) = squared_distances(x, dims, keepdim, correction, site)?;
        let inner = inner_calls();
        let variance = divided(&sum, n, site)?;
        drop(inner);
        root(&variance, site)
    })
}

/// The square root, with a gradient of 0 at 0.
fn root(x: &Tensor, site: CallSite) -> Result<Tensor> {
    invoke1(op!("root"), &[Some(x)], smallvec![], smallvec![], site)
}

pub(super) fn norm(x: &Tensor, p: f64, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    norm_in("norm", x, p, dims, keepdim, site)
}

/// The p-norm over `dims`. `name` is the calling function, for errors.
pub(super) fn norm_in(name: &str, x: &Tensor, p: f64, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    let refused = |what: String| Error::argument(what).in_call(|| format!("{name}({})", x.short())).at(site);
    if x.dtype().is_complex() {
        let inner = inner_calls();
        let size = invoke1(op!("abs"), &[Some(x)], smallvec![], smallvec![], site)?;
        drop(inner);
        return norm_in(name, &size, p, dims, keepdim, site);
    }
    if !x.dtype().is_float() {
        return Err(refused(format!("a norm is of floats, not of {}", x.dtype())).help("`cast` the tensor first"));
    }
    if p.is_nan() {
        return Err(refused("the norm for p = NaN is not defined".into()));
    }
    in_wide(x, site, |x| {
        let inner = inner_calls();
        if p == 2.0 {
            let squares = Of { chain: "square(x0)", call: |x, site| called(op!("square"), x, site), reduce: "sum" };
            let sum = over_each(&squares, x, dims, keepdim, site)?;
            drop(inner);
            return root(&sum, site);
        }
        if p == 0.0 {
            let terms = called(op!("norm_term_zero"), x, site)?;
            drop(inner);
            return over(op!("sum"), &terms, dims, keepdim, site);
        }
        if p == 1.0 || p.is_infinite() {
            drop(inner);
            let reduce = if p == 1.0 {
                "sum"
            } else if p > 0.0 {
                "amax"
            } else {
                "amin"
            };
            let sizes = Of { chain: "abs(x0)", call: |x, site| called(op!("abs"), x, site), reduce };
            return over_each(&sizes, x, dims, keepdim, site);
        }
        let size = called(op!("abs"), x, site)?;
        let power =
            |x: &Tensor, p: f64| invoke1(op!("pow_scalar"), &[Some(x)], smallvec![], smallvec![Scalar::Float(p)], site);
        // The gradient of elements that are 0, and of a norm of 0, is 0, as in PyTorch. The derivative of the power is infinite or NaN there,
        // so zeros are replaced by 1 before the power and filled in after it.
        let number = |op: Result<&'static Op>, inputs: &[Option<&Tensor>], number: f64| {
            invoke1(op, inputs, smallvec![], smallvec![Scalar::Float(number)], site)
        };
        let zeros = |x: &Tensor| number(op!("eq_scalar"), &[Some(&x.detach())], 0.0);
        let fill = |x: &Tensor, at: &Tensor, value| number(op!("masked_fill"), &[Some(x), Some(at)], value);
        let zero = zeros(&size)?;
        let terms = power(&fill(&size, &zero, 1.0)?, p)?;
        // The value of 0 to the power p.
        let end = if p > 0.0 { 0.0 } else { f64::INFINITY };
        let terms = fill(&terms, &zero, end)?;
        let sum = over(op!("sum"), &terms, dims, keepdim, site)?;
        let none = zeros(&sum)?;
        let norm = power(&fill(&sum, &none, 1.0)?, 1.0 / p)?;
        drop(inner);
        fill(&norm, &none, end)
    })
}

pub(super) fn logsumexp(x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    // Subtracting the largest element could overflow integers.
    let floats = match x.dtype() {
        d if d.is_float() || d.is_complex() => x.clone(),
        _ => x.cast_at(DType::F32, site)?,
    };
    in_wide(&floats, site, |x| {
        let _scope = site.scope();
        let inner = inner_calls();
        if counted(x, dims)? == 0 {
            // Without elements there is no largest one to subtract; the result is log 0.
            let sum = over(op!("sum"), &x.exp()?, dims, keepdim, site)?;
            drop(inner);
            return sum.log();
        }
        // The largest element is subtracted before exp and added after log. An infinite one is not, since inf - inf is NaN. For complex
        // numbers |eˣ| depends on the real part only.
        let largest = over(op!("amax"), &x.detach().real()?, dims, true, site)?;
        let largest = largest.masked_fill(&largest.isinf()?, 0.0)?;
        let sum = over(op!("sum"), &x.sub(&largest)?.exp()?, dims, true, site)?;
        let y = sum.log()?.add(&largest)?;
        drop(inner);
        if keepdim { Ok(y) } else { without(&y, dims, site) }
    })
}

/// Removes from the shape the dims that were reduced with `keepdim`.
fn without(y: &Tensor, dims: &[i64], site: CallSite) -> Result<Tensor> {
    let reduced: Vec<usize> = dims.iter().map(|d| normalize_dim(*d, y.ndim())).collect::<Result<_>>()?;
    let kept = (0..y.ndim()).filter(|d| !dims.is_empty() && !reduced.contains(d));
    let shape: Vec<usize> = kept.map(|d| y.shape()[d]).collect();
    Ok(y.reshape_at(&shape, site)?.into_result())
}

pub(super) fn nansum(x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    let call = |x: &Tensor, site: CallSite| {
        let _scope = site.scope();
        x.masked_fill(&x.isnan()?, 0.0)
    };
    over_each(&Of { chain: "select(isnan(x0), 0, x0)", call, reduce: "sum" }, x, dims, keepdim, site)
}

pub(super) fn nanmean(x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    // Integers have no NaN.
    if matches!(x.dtype().kind(), DTypeKind::Int | DTypeKind::Bool) {
        return mean(x, dims, keepdim, site);
    }
    let _scope = site.scope();
    let inner = inner_calls();
    let sum = nansum(x, dims, keepdim, site)?;
    let count = over(op!("sum"), &x.isnan()?.logical_not()?, dims, keepdim, site)?;
    drop(inner);
    sum.div(&count)
}

pub(super) fn aminmax(x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Vec<Tensor>> {
    Ok(vec![over(op!("amin"), x, dims, keepdim, site)?, over(op!("amax"), x, dims, keepdim, site)?])
}

pub(super) fn normalize(x: &Tensor, p: f64, dim: i64, eps: f64, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let inner = inner_calls();
    let length = norm_in("normalize", x, p, &[dim], true, site)?.clamp_min(eps)?;
    drop(inner);
    x.div(&length)
}
