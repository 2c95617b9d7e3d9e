//! Elements chosen, written and summed by an index for each of them along a dim.

use super::shape::in_method;
use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, broadcast_shapes, normalize_dim, scalar_of_kind};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Choice";
    /// For each index the element of x that it names along `dim`: `y[i][j] = x[ids[i][j]][j]` for dim 0. The indices may be fewer than the
    /// elements of x in other dims too; the first are meant.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// let ids = from_vec(vec![1i64, 1, 0, 1], [2, 2], Device::Cpu)?;
    /// assert_eq!(x.gather(1, &ids)?.to_vec::<f32>()?, [2.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an index is not within 0 and the size of the dim. The kernel finds it, so only ranks that hold the index return the error.
    "gather(Tensor x, Int dim, Tensor ids) -> Tensor" = gather;
    /// `gather` with indices that broadcast with x in the other dims.
    "take_along_dim(Tensor x, Tensor ids, Int dim) -> Tensor" = take_along_dim;
    /// The elements of a dim by index. The dims of `ids` take the place of the dim; a list, as in PyTorch, keeps the rank.
    ///
    /// # Errors
    /// If an index is not within 0 and the size of the dim. The kernel finds it, so only ranks that hold the index return the error.
    "index_select(Tensor x, Int dim, Tensor ids) -> Tensor" = index_select;
    /// x with each element of `src` written at its index along `dim`; of several at one place the last stands.
    "scatter(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor" = scatter;
    /// x with each element of `src` added at its index along `dim`.
    "scatter_add(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor" = scatter_add;
    /// x with `alpha` times each slice of `src` added at its index along `dim`: `ids` is a list.
    "index_add(Tensor x, Int dim, Tensor ids, Tensor src, *, Scalar alpha=1) -> Tensor" = index_add;
    /// x with each slice of `src` written at its index along `dim`: `ids` is a list. Of several at one place the last stands.
    "index_copy(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor" = index_copy;
    /// The largest elements along `dim`, and where they are: among equals the first.
    "max(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)" = max;
    /// The smallest elements along `dim`, and where they are: among equals the first.
    "min(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)" = min;
}

by_name! {
    BY_NAME, "Choice", ByName;
    /// x with one number written at each index along `dim`.
    "scatter(Tensor x, Int dim, Tensor ids, Scalar value) -> Tensor" = |b| {
        let value = Written::Number(b.scalar(3)?);
        Ok(vec![scatter_in("scatter", [b.given(0)?, b.given(2)?], value, b.int(1)?, b.site)?])
    };
    /// The largest element of all.
    "max(Tensor x) -> Tensor" = |b| Ok(vec![all(op!("amax"), b.given(0)?, b.site)?]);
    /// The smallest element of all.
    "min(Tensor x) -> Tensor" = |b| Ok(vec![all(op!("amin"), b.given(0)?, b.site)?]);
}

fn all(op: Result<&'static crate::ops::Op>, x: &Tensor, site: CallSite) -> Result<Tensor> {
    let none: &[i64] = &[];
    invoke1(op, &[Some(x)], smallvec![none.into(), false.into()], smallvec![], site)
}

/// Says of an error what was called.
fn in_call<'a>(name: &'a str, all: &'a [&'a Tensor], site: CallSite) -> impl Fn(Error) -> Error + 'a {
    move |e| e.in_call(|| format!("{name}({})", all.iter().map(|t| t.short()).collect::<Vec<_>>().join(", "))).at(site)
}

/// A tensor without dims as a line.
fn line(x: &Tensor, site: CallSite) -> Result<Tensor> {
    if x.ndim() == 0 { x.reshape_at(&[1], site) } else { Ok(x.clone()) }
}

/// The first elements of each dim, as many as the indices have; of `whole` all.
fn first_of(x: &Tensor, ids: &Tensor, whole: Option<usize>, site: CallSite) -> Result<Tensor> {
    if x.ndim() != ids.ndim() {
        return Err(Error::shape(format!(
            "values {:?} and indices {:?} must have as many dims",
            x.shape(),
            ids.shape()
        )));
    }
    let mut y = x.clone();
    for d in (0..x.ndim()).filter(|d| Some(*d) != whole) {
        let (n, have) = (ids.shape()[d], x.shape()[d]);
        if n > have {
            return Err(Error::shape(format!("dim {d} has {n} indices for {have} elements")));
        }
        if n < have {
            y = super::shape::narrow(&y, d as i64, 0, n as i64, site)?;
        }
    }
    Ok(y)
}

/// Checks that indices have as many dims, and gives the dim.
fn dim_of(x: &Tensor, ids: &Tensor, dim: i64) -> Result<usize> {
    if x.ndim().max(1) != ids.ndim().max(1) {
        return Err(Error::shape(format!("indices of {} dims do not choose from {}", ids.ndim(), x.ndim()))
            .help("`take_along_dim` broadcasts; `index_select` takes a list of indices"));
    }
    normalize_dim(dim, x.ndim())
}

pub(super) fn gather(x: &Tensor, dim: i64, ids: &Tensor, site: CallSite) -> Result<Tensor> {
    let tensors = [x, ids];
    let named = in_call("gather", &tensors, site);
    let d = dim_of(x, ids, dim).map_err(&named)?;
    let inner = inner_calls();
    let (table, list) = (line(x, site)?, line(ids, site)?);
    let table = first_of(&table, &list, Some(d), site).map_err(&named)?;
    if ids.ndim() == 0 {
        let y = invoke1(op!("gather"), &[Some(&table), Some(&list)], smallvec![d.into()], smallvec![], site)?;
        drop(inner);
        return Ok(y.reshape_at(&[], site)?.into_result());
    }
    drop(inner);
    invoke1(op!("gather"), &[Some(&table), Some(&list)], smallvec![d.into()], smallvec![], site)
}

pub(super) fn take_along_dim(x: &Tensor, ids: &Tensor, dim: i64, site: CallSite) -> Result<Tensor> {
    let tensors = [x, ids];
    let named = in_call("take_along_dim", &tensors, site);
    let d = dim_of(x, ids, dim).map_err(&named)?;
    let inner = inner_calls();
    let apart =
        |t: &Tensor| -> Vec<usize> { t.shape().iter().enumerate().map(|(i, n)| if i == d { 1 } else { *n }).collect() };
    let both = broadcast_shapes([&apart(x)[..], &apart(ids)[..]]).map_err(&named)?;
    let wide = |t: &Tensor| -> Result<Tensor> {
        let mut shape: Vec<i64> = both.iter().map(|n| *n as i64).collect();
        if let (Some(n), Some(own)) = (shape.get_mut(d), t.shape().get(d)) {
            *n = *own as i64;
        }
        super::shape::expand(t, &shape, site)
    };
    let (x, ids) = (wide(x)?, wide(ids)?);
    // Negative ones count from the end.
    let size = AttrValue::from(x.shape().get(d).copied().unwrap_or(1));
    let ids = invoke1(op!("wrap_index"), &[Some(&ids)], smallvec![size, d.into()], smallvec![], site)?;
    drop(inner);
    gather(&x, d as i64, &ids, site)
}

pub(super) fn scatter(x: &Tensor, dim: i64, ids: &Tensor, src: &Tensor, site: CallSite) -> Result<Tensor> {
    scatter_in("scatter", [x, ids], Written::Tensor(src), dim, site)
}

/// Source of the values that are written by index.
enum Written<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

/// Writes by index, for the function of that name.
fn scatter_in(name: &str, [x, ids]: [&Tensor; 2], from: Written<'_>, dim: i64, site: CallSite) -> Result<Tensor> {
    let mut tensors = vec![x, ids];
    if let Written::Tensor(src) = from {
        tensors.push(src);
    }
    let named = in_call(name, &tensors, site);
    let d = dim_of(x, ids, dim).map_err(&named)?;
    let inner = inner_calls();
    let (table, list) = (line(x, site)?, line(ids, site)?);
    let src = match from {
        Written::Tensor(src) => Some(first_of(&line(src, site)?, &list, None, site).map_err(&named)?),
        Written::Number(_) => None,
    };
    let part = first_of(&table, &list, Some(d), site).map_err(&named)?;
    let whole = part.shape() == x.shape();
    let made = match from {
        Written::Tensor(_) => {
            let inputs = [Some(&part), Some(&list), src.as_ref()];
            invoke1(op!("scatter_into"), &inputs, smallvec![d.into()], smallvec![], site)
        }
        Written::Number(s) => {
            let inputs = [Some(&part), Some(&list)];
            invoke1(op!("scatter_fill"), &inputs, smallvec![d.into()], smallvec![s], site)
        }
    };
    // The op has a name of its own.
    let y = made.map_err(|e| e.within(|| name.into()))?;
    if whole {
        return Ok(y);
    }
    // The rest of x, dim by dim from the last.
    let y = completed(&table, y, site)?;
    drop(inner);
    if x.ndim() == 0 { Ok(y.reshape_at(&[], site)?.into_result()) } else { Ok(y) }
}

/// A tensor that lies at the front of another one in each dim, followed by the rest of that.
fn completed(x: &Tensor, front: Tensor, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let mut y = front;
    for d in (0..x.ndim()).rev() {
        let (have, want) = (y.shape()[d], x.shape()[d]);
        if have == want {
            continue;
        }
        // In the dims before this one only the front is there yet.
        let mut rest = super::shape::narrow(x, d as i64, have as i64, (want - have) as i64, site)?;
        for before in 0..d {
            rest = super::shape::narrow(&rest, before as i64, 0, y.shape()[before] as i64, site)?;
        }
        y = crate::functional::cat(&[&y, &rest], d as i64)?;
    }
    Ok(y)
}

pub(super) fn scatter_add(x: &Tensor, dim: i64, ids: &Tensor, src: &Tensor, site: CallSite) -> Result<Tensor> {
    scatter_add_in("scatter_add", [x, ids, src], dim, site)
}

/// Checks that what is added has the dtype of what it is added to.
fn same_dtype(x: &Tensor, src: &Tensor) -> Result<()> {
    match src.dtype() == x.dtype() {
        true => Ok(()),
        false => Err(Error::dtype(format!("x is {}, the values are {}", x.dtype(), src.dtype()))),
    }
}

/// Adds by index, for the function of that name.
fn scatter_add_in(name: &str, [x, ids, src]: [&Tensor; 3], dim: i64, site: CallSite) -> Result<Tensor> {
    let tensors = [x, ids, src];
    let named = in_call(name, &tensors, site);
    let d = dim_of(x, ids, dim).map_err(&named)?;
    same_dtype(x, src).map_err(&named)?;
    let inner = inner_calls();
    if x.dtype() == DType::Bool {
        // True where anything true is added.
        let count = |t: &Tensor| t.cast_at(DType::I64, site);
        let sums = scatter_add_in(name, [&count(x)?, ids, &count(src)?], dim, site)?;
        drop(inner);
        return sums.cast_at(DType::Bool, site);
    }
    let (table, list, src) = (line(x, site)?, line(ids, site)?, line(src, site)?);
    let src = first_of(&src, &list, None, site).map_err(&named)?;
    first_of(&table, &list, Some(d), site).map_err(&named)?;
    let rows = table.shape()[d];
    let mut sums =
        invoke1(op!("scatter_sum"), &[Some(&src), Some(&list)], smallvec![d.into(), rows.into()], smallvec![], site)?;
    for e in 0..table.ndim() {
        // Zeros behind, where there are fewer indices than elements.
        let size = table.shape()[e];
        if sums.shape()[e] < size {
            let attrs = smallvec![e.into(), 0i64.into(), 1i64.into(), size.into()];
            sums = invoke1(op!("slice_grad"), &[Some(&sums)], attrs, smallvec![], site)?;
        }
    }
    let sums = if x.ndim() == 0 { sums.reshape_at(&[], site)? } else { sums };
    drop(inner);
    invoke1(op!("add"), &[Some(x), Some(&sums)], smallvec![], smallvec![], site)
}

/// Tensors without dims as lists of one element.
fn lines<const N: usize>(all: [&Tensor; N], site: CallSite) -> Result<Vec<Tensor>> {
    all.into_iter().map(|t| line(t, site)).collect()
}

/// Checks that `ids` is a list with an index for each slice of `src` along `dim`, and gives the dim.
fn slices_along(x: &Tensor, dim: i64, ids: &Tensor, src: &Tensor) -> Result<usize> {
    let d = normalize_dim(dim, x.ndim())?;
    if ids.ndim() != 1 || x.ndim() == 0 {
        return Err(Error::shape("it takes a list of indices and a tensor with dims"));
    }
    let fits = |e: usize| src.shape()[e] == if e == d { ids.shape()[0] } else { x.shape()[e] };
    if src.ndim() != x.ndim() || !(0..x.ndim()).all(fits) {
        return Err(Error::shape(format!("slices {:?} do not go into {:?} along dim {d}", src.shape(), x.shape())));
    }
    Ok(d)
}

/// A list of indices as indices for all elements of the slices of `src` along dim `d`.
fn spread(ids: &Tensor, src: &Tensor, d: usize, site: CallSite) -> Result<Tensor> {
    let mut apart = vec![1; src.ndim()];
    apart[d] = ids.shape()[0];
    let shape: Vec<i64> = src.shape().iter().map(|n| *n as i64).collect();
    super::shape::expand(&ids.reshape_at(&apart, site)?, &shape, site)
}

pub(super) fn index_select(x: &Tensor, dim: i64, ids: &Tensor, site: CallSite) -> Result<Tensor> {
    let chosen = |x: &Tensor, ids: &Tensor| {
        invoke1(op!("index_select"), &[Some(x), Some(ids)], smallvec![dim.into()], smallvec![], site)
    };
    if x.ndim() > 0 || ids.numel() != 1 {
        return chosen(x, ids);
    }
    let inner = inner_calls();
    let y = chosen(&line(x, site)?, &ids.reshape_at(&[1], site)?.into_result())?;
    drop(inner);
    y.reshape_at(&[], site)
}

pub(super) fn index_add(
    x: &Tensor,
    dim: i64,
    ids: &Tensor,
    src: &Tensor,
    alpha: Scalar,
    site: CallSite,
) -> Result<Tensor> {
    let tensors = [x, ids, src];
    let named = in_call("index_add", &tensors, site);
    let inner = inner_calls();
    if x.ndim() == 0 {
        let all = lines(tensors, site)?;
        return index_add(&all[0], dim, &all[1], &all[2], alpha, site)?.reshape_at(&[], site);
    }
    let d = slices_along(x, dim, ids, src).map_err(&named)?;
    same_dtype(x, src).map_err(&named)?;
    scalar_of_kind("alpha", alpha, [x, src].map(Tensor::dtype)).map_err(&named)?;
    let src = match alpha.to_complex() == (1.0, 0.0) {
        true => src.clone(),
        false => invoke1(op!("mul_scalar"), &[Some(src)], smallvec![], smallvec![alpha], site)?,
    };
    if !x.dtype().is_float() {
        let ids = spread(ids, &src, d, site).map_err(&named)?;
        drop(inner);
        return scatter_add_in("index_add", [x, &ids, &src], d as i64, site);
    }
    // Whole rows are added, so the indexed dim comes first.
    let moved = |t: &Tensor, from: usize, to: usize| match from == to {
        true => Ok(t.clone()),
        false => super::arrange::movedim(t, &[from as i64], &[to as i64], site),
    };
    let (rows, src) = (AttrValue::from(x.shape()[d]), moved(&src, d, 0)?);
    let sums = invoke1(op!("index_sum"), &[Some(&src), Some(ids)], smallvec![rows], smallvec![], site)?;
    let sums = moved(&sums, 0, d)?;
    drop(inner);
    invoke1(op!("add"), &[Some(x), Some(&sums)], smallvec![], smallvec![], site)
}

pub(super) fn index_copy(x: &Tensor, dim: i64, ids: &Tensor, src: &Tensor, site: CallSite) -> Result<Tensor> {
    let tensors = [x, ids, src];
    let named = in_call("index_copy", &tensors, site);
    let inner = inner_calls();
    if x.ndim() == 0 {
        let all = lines(tensors, site)?;
        return index_copy(&all[0], dim, &all[1], &all[2], site)?.reshape_at(&[], site);
    }
    let d = slices_along(x, dim, ids, src).map_err(&named)?;
    if src.numel() == 0 {
        // Slices without elements: no index is left when they are spread over these.
        let size = x.shape().get(d).copied().unwrap_or(1);
        super::count::check_within(ids, size, "an index names a slice of x", site)?;
    }
    let ids = spread(ids, src, d, site).map_err(&named)?;
    drop(inner);
    scatter_in("index_copy", [x, &ids], Written::Tensor(src), d as i64, site)
}

/// The index of the extreme element of each line, and the elements.
fn extreme(x: &Tensor, dim: i64, keepdim: bool, largest: bool, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method(if largest { "max" } else { "min" }, x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let op = if largest { op!("argmax") } else { op!("argmin") };
    let at = invoke1(op, &[Some(x)], smallvec![dim.into(), true.into()], smallvec![], site)?;
    let values = gather(x, d as i64, &at, site)?;
    if keepdim || x.ndim() == 0 {
        return Ok(vec![values, at]);
    }
    let mut shape = x.shape().to_vec();
    shape.remove(d);
    Ok(vec![values.reshape_at(&shape, site)?.into_result(), at.reshape_at(&shape, site)?.into_result()])
}

pub(super) fn max(x: &Tensor, dim: i64, keepdim: bool, site: CallSite) -> Result<Vec<Tensor>> {
    extreme(x, dim, keepdim, true, site)
}

pub(super) fn min(x: &Tensor, dim: i64, keepdim: bool, site: CallSite) -> Result<Vec<Tensor>> {
    extreme(x, dim, keepdim, false, site)
}
