//! An op with attributes, made once and called many times.

use super::call::{Call, Outputs};
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, Attrs, Op, RuntimeAttrs, resolve_attrs};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;

/// An op with base attributes (OneFlow's `UserOpExpr`). They are read by name and checked once; a call takes them as they are, or
/// with some of them changed.
///
/// ```
/// use oflow::{interpreter::OpCall, op, prelude::*};
/// let top = OpCall::new(op!("sum")?, &[("keepdim", true.into())])?;
/// let x = ones([2, 3], Device::Cpu)?;
/// assert_eq!(top.run(&[Some(&x)])?[0].shape(), [1, 1]);
/// assert_eq!(top.run_with(&[Some(&x)], &[("dims", [0i64].into())])?[0].shape(), [1, 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone)]
pub struct OpCall {
    op: &'static Op,
    attrs: Attrs,
    runtime: RuntimeAttrs,
}

impl OpCall {
    /// An op with these attributes by name; the others have their defaults.
    ///
    /// # Errors
    /// On an unknown name, a required attribute that is not given, or a value of another type.
    pub fn new(op: &'static Op, attrs: &[(&str, AttrValue)]) -> Result<OpCall> {
        let (attrs, runtime) = resolve_attrs(op, attrs)?;
        Ok(OpCall { op, attrs, runtime })
    }

    /// Returns the op that is called.
    pub fn op(&self) -> &'static Op {
        self.op
    }

    /// The same op with some attributes changed.
    ///
    /// # Errors
    /// On an unknown name or a value of another type.
    pub fn with(&self, attrs: &[(&str, AttrValue)]) -> Result<OpCall> {
        let mut changed = self.clone();
        for (name, value) in attrs {
            let sig = &self.op.sig;
            match (sig.attr(name), sig.runtime_attr(name)) {
                (Some(i), _) => changed.attrs[i] = sig.attrs[i].accept(value.clone())?,
                (None, Some(i)) => changed.runtime[i] = number(self.op, i, value)?,
                // The error of an unknown name.
                (None, None) => drop(resolve_attrs(self.op, &[(name, value.clone())])?),
            }
        }
        Ok(changed)
    }

    /// Calls the op with its base attributes. `inputs` has one entry per declared input.
    ///
    /// # Errors
    /// As [`Call::run`].
    #[track_caller]
    #[inline]
    pub fn run(&self, inputs: &[Option<&Tensor>]) -> Result<Outputs> {
        Call::of(self.op, inputs, self.attrs.clone(), self.runtime.clone(), CallSite::here()).run()
    }

    /// Calls the op with some attributes changed for this call.
    ///
    /// # Errors
    /// As [`OpCall::with`] and [`Call::run`].
    #[track_caller]
    pub fn run_with(&self, inputs: &[Option<&Tensor>], attrs: &[(&str, AttrValue)]) -> Result<Outputs> {
        let site = CallSite::here();
        let call = self.with(attrs).map_err(|e| e.in_call(|| self.op.name().to_string()).at(site))?;
        Call::of(call.op, inputs, call.attrs, call.runtime, site).run()
    }
}

/// A runtime attribute's value.
fn number(op: &Op, i: usize, value: &AttrValue) -> Result<Scalar> {
    let def = &op.sig.runtime[i];
    let wrong = || Error::argument(format!("attribute '{}' must be a number, not {value}", def.name));
    def.accept(value.clone())?.to_scalar().ok_or_else(wrong)
}
