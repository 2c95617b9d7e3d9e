//! Devices as the rest of the house uses them: one [`Backend`] a device, with its kernels.
//!
//! Kernels register here beside the backends, by (op, device); `src/ops` declares ops and names no kernel. Start at
//! [`Backend`]; the kernel that runs an op is chosen by [`select`].

mod cpu;
pub mod cuda;
mod kernels;

pub(crate) use kernels::copy_plan;
pub use kernels::{OpKernel, add_kernel, kernels_of, select};

use crate::ops::KernelDef;
use crate::placement::Device;
use crate::plan::KernelPlan;
use oflow_kernels::expr::Expr;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

/// What a kind of device is able to do.
pub trait Backend: Send + Sync {
    /// Kernels, each with the name of its op.
    fn kernels(&self) -> Vec<OpKernel> {
        Vec::new()
    }
    /// The kernel of an elementwise op, from its scalar expression.
    fn elementwise(&self, expr: &Arc<Expr>) -> Option<KernelDef> {
        let _none = expr;
        None
    }
    /// The kernel that copies input 0 to output 0, of any strides and dtypes.
    fn copy(&self) -> Option<KernelDef> {
        None
    }
    /// The device whose kernels run here where this one has none.
    fn kernels_of(&self) -> Option<Device> {
        None
    }
}

/// A backend and what is made for it once.
struct Entry {
    device: Device,
    backend: Box<dyn Backend>,
    copy: OnceLock<Arc<KernelPlan>>,
}

/// By number of the device.
static BACKENDS: LazyLock<RwLock<Vec<&'static Entry>>> = LazyLock::new(|| {
    let entry = |device, backend: Box<dyn Backend>| -> &'static Entry {
        Box::leak(Box::new(Entry { device, backend, copy: OnceLock::new() }))
    };
    RwLock::new(vec![
        entry(Device::Cpu, Box::new(cpu::Cpu)),
        entry(Device::Cuda, Box::new(cuda::Cuda)),
        entry(Device::Async, Box::new(cpu::Async)),
    ])
});

fn entries() -> Vec<&'static Entry> {
    BACKENDS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn entry(device: Device) -> &'static Entry {
    // A device has its number from the same table.
    BACKENDS.read().unwrap_or_else(PoisonError::into_inner)[usize::from(device.number())]
}
