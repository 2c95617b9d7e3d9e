//! Gradient rules of libraries that are code.

use super::api::{answered, attributes, fill, passed_on};
use super::call::{User, judged};
use super::given::{GivenAttrs, LongRoom, tensor_type};
use super::read::{list, text};
use crate::error::{Error, Result};
use crate::ops::{Grad, GradCtx, OpDef, TensorType, Value, Which};
use oflow_op::abi::*;
use std::ffi::c_void;
use std::sync::Arc;

type Rule = unsafe extern "C" fn(*const oflow_grad, *mut oflow_message) -> i32;

/// A rule that runs; `context` leads here.
struct Running<'a, 'b> {
    ctx: &'a mut (dyn GradCtx + 'b),
    /// Values that the library knows by number.
    values: Vec<Value>,
    results: Vec<u32>,
    /// Dims of the values that were described.
    dims: Vec<Box<[i64]>>,
}

impl Running<'_, '_> {
    fn number(&mut self, v: Value) -> u32 {
        self.values.push(v);
        self.values.len() as u32 - 1
    }

    fn value(&self, number: u32) -> Result<Value> {
        let found = self.values.get(number as usize).copied();
        found.ok_or_else(|| Error::argument(format!("{number} stands for no value of this run of the rule")))
    }

    fn input(&self, name: &str, index: usize) -> Result<usize> {
        let op = self.ctx.op();
        let i = if name.is_empty() { index } else { name.input_of(op)? };
        match i < self.ctx.inputs() {
            true => Ok(i),
            false => Err(Error::argument(format!("the call of {} has no input {i}", op.name()))),
        }
    }

    fn get(&mut self, what: u32, name: &str, index: usize) -> Result<u32> {
        let found = match what {
            OFLOW_GRAD_INPUT => {
                let i = self.input(name, index)?;
                if self.ctx.has(i) { Some(self.ctx.input(i)?) } else { None }
            }
            OFLOW_GRAD_OUTPUT if name.is_empty() => Some(self.ctx.output(index)?),
            OFLOW_GRAD_OUTPUT => Some(self.ctx.output_named(name)?),
            OFLOW_GRAD_GRADIENT if name.is_empty() => {
                let sig = &self.ctx.op().sig;
                if index >= sig.outputs.len() && !sig.outputs_vary() {
                    return Err(Error::argument(format!("{} has no output {index}", self.ctx.op().name())));
                }
                self.ctx.grad(index)
            }
            OFLOW_GRAD_GRADIENT => self.ctx.grad_of(name)?,
            other => return Err(Error::argument(format!("{other} is nothing that a rule is given"))),
        };
        Ok(found.map_or(OFLOW_NO_VALUE, |v| self.number(v)))
    }
}

/// Runs what a rule asks for.
///
/// # Safety
/// `context` is null or what the rule was given; `error` is null or a message of the library.
unsafe fn asked(
    context: *mut c_void,
    error: *mut oflow_message,
    body: impl FnOnce(&mut Running<'_, '_>) -> Result<()>,
) -> i32 {
    // SAFETY: by this function's contract; the rule that runs waits for it.
    let running = unsafe { context.cast::<Running<'_, '_>>().as_mut() };
    let none = || Error::argument("the context of the rule is a null pointer");
    // SAFETY: by this function's contract.
    unsafe { answered(error, || body(running.ok_or_else(none)?)) }
}

/// Writes a result of a library's question.
///
/// # Safety
/// `at` is null, or room for it.
unsafe fn put<T>(at: *mut T, value: T) -> Result<()> {
    // SAFETY: by this function's contract.
    match unsafe { at.as_mut() } {
        Some(at) => {
            *at = value;
            Ok(())
        }
        None => Err(Error::argument("the place for the result is a null pointer")),
    }
}

unsafe extern "C" fn get(
    context: *mut c_void,
    what: u32,
    name: oflow_str,
    index: usize,
    value: *mut u32,
    error: *mut oflow_message,
) -> i32 {
    // SAFETY: what the rule was given, and texts and places of the library.
    unsafe { asked(context, error, |r| put(value, r.get(what, text(name, "the name of a value")?, index)?)) }
}

unsafe extern "C" fn needs(
    context: *mut c_void,
    name: oflow_str,
    index: usize,
    needed: *mut u32,
    error: *mut oflow_message,
) -> i32 {
    let body = |r: &mut Running<'_, '_>| {
        // SAFETY: a text of the library.
        let i = r.input(unsafe { text(name, "the name of an input")? }, index)?;
        // SAFETY: a place of the library.
        unsafe { put(needed, u32::from(r.ctx.needs(i))) }
    };
    // SAFETY: what the rule was given.
    unsafe { asked(context, error, body) }
}

unsafe extern "C" fn call(
    context: *mut c_void,
    function: oflow_str,
    inputs: *const u32,
    input_count: usize,
    attrs: *const *const oflow_attr,
    attr_count: usize,
    results: *mut *const u32,
    result_count: *mut usize,
    error: *mut oflow_message,
) -> i32 {
    let body = |r: &mut Running<'_, '_>| {
        // SAFETY: texts and lists of the library, which live until this returns.
        let (name, inputs, attrs) = unsafe {
            (
                text(function, "the name of a function")?,
                list(inputs, input_count, "the inputs of a call")?,
                attributes(attrs, attr_count)?,
            )
        };
        let value = |n: &u32| if *n == OFLOW_NO_VALUE { Ok(None) } else { r.value(*n).map(Some) };
        let inputs = inputs.iter().map(value).collect::<Result<Vec<_>>>()?;
        let made = r.ctx.emitter().emit(name, &inputs, &attrs)?;
        r.results = made.into_iter().map(|v| r.number(v)).collect();
        // SAFETY: places of the library.
        unsafe {
            put(results, r.results.as_ptr())?;
            put(result_count, r.results.len())
        }
    };
    // SAFETY: what the rule was given.
    unsafe { asked(context, error, body) }
}

unsafe extern "C" fn set(
    context: *mut c_void,
    name: oflow_str,
    index: usize,
    value: u32,
    error: *mut oflow_message,
) -> i32 {
    let body = |r: &mut Running<'_, '_>| {
        // SAFETY: a text of the library.
        let i = r.input(unsafe { text(name, "the name of an input")? }, index)?;
        let v = r.value(value)?;
        match r.ctx.has(i) {
            true => r.ctx.set(i, v),
            false => {
                Err(Error::argument(format!("input {i} of {} was left out, so it has no gradient", r.ctx.op().name())))
            }
        }
    };
    // SAFETY: what the rule was given.
    unsafe { asked(context, error, body) }
}

unsafe extern "C" fn describe(
    context: *mut c_void,
    value: u32,
    found: *mut oflow_type,
    error: *mut oflow_message,
) -> i32 {
    let body = |r: &mut Running<'_, '_>| {
        let v = r.value(value)?;
        let t = TensorType { shape: r.ctx.shape(v), dtype: r.ctx.dtype(v) };
        let dims: Box<[i64]> = t.shape.iter().map(|n| *n as i64).collect();
        let told = oflow_type { dims: dims.as_ptr(), ..tensor_type(&t, "") };
        r.dims.push(dims);
        // SAFETY: a struct of the library.
        unsafe { fill(found, told, "the struct for the type of a value") }
    };
    // SAFETY: what the rule was given.
    unsafe { asked(context, error, body) }
}

/// The gradient of an op whose library gives it as code. `saves`: the inputs and outputs that it reads; none for all.
///
/// # Errors
/// There is no input and no output of a name.
pub(super) fn grad(op: &OpDef, rule: Rule, user: User, saves: Option<&[String]>) -> Result<Grad> {
    let bit = |i: usize| 1u64 << i.min(63);
    let (mut saves_inputs, mut saves_outputs) = (0, 0);
    for name in saves.unwrap_or_default() {
        match (op.sig.input(name), op.sig.outputs.iter().position(|o| o == name)) {
            // The positions behind a variadic input are others in each call; so are those of outputs that vary.
            (Some(_), _) if op.sig.repeating() > 0 => saves_inputs = u64::MAX,
            (Some(i), _) => saves_inputs |= bit(i),
            (None, Some(_)) if op.sig.outputs_vary() => saves_outputs = u64::MAX,
            (None, Some(o)) => saves_outputs |= bit(o),
            (None, None) => {
                return Err(Error::registry(format!(
                    "its gradient reads '{name}', which is neither an input nor an output"
                )));
            }
        }
    }
    if saves.is_none() {
        (saves_inputs, saves_outputs) = (u64::MAX, u64::MAX);
    }
    let run = Arc::new(move |ctx: &mut dyn GradCtx| run_rule(ctx, rule, user));
    Ok(Grad::Rule { run, saves_inputs, saves_outputs })
}

fn run_rule(ctx: &mut dyn GradCtx, rule: Rule, user: User) -> Result<()> {
    let (op, values, runtime) = (ctx.op(), ctx.attrs().clone(), ctx.runtime().clone());
    let mut given = GivenAttrs::default();
    given.plan(&op.sig.attrs, &values);
    given.runtime(&op.sig.runtime, &runtime);
    let attrs = given.list_of();
    let input_count = ctx.inputs();
    let mut running = Running { ctx, values: vec![], results: vec![], dims: vec![] };
    let grad = oflow_grad {
        head: oflow_head::of::<oflow_grad>(),
        op: oflow_str::of(&op.sig.name),
        attrs: attrs.as_ptr().cast(),
        attr_count: attrs.len(),
        input_count,
        user: user.get(),
        context: (&raw mut running).cast(),
        get: Some(get),
        needs: Some(needs),
        call: Some(call),
        set: Some(set),
        describe: Some(describe),
    };
    let mut room = LongRoom::new();
    let mut message = room.message();
    // SAFETY: a function of a loaded library, which stays mapped; all that it is given lives until it returns.
    let status = unsafe { rule(&raw const grad, &raw mut message) };
    let why = room.said(message.len);
    if status == OFLOW_ERROR
        && let Some(e) = passed_on(&why)
    {
        return Err(e.within(|| format!("the gradient of {}", op.name())));
    }
    judged(status, why, || format!("the gradient of {}", op.shown()))
}
