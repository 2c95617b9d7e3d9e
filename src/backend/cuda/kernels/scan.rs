//! Kernels of what runs along a dim besides sums.

use super::{OpKernel, kernel};
use crate::ops::KernelCx;
use oflow_kernels::View;
use oflow_kernels::cuda::run::{Running, run};
use smallvec::SmallVec;

/// A kernel of so many inputs and outputs.
fn running(op: &'static str, kind: Running, inputs: usize, outputs: usize) -> OpKernel {
    kernel(op, move |q, cx| {
        let ins = (0..inputs).map(|i| Ok(KernelCx::line(cx.input(i)?)));
        let ins: SmallVec<[View; 2]> = ins.collect::<crate::error::Result<_>>()?;
        let outs: SmallVec<[View; 2]> = (0..outputs).map(|i| KernelCx::line(cx.output(i))).collect();
        let reverse = kind == Running::Linear && cx.bool("reverse")?;
        let (ins, outs): (SmallVec<[&View; 2]>, SmallVec<[&View; 2]>) = (ins.iter().collect(), outs.iter().collect());
        Ok(run(q, kind, &ins, &outs, cx.dim("dim", 0)?, reverse)?)
    })
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        running("cumprod", Running::Product, 1, 1),
        running("cummax", Running::Max, 1, 2),
        running("cummin", Running::Min, 1, 2),
        running("logcumsumexp", Running::LogSumExp, 1, 1),
        running("linear_scan", Running::Linear, 2, 1),
    ]
}
