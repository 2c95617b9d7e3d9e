//! What the current thread's boxings are allowed.

use std::cell::Cell;

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

thread_local! {
    static POLICY: Cell<Policy> = const { Cell::new(Policy::Allow) };
}

/// Restores the thread's policy when dropped.
#[must_use = "the policy ends when the guard is dropped"]
pub struct PolicyGuard {
    saved: Policy,
    // Policies are per thread: the guard must be dropped where it was made.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for PolicyGuard {
    fn drop(&mut self) {
        POLICY.set(self.saved);
    }
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
pub fn boxing_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard { saved: POLICY.replace(policy), _not_send: std::marker::PhantomData }
}

/// The [`boxing_policy`] in force.
pub fn policy() -> Policy {
    POLICY.get()
}
