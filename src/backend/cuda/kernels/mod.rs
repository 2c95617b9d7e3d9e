//! The GPU's kernels, one file a family of ops. They put work on the queue of the call and do not wait for it.

mod attention;
mod batch_norm;
mod conv;
mod count;
mod create;
mod elementwise;
mod embedding;
mod grouped_norm;
mod index;
mod loss;
mod matmul;
mod norm;
mod optim;
mod pool;
mod random;
mod reduce;
mod resample;
mod scan;
mod select;
mod shape;
mod softmax;
mod sort;
mod strided;

use super::queue;
use crate::backend::kernels::OpKernel;
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, KernelDef, TensorType};
use oflow_kernels::cuda::{self, Queue};

pub(super) use elementwise::elementwise;

/// All kernels of GPUs.
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
    families.into_iter().flat_map(|family| family()).collect()
}

/// Copies and converts a view into another, whatever their strides.
pub(super) fn copy() -> KernelDef {
    KernelDef::cuda("copy_cuda", |cx| Ok(cuda::copy::copy(&queue(cx)?, cx.input(0)?, cx.output(0))?))
}

/// The kernel of an op that always applies.
fn kernel(op: &'static str, run: impl Fn(&Queue<'_>, &KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> OpKernel {
    (op, KernelDef::cuda(&format!("{op}_cuda"), move |cx| run(&queue(cx)?, cx)))
}

/// Gives a kernel scratch memory.
fn with_scratch(
    (op, kernel): OpKernel,
    bytes: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<usize> + Send + Sync + 'static,
) -> OpKernel {
    (op, kernel.with_workspace(bytes))
}
