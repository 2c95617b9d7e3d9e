//! Methods that move or rename elements.

use super::{IntList, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, normalize_dim};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;

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

impl Tensor {
    /// Returns the same elements, in row-major order, as another shape. One size may be -1: it follows from the others.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntList) -> Result<Tensor> {
        let site = CallSite::here();
        let shape = resolve(&shape.ints(), self.numel()).map_err(in_method("reshape", self, site))?;
        self.reshape_at(&shape, site)
    }
    pub(crate) fn reshape_at(&self, shape: &[usize], site: CallSite) -> Result<Tensor> {
        invoke1(op!("reshape"), &[Some(self)], smallvec![AttrValue::from(shape)], smallvec![], site)
    }
    /// Merges the dims from `start` to `end`, inclusive, into one. Negative dims count from the end.
    #[track_caller]
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let dim = |d| normalize_dim(d, self.ndim()).map_err(in_method("flatten", self, site));
        let (a, b) = (dim(start)?, dim(end)?);
        let s = self.shape();
        if s.is_empty() {
            return self.reshape_at(&[1], site);
        }
        let mut shape: Vec<usize> = s[..a].to_vec();
        shape.push(s[a..=b.max(a)].iter().product());
        shape.extend(&s[b.max(a) + 1..]);
        self.reshape_at(&shape, site)
    }
    /// Returns the tensor with its dims in the order `dims`.
    #[track_caller]
    pub fn permute(&self, dims: impl IntList) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("permute"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints())], smallvec![], site)
    }
    /// Exchanges dims `a` and `b`.
    #[track_caller]
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        self.transpose_at(a, b, "transpose", CallSite::here())
    }
    fn transpose_at(&self, a: i64, b: i64, method: &str, site: CallSite) -> Result<Tensor> {
        let mut dims: SmallVec<[i64; 6]> = (0..self.ndim() as i64).collect();
        let dim = |d| normalize_dim(d, self.ndim()).map_err(in_method(method, self, site));
        let (a, b) = (dim(a)?, dim(b)?);
        if !dims.is_empty() {
            dims.swap(a, b);
        }
        invoke1(op!("permute"), &[Some(self)], smallvec![AttrValue::Ints(dims)], smallvec![], site)
    }
    /// Exchanges the last two dims: the transpose of a matrix.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        self.transpose_at(-1, -2, "t", CallSite::here())
    }
    /// Repeats dims of size 1 up to `shape`; -1 keeps the size of a dim.
    #[track_caller]
    pub fn expand(&self, shape: impl IntList) -> Result<Tensor> {
        let site = CallSite::here();
        let shape = shape.ints();
        let lead = shape.len().saturating_sub(self.ndim());
        let full: SmallVec<[i64; 6]> = shape
            .iter()
            .enumerate()
            .map(|(d, n)| match self.shape().get(d.wrapping_sub(lead)) {
                Some(size) if *n == -1 => *size as i64,
                _ => *n,
            })
            .collect();
        invoke1(op!("expand"), &[Some(self)], smallvec![AttrValue::Ints(full)], smallvec![], site)
    }
    /// Inserts a dim of size 1 at position `dim`.
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim() + 1).map_err(in_method("unsqueeze", self, site))?;
        let mut shape = self.shape().to_vec();
        shape.insert(d, 1);
        self.reshape_at(&shape, site)
    }
    /// Removes `dim` if its size is 1; otherwise returns the tensor unchanged, as in PyTorch.
    #[track_caller]
    pub fn squeeze(&self, dim: i64) -> Result<Tensor> {
        self.squeeze_at(dim, CallSite::here())
    }
    fn squeeze_at(&self, dim: i64, site: CallSite) -> Result<Tensor> {
        let d = normalize_dim(dim, self.ndim()).map_err(in_method("squeeze", self, site))?;
        let mut shape = self.shape().to_vec();
        if shape.get(d) == Some(&1) {
            shape.remove(d);
        }
        self.reshape_at(&shape, site)
    }
    /// Returns elements `start`, `start + step`, … below `end` of a dim. Negative bounds count from the end; bounds are clamped to the
    /// size.
    #[track_caller]
    pub fn slice(&self, dim: i64, start: i64, end: i64, step: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim()).map_err(in_method("slice", self, site))?;
        let n = self.shape().get(d).copied().unwrap_or(0) as i64;
        let bound = |x: i64| if x < 0 { x.saturating_add(n).max(0) } else { x.min(n) };
        let start = bound(start);
        let attrs = smallvec![d.into(), start.into(), bound(end).max(start).into(), step.into()];
        invoke1(op!("slice"), &[Some(self)], attrs, smallvec![], site)
    }
    /// Returns `len` elements of a dim from `start` on.
    ///
    /// # Errors
    /// If `start..start + len` is not within the size of the dim.
    #[track_caller]
    pub fn narrow(&self, dim: i64, start: i64, len: i64) -> Result<Tensor> {
        self.narrow_at(dim, start, len, CallSite::here())
    }
    fn narrow_at(&self, dim: i64, start: i64, len: i64, site: CallSite) -> Result<Tensor> {
        // An end that is no number is outside every tensor.
        let attrs = smallvec![dim.into(), start.into(), start.saturating_add(len).into(), 1i64.into()];
        invoke1(op!("slice"), &[Some(self)], attrs, smallvec![], site)
    }
    /// Returns the element `index` along `dim`, which is removed. A negative index counts from the end.
    #[track_caller]
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim()).map_err(in_method("select", self, site))?;
        let n = self.shape().get(d).copied().unwrap_or(0) as i64;
        let i = if index < 0 { index.saturating_add(n) } else { index };
        let inner = inner_calls();
        let kept = self.narrow_at(d as i64, i, 1, site)?;
        drop(inner);
        kept.squeeze_at(d as i64, site)
    }
    /// Splits a dim into parts of `size` elements; the last part may be smaller.
    #[track_caller]
    pub fn split(&self, size: usize, dim: i64) -> Result<Vec<Tensor>> {
        self.split_at(size, dim, "split", CallSite::here())
    }
    fn split_at(&self, size: usize, dim: i64, method: &str, site: CallSite) -> Result<Vec<Tensor>> {
        let named = in_method(method, self, site);
        let d = normalize_dim(dim, self.ndim()).map_err(&named)?;
        let n = self.shape().get(d).copied().unwrap_or(0);
        if size == 0 {
            return Err(named(Error::argument("a part must have at least one element")));
        }
        let part = |s: usize| self.narrow_at(d as i64, s as i64, size.min(n - s) as i64, site);
        (0..n.max(1)).step_by(size).map(|s| Ok(part(s)?.one_of_many())).collect()
    }
    /// Splits a dim into at most `parts` parts of equal size (the last may be smaller), as PyTorch's `chunk`.
    #[track_caller]
    pub fn chunk(&self, parts: usize, dim: i64) -> Result<Vec<Tensor>> {
        let site = CallSite::here();
        let named = in_method("chunk", self, site);
        let d = normalize_dim(dim, self.ndim()).map_err(&named)?;
        if parts == 0 {
            return Err(named(Error::argument("there must be at least one part")));
        }
        let n = self.shape().get(d).copied().unwrap_or(0);
        self.split_at(n.div_ceil(parts).max(1), dim, "chunk", site)
    }
    /// Sets elements above a diagonal of the last two dims to zero. Diagonal 0 is the main one; positive ones lie above it.
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        invoke1(op!("tril"), &[Some(self)], smallvec![diagonal.into()], smallvec![], CallSite::here())
    }
    /// Sets elements below a diagonal of the last two dims to zero. Diagonal 0 is the main one; positive ones lie above it.
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        invoke1(op!("triu"), &[Some(self)], smallvec![diagonal.into()], smallvec![], CallSite::here())
    }
}

/// Concatenates tensors along `dim`. Their other sizes must be equal. `tensors` is an array, slice or vector of tensors or of
/// references to tensors.
///
/// ```
/// use oflow::prelude::*;
/// let parts = arange(6, Device::Cpu)?.split(4, 0)?;
/// assert_eq!(cat(&parts, 0)?.shape(), [6]);
/// assert_eq!(cat([&parts[1], &parts[0]], 0)?.to_vec::<i64>()?, [4, 5, 0, 1, 2, 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn cat<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, dim: i64) -> Result<Tensor> {
    let ins: SmallVec<[Option<&Tensor>; 4]> = tensors.as_ref().iter().map(|t| Some(t.borrow())).collect();
    invoke1(op!("concat"), &ins, smallvec![dim.into()], smallvec![], CallSite::here())
}

/// Stacks tensors of one shape along a new dim at position `dim`. Takes the same lists as [`cat`].
#[track_caller]
pub fn stack<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, dim: i64) -> Result<Tensor> {
    let site = CallSite::here();
    let tensors = tensors.as_ref();
    let Some(first) = tensors.first().map(|t| t.borrow()) else {
        return Err(Error::argument("no tensor to stack").in_call(|| "stack()".into()).at(site));
    };
    let d = normalize_dim(dim, first.ndim() + 1).map_err(in_method("stack", first, site))?;
    let inner = inner_calls();
    let row = |t: &T| {
        let t: &Tensor = t.borrow();
        if t.shape() != first.shape() {
            let e = Error::shape(format!("shapes {:?} and {:?} differ", first.shape(), t.shape()));
            return Err(in_method("stack", first, site)(e));
        }
        let mut shape = t.shape().to_vec();
        shape.insert(d, 1);
        t.reshape_at(&shape, site)
    };
    let rows: Vec<Tensor> = tensors.iter().map(row).collect::<Result<_>>()?;
    drop(inner);
    let ins: SmallVec<[Option<&Tensor>; 4]> = rows.iter().map(Some).collect();
    invoke1(op!("concat"), &ins, smallvec![d.into()], smallvec![], site)
}

/// Returns `a` where the bool tensor `cond` is true, else `b`. The three shapes broadcast.
#[track_caller]
pub fn where_(cond: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    invoke1(op!("where"), &[Some(cond), Some(a), Some(b)], smallvec![], smallvec![], CallSite::here())
}
