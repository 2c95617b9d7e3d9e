//! Requests of a library to oflow: calls of ops and functions, functions that are made of such calls, gradient rules by
//! code, and primitives. Part of the interface in [`abi`](crate::abi), under the same rules.
//!
//! - A tensor is a number that oflow gives. A library owns each tensor that `call` returns, and each that it has retained; it releases it
//!   once. What a callback is given is lent until the callback returns. A number that stands for no tensor is an error of the call.
//! - The functions of oflow return `OFLOW_OK` or `OFLOW_ERROR` with a message; they do not unwind.
//! - Ops and functions are called by function bodies and other code of the program, not by kernels and rules: those run in the middle of a
//!   call. Kernels have primitives.
#![allow(non_camel_case_types)]

use crate::abi::{oflow_attr, oflow_head, oflow_message, oflow_str, oflow_type, oflow_view};
use std::ffi::c_void;

/// A tensor, by its number. 0 is none.
pub type oflow_tensor = u64;

/// Attribute: `text` is an nd-SBP, such as `[S(0), B]`.
pub const OFLOW_ATTR_SBP: u32 = 32;

/// Argument: left out.
pub const OFLOW_ARG_NONE: u32 = 0;
/// Argument: `tensors[0]`.
pub const OFLOW_ARG_TENSOR: u32 = 1;
/// Argument: `tensors`, `count` of them.
pub const OFLOW_ARG_TENSORS: u32 = 2;
/// Kind of an argument whose value is in `value`.
pub const OFLOW_ARG_VALUE: u32 = 3;
/// Argument: where a new tensor lies: beside `tensors[0]`, else on the device that `value` names.
pub const OFLOW_ARG_TARGET: u32 = 4;

/// An argument of a function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_arg {
    /// Size and version.
    pub head: oflow_head,
    /// The parameter; empty for an argument by position.
    pub name: oflow_str,
    /// `OFLOW_ARG_…`: which of the fields below has the argument.
    pub kind: u32,
    /// First of the tensors.
    pub tensors: *const oflow_tensor,
    /// Number of tensors.
    pub count: usize,
    /// A value that is no tensor.
    pub value: *const oflow_attr,
}

/// A call of a function or an op by name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_function_call {
    /// Size and version.
    pub head: oflow_head,
    /// `relu`, `mine.scale`.
    pub function: oflow_str,
    /// Arguments by position, then those by name.
    pub args: *const *const oflow_arg,
    /// Number of arguments.
    pub arg_count: usize,
}

/// Results of a call. The lists live until the next call on this thread; the tensors are owned by the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_returned {
    /// Size and version.
    pub head: oflow_head,
    /// First of the tensors.
    pub tensors: *const oflow_tensor,
    /// Number of tensors.
    pub count: usize,
    /// The value of a function that returns no tensors; else a null pointer.
    pub value: *const oflow_attr,
}

/// Description of a tensor. Pointers live as long as the tensor's number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_tensor_info {
    /// Size and version.
    pub head: oflow_head,
    /// Element type: `OFLOW_F32`, …
    pub dtype: u32,
    /// Number of dims.
    pub rank: u32,
    /// Logical size of each dim.
    pub dims: *const i64,
    /// Of a quantised tensor the difference of two neighbours. 0 elsewhere.
    pub scale: f64,
    /// Of a quantised tensor the stored integer that stands for 0.
    pub zero_point: i64,
    /// The kind of device: `cpu`, `cuda`, …
    pub device: oflow_str,
    /// 1 for a global tensor, 0 for a local one.
    pub global: u32,
    /// 1 if gradients flow to it.
    pub requires_grad: u32,
    /// The nd-SBP of a global tensor; empty elsewhere.
    pub sbp: oflow_str,
    /// The placement of a global tensor as text; empty elsewhere.
    pub placement: oflow_str,
}

/// oflow's functions for the code of libraries.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_api {
    /// Size and version.
    pub head: oflow_head,
    /// Owns a tensor once more.
    pub retain: Option<unsafe extern "C" fn(tensor: oflow_tensor, error: *mut oflow_message) -> i32>,
    /// Gives a tensor up that was owned.
    pub release: Option<unsafe extern "C" fn(tensor: oflow_tensor, error: *mut oflow_message) -> i32>,
    /// Says what a tensor is. The caller sets the head of `info`.
    pub describe: Option<
        unsafe extern "C" fn(tensor: oflow_tensor, info: *mut oflow_tensor_info, error: *mut oflow_message) -> i32,
    >,
    /// Calls a function or an op by name. The caller sets the head of `returned`.
    pub call: Option<
        unsafe extern "C" fn(
            call: *const oflow_function_call,
            returned: *mut oflow_returned,
            error: *mut oflow_message,
        ) -> i32,
    >,
    /// Asks for a primitive: the kernel of an op for these types on a kind of device (`OFLOW_CPU`, …). `scratch` becomes the bytes of
    /// scratch memory that it needs, or -1 where there is none.
    pub primitive: Option<
        unsafe extern "C" fn(
            op: oflow_str,
            device: u32,
            inputs: *const *const oflow_type,
            input_count: usize,
            attrs: *const *const oflow_attr,
            attr_count: usize,
            scratch: *mut i64,
            error: *mut oflow_message,
        ) -> i32,
    >,
}

/// Arguments of the body of a function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_function_args {
    /// Size and version.
    pub head: oflow_head,
    /// Name of the function.
    pub function: oflow_str,
    /// One for each parameter, in order, with its name and its default.
    pub args: *const *const oflow_arg,
    /// Number of arguments.
    pub arg_count: usize,
    /// `user` of the function.
    pub user: *mut c_void,
}

/// Where the body of a function puts its results. The functions return `OFLOW_OK`, or `OFLOW_ERROR` for what cannot be a result.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_function_results {
    /// Size and version.
    pub head: oflow_head,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Adds a tensor, which stays owned by the caller.
    pub tensor: Option<unsafe extern "C" fn(context: *mut c_void, tensor: oflow_tensor) -> i32>,
    /// Says the value of a function that returns no tensors.
    pub value: Option<unsafe extern "C" fn(context: *mut c_void, value: *const oflow_attr) -> i32>,
}

/// The body of a function. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
pub type oflow_function_fn = Option<
    unsafe extern "C" fn(
        args: *const oflow_function_args,
        results: *const oflow_function_results,
        error: *mut oflow_message,
    ) -> i32,
>;

/// A function that calls ops and other functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_function_def {
    /// Size and version.
    pub head: oflow_head,
    /// `scaled_relu(Tensor x, *, Float by=2.0) -> Tensor`; the library's name is put before the function's.
    pub signature: oflow_str,
    /// One sentence; paragraphs of Markdown may follow.
    pub doc: oflow_str,
    /// 1 leaves it out of lists.
    pub hidden: u32,
    /// Body of the function.
    pub run: oflow_function_fn,
    /// Given to `run`.
    pub user: *mut c_void,
}

/// Gradient rule: an input of the forward call.
pub const OFLOW_GRAD_INPUT: u32 = 0;
/// Gradient rule: an output of the forward call.
pub const OFLOW_GRAD_OUTPUT: u32 = 1;
/// Gradient rule: the gradient of an output.
pub const OFLOW_GRAD_GRADIENT: u32 = 2;
/// Gradient rule: no value.
pub const OFLOW_NO_VALUE: u32 = 0xffff_ffff;

/// Arguments of a gradient rule. A value is a number that holds in this run of the rule. Inputs and outputs are named; if
/// the name is empty, `index` is their position.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_grad {
    /// Size and version.
    pub head: oflow_head,
    /// Name of the op.
    pub op: oflow_str,
    /// Attributes of the forward call, runtime attributes too.
    pub attrs: *const *const oflow_attr,
    /// Number of attributes.
    pub attr_count: usize,
    /// Inputs of the forward call; optional ones that were left out count.
    pub input_count: usize,
    /// `user` of the op.
    pub user: *mut c_void,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Gives an input, an output or a gradient (`what` is `OFLOW_GRAD_…`). `value` becomes `OFLOW_NO_VALUE` for an optional input that
    /// was left out, and for the gradient of an output that nothing depends on.
    pub get: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            what: u32,
            name: oflow_str,
            index: usize,
            value: *mut u32,
            error: *mut oflow_message,
        ) -> i32,
    >,
    /// Whether an input wants a gradient: `needed` becomes 0 or 1.
    pub needs: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            name: oflow_str,
            index: usize,
            needed: *mut u32,
            error: *mut oflow_message,
        ) -> i32,
    >,
    /// Calls an op or a function: values in order (`OFLOW_NO_VALUE` for one that is left out), other arguments by name. The list of
    /// results lives until the next call.
    pub call: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            function: oflow_str,
            inputs: *const u32,
            input_count: usize,
            attrs: *const *const oflow_attr,
            attr_count: usize,
            results: *mut *const u32,
            result_count: *mut usize,
            error: *mut oflow_message,
        ) -> i32,
    >,
    /// Says the gradient of an input.
    pub set: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            name: oflow_str,
            index: usize,
            value: u32,
            error: *mut oflow_message,
        ) -> i32,
    >,
    /// Says shape and element type of a value. The caller sets the head of `found`; its pointers live until the rule returns.
    pub describe: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            value: u32,
            found: *mut oflow_type,
            error: *mut oflow_message,
        ) -> i32,
    >,
}

/// A gradient rule. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
pub type oflow_grad_fn = Option<unsafe extern "C" fn(grad: *const oflow_grad, error: *mut oflow_message) -> i32>;

/// A primitive that a kernel launches: the kernel of an op, on memory of the call. Of views the name, the logical sizes and the start are
/// not read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_launch {
    /// Size and version.
    pub head: oflow_head,
    /// `matmul`, `copy`, `add`, …
    pub op: oflow_str,
    /// Inputs, in memory of the call's inputs, outputs or workspace; a null pointer for an optional one that is left out.
    pub inputs: *const *const oflow_view,
    /// Number of inputs.
    pub input_count: usize,
    /// Outputs, in memory of the call's outputs or workspace.
    pub outputs: *const *const oflow_view,
    /// Number of outputs.
    pub output_count: usize,
    /// Attributes by name; those that are left out have their defaults.
    pub attrs: *const *const oflow_attr,
    /// Number of attributes.
    pub attr_count: usize,
    /// Scratch memory of the primitive, in the call's workspace; a null pointer for none.
    pub scratch: *const oflow_view,
}

/// Launches a primitive in the stream of the call that `context` belongs to, from the thread that runs the kernel.
pub type oflow_launch_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, launch: *const oflow_launch, error: *mut oflow_message) -> i32>;
