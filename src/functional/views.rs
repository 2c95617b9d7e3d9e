//! The same elements under another shape: PyTorch's names beside those of `shape`, and parts of given sizes.

use super::Bound;
use super::shape::{expand, in_method, narrow, reshape, squeeze};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::is_capturing;
use crate::ops::normalize_dim;
use crate::tensor::Tensor;
use oflow_kernels::DType;

functions! {
    FUNCTIONS, "Shapes";
    /// The same elements as another shape, without a copy: a view. One size may be -1.
    ///
    /// # Errors
    /// As `reshape`; and where a local tensor lies in memory in an order of which the shape is no view.
    "view(Tensor x, IntList shape) -> Tensor" = view;
    /// The same bytes as elements of another dtype, without gradient, in the same memory. Where the elements have another size, so has the last dim.
    ///
    /// # Errors
    /// If the last dim does not divide, is split, or its elements do not lie side by side; if a dtype is registered, or the new one is bool; in a graph.
    "view(Tensor x, DataType dtype) -> Tensor" = view_dtype as fn view_dtype;
    /// `view` with the shape of another tensor.
    "view_as(Tensor x, Tensor other) -> Tensor" = view_as;
    /// `reshape` to the shape of another tensor.
    "reshape_as(Tensor x, Tensor other) -> Tensor" = reshape_as;
    /// `expand` to the shape of another tensor.
    "expand_as(Tensor x, Tensor other) -> Tensor" = expand_as;
    /// Dims of size 1 repeated up to a shape.
    "broadcast_to(Tensor x, IntList shape) -> Tensor" = broadcast_to;
    /// All elements as one dim.
    "ravel(Tensor x) -> Tensor" = ravel;
    /// The tensor in memory in row-major order: itself where it is, else a copy.
    "contiguous(Tensor x) -> Tensor" = contiguous;
    /// x summed over the dims along which a tensor of that shape would be repeated to have the shape of x.
    "sum_to_size(Tensor x, IntList size) -> Tensor" = sum_to_size;
    /// Parts of a dim with these sizes, which add up to its size.
    "split(Tensor x, IntList sizes, Int dim=0) -> TensorTuple" = split_sizes as fn split_sizes;
    /// Without those of the dims that have size 1.
    "squeeze(Tensor x, IntList dims) -> Tensor" = squeeze_dims as fn squeeze_dims;
}

by_name! {
    BY_NAME, "Shapes", ByName;
    /// The tensor, with a dim more if it has none.
    "atleast_1d(Tensor x) -> Tensor" = |b| at_least(b.given(0)?, 1, b.site);
    /// The tensor, with dims of size 1 in front up to two.
    "atleast_2d(Tensor x) -> Tensor" = |b| at_least(b.given(0)?, 2, b.site);
    /// The tensor, with dims of size 1 up to three: around a dim, behind two.
    "atleast_3d(Tensor x) -> Tensor" = |b| at_least(b.given(0)?, 3, b.site);
    /// Each of the tensors, with a dim more if it has none.
    "atleast_1d(TensorTuple xs) -> TensorTuple" = |b| all_at_least(b, 1);
    /// Each of the tensors, with dims of size 1 in front up to two.
    "atleast_2d(TensorTuple xs) -> TensorTuple" = |b| all_at_least(b, 2);
    /// Each of the tensors, with dims of size 1 up to three.
    "atleast_3d(TensorTuple xs) -> TensorTuple" = |b| all_at_least(b, 3);
    /// The tensor itself.
    "positive(Tensor x) -> Tensor" = |b| positive(b);
    /// The tensor itself: conjugates are computed at once here.
    "resolve_conj(Tensor x) -> Tensor" = |b| Ok(vec![b.given(0)?.clone()]);
    /// The tensor itself: signs are computed at once here.
    "resolve_neg(Tensor x) -> Tensor" = |b| Ok(vec![b.given(0)?.clone()]);
}

fn positive(b: &Bound) -> Result<Vec<Tensor>> {
    let x = b.given(0)?;
    match x.dtype() {
        oflow_kernels::DType::Bool => Err(in_method("positive", x, b.site)(Error::dtype("a bool has no sign"))),
        _ => Ok(vec![x.clone()]),
    }
}

pub(super) fn view(x: &Tensor, shape: &[i64], site: CallSite) -> Result<Tensor> {
    let made = reshape(x, shape, site)?;
    if x.is_global() || x.numel() == 0 || made.base().is_some() || made.same(x) {
        return Ok(made);
    }
    let e = Error::shape(format!(
        "the shape {:?} needs a copy of the tensor as it lies in memory: expected one of which each dim has one stride",
        made.shape()
    ));
    Err(in_method("view", x, site)(e.help("`reshape` copies where it must")))
}

pub(super) fn view_dtype(x: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    if x.dtype() == dtype {
        return Ok(x.detach());
    }
    if is_capturing() {
        let e = Error::unsupported("a graph has no call that sees bytes as another dtype");
        return Err(in_method("view", x, site)(e.help("call it before the graph, on what the graph is given")));
    }
    // A global value may lie in memory in any order, and in another one on each rank.
    let own = if x.is_global() { Some(site.run(|| x.detach().copy())?) } else { None };
    own.as_ref().unwrap_or(x).bits_as(dtype).map_err(in_method("view", x, site))
}

fn sizes(x: &Tensor) -> Vec<i64> {
    x.shape().iter().map(|n| *n as i64).collect()
}

pub(super) fn view_as(x: &Tensor, other: &Tensor, site: CallSite) -> Result<Tensor> {
    view(x, &sizes(other), site)
}

pub(super) fn reshape_as(x: &Tensor, other: &Tensor, site: CallSite) -> Result<Tensor> {
    reshape(x, &sizes(other), site)
}

pub(super) fn expand_as(x: &Tensor, other: &Tensor, site: CallSite) -> Result<Tensor> {
    expand(x, &sizes(other), site)
}

pub(super) fn broadcast_to(x: &Tensor, shape: &[i64], site: CallSite) -> Result<Tensor> {
    expand(x, shape, site)
}

pub(super) fn ravel(x: &Tensor, site: CallSite) -> Result<Tensor> {
    reshape(x, &[-1], site)
}

pub(super) fn contiguous(x: &Tensor, site: CallSite) -> Result<Tensor> {
    match x.is_contiguous() {
        true => Ok(x.clone()),
        false => site.run(|| x.copy()),
    }
}

pub(super) fn sum_to_size(x: &Tensor, size: &[i64], site: CallSite) -> Result<Tensor> {
    let lead = x.ndim().checked_sub(size.len());
    let fits = |lead: usize| size.iter().zip(&x.shape()[lead..]).all(|(n, m)| *n == 1 || *n == *m as i64);
    let Some(lead) = lead.filter(|lead| fits(*lead)) else {
        let e = Error::shape(format!("{size:?} is not repeated to the shape of the tensor"));
        return Err(in_method("sum_to_size", x, site)(e));
    };
    let one = |d: &usize| *d >= lead && size[d - lead] == 1 && x.shape()[*d] != 1;
    let dims: Vec<i64> = (0..x.ndim()).filter(|d| *d < lead || one(d)).map(|d| d as i64).collect();
    if dims.is_empty() {
        return Ok(x.clone());
    }
    let inner = inner_calls();
    let summed = site.run(|| x.sum(&dims[..]))?;
    drop(inner);
    reshape(&summed, size, site)
}

pub(super) fn split_sizes(x: &Tensor, sizes: &[i64], dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("split", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let n = x.shape().get(d).copied().unwrap_or(0) as i64;
    let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(*size));
    if sizes.iter().any(|size| *size < 0) || sum != Some(n) {
        return Err(named(Error::shape(format!("the sizes {sizes:?} do not add up to {n}, the size of dim {dim}"))));
    }
    let mut start = 0;
    let mut part = |size: &i64| {
        let part = narrow(x, d as i64, start, *size, site);
        start += size;
        Ok(part?.one_of_many())
    };
    sizes.iter().map(&mut part).collect()
}

pub(super) fn squeeze_dims(x: &Tensor, dims: &[i64], site: CallSite) -> Result<Tensor> {
    let named = in_method("squeeze", x, site);
    let mut which: Vec<usize> =
        dims.iter().map(|d| normalize_dim(*d, x.ndim())).collect::<Result<_>>().map_err(&named)?;
    which.sort_unstable();
    if which.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(named(Error::argument(format!("dims {dims:?} name one dim twice"))));
    }
    match which.as_slice() {
        [d] => squeeze(x, *d as i64, site),
        _ => {
            let stays = |d: &usize| !(which.contains(d) && x.shape()[*d] == 1);
            let shape: Vec<usize> = (0..x.ndim()).filter(stays).map(|d| x.shape()[d]).collect();
            x.reshape_at(&shape, site)
        }
    }
}

fn at_least(x: &Tensor, dims: usize, site: CallSite) -> Result<Vec<Tensor>> {
    let s = x.shape();
    let shape = match (s, dims) {
        _ if s.len() >= dims => return Ok(vec![x.clone()]),
        ([n], 3) => vec![1, *n, 1],
        ([m, n], 3) => vec![*m, *n, 1],
        _ => [vec![1; dims - s.len()], s.to_vec()].concat(),
    };
    Ok(vec![x.reshape_at(&shape, site)?])
}

fn all_at_least(b: &Bound, dims: usize) -> Result<Vec<Tensor>> {
    let each = b.tensors(0)?.iter().map(|x| at_least(x, dims, b.site));
    Ok(each.collect::<Result<Vec<_>>>()?.concat())
}
