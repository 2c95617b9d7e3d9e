//! The table of backends, by device.

use super::cuda::Cuda;
use super::host::{Async, Cpu};
use super::{Backend, kernels};
use crate::error::Result;
use crate::placement::Device;
use crate::plan::KernelPlan;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

/// A backend, and what is made for it once.
pub(super) struct Entry {
    pub(super) device: Device,
    pub(super) backend: Box<dyn Backend>,
    pub(super) copy: OnceLock<Arc<KernelPlan>>,
}

/// The backends that are always there, in order of their devices' numbers. Asked on the path of calls, so without a lock.
static BUILT_IN: LazyLock<[Entry; 3]> = LazyLock::new(|| {
    let entry = |device, backend| Entry { device, backend, copy: OnceLock::new() };
    [
        entry(Device::Cpu, Box::new(Cpu) as Box<dyn Backend>),
        entry(Device::Cuda, Box::new(Cuda)),
        entry(Device::Async, Box::new(Async)),
    ]
});

/// Backends that were added, in order of their devices' numbers.
static REGISTERED: RwLock<Vec<&'static Entry>> = RwLock::new(Vec::new());

pub(super) fn built_in() -> &'static [Entry] {
    &*BUILT_IN
}

pub(super) fn entries() -> Vec<&'static Entry> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(registered.iter().copied()).collect()
}

pub(super) fn entry(device: Device) -> &'static Entry {
    let at = usize::from(device.number());
    match BUILT_IN.get(at) {
        Some(entry) => entry,
        // Devices get their numbers while the table is locked, so each has its entry.
        None => REGISTERED.read().unwrap_or_else(PoisonError::into_inner)[at - BUILT_IN.len()],
    }
}

/// The backend of a device.
pub(crate) fn of(device: Device) -> &'static dyn Backend {
    &*entry(device).backend
}

/// Adds a device with its backend. All ranks of a job must register the same. The device is known by its name at once:
/// `"name".parse::<Device>()`.
///
/// ```
/// use oflow::backend::{Backend, DeviceRt, Opening, SyncDevice, register, staged};
/// use oflow::memory::{Region, Storage};
/// use oflow::prelude::*;
/// use std::any::Any;
/// use std::sync::Arc;
///
/// /// A board whose memory is leaked host memory, which keeps the example short.
/// struct Board;
///
/// impl SyncDevice for Board {
///     fn allocate(&self, bytes: usize) -> oflow::Result<Region> {
///         let data = Box::leak(vec![[0u8; 64]; bytes.div_ceil(64)].into_boxed_slice()).as_mut_ptr().cast();
///         // SAFETY: never freed, and used by this device only.
///         Ok(unsafe { Region::new(data, ()) })
///     }
///     unsafe fn copy_out(&self, from: *const u8, to: &mut [u8]) -> oflow::Result<()> {
///         // SAFETY: by the contract of this function.
///         Ok(unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) })
///     }
///     unsafe fn copy_in(&self, from: &[u8], to: *mut u8) -> oflow::Result<()> {
///         // SAFETY: by the contract of this function.
///         Ok(unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) })
///     }
///     fn run(
///         &self,
///         _memory: &[Storage],
///         kernel: &mut dyn FnMut(Option<&dyn Any>) -> oflow::Result<()>,
///     ) -> oflow::Result<()> {
///         kernel(None)
///     }
/// }
///
/// struct Boards;
///
/// impl Backend for Boards {
///     fn open(&self, at: &Opening<'_>) -> oflow::Result<DeviceRt> {
///         Ok(staged(at, Arc::new(Board)))
///     }
///     fn kernels_of(&self) -> Option<Device> {
///         Some(Device::Cpu)
///     }
/// }
///
/// let board = register("board", Boards)?;
/// let x = ones([2, 3], board)?.add(&ones([3], board)?)?;
/// assert_eq!((x.to_vec::<f32>()?, x.device().to_string()), (vec![2.0; 6], "board".to_string()));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// There is a device of this name, or the name is none: letters, digits and `_`, a letter first.
pub fn register(name: &str, backend: impl Backend + 'static) -> Result<Device> {
    let entry: &Entry = {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        let device = Device::add(name)?;
        let entry = Box::leak(Box::new(Entry { device, backend: Box::new(backend), copy: OnceLock::new() }));
        registered.push(entry);
        entry
    };
    // Without the lock: who chooses a kernel holds the table of kernels and asks this one.
    kernels::take(entry.backend.kernels(entry.device));
    Ok(entry.device)
}
