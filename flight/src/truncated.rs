//! Keeps a rank alive if somebody cuts the file of its ring short. The kernel answers the next access to such a mapping with
//! SIGBUS, which would kill the process. The handler here puts private memory in the place of the ring and lets the access go on:
//! later records are lost, the rank is not. Every other SIGBUS goes to the handler that was there before.
//!
//! Sealing against this (a memfd) would need no handler, but then no file would outlive the rank. Writing by `pwrite` would cost
//! each op a system call.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// Rings of files that a process has at once; a process is one rank.
const MOST: usize = 8;

/// Start and length of each ring; 0: free. The length is written before the start.
static STARTS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static LENGTHS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// The handler before this one.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Protects a mapping until [`forget`]. Without room or without a handler it stays unprotected.
pub(super) fn protect(start: usize, len: usize) {
    BEFORE.get_or_init(install);
    for (slot, length) in STARTS.iter().zip(&LENGTHS) {
        // 1 reserves the slot: no mapping starts there.
        if slot.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            length.store(len, Ordering::Relaxed);
            slot.store(start, Ordering::Release);
            return;
        }
    }
}

/// The mapping is about to go.
pub(super) fn forget(start: usize) {
    for slot in &STARTS {
        let _others_stay = slot.compare_exchange(start, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

fn install() -> libc::sigaction {
    // SAFETY: both are plain structs for which zero is valid; the handler has the signature that SA_SIGINFO asks for and calls
    // only what a signal handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, &action, &mut before);
        before
    }
}

extern "C" fn on_bus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid record; for SIGBUS it has an address.
    let at = unsafe { (*info).si_addr() } as usize;
    let rings = STARTS.iter().zip(&LENGTHS).map(|(s, l)| (s.load(Ordering::Acquire), l.load(Ordering::Relaxed)));
    for (start, len) in rings {
        if start > 1 && (start..start + len).contains(&at) {
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
            // SAFETY: replaces the ring's own mapping, which holds atomics only, for which any bytes are valid.
            if unsafe { rustix::mm::mmap_anonymous(start as *mut c_void, len, protection, flags) }.is_ok() {
                return;
            }
        }
    }
    pass_on(signal, info, context);
}

/// Does what would have been done without this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().filter(|b| ![libc::SIG_DFL, libc::SIG_IGN].contains(&b.sa_sigaction));
    // SAFETY: the address is that of a handler with the signature that its flags tell. Without one the default comes back, and
    // the access, which is tried again, ends the process.
    unsafe {
        match before {
            Some(b) if b.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(b.sa_sigaction);
                handler(signal, info, context);
            }
            Some(b) => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(b.sa_sigaction);
                handler(signal);
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
