//! The CPU's kernels, one file a family of ops.
//!
//! Where a kernel needs a call in another form (operands transposed, a window of a tensor), the function that makes it
//! stands here and serves the kernels of other devices too.

pub(super) mod attention;
mod batch_norm;
pub(super) mod conv;
pub(super) mod count;
mod create;
mod elementwise;
mod embedding;
mod grouped_norm;
pub(super) mod index;
pub(super) mod loss;
pub(super) mod matmul;
pub(super) mod norm;
pub(super) mod optim;
pub(super) mod pool;
mod random;
pub(super) mod reduce;
pub(super) mod resample;
mod scan;
pub(super) mod select;
pub(super) mod shape;
mod softmax;
pub(super) mod sort;
pub(super) mod strided;
mod widened;

use super::kernels::OpKernel;
use crate::error::Result;
use crate::ops::{KernelCx, KernelDef};
use oflow_kernels::cpu;

pub(super) use create::{eye_diagonal, first_at, linspace_parts};
pub(super) use elementwise::elementwise;
pub(super) use random::drawn;

/// All kernels of the CPU.
pub(super) fn kernels() -> Vec<OpKernel> {
    let families = [
        attention::kernels,
        batch_norm::kernels,
        grouped_norm::kernels,
        conv::kernels,
        count::kernels,
        create::kernels,
        embedding::kernels,
        index::kernels,
        loss::kernels,
        matmul::kernels,
        norm::kernels,
        optim::kernels,
        pool::kernels,
        random::kernels,
        reduce::kernels,
        resample::kernels,
        scan::kernels,
        select::kernels,
        shape::kernels,
        softmax::kernels,
        sort::kernels,
        strided::kernels,
    ];
    families.into_iter().flat_map(|family| family()).map(widened::widened).collect()
}

/// Copies and converts a view into another, whatever their strides.
pub(super) fn copy() -> KernelDef {
    KernelDef::cpu("copy", |cx| Ok(cpu::copy::copy(cx.input(0)?, cx.output(0))?))
}

/// The kernel of an op that always applies.
fn kernel(op: &'static str, run: impl Fn(&KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> OpKernel {
    (op, KernelDef::cpu(&format!("{op}_cpu"), run))
}
