//! The kernel of an elementwise op, made from its scalar expression.

use super::queue;
use crate::backend::kernels::{compiled, program};
use crate::ops::KernelDef;
use oflow_kernels::View;
use oflow_kernels::cuda::elementwise::Program;
use oflow_kernels::expr::Expr;
use smallvec::SmallVec;
use std::sync::Arc;

/// The kernel of an expression: written per plan for its dtypes, compiled at the first call.
pub(in crate::backend) fn elementwise(expr: &Arc<Expr>) -> KernelDef {
    let kernel = KernelDef::cuda("elementwise_cuda", |cx| {
        // Of a registered dtype the numbers are meant that its elements are stored as.
        let views: SmallVec<[View; 4]> = cx.inputs.iter().flatten().map(View::stored).collect();
        Ok(program::<Program>(cx)?.run(&queue(cx)?, &views, cx.runtime, &cx.output(0).stored())?)
    });
    compiled(kernel, expr, Program::compile_in)
}
