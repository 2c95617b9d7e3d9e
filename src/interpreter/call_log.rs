//! Lists of the calls of a thread, with the signatures that were chosen for them.

use super::call::Call;
use super::observers::{Observer, observe};
use crate::context::Moments;
use crate::error::CallSite;
use crate::ops::{NdSignature, Op};
use crate::placement::Placement;
use crate::plan::{Plan, TypeRef};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A call of an op on global tensors.
#[derive(Clone)]
pub struct Called {
    /// Op that was called.
    pub op: &'static Op,
    /// Types of the inputs before they are boxed; `None` for an optional input that was left out.
    pub inputs: SmallVec<[Option<TypeRef>; 4]>,
    /// The placement of the call.
    pub placement: Placement,
    /// The SBPs that the inputs are boxed to, and those of the outputs before the first one is boxed to the layout that the program asks for:
    /// as the programs of graphs state it.
    pub signature: NdSignature,
    /// The line of the program.
    pub site: CallSite,
}

impl Called {
    /// Returns the signature as text, with `-` for an input that was left out: `[S(0)], -, - -> [S(0)]`.
    pub fn layouts(&self) -> String {
        let input = |(ty, sbp): (&Option<TypeRef>, &NdSbp)| ty.as_ref().map_or("-".to_string(), |_| sbp.to_string());
        self.signature.text(self.inputs.iter().zip(&self.signature.inputs).map(input))
    }
}

/// `matmul [S(1)], [S(0)] -> [P(sum)] on cpu[2]`
impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.op.name(), self.layouts(), self.placement)
    }
}

/// The calls that were made while it is in force.
#[derive(Default)]
struct CallLog(RefCell<Vec<Called>>);

impl Observer for CallLog {
    fn moments(&self) -> Moments {
        Moments::PLANNED
    }
    fn planned(&self, call: &Call<'_>, plan: &Plan, placement: &Placement) {
        // Every call on global tensors has one.
        let Some(signature) = plan.chosen.clone() else { return };
        let inputs = call.inputs.iter().map(|t| t.and_then(Tensor::type_ref)).collect();
        let called = Called { op: call.op, inputs, placement: placement.clone(), signature, site: call.site };
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
///     assert_eq!(called[0].to_string(), "matmul [S(1)], [S(0)] -> [P(sum)] on cpu[2]");
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
