//! Elements written, multiplied and scaled at places: of whole tensors counted row-major, of diagonals, of slices.

use super::shape::in_method;
use super::where_;
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::normalize_dim;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};

functions! {
    FUNCTIONS, "Choice";
    /// x with each slice of `src` combined with what is at its index along `dim`: `reduce` is `prod`, `mean`, `amax` or `amin`. Without
    /// `include_self` what x has there does not count.
    "index_reduce(Tensor x, Int dim, Tensor ids, Tensor src, String reduce, *, Bool include_self=true) -> Tensor" = index_reduce;
    /// x with the elements of `src` at these places, counted row-major; with `accumulate` they are added.
    "put(Tensor x, Tensor ids, Tensor src, Bool accumulate=false) -> Tensor" = put;
    /// x with `src` as the diagonal of two dims.
    "diagonal_scatter(Tensor x, Tensor src, Int offset=0, Int dim1=0, Int dim2=1) -> Tensor" = diagonal_scatter;
    /// x with each slice along `dim` whose p-norm is above `maxnorm` scaled to have that norm.
    "renorm(Tensor x, Float p, Int dim, Float maxnorm) -> Tensor" = renorm;
    /// The middle value along `dim` of those that are not NaN (the lower of two), and where it is; NaN where all are.
    "nanmedian(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)" = nanmedian;
}

by_name! {
    BY_NAME, "Choice", ByName;
    /// The middle value of all elements that are not NaN, the lower of two.
    "nanmedian(Tensor x) -> Tensor" = |b| {
        let x = b.given(0)?;
        let inner = inner_calls();
        let line = x.reshape_at(&[x.numel()], b.site)?;
        drop(inner);
        Ok(vec![nanmedian(&line, 0, false, b.site)?.swap_remove(0)])
    };
}

fn sizes(x: &Tensor) -> Vec<i64> {
    x.shape().iter().map(|n| *n as i64).collect()
}

pub(super) fn index_reduce(
    x: &Tensor,
    dim: i64,
    ids: &Tensor,
    src: &Tensor,
    reduce: &str,
    include_self: bool,
    site: CallSite,
) -> Result<Tensor> {
    site.run(|| {
        if x.ndim() == 0 {
            let lines = [x, src].map(|t| t.reshape([1]));
            let [x, src] = lines;
            return index_reduce(&x?, 0, ids, &src?, reduce, include_self, site)?.reshape([] as [i64; 0]);
        }
        let d = normalize_dim(dim, x.ndim())?;
        if ids.ndim() > 1 || src.ndim() != x.ndim() || src.shape()[d] != ids.numel() {
            return Err(Error::shape(format!("{} indices and slices {:?} along dim {d}", ids.short(), src.shape())));
        }
        if reduce == "sum" {
            return Err(Error::argument("reduce is \"sum\"").help("`index_add` adds"));
        }
        let inner = inner_calls();
        let mut apart = vec![1; src.ndim()];
        apart[d] = ids.numel() as i64;
        let all = ids.reshape(apart)?.expand(sizes(src))?;
        drop(inner);
        super::choose::scatter_reduce(x, d as i64, &all, src, reduce, include_self, site)
    })
    .map_err(|e| e.within(|| format!("index_reduce({}, {}, {})", x.short(), ids.short(), src.short())))
}

pub(super) fn put(x: &Tensor, ids: &Tensor, src: &Tensor, accumulate: bool, site: CallSite) -> Result<Tensor> {
    site.run(|| {
        if ids.dtype() != DType::I64 || src.dtype() != x.dtype() {
            let e = Error::dtype(format!("the indices are {}, src is {}", ids.dtype(), src.dtype()));
            return Err(e.help("indices are i64, and src has the dtype of x"));
        }
        if ids.numel() != src.numel() {
            return Err(Error::shape(format!("{} indices for {} elements", ids.numel(), src.numel())));
        }
        let inner = inner_calls();
        let (line, list, values) = (x.reshape([-1i64])?, ids.reshape([-1i64])?, src.reshape([-1i64])?);
        let n = line.numel() as i64;
        // Negative places count from the end.
        let list = where_(&list.lt(0i64)?, &list.add(n)?, &list)?;
        let made = match accumulate {
            true => line.index_add(0, &list, &values)?,
            false => line.index_copy(0, &list, &values)?,
        };
        drop(inner);
        made.reshape(sizes(x))
    })
    .map_err(|e| e.within(|| format!("put({}, {}, {})", x.short(), ids.short(), src.short())))
}

pub(super) fn diagonal_scatter(
    x: &Tensor,
    src: &Tensor,
    offset: i64,
    dim1: i64,
    dim2: i64,
    site: CallSite,
) -> Result<Tensor> {
    site.run(|| {
        let inner = inner_calls();
        let places = super::full([x.numel()], Scalar::Int(1), super::IntoTarget::dtype(x.whole_target(), DType::I64))?;
        let places = places.cumsum(0)?.sub(1i64)?.reshape(sizes(x))?.diagonal(offset, dim1, dim2)?;
        if places.shape() != src.shape() {
            return Err(Error::shape(format!(
                "the diagonal has the shape {:?}, src {:?}",
                places.shape(),
                src.shape()
            )));
        }
        let made = x.reshape([-1i64])?.index_copy(0, &places.reshape([-1i64])?, &src.reshape([-1i64])?)?;
        drop(inner);
        made.reshape(sizes(x))
    })
    .map_err(|e| e.within(|| format!("diagonal_scatter({}, {})", x.short(), src.short())))
}

pub(super) fn renorm(x: &Tensor, p: f64, dim: i64, maxnorm: f64, site: CallSite) -> Result<Tensor> {
    let named = in_method("renorm", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    if x.ndim() < 2 || p <= 0.0 || maxnorm < 0.0 {
        let e = Error::argument(format!("p is {p}, maxnorm {maxnorm}, and the tensor has {} dims", x.ndim()));
        return Err(named(e.help("p is above 0, maxnorm not below 0, and there are two dims at least")));
    }
    site.run(|| {
        let inner = inner_calls();
        let others: Vec<i64> = (0..x.ndim()).filter(|e| *e != d).map(|e| e as i64).collect();
        let mut kept = vec![1; x.ndim()];
        kept[d] = x.shape()[d] as i64;
        let norms = x.norm(p, others)?.reshape(kept)?;
        // PyTorch's, so that a norm of zero divides nothing.
        let scaled = norms.add(1e-7)?.reciprocal()?.mul(maxnorm)?;
        let one = super::ones_like(&scaled.detach())?;
        let factor = where_(&norms.gt(maxnorm)?, &scaled, &one)?;
        drop(inner);
        x.mul(&factor)
    })
    .map_err(&named)
}

pub(super) fn nanmedian(x: &Tensor, dim: i64, keepdim: bool, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("nanmedian", x, site);
    let line = x.ndim() == 0;
    let d = normalize_dim(dim, x.ndim()).map_err(&named)? as i64;
    site.run(|| {
        let inner = inner_calls();
        let x = if line { x.reshape([1])? } else { x.clone() };
        if x.shape()[d as usize] == 0 {
            return Err(Error::shape(format!("dim {d} has 0 elements: expected one at least")));
        }
        let sorted = x.sort(d, false)?;
        let numbers = x.isnan()?.logical_not()?.cast(DType::I64)?.sum(d)?.unsqueeze(d)?;
        // NaN are the last; where all are, the first of them.
        let at = numbers.sub(1i64)?.clamp_min(0i64)?.floor_divide(2i64)?;
        let (y, index) = (sorted[0].gather(d, &at)?, sorted[1].gather(d, &at)?);
        drop(inner);
        match keepdim && !line {
            true => Ok(vec![y, index]),
            false => Ok(vec![y.squeeze(d)?, index.squeeze(d)?]),
        }
    })
    .map_err(&named)
}
