//! NVIDIA GPUs, through CUDA.

mod kernels;

use super::Backend;
use super::kernels::OpKernel;
use crate::error::{Error, Result};
use crate::ops::{KernelCx, KernelDef};
use crate::vm::OnStream;
use oflow_kernels::cuda::Queue;
use oflow_kernels::expr::Expr;
use std::sync::Arc;

/// The backend of [`Device::Cuda`](crate::Device::Cuda).
pub(super) struct Cuda;

impl Backend for Cuda {
    fn kernels(&self) -> Vec<OpKernel> {
        kernels::kernels()
    }
    fn elementwise(&self, expr: &Arc<Expr>) -> Option<KernelDef> {
        Some(kernels::elementwise(expr))
    }
    fn copy(&self) -> Option<KernelDef> {
        Some(kernels::copy())
    }
}

/// The queue that a CUDA kernel puts its work on.
///
/// # Errors
/// The kernel does not run on a GPU.
pub fn queue<'a>(cx: &KernelCx<'a>) -> Result<Queue<'a>> {
    let stream = cx.stream.and_then(|s| s.downcast_ref::<OnStream>());
    let stream = stream.ok_or_else(|| Error::device(format!("{}: a CUDA kernel without a stream", cx.op.sig.name)))?;
    Ok(stream.queue())
}
