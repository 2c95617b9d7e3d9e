//! The interface as plain C structs. `include/oflow_op.h` is made of this file (`cargo xtask codegen`).
//!
//! Rules that hold for all structs:
//! - Each starts with an [`oflow_head`]: its size in the library or program that made it, and the version of the interface that it was
//!   made with. A reader takes what lies within that size and treats what lies behind it as zero. So a struct may grow at its end, by
//!   a minor version. Another major version is refused.
//! - Text is UTF-8 with a length, not terminated by a zero. A pointer beside a count of 0 is not read.
//! - What a library gives lives as long as the process. What a callback is given lives until the callback returns.
//! - Nothing may unwind out of a callback, neither a panic nor an exception.
//! - Callbacks run on any thread, several at once.
#![allow(non_camel_case_types)]

pub use crate::calls::*;
use std::ffi::c_void;

/// Major version of the interface. A library made with another one is refused.
pub const OFLOW_OP_MAJOR: u16 = 1;
/// Minor version of the interface: structs have grown at their ends, nothing else has changed.
pub const OFLOW_OP_MINOR: u16 = 2;

/// A callback has done its work.
pub const OFLOW_OK: i32 = 0;
/// A callback has failed; the message says why.
pub const OFLOW_ERROR: i32 = 1;
/// A panic or an exception ended the callback; the message is its text.
pub const OFLOW_PANIC: i32 = 2;

/// Element type: one byte, 0 or 1.
pub const OFLOW_BOOL: u32 = 0;
/// Element type: unsigned 8-bit integer.
pub const OFLOW_U8: u32 = 1;
/// Element type: signed 8-bit integer.
pub const OFLOW_I8: u32 = 2;
/// Element type: signed 32-bit integer.
pub const OFLOW_I32: u32 = 3;
/// Element type: signed 64-bit integer.
pub const OFLOW_I64: u32 = 4;
/// Element type: IEEE half precision.
pub const OFLOW_F16: u32 = 5;
/// Element type: bfloat16.
pub const OFLOW_BF16: u32 = 6;
/// Element type: IEEE single precision.
pub const OFLOW_F32: u32 = 7;
/// Element type: IEEE double precision.
pub const OFLOW_F64: u32 = 8;
/// Element type: signed 16-bit integer.
pub const OFLOW_I16: u32 = 9;
/// Element type: unsigned 16-bit integer.
pub const OFLOW_U16: u32 = 10;
/// Element type: unsigned 32-bit integer.
pub const OFLOW_U32: u32 = 11;
/// Element type: 8-bit float with 4 bits of exponent and 3 of fraction, without infinities, as its bits.
pub const OFLOW_F8_E4M3FN: u32 = 12;
/// Element type: 8-bit float with 5 bits of exponent and 2 of fraction, as its bits.
pub const OFLOW_F8_E5M2: u32 = 13;
/// Element type: complex number of two 32-bit floats, real part first.
pub const OFLOW_C64: u32 = 14;
/// Element type: complex number of two 64-bit floats, real part first.
pub const OFLOW_C128: u32 = 15;
/// Names of the element types, by their codes.
pub(crate) const DTYPE_NAMES: [&str; 16] = [
    "bool",
    "u8",
    "i8",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "i16",
    "u16",
    "u32",
    "f8_e4m3fn",
    "f8_e5m2",
    "c64",
    "c128",
];

/// Memory of the host.
pub const OFLOW_CPU: u32 = 0;
/// Memory of an NVIDIA GPU.
pub const OFLOW_CUDA: u32 = 1;
/// No device: that of an optional input that was left out.
pub const OFLOW_NO_DEVICE: u32 = u32::MAX;

/// The stream of a device for kernels.
pub const OFLOW_STREAM_COMPUTE: u32 = 0;
/// The stream of a device for copies, beside that of the kernels.
pub const OFLOW_STREAM_COPY: u32 = 1;

/// Attribute: optional and not given.
pub const OFLOW_ATTR_ABSENT: u32 = 0;
/// Kind of an attribute whose value is in `integer`.
pub const OFLOW_ATTR_INT: u32 = 1;
/// Kind of an attribute whose value is in `real`.
pub const OFLOW_ATTR_FLOAT: u32 = 2;
/// Attribute: `integer`, 0 or 1.
pub const OFLOW_ATTR_BOOL: u32 = 3;
/// Kind of an attribute whose value is in `text`.
pub const OFLOW_ATTR_STR: u32 = 4;
/// Attribute: `integers`, `count` of them; shapes too.
pub const OFLOW_ATTR_INTS: u32 = 5;
/// Attribute: `reals`, `count` of them.
pub const OFLOW_ATTR_FLOATS: u32 = 6;
/// Attribute: `integer` is an element type.
pub const OFLOW_ATTR_DTYPE: u32 = 7;
/// Attribute: `text` is the name of a kind of device.
pub const OFLOW_ATTR_DEVICE: u32 = 8;
/// Attribute: `integers`, 0 or 1 each, `count` of them.
pub const OFLOW_ATTR_BOOLS: u32 = 9;
/// Attribute: `texts`, `count` of them.
pub const OFLOW_ATTR_STRS: u32 = 10;
/// Attribute: `integers` are element types, `count` of them.
pub const OFLOW_ATTR_DTYPES: u32 = 11;
/// Attribute: a value of another type; `text` shows it.
pub const OFLOW_ATTR_OTHER: u32 = 12;
/// Attribute: `count` lists of integers; shapes too. `lengths` says how many members each has; the members of all lists stand one
/// after the other in `integers`.
pub const OFLOW_ATTR_INT_LISTS: u32 = 13;

/// Starts each struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_head {
    /// Size of the whole struct in bytes.
    pub size: u32,
    /// `OFLOW_OP_MAJOR` of who made the struct.
    pub major: u16,
    /// `OFLOW_OP_MINOR` of who made the struct.
    pub minor: u16,
}

/// A text of UTF-8, without a zero at its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_str {
    /// First byte of the text, in UTF-8.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

/// A list of texts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_strs {
    /// First of the texts.
    pub data: *const oflow_str,
    /// Number of texts.
    pub count: usize,
}

/// Where a callback writes why it failed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_message {
    /// Size and version.
    pub head: oflow_head,
    /// Room for the text, in UTF-8.
    pub text: *mut u8,
    /// Bytes of room.
    pub capacity: usize,
    /// Number of bytes written.
    pub len: usize,
}

/// The value of an attribute of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_attr {
    /// Size and version.
    pub head: oflow_head,
    /// Name of the attribute in the declaration.
    pub name: oflow_str,
    /// `OFLOW_ATTR_…`: which of the fields below has the value.
    pub kind: u32,
    /// An integer, truth value or element type.
    pub integer: i64,
    /// Value of `OFLOW_ATTR_FLOAT`.
    pub real: f64,
    /// Value of `OFLOW_ATTR_STR`.
    pub text: oflow_str,
    /// A list of integers, truth values or element types.
    pub integers: *const i64,
    /// A list of floats.
    pub reals: *const f64,
    /// A list of texts.
    pub texts: *const oflow_str,
    /// Members of the list.
    pub count: usize,
    /// Of a list of lists: the number of members of each.
    pub lengths: *const i64,
}

/// Shape and element type of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_type {
    /// Size and version.
    pub head: oflow_head,
    /// The name of the input or output in the declaration.
    pub name: oflow_str,
    /// Element type: `OFLOW_F32`, …
    pub dtype: u32,
    /// Number of dims.
    pub rank: u32,
    /// Size of each dim.
    pub dims: *const i64,
    /// Of a quantised tensor the difference of two neighbours: an element stands for `(stored - zero_point) * scale`. 0 elsewhere.
    pub scale: f64,
    /// Of a quantised tensor the stored integer that stands for 0.
    pub zero_point: i64,
}

/// A tensor of a call: the shard of this rank.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_view {
    /// Size and version.
    pub head: oflow_head,
    /// The name of the input or output in the declaration.
    pub name: oflow_str,
    /// Address of the element with all indices 0.
    pub data: *mut c_void,
    /// Element type: `OFLOW_F32`, …
    pub dtype: u32,
    /// Where the memory is: `OFLOW_CPU`, …
    pub device: u32,
    /// Number of dims.
    pub rank: u32,
    /// Size of each dim.
    pub dims: *const i64,
    /// From one index to the next, in elements.
    pub strides: *const i64,
    /// Sizes of the logical tensor that this is a shard of.
    pub whole: *const i64,
    /// First logical index of the shard, by dim.
    pub start: *const i64,
    /// Of a quantised tensor the difference of two neighbours: an element stands for `(stored - zero_point) * scale`. 0 elsewhere.
    pub scale: f64,
    /// Of a quantised tensor the stored integer that stands for 0.
    pub zero_point: i64,
}

/// Arguments of rules: shapes, element types and attributes, no data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_infer {
    /// Size and version.
    pub head: oflow_head,
    /// Inputs; a null pointer for an optional one that was left out.
    pub inputs: *const *const oflow_type,
    /// Number of inputs.
    pub input_count: usize,
    /// Outputs, for the size of a workspace and for `applies`.
    pub outputs: *const *const oflow_type,
    /// How many; 0 where they are not known yet.
    pub output_count: usize,
    /// Plan attributes. A rule does not see the values of runtime attributes.
    pub attrs: *const *const oflow_attr,
    /// Number of attributes.
    pub attr_count: usize,
    /// `user` of the op; of the kernel for the size of a workspace and for `applies`.
    pub user: *mut c_void,
    /// For a device rule the device of each input: `OFLOW_CPU`, …, or `OFLOW_NO_DEVICE`. A null pointer for other rules.
    pub devices: *const u32,
    /// For a device rule the device that the call would run on otherwise.
    pub default_device: u32,
    /// For a rule over all axes of a mesh the size of each axis. A null pointer for other rules.
    pub mesh: *const i64,
    /// Number of mesh axes; 0 for other rules.
    pub mesh_axes: usize,
    /// For such a rule the present nd-SBP of each input, as `[S(0), B]`; an empty text for one that was left out. A null pointer for
    /// other rules.
    pub sbps: *const oflow_str,
    /// For such a rule the nd-SBP that output 0 is to have in the end; an empty text where none is said.
    pub asked: oflow_str,
    /// 1 if inputs are to stay as they are where a signature takes them so.
    pub keep: u32,
}

/// Where rules put their results. Each function returns `OFLOW_OK`, or `OFLOW_ERROR` for a value that cannot be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_results {
    /// Size and version.
    pub head: oflow_head,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Says the shape of an output.
    pub shape: Option<unsafe extern "C" fn(context: *mut c_void, output: usize, dims: *const i64, rank: usize) -> i32>,
    /// Says the element type of an output.
    pub dtype: Option<unsafe extern "C" fn(context: *mut c_void, output: usize, dtype: u32) -> i32>,
    /// Adds a signature, such as `S(0), B -> S(0)`; of a rule over all axes of a mesh one such as `[S(0), B] -> [S(0), B]`.
    pub signature: Option<unsafe extern "C" fn(context: *mut c_void, text: oflow_str) -> i32>,
    /// Says the device whose kernel runs (`OFLOW_CPU`, …), and its stream (`OFLOW_STREAM_COMPUTE`, …).
    pub run_on: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, stream: u32) -> i32>,
    /// Says the device of an output.
    pub device: Option<unsafe extern "C" fn(context: *mut c_void, output: usize, device: u32) -> i32>,
}

/// Arguments of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_call {
    /// Size and version.
    pub head: oflow_head,
    /// Name of the op.
    pub op: oflow_str,
    /// Inputs; a null pointer for an optional one that was left out. Contiguous, unless the op has the trait `strided`.
    pub inputs: *const *const oflow_view,
    /// Number of inputs.
    pub input_count: usize,
    /// Outputs, contiguous; the memory is there and not initialised.
    pub outputs: *const *const oflow_view,
    /// Number of outputs.
    pub output_count: usize,
    /// Attributes, runtime attributes too.
    pub attrs: *const *const oflow_attr,
    /// Number of attributes.
    pub attr_count: usize,
    /// Scratch memory, as bytes; a null pointer where the kernel asked for none.
    pub workspace: *const oflow_view,
    /// The `CUstream` to put the work on; a null pointer on other devices.
    pub stream: *mut c_void,
    /// Where the kernel writes the length of dim 0 of the outputs, if the op has the trait `length_by_kernel`; else a null pointer.
    pub length: *mut i64,
    /// `user` of the kernel.
    pub user: *mut c_void,
    /// First argument of `launch`.
    pub context: *mut c_void,
    /// Launches a primitive on memory of this call.
    pub launch: oflow_launch_fn,
}

/// A rule: what it gives goes into `results`. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
pub type oflow_rule_fn = Option<
    unsafe extern "C" fn(infer: *const oflow_infer, results: *const oflow_results, error: *mut oflow_message) -> i32,
>;

/// A computation. Returns `OFLOW_OK`, `OFLOW_ERROR` or `OFLOW_PANIC`.
pub type oflow_kernel_fn = Option<unsafe extern "C" fn(call: *const oflow_call, error: *mut oflow_message) -> i32>;

/// The size of a workspace in bytes, or a negative number for an error.
pub type oflow_workspace_fn = Option<unsafe extern "C" fn(infer: *const oflow_infer, error: *mut oflow_message) -> i64>;

/// Whether a kernel applies to a call: 1 or 0, or a negative number for an error.
pub type oflow_applies_fn = Option<unsafe extern "C" fn(infer: *const oflow_infer, error: *mut oflow_message) -> i32>;

/// A kernel of an op: either a function, or the text of a CUDA kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_kernel {
    /// Size and version.
    pub head: oflow_head,
    /// Name of the kernel, for lists and traces; empty for one made of op and device.
    pub name: oflow_str,
    /// `cpu` or `cuda`.
    pub device: oflow_str,
    /// Element types of float inputs that it takes: `f32|f64`; empty for all.
    pub dtypes: oflow_str,
    /// `fallback`, `default` (or empty), `optimized` or `experimental`.
    pub priority: oflow_str,
    /// The function. On CUDA it puts work on `call->stream` and does not wait for it.
    pub run: oflow_kernel_fn,
    /// Bytes of scratch memory that a call needs; null for none.
    pub workspace: oflow_workspace_fn,
    /// CUDA C++ in the place of `run`: the name of a file beside the library, or the text itself (which has more than one line).
    pub cuda_source: oflow_str,
    /// The `extern "C" __global__` function in it.
    pub cuda_entry: oflow_str,
    /// Number of threads, as arithmetic over the sizes of the shape rule and integer attributes; empty for one thread for each element
    /// of the first output.
    pub cuda_threads: oflow_str,
    /// Given to `run`, `workspace` and `applies`.
    pub user: *mut c_void,
    /// When it applies, beside `dtypes`: `y: f32 and not exact and mode in (up, down)`; empty for always. With `applies` the words that
    /// say when that holds.
    pub condition: oflow_str,
    /// When it applies, as code in the place of a condition that is read. It is asked when a call is planned.
    pub applies: oflow_applies_fn,
}

/// An op. Empty texts and null pointers say nothing, but for the declaration.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_op_def {
    /// Size and version.
    pub head: oflow_head,
    /// Inputs, attributes and outputs: `scale(x: float; by: runtime float = 2.0) -> y`.
    pub declaration: oflow_str,
    /// Domain of the name; the name of the library if it is empty.
    pub domain: oflow_str,
    /// Version of the declaration; 1 if it is 0.
    pub version: u32,
    /// One sentence; paragraphs of Markdown may follow.
    pub doc: oflow_str,
    /// Heading in lists.
    pub subject: oflow_str,
    /// Words: `strided`, `random`, `side_effect`, `cpu_only`, `run_empty`, `hidden`, `length_by_kernel`.
    pub traits: oflow_str,
    /// Functions: `scale(Tensor x, *, Float by=2.0) -> Tensor`.
    pub functions: oflow_strs,
    /// The scalar expression of an elementwise op; it needs no kernel and no other rule.
    pub expression: oflow_str,
    /// Derivatives in the place of those that follow from the expression: `x: by`.
    pub derivatives: oflow_strs,
    /// Shapes of the outputs: `[m, k], [k, n] -> [m, n]`; like input 0 if nothing is said.
    pub shape: oflow_str,
    /// Element types of the outputs: `promote`, `like x`, `f32, i64`; promotion of the inputs if nothing is said.
    pub dtype: oflow_str,
    /// Dims that may be split: `mk, kn -> mn`.
    pub factors: oflow_str,
    /// Inputs that the op is linear in: `x`, or `x: y, z` for one of which only some outputs depend.
    pub linear: oflow_strs,
    /// Signatures in the place of factors: `S(0), B -> S(0)`.
    pub signatures: oflow_strs,
    /// Gradients of the inputs: `x, w = mine.scale_grad(grad y, x, w; by)`, a line each, or `none`.
    pub gradient: oflow_str,
    /// Calls that test the op: `f32[4, 6] f32[6]; dim=1`.
    pub samples: oflow_strs,
    /// Refuses bad inputs and attributes.
    pub check: oflow_rule_fn,
    /// Shapes of the outputs, in the place of `shape`.
    pub infer_shapes: oflow_rule_fn,
    /// Element types of the outputs, in the place of `dtype`.
    pub infer_dtypes: oflow_rule_fn,
    /// Signatures, in the place of `factors` and `signatures`.
    pub infer_signatures: oflow_rule_fn,
    /// Given to the rules.
    pub user: *mut c_void,
    /// First of the pointers to the op's kernels.
    pub kernels: *const *const oflow_kernel,
    /// Number of kernels.
    pub kernel_count: usize,
    /// The gradient by code, in the place of `gradient`.
    pub grad_rule: oflow_grad_fn,
    /// Inputs and outputs that `grad_rule` reads, by name; others are not kept for it.
    pub grad_saves: oflow_strs,
    /// 1 if `grad_saves` says it; 0 keeps all.
    pub grad_saves_listed: u32,
    /// Signatures over all axes of a mesh in the place of the products of those of one axis: `[S(0), B], [B, B] -> [S(0), B]`.
    pub nd_infer: oflow_strs,
    /// Signatures over all axes of a mesh beside these products.
    pub nd_extra: oflow_strs,
    /// Signatures that hold over all axes of a mesh: patterns with `*`, or `not` and a pattern: `not [S(0), S(1)], * -> *`.
    pub nd_valid: oflow_strs,
    /// Where a call runs and where its outputs are.
    pub infer_devices: oflow_rule_fn,
    /// Signatures over all axes of a mesh by code, in the place of `nd_infer`. The rule sees the layouts of the inputs.
    pub nd_infer_rule: oflow_rule_fn,
    /// Takes one of the op's signatures for a call: the one that it gives. One that gives none leaves the choice to oflow.
    pub nd_choose: oflow_rule_fn,
}

/// Declarations of a library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_library {
    /// Size and version.
    pub head: oflow_head,
    /// Name of the library: letters, digits and `_`.
    pub name: oflow_str,
    /// Version of the library, as the library counts.
    pub version: oflow_str,
    /// Why there are no ops, if the library could not make them.
    pub error: oflow_str,
    /// Ops, in the order in which they are registered.
    pub ops: *const *const oflow_op_def,
    /// Number of ops.
    pub op_count: usize,
    /// Functions that call ops and functions.
    pub functions: *const *const oflow_function_def,
    /// Number of functions.
    pub function_count: usize,
}

/// Functions that a library may call while the process lives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct oflow_host {
    /// Size and version.
    pub head: oflow_head,
    /// Calls `body(data, begin, end)` for parts of `0..count` of at most `grain` each, on the threads of the rank, and returns after the
    /// last one. The parts depend on `count` and `grain` only. `body` must not unwind.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            count: usize,
            grain: usize,
            body: Option<unsafe extern "C" fn(data: *mut c_void, begin: usize, end: usize)>,
            data: *mut c_void,
        ),
    >,
    /// Calls of ops and functions.
    pub api: *const oflow_api,
}

// SAFETY: functions, and a pointer to a struct of functions that lives as long as the process.
unsafe impl Sync for oflow_host {}

/// The function that a library exports as `oflow_op_library`. It is called once for each load.
pub type oflow_library_fn = Option<unsafe extern "C" fn(host: *const oflow_host) -> *const oflow_library>;

impl oflow_head {
    /// The head of a `T` that this version of the interface has made.
    pub const fn of<T>() -> oflow_head {
        oflow_head { size: size_of::<T>() as u32, major: OFLOW_OP_MAJOR, minor: OFLOW_OP_MINOR }
    }
}

impl oflow_str {
    /// The empty text.
    pub const EMPTY: oflow_str = oflow_str { data: std::ptr::null(), len: 0 };

    /// A text, which is borrowed.
    pub const fn of(text: &str) -> oflow_str {
        oflow_str { data: text.as_ptr(), len: text.len() }
    }
}

impl oflow_strs {
    /// The empty list of texts.
    pub const EMPTY: oflow_strs = oflow_strs { data: std::ptr::null(), count: 0 };
}
