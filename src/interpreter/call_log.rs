//! Lists of the calls of a thread, with the signatures that were chosen for them.

use super::call::Call;
use super::observers::{Observer, observe};
use crate::context::Moments;
use crate::error::CallSite;
use crate::ops::Op;
use crate::placement::Placement;
use crate::plan::{Plan, PlanSignature};
use std::cell::RefCell;
use std::rc::Rc;

/// A call of an op on global tensors.
#[derive(Clone)]
pub struct Called {
    /// Op that was called.
    pub op: &'static Op,
    /// The placement of the call.
    pub placement: Placement,
    /// The SBPs that the inputs are boxed to and the outputs have.
    pub signature: PlanSignature,
    /// The line of the program.
    pub site: CallSite,
}

/// The calls that were made while it is in force.
#[derive(Default)]
struct CallLog(RefCell<Vec<Called>>);

impl Observer for CallLog {
    fn moments(&self) -> Moments {
        Moments::PLANNED
    }
    fn planned(&self, call: &Call<'_>, plan: &Plan, placement: &Placement) {
        let signature = plan.signature(call.inputs.len());
        let called = Called { op: call.op, placement: placement.clone(), signature, site: call.site };
        self.0.borrow_mut().push(called);
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
    let log = Rc::new(CallLog::default());
    let scope = observe(log.clone());
    let result = f();
    drop(scope);
    (result, log.0.take())
}
