//! The CPU's kernels: those of scalar expressions and copies stand here, those of ops in `backend/op_kernels`.

mod elementwise;
mod widened;

use super::op_kernels::{self, OpKernel};
use crate::ops::KernelDef;
use oflow_kernels::cpu;

pub(super) use elementwise::elementwise;

/// All kernels of the CPU.
pub(super) fn kernels() -> Vec<OpKernel> {
    op_kernels::on_cpu().map(widened::widened).collect()
}

/// Copies and converts a view into another, whatever their strides.
pub(super) fn copy() -> KernelDef {
    KernelDef::cpu("copy", |cx| Ok(cpu::copy::copy(cx.input(0)?, cx.output(0))?))
}
