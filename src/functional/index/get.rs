//! Reads the elements that an index names.

use super::resolve::{Advanced, Basic, Resolved};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::functional::{invoke1, op};
use crate::ops::{AttrValue, Attrs, broadcast_shapes};
use crate::tensor::Tensor;
use oflow_kernels::Dims;
use smallvec::smallvec;

/// The calls of ops that the basic members need, on a tensor of that shape.
fn basic_calls(shape: &[usize], basic: &[Basic]) -> Vec<(&'static str, Attrs)> {
    let mut calls: Vec<(&'static str, Attrs)> = vec![];
    let (mut back, mut kept): (Vec<i64>, Vec<usize>) = (vec![], vec![]);
    let (mut d, mut renamed) = (0, false);
    for b in basic {
        if let Some(c) = b.cut() {
            let attrs = smallvec![d.into(), c.start.into(), c.end.into(), c.step.into()];
            calls.push(("slice", attrs));
            if c.backwards {
                back.push(d as i64);
            }
        }
        match *b {
            Basic::One(_) => renamed = true,
            Basic::Slice { count, .. } => kept.push(count),
            Basic::Full => kept.push(shape[d]),
            Basic::New => {
                kept.push(1);
                renamed = true;
            }
        }
        d += usize::from(*b != Basic::New);
    }
    if !back.is_empty() {
        calls.push(("flip", smallvec![AttrValue::from(back.as_slice())]));
    }
    if renamed {
        calls.push(("reshape", smallvec![AttrValue::from(kept.as_slice())]));
    }
    calls
}

fn run(x: &Tensor, (name, attrs): (&'static str, Attrs)) -> Result<Tensor> {
    let site = CallSite::here();
    let op = match name {
        "slice" => op!("slice"),
        "flip" => op!("flip"),
        _ => op!("reshape"),
    };
    invoke1(op, &[Some(x)], attrs, smallvec![], site)
}

/// The tensor after the basic members: a view where it is local and no step is negative.
pub(super) fn basic(x: &Tensor, basic: &[Basic]) -> Result<Tensor> {
    let mut calls = basic_calls(x.shape(), basic);
    let Some(last) = calls.pop() else { return Ok(x.clone()) };
    let inner = inner_calls();
    let y = calls.into_iter().try_fold(x.clone(), |y, c| run(&y, c))?;
    drop(inner);
    run(&y, last)
}

/// Dims that stand in for several: `start..start + count` become one.
fn merged(x: &Tensor, start: usize, count: usize) -> Result<Tensor> {
    if count == 1 {
        return Ok(x.clone());
    }
    let s = x.shape();
    let one: usize = s[start..start + count].iter().product();
    let shape: Dims = s[..start].iter().copied().chain([one]).chain(s[start + count..].iter().copied()).collect();
    x.reshape(shape.as_slice())
}

/// The indices of one member into its dims taken as one: of a mask the places where it is true.
fn indices_of(a: &Advanced) -> Result<Tensor> {
    if !a.is_mask() {
        return Ok(a.tensor.clone());
    }
    let found = a.tensor.reshape([a.tensor.numel()])?.nonzero()?;
    let count = found.shape()[0];
    found.reshape([count])
}

/// The indices as i64 that count from the front.
fn wrapped(ids: &Tensor, a: &Advanced, size: usize) -> Result<Tensor> {
    if a.is_mask() {
        return Ok(ids.clone());
    }
    let attrs = smallvec![size.into(), a.of.into()];
    invoke1(op!("wrap_index"), &[Some(ids)], attrs, smallvec![], CallSite::here())
}

/// Several index tensors as one, into their dims merged, with the dims of a tensor in an order in which they are next to each other.
pub(super) struct Joined {
    /// The joined indices, one number an element.
    pub ids: Tensor,
    /// The order of the dims; none where the indexed ones are next to each other as they are.
    pub order: Option<Vec<usize>>,
    /// The first indexed dim in that order.
    pub at: usize,
    /// How many dims are indexed.
    pub count: usize,
    /// Where the dims of the indices stand in the result.
    pub placed: usize,
}

impl Joined {
    pub(super) fn new(b: &Tensor, advanced: &[Advanced]) -> Result<Joined> {
        let dims: Vec<usize> = advanced.iter().flat_map(|a| a.dim..a.dim + a.span).collect();
        let found = advanced.iter().map(indices_of).collect::<Result<Vec<_>>>()?;
        let shapes: Vec<&[usize]> = found.iter().map(|ids| ids.shape()).collect();
        broadcast_shapes(shapes.iter().copied()).map_err(|e| {
            let texts: Vec<String> = shapes.iter().map(|s| format!("{s:?}")).collect();
            Error::shape(format!("index tensors of shapes {} do not broadcast", texts.join(" and ")))
                .help(e.message().to_string())
        })?;
        let mut ids: Option<Tensor> = None;
        for (next, a) in found.iter().zip(advanced) {
            let size: usize = b.shape()[a.dim..a.dim + a.span].iter().product();
            let next = wrapped(next, a, size)?;
            ids = Some(match ids {
                Some(ids) => ids.mul(size as i64)?.add(&next)?,
                None => next,
            });
        }
        let ids = ids.ok_or_else(|| Error::argument("an index has no tensor"))?;
        let next_to = |dims: &[usize]| dims.windows(2).all(|w| w[1] == w[0] + 1);
        // Tensors without dims have no say in where the common dims stand, as integers have none.
        let spoken: Vec<usize> = advanced.iter().filter(|a| !a.is_one()).flat_map(|a| a.dim..a.dim + a.span).collect();
        let removed = |d: usize| advanced.iter().filter(|a| a.is_one() && a.dim < d).count();
        let renumbered: Vec<usize> = spoken.iter().map(|d| d - removed(*d)).collect();
        let placed = match renumbered.first() {
            Some(first) if next_to(&renumbered) => *first,
            Some(_) => 0,
            // They only remove dims, so their place does not matter.
            None => dims[0],
        };
        let order = (!next_to(&dims)).then(|| {
            let others = (0..b.ndim()).filter(|d| !dims.contains(d));
            dims.iter().copied().chain(others).collect()
        });
        let at = if order.is_some() { 0 } else { dims[0] };
        // Next to each other, with all dims before them kept.
        let placed = if order.is_none() { at } else { placed };
        Ok(Joined { ids, order, at, count: dims.len(), placed })
    }

    /// A tensor of the dims of `b` with the indexed ones next to each other and merged.
    pub(super) fn merge(&self, b: &Tensor) -> Result<Tensor> {
        let b = match &self.order {
            Some(order) => b.permute(order.as_slice())?,
            None => b.clone(),
        };
        merged(&b, self.at, self.count)
    }
}

/// The elements that an index names.
pub(super) fn get(x: &Tensor, r: &Resolved) -> Result<Tensor> {
    if r.advanced.is_empty() {
        return basic(x, &r.basic);
    }
    let inner = inner_calls();
    let b = basic(x, &r.basic)?;
    if let [a] = r.advanced.as_slice()
        && a.is_mask()
        && a.span == b.ndim()
    {
        drop(inner);
        return b.masked_select(&a.tensor);
    }
    let j = Joined::new(&b, &r.advanced)?;
    let table = j.merge(&b)?;
    if j.placed == j.at {
        drop(inner);
        return table.index_select(j.at as i64, &j.ids);
    }
    // The common dims do not come first although the indexed ones were brought there.
    let y = table.index_select(0, &j.ids)?;
    let k = j.ids.ndim();
    let order: Vec<usize> = (k..k + j.placed).chain(0..k).chain(k + j.placed..y.ndim()).collect();
    drop(inner);
    Ok(y.permute(order.as_slice())?.into_result())
}
