//! Memory of this rank: counters, and who holds it.

use super::rank::{current, here};
use crate::error::Result;
use crate::memory::{MemoryReport, MemoryStats};
use crate::placement::Device;

/// Returns the memory of this rank's allocator of a device: bytes in use, bytes cached, and the peak. Scratch memory of a boxing
/// counts while the boxing runs.
///
/// ```
/// use oflow::prelude::*;
/// let x = zeros([1024], Device::Cpu)?;
/// let stats = oflow::memory_stats(Device::Cpu)?;
/// assert!(stats.live >= 4096 && stats.peak >= stats.live);
/// # drop(x);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If the device does not exist.
pub fn memory_stats(device: Device) -> Result<MemoryStats> {
    Ok(current().device(device)?.alloc.stats())
}

/// Starts the peak of [`memory_stats`] and [`memory_report`] anew, from the bytes in use now: what follows has a peak of its own.
///
/// ```
/// use oflow::prelude::*;
/// drop(zeros([4096], Device::Cpu)?);
/// oflow::reset_peak_memory(Device::Cpu)?;
/// let stats = oflow::memory_stats(Device::Cpu)?;
/// assert_eq!(stats.peak, stats.live);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If the device does not exist.
pub fn reset_peak_memory(device: Device) -> Result<()> {
    here().device(device)?.alloc.reset_peak();
    Ok(())
}

/// Returns who holds the memory of this rank's devices, now and at the peak: by use (parameters, gradients, states of optimizers, activations),
/// by op, by line of the program and by module. It needs no preparation, costs nothing while it is not called, and communicates with nobody.
///
/// Bytes are those of whole blocks, so that those of all holders together are the counters of [`memory_stats`]. Blocks of less than 4 KiB are
/// one holder. A parameter has the line that made it and the module that used it first. An error for want of memory names the five largest
/// holders; after it, [`DeviceMemory::failure`](crate::memory::DeviceMemory::failure) has all of them.
///
/// In a dry run the report is that of the run that would be.
///
/// ```
/// use oflow::prelude::*;
/// let w = randn([64, 64], Device::Cpu)?.requires_grad_(true)?;
/// let x = ones([512, 64], Device::Cpu)?;
/// let loss = {
///     let _scope = oflow::name_scope("net");
///     x.matmul(&w)?.relu()?.sum(())?
/// };
/// let report = oflow::memory_report();
/// let cpu = &report.devices[0];
/// assert_eq!(cpu.now.iter().map(|h| h.bytes as usize).sum::<usize>(), cpu.stats.live);
/// let weight = cpu.now.iter().find(|h| h.used_for == "parameters").unwrap();
/// assert_eq!((weight.bytes, weight.op.as_str(), weight.scope.as_str()), (64 * 64 * 4, "randn", "net"));
/// println!("{report}");
/// # drop(loss);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn memory_report() -> MemoryReport {
    here().memory_report()
}
