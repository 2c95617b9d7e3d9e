//! Kernels of optimizer steps, in place: many parameters in one launch or a few.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::optim::{STEPS, adamw_settings, entries, kept, sgd_settings, step_of};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::View;
use oflow_kernels::cuda::{Queue, copy, optim, steps};
use smallvec::SmallVec;

fn adamw(q: &Queue<'_>, cx: &KernelCx<'_>) -> Result<()> {
    Ok(optim::adamw(q, &entries::<4>(cx)?, &adamw_settings(cx)?)?)
}

/// Parameters all have a momentum buffer, or none has.
fn sgd(q: &Queue<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let momentum = cx.opt_input(2).is_some();
    Ok(optim::sgd(q, &entries::<3>(cx)?, momentum, &sgd_settings(cx)?)?)
}

pub(super) fn kernels() -> Vec<OpKernel> {
    let squares = kernel("sum_of_squares", |q, cx| {
        let views: SmallVec<[&View; 64]> = cx.inputs.iter().flatten().collect();
        Ok(optim::sum_of_squares(q, &views, cx.output(0), cx.workspace)?)
    });
    let each = kernel("squares_of_each", |q, cx| {
        let views: SmallVec<[&View; 64]> = cx.inputs.iter().flatten().collect();
        Ok(steps::squares_of_each(q, &views, cx.output(0), cx.workspace)?)
    });
    let mut all = vec![
        kernel("adamw_step", adamw),
        kernel("adamw_many", adamw),
        kernel("sgd_step", sgd),
        kernel("sgd_many", sgd),
        kernel("scale_many", |q, cx| {
            let views: SmallVec<[&View; 64]> = cx.inputs[1..].iter().flatten().collect();
            Ok(optim::scale(q, cx.input(0)?, &views)?)
        }),
        with_scratch(squares, |c, _| Ok(optim::squares_workspace(c.present().map(|t| t.len())))),
        kernel("subtract_many", |q, cx| {
            let pairs = (1..cx.inputs.len()).step_by(2).map(|i| Ok([cx.input(i)?, cx.input(i + 1)?]));
            Ok(steps::subtract(q, cx.input(0)?, &pairs.collect::<Result<Vec<_>>>()?)?)
        }),
        with_scratch(each, |c, _| Ok(optim::squares_workspace([c.present().map(|t| t.len()).max().unwrap_or(0)]))),
        kernel("assign", |q, cx| Ok(copy::copy(q, cx.input(1)?, cx.input(0)?)?)),
    ];
    all.extend(STEPS.map(|name| kernel(name, |q, cx| Ok(steps::step(q, &step_of(cx)?, &kept(cx))?))));
    all
}
