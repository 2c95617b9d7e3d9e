//! Arguments of rules: shapes, element types and attributes.

use crate::abi::*;
use crate::call::{attributes, dtype_name, slice, text};
use crate::{Error, Result};

/// Shape and element type of a tensor.
#[derive(Clone, Copy)]
pub struct Type<'a>(&'a oflow_type);

impl<'a> Type<'a> {
    /// Name in the declaration.
    pub fn name(&self) -> &'a str {
        // SAFETY: text of the call.
        unsafe { text(self.0.name) }
    }
    /// Size of each dim.
    pub fn dims(&self) -> &'a [i64] {
        // SAFETY: one member for each dim, alive during the call.
        unsafe { slice(self.0.dims, self.0.rank as usize) }
    }
    /// Element type: `OFLOW_F32`, …
    pub fn dtype(&self) -> u32 {
        self.0.dtype
    }
    /// The name of the element type.
    pub fn dtype_name(&self) -> &'static str {
        dtype_name(self.0.dtype)
    }
}

/// Inputs and plan attributes of a call. Rules are pure: the same on every rank.
pub struct Infer<'a>(pub(crate) &'a oflow_infer);

impl<'a> Infer<'a> {
    fn attrs(&self) -> &'a [*const oflow_attr] {
        // SAFETY: list of the call.
        unsafe { slice(self.0.attrs, self.0.attr_count) }
    }
    /// Input by position; none if it was left out.
    pub fn opt_input(&self, i: usize) -> Option<Type<'a>> {
        // SAFETY: list of the call, of pointers that are null or to its types.
        unsafe { slice(self.0.inputs, self.0.input_count).get(i).and_then(|p| p.as_ref()).map(Type) }
    }
    /// Input by position.
    ///
    /// # Errors
    /// The call has no such input.
    pub fn input(&self, i: usize) -> Result<Type<'a>> {
        self.opt_input(i).ok_or_else(|| Error::new(format!("input {i} is out of range")))
    }
    /// Number of inputs; optional ones that were left out count.
    pub fn input_count(&self) -> usize {
        self.0.input_count
    }
    /// The device of an input (`OFLOW_CPU`, …), for a device rule; none of an input that was left out, and for other rules.
    pub fn device(&self, i: usize) -> Option<u32> {
        // SAFETY: null, or one member for each input.
        let all = unsafe { slice(self.0.devices, if self.0.devices.is_null() { 0 } else { self.0.input_count }) };
        all.get(i).copied().filter(|d| *d != OFLOW_NO_DEVICE)
    }
    /// The device that the call would run on without the device rule.
    pub fn default_device(&self) -> u32 {
        self.0.default_device
    }
    /// Sizes of the mesh axes, for `Op::nd_infer_rule` and `Op::nd_choose`; empty for other rules.
    pub fn mesh(&self) -> &'a [i64] {
        // SAFETY: one member for each mesh axis, alive during the call.
        unsafe { slice(self.0.mesh, self.0.mesh_axes) }
    }
    /// The present nd-SBP of an input, as `[S(0), B]`, for `Op::nd_infer_rule` and `Op::nd_choose`; none of an input that was left out, and
    /// for other rules.
    pub fn sbp(&self, i: usize) -> Option<&'a str> {
        // SAFETY: null, or one text for each input, alive during the call.
        let all = unsafe { slice(self.0.sbps, if self.0.sbps.is_null() { 0 } else { self.0.input_count }) };
        // SAFETY: as above.
        all.get(i).map(|t| unsafe { text(*t) }).filter(|t| !t.is_empty())
    }
    /// The nd-SBP that output 0 is to have in the end, if one is said.
    pub fn asked(&self) -> Option<&'a str> {
        // SAFETY: text of the call.
        Some(unsafe { text(self.0.asked) }).filter(|t| !t.is_empty())
    }
    /// Whether inputs are to stay as they are where a signature takes them so.
    pub fn keeps(&self) -> bool {
        self.0.keep != 0
    }
    /// Output by position, for the size of a workspace and for `Kernel::applies`.
    ///
    /// # Errors
    /// The call has no such output, or outputs are not known yet.
    pub fn output(&self, i: usize) -> Result<Type<'a>> {
        // SAFETY: list of the call, of pointers to its types.
        let found = unsafe { slice(self.0.outputs, self.0.output_count).get(i).and_then(|p| p.as_ref()) };
        found.map(Type).ok_or_else(|| Error::new(format!("output {i} is out of range here")))
    }
}

attributes!(Infer);
