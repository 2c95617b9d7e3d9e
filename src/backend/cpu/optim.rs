//! Kernels of optimizer steps, in place.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::optim::{self, AdamW, Sgd};
use oflow_kernels::cpu::steps::{self, Step};
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

/// The step that an op is, with its settings.
pub(in crate::backend) fn step_of(cx: &KernelCx<'_>) -> Result<Step> {
    let f = |n: &str| cx.scalar(n).map(|s| s.to_f64());
    let step = |least: i64| cx.scalar("step").map(|s| s.to_i64().max(least) as u64);
    Ok(match cx.op.sig.name.as_str() {
        "adam_many" => Step::Adam {
            lr: f("lr")?,
            beta1: f("beta1")?,
            beta2: f("beta2")?,
            eps: f("eps")?,
            weight_decay: f("weight_decay")?,
            decoupled: cx.scalar("decoupled")?.to_bool(),
            largest: cx.opt_input(4).is_some(),
            step: step(1)?,
        },
        "rmsprop_many" => Step::RmsProp {
            lr: f("lr")?,
            alpha: f("alpha")?,
            eps: f("eps")?,
            weight_decay: f("weight_decay")?,
            momentum: f("decay")?,
            centered: cx.opt_input(3).is_some(),
            buffer: cx.opt_input(4).is_some(),
        },
        "adagrad_many" => Step::Adagrad { lr: f("lr")?, eps: f("eps")?, weight_decay: f("weight_decay")? },
        "adadelta_many" => {
            Step::Adadelta { lr: f("lr")?, rho: f("rho")?, eps: f("eps")?, weight_decay: f("weight_decay")? }
        }
        "lion_many" => {
            Step::Lion { lr: f("lr")?, beta1: f("beta1")?, beta2: f("beta2")?, weight_decay: f("weight_decay")? }
        }
        "lamb_direction_many" => Step::LambDirection {
            beta1: f("beta1")?,
            beta2: f("beta2")?,
            eps: f("eps")?,
            weight_decay: f("weight_decay")?,
            step: step(0)?,
        },
        _ => Step::Average { decay: f("decay")? },
    })
}

/// The views of each parameter and of what is kept of it, without those that are absent.
pub(in crate::backend) fn kept<'a>(cx: &'a KernelCx<'_>) -> Vec<SmallVec<[&'a View; 5]>> {
    let group = cx.op.sig.repeating().max(1);
    cx.inputs.chunks(group).map(|entry| entry.iter().flatten().collect()).collect()
}

fn many(cx: &KernelCx<'_>) -> Result<()> {
    let step = step_of(cx)?;
    Ok(kept(cx).iter().try_for_each(|e| steps::step(&step, e[0], e[1], &e[2..]))?)
}

/// The elements of a view of floats.
fn numbers(of: &View) -> Result<Vec<f64>> {
    let mut all = vec![0f64; of.len()];
    // SAFETY: `all` outlives the view and is used by this call alone.
    let to = unsafe { View::from_mut(&mut all, of.dims()) };
    cpu::copy::copy(of, &to)?;
    Ok(all)
}

/// The ops of [`step_of`].
pub(in crate::backend) const STEPS: [&str; 7] =
    ["adam_many", "rmsprop_many", "adagrad_many", "adadelta_many", "lion_many", "lamb_direction_many", "average_many"];

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
    let mut all = vec![
        kernel("adamw_step", adamw),
        kernel("adamw_many", adamw),
        kernel("sgd_step", sgd),
        kernel("sgd_many", sgd),
        kernel("scale_many", |cx| {
            let factor = numbers(cx.input(0)?)?[0];
            Ok(cx.inputs[1..].iter().flatten().try_for_each(|x| optim::scale(x, factor))?)
        }),
        kernel("sum_of_squares", |cx| {
            let squares = cx.inputs.iter().flatten().map(optim::sum_of_squares);
            let total: f64 = squares.sum::<oflow_kernels::Result<f64>>()?;
            Ok(cpu::copy::fill(cx.output(0), Scalar::Float(total))?)
        }),
        kernel("subtract_many", |cx| {
            let factors = numbers(cx.input(0)?)?;
            let pairs = (0..factors.len()).map(|i| Ok((cx.input(1 + 2 * i)?, cx.input(2 + 2 * i)?, factors[i])));
            pairs.into_iter().try_for_each(|p: Result<_>| {
                let (x, y, factor) = p?;
                Ok(steps::subtract(x, y, factor)?)
            })
        }),
        kernel("squares_of_each", |cx| {
            let mut squares = Vec::new();
            for x in cx.inputs.iter().flatten() {
                squares.push(optim::sum_of_squares(x)?);
            }
            let count = squares.len();
            // SAFETY: `squares` outlives the view and is used by this call alone.
            let from = unsafe { View::from_mut(&mut squares, &[count]) };
            Ok(cpu::copy::copy(&from, cx.output(0))?)
        }),
        kernel("assign", |cx| Ok(cpu::copy::copy(cx.input(1)?, cx.input(0)?)?)),
    ];
    all.extend(STEPS.map(|name| kernel(name, many)));
    all
}
