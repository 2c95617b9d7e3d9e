//! Functions that repeat, roll and regroup elements, and that take diagonals: reshapes, slices and concatenations.

use super::shape::in_method;
use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::functional::cat;
use crate::ops::normalize_dim;
use crate::tensor::Tensor;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Shapes";
    /// The dims `source` at the places `destination`; the others keep their order.
    ///
    /// # Errors
    /// If a dim is named twice, or the lists differ in length.
    "movedim(Tensor x, IntList source, IntList destination) -> Tensor" = movedim;
    /// The dim `dim` as several dims of these sizes. One size may be -1: it follows from the others.
    "unflatten(Tensor x, Int dim, IntList sizes) -> Tensor" = unflatten;
    /// The tensor repeated along each dim. More counts than dims make new dims in front.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(2, Device::Cpu)?;
    /// assert_eq!(x.repeat([2, 2])?.to_vec::<i64>()?, [0, 1, 0, 1, 0, 1, 0, 1]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// On fewer counts than dims, or a negative one.
    "repeat(Tensor x, IntList repeats) -> Tensor" = repeat;
    /// `repeat`, with 1 for the leading dims that have no count.
    "tile(Tensor x, IntList dims) -> Tensor" = tile;
    /// Each element `repeats` times in a row along `dim`; without `dim`, of the flattened tensor.
    "repeat_interleave(Tensor x, Int repeats, *, Int? dim) -> Tensor" = repeat_interleave;
    /// The slices along `dim`, without that dim.
    "unbind(Tensor x, Int dim=0) -> TensorTuple" = unbind;
    /// Elements moved by `shifts` places along `dims`; what leaves at the end comes in at the front. Without dims, the flattened tensor
    /// is rolled and keeps its shape.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(4, Device::Cpu)?;
    /// assert_eq!(x.roll(1, ())?.to_vec::<i64>()?, [3, 0, 1, 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "roll(Tensor x, IntList shifts, IntList dims=[]) -> Tensor" = roll;
    /// The plane of two dims turned by `k` quarters, from the first towards the second.
    "rot90(Tensor x, Int k=1, IntList dims=[0, 1]) -> Tensor" = rot90;
    /// Tensors of one dim as coordinates of a grid: output i varies along dim i. With the indexing `xy`, the first two dims are
    /// exchanged.
    "meshgrid(TensorTuple xs, *, String indexing=\"ij\") -> TensorTuple" = meshgrid;
    /// The last dim as the diagonal of the two last dims of the result, with zeros elsewhere.
    "diag_embed(Tensor x, Int offset=0) -> Tensor" = diag_embed;
    /// The diagonal of a matrix, or the matrix that has a vector on its diagonal.
    "diag(Tensor x, Int diagonal=0) -> Tensor" = diag;
    /// The sum of the diagonal of a matrix.
    "trace(Tensor x) -> Tensor" = trace;
    /// Tensors side by side: along dim 1, or dim 0 where they have one dim.
    "hstack(TensorTuple xs) -> Tensor" = hstack;
    /// Tensors as rows: along dim 0; tensors of one dim are rows of a matrix.
    "vstack(TensorTuple xs) -> Tensor" = vstack;
}

/// A size or a count; negative ones are refused.
fn count(n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::argument(format!("{n} is negative")))
}

pub(super) fn movedim(x: &Tensor, source: &[i64], destination: &[i64], site: CallSite) -> Result<Tensor> {
    let named = in_method("movedim", x, site);
    if source.len() != destination.len() {
        return Err(named(Error::argument(format!("{} dims do not go to {} places", source.len(), destination.len()))));
    }
    let dims = |list: &[i64]| list.iter().map(|d| normalize_dim(*d, x.ndim())).collect::<Result<Vec<usize>>>();
    let (from, to) = (dims(source).map_err(&named)?, dims(destination).map_err(&named)?);
    let twice = |list: &[usize]| (1..list.len()).any(|i| list[..i].contains(&list[i]));
    if twice(&from) || twice(&to) {
        return Err(named(Error::argument(format!("{source:?} to {destination:?} names a dim twice"))));
    }
    let mut rest = (0..x.ndim()).filter(|d| !from.contains(d));
    let place = |d| to.iter().position(|t| *t == d).map(|i| from[i]);
    let order: Vec<i64> = (0..x.ndim()).filter_map(|d| place(d).or_else(|| rest.next())).map(|d| d as i64).collect();
    let _scope = site.scope();
    x.permute(order)
}

pub(super) fn unflatten(x: &Tensor, dim: i64, sizes: &[i64], site: CallSite) -> Result<Tensor> {
    let named = in_method("unflatten", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let Some(n) = x.shape().get(d).copied() else {
        return Err(named(Error::shape("a tensor without dims has none to unflatten")));
    };
    let known: i64 = sizes.iter().filter(|s| **s != -1).fold(1, |n, s| n.saturating_mul(*s));
    let free = sizes.iter().filter(|s| **s == -1).count();
    let fits = match free {
        0 => known == n as i64,
        1 => known > 0 && n as i64 % known == 0,
        _ => false,
    };
    if !fits || sizes.iter().any(|s| *s < -1) {
        return Err(named(Error::shape(format!("dim {dim} has {n} elements, which are not {sizes:?}"))));
    }
    let sizes = sizes.iter().map(|s| if *s == -1 { n / known as usize } else { *s as usize });
    let mut shape = x.shape().to_vec();
    shape.splice(d..=d, sizes);
    x.reshape_at(&shape, site)
}

pub(super) fn repeat(x: &Tensor, repeats: &[i64], site: CallSite) -> Result<Tensor> {
    repeated(x, repeats, "repeat", site)
}

pub(super) fn tile(x: &Tensor, dims: &[i64], site: CallSite) -> Result<Tensor> {
    let lead = x.ndim().saturating_sub(dims.len());
    let all: Vec<i64> = std::iter::repeat_n(1, lead).chain(dims.iter().copied()).collect();
    repeated(x, &all, "tile", site)
}

/// Each dim becomes two, of which the first is expanded; dims that are not repeated stay one.
fn repeated(x: &Tensor, repeats: &[i64], method: &str, site: CallSite) -> Result<Tensor> {
    let named = in_method(method, x, site);
    if repeats.len() < x.ndim() {
        let e = Error::argument(format!("{} counts for {} dims", repeats.len(), x.ndim()));
        return Err(named(e.help("give a count for each dim; 1 leaves it as it is")));
    }
    let counts: Vec<usize> = repeats.iter().map(|n| count(*n)).collect::<Result<_>>().map_err(&named)?;
    let lead = counts.len() - x.ndim();
    let (mut apart, mut wide, mut shape) = (vec![], vec![], vec![]);
    for (d, n) in counts.iter().enumerate() {
        let size = if d < lead { 1 } else { x.shape()[d - lead] };
        if *n != 1 {
            apart.push(1);
            wide.push(*n as i64);
        }
        apart.push(size);
        wide.push(size as i64);
        let whole =
            n.checked_mul(size).ok_or_else(|| Error::shape(format!("{n} times {size} elements cannot be addressed")));
        shape.push(whole.map_err(&named)?);
    }
    if counts.iter().all(|n| *n == 1) {
        return reshaped_copy(x, &shape, site);
    }
    let inner = inner_calls();
    let wide = {
        let _scope = site.scope();
        x.reshape_at(&apart, site)?.expand(wide)?
    };
    drop(inner);
    Ok(wide.reshape_at(&shape, site)?.into_result())
}

pub(super) fn repeat_interleave(x: &Tensor, repeats: i64, dim: Option<i64>, site: CallSite) -> Result<Tensor> {
    let named = in_method("repeat_interleave", x, site);
    let n = count(repeats).map_err(&named)?;
    let inner = inner_calls();
    let flat = if dim.is_none() { x.reshape_at(&[x.numel()], site)? } else { x.clone() };
    let d = normalize_dim(dim.unwrap_or(0), flat.ndim()).map_err(&named)?;
    let (mut apart, mut shape) = (flat.shape().to_vec(), flat.shape().to_vec());
    let Some(size) = shape.get_mut(d) else {
        return Err(named(Error::shape("a tensor without dims has none to repeat along")).help("leave `dim` out"));
    };
    *size = size.checked_mul(n).ok_or_else(|| named(Error::shape("as many elements cannot be addressed")))?;
    if n == 1 {
        drop(inner);
        return reshaped_copy(x, &shape, site);
    }
    apart.insert(d + 1, 1);
    let mut wide: Vec<i64> = apart.iter().map(|n| *n as i64).collect();
    wide[d + 1] = n as i64;
    let wide = {
        let _scope = site.scope();
        flat.reshape_at(&apart, site)?.expand(wide)?
    };
    drop(inner);
    Ok(wide.reshape_at(&shape, site)?.into_result())
}

pub(super) fn unbind(x: &Tensor, dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("unbind", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let Some(n) = x.shape().get(d) else {
        return Err(named(Error::shape("a tensor without dims has no slices")));
    };
    super::shape::few_enough(*n).map_err(&named)?;
    (0..*n).map(|i| Ok(super::shape::select(x, d as i64, i as i64, site)?.one_of_many())).collect()
}

pub(super) fn roll(x: &Tensor, shifts: &[i64], dims: &[i64], site: CallSite) -> Result<Tensor> {
    let named = in_method("roll", x, site);
    if dims.is_empty() {
        let [shift] = shifts else {
            return Err(named(Error::argument(format!("{} shifts for the flattened tensor", shifts.len())))
                .help("give one shift, or as many dims as shifts"));
        };
        let inner = inner_calls();
        let flat = x.reshape_at(&[x.numel()], site)?;
        let rolled = rolled_along(&flat, *shift, 0, site)?;
        drop(inner);
        return Ok(rolled.reshape_at(x.shape(), site)?.into_result());
    }
    if shifts.len() != dims.len() {
        return Err(named(Error::argument(format!("{} shifts for {} dims", shifts.len(), dims.len()))));
    }
    if x.ndim() == 0 {
        let e = Error::argument(format!("expected no dims for a tensor without dims, not {dims:?}"));
        return Err(named(e).help("leave `dims` out"));
    }
    let mut y = x.clone();
    for (i, (shift, dim)) in shifts.iter().zip(dims).enumerate() {
        let d = normalize_dim(*dim, x.ndim()).map_err(&named)?;
        let _inner = (i + 1 < dims.len()).then(inner_calls);
        y = rolled_along(&y, *shift, d, site)?;
    }
    Ok(y)
}

/// The elements in another shape and in new memory.
fn reshaped_copy(x: &Tensor, shape: &[usize], site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let view = x.reshape_at(shape, site)?;
    drop(inner);
    copied(&view, site)
}

pub(super) fn copied(x: &Tensor, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    x.copy()
}

fn rolled_along(x: &Tensor, shift: i64, dim: usize, site: CallSite) -> Result<Tensor> {
    invoke1(op!("roll_along"), &[Some(x)], smallvec![(dim as i64).into(), shift.into()], smallvec![], site)
}

pub(super) fn rot90(x: &Tensor, k: i64, dims: &[i64], site: CallSite) -> Result<Tensor> {
    let named = in_method("rot90", x, site);
    let dim = |d: &i64| normalize_dim(*d, x.ndim());
    let (a, b) = match dims {
        [a, b] if x.ndim() >= 2 => (dim(a).map_err(&named)?, dim(b).map_err(&named)?),
        _ => return Err(named(Error::argument(format!("expected two dims of the tensor, got {dims:?}")))),
    };
    if a == b {
        return Err(named(Error::argument("a plane has two different dims")));
    }
    let _scope = site.scope();
    let (a, b) = (a as i64, b as i64);
    let inner = inner_calls();
    match k.rem_euclid(4) {
        0 => {
            drop(inner);
            x.copy()
        }
        1 => {
            let y = x.flip(b)?;
            drop(inner);
            Ok(y.transpose(a, b)?.into_result())
        }
        2 => {
            drop(inner);
            x.flip([a, b])
        }
        _ => {
            let y = x.flip(a)?;
            drop(inner);
            Ok(y.transpose(a, b)?.into_result())
        }
    }
}

pub(super) fn meshgrid(xs: &[&Tensor], indexing: &str, site: CallSite) -> Result<Vec<Tensor>> {
    let refused = |e: Error| e.in_call(|| format!("meshgrid({} tensors)", xs.len())).at(site);
    if let Some(x) = xs.iter().find(|x| x.ndim() > 1) {
        return Err(refused(Error::shape(format!("{} has more than one dim", x.short()))));
    }
    let exchanged = match indexing {
        "ij" => false,
        "xy" => xs.len() >= 2,
        other => return Err(refused(Error::argument(format!("the indexing is ij or xy, not '{other}'")))),
    };
    let place = |i: usize| match i {
        0 | 1 if exchanged => 1 - i,
        i => i,
    };
    let mut shape = vec![1i64; xs.len()];
    xs.iter().enumerate().for_each(|(i, x)| shape[place(i)] = x.numel() as i64);
    let each = |(i, x): (usize, &&Tensor)| {
        let mut apart = vec![1usize; xs.len()];
        apart[place(i)] = x.numel();
        let inner = inner_calls();
        let y = x.reshape_at(&apart, site)?;
        drop(inner);
        let _scope = site.scope();
        Ok(y.expand(&shape)?.one_of_many())
    };
    xs.iter().enumerate().map(each).collect()
}

pub(super) fn diag_embed(x: &Tensor, offset: i64, site: CallSite) -> Result<Tensor> {
    embedded(x, offset, "diag_embed", site)
}

/// In row-major order the elements of a diagonal stand `n + 1` places apart.
fn embedded(x: &Tensor, offset: i64, method: &str, site: CallSite) -> Result<Tensor> {
    let named = in_method(method, x, site);
    let Some((len, lead)) = x.shape().split_last() else {
        return Err(named(Error::shape("a tensor without dims has no diagonal")));
    };
    let away = usize::try_from(offset.unsigned_abs()).ok();
    let n = away.and_then(|o| o.checked_add(*len)).filter(|n| n.checked_mul(n + 1).is_some());
    let n = n.ok_or_else(|| named(Error::shape(format!("with the offset {offset} it cannot be addressed"))))?;
    let first = match (*len, offset < 0) {
        (0, _) => 0,
        (_, true) => (n - len) * n,
        (_, false) => n - len,
    };
    let inner = inner_calls();
    let attrs = smallvec![lead.len().into(), first.into(), (n + 1).into(), (n * n).into()];
    let flat = invoke1(op!("slice_grad"), &[Some(x)], attrs, smallvec![], site)?;
    drop(inner);
    Ok(flat.reshape_at(&[lead, &[n, n]].concat(), site)?.into_result())
}

pub(super) fn diag(x: &Tensor, diagonal: i64, site: CallSite) -> Result<Tensor> {
    match x.ndim() {
        1 => embedded(x, diagonal, "diag", site),
        2 => {
            let inner = inner_calls();
            let view = diagonal_at(x, diagonal, site)?;
            drop(inner);
            copied(&view, site)
        }
        _ => Err(in_method("diag", x, site)(Error::shape("it takes a vector or a matrix"))
            .help("`diagonal` and `diag_embed` take more dims")),
    }
}

/// Of the first two dims.
fn diagonal_at(x: &Tensor, offset: i64, site: CallSite) -> Result<Tensor> {
    invoke1(op!("diagonal"), &[Some(x)], smallvec![offset.into(), 0i64.into(), 1i64.into()], smallvec![], site)
}

pub(super) fn trace(x: &Tensor, site: CallSite) -> Result<Tensor> {
    if x.ndim() != 2 {
        return Err(in_method("trace", x, site)(Error::shape("it takes a matrix")).help("`diagonal` takes more dims"));
    }
    let inner = inner_calls();
    let diagonal = diagonal_at(x, 0, site)?;
    drop(inner);
    let _scope = site.scope();
    diagonal.sum(())
}

pub(super) fn hstack(xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    let rows = at_least(xs, 1, "hstack", site)?;
    let dim = if rows[0].ndim() == 1 { 0 } else { 1 };
    let _scope = site.scope();
    cat(&rows.iter().collect::<Vec<_>>(), dim)
}

pub(super) fn vstack(xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    let rows = at_least(xs, 2, "vstack", site)?;
    let _scope = site.scope();
    cat(&rows.iter().collect::<Vec<_>>(), 0)
}

/// Tensors with that many dims at least: new ones stand in front.
fn at_least(xs: &[&Tensor], ndim: usize, method: &str, site: CallSite) -> Result<Vec<Tensor>> {
    if xs.is_empty() {
        return Err(Error::argument("no tensor to stack").in_call(|| format!("{method}()")).at(site));
    }
    let _inner = inner_calls();
    let each = |x: &&Tensor| {
        let mut shape = vec![1; ndim.saturating_sub(x.ndim())];
        shape.extend(x.shape());
        if shape.len() == x.ndim() { Ok((*x).clone()) } else { x.reshape_at(&shape, site) }
    };
    xs.iter().map(each).collect()
}
