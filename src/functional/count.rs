//! Counts and distinct values. Where the size of a result depends on values, they are read first: a collective of the world for global
//! tensors.

use super::{invoke, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Choice";
    /// `searchsorted` of the elements of x in one sorted sequence of boundaries.
    "bucketize(Tensor x, Tensor boundaries, *, Bool out_int32=false, Bool right=false) -> Tensor" = bucketize;
    /// How often each number from 0 on occurs in a list of integers, at least up to `minlength`; with `weights` the sums of what stands
    /// beside each. Counts are i64, sums f32 of f32 and f64 of anything else. The call waits for the greatest number, which decides the
    /// length.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1i64, 3, 1], [3], Device::Cpu)?;
    /// assert_eq!(x.bincount()?.to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If x is not a list of integers or one of them is negative; in a dry run.
    "bincount(Tensor x, *, Tensor? weights, Int minlength=0) -> Tensor" = bincount;
    /// How many elements lie in each of `bins` equal intervals from `min` to `max`, which belongs to the last one. Where both are the same,
    /// they are the smallest and the largest element, for which the call waits. Other elements, and NaN, are not counted. The result has
    /// the dtype of x.
    "histc(Tensor x, Int bins=100, Float min=0.0, Float max=0.0) -> Tensor" = histc;
    /// The distinct values, smallest first; then, where asked for, the place among them of each element, in the shape of x, and how
    /// often each occurs. NaN come last; no two are equal. The call waits for the number of values. They are always `sorted`.
    "unique(Tensor x, *, Bool sorted=true, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple" = unique_of as fn unique_of;
}

pub(super) fn bucketize(
    x: &Tensor,
    boundaries: &Tensor,
    out_int32: bool,
    right: bool,
    site: CallSite,
) -> Result<Tensor> {
    if boundaries.ndim() != 1 {
        let text = || format!("bucketize({}, {})", x.short(), boundaries.short());
        let e = Error::shape(format!("the boundaries must have one dim, not {:?}", boundaries.shape()));
        return Err(e.in_call(text).at(site));
    }
    let attrs = smallvec![out_int32.into(), right.into()];
    invoke1(op!("searchsorted"), &[Some(boundaries), Some(x)], attrs, smallvec![], site)
}

/// The smallest or largest element of all.
fn extreme(x: &Tensor, largest: bool, site: CallSite) -> Result<Scalar> {
    let none: &[i64] = &[];
    let op = if largest { op!("amax") } else { op!("amin") };
    let y = invoke1(op, &[Some(&x.detach())], smallvec![none.into(), false.into()], smallvec![], site)?;
    y.item_at(site)
}

/// Refuses integers that are not within 0 and `size`, with that help. The kernel finds them, so nothing is waited for.
pub(super) fn check_within(x: &Tensor, size: usize, help: &str, site: CallSite) -> Result<()> {
    let counted = invoke1(op!("count_index"), &[Some(x)], smallvec![AttrValue::from(size)], smallvec![], site);
    counted.map(drop).map_err(|e| e.help(help))
}

pub(super) fn bincount(x: &Tensor, weights: Option<&Tensor>, minlength: i64, site: CallSite) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("bincount({})", x.short())).at(site);
    if x.ndim() != 1 || x.dtype().kind() != DTypeKind::Int {
        return Err(named(Error::argument("it takes a list of integers")));
    }
    if minlength < 0 {
        return Err(named(Error::argument(format!("minlength is {minlength}: expected 0 or more"))));
    }
    if let Some(w) = weights.filter(|w| w.shape() != x.shape()) {
        return Err(named(Error::shape(format!("there are weights {:?} for {:?}", w.shape(), x.shape()))));
    }
    let inner = inner_calls();
    let ids = if matches!(x.dtype(), DType::I32 | DType::I64) { x.clone() } else { x.cast_at(DType::I64, site)? };
    let most = if x.numel() == 0 { -1 } else { extreme(&ids, true, site)?.to_i64() };
    if most < 0 && x.numel() > 0 {
        return Err(named(Error::value(format!("expected numbers from 0 on, got {most}"))));
    }
    let bins = AttrValue::from(most.saturating_add(1).max(minlength));
    let Some(weights) = weights else {
        drop(inner);
        return invoke1(op!("count_index"), &[Some(&ids)], smallvec![bins], smallvec![], site);
    };
    let wide = if weights.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    let weights = weights.cast_at(wide, site)?;
    drop(inner);
    invoke1(op!("scatter_sum"), &[Some(&weights), Some(&ids)], smallvec![0i64.into(), bins], smallvec![], site)
}

pub(super) fn histc(x: &Tensor, bins: i64, min: f64, max: f64, site: CallSite) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("histc({})", x.short())).at(site);
    if x.dtype().is_half() {
        let inner = inner_calls();
        let counts = histc(&x.cast_at(DType::F32, site)?, bins, min, max, site)?;
        drop(inner);
        return counts.cast_at(x.dtype(), site);
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(named(Error::dtype(format!("a histogram is of floats, not of {}", x.dtype())))
            .help("`cast` the tensor first"));
    }
    if bins < 1 {
        return Err(named(Error::argument(format!("{bins} intervals cannot be counted in: expected 1 or more"))));
    }
    let inner = inner_calls();
    let (mut lo, mut hi) = (min, max);
    if lo == hi && x.numel() > 0 {
        lo = extreme(x, false, site)?.to_f64();
        hi = extreme(x, true, site)?.to_f64();
    }
    if lo == hi {
        (lo, hi) = (lo - 1.0, hi + 1.0);
    }
    if !(lo.is_finite() && hi.is_finite() && lo < hi) {
        return Err(named(Error::argument(format!("the interval from {lo} to {hi} is empty"))));
    }
    drop(inner);
    let bounds = smallvec![Scalar::Float(lo), Scalar::Float(hi)];
    invoke1(op!("histogram_within"), &[Some(x)], smallvec![bins.into()], bounds, site)
}

pub(super) fn unique_of(
    x: &Tensor,
    _sorted: bool,
    return_inverse: bool,
    return_counts: bool,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let _scope = site.scope();
    let x = x.detach();
    let n = x.numel();
    if !return_inverse && !return_counts {
        return Ok(vec![invoke1(op!("unique"), &[Some(&x)], smallvec![], smallvec![], site)?]);
    }
    let flat = x.reshape([n])?;
    let attrs = smallvec![0i64.into(), false.into(), true.into()];
    let mut ordered = invoke(op!("sort"), &[Some(&flat)], attrs, smallvec![], site)?;
    let (at, sorted) = (ordered.remove(1), ordered.remove(0));
    // True where a value is another than the one before it; then the number of the value of each place.
    let (first, number) = match n {
        0 => (sorted.eq(&sorted)?, at.clone()),
        _ => {
            let last = n as i64;
            let differs = sorted.slice(0, 1, last, 1)?.ne(&sorted.slice(0, 0, last - 1, 1)?)?;
            let one = super::create::ones(&[1], &differs.target(), site)?;
            let first = super::cat(&[&one, &differs], 0)?;
            let number = first.cast(DType::I64)?.cumsum(0)?.sub(1)?;
            (first, number)
        }
    };
    let values = sorted.masked_select(&first)?;
    let count = values.numel();
    let mut all = vec![values];
    if return_inverse {
        let zeros = super::create::zeros(&[n], &number.target(), site)?;
        let inputs = [Some(&zeros), Some(&at), Some(&number)];
        let inverse = invoke1(op!("scatter_into"), &inputs, smallvec![0i64.into()], smallvec![], site)?;
        all.push(inverse.reshape_at(x.shape(), site)?.into_result());
    }
    if return_counts {
        let attrs = smallvec![AttrValue::from(count)];
        all.push(invoke1(op!("count_index"), &[Some(&number)], attrs, smallvec![], site)?);
    }
    Ok(all)
}
