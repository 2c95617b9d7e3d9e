//! Modes of the current thread: whether gradients are recorded, whether leaf gradients are synchronised, what boxings are
//! allowed.

use std::cell::Cell;

#[derive(Clone, Copy)]
struct Modes {
    grad: bool,
    no_sync: bool,
    policy: Policy,
}

thread_local! {
    static MODES: Cell<Modes> = const { Cell::new(Modes { grad: true, no_sync: false, policy: Policy::Allow }) };
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

/// What a scope allows of communication that ops cause by themselves, and what it tells of it.
///
/// Communication means bytes between ranks: boxings that only slice or pad on the rank are always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Everything, silently.
    #[default]
    Allow,
    /// Everything; each boxing is logged at level info, with its line and plan.
    Log,
    /// Everything; boxings of more bytes than that (over all ranks) are logged at level warn, once per line and op.
    WarnAboveBytes(u64),
    /// Everything; boxings predicted to take at least so many microseconds are logged at level warn, once per line and op.
    WarnAboveMicros(u64),
    /// No boxing that the program did not ask for: of an op's inputs, inside an op, of gradients. What it asked for is
    /// allowed: `to_global` and its gradient, and reading.
    Deny,
    /// No communication at all.
    DenyAll,
}

/// Communication of this thread follows that policy until the guard is dropped; then the one before it.
///
/// A boxing that is denied is an error of kind [`Denied`](crate::ErrorKind::Denied), the same on every rank and raised before
/// any byte moves; it names the line, the boxing and the cheapest change that avoids it. A program may catch it and go on.
///
/// ```
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let x = ones([4, 4], (&mesh, sbp![S(0)]))?;
///     let w = ones([4, 4], (&mesh, sbp![S(0)]))?;
///     let _guard = boxing_policy(Policy::Deny);
///     let error = x.matmul(&w).unwrap_err();
///     assert!(error.to_string().contains("make input 1 [B] where it is created"), "{error}");
///     x.matmul(&w.to_global(sbp![B])?)?; // asked for
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn boxing_policy(policy: Policy) -> ModeGuard {
    change(|m| m.policy = policy)
}

/// The [`boxing_policy`] in force.
pub fn policy() -> Policy {
    MODES.get().policy
}
