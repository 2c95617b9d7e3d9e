//! Histograms: how many elements, or how much of their weight, lies in each of some intervals.

use super::differences::neighbours;
use super::{Bound, create, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Reductions";
    /// The number of elements, or the sum of their `weight`, in each of `bins` equal intervals, and the intervals' bounds. `range` is the
    /// lowest and the highest bound; without it the call reads the smallest and the largest element of x, and waits for them. The last
    /// interval includes its upper bound; elements outside do not count. With `density` counts are divided by their sum and interval length.
    "histogram(Tensor x, Int bins=100, *, FloatList range=[], Tensor? weight, Bool density=false) -> (Tensor hist, Tensor bin_edges)" = histogram;
    /// `histogram` with `bins` as the bounds of the intervals, in rising order.
    "histogram(Tensor x, Tensor bins, *, Tensor? weight, Bool density=false) -> (Tensor hist, Tensor bin_edges)" = histogram_within as fn histogram_within;
}

by_name! {
    BY_NAME, "Reductions", ByName;
    /// The histogram of points, the rows of x, in boxes: so many equal intervals of each column. After it the bounds of each column's
    /// intervals. `range` has the lowest and the highest bound of each column; without it they are read.
    "histogramdd(Tensor x, IntList bins, *, FloatList range=[], Tensor? weight, Bool density=false) -> TensorTuple" = |b| boxes(b, 3, |_, column, d, columns| {
        let (bins, range) = (b.ints(1)?, b.floats(2)?);
        let bins = match bins {
            [one] => *one,
            all if all.len() == columns => all[d],
            all => return Err(Error::argument(format!("{} numbers of intervals for {columns} columns", all.len()))),
        };
        let range = match range {
            [] => range,
            all if all.len() == 2 * columns => &all[2 * d..2 * d + 2],
            all => return Err(Error::argument(format!("{} bounds for {columns} columns", all.len())).help("two for each column")),
        };
        equal(column, bins, range, b.site)
    });
    /// `histogramdd` with the bounds of the intervals of each column, in rising order.
    "histogramdd(Tensor x, TensorTuple bins, *, Tensor? weight, Bool density=false) -> TensorTuple" = |b| boxes(b, 2, |x, _, d, columns| {
        let all = b.tensors(1)?;
        match all.get(d).filter(|_| all.len() == columns) {
            Some(edges) if edges.ndim() == 1 && edges.numel() > 1 && edges.dtype() == x.dtype() => Ok(edges.detach()),
            Some(edges) => Err(Error::argument(format!("{} cannot be the bounds of column {d}", edges.short()))
                .help("two numbers at least, in the dtype of x")),
            None => Err(Error::argument(format!("{} lists of bounds for {columns} columns", all.len()))),
        }
    });
}

/// The histogram of the rows of x, whose weight and density are the parameters from `rest` on, by the bounds of each column.
fn boxes(
    b: &Bound,
    rest: usize,
    edges: impl Fn(&Tensor, &Tensor, usize, usize) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let x = b.given(0)?;
    let body = || {
        let _inner = inner_calls();
        of_floats(x)?;
        let Some(columns) = x.shape().last().copied().filter(|n| *n > 0 && x.ndim() > 1) else {
            return Err(Error::shape(format!("x has shape {:?}", x.shape()))
                .help("its last dim holds the coordinates of a point"));
        };
        let points = x.numel() / columns;
        let rows = x.detach().reshape([points, columns])?;
        let weights = match b.tensor(rest) {
            Some(w) if w.numel() != points => {
                return Err(Error::shape(format!("{} weights for {points} points", w.numel())));
            }
            Some(w) => w.detach().reshape([points])?.cast(x.dtype())?,
            None => super::ones_like(&rows.select(1, 0)?)?,
        };
        let mut bounds = vec![];
        let mut at: Option<(Tensor, Tensor)> = None;
        for d in 0..columns {
            let column = rows.select(1, d as i64)?;
            let edges = edges(x, &column, d, columns)?;
            let (ids, inside) = interval(&column, &edges)?;
            at = Some(match at {
                None => (ids, inside),
                Some((all, within)) => (all.mul(edges.numel() as i64 - 1)?.add(&ids)?, within.logical_and(&inside)?),
            });
            bounds.push(edges);
        }
        let Some((ids, inside)) = at else { return Ok(vec![]) };
        let sizes: Vec<usize> = bounds.iter().map(|e| e.numel() - 1).collect();
        let total = sizes.iter().try_fold(1usize, |n, m| n.checked_mul(*m)).filter(|n| i64::try_from(*n).is_ok());
        let Some(total) = total else { return Err(Error::shape(format!("{sizes:?} boxes are too many"))) };
        let mut hist = summed(&weights, &inside, &ids, total as i64)?.reshape(&sizes[..])?;
        if b.bool(rest + 1)? {
            hist = hist.div(&hist.sum(())?)?;
            for (d, edges) in bounds.iter().enumerate() {
                let (later, earlier) = neighbours(edges, 0)?;
                let mut beside = vec![1i64; columns];
                beside[d] = -1;
                hist = hist.div(&later.sub(&earlier)?.reshape(beside)?)?;
            }
        }
        Ok(std::iter::once(hist).chain(bounds).collect())
    };
    b.site.run(body).map_err(|e| e.within(|| format!("histogramdd({})", x.short())))
}

/// The interval of each number of a list, and whether it is inside of all.
fn interval(flat: &Tensor, edges: &Tensor) -> Result<(Tensor, Tensor)> {
    let bins = edges.numel() as i64 - 1;
    let (lo, hi) = (edges.narrow(0, 0, 1)?, edges.narrow(0, bins, 1)?);
    let inside = flat.ge(&lo)?.logical_and(&flat.le(&hi)?)?;
    let options = super::BucketizeOptions { right: true, ..Default::default() };
    Ok((flat.bucketize_with(edges, &options)?.sub(1i64)?.clamp(0i64, bins - 1)?, inside))
}

/// The sums of weights by the number of an interval; what is not inside does not count.
fn summed(weights: &Tensor, inside: &Tensor, ids: &Tensor, bins: i64) -> Result<Tensor> {
    let weights = weights.masked_fill(&inside.logical_not()?, 0.0)?;
    let attrs = smallvec![0i64.into(), bins.into()];
    invoke1(op!("scatter_sum"), &[Some(&weights), Some(ids)], attrs, smallvec![], CallSite::here())
}

/// The histogram of x in the intervals between `edges`, and `edges`.
fn counted(x: &Tensor, edges: &Tensor, weight: Option<&Tensor>, density: bool) -> Result<Vec<Tensor>> {
    let bins = edges.numel() as i64 - 1;
    let flat = x.detach().reshape([x.numel()])?;
    let weights = match weight {
        Some(w) if w.shape() != x.shape() || w.dtype() != x.dtype() => {
            return Err(Error::shape(format!("the weights are {}, x is {}", w.short(), x.short())));
        }
        Some(w) => w.reshape([w.numel()])?,
        None => super::ones_like(&flat)?,
    };
    let (ids, inside) = interval(&flat, edges)?;
    let hist = summed(&weights, &inside, &ids, bins)?;
    let hist = match density {
        true => {
            let (later, earlier) = neighbours(edges, 0)?;
            hist.div(&hist.sum(())?)?.div(&later.sub(&earlier)?)?
        }
        false => hist,
    };
    Ok(vec![hist, edges.clone()])
}

fn of_floats(x: &Tensor) -> Result<()> {
    match x.dtype() {
        DType::F32 | DType::F64 => Ok(()),
        d => Err(Error::dtype(format!("a histogram is of f32 or f64, not of {d}")).help("`cast` the tensor first")),
    }
}

/// The bounds of equal intervals from the lowest to the highest bound, without them of what x has.
fn equal(x: &Tensor, bins: i64, range: &[f64], site: CallSite) -> Result<Tensor> {
    if bins < 1 {
        return Err(Error::argument(format!("{bins} intervals cannot be counted in: expected 1 or more")));
    }
    let (lo, hi) = match range {
        [] if x.numel() > 0 => (x.detach().amin(())?.item()?, x.detach().amax(())?.item()?),
        [] => (0.0, 0.0),
        [lo, hi] => (*lo, *hi),
        other => return Err(Error::argument(format!("the range {other:?} is not a lowest and a highest bound"))),
    };
    let (lo, hi) = if lo == hi { (lo - 0.5, hi + 0.5) } else { (lo, hi) };
    if !(lo.is_finite() && hi.is_finite() && lo < hi) {
        return Err(Error::argument(format!("the interval from {lo} to {hi} is empty")));
    }
    let attrs = smallvec![AttrValue::from(bins.saturating_add(1)), x.dtype().into()];
    let ends = smallvec![Scalar::Float(lo), Scalar::Float(hi)];
    create(op!("linspace"), attrs, ends, &x.whole_target(), site)
}

pub(super) fn histogram(
    x: &Tensor,
    bins: i64,
    range: &[f64],
    weight: Option<&Tensor>,
    density: bool,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let body = || {
        let _inner = inner_calls();
        of_floats(x)?;
        let edges = equal(x, bins, range, site)?;
        counted(x, &edges, weight, density)
    };
    site.run(body).map_err(|e| e.within(|| format!("histogram({}, {bins})", x.short())))
}

pub(super) fn histogram_within(
    x: &Tensor,
    bins: &Tensor,
    weight: Option<&Tensor>,
    density: bool,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let body = || {
        let _inner = inner_calls();
        of_floats(x)?;
        if bins.ndim() != 1 || bins.numel() < 2 || bins.dtype() != x.dtype() {
            return Err(Error::argument(format!("{} cannot be the bounds of {}", bins.short(), x.short()))
                .help("two numbers at least, in the dtype of x"));
        }
        counted(x, &bins.detach(), weight, density)
    };
    site.run(body).map_err(|e| e.within(|| format!("histogram({}, {})", x.short(), bins.short())))
}
