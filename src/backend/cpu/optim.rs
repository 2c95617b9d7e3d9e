//! Kernels of optimizer steps, in place.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::optim::{self, AdamW, Sgd};
use oflow_kernels::{Scalar, View, cpu};
use smallvec::SmallVec;

/// The numbers of a step of AdamW.
pub(in crate::backend) fn adamw_settings(cx: &KernelCx<'_>) -> Result<AdamW> {
    let f = |n: &str| cx.scalar(n).map(|s| s.to_f64());
    Ok(AdamW {
        lr: f("lr")?,
        beta1: f("beta1")?,
        beta2: f("beta2")?,
        eps: f("eps")?,
        weight_decay: f("weight_decay")?,
        step: cx.scalar("step")?.to_i64().max(1) as u64,
    })
}

/// The numbers of a step of SGD.
pub(in crate::backend) fn sgd_settings(cx: &KernelCx<'_>) -> Result<Sgd> {
    let f = |n: &str| cx.scalar(n).map(|s| s.to_f64());
    Ok(Sgd {
        lr: f("lr")?,
        momentum: f("decay")?,
        dampening: f("dampening")?,
        weight_decay: f("weight_decay")?,
        nesterov: cx.scalar("nesterov")?.to_bool(),
        first_step: cx.scalar("first")?.to_bool(),
    })
}

/// The views of each parameter and of what belongs to it, `K` at a time; what is absent is the parameter again.
pub(in crate::backend) fn entries<'a, const K: usize>(cx: &'a KernelCx<'_>) -> Result<SmallVec<[[&'a View; K]; 64]>> {
    (0..cx.inputs.len() / K)
        .map(|e| {
            let param = cx.input(e * K)?;
            Ok(std::array::from_fn(|k| cx.opt_input(e * K + k).unwrap_or(param)))
        })
        .collect()
}

fn adamw(cx: &KernelCx<'_>) -> Result<()> {
    let s = adamw_settings(cx)?;
    Ok(entries::<4>(cx)?.iter().try_for_each(|[p, g, m, v]| optim::adamw(p, g, m, v, &s))?)
}

/// Parameters all have a momentum buffer, or none has.
fn sgd(cx: &KernelCx<'_>) -> Result<()> {
    let s = sgd_settings(cx)?;
    let step = |(e, [p, g, _]): (usize, &[&View; 3])| optim::sgd(p, g, cx.opt_input(e * 3 + 2), &s);
    Ok(entries::<3>(cx)?.iter().enumerate().try_for_each(step)?)
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("adamw_step", adamw),
        kernel("adamw_many", adamw),
        kernel("sgd_step", sgd),
        kernel("sgd_many", sgd),
        kernel("scale_many", |cx| {
            let mut factor = [0f64];
            // SAFETY: `factor` outlives the view and is used by this call alone.
            let to = unsafe { View::from_mut(&mut factor, &[]) };
            cpu::copy::copy(cx.input(0)?, &to)?;
            let factor = to.as_slice::<f64>()?[0];
            Ok(cx.inputs[1..].iter().flatten().try_for_each(|x| optim::scale(x, factor))?)
        }),
        kernel("sum_of_squares", |cx| {
            let squares = cx.inputs.iter().flatten().map(optim::sum_of_squares);
            let total: f64 = squares.sum::<oflow_kernels::Result<f64>>()?;
            Ok(cpu::copy::fill(cx.output(0), Scalar::Float(total))?)
        }),
        kernel("assign", |cx| Ok(cpu::copy::copy(cx.input(1)?, cx.input(0)?)?)),
    ]
}
