//! The kernel of an elementwise op, made from its scalar expression.

use crate::backend::kernels::{compiled, program};
use crate::ops::KernelDef;
use oflow_kernels::View;
use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::expr::Expr;
use smallvec::SmallVec;
use std::sync::Arc;

/// The kernel of an expression: compiled per plan for its dtypes.
pub(in crate::backend) fn elementwise(expr: &Arc<Expr>) -> KernelDef {
    let kernel = KernelDef::cpu("elementwise_cpu", |cx| {
        // Of a registered dtype the numbers are meant that its elements are stored as.
        if let [Some(v)] = cx.inputs
            && !(v.dtype().is_builtin() && cx.output(0).dtype().is_builtin())
        {
            return Ok(program::<Program>(cx)?.run(&[&v.stored()], cx.runtime, &cx.output(0).stored())?);
        }
        // Pushed one by one: collecting from an iterator of unknown length costs more than a small kernel.
        let mut views: SmallVec<[&View; 8]> = SmallVec::new();
        for v in cx.inputs.iter().flatten() {
            views.push(v);
        }
        Ok(program::<Program>(cx)?.run(&views, cx.runtime, cx.output(0))?)
    });
    compiled(kernel, expr, Program::compile_in)
}
