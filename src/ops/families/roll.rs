//! Rolling: elements move along a dim, and what leaves at the end comes in at the front. Where the dim is split, a rank reads the elements
//! that come to it: those that wrapped and those that did not are two windows of the tensor, for which the lowering gives it twice.

use super::KINDS;
use super::slide::{narrow, range};
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, InferCtx, LocalizeCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::ShardBox;
use std::ops::Range;

/// The dim, and by how many places its elements move towards the end.
pub(crate) fn along(c: &InferCtx<'_>) -> Result<(usize, usize)> {
    let x = c.shape(0)?;
    let dim = c.dim("dim", x.len())?;
    let n = x.get(dim).ok_or_else(|| Error::shape("a tensor without dims has none to roll along"))?;
    Ok((dim, towards_end(c.int("shift")?, *n)))
}

/// A shift as one of `0..n`.
pub(crate) fn towards_end(shift: i64, n: usize) -> usize {
    if n == 0 { 0 } else { shift.rem_euclid(n as i64) as usize }
}

/// Where the elements `part` of the result lie in a dim of size `n`: first those that wrapped, then the others. Either may be none.
pub(crate) fn sources(part: Range<usize>, shift: usize, n: usize) -> [Range<usize>; 2] {
    let (wrapped, others) = (part.start..part.end.min(shift), part.start.max(shift)..part.end);
    let moved = |r: Range<usize>, by: usize| if r.is_empty() { 0..0 } else { r.start + by - shift..r.end + by - shift };
    [moved(wrapped, n), moved(others, 0)]
}

/// S of every other dim, and P of all kinds: elements are moved, never changed. As many inputs as the op has.
fn moved(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let (dim, _) = along(c)?;
    let others = (0..c.shape(0)?.len()).filter(|d| *d != dim).map(Sbp::Split);
    Ok(others.chain(KINDS.map(Sbp::Partial)).map(|s| all(c, s)).collect())
}

fn split(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    Ok(vec![all(c, Sbp::Split(along(c)?.0))])
}

fn all(c: &InferCtx<'_>, s: Sbp) -> Signature {
    Signature::new(&vec![s; c.inputs.len()], &[s])
}

fn reads(c: &LocalizeCtx<'_>) -> Result<Vec<Option<ShardBox>>> {
    let (dim, shift) = along(c.logical)?;
    let mut reads = c.inputs.to_vec();
    let of = sources(range(&c.outputs[0], dim), shift, c.outputs[0].logical[dim]);
    reads.iter_mut().flatten().zip(of).for_each(|(b, r)| narrow(b, dim, r));
    Ok(reads)
}

fn roll_along() -> Result<OpDef> {
    Ok(OpDef::new("roll_along(x: any; dim: int, shift: int) -> y")?
        .doc("The elements moved by `shift` places along a dim; what leaves at the end comes in at the front.")
        .by_name_only()
        .strided()
        .check(|c| along(c).map(drop))
        .dtype(DTypeRule::Input(0))
        .get_sbp(moved)
        .lowering(split, |e, call| {
            let Some(x) = call.inputs[0] else { return Ok(vec![]) };
            let attrs = [("dim", call.attrs[0].clone()), ("shift", call.attrs[1].clone())];
            Ok(vec![e.call("roll_windows", &[x, x], &attrs)?])
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let (Some(dy), AttrValue::Int(shift)) = (g.grad(0), g.attr("shift")?) else { return Ok(()) };
            let shape = g.input_shape(0);
            let dim = g.attr("dim")?;
            let n = match &dim {
                AttrValue::Int(d) => shape[d.rem_euclid(shape.len().max(1) as i64) as usize],
                _ => 0,
            };
            let back = n - towards_end(shift, n);
            let dx = g.call("roll_along", &[dy], &[("dim", dim), ("shift", back.into())])?;
            g.set(0, dx)
        }))
        .samples(&[
            "f32[6, 4]; dim=0, shift=1",
            "f64[3, 7]; dim=-1, shift=-2",
            "i32[5]; dim=0, shift=13",
            "bool[2, 3]; dim=1, shift=0",
            "f32[0, 3]; dim=0, shift=2",
        ]))
}

fn roll_windows() -> Result<OpDef> {
    Ok(OpDef::new("roll_windows(wrapped: any, x: any; dim: int, shift: int) -> y")?
        .traits(|t| t.hidden = true)
        .doc(
            "What `roll_along` gives, of a tensor that is given twice: the elements that wrap are read from the first.",
        )
        .by_name_only()
        .strided()
        .check(|c| {
            along(c)?;
            let (a, b) = (c.input(0)?, c.input(1)?);
            if (&a.shape, a.dtype) == (&b.shape, b.dtype) {
                return Ok(());
            }
            Err(Error::shape(format!("{a} and {b} are not one tensor twice")))
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(moved)
        .windows(split, reads)
        .grad(Grad::None)
        .samples(&[
            "f32[6, 4] f32[6, 4]; dim=0, shift=1",
            "f64[3, 7] f64[3, 7]; dim=-1, shift=-2",
            "i32[5] i32[5]; dim=0, shift=8",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![roll_along(), roll_windows()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_result_comes_from_at_most_two_ranges() {
        for n in 0..7 {
            for shift in 0..n.max(1) {
                let rolled: Vec<usize> = (0..n).map(|i| (i + n - shift) % n).collect();
                for (start, end) in (0..=n).flat_map(|s| (s..=n).map(move |e| (s, e))) {
                    let [wrapped, others] = sources(start..end, shift, n);
                    assert_eq!(
                        wrapped.chain(others).collect::<Vec<_>>(),
                        rolled[start..end],
                        "{n} {shift} {start}..{end}"
                    );
                }
            }
        }
    }
}
