//! Copies that the interpreter itself needs.

use crate::error::Result;
use crate::op;
use crate::ops::KernelDef;
use crate::placement::Device;
use crate::plan::KernelPlan;
use oflow_kernels::{cpu, cuda};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// The plan that copies (and converts) one view into another on a device, whatever their strides.
pub(super) fn copy_plan(device: Device) -> Result<Arc<KernelPlan>> {
    static HOST: OnceLock<Arc<KernelPlan>> = OnceLock::new();
    static CUDA: OnceLock<Arc<KernelPlan>> = OnceLock::new();
    let known = if device == Device::Cuda { &CUDA } else { &HOST };
    if let Some(p) = known.get() {
        return Ok(p.clone());
    }
    let op = op!("copy")?;
    let k = match device {
        Device::Cuda => {
            KernelDef::cuda("copy_cuda", |cx| Ok(cuda::copy::copy(cx.queue()?, cx.input(0)?, cx.output(0))?))
        }
        _ => KernelDef::cpu("copy", |cx| Ok(cpu::copy::copy(cx.input(0)?, cx.output(0))?)),
    };
    let plan = Arc::new(KernelPlan {
        op,
        name: k.name,
        run: k.run,
        state: None,
        attrs: SmallVec::new(),
        input_boxes: SmallVec::new(),
        output_boxes: SmallVec::new(),
        workspace: 0,
    });
    Ok(known.get_or_init(|| plan).clone())
}
