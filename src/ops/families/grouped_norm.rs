//! Group norm of `[n, groups, channels, inner]`: what an image and a group have is a row with mean 0 and variance 1, and each channel is
//! scaled and shifted. On split channels or a split inner dim it is a lowering: the statistics of the rows are summed over the shards.

use super::norm::{backward, forward};
use super::norm_grad::{Norm, gradient, second_gradient};
use super::statistics;
use crate::error::Result;
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::Dims;
use smallvec::smallvec;
use std::sync::Arc;

fn check_channels(c: &InferCtx<'_>, x: usize, of: &[usize]) -> Result<()> {
    let want = &c.shape(x)?[1..3];
    of.iter().filter(|i| c.has(**i)).try_for_each(|i| super::dims_are(c, *i, want))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    let [s0, s1, s2, s3] = [0, 1, 2, 3].map(Sbp::Split);
    vec![
        OpDef::new("grouped_norm(x: float[4], weight?: float, bias?: float; eps: runtime float = 1e-5) -> (y, mean, rstd)").map(|o| {
            o.doc("Group norm of [n, groups, channels, inner]: the elements of an image and a group with mean 0 and variance 1, then scaled and shifted by channels.")
                .by_name_only()
                .check(|c| check_channels(c, 0, &[1, 2]))
                .shapes(|c| {
                    let rows: Dims = c.shape(0)?[..2].into();
                    Ok(smallvec![c.shape(0)?.into(), rows.clone(), rows])
                })
                .dtype(DTypeRule::Fn(Arc::new(|c| {
                    let d = c.input(0)?.dtype;
                    Ok([d, statistics(d), statistics(d)].into_iter().collect())
                })))
                .get_sbp(move |_| Ok(vec![Signature::new(&[s0, b, b], &[s0; 3]), Signature::new(&[s1, s0, s0], &[s1; 3])]))
                .lowering(
                    move |_| Ok(vec![Signature::new(&[s2, s1, s1], &[s2, b, b]), Signature::new(&[s3, b, b], &[s3, b, b])]),
                    |e, call| forward(e, call, Norm::Grouped),
                )
                .grad(Grad::rule_saving(&[0, 1], &[1, 2], |g| gradient(g, Norm::Grouped)))
                .samples(&["f32[4, 3, 2, 5] f32[3, 2] f32[3, 2]", "f64[3, 2, 4, 3] f64[2, 4] -", "f32[2, 3, 2, 18] - -"])
        }),
        OpDef::new(
            "grouped_norm_grad(dy: float[4], x: float[4], mean: float, rstd: float, weight?: float) -> (dx, dweight, dbias)",
        )
        .map(|o| {
            o.doc("Gradients of grouped_norm.")
                .by_name_only()
                .check(|c| {
                    let x = c.input(1)?;
                    super::one_dtype(c, &[0, 1])?;
                    super::dims_are(c, 0, &x.shape)?;
                    check_channels(c, 1, &[4])?;
                    [2, 3].into_iter().try_for_each(|i| {
                        super::dims_are(c, i, &x.shape[..2])?;
                        super::dtype_is(c, i, statistics(x.dtype))
                    })
                })
                .shapes(|c| {
                    let w: Dims = c.shape(1)?[1..3].into();
                    Ok(smallvec![c.shape(1)?.into(), w.clone(), w])
                })
                .dtype(DTypeRule::Input(1))
                .get_sbp(move |_| {
                    Ok(vec![
                        Signature::new(&[s0, s0, s0, s0, b], &[s0, p, p]),
                        Signature::new(&[s1, s1, s1, s1, s0], &[s1, s0, s0]),
                        Signature::new(&[p, b, b, b, b], &[p, p, p]),
                    ])
                })
                .lowering(
                    move |_| {
                        Ok(vec![
                            Signature::new(&[s2, s2, b, b, s1], &[s2, s1, s1]),
                            Signature::new(&[s3, s3, b, b, b], &[s3, p, p]),
                        ])
                    },
                    |e, call| backward(e, call, Norm::Grouped),
                )
                .grad(Grad::rule_saving(&[0, 1, 2, 3, 4], &[], |g| second_gradient(g, Norm::Grouped)))
                .traits(|t| t.run_empty = true)
                .samples(&["f32[4, 3, 2, 6] f32[4, 3, 2, 6] f32[4, 3] f32[4, 3]+ f32[3, 2]", "f64[3, 2, 2, 18] f64[3, 2, 2, 18] f64[3, 2] f64[3, 2]+ -"])
        }),
    ]
}
