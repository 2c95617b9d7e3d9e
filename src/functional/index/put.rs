//! Assignments to what an index names.
//!
//! Out of place each element of the result is chosen, by a mask, between the value and what was there. For ranges the mask is
//! the product of one mask for each dim. For index tensors `last_index` tells for each place which element of the value it gets,
//! so the gradient is exact where a place is named several times.

use super::get::{Joined, basic};
use super::resolve::{Advanced, Basic, Resolved};
use crate::context::{FromNumber, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::functional::{Operand, full, invoke1, op, where_};
use crate::tensor::Tensor;
use smallvec::smallvec;

/// A value of x's dtype with exactly `want.len()` dims, each of the size wanted or 1. As in PyTorch, leading dims of size 1 that are
/// too many do not count.
fn aligned(x: &Tensor, value: &Tensor, want: &[usize]) -> Result<Tensor> {
    let extra = value.ndim().saturating_sub(want.len());
    let (lead, own) = value.shape().split_at(extra);
    let fits = lead.iter().all(|n| *n == 1) && own.iter().rev().zip(want.iter().rev()).all(|(n, w)| n == w || *n == 1);
    if !fits {
        return Err(Error::shape(format!(
            "a value of shape {:?} does not broadcast to what is indexed, {want:?}",
            value.shape()
        )));
    }
    let mut shape = vec![1; want.len() - own.len()];
    shape.extend(own);
    let v = value.cast(x.dtype())?;
    if v.shape() == shape.as_slice() { Ok(v) } else { v.reshape(shape.as_slice()) }
}

/// The tensor with the value at what the index names.
pub(super) fn put(x: &Tensor, r: &Resolved, value: &Operand<'_>) -> Result<Tensor> {
    if r.advanced.is_empty() {
        return put_basic(x, &r.basic, value);
    }
    if r.basic.iter().all(|b| *b == Basic::Full) {
        return put_advanced(x, &r.advanced, value);
    }
    let inner = inner_calls();
    let new = put_advanced(&basic(x, &r.basic)?, &r.advanced, value)?;
    drop(inner);
    put_basic(x, &r.basic, &Operand::Tensor(&new))
}

/// [`put`] into the tensor itself. What is a view of a local tensor is written through the view.
pub(super) fn put_in_place(x: &Tensor, r: &Resolved, value: &Operand<'_>) -> Result<()> {
    let backwards = r.basic.iter().any(|b| b.cut().is_some_and(|c| c.backwards));
    if x.is_global() || (backwards && !r.advanced.is_empty()) {
        return x.copy_(&put(x, r, value)?).map(drop);
    }
    let view = basic(x, &r.basic.iter().map(|b| b.forward()).collect::<Vec<_>>())?;
    if !r.advanced.is_empty() {
        return view.copy_(&put_advanced(&view, &r.advanced, value)?).map(drop);
    }
    let v = match value {
        Operand::Scalar(s) => full([], *s, x.target())?,
        Operand::Tensor(v) => {
            let v = aligned(x, v, view.shape())?;
            let left = r.basic.iter().filter(|b| !matches!(b, Basic::One(_))).enumerate();
            let back: Vec<usize> = left
                .filter(|(d, b)| b.cut().is_some_and(|c| c.backwards) && v.shape()[*d] != 1)
                .map(|(d, _)| d)
                .collect();
            if back.is_empty() { v } else { v.flip(back.as_slice())? }
        }
    };
    view.copy_(&v.expand(view.shape())?).map(drop)
}

/// The shape after the basic members.
fn shape_after(x: &Tensor, basic: &[Basic]) -> Vec<usize> {
    let mut sizes = x.shape().iter();
    let sizes = basic.iter().map(|b| match b {
        Basic::New => Some(1),
        b => sizes.next().map(|n| match b {
            Basic::One(_) => None,
            Basic::Slice { count, .. } => Some(*count),
            _ => Some(*n),
        })?,
    });
    sizes.flatten().collect()
}

/// Where the elements of one dim are that are written, as a mask that broadcasts against x.
fn mask_of_dim(x: &Tensor, d: usize, b: Basic) -> Result<Option<Tensor>> {
    let Some(c) = b.cut() else { return Ok(None) };
    let mut shape = vec![1; x.ndim()];
    shape[d] = (c.end - c.start).div_ceil(c.step);
    let ones = full(&shape, true, x.whole_target())?;
    let attrs = smallvec![d.into(), c.start.into(), c.step.into(), x.shape()[d].into()];
    invoke1(op!("slice_grad"), &[Some(&ones)], attrs, smallvec![], CallSite::here()).map(Some)
}

fn put_basic(x: &Tensor, basic: &[Basic], value: &Operand<'_>) -> Result<Tensor> {
    let inner = inner_calls();
    let dims: Vec<Basic> = basic.iter().copied().filter(|b| *b != Basic::New).collect();
    let mut mask: Option<Tensor> = None;
    for (d, b) in dims.iter().enumerate() {
        mask = match (mask, mask_of_dim(x, d, *b)?) {
            (Some(a), Some(b)) => Some(a.logical_and(&b)?),
            (a, b) => a.or(b),
        };
    }
    let v = match value {
        Operand::Scalar(s) => {
            let mask = mask.map_or_else(|| full([], true, x.whole_target()), Ok)?;
            drop(inner);
            return x.masked_fill(&mask, *s);
        }
        Operand::Tensor(v) => aligned(x, v, &shape_after(x, basic))?,
    };
    // One size for each dim of x, also of those that an integer removes.
    let mut sizes = v.shape().iter().copied();
    let mut shape = vec![];
    for b in basic {
        match b {
            Basic::One(_) => shape.push(1),
            Basic::New => drop(sizes.next()),
            _ => shape.extend(sizes.next()),
        }
    }
    let mut v = reshaped(&v, &shape)?;
    let Some(mask) = mask else {
        let v = v.expand(x.shape())?;
        drop(inner);
        return v.copy();
    };
    // What has one element along a dim is repeated by the choice; other dims are filled up to the size of x.
    let cuts = || dims.iter().enumerate().filter_map(|(d, b)| Some((d, b.cut()?))).filter(|(d, _)| shape[*d] != 1);
    let back: Vec<usize> = cuts().filter(|(_, c)| c.backwards).map(|(d, _)| d).collect();
    if !back.is_empty() {
        v = v.flip(back.as_slice())?;
    }
    for (d, c) in cuts() {
        let attrs = smallvec![d.into(), c.start.into(), c.step.into(), x.shape()[d].into()];
        v = invoke1(op!("slice_grad"), &[Some(&v)], attrs, smallvec![], CallSite::here())?;
    }
    drop(inner);
    where_(&mask, &v, x)
}

fn reshaped(v: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if v.shape() == shape { Ok(v.clone()) } else { v.reshape(shape) }
}

/// An assignment to what a mask chooses of one value for all its places: then nobody needs to know how many there are.
fn put_everywhere(b: &Tensor, a: &Advanced, value: &Operand<'_>) -> Result<Option<Tensor>> {
    let mut shape = vec![1; b.ndim()];
    shape[a.dim..a.dim + a.span].copy_from_slice(a.tensor.shape());
    let inner = inner_calls();
    let mask = reshaped(&a.tensor, &shape)?;
    Ok(match value {
        Operand::Scalar(s) => {
            drop(inner);
            Some(b.masked_fill(&mask, *s)?)
        }
        Operand::Tensor(v) if v.numel() == 1 => {
            let v = aligned(b, v, &vec![1; b.ndim()])?;
            drop(inner);
            Some(where_(&mask, &v, b)?)
        }
        Operand::Tensor(_) => None,
    })
}

fn put_advanced(b: &Tensor, advanced: &[Advanced], value: &Operand<'_>) -> Result<Tensor> {
    if let [a] = advanced
        && a.is_mask()
        && let Some(y) = put_everywhere(b, a, value)?
    {
        return Ok(y);
    }
    let inner = inner_calls();
    let j = Joined::new(b, advanced)?;
    let table = j.merge(b)?;
    let (rank, at, count) = (table.ndim(), j.at, j.ids.numel());
    let value = match value {
        Operand::Scalar(s) => Err(*s),
        Operand::Tensor(v) => Ok(aligned(b, v, &named_shape(&table, &j))?),
    };
    let rows = table.shape()[at];
    let ids = j.ids.reshape([count])?;
    let last = invoke1(op!("last_index"), &[Some(&ids)], smallvec![rows.into()], smallvec![], CallSite::here())?;
    let mut column = vec![1; rank];
    column[at] = rows;
    let hit = last.ge(0i64)?.reshape(column.as_slice())?;
    let value = value.map(|v| chosen(&v, &j, &last)).map_or_else(|s| Ok(Err(s)), |v| v.map(Ok))?;
    // The choice is the last step, unless the dims were brought into another order.
    let inner = if table.shape() == b.shape() && j.order.is_none() {
        drop(inner);
        None
    } else {
        Some(inner)
    };
    let y = match value {
        Err(s) => table.masked_fill(&hit, s)?,
        Ok(v) => where_(&hit, &v, &table)?,
    };
    match inner {
        None => Ok(y),
        Some(inner) => restored(y, b, &j, inner),
    }
}

/// The tensor with the value added at what the index names, as often as it names a place.
pub(super) fn add(x: &Tensor, r: &Resolved, value: &Tensor) -> Result<Tensor> {
    if r.advanced.is_empty() {
        let inner = inner_calls();
        let sum = basic(x, &r.basic)?.add(&value.cast(x.dtype())?)?;
        drop(inner);
        return put_basic(x, &r.basic, &Operand::Tensor(&sum));
    }
    if r.basic.iter().all(|b| *b == Basic::Full) {
        return add_advanced(x, &r.advanced, value);
    }
    let inner = inner_calls();
    let new = add_advanced(&basic(x, &r.basic)?, &r.advanced, value)?;
    drop(inner);
    put_basic(x, &r.basic, &Operand::Tensor(&new))
}

fn add_advanced(b: &Tensor, advanced: &[Advanced], value: &Tensor) -> Result<Tensor> {
    let inner = inner_calls();
    let j = Joined::new(b, advanced)?;
    let table = j.merge(b)?;
    let value = aligned(b, value, &named_shape(&table, &j))?;
    let count = j.ids.numel();
    let v = listed(&value, &j)?;
    let mut all = table.shape().to_vec();
    all[j.at] = count;
    let ids = j.ids.reshape([count])?;
    let y = table.index_add(j.at as i64, &ids, &v.expand(all.as_slice())?)?;
    restored(y, b, &j, inner)
}

/// The shape of what the indices name in the merged dims.
fn named_shape(table: &Tensor, j: &Joined) -> Vec<usize> {
    let others: Vec<usize> = (0..table.ndim()).filter(|d| *d != j.at).map(|d| table.shape()[d]).collect();
    let (before, behind) = others.split_at(j.placed);
    before.iter().chain(j.ids.shape()).chain(behind).copied().collect()
}

/// A table of merged dims in the shape and the order of dims of `b`.
fn restored(y: Tensor, b: &Tensor, j: &Joined, inner: FromNumber) -> Result<Tensor> {
    let Some(order) = &j.order else {
        drop(inner);
        return y.reshape(b.shape());
    };
    let moved: Vec<usize> = order.iter().map(|d| b.shape()[*d]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, d)| back[*d] = at);
    let y = y.reshape(moved.as_slice())?;
    drop(inner);
    y.permute(back.as_slice())
}

/// The value with a row for each index, or one for all, in the place of the merged dims.
fn listed(v: &Tensor, j: &Joined) -> Result<Tensor> {
    let (p, k) = (j.placed, j.ids.ndim());
    let own = v.shape().to_vec();
    let others: Vec<usize> = own[..p].iter().chain(&own[p + k..]).copied().collect();
    let with = |n: usize| {
        let mut shape = others.clone();
        shape.insert(j.at, n);
        shape
    };
    if own[p..p + k].iter().all(|n| *n == 1) {
        return reshaped(v, &with(1));
    }
    let mut full = own;
    full[p..p + k].copy_from_slice(j.ids.shape());
    let mut v = v.expand(full.as_slice())?;
    if p != j.at {
        let order: Vec<usize> = (p..p + k).chain(0..p).chain(p + k..full.len()).collect();
        v = v.permute(order.as_slice())?;
    }
    reshaped(&v, &with(j.ids.numel()))
}

/// For each row of the merged dims the element of the value that it gets, or any.
fn chosen(v: &Tensor, j: &Joined, last: &Tensor) -> Result<Tensor> {
    let one = v.shape()[j.placed..j.placed + j.ids.ndim()].iter().all(|n| *n == 1);
    let v = listed(v, j)?;
    if one {
        return Ok(v);
    }
    if j.ids.numel() == 0 {
        // Nobody gets any; the value has a gradient all the same.
        let attrs = smallvec![j.at.into(), 0i64.into(), 1i64.into(), last.numel().into()];
        return invoke1(op!("slice_grad"), &[Some(&v)], attrs, smallvec![], CallSite::here());
    }
    v.index_select(j.at as i64, &last.clamp(0i64, i64::MAX)?)
}
