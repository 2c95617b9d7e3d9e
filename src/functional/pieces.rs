//! Functions that cut tensors into pieces, put pieces together, and write a piece into a tensor.

use super::shape::{in_method, narrow};
use super::{TargetSpec, cat, create, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, broadcast_shapes, normalize_dim};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Shapes";
    /// `sections` parts of a dim, of sizes that differ by one at most: the first ones are the larger ones.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let parts = arange(5, Device::Cpu)?.tensor_split(3, 0)?;
    /// assert_eq!(parts.iter().map(|t| t.numel()).collect::<Vec<_>>(), [2, 2, 1]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "tensor_split(Tensor x, Int sections, Int dim=0) -> TensorTuple" = tensor_split;
    /// The parts of a dim between these places. Negative ones count from the end; a part that ends before it begins is empty.
    "tensor_split(Tensor x, IntList indices, Int dim=0) -> TensorTuple" = tensor_split_at as fn tensor_split_at;
    /// Tensors as columns of a matrix: those of one dim become one column each, the others are put side by side.
    "column_stack(TensorTuple xs) -> Tensor" = column_stack;
    /// Tensors behind each other along dim 2; those of fewer dims get dims of size 1.
    "dstack(TensorTuple xs) -> Tensor" = dstack;
    /// A matrix with these matrices along its diagonal and zeros elsewhere. A list is a row, a number a matrix of one element.
    "block_diag(TensorTuple xs) -> Tensor" = block_diag;
    /// All elements as the diagonal of a matrix.
    "diagflat(Tensor x, Int offset=0) -> Tensor" = diagflat;
    /// Dim 1 from the end to the start: columns from right to left.
    "fliplr(Tensor x) -> Tensor" = fliplr;
    /// Dim 0 from the end to the start: rows from the last to the first.
    "flipud(Tensor x) -> Tensor" = flipud;
    /// Tensors repeated up to their common shape.
    "broadcast_tensors(TensorTuple xs) -> TensorTuple" = broadcast_tensors;
    /// x with `src` in the place of its slice `index` along `dim`.
    "select_scatter(Tensor x, Tensor src, Int dim, Int index) -> Tensor" = select_scatter;
    /// x with `src` in the place of its slice `start`, `start + step`, … below `end` along `dim`.
    "slice_scatter(Tensor x, Tensor src, Int dim=0, Int? start, Int? end, Int step=1) -> Tensor" = slice_scatter;
    /// All combinations of an element of each list: the rows of a matrix, the last list fastest. Of one list its elements.
    "cartesian_prod(TensorTuple xs) -> Tensor" = cartesian_prod;
    /// All choices of `r` elements of a list, as rows, in the order of their places; `with_replacement` an element may come again.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let pairs = arange(3, Device::Cpu)?.combinations(2, false)?;
    /// assert_eq!(pairs.to_vec::<i64>()?, [0, 1, 0, 2, 1, 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "combinations(Tensor x, Int r=2, Bool with_replacement=false) -> Tensor" = combinations;
    /// The powers of each element of a list, one row each: `columns` of them (as many as elements unless given), from the highest to
    /// the power 0, or with `increasing` the other way round.
    "vander(Tensor x, Int? columns, Bool increasing=false) -> Tensor" = vander;
    /// Where the elements on and below a diagonal of a matrix are: a row of row numbers and a row of column numbers.
    "tril_indices(Int rows, Int columns, Target target, *, Int offset=0, DataType dtype=i64) -> Tensor" = tril_indices as fn tril_indices;
    /// Where the elements on and above a diagonal of a matrix are: a row of row numbers and a row of column numbers.
    "triu_indices(Int rows, Int columns, Target target, *, Int offset=0, DataType dtype=i64) -> Tensor" = triu_indices as fn triu_indices;
    /// So many parts along dim 1, or along dim 0 of a tensor with one dim.
    "hsplit(Tensor x, Int sections) -> TensorTuple" = hsplit;
    /// The parts along dim 1 between these places, or along dim 0 of a tensor with one dim.
    "hsplit(Tensor x, IntList indices) -> TensorTuple" = hsplit_at as fn hsplit_at;
    /// So many parts along dim 0.
    "vsplit(Tensor x, Int sections) -> TensorTuple" = vsplit;
    /// The parts along dim 0 between these places.
    "vsplit(Tensor x, IntList indices) -> TensorTuple" = vsplit_at as fn vsplit_at;
    /// So many parts along dim 2.
    "dsplit(Tensor x, Int sections) -> TensorTuple" = dsplit;
    /// The parts along dim 2 between these places.
    "dsplit(Tensor x, IntList indices) -> TensorTuple" = dsplit_at as fn dsplit_at;
}

/// The dim and its size.
fn sized(x: &Tensor, dim: i64) -> Result<(usize, usize)> {
    let d = normalize_dim(dim, x.ndim())?;
    let size = x.shape().get(d).copied();
    size.map(|n| (d, n)).ok_or_else(|| Error::shape("a tensor without dims has no parts"))
}

pub(super) fn tensor_split(x: &Tensor, sections: i64, dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("tensor_split", x, site);
    let (d, n) = sized(x, dim).map_err(&named)?;
    // One part more than elements is empty; a million of them help nobody.
    let most = n.max(1 << 20) as i64;
    if !(1..=most).contains(&sections) {
        return Err(named(Error::argument(format!("{n} elements are not {sections} parts"))));
    }
    let parts = sections as usize;
    let (small, larger) = (n / parts, n % parts);
    let start = |i: usize| i * small + i.min(larger);
    (0..parts).map(|i| narrow(x, d as i64, start(i) as i64, (start(i + 1) - start(i)) as i64, site)).collect()
}

pub(super) fn tensor_split_at(x: &Tensor, indices: &[i64], dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("tensor_split", x, site);
    let (d, n) = sized(x, dim).map_err(&named)?;
    let n = n as i64;
    let place = |i: i64| if i < 0 { i.saturating_add(n).max(0) } else { i.min(n) };
    let starts = std::iter::once(0).chain(indices.iter().map(|i| place(*i)));
    let ends = indices.iter().map(|i| place(*i)).chain([n]);
    starts.zip(ends).map(|(a, b)| narrow(x, d as i64, a.min(n), (b - a).max(0), site)).collect()
}

/// The dim along which a tensor is cut: of one with fewer dims there is none.
fn cut_along(name: &str, x: &Tensor, dim: usize, site: CallSite) -> Result<i64> {
    match x.ndim() > dim {
        true => Ok(dim as i64),
        false => Err(in_method(name, x, site)(Error::shape(format!("it takes tensors of at least {} dims", dim + 1)))),
    }
}

/// Parts of equal size: PyTorch's `hsplit` and its kin refuse others.
fn equal_parts(name: &str, x: &Tensor, sections: i64, dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let n = x.shape()[dim as usize];
    if sections < 1 || !n.is_multiple_of(sections as usize) {
        let e = Error::shape(format!("dim {dim} of size {n} has no {sections} parts of equal size"));
        return Err(in_method(name, x, site)(e.help("`tensor_split` gives parts that differ by one element")));
    }
    tensor_split(x, sections, dim, site)
}

/// `hsplit` cuts along dim 1, of a list along dim 0.
fn across(x: &Tensor, site: CallSite) -> Result<i64> {
    cut_along("hsplit", x, 0, site).map(|_| i64::from(x.ndim() > 1))
}

pub(super) fn hsplit(x: &Tensor, sections: i64, site: CallSite) -> Result<Vec<Tensor>> {
    equal_parts("hsplit", x, sections, across(x, site)?, site)
}

pub(super) fn hsplit_at(x: &Tensor, indices: &[i64], site: CallSite) -> Result<Vec<Tensor>> {
    tensor_split_at(x, indices, across(x, site)?, site)
}

pub(super) fn vsplit(x: &Tensor, sections: i64, site: CallSite) -> Result<Vec<Tensor>> {
    cut_along("vsplit", x, 1, site)?;
    equal_parts("vsplit", x, sections, 0, site)
}

pub(super) fn vsplit_at(x: &Tensor, indices: &[i64], site: CallSite) -> Result<Vec<Tensor>> {
    cut_along("vsplit", x, 1, site)?;
    tensor_split_at(x, indices, 0, site)
}

pub(super) fn dsplit(x: &Tensor, sections: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let dim = cut_along("dsplit", x, 2, site)?;
    equal_parts("dsplit", x, sections, dim, site)
}

pub(super) fn dsplit_at(x: &Tensor, indices: &[i64], site: CallSite) -> Result<Vec<Tensor>> {
    let dim = cut_along("dsplit", x, 2, site)?;
    tensor_split_at(x, indices, dim, site)
}

/// A function of several tensors: its body, for errors that name it and the line of its call.
fn of_all<R>(name: &str, xs: &[&Tensor], site: CallSite, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let shapes = || xs.iter().map(|t| t.short()).collect::<Vec<_>>().join(", ");
    let some = match xs {
        [] => Err(Error::argument("expected one tensor at least, got an empty list")),
        _ => site.run(body),
    };
    some.map_err(|e| e.within(|| format!("{name}({})", shapes())).at(site))
}

pub(super) fn column_stack(xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    of_all("column_stack", xs, site, || {
        let inner = inner_calls();
        let column = |t: &&Tensor| if t.ndim() < 2 { t.reshape([t.numel(), 1]) } else { Ok((*t).clone()) };
        let columns: Vec<Tensor> = xs.iter().map(column).collect::<Result<_>>()?;
        drop(inner);
        cat(&columns, 1)
    })
}

pub(super) fn dstack(xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    of_all("dstack", xs, site, || {
        let inner = inner_calls();
        let deep = |t: &&Tensor| match t.shape() {
            [] => t.reshape([1, 1, 1]),
            [n] => t.reshape([1, *n, 1]),
            [m, n] => t.reshape([*m, *n, 1]),
            _ => Ok((*t).clone()),
        };
        let all: Vec<Tensor> = xs.iter().map(deep).collect::<Result<_>>()?;
        drop(inner);
        cat(&all, 2)
    })
}

pub(super) fn block_diag(xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    of_all("block_diag", xs, site, || {
        let inner = inner_calls();
        let block = |t: &&Tensor| match t.shape() {
            [] => t.reshape([1, 1]),
            [n] => t.reshape([1, *n]),
            [_, _] => Ok((*t).clone()),
            shape => Err(Error::shape(format!("{shape:?} is not a matrix"))),
        };
        let blocks: Vec<Tensor> = xs.iter().map(block).collect::<Result<_>>()?;
        let width = blocks.iter().map(|t| t.shape()[1] as i64).sum::<i64>();
        let mut before = 0;
        let mut rows = vec![];
        for b in &blocks {
            let n = b.shape()[1] as i64;
            rows.push(b.pad([before, width - before - n])?);
            before += n;
        }
        drop(inner);
        cat(&rows, 0)
    })
}

pub(super) fn diagflat(x: &Tensor, offset: i64, site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let flat = x.reshape_at(&[x.numel()], site)?;
    drop(inner);
    super::arrange::diag_embed(&flat, offset, site).map_err(|e| e.within(|| format!("diagflat({})", x.short())))
}

/// The order of one dim turned round.
fn flipped(name: &str, x: &Tensor, dim: usize, site: CallSite) -> Result<Tensor> {
    if x.ndim() <= dim {
        return Err(in_method(name, x, site)(Error::shape(format!("dim {dim} is out of range"))));
    }
    site.run(|| x.flip(dim as i64))
}

pub(super) fn fliplr(x: &Tensor, site: CallSite) -> Result<Tensor> {
    flipped("fliplr", x, 1, site)
}

pub(super) fn flipud(x: &Tensor, site: CallSite) -> Result<Tensor> {
    flipped("flipud", x, 0, site)
}

pub(super) fn broadcast_tensors(xs: &[&Tensor], site: CallSite) -> Result<Vec<Tensor>> {
    of_all("broadcast_tensors", xs, site, || {
        let shape = broadcast_shapes(xs.iter().map(|t| t.shape()))?;
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        xs.iter().map(|t| t.expand(&shape[..])).collect()
    })
}

/// A list of numbers where x lies, whole on every rank.
pub(super) fn numbers_beside(x: &Tensor, start: i64, end: i64, step: i64, site: CallSite) -> Result<Tensor> {
    let len =
        if end > start { (end - start).div_euclid(step) + i64::from((end - start).rem_euclid(step) != 0) } else { 0 };
    let attrs = smallvec![len.into(), DType::I64.into()];
    create(op!("arange"), attrs, smallvec![start.into(), step.into()], &x.whole_target(), site)
}

pub(super) fn select_scatter(x: &Tensor, src: &Tensor, dim: i64, index: i64, site: CallSite) -> Result<Tensor> {
    of_all("select_scatter", &[x, src], site, || {
        let (d, n) = sized(x, dim)?;
        let at = if index < 0 { index.saturating_add(n as i64) } else { index };
        if !(0..n as i64).contains(&at) {
            return Err(Error::argument(format!("index {index} is out of range for a dim of {n} elements")));
        }
        let inner = inner_calls();
        let (ids, slice) = (numbers_beside(x, at, at + 1, 1, site)?, src.unsqueeze(d as i64)?);
        drop(inner);
        x.index_copy(d as i64, &ids, &slice)
    })
}

pub(super) fn slice_scatter(
    x: &Tensor,
    src: &Tensor,
    dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    site: CallSite,
) -> Result<Tensor> {
    of_all("slice_scatter", &[x, src], site, || {
        let (d, n) = sized(x, dim)?;
        if step < 1 {
            return Err(Error::argument(format!("the step is {step}")).help("it is at least 1"));
        }
        let n = n as i64;
        let place = |i: i64| if i < 0 { i.saturating_add(n).max(0) } else { i.min(n) };
        let (from, to) = (place(start.unwrap_or(0)), place(end.unwrap_or(n)));
        let inner = inner_calls();
        let ids = numbers_beside(x, from, to.max(from), step.min(n.max(1)), site)?;
        drop(inner);
        x.index_copy(d as i64, &ids, src)
    })
}

pub(super) fn cartesian_prod(xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    of_all("cartesian_prod", xs, site, || {
        if let Some(t) = xs.iter().find(|t| t.ndim() != 1) {
            return Err(Error::shape(format!("expected a tensor of one dim, got {:?}", t.shape())));
        }
        if let [one] = xs {
            return one.copy();
        }
        let inner = inner_calls();
        let grids = super::arrange::meshgrid(xs, "ij", site)?;
        let rows = super::stack(&grids, -1)?;
        drop(inner);
        rows.reshape([rows.shape().iter().rev().skip(1).product(), xs.len()])
    })
}

/// How many choices of r out of n there are; none where that is no number of 128 bits.
fn number_of_choices(n: u128, r: u128, with_replacement: bool) -> Option<u128> {
    let n = match with_replacement {
        true if n == 0 => return Some(u128::from(r == 0)),
        true => n + r - u128::from(r > 0),
        false => n,
    };
    if r > n {
        return Some(0);
    }
    // Of many that are chosen, those that are not.
    let few = r.min(n - r);
    let mut count = 1u128;
    for i in 0..few {
        count = count.checked_mul(n - i)? / (i + 1);
    }
    Some(count)
}

pub(super) fn combinations(x: &Tensor, r: i64, with_replacement: bool, site: CallSite) -> Result<Tensor> {
    of_all("combinations", &[x], site, || {
        if x.ndim() != 1 {
            return Err(Error::shape(format!("expected a tensor of one dim, got {:?}", x.shape())));
        }
        if r < 0 {
            return Err(Error::argument(format!("r is {r}: expected 0 or more")));
        }
        let n = x.numel();
        let chosen = number_of_choices(n as u128, r as u128, with_replacement);
        let places = chosen.and_then(|rows| usize::try_from(rows.checked_mul(r as u128)?).ok());
        let mut rows: Vec<i64> = vec![];
        // A row is as long as all of them where there is one, and is not made where there is none.
        if places.is_none_or(|places| rows.try_reserve_exact(places).is_err()) {
            return Err(Error::memory(format!("out of memory: the choices of {r} out of {n}")));
        }
        let len = if places == Some(0) { 0 } else { r as usize };
        let mut row: Vec<usize> = (0..len).map(|i| if with_replacement { 0 } else { i }).collect();
        // The greatest place that position i of a row can have.
        let last = |i: usize| if with_replacement { n.checked_sub(1) } else { (n + i).checked_sub(r as usize) };
        let mut there = len > 0 && (0..row.len()).all(|i| last(i).is_some_and(|last| row[i] <= last));
        let mut count = 0usize;
        while there {
            rows.extend(row.iter().map(|p| *p as i64));
            count += 1;
            // The last position that can go on does; those behind it begin anew.
            match (0..row.len()).rev().find(|i| last(*i).is_some_and(|last| row[*i] < last)) {
                None => there = false,
                Some(i) => {
                    let next = row[i] + 1;
                    row[i..]
                        .iter_mut()
                        .enumerate()
                        .for_each(|(k, p)| *p = if with_replacement { next } else { next + k });
                }
            }
        }
        if r == 0 {
            return x.narrow(0, 0, 0);
        }
        let inner = inner_calls();
        let places = super::from_vec(rows, [count * r as usize], x.whole_target())?;
        let chosen = x.index_select(0, &places)?;
        drop(inner);
        chosen.reshape([count, r as usize])
    })
}

pub(super) fn vander(x: &Tensor, columns: Option<i64>, increasing: bool, site: CallSite) -> Result<Tensor> {
    of_all("vander", &[x], site, || {
        let [n] = x.shape() else {
            return Err(Error::shape(format!("expected a tensor of one dim, got {:?}", x.shape())));
        };
        let columns = columns.unwrap_or(*n as i64);
        if columns < 0 {
            return Err(Error::argument(format!("the number of columns is {columns}: expected 0 or more")));
        }
        let inner = inner_calls();
        let powers = numbers_beside(x, 0, columns, 1, site)?;
        let powers = if increasing { powers } else { powers.flip(0)? };
        let base = x.unsqueeze(1)?;
        let base = if x.dtype().has_gradients() { base } else { base.cast(DType::I64)? };
        drop(inner);
        base.pow(&powers.cast(base.dtype())?)
    })
}

/// The places of the elements of one triangle of a matrix.
fn triangle(lower: bool, [rows, columns, offset]: [i64; 3], target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    let name = if lower { "tril_indices" } else { "triu_indices" };
    let made = site.run(|| {
        let (Ok(m), Ok(n)) = (usize::try_from(rows), usize::try_from(columns)) else {
            return Err(Error::argument(format!("a matrix cannot have {rows} by {columns} elements")));
        };
        let inner = inner_calls();
        let shape = AttrValue::from(&[m, n][..]);
        let ones =
            create(op!("full"), smallvec![shape, DType::Bool.into()], smallvec![true.into()], target.target(), site)?;
        let kept = if lower { ones.tril(offset)? } else { ones.triu(offset)? };
        let places = kept.nonzero()?.t()?.copy()?.cast(target.dtype_or(DType::I64))?;
        drop(inner);
        match target.target() {
            crate::interpreter::Target::Global(p, sbp) => places.to_global((p, sbp)),
            crate::interpreter::Target::Local(_) => Ok(places),
        }
    });
    made.map_err(|e| e.within(|| format!("{name}({rows}, {columns})")))
}

pub(super) fn tril_indices(
    rows: i64,
    columns: i64,
    target: &TargetSpec,
    offset: i64,
    site: CallSite,
) -> Result<Tensor> {
    triangle(true, [rows, columns, offset], target, site)
}

pub(super) fn triu_indices(
    rows: i64,
    columns: i64,
    target: &TargetSpec,
    offset: i64,
    site: CallSite,
) -> Result<Tensor> {
    triangle(false, [rows, columns, offset], target, site)
}
