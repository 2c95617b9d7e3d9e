//! Kernels of what runs along a dim besides sums.

use super::{On, Row, both};
use crate::ops::KernelCx;
use oflow_kernels::cuda::run::{Running, run};
use oflow_kernels::{View, cpu};
use smallvec::SmallVec;

/// A running kernel of that kind: all inputs and outputs as lines, where they have no dims. A GPU has one function for all kinds.
fn running(op: &'static str, kind: Running) -> Row {
    both(op, move |on, cx| {
        let lines = |views: &mut dyn Iterator<Item = &View>| views.map(KernelCx::line).collect::<SmallVec<[View; 2]>>();
        let (ins, outs) = (lines(&mut cx.inputs.iter().flatten()), lines(&mut cx.outputs.iter()));
        let (dim, reverse) = (cx.dim("dim", 0)?, kind == Running::Linear && cx.bool("reverse")?);
        if let On::Cuda(q) = on {
            let (ins, outs): (SmallVec<[&View; 2]>, SmallVec<[&View; 2]>) =
                (ins.iter().collect(), outs.iter().collect());
            return Ok(run(q, kind, &ins, &outs, dim, reverse)?);
        }
        Ok(match kind {
            Running::Product => cpu::scan::cumprod(&ins[0], &outs[0], dim),
            Running::Max => cpu::scan::cumulative_extreme(&ins[0], &outs[0], &outs[1], dim, false),
            Running::Min => cpu::scan::cumulative_extreme(&ins[0], &outs[0], &outs[1], dim, true),
            Running::LogSumExp => cpu::scan::logcumsumexp(&ins[0], &outs[0], dim),
            Running::Linear => cpu::scan::linear_scan(&ins[0], &ins[1], &outs[0], dim, reverse),
        }?)
    })
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        running("cumprod", Running::Product),
        running("cummax", Running::Max),
        running("cummin", Running::Min),
        running("logcumsumexp", Running::LogSumExp),
        running("linear_scan", Running::Linear),
    ]
}
