//! Kernels of the ops for the CPU and for GPUs, one file a family of ops, one row an op.
//!
//! Both devices have a function of the same name with the same arguments: `oflow_kernels::cpu::conv::conv` and
//! `oflow_kernels::cuda::conv::conv`, which takes the queue of the call first. A row is written once: it takes what the function needs from
//! the call, and [`run!`] calls the one of the device. Where the two differ (other arguments, scratch memory of the GPU), the row says so.
//! Kernels of GPUs put work on the queue and do not wait for it.

use super::cuda::queue;
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, KernelDef, TensorType};
use oflow_kernels::cuda::Queue;

/// Declares the files of this folder, each a family of ops.
macro_rules! families {
    ($(mod $family:ident;)*) => {
        $(mod $family;)*
        fn rows() -> impl Iterator<Item = Row> {
            let families = [$($family::rows),*];
            families.into_iter().flat_map(|family| family())
        }
    };
}

families! {
    mod attention;
    mod batch_norm;
    mod conv;
    mod count;
    mod create;
    mod embedding;
    mod fused;
    mod grouped_norm;
    mod index;
    mod loss;
    mod matmul;
    mod norm;
    mod optim;
    mod pairs;
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
}

/// A kernel and the name of its op.
pub type OpKernel = (&'static str, KernelDef);

/// The device of a call.
#[derive(Clone, Copy)]
enum On<'q> {
    Cpu,
    Cuda(&'q Queue<'q>),
}

/// Calls a function of `oflow_kernels::cpu`, or the one of the same path in `oflow_kernels::cuda` with the queue as first argument.
/// Arguments after a semicolon are passed to the GPU's alone: its scratch memory.
macro_rules! run {
    ($on:expr, $($path:ident)::+($($arg:expr),* $(,)? $(; $($gpu:expr),+)?)) => {
        match $on {
            On::Cpu => oflow_kernels::cpu::$($path)::+($($arg),*).map_err(crate::error::Error::from),
            On::Cuda(q) => {
                oflow_kernels::cuda::$($path)::+(q, $($arg,)* $($($gpu),+)?).map_err(crate::error::Error::from)
            }
        }
    };
}
use run;

/// The kernels of an op.
struct Row {
    op: &'static str,
    cpu: KernelDef,
    cuda: Option<KernelDef>,
}

impl Row {
    /// Gives the GPU's kernel scratch memory.
    fn scratch(self, bytes: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<usize> + Send + Sync + 'static) -> Row {
        Row { cuda: self.cuda.map(|k| k.with_workspace(bytes)), ..self }
    }
    /// Gives the CPU's kernel scratch memory.
    fn scratch_on_cpu(
        self,
        bytes: impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<usize> + Send + Sync + 'static,
    ) -> Row {
        Row { cpu: self.cpu.with_workspace(bytes), ..self }
    }
}

/// The kernels of an op, which always apply.
fn both(op: &'static str, run: impl Fn(On<'_>, &KernelCx<'_>) -> Result<()> + Copy + Send + Sync + 'static) -> Row {
    Row {
        op,
        cpu: KernelDef::cpu(&format!("{op}_cpu"), move |cx| run(On::Cpu, cx)),
        cuda: Some(KernelDef::cuda(&format!("{op}_cuda"), move |cx| run(On::Cuda(&queue(cx)?), cx))),
    }
}

/// The kernel of an op that no GPU has.
fn on_cpu_alone(op: &'static str, run: impl Fn(&KernelCx<'_>) -> Result<()> + Send + Sync + 'static) -> Row {
    Row { op, cpu: KernelDef::cpu(&format!("{op}_cpu"), run), cuda: None }
}

/// All kernels of the CPU.
pub(super) fn on_cpu() -> impl Iterator<Item = OpKernel> {
    rows().map(|row| (row.op, row.cpu))
}

/// All kernels of GPUs.
pub(super) fn on_cuda() -> impl Iterator<Item = OpKernel> {
    rows().filter_map(|row| Some((row.op, row.cuda?)))
}
