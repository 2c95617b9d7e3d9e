//! Functions of oflow that the code of libraries calls: tensors, ops and functions by name, primitives. Nothing unwinds out
//! of here, and an error of oflow that a library passes on comes back as that error.

use super::given::{GivenAttrs, dtype};
use super::launch;
use super::read::{self, Struct, list, read, text};
use super::tensors;
use crate::backend::Primitive;
use crate::error::{Error, Result};
use crate::functional::{Arg, Returned, call_any};
use crate::interpreter::Target;
use crate::ops::{AttrValue, TensorType};
use crate::placement::Device;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use oflow_op::abi::*;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The functions that libraries call.
pub(super) static API: oflow_api = oflow_api {
    head: oflow_head::of::<oflow_api>(),
    retain: Some(retain),
    release: Some(release),
    describe: Some(describe),
    call: Some(call),
    primitive: Some(primitive),
};

thread_local! {
    /// The last error that a library was told on this thread, with the text that it was told.
    static TOLD: RefCell<Option<(String, Error)>> = const { RefCell::new(None) };
    /// Why no op can be called here.
    static DENIED: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// What the last call returned.
    static RETURNED: RefCell<Answer> = RefCell::default();
}

/// Results of a call, kept as long as a library may read them.
#[derive(Default)]
struct Answer {
    tensors: Vec<oflow_tensor>,
    attrs: GivenAttrs,
    /// `attrs` borrows from it.
    _value: Option<Box<AttrValue>>,
}

/// While it lives, no op is called on this thread.
pub(super) struct NoCalls(Option<&'static str>);

/// Forbids calls of ops: in kernels and rules, which run in the middle of a call.
pub(super) fn no_calls(here: &'static str) -> NoCalls {
    NoCalls(DENIED.replace(Some(here)))
}

impl Drop for NoCalls {
    fn drop(&mut self) {
        DENIED.set(self.0);
    }
}

/// Runs what a library asks for, and tells it an error.
///
/// # Safety
/// `error` is null, or a message with the room that it states.
pub(super) unsafe fn answered(error: *mut oflow_message, body: impl FnOnce() -> Result<()>) -> i32 {
    let failed = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return OFLOW_OK,
        Ok(Err(e)) => e,
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().map(|s| s.to_string());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
            Error::device(format!("oflow panicked: {}", words.unwrap_or_default()))
        }
    };
    let why = failed.to_string();
    // SAFETY: by this function's contract.
    let room = unsafe { error.as_mut() }.filter(|m| !m.text.is_null());
    if let Some(message) = room {
        let end = (0..=why.len().min(message.capacity)).rev().find(|i| why.is_char_boundary(*i)).unwrap_or(0);
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(why.as_ptr(), message.text, end) };
        message.len = end;
        TOLD.set(Some((why[..end].to_string(), failed)));
    }
    OFLOW_ERROR
}

/// The error that a library passes on by its text.
pub(super) fn passed_on(text: &str) -> Option<Error> {
    match TOLD.take() {
        Some((told, e)) if told == text => Some(e),
        _ => None,
    }
}

/// Writes a struct where its head says how much of it the library knows.
///
/// # Safety
/// `at` is null, or a struct of a library lies there.
///
/// # Errors
/// As [`read()`].
pub(super) unsafe fn fill<T: Struct>(at: *mut T, value: T, what: &str) -> Result<()> {
    // SAFETY: by this function's contract; so for all below.
    let given = unsafe { read(at.cast_const(), what)? };
    let head = size_of::<oflow_head>();
    // SAFETY: every struct starts with a head.
    let size = unsafe { (&raw const given).cast::<oflow_head>().read() }.size as usize;
    let (from, to) = ((&raw const value).cast::<u8>(), at.cast::<u8>());
    // SAFETY: so many bytes lie there, behind the head, as its maker says.
    unsafe { ptr::copy_nonoverlapping(from.add(head), to.add(head), size.min(size_of::<T>()) - head) };
    Ok(())
}

unsafe extern "C" fn retain(tensor: oflow_tensor, error: *mut oflow_message) -> i32 {
    // SAFETY: a message of the library.
    unsafe { answered(error, || tensors::retain(tensor)) }
}

unsafe extern "C" fn release(tensor: oflow_tensor, error: *mut oflow_message) -> i32 {
    // SAFETY: a message of the library.
    unsafe { answered(error, || tensors::release(tensor)) }
}

unsafe extern "C" fn describe(tensor: oflow_tensor, info: *mut oflow_tensor_info, error: *mut oflow_message) -> i32 {
    // SAFETY: a struct and a message of the library.
    unsafe { answered(error, || fill(info, tensors::describe(tensor)?, "the struct for what a tensor is")) }
}

unsafe extern "C" fn call(
    call: *const oflow_function_call,
    returned: *mut oflow_returned,
    error: *mut oflow_message,
) -> i32 {
    let body = || {
        // SAFETY: structs of the library, which live until this returns; so for all below.
        let call = unsafe { read(call, "a call")? };
        // SAFETY: as above.
        let name = unsafe { text(call.function, "the name of a function")? };
        if let Some(here) = DENIED.get() {
            return Err(Error::unsupported(format!("'{name}' cannot be called in {here}, which runs inside a call"))
                .help("call ops in a function that composes them, or launch a primitive"));
        }
        // SAFETY: as above.
        let args = unsafe { list(call.args, call.arg_count, "the arguments of a call")? };
        let (mut placed, mut named) = (vec![], vec![]);
        for arg in args {
            // SAFETY: as above.
            match unsafe { argument(*arg)? } {
                ("", arg) if named.is_empty() => placed.push(arg),
                ("", _) => return Err(Error::argument(format!("{name}: an argument by position follows one by name"))),
                (of, arg) => named.push((of, arg)),
            }
        }
        let answer = match call_any(name, &placed, &named)? {
            Returned::Tensors(all) => {
                let tensors = all.into_iter().map(tensors::put).collect::<Result<_>>()?;
                Answer { tensors, ..Answer::default() }
            }
            Returned::Value(v) => {
                // A list may lie in the value itself, so it stays where it is.
                let (mut attrs, v) = (GivenAttrs::default(), Box::new(v));
                attrs.value("", &v);
                Answer { tensors: vec![], attrs, _value: Some(v) }
            }
        };
        // What it points to lies in the answer, so the answer is put in its place first.
        RETURNED.with_borrow_mut(|kept| {
            *kept = answer;
            let found = oflow_returned {
                head: oflow_head::of::<oflow_returned>(),
                tensors: kept.tensors.as_ptr(),
                count: kept.tensors.len(),
                value: kept.attrs.list_of().first().map_or(ptr::null(), |value| ptr::from_ref(*value)),
            };
            // SAFETY: as above.
            unsafe { fill(returned, found, "the struct for what a call returns") }
        })
    };
    // SAFETY: a message of the library.
    unsafe { answered(error, body) }
}

/// Reads an argument, with the name of its parameter.
///
/// # Safety
/// `at` is null, or an argument of a library.
unsafe fn argument(at: *const oflow_arg) -> Result<(&'static str, Arg)> {
    // SAFETY: by this function's contract; so for all below.
    let arg = unsafe { read(at, "an argument")? };
    // SAFETY: as above.
    let name = unsafe { text(arg.name, "the name of an argument")? };
    let tensors = || -> Result<Vec<Tensor>> {
        // SAFETY: as above.
        unsafe { list(arg.tensors, arg.count, "the tensors of an argument")? }
            .iter()
            .map(|t| tensors::get(*t))
            .collect()
    };
    let one = || tensors().map(|mut all| if all.len() == 1 { all.pop() } else { None });
    let value = match arg.kind {
        OFLOW_ARG_NONE => Arg::None,
        OFLOW_ARG_TENSOR => Arg::Tensor(one()?.ok_or_else(|| Error::argument("an argument is one tensor"))?),
        OFLOW_ARG_TENSORS => Arg::Tensors(tensors()?),
        OFLOW_ARG_VALUE => {
            // SAFETY: as above.
            match unsafe { attribute(arg.value)?.1 } {
                AttrValue::Absent => Arg::None,
                value => Arg::Attr(value),
            }
        }
        OFLOW_ARG_TARGET => Arg::Target(match one()? {
            Some(t) if t.is_global() => Target::Global(t.placement()?.clone(), t.sbp()?.clone()),
            Some(t) => Target::Local(t.device()),
            // SAFETY: as above.
            None => match unsafe { attribute(arg.value)?.1 } {
                AttrValue::Device(d) => Target::Local(d),
                other => {
                    return Err(Error::argument(format!("a tensor cannot be placed at {other}"))
                        .help("give a tensor beside which it lies, or a device: cpu or cuda"));
                }
            },
        }),
        other => {
            return Err(Error::argument(format!("unknown kind {other} of arguments"))
                .help("the kinds are OFLOW_ARG_NONE, _TENSOR, _TENSORS, _VALUE and _TARGET of oflow_op.h"));
        }
    };
    Ok((name, value))
}

/// Reads attributes by name.
///
/// # Safety
/// They are a list of a library.
pub(super) unsafe fn attributes(at: *const *const oflow_attr, count: usize) -> Result<Vec<(&'static str, AttrValue)>> {
    // SAFETY: by this function's contract.
    let all = unsafe { list(at, count, "the list of attributes")? };
    // SAFETY: as above.
    all.iter().map(|a| unsafe { attribute(*a) }).filter(|a| !matches!(a, Ok((_, AttrValue::Absent)))).collect()
}

/// Reads an attribute: its name and its value.
///
/// # Safety
/// `at` is null, or an attribute of a library.
pub(super) unsafe fn attribute(at: *const oflow_attr) -> Result<(&'static str, AttrValue)> {
    // SAFETY: by this function's contract; so for all below.
    let attr = unsafe { read(at, "an attribute")? };
    // SAFETY: as above.
    let name = unsafe { text(attr.name, "the name of an attribute")? };
    // SAFETY: as above.
    let words = || unsafe { text(attr.text, "the text of an attribute") };
    // SAFETY: as above.
    let integers = || unsafe { list(attr.integers, attr.count, "a list of integers") };
    let code = |i: &i64| {
        let found = u32::try_from(*i).ok().and_then(dtype);
        found.ok_or_else(|| Error::argument(format!("attribute '{name}': {i} is not an element type")))
    };
    let value = match attr.kind {
        OFLOW_ATTR_ABSENT => AttrValue::Absent,
        OFLOW_ATTR_INT => AttrValue::Int(attr.integer),
        OFLOW_ATTR_FLOAT => AttrValue::Float(attr.real),
        OFLOW_ATTR_BOOL => AttrValue::Bool(attr.integer != 0),
        OFLOW_ATTR_STR => AttrValue::Str(words()?.into()),
        OFLOW_ATTR_INTS => AttrValue::Ints(integers()?.iter().copied().collect()),
        OFLOW_ATTR_FLOATS => {
            // SAFETY: as above.
            AttrValue::Floats(unsafe { list(attr.reals, attr.count, "a list of floats")? }.iter().copied().collect())
        }
        OFLOW_ATTR_DTYPE => AttrValue::DType(code(&attr.integer)?),
        OFLOW_ATTR_DEVICE => AttrValue::Device(words()?.parse()?),
        OFLOW_ATTR_SBP => AttrValue::NdSbp(words()?.parse::<NdSbp>()?),
        OFLOW_ATTR_BOOLS => AttrValue::List(integers()?.iter().map(|i| AttrValue::Bool(*i != 0)).collect()),
        OFLOW_ATTR_DTYPES => {
            AttrValue::List(integers()?.iter().map(|i| code(i).map(AttrValue::DType)).collect::<Result<_>>()?)
        }
        OFLOW_ATTR_STRS => {
            // SAFETY: as above.
            let all = unsafe { read::texts(oflow_strs { data: attr.texts, count: attr.count }, "a list of texts")? };
            AttrValue::List(all.into_iter().map(|t| AttrValue::Str(t.into())).collect())
        }
        OFLOW_ATTR_INT_LISTS => {
            // SAFETY: as above.
            let lengths = unsafe { list(attr.lengths, attr.count, "the lengths of lists")? };
            let wrong = || Error::argument(format!("attribute '{name}': {lengths:?} cannot be lengths of lists"));
            let sizes: Option<Vec<usize>> = lengths.iter().map(|len| usize::try_from(*len).ok()).collect();
            let sizes = sizes.ok_or_else(wrong)?;
            let total = sizes.iter().try_fold(0usize, |n, len| n.checked_add(*len)).ok_or_else(wrong)?;
            // SAFETY: as above.
            let mut rest = unsafe { list(attr.integers, total, "the integers of lists")? };
            let each = sizes.iter().map(|len| {
                let (these, others) = rest.split_at(*len);
                rest = others;
                AttrValue::Ints(these.iter().copied().collect())
            });
            AttrValue::List(each.collect())
        }
        other => {
            return Err(Error::argument(format!("attribute '{name}': unknown kind {other} of values"))
                .help("the kinds are the OFLOW_ATTR_… of oflow_op.h, but for OFLOW_ATTR_OTHER"));
        }
    };
    Ok((name, value))
}

/// The device of a code.
pub(super) fn device(code: u32) -> Result<Device> {
    match code {
        OFLOW_CPU => Ok(Device::Cpu),
        OFLOW_CUDA => Ok(Device::Cuda),
        other => Err(Error::argument(format!("{other} is not a kind of device"))
            .help(format!("{OFLOW_CPU} is the CPU, {OFLOW_CUDA} a GPU (OFLOW_CPU, OFLOW_CUDA)"))),
    }
}

unsafe extern "C" fn primitive(
    op: oflow_str,
    on: u32,
    inputs: *const *const oflow_type,
    input_count: usize,
    attrs: *const *const oflow_attr,
    attr_count: usize,
    scratch: *mut i64,
    error: *mut oflow_message,
) -> i32 {
    let body = || {
        // SAFETY: texts and lists of the library, which live until this returns; so for all below.
        let (op, inputs) =
            unsafe { (text(op, "the name of an op")?, list(inputs, input_count, "the types of inputs")?) };
        let typed = |at: &*const oflow_type| match at.is_null() {
            true => Ok(None),
            // SAFETY: as above.
            false => unsafe { tensor_type(*at).map(Some) },
        };
        let inputs = inputs.iter().map(typed).collect::<Result<Vec<_>>>()?;
        // SAFETY: as above.
        let attrs = unsafe { attributes(attrs, attr_count)? };
        let found = Primitive::find(op, device(on)?, &inputs, &attrs)?.map_or(-1, |p| p.workspace() as i64);
        // SAFETY: null, or a number of the library.
        match unsafe { scratch.as_mut() } {
            Some(at) => *at = found,
            None => return Err(Error::argument("the place for the size of the scratch memory is a null pointer")),
        }
        Ok(())
    };
    // SAFETY: a message of the library.
    unsafe { answered(error, body) }
}

/// Reads shape and element type.
///
/// # Safety
/// `at` is null, or a type of a library.
unsafe fn tensor_type(at: *const oflow_type) -> Result<TensorType> {
    // SAFETY: by this function's contract.
    let found = unsafe { read(at, "the type of an input")? };
    // SAFETY: as above.
    let dims = unsafe { list(found.dims, found.rank as usize, "the sizes of an input")? };
    TensorType::checked(&launch::sizes(dims)?, element(found.dtype)?)
}

/// The element type of a code.
pub(super) fn element(code: u32) -> Result<DType> {
    dtype(code).ok_or_else(|| Error::argument(format!("{code} is not an element type")))
}
