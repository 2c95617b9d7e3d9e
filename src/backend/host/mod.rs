//! Devices that are this process: the CPU, and the asynchronous test device.
//!
//! On the CPU compute runs inline; the communication stream runs inline too, or on a thread of its own. On the test device
//! every stream is a thread with random delays, which proves the waits without a GPU.

mod streams;
mod thread;

use super::op_kernels::OpKernel;
use super::{Backend, BoxingPlace, DeviceRt, Opening, cpu};
use crate::comm::Communicator;
use crate::error::Result;
use crate::memory::{Allocator, AllocatorOptions};
use crate::ops::KernelDef;
use crate::placement::Device;
use crate::vm::{Vm, VmMode};
use oflow_kernels::expr::Expr;
use std::sync::Arc;
use streams::HostStreams;

/// Streams of this process in that mode, with the allocator from which boxings take what they need between their steps, and
/// the rank's communicator.
///
/// # Errors
/// A thread cannot be started.
pub fn vm(mode: VmMode, alloc: &Allocator, comm: Option<Arc<dyn Communicator>>) -> Result<Vm> {
    Ok(Vm::new(HostStreams::new(mode, alloc, comm)?))
}

/// The backend of [`Device::Cpu`].
pub(super) struct Cpu;

impl Backend for Cpu {
    fn open(&self, at: &Opening<'_>) -> Result<DeviceRt> {
        let alloc = at.host.clone();
        let vm = vm(at.mode, &alloc, at.comm.cloned())?;
        Ok(DeviceRt { alloc, vm })
    }
    fn boxing_place(&self) -> BoxingPlace {
        BoxingPlace::Host
    }
    fn kernels(&self, _device: Device) -> Vec<OpKernel> {
        cpu::kernels()
    }
    fn elementwise(&self, _device: Device, expr: &Arc<Expr>) -> Option<KernelDef> {
        Some(cpu::elementwise(expr))
    }
    fn copy(&self, _device: Device) -> Option<KernelDef> {
        Some(cpu::copy())
    }
}

/// The backend of [`Device::Async`].
pub(super) struct Async;

impl Backend for Async {
    fn open(&self, at: &Opening<'_>) -> Result<DeviceRt> {
        let mode = VmMode::Async { delay_us: 50, seed: 0x5eed + at.rank as u64 };
        let alloc = Allocator::host(at.device, self.allocator_options());
        let vm = vm(mode, &alloc, at.comm.cloned())?;
        Ok(DeviceRt { alloc, vm })
    }
    fn allocator_options(&self) -> AllocatorOptions {
        AllocatorOptions { poison_on_free: true, ..Default::default() }
    }
    fn boxing_place(&self) -> BoxingPlace {
        BoxingPlace::Host
    }
    fn kernels_of(&self) -> Option<Device> {
        Some(Device::Cpu)
    }
}
