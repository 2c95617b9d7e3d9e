//! Statistics: moments, quantiles, the value that is most frequent, histograms.

use super::differences::neighbours;
use super::reduce::{std, var};
use super::shape::in_method;
use super::where_;
use crate::context::{inner_calls, set_autocast};
use crate::error::{CallSite, Error, Result};
use crate::ops::{Autocast, normalize_dim};
use crate::tensor::Tensor;
use oflow_kernels::DType;

functions! {
    FUNCTIONS, "Reductions";
    /// The variance, as `var`, and the mean over dims (none given: all).
    "var_mean(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> (Tensor var, Tensor mean)" = var_mean;
    /// The standard deviation, as `std`, and the mean over dims (none given: all).
    "std_mean(Tensor x, IntList dims=[], *, Bool keepdim=false, Float correction=1.0) -> (Tensor std, Tensor mean)" = std_mean;
    /// The covariance matrix of variables. Each row of x is a variable, each column an observation; a 1-d x is one variable.
    /// `fweights` are integer frequencies of the observations, `aweights` their importance. The sums are divided by the number of
    /// observations (their total weight, if there are weights) less `correction`, as in PyTorch.
    "cov(Tensor x, *, Int correction=1, Tensor? fweights, Tensor? aweights) -> Tensor" = cov;
    /// The correlations of variables, the rows of x: their covariances divided by both standard deviations.
    "corrcoef(Tensor x) -> Tensor" = corrcoef;
    /// The `q`-quantile: the value below which the fraction `q` of the elements along `dim` lies; without `dim`, of all elements. Between two
    /// elements `interpolation` decides: `linear`, `lower`, `higher`, `midpoint` or `nearest`. If an element is NaN, the quantile is NaN.
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
    "quantile(Tensor x, Float q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor" = quantile;
    /// The quantiles for several fractions `q`, along a new first dim.
    "quantile(Tensor x, FloatList q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor" = quantiles as fn quantiles;
    /// `quantile` of the elements that are not NaN; NaN where all elements are NaN.
    "nanquantile(Tensor x, Float q, Int? dim, Bool keepdim=false, *, String interpolation=\"linear\") -> Tensor" = nanquantile;
    /// The most frequent value along `dim` (the smallest of equally frequent ones), and the index of its last occurrence.
    "mode(Tensor x, Int dim=-1, Bool keepdim=false) -> (Tensor values, Tensor indices)" = mode;
}

/// The correction for PyTorch's older argument `unbiased`: 1 if true, else 0.
fn correction(unbiased: bool) -> f64 {
    if unbiased { 1.0 } else { 0.0 }
}

by_name! {
    UNBIASED, "Reductions", ByName;
    /// The variance over dims, with a correction of 1 if `unbiased`, else of 0.
    "var(Tensor x, IntList dims, Bool unbiased, Bool keepdim=false) -> Tensor" = |b| {
        Ok(vec![var(b.given(0)?, b.ints(1)?, b.bool(3)?, correction(b.bool(2)?), b.site)?])
    };
    /// The variance of all elements, with a correction of 1 if `unbiased`, else of 0.
    "var(Tensor x, Bool unbiased) -> Tensor" = |b| Ok(vec![var(b.given(0)?, &[], false, correction(b.bool(1)?), b.site)?]);
    /// The standard deviation over dims, with a correction of 1 if `unbiased`, else of 0.
    "std(Tensor x, IntList dims, Bool unbiased, Bool keepdim=false) -> Tensor" = |b| {
        Ok(vec![std(b.given(0)?, b.ints(1)?, b.bool(3)?, correction(b.bool(2)?), b.site)?])
    };
    /// The standard deviation of all elements, with a correction of 1 if `unbiased`, else of 0.
    "std(Tensor x, Bool unbiased) -> Tensor" = |b| Ok(vec![std(b.given(0)?, &[], false, correction(b.bool(1)?), b.site)?]);
    /// The variance over dims, with a correction of 1 if `unbiased`, else of 0, and the mean.
    "var_mean(Tensor x, IntList dims, Bool unbiased, Bool keepdim=false) -> (Tensor var, Tensor mean)" = |b| {
        var_mean(b.given(0)?, b.ints(1)?, b.bool(3)?, correction(b.bool(2)?), b.site)
    };
    /// The variance of all elements, with a correction of 1 if `unbiased`, else of 0, and the mean.
    "var_mean(Tensor x, Bool unbiased) -> (Tensor var, Tensor mean)" = |b| {
        var_mean(b.given(0)?, &[], false, correction(b.bool(1)?), b.site)
    };
    /// The standard deviation over dims, with a correction of 1 if `unbiased`, else of 0, and the mean.
    "std_mean(Tensor x, IntList dims, Bool unbiased, Bool keepdim=false) -> (Tensor std, Tensor mean)" = |b| {
        std_mean(b.given(0)?, b.ints(1)?, b.bool(3)?, correction(b.bool(2)?), b.site)
    };
    /// The standard deviation of all elements, with a correction of 1 if `unbiased`, else of 0, and the mean.
    "std_mean(Tensor x, Bool unbiased) -> (Tensor std, Tensor mean)" = |b| {
        std_mean(b.given(0)?, &[], false, correction(b.bool(1)?), b.site)
    };
}

pub(super) fn var_mean(
    x: &Tensor,
    dims: &[i64],
    keepdim: bool,
    correction: f64,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let var = var(x, dims, keepdim, correction, site)?;
    Ok(vec![var, super::reduce::mean(x, dims, keepdim, site)?])
}

pub(super) fn std_mean(
    x: &Tensor,
    dims: &[i64],
    keepdim: bool,
    correction: f64,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let std = std(x, dims, keepdim, correction, site)?;
    Ok(vec![std, super::reduce::mean(x, dims, keepdim, site)?])
}

/// A matrix of floats, `[variables, observations]`; a 1-d x is one variable.
fn observations(x: &Tensor) -> Result<Tensor> {
    let x = match x.ndim() {
        0 | 1 => x.reshape([1, x.numel()])?,
        2 => x.clone(),
        n => return Err(Error::shape(format!("x has {n} dims; variables by observations are two"))),
    };
    match x.dtype() {
        d if d.is_float() || d.is_complex() => Ok(x),
        _ => x.cast(DType::F32),
    }
}

pub(super) fn cov(
    x: &Tensor,
    correction: i64,
    fweights: Option<&Tensor>,
    aweights: Option<&Tensor>,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        // Autocast would round the observations.
        let _full = set_autocast(Autocast::Off);
        let inner = inner_calls();
        let table = observations(x)?;
        let n = table.shape()[1];
        if let Some(w) = [fweights, aweights].into_iter().flatten().find(|w| w.shape() != [n]) {
            return Err(Error::shape(format!("there are weights {:?} for {n} observations", w.shape())));
        }
        if let Some(w) = fweights.filter(|w| w.dtype().kind() != oflow_kernels::DTypeKind::Int) {
            return Err(Error::dtype(format!("fweights are {}; counts are integers", w.dtype())));
        }
        for (name, w) in [("fweights", fweights), ("aweights", aweights)] {
            let Some(w) = w.filter(|w| w.numel() > 0) else { continue };
            // Unsigned weights always pass. So does NaN, as in PyTorch.
            let least = w.detach().amin(())?.item()?;
            if least < 0.0 {
                return Err(Error::argument(format!("expected {name} of at least 0; the smallest is {least}")));
            }
        }
        // Weights keep their dtype, which is promoted with that of x, as in PyTorch.
        let weights = match (fweights, aweights) {
            (None, None) => None,
            (Some(w), None) | (None, Some(w)) => Some(w.clone()),
            (Some(f), Some(a)) => Some(f.mul(a)?),
        };
        let Some(w) = weights else {
            let centred = table.sub(&table.mean_keepdim(1)?)?;
            let sums = centred.matmul(&centred.adjoint()?)?;
            let by = (n as i64).saturating_sub(correction).max(0);
            drop(inner);
            return reduced(&sums.div(by as f64)?);
        };
        let total = w.sum(())?;
        let centred = table.sub(&table.mul(&w)?.sum_keepdim(1)?.div(&total)?)?;
        let sums = centred.mul(&w)?.matmul(&centred.adjoint()?)?;
        let left = match aweights {
            Some(a) if correction != 0 => total.sub(&w.mul(a)?.sum(())?.div(&total)?.mul(correction as f64)?)?,
            _ => total.sub(correction)?,
        };
        let by = left.clamp_min(0)?;
        drop(inner);
        reduced(&sums.div(&by)?)
    };
    site.run(body).map_err(|e| e.within(|| format!("cov({})", x.short())))
}

/// The covariance of a single variable as a 0-d tensor; of several the matrix as it is.
fn reduced(table: &Tensor) -> Result<Tensor> {
    if table.shape() == [1, 1] { table.reshape([0usize; 0]) } else { Ok(table.clone()) }
}

pub(super) fn corrcoef(x: &Tensor, site: CallSite) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let c = cov(x, 1, None, None, site)?;
        if c.ndim() == 0 {
            drop(inner);
            return c.div(&c);
        }
        let variances = c.diagonal(0, 0, 1)?;
        let complex = variances.dtype().is_complex();
        let deviations = if complex { variances.real()?.sqrt()? } else { variances.sqrt()? };
        let r = c.div(&deviations.unsqueeze(1)?)?.div(&deviations)?;
        let parts = if complex { Some((r.real()?.clamp(-1.0, 1.0)?, r.imag()?.clamp(-1.0, 1.0)?)) } else { None };
        drop(inner);
        match parts {
            Some((re, im)) => re.complex(&im),
            None => r.clamp(-1.0, 1.0),
        }
    };
    site.run(body).map_err(|e| e.within(|| format!("corrcoef({})", x.short())))
}

/// How a quantile between two elements is interpolated.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

impl Between {
    fn named(name: &str) -> Result<Between> {
        Ok(match name {
            "linear" => Between::Linear,
            "lower" => Between::Lower,
            "higher" => Between::Higher,
            "midpoint" => Between::Midpoint,
            "nearest" => Between::Nearest,
            other => {
                return Err(Error::argument(format!("unknown interpolation '{other}'"))
                    .help("it is linear, lower, higher, midpoint or nearest"));
            }
        })
    }

    /// For a fractional index `rank`: the element to start from, and the fraction of the way to the next one.
    fn place(self, rank: f64) -> (usize, f64) {
        let (low, rest) = (rank.floor(), rank.fract());
        match self {
            Between::Linear => (low as usize, rest),
            Between::Lower => (low as usize, 0.0),
            Between::Higher => (rank.ceil() as usize, 0.0),
            Between::Midpoint => (low as usize, if rest > 0.0 { 0.5 } else { 0.0 }),
            Between::Nearest => (rank.round_ties_even() as usize, 0.0),
        }
    }
}

/// Returns x sorted along `dim` (flattened first without `dim`), the sorted dim, and the shape of a quantile.
fn lines(x: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<(Tensor, i64, Vec<usize>)> {
    if !x.dtype().is_float() {
        return Err(
            Error::dtype(format!("x is {}; quantiles are of floats", x.dtype())).help("`cast` the tensor first")
        );
    }
    let whole = dim.is_none() || x.ndim() == 0;
    let flat = if whole { x.reshape([x.numel()])? } else { x.clone() };
    let d = match dim {
        Some(dim) => normalize_dim(dim, x.ndim())?,
        None => 0,
    };
    let shape = (0..x.ndim()).filter(|i| keepdim || !(whole || *i == d));
    let shape = shape.map(|i| if whole || i == d { 1 } else { x.shape()[i] }).collect();
    if flat.shape()[d] == 0 {
        return Err(Error::shape("the dim has no elements"));
    }
    let sorted = flat.sort(d as i64, false)?.swap_remove(0);
    Ok((sorted, d as i64, shape))
}

fn within_one(q: f64) -> Result<()> {
    if (0.0..=1.0).contains(&q) {
        Ok(())
    } else {
        Err(Error::argument(format!("q is {q}")).help("it is within 0 and 1"))
    }
}

/// The quantile `q` along dim `d` of a sorted tensor; dim `d` is kept, with size 1.
fn of_sorted(sorted: &Tensor, d: i64, q: f64, between: Between) -> Result<Tensor> {
    let n = sorted.shape()[d as usize];
    let (low, rest) = between.place(q * (n - 1) as f64);
    let a = sorted.narrow(d, low as i64, 1)?;
    let y = match rest > 0.0 {
        true => a.lerp(&sorted.narrow(d, low as i64 + 1, 1)?, rest)?,
        false => a,
    };
    // NaN are sorted last: if the last element is NaN, the quantile is.
    let last = sorted.narrow(d, n as i64 - 1, 1)?;
    where_(&last.isnan()?, &last, &y)
}

/// One quantile of x for each `q`, with the reduced dim kept, and the shape to which the caller reshapes each.
fn of_lines(
    x: &Tensor,
    q: &[f64],
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
) -> Result<(Vec<Tensor>, Vec<usize>)> {
    q.iter().try_for_each(|q| within_one(*q))?;
    let between = Between::named(interpolation)?;
    let (sorted, d, shape) = lines(x, dim, keepdim)?;
    Ok((q.iter().map(|q| of_sorted(&sorted, d, *q, between)).collect::<Result<_>>()?, shape))
}

pub(super) fn quantile(
    x: &Tensor,
    q: f64,
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let (mut one, shape) = of_lines(x, &[q], dim, keepdim, interpolation)?;
        drop(inner);
        one.swap_remove(0).reshape(shape)
    };
    site.run(body).map_err(|e| e.within(|| format!("quantile({})", x.short())))
}

pub(super) fn quantiles(
    x: &Tensor,
    q: &[f64],
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        let (all, shape) = of_lines(x, q, dim, keepdim, interpolation)?;
        if all.is_empty() {
            return Err(Error::argument("the list of parts is empty").help("name one at least"));
        }
        let all: Vec<Tensor> = all.iter().map(|y| y.reshape(&shape[..])).collect::<Result<_>>()?;
        drop(inner);
        super::stack(&all, 0)
    };
    site.run(body).map_err(|e| e.within(|| format!("quantile({})", x.short())))
}

pub(super) fn nanquantile(
    x: &Tensor,
    q: f64,
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        let inner = inner_calls();
        within_one(q)?;
        let between = Between::named(interpolation)?;
        let (sorted, d, shape) = lines(x, dim, keepdim)?;
        // Along `d`, the number of elements that are not NaN.
        let count = sorted.detach().isnan()?.logical_not()?.sum_keepdim(d)?.cast(DType::F64)?;
        let rank = count.sub(1.0)?.clamp_min(0.0)?.mul(q)?;
        let (low, rest) = match between {
            Between::Linear => (rank.floor()?, Some(rank.frac()?)),
            Between::Lower => (rank.floor()?, None),
            Between::Higher => (rank.ceil()?, None),
            Between::Midpoint => (rank.floor()?, Some(rank.frac()?.gt(0.0)?.cast(DType::F64)?.mul(0.5)?)),
            Between::Nearest => (rank.round()?, None),
        };
        let low = low.cast(DType::I64)?;
        let a = sorted.gather(d, &low)?;
        let y = match rest {
            Some(rest) => {
                let next = low.add(1i64)?.clamp_max(sorted.shape()[d as usize] as i64 - 1)?;
                let rest = rest.cast(sorted.dtype())?;
                // The element after the last number is NaN: it must not enter where `rest` is 0.
                let b = where_(&rest.gt(0.0)?, &sorted.gather(d, &next)?, &a)?;
                a.lerp(&b, &rest)?
            }
            None => a,
        };
        drop(inner);
        y.reshape(shape)
    };
    site.run(body).map_err(|e| e.within(|| format!("nanquantile({})", x.short())))
}

pub(super) fn mode(x: &Tensor, dim: i64, keepdim: bool, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("mode", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let body = || {
        let inner = inner_calls();
        let line = if x.ndim() == 0 { x.reshape([1])? } else { x.clone() };
        let n = line.shape()[d] as i64;
        if n == 0 {
            return Err(Error::shape("the dim has no elements"));
        }
        let d = d as i64;
        let ordered = line.detach().sort_with(d, false, &super::SortOptions { stable: true })?;
        let (sorted, at) = (&ordered[0], &ordered[1]);
        // An element's position in its run of equal values: its index less the index at which the run begins.
        let mut beside = vec![1; line.ndim()];
        beside[d as usize] = n as usize;
        let place = super::pieces::numbers_beside(x, 0, n, 1, site)?.reshape(beside)?.expand(line.shape())?;
        let first = place.narrow(d, 0, 1)?;
        let began = match n {
            1 => first.copy()?,
            _ => {
                let (later, earlier) = neighbours(sorted, d as usize)?;
                let differs = later.ne(&earlier)?;
                let later = place.narrow(d, 1, n - 1)?.mul(&differs.cast(DType::I64)?)?;
                super::cat(&[first, later], d)?.cummax(d)?.swap_remove(0)
            }
        };
        let most = place.sub(&began)?.argmax_keepdim(d)?;
        let ids = at.gather(d, &most)?;
        drop(inner);
        let values = line.gather(d, &ids)?;
        let mut shape = x.shape().to_vec();
        match (x.ndim(), keepdim) {
            (0, _) => {}
            (_, true) => shape[d as usize] = 1,
            (_, false) => drop(shape.remove(d as usize)),
        }
        Ok(vec![values.reshape(&shape[..])?, ids.reshape(&shape[..])?])
    };
    site.run(body).map_err(|e| e.within(|| format!("mode({})", x.short())))
}
