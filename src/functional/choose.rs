//! Elements read and written by places that depend on other tensors: flat indices, masks, reductions by index, runs of equal values.

use super::differences::neighbours;
use super::shape::in_method;
use super::{create, op, where_};
use crate::context::{grad_enabled, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, broadcast_shapes, normalize_dim};
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Choice";
    /// The elements at these places of x in row-major order, in the shape of the indices. Negative ones count from the end.
    "take(Tensor x, Tensor ids) -> Tensor" = take;
    /// x with `value` in each slice at an index along `dim`: `ids` is a list.
    "index_fill(Tensor x, Int dim, Tensor ids, Scalar value) -> Tensor" = index_fill;
    /// x with the elements of `src`, in row-major order, at the places where the bool tensor `mask` is true. The call waits for their
    /// number.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([4], Device::Cpu)?;
    /// let mask = from_vec(vec![false, true, true, false], [4], Device::Cpu)?;
    /// let src = from_vec(vec![5.0f32, 6.0, 7.0], [3], Device::Cpu)?;
    /// assert_eq!(x.masked_scatter(&mask, &src)?.to_vec::<f32>()?, [0.0, 5.0, 6.0, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the mask is true at more places than there are elements; in a dry run.
    "masked_scatter(Tensor x, Tensor mask, Tensor src) -> Tensor" = masked_scatter;
    /// x with the elements of `src` reduced at their indices along `dim`: `reduce` is `sum`, `mean`, `amax` or `amin`. With `include_self` the
    /// element of x counts as one of them, else it stays only where no index is. Equal extremes share the gradient.
    "scatter_reduce(Tensor x, Int dim, Tensor ids, Tensor src, String reduce, *, Bool include_self=true) -> Tensor" = scatter_reduce;
    /// The first element of each run of equal elements, in order. The call waits for the number of runs.
    "unique_consecutive(Tensor x) -> Tensor" = runs;
    /// The first element of each run of equal elements, in order; then, where asked for, which run each element belongs to, in the shape
    /// of x, and how long each is. The call waits for the number of runs.
    "unique_consecutive(Tensor x, *, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple" = unique_consecutive as fn runs_of;
    /// The coordinates in a tensor of that shape of places in row-major order: one tensor for each dim.
    "unravel_index(Tensor ids, IntList shape) -> TensorTuple" = unravel_index as fn unravel_index;
}

fn of_ints(ids: &Tensor) -> Result<()> {
    match ids.dtype().kind() {
        DTypeKind::Int => Ok(()),
        _ => Err(Error::dtype(format!("indices are {}; they are integers", ids.dtype()))),
    }
}

pub(super) fn take(x: &Tensor, ids: &Tensor, site: CallSite) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        of_ints(ids)?;
        let n = x.numel() as i64;
        let list = ids.cast(DType::I64)?.reshape([ids.numel()])?;
        let list = where_(&list.lt(0i64)?, &list.add(n)?, &list)?;
        let y = x.reshape([x.numel()])?.index_select(0, &list)?;
        drop(inner);
        y.reshape(ids.shape())
    };
    site.run(body).map_err(|e| e.within(|| format!("take({}, {})", x.short(), ids.short())))
}

pub(super) fn index_fill(x: &Tensor, dim: i64, ids: &Tensor, value: Scalar, site: CallSite) -> Result<Tensor> {
    let body = || {
        let d = normalize_dim(dim, x.ndim())?;
        let inner = inner_calls();
        let [count] = ids.shape() else {
            return Err(Error::shape(format!("indices {:?} must have one dim", ids.shape())));
        };
        let mut shape = x.shape().to_vec();
        if let Some(n) = shape.get_mut(d) {
            *n = *count;
        }
        let attrs = smallvec![AttrValue::from(&shape[..]), x.dtype().into()];
        let src = create(op!("full"), attrs, smallvec![value], &x.whole_target(), site)?;
        drop(inner);
        x.index_copy(d as i64, ids, &src)
    };
    site.run(body).map_err(|e| e.within(|| format!("index_fill({}, {})", x.short(), ids.short())))
}

pub(super) fn masked_scatter(x: &Tensor, mask: &Tensor, src: &Tensor, site: CallSite) -> Result<Tensor> {
    let body = || {
        if mask.dtype() != DType::Bool || src.dtype() != x.dtype() {
            return Err(Error::dtype(format!("x is {}, the mask {}, src {}", x.dtype(), mask.dtype(), src.dtype()))
                .help("the mask is bool, src has the dtype of x"));
        }
        let inner = inner_calls();
        let shape = broadcast_shapes([x.shape(), mask.shape()])?;
        let sizes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        let (x, mask) = (x.expand(&sizes[..])?, mask.expand(&sizes[..])?);
        let flat = mask.reshape([mask.numel()])?.cast(DType::I64)?;
        let (wanted, have) = (flat.sum(())?.item()? as usize, src.numel());
        if wanted > have {
            return Err(Error::shape(format!("the mask is true at {wanted} places, src has {have} elements")));
        }
        if wanted == 0 {
            drop(inner);
            return x.copy();
        }
        let ids = flat.cumsum(0)?.sub(1i64)?.clamp(0i64, have as i64 - 1)?;
        let values = src.reshape([have])?.index_select(0, &ids)?.reshape(&sizes[..])?;
        drop(inner);
        where_(&mask, &values, &x)
    };
    let text = || format!("masked_scatter({}, {}, {})", x.short(), mask.short(), src.short());
    site.run(body).map_err(|e| e.within(text))
}

/// The largest of x and of what stands at its indices, or of the latter alone: written in rising order, the last one stands. NaN are
/// the last of all.
fn largest(x: &Tensor, d: i64, ids: &Tensor, src: &Tensor, include_self: bool) -> Result<Tensor> {
    let order = src.argsort(d, false)?;
    let written = x.scatter(d, &ids.gather(d, &order)?, &src.gather(d, &order)?)?;
    if include_self { x.maximum(&written) } else { Ok(written) }
}

pub(super) fn scatter_reduce(
    x: &Tensor,
    dim: i64,
    ids: &Tensor,
    src: &Tensor,
    reduce: &str,
    include_self: bool,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let d = normalize_dim(dim, x.ndim())? as i64;
        if x.ndim() == 0 && reduce == "prod" {
            let line = |t: &Tensor| t.reshape([t.numel()]);
            let made = scatter_reduce(&line(x)?, 0, &line(ids)?, &line(src)?, reduce, include_self, site)?;
            return made.reshape([] as [i64; 0]);
        }
        if (x.dtype(), src.dtype()) == (DType::Bool, DType::Bool) && reduce != "mean" {
            let wide = |t: &Tensor| t.cast(DType::I64);
            let made = scatter_reduce(&wide(x)?, d, ids, &wide(src)?, reduce, include_self, site)?;
            return made.ne(0i64);
        }
        if src.dtype() != x.dtype() || !(x.dtype().is_float() || x.dtype().kind() == DTypeKind::Int) {
            return Err(Error::dtype(format!("x is {}, src {}", x.dtype(), src.dtype()))
                .help("both are floats or integers of one dtype"));
        }
        let inner = inner_calls();
        // The part of src that has indices.
        let mut src = src.clone();
        for e in 0..src.ndim().min(ids.ndim()) {
            if src.shape()[e] > ids.shape()[e] {
                src = src.narrow(e as i64, 0, ids.shape()[e] as i64)?;
            }
        }
        let zeros = super::zeros_like(&x.detach())?;
        let ones = super::ones_like(&src.detach())?;
        let count = || zeros.scatter_add(d, ids, &ones);
        match reduce {
            "sum" | "mean" => {
                let base = match include_self {
                    true => x.clone(),
                    false => x.masked_fill(&count()?.gt(0.0)?, 0.0)?,
                };
                if reduce == "sum" {
                    drop(inner);
                    return base.scatter_add(d, ids, &src);
                }
                let sums = base.scatter_add(d, ids, &src)?;
                let by = if include_self { count()?.add(1i64)? } else { count()?.clamp_min(1i64)? };
                drop(inner);
                if x.dtype().is_float() { sums.div(&by) } else { sums.floor_divide(&by) }
            }
            "amax" | "amin" => {
                let most = reduce == "amax";
                let (plain, from) = (x.detach(), src.detach());
                let turned = |t: &Tensor| if most { Ok(t.clone()) } else { t.neg() };
                let value = match x.dtype().is_float() {
                    true => turned(&largest(&turned(&plain)?, d, ids, &turned(&from)?, include_self)?)?,
                    false => {
                        let wide = |t: &Tensor| turned(&t.cast(DType::I64)?);
                        turned(&largest(&wide(&plain)?, d, ids, &wide(&from)?, include_self)?)?.cast(x.dtype())?
                    }
                };
                if !(grad_enabled() && (x.requires_grad() || src.requires_grad())) {
                    return Ok(value);
                }
                // The mean of the elements that are equal to the result: its gradient is theirs in equal parts.
                let is_it = from.eq(&value.gather(d, ids)?)?;
                let stays = match include_self {
                    true => plain.eq(&value)?,
                    false => count()?.eq(0.0)?,
                };
                let number = |mask: &Tensor| mask.cast(x.dtype());
                let by = zeros.scatter_add(d, ids, &number(&is_it)?)?.add(&number(&stays)?)?.clamp_min(1.0)?;
                let kept = x.masked_fill(&stays.logical_not()?, 0.0)?;
                let sums = kept.scatter_add(d, ids, &src.masked_fill(&is_it.logical_not()?, 0.0)?)?;
                let mean = sums.div(&by)?;
                // Rounding, and infinite or NaN results, are those of the value.
                let rest = value.sub(&mean.detach())?;
                let exact = rest.isfinite()?;
                let rest = rest.masked_fill(&exact.logical_not()?, 0.0)?;
                drop(inner);
                where_(&exact, &mean.add(&rest)?, &value)
            }
            "prod" => {
                let (products, any) = super::multiplied::products(x, d, ids, &src)?;
                let with = if include_self { x.mul(&products)? } else { products };
                drop(inner);
                where_(&any, &with, x)
            }
            other => {
                Err(Error::argument(format!("unknown reduction '{other}'")).help("it is sum, prod, mean, amax or amin"))
            }
        }
    };
    let text = || format!("scatter_reduce({}, {}, {})", x.short(), ids.short(), src.short());
    site.run(body).map_err(|e| e.within(text))
}

pub(super) fn runs(x: &Tensor, site: CallSite) -> Result<Tensor> {
    Ok(unique_consecutive(x, false, false, site)?.swap_remove(0))
}

pub(super) fn unique_consecutive(
    x: &Tensor,
    return_inverse: bool,
    return_counts: bool,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let body = || {
        let _inner = inner_calls();
        let n = x.numel();
        let flat = x.detach().reshape([n])?;
        if n == 0 {
            let none = super::pieces::numbers_beside(x, 0, 0, 1, site)?;
            let mut all = vec![flat.copy()?];
            all.extend(return_inverse.then(|| none.reshape(x.shape())).transpose()?);
            all.extend(return_counts.then_some(none));
            return Ok(all);
        }
        let last = n as i64;
        let first = super::pieces::numbers_beside(x, 0, 1, 1, site)?.eq(0i64)?;
        let starts = match n {
            1 => first,
            _ => {
                let (later, earlier) = neighbours(&flat, 0)?;
                super::cat(&[first, later.ne(&earlier)?], 0)?
            }
        };
        let places = starts.nonzero()?.reshape([-1])?;
        let mut all = vec![flat.index_select(0, &places)?];
        if return_inverse {
            all.push(starts.cast(DType::I64)?.cumsum(0)?.sub(1i64)?.reshape(x.shape())?);
        }
        if return_counts {
            let end = super::pieces::numbers_beside(x, last, last + 1, 1, site)?;
            let bounds = super::cat(&[places, end], 0)?;
            let (later, earlier) = neighbours(&bounds, 0)?;
            all.push(later.sub(&earlier)?);
        }
        Ok(all)
    };
    site.run(body).map_err(|e| e.within(|| format!("unique_consecutive({})", x.short())))
}

pub(super) fn unravel_index(ids: &Tensor, shape: &[i64], site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("unravel_index", ids, site);
    of_ints(ids).map_err(&named)?;
    let whole = shape.iter().try_fold(1i64, |n, s| n.checked_mul(*s)).filter(|_| shape.iter().all(|s| *s >= 0));
    if whole.is_none() {
        return Err(named(Error::shape(format!("{shape:?} is not a shape"))));
    }
    let body = || {
        let _inner = inner_calls();
        let mut rest = ids.cast(DType::I64)?;
        let mut all = vec![];
        for size in shape.iter().rev() {
            all.push(rest.remainder((*size).max(1))?);
            rest = rest.floor_divide((*size).max(1))?;
        }
        all.reverse();
        Ok(all)
    };
    site.run(body).map_err(named)
}
