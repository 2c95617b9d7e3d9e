//! Modes of the current thread: whether gradients are recorded, whether leaf gradients are synchronised.

use std::cell::Cell;

#[derive(Clone, Copy)]
struct Modes {
    grad: bool,
    no_sync: bool,
}

thread_local! {
    static MODES: Cell<Modes> = const { Cell::new(Modes { grad: true, no_sync: false }) };
}

/// Restores the thread's modes when dropped.
#[must_use = "the mode ends when the guard is dropped"]
pub struct ModeGuard {
    saved: Modes,
    // Modes are per thread: the guard must be dropped where it was made.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        MODES.set(self.saved);
    }
}

fn change(f: impl FnOnce(&mut Modes)) -> ModeGuard {
    let saved = MODES.get();
    let mut m = saved;
    f(&mut m);
    MODES.set(m);
    ModeGuard { saved, _not_send: std::marker::PhantomData }
}

/// Whether ops are recorded for backward on this thread.
pub fn grad_enabled() -> bool {
    MODES.get().grad
}

/// No op is recorded until the guard is dropped.
///
/// ```
/// use oflow::prelude::*;
/// let x = ones([2], Device::Cpu)?.requires_grad_(true)?;
/// let guard = no_grad();
/// assert!(!x.relu()?.requires_grad());
/// drop(guard);
/// assert!(x.relu()?.requires_grad());
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn no_grad() -> ModeGuard {
    set_grad_enabled(false)
}

/// Ops are recorded again, inside a [`no_grad`].
pub fn enable_grad() -> ModeGuard {
    set_grad_enabled(true)
}

/// Sets whether ops are recorded.
pub fn set_grad_enabled(on: bool) -> ModeGuard {
    change(|m| m.grad = on)
}

/// Leaf gradients keep their own SBP (usually P) until the guard is dropped: micro-batches accumulate without
/// communication, and the first `backward()` after it reduces the sum.
pub fn no_sync() -> ModeGuard {
    change(|m| m.no_sync = true)
}

/// Whether [`no_sync`] is in force.
pub fn is_no_sync() -> bool {
    MODES.get().no_sync
}
