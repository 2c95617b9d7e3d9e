//! The kernel of an elementwise op, made from its scalar expression.

use super::queue;
use crate::backend::kernels::{program, reusing};
use crate::ops::{KernelDef, KernelState};
use oflow_kernels::cuda::elementwise::Program;
use oflow_kernels::expr::Expr;
use oflow_kernels::{DType, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// The kernel of an expression: written per plan for its dtypes, compiled at the first call.
pub(in crate::backend) fn elementwise(expr: &Arc<Expr>) -> KernelDef {
    let kernel = KernelDef::cuda("elementwise_cuda", |cx| {
        let views: SmallVec<[View; 4]> = cx.inputs.iter().flatten().cloned().collect();
        Ok(program::<Program>(cx)?.run(&queue(cx)?, &views, cx.runtime, cx.output(0))?)
    });
    let of = expr.clone();
    reusing(kernel, expr).with_state(move |ctx, outs| {
        let dtypes: Vec<DType> = ctx.present().map(|t| t.dtype).collect();
        let compute = ctx.op.compute_dtype(ctx, outs[0].dtype)?;
        let state: KernelState = Arc::new(Program::compile_in(&of, &dtypes, outs[0].dtype, compute)?);
        Ok(state)
    })
}
