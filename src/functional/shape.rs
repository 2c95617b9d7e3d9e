//! Methods that move or rename elements.

use super::{IntList, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, normalize_dim};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;

/// Returns a shape with its one `-1` replaced by the size that the number of elements requires.
fn resolve(shape: &[i64], n: usize, site: CallSite) -> Result<Vec<usize>> {
    let unknown = shape.iter().filter(|s| **s == -1).count();
    if unknown > 1 || shape.iter().any(|s| *s < -1) {
        return Err(Error::shape(format!("{shape:?} is not a shape")).at(site).help("at most one size may be -1"));
    }
    let known: usize = shape.iter().filter(|s| **s >= 0).map(|s| *s as usize).product();
    if unknown == 1 && (known == 0 || !n.is_multiple_of(known)) {
        return Err(Error::shape(format!("{n} elements do not fit the shape {shape:?}")).at(site));
    }
    Ok(shape.iter().map(|s| if *s == -1 { n / known } else { *s as usize }).collect())
}

impl Tensor {
    /// Returns the same elements, in row-major order, as another shape. One size may be -1: it follows from the others.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntList) -> Result<Tensor> {
        let site = CallSite::here();
        let shape = resolve(&shape.ints(), self.numel(), site)?;
        self.reshape_at(&shape, site)
    }
    pub(crate) fn reshape_at(&self, shape: &[usize], site: CallSite) -> Result<Tensor> {
        invoke1(op!("reshape"), &[Some(self)], smallvec![AttrValue::from(shape)], smallvec![], site)
    }
    /// Merges the dims from `start` to `end`, inclusive, into one. Negative dims count from the end.
    #[track_caller]
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let at = |d: i64| normalize_dim(d, self.ndim()).map_err(|e| e.at(site));
        let (a, b) = (at(start)?, at(end)?);
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
        let site = CallSite::here();
        let mut dims: SmallVec<[i64; 6]> = (0..self.ndim() as i64).collect();
        let (a, b) = (normalize_dim(a, self.ndim()), normalize_dim(b, self.ndim()));
        let (a, b) = (a.map_err(|e| e.at(site))?, b.map_err(|e| e.at(site))?);
        if !dims.is_empty() {
            dims.swap(a, b);
        }
        invoke1(op!("permute"), &[Some(self)], smallvec![AttrValue::Ints(dims)], smallvec![], site)
    }
    /// Exchanges the last two dims: the transpose of a matrix.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        self.transpose(-1, -2)
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
            .map(|(d, n)| if *n == -1 && d >= lead { self.shape()[d - lead] as i64 } else { *n })
            .collect();
        invoke1(op!("expand"), &[Some(self)], smallvec![AttrValue::Ints(full)], smallvec![], site)
    }
    /// Inserts a dim of size 1 at position `dim`.
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim() + 1).map_err(|e| e.at(site))?;
        let mut shape = self.shape().to_vec();
        shape.insert(d, 1);
        self.reshape_at(&shape, site)
    }
    /// Removes `dim` if its size is 1; otherwise returns the tensor unchanged, as in PyTorch.
    #[track_caller]
    pub fn squeeze(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim()).map_err(|e| e.at(site))?;
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
        let d = normalize_dim(dim, self.ndim()).map_err(|e| e.at(site))?;
        let n = self.shape().get(d).copied().unwrap_or(0) as i64;
        let bound = |x: i64| if x < 0 { (x + n).max(0) } else { x.min(n) };
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
        let site = CallSite::here();
        let attrs = smallvec![dim.into(), start.into(), (start + len).into(), 1i64.into()];
        invoke1(op!("slice"), &[Some(self)], attrs, smallvec![], site)
    }
    /// Returns the element `index` along `dim`, which is removed. A negative index counts from the end.
    #[track_caller]
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim()).map_err(|e| e.at(site))?;
        let n = self.shape().get(d).copied().unwrap_or(0) as i64;
        let i = if index < 0 { index + n } else { index };
        let inner = inner_calls();
        let kept = self.narrow(d as i64, i, 1)?;
        drop(inner);
        kept.squeeze(d as i64)
    }
    /// Splits a dim into parts of `size` elements; the last part may be smaller.
    #[track_caller]
    pub fn split(&self, size: usize, dim: i64) -> Result<Vec<Tensor>> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim()).map_err(|e| e.at(site))?;
        let _scope = site.scope();
        let n = self.shape().get(d).copied().unwrap_or(0);
        if size == 0 {
            return Err(Error::argument("a part must have at least one element").at(site));
        }
        (0..n.max(1))
            .step_by(size)
            .map(|s| Ok(self.narrow(d as i64, s as i64, size.min(n - s) as i64)?.one_of_many()))
            .collect()
    }
    /// Splits a dim into at most `parts` parts of equal size (the last may be smaller), as PyTorch's `chunk`.
    #[track_caller]
    pub fn chunk(&self, parts: usize, dim: i64) -> Result<Vec<Tensor>> {
        let site = CallSite::here();
        let d = normalize_dim(dim, self.ndim()).map_err(|e| e.at(site))?;
        let n = self.shape().get(d).copied().unwrap_or(0);
        self.split(n.div_ceil(parts.max(1)).max(1), dim)
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
    // The closure's own lines are not reported.
    let _scope = site.scope();
    let tensors = tensors.as_ref();
    let Some(first) = tensors.first().map(|t| t.borrow()) else {
        return Err(Error::argument("no tensor to stack").at(site));
    };
    let d = normalize_dim(dim, first.ndim() + 1).map_err(|e| e.at(site))?;
    let inner = inner_calls();
    let rows: Vec<Tensor> = tensors.iter().map(|t| t.borrow().unsqueeze(d as i64)).collect::<Result<_>>()?;
    drop(inner);
    let ins: SmallVec<[Option<&Tensor>; 4]> = rows.iter().map(Some).collect();
    invoke1(op!("concat"), &ins, smallvec![d.into()], smallvec![], site)
}

/// Returns `a` where the bool tensor `cond` is true, else `b`. The three shapes broadcast.
#[track_caller]
pub fn where_(cond: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    invoke1(op!("where"), &[Some(cond), Some(a), Some(b)], smallvec![], smallvec![], CallSite::here())
}
