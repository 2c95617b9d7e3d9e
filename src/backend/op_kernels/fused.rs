//! The kernels of fused calls: their chain, compiled as the expression of an elementwise op is, and a reduction that reads it.

use super::Row;
use crate::backend::cuda::queue;
use crate::backend::kernels::program;
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, KernelDef, KernelState, TensorType, broadcast_shapes};
use oflow_kernels::cpu::reduce::Reduce;
use oflow_kernels::expr::Chain;
use oflow_kernels::{DType, View, cpu, cuda};
use smallvec::SmallVec;
use std::sync::Arc;

/// Inputs whose memory the output may take.
const REUSED: usize = 16;

type Compile<P> = fn(&Chain, &[DType], DType, DType) -> oflow_kernels::Result<P>;

/// Gives the kernel its program, compiled per plan for the chain and the dtypes.
fn compiled<P: Send + Sync + 'static>(kernel: KernelDef, compile: Compile<P>) -> KernelDef {
    kernel.with_state(move |c: &InferCtx<'_>, _: &[TensorType]| {
        let dtypes: Vec<DType> = c.present().map(|t| t.dtype).collect();
        let chain = Chain::parse(c.str("chain")?, dtypes.len())?;
        let state: KernelState = Arc::new(compile(&chain, &dtypes, c.dtype_attr("dtype")?, c.dtype_attr("compute")?)?);
        Ok(state)
    })
}

fn reusing(kernel: KernelDef) -> KernelDef {
    (0..REUSED).fold(kernel, |k, i| k.may_reuse(i, 0))
}

/// The reduction of a call.
fn reduce_of(cx: &KernelCx<'_>) -> Result<Reduce> {
    Ok(match cx.str("reduce")? {
        "amax" => Reduce::Max,
        "amin" => Reduce::Min,
        _ => Reduce::Sum,
    })
}

fn reduction_on_cpu() -> KernelDef {
    use cpu::elementwise::Program;
    let kernel = KernelDef::cpu("fused_reduce_cpu", |cx| {
        let views: SmallVec<[&View; 12]> = cx.inputs.iter().flatten().collect();
        let shape = broadcast_shapes(views.iter().map(|v| v.dims()))?;
        let last = cx.int("last")? as usize;
        let dims: SmallVec<[usize; 6]> = (shape.len() - last..shape.len()).collect();
        let out = KernelCx::keepdim_view(cx.output(0), shape.len(), &dims);
        let count = match cx.str("reduce")? {
            "mean" => {
                // The elements of the whole tensor, of which this is a part.
                let whole = broadcast_shapes(cx.input_boxes.iter().flatten().map(|b| b.logical.as_slice()))?;
                Some(dims.iter().map(|d| whole[*d]).product())
            }
            _ => None,
        };
        Ok(cpu::reduce::fused(program::<Program>(cx)?, &views, &shape, &out, reduce_of(cx)?, (last, count))?)
    });
    compiled(kernel, Program::compile_chain)
}

fn on_cpu() -> KernelDef {
    use cpu::elementwise::Program;
    let kernel = KernelDef::cpu("fused_cpu", |cx| {
        let mut views: SmallVec<[&View; 12]> = SmallVec::new();
        for v in cx.inputs.iter().flatten() {
            views.push(v);
        }
        Ok(program::<Program>(cx)?.run(&views, &[], cx.output(0))?)
    });
    compiled(reusing(kernel), Program::compile_chain)
}

fn on_cuda() -> KernelDef {
    use cuda::elementwise::Program;
    let kernel = KernelDef::cuda("fused_cuda", |cx| -> Result<()> {
        let views: SmallVec<[View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(&queue(cx)?, &views, &[], cx.output(0))?)
    });
    compiled(reusing(kernel), Program::compile_chain)
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row { op: "fused", cpu: on_cpu(), cuda: Some(on_cuda()) },
        Row { op: "fused_reduce", cpu: reduction_on_cpu(), cuda: None },
    ]
}
