//! Kernels of optimizer steps, in place.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::optim::{AdamW, Sgd};
use oflow_kernels::cpu::steps::Step;
use oflow_kernels::{Scalar, View, cpu, cuda};
use smallvec::SmallVec;

/// The numbers of a step of AdamW.
fn adamw_settings(cx: &KernelCx<'_>) -> Result<AdamW> {
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
fn sgd_settings(cx: &KernelCx<'_>) -> Result<Sgd> {
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
fn entries<'a, const K: usize>(cx: &'a KernelCx<'_>) -> Result<SmallVec<[[&'a View; K]; 64]>> {
    (0..cx.inputs.len() / K)
        .map(|e| {
            let param = cx.input(e * K)?;
            Ok(std::array::from_fn(|k| cx.opt_input(e * K + k).unwrap_or(param)))
        })
        .collect()
}

/// The step that an op of [`Step::OPS`] is, with its settings.
fn step_of(cx: &KernelCx<'_>) -> Result<Step> {
    Step::of_op(&cx.op.sig.name, |n| cx.scalar(n).map(|s| s.to_f64()), |i| cx.opt_input(i).is_some())
}

/// The views of each parameter and of what is kept of it, without those that are absent.
fn kept<'a>(cx: &'a KernelCx<'_>) -> Vec<SmallVec<[&'a View; 5]>> {
    let group = cx.op.sig.repeating().max(1);
    cx.inputs.chunks(group).map(|entry| entry.iter().flatten().collect()).collect()
}

/// Steps of many parameters.
fn many(on: On<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let (step, all) = (step_of(cx)?, kept(cx));
    match on {
        On::Cpu => Ok(all.iter().try_for_each(|e| cpu::steps::step(&step, e[0], e[1], &e[2..]))?),
        On::Cuda(q) => Ok(cuda::steps::step(q, &step, &all)?),
    }
}

fn adamw(on: On<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let (settings, all) = (adamw_settings(cx)?, entries::<4>(cx)?);
    match on {
        On::Cpu => Ok(all.iter().try_for_each(|[p, g, m, v]| cpu::optim::adamw(p, g, m, v, &settings))?),
        On::Cuda(q) => Ok(cuda::optim::adamw(q, &all, &settings)?),
    }
}

/// Parameters all have a momentum buffer, or none has.
fn sgd(on: On<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let (settings, all) = (sgd_settings(cx)?, entries::<3>(cx)?);
    let momentum = cx.opt_input(2).is_some();
    match on {
        On::Cpu => Ok(all.iter().try_for_each(|[p, g, m]| cpu::optim::sgd(p, g, momentum.then_some(m), &settings))?),
        On::Cuda(q) => Ok(cuda::optim::sgd(q, &all, momentum, &settings)?),
    }
}

/// The elements of a view of floats in host memory.
fn numbers(of: &View) -> Result<Vec<f64>> {
    let mut all = vec![0f64; of.len()];
    // SAFETY: `all` outlives the view and is used by this call alone.
    let to = unsafe { View::from_mut(&mut all, of.dims()) };
    cpu::copy::copy(of, &to)?;
    Ok(all)
}

/// The inputs from that number on.
fn inputs<'a>(cx: &'a KernelCx<'_>, from: usize) -> SmallVec<[&'a View; 64]> {
    cx.inputs[from..].iter().flatten().collect()
}

pub(super) fn rows() -> Vec<Row> {
    let mut all = vec![
        both("adamw_step", adamw),
        both("adamw_many", adamw),
        both("sgd_step", sgd),
        both("sgd_many", sgd),
        both("scale_many", |on, cx| match on {
            On::Cpu => {
                let factor = numbers(cx.input(0)?)?[0];
                Ok(inputs(cx, 1).iter().try_for_each(|x| cpu::optim::scale(x, factor))?)
            }
            // The factor stays on the GPU.
            On::Cuda(q) => Ok(cuda::optim::scale(q, cx.input(0)?, &inputs(cx, 1))?),
        }),
        both("sum_of_squares", |on, cx| match on {
            On::Cpu => {
                let squares = inputs(cx, 0).into_iter().map(cpu::optim::sum_of_squares);
                let total: f64 = squares.sum::<oflow_kernels::Result<f64>>()?;
                Ok(cpu::copy::fill(cx.output(0), Scalar::Float(total))?)
            }
            On::Cuda(q) => Ok(cuda::optim::sum_of_squares(q, &inputs(cx, 0), cx.output(0), cx.workspace)?),
        })
        .scratch(|c, _| Ok(cuda::optim::squares_workspace(c.present().map(|t| t.len())))),
        both("subtract_many", |on, cx| {
            let pairs = (1..cx.inputs.len()).step_by(2).map(|i| Ok([cx.input(i)?, cx.input(i + 1)?]));
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            match on {
                On::Cpu => {
                    let mut each = pairs.iter().zip(numbers(cx.input(0)?)?);
                    Ok(each.try_for_each(|([x, y], factor)| cpu::steps::subtract(x, y, factor))?)
                }
                On::Cuda(q) => Ok(cuda::steps::subtract(q, cx.input(0)?, &pairs)?),
            }
        }),
        both("squares_of_each", |on, cx| match on {
            On::Cpu => {
                let squares = inputs(cx, 0).into_iter().map(cpu::optim::sum_of_squares);
                let mut squares = squares.collect::<oflow_kernels::Result<Vec<f64>>>()?;
                let count = squares.len();
                // SAFETY: `squares` outlives the view and is used by this call alone.
                let from = unsafe { View::from_mut(&mut squares, &[count]) };
                Ok(cpu::copy::copy(&from, cx.output(0))?)
            }
            On::Cuda(q) => Ok(cuda::steps::squares_of_each(q, &inputs(cx, 0), cx.output(0), cx.workspace)?),
        })
        .scratch(|c, _| Ok(cuda::optim::squares_workspace([c.present().map(|t| t.len()).max().unwrap_or(0)]))),
        both("assign", |on, cx| run!(on, copy::copy(cx.input(1)?, cx.input(0)?))),
    ];
    all.extend(Step::OPS.map(|name| both(name, many)));
    all
}
