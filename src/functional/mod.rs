//! The functions of oflow: methods of [`Tensor`], factories, and a table of all functions by name.
//!
//! The [landing page](crate#functions-by-subject) lists them by subject. [`call`] calls a function by name, [`functions`] lists the
//! table, [`register_function`] adds to it. A function calls one or several ops: it chooses among them by its arguments, fills in
//! defaults and reshapes.

mod autograd;
mod by_name;
mod create;
mod data;
mod inplace;
mod layout;
mod methods;
mod nn;
mod operators;
mod reduce;
mod shape;
mod sig;
mod table;

pub use autograd::{HookHandle, grad};
pub use by_name::{Arg, Bound, call};
pub use create::{
    IntoTarget, TargetSpec, arange, bernoulli, empty, from_vec, full, full_like, ones, ones_like, rand, randint, randn,
    range, scalar_tensor, zeros, zeros_like,
};
pub use layout::{IntoLayout, LayoutSpec, box_many, distribute, from_boxes};
pub use methods::Operand;
pub use nn::{AttentionOptions, CrossEntropyOptions};
pub use reduce::DimList;
pub use shape::{cat, stack, where_};
pub use sig::{FnParam, FnSig, ParamKind};
pub use table::{FnBody, FnCode, FnDef, functions, register_function};

use crate::error::{CallSite, Result};
use crate::interpreter::{Call, Outputs, Target, dispatch};
use crate::ops::{Attrs, Op, RuntimeAttrs, find};
use crate::tensor::Tensor;
use std::sync::OnceLock;

/// An op of the registry, looked up once per place of use.
pub(crate) struct OpRef {
    name: &'static str,
    op: OnceLock<&'static Op>,
}

impl OpRef {
    pub(crate) const fn new(name: &'static str) -> OpRef {
        OpRef { name, op: OnceLock::new() }
    }
    pub(crate) fn get(&self) -> Result<&'static Op> {
        match self.op.get() {
            Some(op) => Ok(op),
            None => {
                let op = find(self.name)?;
                Ok(self.op.get_or_init(|| op))
            }
        }
    }
}

/// The op of that name, looked up once.
macro_rules! op {
    ($name:literal) => {{
        static OP: $crate::functional::OpRef = $crate::functional::OpRef::new($name);
        OP.get()
    }};
}
pub(crate) use op;

/// Calls an op on tensors that are all given.
pub(crate) fn invoke(
    op: Result<&'static Op>,
    inputs: &[Option<&Tensor>],
    attrs: Attrs,
    runtime: RuntimeAttrs,
    site: CallSite,
) -> Result<Outputs> {
    dispatch(Call { op: op?, inputs, attrs, runtime, target: None, given: None, recording: false, site })
}

/// The same, for ops of one output.
pub(crate) fn invoke1(
    op: Result<&'static Op>,
    inputs: &[Option<&Tensor>],
    attrs: Attrs,
    runtime: RuntimeAttrs,
    site: CallSite,
) -> Result<Tensor> {
    let mut outs = invoke(op, inputs, attrs, runtime, site)?;
    Ok(outs.swap_remove(0))
}

/// Calls a source op.
pub(crate) fn create(
    op: Result<&'static Op>,
    attrs: Attrs,
    runtime: RuntimeAttrs,
    target: &Target,
    site: CallSite,
) -> Result<Tensor> {
    let call = Call { op: op?, inputs: &[], attrs, runtime, target: Some(target), given: None, recording: false, site };
    let mut outs = dispatch(call)?;
    Ok(outs.swap_remove(0))
}
