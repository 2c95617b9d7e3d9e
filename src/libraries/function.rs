//! Functions of libraries that call ops and other functions.

use super::api::{attribute, passed_on};
use super::call::{User, judged};
use super::given::{GivenAttrs, LongRoom};
use super::read::{read, text};
use super::tensors::{self, Lent};
use crate::error::{Error, Result};
use crate::functional::{Arg, Bound, FnBody, FnDef, FnReturn, FnSig, ParamKind};
use crate::ops::{AttrKind, AttrValue, LibraryId};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use oflow_op::abi::*;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

type Body = unsafe extern "C" fn(*const oflow_function_args, *const oflow_function_results, *mut oflow_message) -> i32;

/// Reads a function of a library.
///
/// # Safety
/// `given` is null, or a struct of a library that lives as long as the process, with texts that do.
pub(super) unsafe fn read_function(given: *const oflow_function_def, id: &Arc<LibraryId>) -> Result<FnDef> {
    // SAFETY: by this function's contract; so for the texts.
    let from = unsafe { read(given, &format!("a function of library {id}"))? };
    // SAFETY: as above.
    let signature = unsafe { text(from.signature, &format!("the signature of a function of library {id}"))? };
    let here = |e: Error| {
        let kind = e.kind();
        let found = Error::new(kind, format!("function '{signature}' of library {id}: {}", e.message()));
        e.help_text().map(str::to_string).into_iter().fold(found, Error::help)
    };
    // SAFETY: as above.
    let doc = unsafe { text(from.doc, "the doc of a function").map_err(here)? };
    let run = from.run.ok_or_else(|| here(Error::registry("it has no body: its function is a null pointer")))?;
    let sig = signature_of(signature, id).map_err(here)?;
    let def = FnDef::of_library(sig.clone(), body(sig, run, User(from.user), id.clone()), id.clone()).doc(doc);
    Ok(if from.hidden != 0 { def.hidden() } else { def })
}

/// The signature, under the name that callers write.
fn signature_of(text: &str, id: &LibraryId) -> Result<FnSig> {
    let mut sig = FnSig::parse(text)?;
    let (domain, name) = sig.name.rsplit_once('.').unwrap_or((&id.name, &sig.name));
    if domain != id.name || domain == "oflow" {
        return Err(Error::registry(format!("'{}' cannot be the name of a function of this library", sig.name)).help(
            "a function of the library `mine` is `mine.name`, or `name` alone; `oflow` is not the domain of a library",
        ));
    }
    sig.name = format!("{domain}.{name}");
    let unknown = sig.params.iter().find(|p| {
        use AttrKind::{Bytes, NdSbps, Placement, Placements};
        matches!(p.kind, ParamKind::Target | ParamKind::TensorIndex | ParamKind::Generator)
            || matches!(p.kind, ParamKind::Attr(Bytes | NdSbps | Placement | Placements))
    });
    match unknown {
        Some(p) => Err(Error::unsupported(format!("a function of a library cannot be given '{p}'"))
            .help("it takes tensors, numbers, texts, lists of these, dtypes, shapes, devices and an nd-SBP")),
        None => Ok(sig),
    }
}

/// Deepest nesting of functions of libraries: one that calls itself without end is an error before the stack ends.
const DEEPEST: u32 = 32;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One more function of a library that runs on this thread.
struct Nested;

impl Nested {
    fn enter(name: &str) -> Result<Nested> {
        match DEPTH.get() {
            DEEPEST.. => Err(Error::unsupported(format!("functions of libraries call each other {DEEPEST} deep"))
                .in_call(|| name.to_string())
                .help("does it call itself?")),
            depth => {
                DEPTH.set(depth + 1);
                Ok(Nested)
            }
        }
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Results that a body has given.
struct Given {
    tensors: Vec<Tensor>,
    value: Option<AttrValue>,
}

/// Most results of a function.
const MOST: usize = 1 << 16;

unsafe extern "C" fn take_tensor(context: *mut c_void, tensor: oflow_tensor) -> i32 {
    // SAFETY: null, or the `Given` of the body that runs, which hands it back.
    let given = unsafe { context.cast::<Given>().as_mut() };
    match (given, tensors::get(tensor)) {
        (Some(given), Ok(t)) if given.tensors.len() < MOST => {
            given.tensors.push(t);
            OFLOW_OK
        }
        _ => OFLOW_ERROR,
    }
}

unsafe extern "C" fn take_value(context: *mut c_void, value: *const oflow_attr) -> i32 {
    // SAFETY: null, or the `Given` of the body that runs, which hands it back.
    let given = unsafe { context.cast::<Given>().as_mut() };
    // SAFETY: null, or an attribute of the library.
    match (given, unsafe { attribute(value) }) {
        (Some(given), Ok((_, value))) => {
            given.value = Some(value);
            OFLOW_OK
        }
        _ => OFLOW_ERROR,
    }
}

/// The code of a library as the body of a function.
fn body(sig: FnSig, run: Body, user: User, id: Arc<LibraryId>) -> FnBody {
    match sig.returns {
        FnReturn::Value(kind) => FnBody::Value(Arc::new(move |bound| {
            let given = called(&sig, bound, run, user, &id)?;
            match given.value {
                Some(value) if given.tensors.is_empty() => kind.accept("result", value),
                _ => Err(Error::argument(format!("{sig} of library {id} does not give one value"))),
            }
        })),
        _ => FnBody::Code(Arc::new(move |bound| {
            let given = called(&sig, bound, run, user, &id)?;
            let (n, says) = match &sig.returns {
                FnReturn::Tensor => (given.tensors.len(), Some(1)),
                FnReturn::Named(names) => (given.tensors.len(), Some(names.len())),
                FnReturn::Void => (given.tensors.len(), Some(0)),
                FnReturn::TensorTuple | FnReturn::Value(_) => (0, None),
            };
            match (says.is_none_or(|says| says == n), given.value) {
                (true, None) => Ok(given.tensors),
                (_, Some(_)) => {
                    Err(Error::argument(format!("{sig} of library {id} returns a value that is not a tensor")))
                }
                _ => Err(Error::argument(format!("{sig} of library {id} gives {n} tensors"))),
            }
        })),
    }
}

fn called(sig: &FnSig, bound: &Bound, run: Body, user: User, id: &LibraryId) -> Result<Given> {
    let _nested = Nested::enter(&sig.name)?;
    let (mut lent, mut attrs) = (Lent::default(), GivenAttrs::default());
    for (p, arg) in sig.params.iter().zip(&bound.args) {
        match arg {
            Some(Arg::Attr(AttrValue::Scalar(Scalar::Complex(..)))) => {
                return Err(Error::unsupported(format!(
                    "'{}' is a complex number, which a function of a library cannot be given",
                    p.name
                )));
            }
            Some(Arg::Attr(value)) => attrs.value(&p.name, value),
            _ => attrs.value(&p.name, &AttrValue::Absent),
        }
    }
    let values = attrs.list_of();
    let mut args = Vec::with_capacity(sig.params.len());
    for (i, p) in sig.params.iter().enumerate() {
        let (kind, tensors): (u32, &[oflow_tensor]) = match bound.args.get(i).and_then(|a| a.as_ref()) {
            Some(Arg::Tensor(t)) => (OFLOW_ARG_TENSOR, lent.all(std::slice::from_ref(t))?),
            Some(Arg::Tensors(all)) => (OFLOW_ARG_TENSORS, lent.all(all)?),
            Some(Arg::Attr(_)) => (OFLOW_ARG_VALUE, &[]),
            _ => (OFLOW_ARG_NONE, &[]),
        };
        args.push(oflow_arg {
            head: oflow_head::of::<oflow_arg>(),
            name: oflow_str::of(&p.name),
            kind,
            tensors: tensors.as_ptr(),
            count: tensors.len(),
            value: values[i],
        });
    }
    let pointers: Vec<*const oflow_arg> = args.iter().map(ptr::from_ref).collect();
    let given_args = oflow_function_args {
        head: oflow_head::of::<oflow_function_args>(),
        function: oflow_str::of(&sig.name),
        args: pointers.as_ptr(),
        arg_count: pointers.len(),
        user: user.get(),
    };
    let mut given = Given { tensors: vec![], value: None };
    let results = oflow_function_results {
        head: oflow_head::of::<oflow_function_results>(),
        context: (&raw mut given).cast(),
        tensor: Some(take_tensor),
        value: Some(take_value),
    };
    let mut room = LongRoom::new();
    let mut message = room.message();
    // SAFETY: a function of a loaded library, which stays mapped; all that it is given lives until it returns.
    let status = unsafe { run(&raw const given_args, &raw const results, &raw mut message) };
    let why = room.said(message.len);
    if status == OFLOW_ERROR
        && let Some(e) = passed_on(&why)
    {
        // One that calls itself is named once.
        let named = e.to_string().contains(&sig.name);
        return Err(if named { e } else { e.within(|| sig.name.clone()) });
    }
    judged(status, why, || format!("function {} of library {id}", sig.name))?;
    Ok(given)
}
