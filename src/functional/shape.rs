//! Functions that move or rename elements.

use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, normalize_dim, promoted};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// Resolves one `-1` of a shape from the number of elements.
fn resolve(shape: &[i64], n: usize) -> Result<Vec<usize>> {
    let unknown = shape.iter().filter(|s| **s == -1).count();
    if unknown > 1 || shape.iter().any(|s| *s < -1) {
        return Err(Error::shape(format!("{shape:?} is not a shape")).help("at most one size may be -1"));
    }
    let sizes: Vec<usize> = shape.iter().filter_map(|s| usize::try_from(*s).ok()).collect();
    let known = sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s));
    let rest = match (unknown, known) {
        (1, Some(k)) if k > 0 && n.is_multiple_of(k) => n / k,
        (1, _) => return Err(Error::shape(format!("{n} elements do not fit the shape {shape:?}"))),
        _ => 0,
    };
    Ok(shape.iter().map(|s| usize::try_from(*s).unwrap_or(rest)).collect())
}

/// Says of an error raised before an op was called which method of which tensor it is about, and the caller's line.
pub(super) fn in_method(name: &str, of: &Tensor, site: CallSite) -> impl Fn(Error) -> Error {
    move |e| e.in_call(|| format!("{name}({})", of.short())).at(site)
}

functions! {
    FUNCTIONS, "Shapes";
    /// The same elements, in row-major order, as another shape. One size may be -1: it follows from the others.
    "reshape(Tensor x, IntList shape) -> Tensor" = reshape;
    /// The dims from `start` to `end`, inclusive, as one. Negative dims count from the end.
    "flatten(Tensor x, Int start=0, Int end=-1) -> Tensor" = flatten;
    /// Exchanges two dims.
    "transpose(Tensor x, Int dim0, Int dim1) -> Tensor" = transpose;
    /// Exchanges the last two dims: the transpose of a matrix.
    "t(Tensor x) -> Tensor" = t;
    /// Dims of size 1 repeated up to `shape`; -1 keeps the size of a dim.
    "expand(Tensor x, IntList shape) -> Tensor" = expand;
    /// A dim of size 1 more, at position `dim`.
    "unsqueeze(Tensor x, Int dim) -> Tensor" = unsqueeze;
    /// Without `dim`, if its size is 1; otherwise the tensor unchanged, as in PyTorch.
    "squeeze(Tensor x, Int dim) -> Tensor" = squeeze;
    /// Elements `start`, `start + step`, … below `end` of a dim. Negative bounds count from the end; bounds are clamped to the size.
    "slice(Tensor x, Int dim, Int start, Int end, Int step=1) -> Tensor" = slice;
    /// `len` elements of a dim from `start` on.
    ///
    /// # Errors
    /// If `start..start + len` is not within the size of the dim.
    "narrow(Tensor x, Int dim, Int start, Int len) -> Tensor" = narrow;
    /// The element `index` along `dim`, which is removed. A negative index counts from the end.
    "select(Tensor x, Int dim, Int index) -> Tensor" = select;
    /// Parts of a dim with `size` elements; the last part may be smaller.
    "split(Tensor x, Int size, Int dim=0) -> TensorTuple" = split;
    /// At most `parts` parts of a dim with equal size (the last may be smaller), as PyTorch's `chunk`.
    "chunk(Tensor x, Int parts, Int dim=0) -> TensorTuple" = chunk;
    /// The tensors one after another along a dim. Their other sizes must be equal. An empty list is left out, as a program may begin with one.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let parts = arange(6, Device::Cpu)?.split(4, 0)?;
    /// assert_eq!(cat(&parts, 0)?.shape(), [6]);
    /// assert_eq!(cat([&parts[1], &parts[0]], 0)?.to_vec::<i64>()?, [4, 5, 0, 1, 2, 3]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "cat(TensorTuple xs, Int dim=0) -> Tensor" = cat;
    /// Tensors of one shape along a new dim at position `dim`.
    "stack(TensorTuple xs, Int dim=0) -> Tensor" = stack;
}

pub(super) fn reshape(x: &Tensor, shape: &[i64], site: CallSite) -> Result<Tensor> {
    let shape = resolve(shape, x.numel()).map_err(in_method("reshape", x, site))?;
    x.reshape_at(&shape, site)
}

impl Tensor {
    pub(crate) fn reshape_at(&self, shape: &[usize], site: CallSite) -> Result<Tensor> {
        invoke1(op!("reshape"), &[Some(self)], smallvec![AttrValue::from(shape)], smallvec![], site)
    }
}

pub(super) fn flatten(x: &Tensor, start: i64, end: i64, site: CallSite) -> Result<Tensor> {
    let dim = |d| normalize_dim(d, x.ndim()).map_err(in_method("flatten", x, site));
    let (a, b) = (dim(start)?, dim(end)?);
    let s = x.shape();
    if s.is_empty() {
        return x.reshape_at(&[1], site);
    }
    let mut shape: Vec<usize> = s[..a].to_vec();
    shape.push(s[a..=b.max(a)].iter().product());
    shape.extend(&s[b.max(a) + 1..]);
    x.reshape_at(&shape, site)
}

pub(super) fn transpose(x: &Tensor, dim0: i64, dim1: i64, site: CallSite) -> Result<Tensor> {
    exchanged(x, dim0, dim1, "transpose", site)
}

pub(super) fn t(x: &Tensor, site: CallSite) -> Result<Tensor> {
    if x.ndim() > 2 {
        let e = Error::shape(format!("expected a tensor of at most 2 dims, not {}", x.ndim()));
        return Err(in_method("t", x, site)(e.help("transpose(dim0, dim1) exchanges any two dims")));
    }
    match x.ndim() {
        2 => exchanged(x, -1, -2, "t", site),
        // What is no matrix is its own transpose.
        _ => x.reshape_at(x.shape(), site),
    }
}

fn exchanged(x: &Tensor, a: i64, b: i64, method: &str, site: CallSite) -> Result<Tensor> {
    let mut dims: SmallVec<[i64; 6]> = (0..x.ndim() as i64).collect();
    let dim = |d| normalize_dim(d, x.ndim()).map_err(in_method(method, x, site));
    let (a, b) = (dim(a)?, dim(b)?);
    if !dims.is_empty() {
        dims.swap(a, b);
    }
    invoke1(op!("permute"), &[Some(x)], smallvec![AttrValue::Ints(dims)], smallvec![], site)
}

pub(super) fn expand(x: &Tensor, shape: &[i64], site: CallSite) -> Result<Tensor> {
    let lead = shape.len().saturating_sub(x.ndim());
    let full: SmallVec<[i64; 6]> = shape
        .iter()
        .enumerate()
        .map(|(d, n)| match x.shape().get(d.wrapping_sub(lead)) {
            Some(size) if *n == -1 => *size as i64,
            _ => *n,
        })
        .collect();
    invoke1(op!("expand"), &[Some(x)], smallvec![AttrValue::Ints(full)], smallvec![], site)
}

pub(super) fn unsqueeze(x: &Tensor, dim: i64, site: CallSite) -> Result<Tensor> {
    let d = normalize_dim(dim, x.ndim() + 1).map_err(in_method("unsqueeze", x, site))?;
    let mut shape = x.shape().to_vec();
    shape.insert(d, 1);
    x.reshape_at(&shape, site)
}

pub(super) fn squeeze(x: &Tensor, dim: i64, site: CallSite) -> Result<Tensor> {
    let d = normalize_dim(dim, x.ndim()).map_err(in_method("squeeze", x, site))?;
    let mut shape = x.shape().to_vec();
    if shape.get(d) == Some(&1) {
        shape.remove(d);
    }
    x.reshape_at(&shape, site)
}

pub(super) fn slice(x: &Tensor, dim: i64, start: i64, end: i64, step: i64, site: CallSite) -> Result<Tensor> {
    let d = normalize_dim(dim, x.ndim()).map_err(in_method("slice", x, site))?;
    let n = x.shape().get(d).copied().unwrap_or(0) as i64;
    let bound = |at: i64| if at < 0 { at.saturating_add(n).max(0) } else { at.min(n) };
    let start = bound(start);
    let attrs = smallvec![d.into(), start.into(), bound(end).max(start).into(), step.into()];
    invoke1(op!("slice"), &[Some(x)], attrs, smallvec![], site)
}

pub(super) fn narrow(x: &Tensor, dim: i64, start: i64, len: i64, site: CallSite) -> Result<Tensor> {
    // An end that is no number is outside every tensor.
    let attrs = smallvec![dim.into(), start.into(), start.saturating_add(len).into(), 1i64.into()];
    invoke1(op!("slice"), &[Some(x)], attrs, smallvec![], site)
}

pub(super) fn select(x: &Tensor, dim: i64, index: i64, site: CallSite) -> Result<Tensor> {
    let d = normalize_dim(dim, x.ndim()).map_err(in_method("select", x, site))?;
    let n = x.shape().get(d).copied().unwrap_or(0) as i64;
    let i = if index < 0 { index.saturating_add(n) } else { index };
    let inner = inner_calls();
    let kept = narrow(x, d as i64, i, 1, site)?;
    drop(inner);
    squeeze(&kept, d as i64, site)
}

pub(super) fn split(x: &Tensor, size: i64, dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    parts(x, size, dim, "split", site)
}

/// Tensors that a call gives at most.
const MOST_PARTS: usize = 1 << 24;

/// An error where a call would give more tensors than memory is good for: a tensor of few numbers may have a dim of any size.
pub(super) fn few_enough(parts: usize) -> Result<()> {
    match parts <= MOST_PARTS {
        true => Ok(()),
        false => Err(Error::memory(format!("expected at most {MOST_PARTS} parts, each a tensor, not {parts}"))),
    }
}

fn parts(x: &Tensor, size: i64, dim: i64, method: &str, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method(method, x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let n = x.shape().get(d).copied().unwrap_or(0) as i64;
    let at_least_one = || named(Error::argument("a part must have at least one element"));
    let step = usize::try_from(size).ok().filter(|s| *s > 0).ok_or_else(at_least_one)?;
    few_enough((n as usize).div_ceil(step)).map_err(&named)?;
    let part = |s: i64| narrow(x, d as i64, s, size.min(n - s), site);
    (0..n.max(1)).step_by(step).map(|s| Ok(part(s)?.one_of_many())).collect()
}

pub(super) fn chunk(x: &Tensor, count: i64, dim: i64, site: CallSite) -> Result<Vec<Tensor>> {
    let named = in_method("chunk", x, site);
    let d = normalize_dim(dim, x.ndim()).map_err(&named)?;
    let at_least_one = || named(Error::argument("there must be at least one part"));
    let count = usize::try_from(count).ok().filter(|n| *n > 0).ok_or_else(at_least_one)?;
    let n = x.shape().get(d).copied().unwrap_or(0);
    parts(x, n.div_ceil(count).max(1) as i64, dim, "chunk", site)
}

pub(super) fn cat(xs: &[&Tensor], dim: i64, site: CallSite) -> Result<Tensor> {
    // PyTorch's rule for programs that begin with an empty list: it has one dim, whatever the others have.
    let list = |t: &&&Tensor| t.shape() == [0];
    let skips = xs.iter().any(|t| t.ndim() != 1) && xs.iter().any(|t| list(&t));
    let ins: SmallVec<[Option<&Tensor>; 4]> = xs.iter().filter(|t| !(skips && list(t))).map(|t| Some(*t)).collect();
    let joined = || invoke1(op!("concat"), &ins, smallvec![dim.into()], smallvec![], site);
    if !skips {
        return joined();
    }
    // Its dtype counts.
    let dtype =
        xs.iter().try_fold(xs[0].dtype(), |d, t| promoted(d, t.dtype())).map_err(in_method("cat", xs[0], site))?;
    let inner = inner_calls();
    let y = joined()?;
    drop(inner);
    if y.dtype() == dtype { Ok(y) } else { y.cast_at(dtype, site) }
}

pub(super) fn stack(xs: &[&Tensor], dim: i64, site: CallSite) -> Result<Tensor> {
    let Some(first) = xs.first() else {
        return Err(Error::argument("no tensor to stack").in_call(|| "stack()".into()).at(site));
    };
    let d = normalize_dim(dim, first.ndim() + 1).map_err(in_method("stack", first, site))?;
    let inner = inner_calls();
    let row = |t: &&Tensor| {
        if t.shape() != first.shape() {
            let e = Error::shape(format!("shapes {:?} and {:?} differ", first.shape(), t.shape()));
            return Err(in_method("stack", first, site)(e));
        }
        let mut shape = t.shape().to_vec();
        shape.insert(d, 1);
        t.reshape_at(&shape, site)
    };
    let rows: Vec<Tensor> = xs.iter().map(row).collect::<Result<_>>()?;
    drop(inner);
    let ins: SmallVec<[Option<&Tensor>; 4]> = rows.iter().map(Some).collect();
    invoke1(op!("concat"), &ins, smallvec![d.into()], smallvec![], site)
}
