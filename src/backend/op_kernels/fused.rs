//! The kernel of fused calls: their chain, compiled as the expression of an elementwise op is.

use super::Row;
use crate::backend::cuda::queue;
use crate::backend::kernels::program;
use crate::error::Result;
use crate::ops::{InferCtx, KernelDef, KernelState, TensorType};
use oflow_kernels::expr::Chain;
use oflow_kernels::{DType, View, cpu, cuda};
use smallvec::SmallVec;
use std::sync::Arc;

/// Inputs whose memory the output may take.
const REUSED: usize = 16;

type Compile<P> = fn(&Chain, &[DType], DType, DType) -> oflow_kernels::Result<P>;

/// Gives the kernel its program, compiled per plan for the chain and the dtypes.
fn compiled<P: Send + Sync + 'static>(kernel: KernelDef, compile: Compile<P>) -> KernelDef {
    let reusing = (0..REUSED).fold(kernel, |k, i| k.may_reuse(i, 0));
    reusing.with_state(move |c: &InferCtx<'_>, outs: &[TensorType]| {
        let dtypes: Vec<DType> = c.present().map(|t| t.dtype).collect();
        let chain = Chain::parse(c.str("chain")?, dtypes.len())?;
        let state: KernelState = Arc::new(compile(&chain, &dtypes, outs[0].dtype, c.dtype_attr("compute")?)?);
        Ok(state)
    })
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
    compiled(kernel, Program::compile_chain)
}

fn on_cuda() -> KernelDef {
    use cuda::elementwise::Program;
    let kernel = KernelDef::cuda("fused_cuda", |cx| -> Result<()> {
        let views: SmallVec<[View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(&queue(cx)?, &views, &[], cx.output(0))?)
    });
    compiled(kernel, Program::compile_chain)
}

pub(super) fn rows() -> Vec<Row> {
    vec![Row { op: "fused", cpu: on_cpu(), cuda: Some(on_cuda()) }]
}
