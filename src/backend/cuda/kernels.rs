//! Kernels of GPUs that no op names: of scalar expressions, and copies. Those of ops stand in `backend/op_kernels`.

use super::queue;
use crate::backend::kernels::{compiled, program};
use crate::ops::KernelDef;
use oflow_kernels::View;
use oflow_kernels::cuda::copy;
use oflow_kernels::cuda::elementwise::Program;
use oflow_kernels::expr::Expr;
use smallvec::SmallVec;
use std::sync::Arc;

/// Copies and converts a view into another, whatever their strides.
pub(super) fn copy() -> KernelDef {
    KernelDef::cuda("copy_cuda", |cx| Ok(copy::copy(&queue(cx)?, cx.input(0)?, cx.output(0))?))
}

/// The kernel of an expression: written per plan for its dtypes, compiled at the first call.
pub(super) fn elementwise(expr: &Arc<Expr>) -> KernelDef {
    let kernel = KernelDef::cuda("elementwise_cuda", |cx| {
        // Of a registered dtype the numbers are meant that its elements are stored as.
        let views: SmallVec<[View; 4]> = cx.inputs.iter().flatten().map(View::stored).collect();
        Ok(program::<Program>(cx)?.run(&queue(cx)?, &views, cx.runtime, &cx.output(0).stored())?)
    });
    compiled(kernel, expr, Program::compile_in)
}
