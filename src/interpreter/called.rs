//! Lists of the calls of a thread, with the signatures that were chosen for them.
//!
//! A call that nobody lists pays nothing: the flag that it reads says also that no boxing is denied (`context/policy.rs`).

use super::call::Call;
use crate::context::{calls_listed, list_calls};
use crate::error::CallSite;
use crate::ops::Op;
use crate::placement::Placement;
use crate::plan::{Plan, PlanSignature};
use std::cell::RefCell;
use std::marker::PhantomData;

/// A call of an op on global tensors.
#[derive(Clone)]
pub struct Called {
    /// The op.
    pub op: &'static Op,
    /// The placement of the call.
    pub placement: Placement,
    /// The SBPs that the inputs are boxed to and the outputs have.
    pub signature: PlanSignature,
    /// The line of the program.
    pub site: CallSite,
}

thread_local! {
    /// The lists of the scopes that are open, the innermost last.
    static LISTS: RefCell<Vec<Vec<Called>>> = const { RefCell::new(Vec::new()) };
}

/// Ends a list when it is dropped, also by a panic.
struct Scope {
    before: bool,
    open: usize,
    // Lists are per thread.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        list_calls(self.before);
        // Gone only when the thread ends.
        let _ = LISTS.try_with(|lists| lists.borrow_mut().truncate(self.open));
    }
}

/// Runs `f` and returns its result, and each call of an op on global tensors that this thread made inside, in order.
///
/// A function that calls several ops gives several entries. The ops of gradients count, if `f` runs backward; the ops of a lowering
/// are part of the call that is lowered. Changes of layout (`to_global` …), and ops on local tensors, have no signature and are
/// not listed. A call that fails is listed if its plan was made. Inside another such scope the calls are listed in both.
///
/// ```
/// use oflow::{interpreter::list_called, prelude::*};
/// oflow::run_ranks(2, |_| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let (x, w) = (ones([4, 6], (&mesh, sbp![S(1)]))?, ones([6, 8], (&mesh, sbp![S(0)]))?);
///     let (y, called) = list_called(|| x.matmul(&w));
///     assert_eq!(y?.sbp()?, &sbp![P]);
///     assert_eq!(called[0].op.name(), "matmul");
///     assert_eq!(called[0].signature.to_string(), "[S(1)], [S(0)] -> [P(sum)]");
///     Ok(())
/// })?;
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn list_called<T>(f: impl FnOnce() -> T) -> (T, Vec<Called>) {
    let open = LISTS.with_borrow_mut(|lists| {
        lists.push(Vec::new());
        lists.len() - 1
    });
    let scope = Scope { before: list_calls(true), open, _not_send: PhantomData };
    let result = f();
    let mine = LISTS.with_borrow_mut(|lists| lists.pop().unwrap_or_default());
    drop(scope);
    LISTS.with_borrow_mut(|lists| {
        if let Some(outer) = lists.last_mut() {
            outer.extend_from_slice(&mine);
        }
    });
    (result, mine)
}

/// Adds a call to the innermost list.
pub(super) fn list(call: &Call<'_>, plan: &Plan, placement: &Placement) {
    if !calls_listed() {
        return;
    }
    let signature = plan.signature(call.inputs.len());
    let called = Called { op: call.op, placement: placement.clone(), signature, site: call.site };
    LISTS.with_borrow_mut(|lists| {
        if let Some(list) = lists.last_mut() {
            list.push(called);
        }
    });
}
