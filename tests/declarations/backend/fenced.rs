//! A backend as another crate would write it, with nothing but oflow's public surface: its memory is mapped without any
//! right of access, which it opens only while it copies or while a kernel of its own runs; its kernels are the CPU's.

use oflow::backend::{Backend, DeviceRt, Opening, SyncDevice, staged};
use oflow::memory::{Region, Storage};
use oflow::placement::Device;
use oflow::{Error, Result};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

/// Kernels that have run on devices of this kind.
pub static KERNELS: AtomicU64 = AtomicU64::new(0);

/// The backend.
pub struct Fenced;

impl Backend for Fenced {
    fn open(&self, at: &Opening<'_>) -> Result<DeviceRt> {
        Ok(staged(at, Arc::new(Board)))
    }
    fn kernels_of(&self) -> Option<Device> {
        Some(Device::Cpu)
    }
}

/// The device of a rank.
pub struct Board;

impl SyncDevice for Board {
    fn allocate(&self, bytes: usize) -> Result<Region> {
        let len = bytes.next_multiple_of(PAGE);
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let data = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE) };
        let data = data.map_err(|e| Error::memory(format!("no mapping of {len} bytes: {e}")))?.cast::<u8>();
        let owner = Mapping { data: data as usize, len };
        // SAFETY: mapped until the owner is dropped; opened for this device's kernels and copies.
        Ok(unsafe { Region::new(data, owner) })
    }

    unsafe fn copy_out(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        let _open = Gate::open(from as usize, to.len())?;
        // SAFETY: by the contract of this function; the bytes are open.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn copy_in(&self, from: &[u8], to: *mut u8) -> Result<()> {
        let _open = Gate::open(to as usize, from.len())?;
        // SAFETY: by the contract of this function; the bytes are open.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    fn run(&self, memory: &[Storage], kernel: &mut dyn FnMut(Option<&dyn Any>) -> Result<()>) -> Result<()> {
        KERNELS.fetch_add(1, Ordering::Relaxed);
        let open = memory.iter().map(|s| Gate::open(s.ptr() as usize, s.bytes()));
        let _open: Vec<Gate> = open.collect::<Result<_>>()?;
        kernel(None)
    }
}

struct Mapping {
    data: usize,
    len: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping of `allocate`, which nobody uses any more.
        let _ = unsafe { munmap(self.data as *mut _, self.len) };
    }
}

/// Memory that may be read and written while this lives.
struct Gate {
    first: usize,
    len: usize,
}

impl Gate {
    fn open(at: usize, bytes: usize) -> Result<Gate> {
        let first = at / PAGE * PAGE;
        let gate = Gate { first, len: (at + bytes).next_multiple_of(PAGE) - first };
        gate.protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
        Ok(gate)
    }
    fn protect(&self, rights: MprotectFlags) -> Result<()> {
        // SAFETY: whole pages of mappings of this device.
        let done = unsafe { mprotect(self.first as *mut _, self.len, rights) };
        done.map_err(|e| Error::device(format!("the fence does not move: {e}")))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.protect(MprotectFlags::empty());
    }
}
