//! Primitives that the kernels of libraries launch on memory of their call.

use super::api::{answered, attributes, element};
use super::read::{list, read, text};
use crate::backend::Primitive;
use crate::error::{Error, Result};
use crate::ops::{KernelCx, MAX_DIMS, TensorType, find, resolve_attrs};
use crate::placement::Device;
use oflow_kernels::view::Strides;
use oflow_kernels::{Dims, View};
use oflow_op::abi::*;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

/// A kernel that runs; `context` of its call leads here.
pub(super) struct Running<'a, 'b> {
    pub(super) cx: &'a KernelCx<'b>,
    pub(super) device: Device,
    /// Primitives run where the kernel runs: the stream and what the kernel keeps are of that thread.
    pub(super) thread: ThreadId,
}

/// Primitives that a kernel has launched, kept with its plan.
#[derive(Default)]
struct Known(Mutex<Vec<Arc<Primitive>>>);

/// Most that a kernel keeps; beyond that it starts anew.
const MOST: usize = 64;

pub(super) unsafe extern "C" fn launch(
    context: *mut c_void,
    given: *const oflow_launch,
    error: *mut oflow_message,
) -> i32 {
    // SAFETY: what the call was given, until the kernel returns, and structs of the library that live until this returns.
    unsafe { answered(error, || launched(context.cast::<Running<'_, '_>>().as_ref(), given)) }
}

/// # Safety
/// `given` is null, or a struct of a library.
unsafe fn launched(running: Option<&Running<'_, '_>>, given: *const oflow_launch) -> Result<()> {
    let Some(running) = running else { return Err(Error::argument("the context of the call is a null pointer")) };
    if running.thread != std::thread::current().id() {
        return Err(Error::argument("a primitive is launched from another thread than that of the kernel")
            .help("launch it outside of `parallel_for`: it uses the threads of the rank itself"));
    }
    // SAFETY: by this function's contract; so for all below.
    let given = unsafe { read(given, "a launch")? };
    // SAFETY: as above.
    let op = find(unsafe { text(given.op, "the name of an op")? })?;
    let views = |at, count, what: &str| -> Result<Vec<Option<View>>> {
        // SAFETY: as above.
        let all = unsafe { list::<*const oflow_view>(at, count, what)? };
        // SAFETY: as above.
        let one = |(i, v): (usize, &*const oflow_view)| unsafe { view(*v, &format!("{what}: view {i}")) };
        all.iter().enumerate().map(one).collect()
    };
    let inputs = views(given.inputs, given.input_count, "the inputs of a primitive")?;
    let outputs = views(given.outputs, given.output_count, "the outputs of a primitive")?;
    // SAFETY: as above.
    let (attrs, scratch) =
        unsafe { (attributes(given.attrs, given.attr_count)?, view(given.scratch, "the scratch memory")?) };
    let Some(outputs) = outputs.iter().map(|v| v.as_ref()).collect::<Option<Vec<&View>>>() else {
        return Err(Error::argument(format!("an output of the primitive {} is a null pointer", op.name())));
    };
    let typed = |v: &Option<View>| v.as_ref().map(|v| TensorType::new(v.dims(), v.dtype()));
    let types: Vec<Option<TensorType>> = inputs.iter().map(typed).collect();
    let known = running.cx.cached(|| Ok(Known::default()))?;
    let (values, runtime) = resolve_attrs(op, &attrs)?;
    let before = {
        let known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|p| p.is(op, &types, &values, &runtime)).cloned()
    };
    let primitive = match before {
        Some(found) => found,
        None => {
            let none = || {
                let types = types.iter().map(|t| t.as_ref().map_or("none".into(), |t| t.to_string()));
                let types = types.collect::<Vec<_>>().join(", ");
                Error::unsupported(format!("no kernel of '{}' runs on {} for ({types})", op.name(), running.device))
                    .help("ask first: `oflow::primitive` in C++")
            };
            let made = Arc::new(Primitive::find(op.name(), running.device, &types, &attrs)?.ok_or_else(none)?);
            let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.push(made.clone());
            made
        }
    };
    let inputs: Vec<Option<&View>> = inputs.iter().map(|v| v.as_ref()).collect();
    primitive.launch(running.cx, &inputs, &outputs, scratch.as_ref())
}

/// Sizes as oflow counts them.
pub(super) fn sizes(dims: &[i64]) -> Result<Dims> {
    if dims.len() > MAX_DIMS {
        return Err(Error::shape(format!("expected at most {MAX_DIMS} dims, not {}", dims.len())));
    }
    let found = dims.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Dims>>();
    found.ok_or_else(|| Error::shape(format!("{dims:?} cannot be sizes")))
}

/// Reads a view; none for a null pointer. Whether it lies in memory of the call is checked before anything uses it.
///
/// # Safety
/// `at` is null, or a view of a library.
unsafe fn view(at: *const oflow_view, what: &str) -> Result<Option<View>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: by this function's contract; so for the lists.
    let found = unsafe { read(at, what)? };
    let rank = found.rank as usize;
    // SAFETY: as above.
    let (dims, strides) = unsafe { (list(found.dims, rank, what)?, list(found.strides, rank, what)?) };
    let (dims, dtype) = (sizes(dims)?, element(found.dtype)?);
    TensorType::checked(&dims, dtype)?;
    let strides = strides.iter().map(|s| *s as isize).collect::<Strides>();
    if !(found.data.addr()).is_multiple_of(dtype.align()) {
        return Err(Error::argument(format!("{what} is not aligned for {dtype}")));
    }
    // SAFETY: aligned; `Primitive::launch` checks that each element lies in memory of the call, which lives until the kernel returns,
    // and that outputs overlap with nothing.
    Ok(Some(unsafe { View::from_raw(found.data.cast(), dtype, dims, strides) }))
}
