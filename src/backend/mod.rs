//! Devices as the rest of the house uses them: each has one [`Backend`], which opens it (memory and streams) and brings its
//! kernels.
//!
//! A backend of another crate is [`register`]ed under a name, which then is a [`Device`] like any other. It has its ops'
//! kernels, or runs those of another device ([`Backend::kernels_of`]). A device that the host drives step by step needs
//! little: see [`SyncDevice`] and [`staged`].
//!
//! Kernels register here beside the backends, by (op, device); `src/ops` declares ops and names no kernel. Knows nothing of
//! tensors or of a rank's context. Start at [`Backend`], then read `staged.rs`, the smallest; which kernel runs an op
//! [`select`] decides.

mod cpu;
pub mod cuda;
mod dry;
pub mod host;
mod kernels;
mod op_kernels;
mod primitive;
mod staged;
mod table;

pub(crate) use dry::{no_values, open as open_dry};
pub(crate) use kernels::copy_plan;
pub use kernels::{Experimental, add_kernel, kernels_of, select, use_experimental};
pub use op_kernels::OpKernel;
pub use primitive::Primitive;
pub use staged::{SyncDevice, staged};
pub(crate) use table::of;
pub use table::register;

use crate::comm::Communicator;
use crate::error::Result;
use crate::memory::{Allocator, AllocatorOptions};
use crate::ops::KernelDef;
use crate::placement::Device;
use crate::vm::{Vm, VmMode};
use oflow_kernels::expr::Expr;
use std::sync::Arc;

/// A kind of device and its abilities. One value serves all ranks of the process.
pub trait Backend: Send + Sync {
    /// Opens this rank's device: its memory and streams. Asked once a rank, when it first uses the device; the streams
    /// carry out what follows.
    ///
    /// # Errors
    /// The device is not on this machine.
    fn open(&self, at: &Opening<'_>) -> Result<DeviceRt>;

    /// How its memory is kept. A dry run counts by the same rules.
    fn allocator_options(&self) -> AllocatorOptions {
        AllocatorOptions::default()
    }

    /// Where its boxings are carried out.
    fn boxing_place(&self) -> BoxingPlace {
        BoxingPlace::Staged
    }

    /// Kernels of the device, each with the name of its op.
    fn kernels(&self, device: Device) -> Vec<OpKernel> {
        let _none = device;
        Vec::new()
    }

    /// Kernel of an elementwise op on the device, from the scalar expression.
    fn elementwise(&self, device: Device, expr: &Arc<Expr>) -> Option<KernelDef> {
        let _none = (device, expr);
        None
    }

    /// Kernel that copies input 0 to output 0, of any strides and dtypes.
    fn copy(&self, device: Device) -> Option<KernelDef> {
        let _none = device;
        None
    }

    /// The device whose kernels it runs where it has none.
    fn kernels_of(&self) -> Option<Device> {
        None
    }
}

/// Where the boxings of a device are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxingPlace {
    /// In host memory, where the shards lie.
    Host,
    /// In host memory, to which the shards are copied, and the results from there.
    Staged,
    /// By the device's streams, as they see fit.
    Device,
}

/// The rank that opens a device.
pub struct Opening<'a> {
    /// The device to open.
    pub device: Device,
    /// Number of the rank.
    pub rank: usize,
    /// Number of the rank among the ranks of its host: where a host has several devices of the kind, they are taken in turn.
    pub local_rank: usize,
    /// How the streams of [`Device::Cpu`] run; of no concern to others.
    pub mode: VmMode,
    /// The rank's host memory, for bytes on their way.
    pub host: &'a Allocator,
    /// The transport between the ranks; none for local tensors only.
    pub comm: Option<&'a Arc<dyn Communicator>>,
}

/// Memory and streams of one device of a rank.
pub struct DeviceRt {
    /// Allocator of the device's memory.
    pub alloc: Allocator,
    /// Streams that run the device's instructions.
    pub vm: Vm,
}
