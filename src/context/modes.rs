//! Modes of the current thread: whether gradients are recorded, whether leaf gradients are synchronised, which layouts the
//! program asks for.

use crate::error::{CallSite, Result};
use crate::ops::{Autocast, Op, find};
use crate::sbp::NdSbp;
use std::cell::{Cell, RefCell};

#[derive(Clone, Copy)]
struct Modes {
    grad: bool,
    no_sync: bool,
    autocast: Autocast,
    /// What was asked before this number is not in force.
    asked_from: u64,
    /// Inside a function that calls several ops: what was asked of functions before this number is not asked of them.
    inner_from: u64,
}

thread_local! {
    static MODES: Cell<Modes> =
        const { Cell::new(Modes { grad: true, no_sync: false, autocast: Autocast::Off, asked_from: 0, inner_from: 0 }) };
    static ASKED: RefCell<Vec<AskedSbp>> = const { RefCell::new(Vec::new()) };
    /// How many stand in `ASKED`, and the number of the next one: a warm call reads the first only.
    static COUNT: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// A layout that the program asks for.
#[derive(Clone)]
pub struct AskedSbp {
    /// Grows with each on this thread.
    number: u64,
    /// nd-SBP that output 0 is to have.
    pub sbp: NdSbp,
    /// Of that op only ([`pin_sbp`]); else of every call ([`with_sbp`]).
    pub op: Option<&'static Op>,
    /// Where it is asked.
    pub site: CallSite,
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

/// What ops of low precision run in on this thread.
pub fn autocast_mode() -> Autocast {
    MODES.get().autocast
}

/// Sets that mode. Users call [`autocast`](crate::autocast), which also forgets the casts that it kept.
pub(crate) fn set_autocast(mode: Autocast) -> ModeGuard {
    change(|m| m.autocast = mode)
}

/// What was asked is in force until this is dropped, in whatever order guards are dropped.
#[must_use = "the pin ends when the guard is dropped"]
pub struct PinGuard {
    number: u64,
    // As modes, pins are per thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        // The table is gone only when the thread ends.
        let _ = ASKED.try_with(|a| {
            let mut a = a.borrow_mut();
            a.retain(|s| s.number != self.number);
            COUNT.set((a.len(), COUNT.get().1));
        });
    }
}

fn ask(sbp: NdSbp, op: Option<&'static Op>, site: CallSite) -> PinGuard {
    let number = COUNT.get().1;
    ASKED.with(|a| {
        let mut a = a.borrow_mut();
        a.push(AskedSbp { number, sbp, op, site });
        COUNT.set((a.len(), number + 1));
    });
    PinGuard { number, _not_send: std::marker::PhantomData }
}

/// Asks for the layout of a call's result: what the calls inside `f` return has this nd-SBP.
///
/// The signature is chosen for it: among all, the one with the least communication, boxing the result where it has another
/// layout included (recorded for backward like any boxing; the gradient keeps its own SBP). It is asked of each function
/// called on global tensors inside `f`, so give one call at a time; what a function calls inside itself is free. Not
/// affected are local tensors, functions that make a tensor and so state its layout, backward and lowerings. To change the
/// layout of a tensor that is there, use `to_global`.
///
/// A layout that the result cannot have (another number of mesh axes, a dim that is not there, P(sum) of bools, another
/// one than the tensor's that is changed in place) is an error of the call.
///
/// ```
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let (x, w) = (ones([4, 6], (&mesh, sbp![S(1)]))?, ones([6, 8], (&mesh, sbp![S(0)]))?);
///     assert_eq!(x.matmul(&w)?.sbp()?, &sbp![P]);
///     let y = with_sbp(sbp![S(1)], || x.matmul(&w))?;
///     assert_eq!(y.sbp()?, &sbp![S(1)]);
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn with_sbp<T>(sbp: impl Into<NdSbp>, f: impl FnOnce() -> T) -> T {
    let _asked = ask(sbp.into(), None, CallSite::here());
    f()
}

/// Pins the result of an op to an nd-SBP until the guard is dropped: every call of it on global tensors of meshes with that
/// many axes gives output 0 in this layout, also when a function calls it inside. The innermost pin or [`with_sbp`] that
/// applies is taken. Calls on other meshes and calls that write in place are not affected; nor are backward (the gradient of
/// a pinned op is chosen freely) and lowerings.
///
/// ```
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let (x, w) = (ones([4, 6], (&mesh, sbp![S(1)]))?, ones([6, 8], (&mesh, sbp![S(0)]))?);
///     let pin = pin_sbp("matmul", sbp![B])?;
///     assert_eq!(x.matmul(&w)?.sbp()?, &sbp![B]);
///     drop(pin);
///     assert_eq!(x.matmul(&w)?.sbp()?, &sbp![P]);
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// When there is no op of that name. A layout that the result of a call cannot have is an error of that call.
#[track_caller]
pub fn pin_sbp(op: &str, sbp: impl Into<NdSbp>) -> Result<PinGuard> {
    let site = CallSite::here();
    let op = find(op).map_err(|e| e.at(site))?;
    Ok(ask(sbp.into(), Some(op), site))
}

/// Nothing that was asked so far is in force until the guard is dropped, autocast included: for backward and lowerings,
/// which run in the dtypes of the call that they belong to.
pub(crate) fn nothing_asked() -> ModeGuard {
    change(|m| {
        m.asked_from = COUNT.get().1;
        m.autocast = Autocast::Off;
    })
}

/// What is asked of a function is not asked of the ops it calls until the guard is dropped; pins stay in force.
pub(crate) fn inner_calls() -> ModeGuard {
    change(|m| m.inner_from = COUNT.get().1)
}

/// The layout that is asked of the result of an op on a mesh with that many axes.
pub(crate) fn asked_sbp(op: &'static Op, axes: usize) -> Option<AskedSbp> {
    if COUNT.get().0 == 0 {
        return None;
    }
    let m = MODES.get();
    let applies = |s: &&AskedSbp| {
        s.number >= m.asked_from
            && match s.op {
                Some(pinned) => pinned.id() == op.id() && s.sbp.len() == axes,
                None => s.number >= m.inner_from,
            }
    };
    ASKED.with(|a| a.borrow().iter().rev().find(applies).cloned())
}
