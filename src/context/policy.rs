//! The boxing policy of the current thread: which communication ops may cause.

use super::modes::{Mode, ModeGuard, change};
use super::moments::{Moments, observe_by_mode};
use crate::error::{Error, Result};
use std::cell::Cell;

/// Boxing policy: which communication is allowed, and which is logged. Communication means bytes sent between ranks; boxings
/// that only slice or pad on the rank are always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// All communication is allowed.
    #[default]
    Allow,
    /// All communication is allowed; each boxing is logged at level info, with its line and plan.
    Log,
    /// All communication is allowed; boxings of more bytes than this (summed over all ranks) are logged at level warn, once per
    /// line and op.
    WarnAboveBytes(u64),
    /// All communication is allowed; boxings predicted to take at least this many microseconds are logged at level warn, once per
    /// line and op.
    WarnAboveMicros(u64),
    /// Boxings of an op's inputs, inside an op, and of gradients are errors. Allowed is what the program requests: `to_global`
    /// and its gradient, and reading.
    Deny,
    /// All communication is an error.
    DenyAll,
}

thread_local! {
    static POLICY: Cell<Policy> = const { Cell::new(Policy::Allow) };
}

/// Puts a policy in force, and returns the one before.
pub(super) fn exchange_policy(policy: Policy) -> Policy {
    observe_by_mode(Moments::PLANNED, matches!(policy, Policy::Deny | Policy::DenyAll));
    POLICY.replace(policy)
}

/// Ends a [`boxing_policy`] when dropped. Guards may be dropped in any order.
#[must_use = "the policy ends when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct PolicyGuard {
    _mode: ModeGuard,
}

crate::context::runs_closures!(PolicyGuard);

/// Sets the policy of this thread until the guard is dropped.
///
/// A denied boxing is an error of kind [`Denied`](crate::ErrorKind::Denied), the same on every rank and raised before any data
/// moves. It names the line, the boxing and the cheapest change that avoids it. A program may catch it and continue.
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
    PolicyGuard { _mode: change(Mode::Policy(policy)) }
}

/// Returns the [`boxing_policy`] in force.
#[inline]
pub fn policy() -> Policy {
    POLICY.get()
}

/// Refuses a collective that is not part of a boxing plan, where the policy denies all communication.
pub(crate) fn check_collective(op: &str, bytes: u64) -> Result<()> {
    if policy() != Policy::DenyAll || bytes == 0 {
        return Ok(());
    }
    Err(Error::denied(format!("communication is denied here: {op} would send {bytes} B between ranks"))
        .help("the scope denies all communication; end it before"))
}
