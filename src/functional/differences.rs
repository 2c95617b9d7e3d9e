//! Differences and integrals along a dim, distances between rows, and questions about pairs of elements.

use super::shape::in_method;
use super::{invoke1, op};
use crate::context::{inner_calls, set_autocast};
use crate::error::{CallSite, Error, Result};
use crate::ops::{Autocast, normalize_dim};
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Reductions";
    /// The differences of neighbours along `dim`, `n` times in a row; of bools whether they differ. `prepend` and `append` are put before
    /// and behind x first.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1i64, 4, 9], [3], Device::Cpu)?;
    /// assert_eq!(x.diff(1, -1)?.to_vec::<i64>()?, [3, 5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "diff(Tensor x, Int n=1, Int dim=-1, *, Tensor? prepend, Tensor? append) -> Tensor" = diff;
    /// The integral along `dim` by the trapezoid rule: y are the values at `x`, a list or a tensor of y's shape, or at places that are `dx`
    /// apart.
    "trapezoid(Tensor y, Tensor? x, *, Float dx=1.0, Int dim=-1) -> Tensor" = trapezoid;
    /// The integrals up to each place but the first, by the trapezoid rule.
    "cumulative_trapezoid(Tensor y, Tensor? x, *, Float dx=1.0, Int dim=-1) -> Tensor" = cumulative_trapezoid;
    /// The p-norms of the differences of each row of `x1` `[.., m, d]` and each row of `x2` `[.., n, d]`, as `[.., m, n]`. Those of many
    /// rows for p = 2 come from a matrix product, which loses digits where rows are nearly equal.
    "cdist(Tensor x1, Tensor x2, Float p=2.0) -> Tensor" = cdist;
    /// The p-norms of the differences of each two rows of a matrix: the upper triangle of `cdist(x, x)`, row by row.
    "pdist(Tensor x, Float p=2.0) -> Tensor" = pdist;
    /// x1ᵀ W x2 + b for each matrix W of `weight` `[out, d1, d2]`: `[.., d1]` and `[.., d2]` give `[.., out]`.
    "bilinear(Tensor x1, Tensor x2, Tensor weight, Tensor? bias) -> Tensor" = bilinear;
}

functions! {
    PAIRS, "Elementwise";
    /// x with other numbers in the place of NaN, inf and -inf: `nan`, and the largest and the smallest finite number of the dtype unless
    /// they are given.
    "nan_to_num(Tensor x, Float nan=0.0, Float? posinf, Float? neginf) -> Tensor" = nan_to_num;
    /// log(x / (1 - x)), the inverse of `sigmoid`. With `eps` x is brought into `eps` to 1 - `eps` first; else what is outside of 0 to 1 gives
    /// NaN.
    "logit(Tensor x, Float? eps) -> Tensor" = logit;
    /// True where x is below zero, or a zero with a minus sign.
    "signbit(Tensor x) -> Tensor" = signbit;
    /// True where |x - y| is at most `atol` + `rtol` |y|, or both are equal, or with `equal_nan` both NaN.
    "isclose(Tensor x, Tensor y, Float rtol=1e-5, Float atol=1e-8, Bool equal_nan=false) -> Tensor" = isclose;
    /// True where an element of x is among those of `values`, or with `invert` where it is not.
    "isin(Tensor x, Tensor values, *, Bool invert=false) -> Tensor" = isin;
}

by_name! {
    QUESTIONS, "Elementwise", Value;
    /// Whether all elements are close, as `isclose` says. On global tensors a collective of the world.
    "allclose(Tensor x, Tensor y, Float rtol=1e-5, Float atol=1e-8, Bool equal_nan=false) -> Bool" = |b| {
        let near = close("allclose", [b.given(0)?, b.given(1)?], [b.float(2)?, b.float(3)?], b.bool(4)?, b.site)?;
        Ok(all_true(&near, b.site)?.into())
    };
    /// Whether shapes and all elements are equal. On global tensors a collective of the world.
    "equal(Tensor x, Tensor y) -> Bool" = |b| Ok(equal(b.given(0)?, b.given(1)?, b.site)?.into());
}

impl Tensor {
    /// Whether all elements are close to those of another tensor: |x - y| is at most `atol` + `rtol` |y|. NaN is close to nothing. On
    /// global tensors a collective of the world.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2], Device::Cpu)?;
    /// assert!(x.allclose(&x.add(1e-7)?, 1e-5, 1e-8)? && !x.allclose(&x.add(0.1)?, 1e-5, 1e-8)?);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast or the dtypes differ.
    #[track_caller]
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        let site = CallSite::here();
        all_true(&close("allclose", [self, other], [rtol, atol], false, site)?, site)
    }

    /// Whether another tensor has the same shape and equal elements. On global tensors a collective of the world.
    ///
    /// # Errors
    /// If the dtypes differ.
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        equal(self, other, CallSite::here())
    }
}

fn all_true(mask: &Tensor, site: CallSite) -> Result<bool> {
    site.run(|| Ok(mask.all(())?.item()? != 0.0))
}

fn in_pair(name: &str, x: &Tensor, y: &Tensor, site: CallSite) -> impl Fn(Error) -> Error {
    move |e| e.within(|| format!("{name}({}, {})", x.short(), y.short())).at(site)
}

/// Answers that depend on a conversion would be surprising.
fn one_dtype(x: &Tensor, y: &Tensor) -> Result<()> {
    match x.dtype() == y.dtype() {
        true => Ok(()),
        false => Err(Error::dtype(format!("{} is compared with {}", x.dtype(), y.dtype())).help("`cast` one of them")),
    }
}

fn equal(x: &Tensor, y: &Tensor, site: CallSite) -> Result<bool> {
    let named = in_pair("equal", x, y, site);
    one_dtype(x, y).map_err(&named)?;
    if x.shape() != y.shape() {
        return Ok(false);
    }
    let same = invoke1(op!("eq"), &[Some(x), Some(y)], smallvec![], smallvec![], site).map_err(&named)?;
    all_true(&same, site)
}

pub(super) fn isclose(x: &Tensor, y: &Tensor, rtol: f64, atol: f64, equal_nan: bool, site: CallSite) -> Result<Tensor> {
    close("isclose", [x, y], [rtol, atol], equal_nan, site)
}

/// Where two tensors are close, for the function of that name.
fn close(name: &str, [x, y]: [&Tensor; 2], [rtol, atol]: [f64; 2], equal_nan: bool, site: CallSite) -> Result<Tensor> {
    let named = in_pair(name, x, y, site);
    one_dtype(x, y).map_err(&named)?;
    if !(rtol >= 0.0 && atol >= 0.0) {
        return Err(named(
            Error::argument(format!("the tolerances are {rtol} and {atol}")).help("they are at least 0"),
        ));
    }
    // Differences of integers wrap.
    let inner = inner_calls();
    let wide = |t: &Tensor| match t.dtype().kind() {
        DTypeKind::Int | DTypeKind::Bool => t.cast_at(DType::F64, site),
        _ => Ok(t.detach()),
    };
    let (a, b) = (wide(x).map_err(&named)?, wide(y).map_err(&named)?);
    drop(inner);
    let numbers = smallvec![rtol.into(), atol.into(), Scalar::Float(f64::from(u8::from(equal_nan)))];
    invoke1(op!("close_to"), &[Some(&a), Some(&b)], smallvec![], numbers, site).map_err(&named)
}

pub(super) fn isin(x: &Tensor, values: &Tensor, invert: bool, site: CallSite) -> Result<Tensor> {
    let named = in_pair("isin", x, values, site);
    one_dtype(x, values).map_err(&named)?;
    let body = || {
        let inner = inner_calls();
        let (x, values) = (x.detach(), values.detach().reshape([values.numel()])?);
        if values.numel() == 0 {
            let none = x.ne(&x)?;
            let none = none.logical_and(&none.logical_not()?)?;
            drop(inner);
            return if invert { none.logical_not() } else { none.copy() };
        }
        let number = |t: Tensor| if t.dtype() == DType::Bool { t.cast(DType::I64) } else { Ok(t) };
        let (x, sorted) = (number(x)?, number(values)?.sort(0, false)?.swap_remove(0));
        let last = sorted.numel() as i64 - 1;
        let at = sorted.searchsorted(&x)?.clamp_max(last)?;
        let found = sorted.index_select(0, &at.reshape([at.numel()])?)?.reshape(x.shape())?;
        drop(inner);
        if invert { x.ne(&found) } else { x.eq(&found) }
    };
    site.run(body).map_err(named)
}

/// The largest finite number of a dtype of floats.
fn greatest(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::MAX),
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        _ => f64::MAX,
    }
}

pub(super) fn nan_to_num(
    x: &Tensor,
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
    site: CallSite,
) -> Result<Tensor> {
    let named = in_method("nan_to_num", x, site);
    if x.dtype().is_complex() {
        let inner = inner_calls();
        let part = |name| invoke1(name, &[Some(x)], smallvec![], smallvec![], site);
        let of = |part: Tensor| nan_to_num(&part, nan, posinf, neginf, site);
        let (re, im) = (of(part(op!("real"))?)?, of(part(op!("imag"))?)?);
        drop(inner);
        return invoke1(op!("complex"), &[Some(&re), Some(&im)], smallvec![], smallvec![], site);
    }
    if !x.dtype().is_float() {
        // Others have no such numbers.
        return match x.dtype().is_real() {
            true => site.run(|| x.copy()),
            false => Err(named(Error::dtype(format!("x is {}; it takes numbers", x.dtype())))),
        };
    }
    let most = greatest(x.dtype());
    let numbers = smallvec![nan.into(), posinf.unwrap_or(most).into(), neginf.unwrap_or(-most).into()];
    invoke1(op!("replace_not_finite"), &[Some(x)], smallvec![], numbers, site)
}

pub(super) fn signbit(x: &Tensor, site: CallSite) -> Result<Tensor> {
    match x.dtype().is_float() {
        true => invoke1(op!("minus_sign"), &[Some(x)], smallvec![], smallvec![], site),
        // Their zeros have no sign.
        false => invoke1(op!("lt_scalar"), &[Some(x)], smallvec![], smallvec![Scalar::Int(0)], site),
    }
}

pub(super) fn logit(x: &Tensor, eps: Option<f64>, site: CallSite) -> Result<Tensor> {
    let named = in_method("logit", x, site);
    if let Some(eps) = eps.filter(|e| !(0.0..=1.0).contains(e)) {
        return Err(named(Error::argument(format!("eps is {eps}")).help("it is within 0 and 1")));
    }
    let inner = inner_calls();
    let y = match x.dtype() {
        d if d.is_float() => x.clone(),
        d if d.is_real() => x.cast_at(DType::F32, site).map_err(&named)?,
        d => return Err(named(Error::dtype(format!("x is {d}; it takes real numbers")))),
    };
    drop(inner);
    invoke1(op!("logit_within"), &[Some(&y)], smallvec![], smallvec![eps.unwrap_or(-1.0).into()], site)
}

/// A dim of a tensor that has one.
fn dim_of(x: &Tensor, dim: i64) -> Result<usize> {
    match x.ndim() {
        0 => Err(Error::shape("a tensor without dims has no neighbours")),
        rank => normalize_dim(dim, rank),
    }
}

/// All but the first and all but the last elements along a dim.
pub(super) fn neighbours(x: &Tensor, d: usize) -> Result<(Tensor, Tensor)> {
    let n = (x.shape()[d] as i64 - 1).max(0);
    let from = i64::from(x.shape()[d] > 0);
    Ok((x.narrow(d as i64, from, n)?, x.narrow(d as i64, 0, n)?))
}

pub(super) fn diff(
    x: &Tensor,
    n: i64,
    dim: i64,
    prepend: Option<&Tensor>,
    append: Option<&Tensor>,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let d = dim_of(x, dim)?;
        if n < 0 {
            return Err(Error::argument(format!("n is {n}: expected 0 or more")));
        }
        if n == 0 {
            drop(inner);
            return x.copy();
        }
        let all: Vec<&Tensor> = prepend.into_iter().chain([x]).chain(append).collect();
        let mut y = if all.len() > 1 { super::cat(&all, d as i64)? } else { x.clone() };
        // No more times than there are elements.
        let times = n.min(y.shape()[d] as i64);
        if times == 0 {
            drop(inner);
            return y.copy();
        }
        let less = |y: &Tensor| -> Result<Tensor> {
            let (later, earlier) = neighbours(y, d)?;
            if y.dtype() == DType::Bool { later.ne(&earlier) } else { later.sub(&earlier) }
        };
        for _ in 1..times {
            y = less(&y)?;
        }
        drop(inner);
        less(&y)
    };
    site.run(body).map_err(|e| e.within(|| format!("diff({})", x.short())))
}

/// The areas between neighbours.
fn areas(y: &Tensor, x: Option<&Tensor>, dx: f64, d: usize) -> Result<Tensor> {
    let (later, earlier) = neighbours(y, d)?;
    let sums = later.add(&earlier)?;
    let Some(x) = x else { return sums.mul(dx / 2.0) };
    let lengths = match x.shape() {
        [n] if *n == y.shape()[d] => {
            let (later, earlier) = neighbours(x, 0)?;
            let mut beside = vec![1; y.ndim()];
            beside[d] = later.numel();
            later.sub(&earlier)?.reshape(beside)?
        }
        // Places of several rows; dims of size 1 stand for all.
        shape if shape.len() == y.ndim() && crate::ops::broadcast_shapes([shape, y.shape()]).is_ok() => {
            let (later, earlier) = neighbours(x, d)?;
            later.sub(&earlier)?
        }
        shape => return Err(Error::shape(format!("places {shape:?} do not belong to values {:?}", y.shape()))),
    };
    sums.mul(&lengths)?.div(2.0)
}

pub(super) fn trapezoid(y: &Tensor, x: Option<&Tensor>, dx: f64, dim: i64, site: CallSite) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let d = dim_of(y, dim)?;
        let areas = areas(y, x, dx, d)?;
        drop(inner);
        areas.sum(d as i64)
    };
    site.run(body).map_err(|e| e.within(|| format!("trapezoid({})", y.short())))
}

pub(super) fn cumulative_trapezoid(
    y: &Tensor,
    x: Option<&Tensor>,
    dx: f64,
    dim: i64,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let d = dim_of(y, dim)?;
        let areas = areas(y, x, dx, d)?;
        drop(inner);
        areas.cumsum(d as i64)
    };
    site.run(body).map_err(|e| e.within(|| format!("cumulative_trapezoid({})", y.short())))
}

/// From so many rows on distances come from a product.
const FEW_ROWS: usize = 25;

fn of_norm(x: &Tensor, p: f64) -> Result<()> {
    match (x.dtype().is_float(), p >= 0.0) {
        (false, _) => {
            Err(Error::dtype(format!("distances are of floats, not of {}", x.dtype())).help("`cast` it first"))
        }
        (_, false) => Err(Error::argument(format!("p is {p}")).help("it is at least 0")),
        _ => Ok(()),
    }
}

pub(super) fn cdist(x1: &Tensor, x2: &Tensor, p: f64, site: CallSite) -> Result<Tensor> {
    let named = in_pair("cdist", x1, x2, site);
    let body = || {
        // Sums of squares and products cancel: they keep their precision under autocast.
        let _full = set_autocast(Autocast::Off);
        let inner = inner_calls();
        one_dtype(x1, x2)?;
        of_norm(x1, p)?;
        let ([.., m, d1], [.., n, d2]) = (x1.shape(), x2.shape()) else {
            return Err(Error::shape("both need rows: two dims at least"));
        };
        if d1 != d2 {
            return Err(Error::shape(format!("rows of {d1} and of {d2} elements have no distance")));
        }
        if p == 2.0 && (*m > FEW_ROWS || *n > FEW_ROWS) && !x1.dtype().is_half() {
            let squares = |x: &Tensor| x.square()?.sum_keepdim(-1);
            let product = x1.matmul(&x2.transpose(-2, -1)?)?.mul(-2.0)?;
            let sums = product.add(&squares(x1)?)?.add(&squares(x2)?.transpose(-2, -1)?)?.clamp_min(0.0)?;
            drop(inner);
            return invoke1(op!("root"), &[Some(&sums)], smallvec![], smallvec![], site);
        }
        let apart = x1.unsqueeze(-2)?.sub(&x2.unsqueeze(-3)?)?;
        drop(inner);
        apart.norm(p, -1)
    };
    site.run(body).map_err(named)
}

pub(super) fn pdist(x: &Tensor, p: f64, site: CallSite) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        of_norm(x, p)?;
        let [n, _] = x.shape() else {
            return Err(Error::shape("x must be a matrix"));
        };
        let target = super::IntoTarget::into_target(x.whole_target());
        let places = super::pieces::triu_indices(*n as i64, *n as i64, &target, 1, site)?;
        let rows = |i: i64| x.index_select(0, &places.select(0, i)?);
        let apart = rows(0)?.sub(&rows(1)?)?;
        drop(inner);
        apart.norm(p, -1)
    };
    site.run(body).map_err(|e| e.within(|| format!("pdist({})", x.short())))
}

pub(super) fn bilinear(
    x1: &Tensor,
    x2: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let ([lead @ .., d1], [lead2 @ .., d2], [out, w1, w2]) = (x1.shape(), x2.shape(), weight.shape()) else {
            return Err(Error::shape(format!("the weight is {:?}; it is [out, d1, d2]", weight.shape())));
        };
        if lead != lead2 || (d1, d2) != (w1, w2) {
            return Err(Error::shape(format!(
                "{:?}, {:?} and a weight {:?} do not fit",
                x1.shape(),
                x2.shape(),
                weight.shape()
            ))
            .help("they are [.., d1], [.., d2] and [out, d1, d2]"));
        }
        let rows = lead.iter().product::<usize>();
        let shape = [lead, &[*out]].concat();
        // x1 W for all matrices at once, then each row with its x2.
        let flat = weight.transpose(0, 1)?.reshape([*d1, out * d2])?;
        let half = x1.reshape([rows, *d1])?.matmul(&flat)?.reshape([rows, *out, *d2])?;
        let y = half.matmul(&x2.reshape([rows, *d2, 1])?)?.reshape(&shape[..])?;
        drop(inner);
        match bias {
            Some(b) => y.add(b),
            None => Ok(y),
        }
    };
    let text = || format!("bilinear({}, {}, {})", x1.short(), x2.short(), weight.short());
    site.run(body).map_err(|e| e.within(text))
}
