//! The gate to device memory: in strict mode only threads at work for a stream may touch it, so that host code that takes a device pointer for
//! its own crashes at once.
//!
//! A CPU with protection keys (x86-64 with PKU) opens and closes the memory for one thread by writing a register. Elsewhere the rights of the pages
//! change with system calls, for all threads.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use super::*;

/// Size of a huge page.
pub const HUGE: usize = 2 << 20;

/// Number of threads at work, and each GPU's range as far as it was ever used.
struct Gate {
    open: usize,
    ranges: Vec<(usize, usize)>,
}
static GATE: Mutex<Gate> = Mutex::new(Gate { open: 0, ranges: Vec::new() });

thread_local! {
    /// How often this thread began to work.
    static BEGUN: Cell<usize> = const { Cell::new(0) };
}

/// The threads that are kept out of device memory, and the means.
#[derive(Clone, Copy)]
enum Guard {
    Nobody,
    /// Threads that are not at work, by the key with this number.
    Key(u32),
    /// All threads while none is at work, by the rights of pages.
    Pages,
}

fn guard() -> Guard {
    static GUARD: OnceLock<Guard> = OnceLock::new();
    *GUARD.get_or_init(|| match setting("OFLOW_EMULATOR_STRICT", 1) {
        0 => Guard::Nobody,
        1 => key::allocate().map_or(Guard::Pages, Guard::Key),
        _ => Guard::Pages,
    })
}

/// While this lives, its thread may touch device memory.
pub struct AtWork(());

impl AtWork {
    pub fn begin() -> AtWork {
        match guard() {
            Guard::Nobody => {}
            Guard::Key(key) => {
                if BEGUN.replace(BEGUN.get() + 1) == 0 {
                    key::admit(key, true);
                }
            }
            Guard::Pages => {
                let mut gate = lock(&GATE);
                gate.open += 1;
                if gate.open == 1 {
                    gate.ranges.iter().for_each(|&(start, len)| protect(start, len, true));
                }
            }
        }
        AtWork(())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        match guard() {
            Guard::Nobody => {}
            Guard::Key(key) => {
                if BEGUN.replace(BEGUN.get() - 1) == 1 {
                    key::admit(key, false);
                }
            }
            Guard::Pages => {
                let mut gate = lock(&GATE);
                gate.open -= 1;
                if gate.open == 0 {
                    gate.ranges.iter().for_each(|&(start, len)| protect(start, len, false));
                }
            }
        }
    }
}

/// A GPU's range begins at `base`; nothing of it is used so far.
pub fn add(base: usize) {
    lock(&GATE).ranges.push((base, 0));
}

/// The range that begins at `base` is now used for `len` bytes. It grows by whole huge pages: where the rights of a part of one change, the
/// kernel fills it with small pages, and has 512 entries to change at each opening.
pub fn raise(base: usize, len: usize) {
    let len = len.next_multiple_of(HUGE);
    let mut gate = lock(&GATE);
    let Some(at) = gate.ranges.iter().position(|&(start, used)| start == base && used < len) else { return };
    let used = std::mem::replace(&mut gate.ranges[at].1, len);
    let (start, more) = (base + used, len - used);
    match guard() {
        Guard::Nobody => protect(start, more, true),
        Guard::Key(key) => key::give(key, start, more),
        Guard::Pages => protect(start, more, gate.open > 0),
    }
}

fn protect(start: usize, len: usize, open: bool) {
    let rights = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    // SAFETY: the range lies in a reservation of `memory.rs`, which nothing else manages.
    let failed = len > 0 && unsafe { libc::mprotect(start as *mut c_void, len, rights) } != 0;
    assert!(!failed, "mprotect of emulated device memory failed: {}", std::io::Error::last_os_error());
}

/// Protection keys of memory (pkeys(7)): pages have the number of a key, and a register of each thread says what it may do with them.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod key {
    /// A key that is closed for every thread until it is admitted; none where the CPU or the kernel has no keys.
    pub fn allocate() -> Option<u32> {
        const DISABLE_ACCESS: libc::c_ulong = 1;
        // SAFETY: a system call with numbers. Threads start without access to all keys but the first.
        let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, DISABLE_ACCESS) };
        u32::try_from(key).ok().filter(|key| *key > 0)
    }

    /// Gives pages the key.
    pub fn give(key: u32, start: usize, len: usize) {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range lies in a reservation of `memory.rs`, which nothing else manages.
        let failed = unsafe { libc::syscall(libc::SYS_pkey_mprotect, start, len, rights, key) } != 0;
        assert!(!failed, "pkey_mprotect of emulated device memory failed: {}", std::io::Error::last_os_error());
    }

    /// Opens or closes what has the key for this thread.
    pub fn admit(key: u32, open: bool) {
        let (access_disabled, both): (u32, u32) = (1 << (2 * key), 3 << (2 * key));
        // SAFETY: there are keys, so the CPU has both instructions. They change what this thread may touch of memory with this key, and nothing
        // else; without `nomem` no access is moved across them.
        unsafe {
            let rights: u32;
            std::arch::asm!("rdpkru", in("ecx") 0, out("eax") rights, out("edx") _, options(nostack));
            let rights = (rights & !both) | if open { 0 } else { access_disabled };
            std::arch::asm!("wrpkru", in("ecx") 0, in("edx") 0, in("eax") rights, options(nostack));
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod key {
    pub fn allocate() -> Option<u32> {
        None
    }

    pub fn give(_: u32, _: usize, _: usize) {}

    pub fn admit(_: u32, _: bool) {}
}
