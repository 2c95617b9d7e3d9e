//! Rotary position embedding: linear in x, and in the tables. Its gradient turns back.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, GradCtx, InferCtx, OpDef, Value};
use crate::sbp::{Sbp, Signature, broadcast_dim};

const DOC: &str = "Rotary position embedding: pairs of the elements of each row of x `[..., positions, width]` turned by angles whose cosines \
    and sines `[positions, pairs]` are given (more dims broadcast to those of x). A pair is elements i and `pairs + i`, or with `interleaved` \
    2 i and 2 i + 1. Elements beyond the pairs stay as they are.

```
use oflow::prelude::*;
let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [1, 4], Device::Cpu)?;
let (cos, sin) = (zeros([1, 2], Device::Cpu)?, ones([1, 2], Device::Cpu)?);
assert_eq!(x.rotary_embedding(&cos, &sin)?.to_vec::<f32>()?, [-3.0, -4.0, 1.0, 2.0]);
# Ok::<(), oflow::Error>(())
```

# Errors
If there are more pairs than elements, or the tables do not broadcast to the rows of x.";

/// The pairs that are turned.
fn pairs(c: &InferCtx<'_>) -> Result<usize> {
    let (x, cos) = (c.shape(0)?, c.shape(1)?);
    let bad = || Error::shape(format!("rows of {x:?} cannot be turned by tables of shape {cos:?}"));
    let ([lead @ .., width], [rows @ .., pairs]) = (x, cos) else { return Err(bad()) };
    let broadcasts =
        rows.len() <= lead.len() && rows.iter().rev().zip(lead.iter().rev()).all(|(r, n)| *r == 1 || r == n);
    match broadcasts && pairs.checked_mul(2).is_some_and(|n| n <= *width) {
        true => Ok(*pairs),
        false => {
            Err(bad()
                .help("tables are [positions, pairs] for x of [..., positions, width], with at most width / 2 pairs"))
        }
    }
}

/// The first or the second elements of the pairs of v.
fn halves(g: &mut dyn GradCtx, v: Value, pairs: usize, interleaved: bool) -> Result<[Value; 2]> {
    let mut part = |start: usize, end: usize, step: usize| {
        let attrs = [("dim", (-1i64).into()), ("start", start.into()), ("end", end.into()), ("step", step.into())];
        g.call("slice", &[v], &attrs)
    };
    match interleaved {
        true => Ok([part(0, 2 * pairs, 2)?, part(1.min(2 * pairs), 2 * pairs, 2)?]),
        false => Ok([part(0, pairs, 1)?, part(pairs, 2 * pairs, 1)?]),
    }
}

fn rotary_embedding() -> Result<OpDef> {
    Ok(OpDef::new("rotary_embedding(x: float, cos: float, sin: float; interleaved: bool = false) -> y")?
        .doc(DOC)
        .function("rotary_embedding(Tensor x, Tensor cos, Tensor sin, *, Bool interleaved=false) -> Tensor")
        .strided()
        .check(|c| {
            super::one_dtype(c, &[0, 1, 2])?;
            super::dims_are(c, 2, c.shape(1)?)?;
            pairs(c).map(drop)
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (x, cos, p, b) = (c.shape(0)?, c.shape(1)?, Sbp::PARTIAL_SUM, Sbp::Broadcast);
            let (rank, pairs) = (x.len(), pairs(c)?);
            let table = |d: usize| broadcast_dim(&cos[..cos.len() - 1], &x[..rank - 1], d).map_or(b, Sbp::Split);
            let mut s: Vec<Signature> =
                (0..rank - 1).map(|d| Signature::new(&[Sbp::Split(d), table(d), table(d)], &[Sbp::Split(d)])).collect();
            s.push(Signature::new(&[p, b, b], &[p]));
            // Elements that are not turned are no multiples of the tables.
            s.extend((2 * pairs == x[rank - 1]).then(|| Signature::new(&[b, p, p], &[p])));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[0, 1, 2], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let interleaved = g.bool("interleaved")?;
            if g.needs(0) {
                let (cos, sin) = (g.input(1)?, g.input(2)?);
                let back = g.call("neg", &[sin], &[])?;
                let dx = g.call("rotary_embedding", &[dy, cos, back], &[("interleaved", interleaved.into())])?;
                g.set(0, dx)?;
            }
            if g.needs(1) || g.needs(2) {
                let pairs = g.input_shape(1).last().copied().unwrap_or(0);
                let x = g.input(0)?;
                let [a, b] = halves(g, x, pairs, interleaved)?;
                let [da, db] = halves(g, dy, pairs, interleaved)?;
                // y = (a cos - b sin, b cos + a sin).
                if g.needs(1) {
                    let (first, second) = (g.call("mul", &[da, a], &[])?, g.call("mul", &[db, b], &[])?);
                    let d = g.call("add", &[first, second], &[])?;
                    g.set(1, d)?;
                }
                if g.needs(2) {
                    let (first, second) = (g.call("mul", &[db, a], &[])?, g.call("mul", &[da, b], &[])?);
                    let d = g.call("sub", &[first, second], &[])?;
                    g.set(2, d)?;
                }
            }
            Ok(())
        }))
        .samples(&[
            "f32[2, 3, 4, 6] f32[4, 3] f32[4, 3]",
            "f64[2, 4, 7] f64[4, 3] f64[4, 3]; interleaved=true",
            "f32[3, 2, 4] f32[3, 1, 2] f32[3, 1, 2]",
            "bf16[2, 3, 4] bf16[2] bf16[2]; interleaved=true",
            "f64[5, 6] f64[5, 2] f64[5, 2]",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![rotary_embedding()]
}
