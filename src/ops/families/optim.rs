//! Optimizer steps in place: parameter and state are mutable inputs, which are never boxed; the gradient follows them.

use crate::error::{Error, Result};
use crate::ops::{Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::cpu::optim::{self, AdamW, Sgd};
use smallvec::SmallVec;

fn same_shapes(c: &InferCtx<'_>) -> Result<()> {
    let want = c.shape(0)?;
    for (i, t) in c.inputs.iter().enumerate() {
        if let Some(t) = t
            && t.shape.as_slice() != want
        {
            return Err(Error::shape(format!(
                "{} has shape {:?}, the parameter {want:?}",
                c.op.sig.inputs[i].name,
                t.shape.as_slice()
            )));
        }
    }
    Ok(())
}

fn all_split(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    Ok((0..c.shape(0)?.len())
        .map(|d| Signature::new(&SmallVec::<[Sbp; 4]>::from_elem(Sbp::Split(d), c.inputs.len()), &[]))
        .collect())
}

fn step(text: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::new(text)?
        .doc(doc)
        .traits(|t| {
            t.side_effect = true;
            t.strided = true;
        })
        .check(same_shapes)
        .shapes(|_| Ok(SmallVec::new()))
        .dtype(crate::ops::DTypeRule::Fixed(vec![]))
        .get_sbp(all_split)
        .grad(Grad::None))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        step(
            "adamw_step(param!: float, grad: float, m!: float, v!: float; lr: runtime float, beta1: runtime float = 0.9, beta2: runtime float = 0.999, eps: runtime float = 1e-8, weight_decay: runtime float = 0.01, step: runtime int) -> ()",
            "One step of AdamW (Loshchilov and Hutter), PyTorch's formula.",
        )
        .map(|o| {
            o.cpu(|cx| {
                let f = |n: &str| cx.scalar(n).map(|s| s.to_f64());
                let s = AdamW {
                    lr: f("lr")?,
                    beta1: f("beta1")?,
                    beta2: f("beta2")?,
                    eps: f("eps")?,
                    weight_decay: f("weight_decay")?,
                    step: cx.scalar("step")?.to_i64().max(1) as u64,
                };
                Ok(optim::adamw(cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?, &s)?)
            })
            .samples(&["f32[3, 5] f32[3, 5] f32[3, 5] f32[3, 5]+; lr=0.1, step=3"])
        }),
        step(
            "sgd_step(param!: float, grad: float, momentum!?: float; lr: runtime float, decay: runtime float = 0.0, dampening: runtime float = 0.0, weight_decay: runtime float = 0.0, nesterov: runtime bool = false, first: runtime bool = false) -> ()",
            "One step of SGD with momentum, PyTorch's formula.",
        )
        .map(|o| {
            o.cpu(|cx| {
                let f = |n: &str| cx.scalar(n).map(|s| s.to_f64());
                let s = Sgd {
                    lr: f("lr")?,
                    momentum: f("decay")?,
                    dampening: f("dampening")?,
                    weight_decay: f("weight_decay")?,
                    nesterov: cx.scalar("nesterov")?.to_bool(),
                    first_step: cx.scalar("first")?.to_bool(),
                };
                Ok(optim::sgd(cx.input(0)?, cx.input(1)?, cx.opt_input(2), &s)?)
            })
            .samples(&["f32[3, 5] f32[3, 5] f32[3, 5]; lr=0.1, decay=0.9", "f32[4] f32[4] -; lr=0.1"])
        }),
        step("assign(x!, y) -> ()", "x becomes y, in place.").map(|o| {
            o.get_sbp(|c| {
                let mut s = all_split(c)?;
                for row in ["P(sum), P(sum) ->", "P(max), P(max) ->", "P(min), P(min) ->"] {
                    if c.input(0)?.dtype == c.input(1)?.dtype {
                        s.push(row.parse()?);
                    }
                }
                Ok(s)
            })
            .cpu(|cx| Ok(oflow_kernels::cpu::copy::copy(cx.input(1)?, cx.input(0)?)?))
                .cuda(|cx| Ok(oflow_kernels::cuda::copy::copy(cx.queue()?, cx.input(1)?, cx.input(0)?)?))
                .samples(&["f32[3, 5] f32[3, 5]"])
        }),
    ]
}
