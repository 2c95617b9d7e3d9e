//! The kernels of elementwise ops, made from the scalar expression.

use super::kernel::{KernelCx, KernelDef, KernelState};
use crate::error::{Error, Result};
use oflow_kernels::DType;
use oflow_kernels::expr::Expr;
use smallvec::SmallVec;
use std::sync::Arc;

/// The CPU kernel of an expression: compiled per plan for its dtypes.
pub(super) fn cpu(expr: Arc<Expr>) -> KernelDef {
    use oflow_kernels::cpu::elementwise::Program;
    let kernel = KernelDef::cpu("elementwise_cpu", |cx| {
        let views: SmallVec<[oflow_kernels::View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(&views, cx.runtime, cx.output(0))?)
    });
    reusing(kernel, &expr).with_state(move |ctx, outs| {
        let dtypes: Vec<DType> = ctx.present().map(|t| t.dtype).collect();
        let compute = ctx.op.compute_dtype(ctx, outs[0].dtype)?;
        let state: KernelState = Arc::new(Program::compile_in(&expr, &dtypes, outs[0].dtype, compute)?);
        Ok(state)
    })
}

/// The CUDA kernel of an expression: written per plan for its dtypes, compiled at the first call.
pub(super) fn cuda(expr: Arc<Expr>) -> KernelDef {
    use oflow_kernels::cuda::elementwise::Program;
    let kernel = KernelDef::cuda("elementwise_cuda", |cx| {
        let views: SmallVec<[oflow_kernels::View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(cx.queue()?, &views, cx.runtime, cx.output(0))?)
    });
    reusing(kernel, &expr).with_state(move |ctx, outs| {
        let dtypes: Vec<DType> = ctx.present().map(|t| t.dtype).collect();
        let compute = ctx.op.compute_dtype(ctx, outs[0].dtype)?;
        let state: KernelState = Arc::new(Program::compile_in(&expr, &dtypes, outs[0].dtype, compute)?);
        Ok(state)
    })
}

fn program<'a, P: 'static>(cx: &KernelCx<'a>) -> Result<&'a P> {
    let found = cx.state.and_then(|s| s.downcast_ref::<P>());
    found.ok_or_else(|| Error::device("elementwise kernel without its program"))
}

/// The output may take the memory of any input that the expression uses.
fn reusing(kernel: KernelDef, expr: &Expr) -> KernelDef {
    (0..8).filter(|i| expr.uses_input(*i)).fold(kernel, |k, i| k.may_reuse(i, 0))
}
