//! Modes of the current thread: recording of gradients, synchronisation of leaf gradients, autocast, and requested layouts.

use super::moments::{Moments, observe_by_mode};
use super::policy::{Policy, exchange_policy, policy};
use crate::error::{CallSite, Result};
use crate::ops::{Autocast, Op, find};
use crate::sbp::NdSbp;
use oflow_base::GuardStack;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::replace;

#[derive(Clone, Copy)]
struct Modes {
    grad: bool,
    no_sync: bool,
    /// Calls check their outputs for NaN.
    detect: bool,
    /// Ops run on the layouts of their inputs if a signature accepts these.
    keep: bool,
    autocast: Autocast,
    /// Requests with a smaller number are suspended.
    asked_from: u64,
    /// Inside a function that calls several ops: requests for functions with a smaller number do not apply to these ops.
    inner_from: u64,
}

thread_local! {
    static MODES: Cell<Modes> =
        const { Cell::new(Modes { grad: true, no_sync: false, detect: false, keep: false, autocast: Autocast::Off, asked_from: 0, inner_from: 0 }) };
    static ASKED: RefCell<Vec<AskedSbp>> = const { RefCell::new(Vec::new()) };
    /// The modes set by guards that are alive, each with the value before it.
    static HELD: RefCell<GuardStack<Mode>> = const { RefCell::new(GuardStack::new()) };
    /// Number of requests in `ASKED`, and number of the next request. A call without requests reads only the first.
    static COUNT: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// A layout that the program has requested.
#[derive(Clone)]
pub struct AskedSbp {
    /// Number of the request, counted on this thread.
    number: u64,
    /// nd-SBP requested for output 0.
    pub sbp: NdSbp,
    /// The op that the request is for ([`pin_sbp`]); `None` for every call ([`with_sbp`], [`with_grad_sbp`]).
    pub op: Option<&'static Op>,
    /// Whether the request is for the gradient of output 0, not for the output itself.
    of_grad: bool,
    /// Line of the program that made the request.
    pub site: CallSite,
}

/// One mode of the thread, with a value.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Grad(bool),
    NoSync(bool),
    Detect(bool),
    Keep(bool),
    Autocast(Autocast),
    Policy(Policy),
}

impl Mode {
    /// Sets the mode to this value, and returns the value before.
    fn exchange(self) -> Mode {
        let mut m = MODES.get();
        let before = match self {
            Mode::Grad(on) => Mode::Grad(replace(&mut m.grad, on)),
            Mode::NoSync(on) => Mode::NoSync(replace(&mut m.no_sync, on)),
            Mode::Detect(on) => {
                observe_by_mode(Moments::MADE, on);
                Mode::Detect(replace(&mut m.detect, on))
            }
            Mode::Keep(on) => Mode::Keep(replace(&mut m.keep, on)),
            Mode::Autocast(mode) => Mode::Autocast(replace(&mut m.autocast, mode)),
            Mode::Policy(policy) => Mode::Policy(exchange_policy(policy)),
        };
        MODES.set(m);
        before
    }
}

/// Gives a guard the method `run`, which cannot drop it too early: `no_grad().run(|| …)`.
macro_rules! runs_closures {
    ($guard:ty) => {
        impl $guard {
            /// Runs `f`, and then drops the guard.
            pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
                f()
            }
        }
    };
}
pub(crate) use runs_closures;

/// Ends a mode of the thread when dropped. Guards may be dropped in any order: each ends its own mode.
#[must_use = "the mode ends when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct ModeGuard {
    number: u64,
    // Modes are per thread: the guard must be dropped where it was made.
    _not_send: PhantomData<*const ()>,
}

runs_closures!(ModeGuard);

impl Drop for ModeGuard {
    fn drop(&mut self) {
        // `try_with` fails only while the thread ends.
        let same = |a: &Mode, b: &Mode| std::mem::discriminant(a) == std::mem::discriminant(b);
        let now = HELD.try_with(|held| held.borrow_mut().end(self.number, same));
        if let Ok(Some(mode)) = now {
            mode.exchange();
        }
    }
}

pub(super) fn change(to: Mode) -> ModeGuard {
    let before = to.exchange();
    ModeGuard { number: HELD.with_borrow_mut(|held| held.begin(before)), _not_send: PhantomData }
}

/// Returns whether ops are recorded for backward on this thread.
#[inline]
pub fn grad_enabled() -> bool {
    MODES.get().grad
}

/// Turns off the recording of ops for backward on this thread until the guard is dropped.
///
/// ```
/// use oflow::prelude::*;
/// let x = ones([2], Device::Cpu)?.requires_grad_(true)?;
/// assert!(!no_grad().run(|| x.relu())?.requires_grad());
/// let guard = no_grad(); // `let _ = no_grad();` would end it at once
/// assert!(!x.relu()?.requires_grad());
/// drop(guard);
/// assert!(x.relu()?.requires_grad());
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn no_grad() -> ModeGuard {
    set_grad_enabled(false)
}

/// Turns on the recording of ops until the guard is dropped, inside a [`no_grad`].
pub fn enable_grad() -> ModeGuard {
    set_grad_enabled(true)
}

/// Sets whether ops are recorded, until the guard is dropped.
pub fn set_grad_enabled(on: bool) -> ModeGuard {
    change(Mode::Grad(on))
}

/// Turns off the reduction of leaf gradients until the guard is dropped: they keep the SBP of the backward, usually P. So micro-batches
/// accumulate without communication, and the first `backward()` afterwards reduces the sum.
pub fn no_sync() -> ModeGuard {
    change(Mode::NoSync(true))
}

/// Returns whether [`no_sync`] is in force on this thread.
pub fn is_no_sync() -> bool {
    MODES.get().no_sync
}

/// Searches for the first NaN until the guard is dropped: each call on this thread, forward and in backward, checks its outputs, and the
/// first call with a NaN in them returns an error that names op and line. In backward the line is that of the forward call. Each rank
/// checks its own shards; a rank that finds a NaN ends the job.
///
/// For debugging: every call waits for its result.
///
/// ```
/// use oflow::prelude::*;
/// let _searching = oflow::detect_anomaly();
/// let x = from_vec(vec![0.0f32, 1.0], [2], Device::Cpu)?;
/// assert!(x.mul(2.0).is_ok());
/// let e = x.div(&x).unwrap_err();
/// assert!(e.to_string().contains("1 of 2 elements of output 0 `y` are NaN; no input has any"), "{e}");
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn detect_anomaly() -> ModeGuard {
    change(Mode::Detect(true))
}

/// Turns off the search of [`detect_anomaly`] until the guard is dropped.
pub(crate) fn undetected() -> ModeGuard {
    change(Mode::Detect(false))
}

/// Makes ops run on the layouts of their inputs if they can, until the guard is dropped, forward and in backward, even if boxing an input
/// first would cost less (see [how an op chooses](crate::docs::boxing)). Ops inside a lowering are not affected.
///
/// ```
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let (x, s) = (ones([256, 256], (&mesh, sbp![B]))?, ones([1], (&mesh, sbp![P]))?);
///     assert_eq!(x.mul(&s)?.sbp()?, &sbp![B]); // one number is reduced, and not the matrix
///     let _kept = oflow::keep_layouts();
///     assert_eq!(x.mul(&s)?.sbp()?, &sbp![P]);
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn keep_layouts() -> ModeGuard {
    change(Mode::Keep(true))
}

/// Whether ops run on the layouts of their inputs where they can.
#[inline]
pub(crate) fn keeping() -> bool {
    MODES.get().keep
}

/// Returns the autocast mode of this thread.
#[inline]
pub fn autocast_mode() -> Autocast {
    MODES.get().autocast
}

/// Sets the autocast mode. Users call [`autocast`](crate::autocast), which also drops its cached casts at the end.
pub(crate) fn set_autocast(mode: Autocast) -> ModeGuard {
    change(Mode::Autocast(mode))
}

/// Ends a request for a layout when dropped. Guards may be dropped in any order.
#[must_use = "the pin ends when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct PinGuard {
    number: u64,
    // As modes, pins are per thread.
    _not_send: PhantomData<*const ()>,
}

runs_closures!(PinGuard);

impl Drop for PinGuard {
    fn drop(&mut self) {
        // `try_with` fails only while the thread ends.
        let _ = ASKED.try_with(|a| {
            let mut a = a.borrow_mut();
            a.retain(|s| s.number != self.number);
            COUNT.set((a.len(), COUNT.get().1));
        });
    }
}

fn ask(sbp: NdSbp, op: Option<&'static Op>, of_grad: bool, site: CallSite) -> PinGuard {
    let number = COUNT.get().1;
    ASKED.with(|a| {
        let mut a = a.borrow_mut();
        a.push(AskedSbp { number, sbp, op, of_grad, site });
        COUNT.set((a.len(), number + 1));
    });
    PinGuard { number, _not_send: PhantomData }
}

/// Sets the nd-SBP of the results of the calls inside `f`.
///
/// Among all signatures the one with the least communication is chosen. If its result has another layout, the result is boxed,
/// and the cost of that boxing counts. The boxing is recorded for backward; the gradient keeps its own SBP. The request applies
/// to each function called on global tensors inside `f`, so wrap one call at a time. It does not apply to ops that such a
/// function calls, to local tensors, to functions that make a tensor in a given layout, to backward and to lowerings. To change
/// the layout of an existing tensor, use `to_global`.
///
/// A layout that the result cannot have is an error of the call: another number of mesh axes, a dim that does not exist, P(sum)
/// of bools, or another layout than that of the tensor changed in place.
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
    let _asked = ask(sbp.into(), None, false, CallSite::here());
    f()
}

/// Sets the nd-SBP of the gradients of the results of the calls inside `f`: in backward the gradient of such a result is boxed to
/// it before the call's own gradient is computed. The values stay as they are.
///
/// As [`with_sbp`] it applies to each function called on global tensors inside `f` that is recorded, and not to the ops that
/// such a function calls; also not to calls that write in place. The boxing is one of `to_global` in comm records and reports. Without
/// it a gradient stays as backward makes it, and is boxed where an op needs another layout.
///
/// A layout that the gradient cannot have is an error of the call.
///
/// ```
/// use oflow::prelude::*;
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let x = ones([4, 6], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
///     let y = with_grad_sbp(sbp![S(1)], || x.mul(2.0))?;
///     assert_eq!(y.sbp()?, &sbp![S(0)]); // forward is as it was
///     oflow::take_comm_trace();
///     y.sum(())?.backward()?; // the gradient of y is cut into columns, then that of x is boxed to x's rows
///     assert!(oflow::take_comm_trace().iter().any(|r| r.op == "to_global" && r.backward));
///     assert_eq!(x.grad().map(|g| g.to_vec::<f32>()).transpose()?, Some(vec![2.0; 24]));
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn with_grad_sbp<T>(sbp: impl Into<NdSbp>, f: impl FnOnce() -> T) -> T {
    let _asked = ask(sbp.into(), None, true, CallSite::here());
    f()
}

/// Pins the result of an op to an nd-SBP until the guard is dropped. Every call of the op on global tensors of meshes with as
/// many axes returns output 0 in this layout, also if another function calls the op. If several pins or [`with_sbp`] apply, the
/// innermost is used. A pin does not apply to calls on other meshes, to calls that write in place, to backward and to lowerings.
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
/// If there is no op of this name. A layout that the result of a call cannot have is an error of that call.
#[track_caller]
pub fn pin_sbp(op: &str, sbp: impl Into<NdSbp>) -> Result<PinGuard> {
    let site = CallSite::here();
    let op = find(op).map_err(|e| e.at(site))?;
    Ok(ask(sbp.into(), Some(op), false, site))
}

/// Guard that suspends older requests: all of them, or (`inner`) only those for functions. Functions of this library hold it, programs
/// never do, so that guards end in the reverse order of their beginnings.
#[must_use = "requests are in force again when the guard is dropped"]
pub(crate) struct FromNumber {
    saved: u64,
    inner: bool,
    _not_send: PhantomData<*const ()>,
}

impl FromNumber {
    fn now(inner: bool) -> FromNumber {
        let (number, mut m) = (COUNT.get().1, MODES.get());
        let saved = replace(if inner { &mut m.inner_from } else { &mut m.asked_from }, number);
        MODES.set(m);
        FromNumber { saved, inner, _not_send: PhantomData }
    }
}

impl Drop for FromNumber {
    fn drop(&mut self) {
        let mut m = MODES.get();
        *(if self.inner { &mut m.inner_from } else { &mut m.asked_from }) = self.saved;
        MODES.set(m);
    }
}

/// Suspends all requests and autocast until the guards are dropped, for backward and lowerings, which run in the dtypes of the call that
/// they belong to.
pub(crate) fn nothing_asked() -> (FromNumber, ModeGuard) {
    (FromNumber::now(false), change(Mode::Autocast(Autocast::Off)))
}

/// Suspends requests for functions until the guard is dropped, so that they do not apply to the ops that a function calls. Pins stay in
/// force.
#[inline]
pub(crate) fn inner_calls() -> FromNumber {
    FromNumber::now(true)
}

/// The layout requested for output 0 of an op on a mesh with `axes` axes.
#[inline]
pub(crate) fn asked_sbp(op: &'static Op, axes: usize) -> Option<AskedSbp> {
    if COUNT.get().0 == 0 { None } else { innermost(op, axes, false) }
}

/// The layout requested for the gradient of output 0 of an op on a mesh with `axes` axes.
#[inline]
pub(crate) fn asked_grad_sbp(op: &'static Op, axes: usize) -> Option<AskedSbp> {
    if COUNT.get().0 == 0 { None } else { innermost(op, axes, true) }
}

fn innermost(op: &'static Op, axes: usize, of_grad: bool) -> Option<AskedSbp> {
    let m = MODES.get();
    let applies = |s: &&AskedSbp| {
        s.number >= m.asked_from
            && s.of_grad == of_grad
            && match s.op {
                Some(pinned) => pinned.id() == op.id() && s.sbp.len() == axes,
                None => s.number >= m.inner_from,
            }
    };
    ASKED.with(|a| a.borrow().iter().rev().find(applies).cloned())
}

/// The modes of this thread that differ from the defaults, and the requests in force, as text.
pub(crate) fn described() -> Vec<String> {
    let m = MODES.get();
    let mut all: Vec<String> =
        [(!m.grad, "no_grad"), (m.no_sync, "no_sync"), (m.detect, "detect_anomaly"), (m.keep, "keep_layouts")]
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, name)| name.to_string())
            .collect();
    if m.autocast != Autocast::Off {
        all.push(format!("autocast {:?}", m.autocast));
    }
    if policy() != Policy::Allow {
        all.push(format!("boxing_policy {:?}", policy()));
    }
    ASKED.with_borrow(|asked| {
        for s in asked.iter().filter(|s| s.number >= m.asked_from) {
            all.push(format!("{} {}", s.op.map_or("with_sbp".into(), |op| format!("pin_sbp {}", op.name())), s.sbp));
        }
    });
    all
}
