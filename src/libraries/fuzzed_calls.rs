//! For [`fuzz`](super::fuzz): bodies of functions and gradient rules that ask oflow for anything, with numbers, kinds and lists that may be
//! wrong.

use super::api::API;
use super::fuzz::{Bytes, Steps};
use oflow_op::abi::*;
use std::ffi::c_void;
use std::ptr;

/// A text of the input, or one that is none.
fn words(from: &mut Bytes<'_>) -> oflow_str {
    let text = from.run();
    match text.first() {
        Some(1) => oflow_str { data: ptr::null(), len: text.len() },
        Some(2) => oflow_str { data: text.as_ptr(), len: usize::MAX },
        _ => oflow_str { data: text.as_ptr(), len: text.len() },
    }
}

/// Lengths of two lists.
static ONE_EACH: [i64; 2] = [1, 1];
static NEGATIVE: [i64; 2] = [-1, 3];

/// An attribute with lists of two members, or with pointers that are null.
fn attr(from: &mut Bytes<'_>, integers: &[i64; 2], texts: &[oflow_str; 2]) -> oflow_attr {
    let wrong = from.byte();
    let count = if wrong == 1 { usize::MAX } else { 2 };
    oflow_attr {
        head: oflow_head { major: OFLOW_OP_MAJOR + u16::from(wrong == 2), ..oflow_head::of::<oflow_attr>() },
        name: words(from),
        kind: u32::from(from.byte()),
        integer: from.number(),
        real: from.number() as f64,
        text: words(from),
        integers: if wrong == 3 { ptr::null() } else { integers.as_ptr() },
        reals: if wrong == 3 { ptr::null() } else { integers.as_ptr().cast() },
        texts: if wrong == 3 { ptr::null() } else { texts.as_ptr() },
        count,
        lengths: match wrong {
            3 => ptr::null(),
            4 => NEGATIVE.as_ptr(),
            _ => ONE_EACH.as_ptr(),
        },
    }
}

/// Calls a function of oflow with arguments of the input; gives the tensors that it has returned.
fn call(from: &mut Bytes<'_>, known: &[oflow_tensor], error: *mut oflow_message) -> Vec<oflow_tensor> {
    let function = words(from);
    let mut args = vec![];
    let integers = [from.number(), from.number()];
    let texts = [oflow_str::of("a"), words(from)];
    let mut attrs = vec![];
    let kinds: Vec<u8> = (0..from.byte().min(8)).map(|_| from.byte()).collect();
    for kind in &kinds {
        if *kind == 3 {
            attrs.push(Box::new(attr(from, &integers, &texts)));
        }
    }
    let mut values = attrs.iter();
    for kind in &kinds {
        let at = usize::from(from.byte());
        let left = known.len().saturating_sub(at);
        args.push(oflow_arg {
            head: oflow_head::of::<oflow_arg>(),
            name: if *kind == 3 { words(from) } else { oflow_str::EMPTY },
            kind: u32::from(*kind),
            tensors: known.get(at..).unwrap_or_default().as_ptr(),
            count: if *kind == 1 { left.min(1) } else { left },
            value: values.next().filter(|_| *kind == 3).map_or(ptr::null(), |a| ptr::from_ref(&**a)),
        });
    }
    let pointers: Vec<*const oflow_arg> = args.iter().map(ptr::from_ref).collect();
    let call = oflow_function_call {
        head: oflow_head::of::<oflow_function_call>(),
        function,
        args: pointers.as_ptr(),
        arg_count: pointers.len(),
    };
    let mut returned =
        oflow_returned { head: oflow_head::of::<oflow_returned>(), tensors: ptr::null(), count: 0, value: ptr::null() };
    // SAFETY: structs and lists that live until it returns; a message with its room.
    let done = API.call.map(|f| unsafe { f(&raw const call, &raw mut returned, error) });
    match (done, returned.count) {
        (Some(OFLOW_OK), 1..) => {
            // SAFETY: a list of that length, until the next call.
            unsafe { std::slice::from_raw_parts(returned.tensors, returned.count) }.to_vec()
        }
        _ => vec![],
    }
}

/// A body that does the steps of its `user`.
pub(super) unsafe extern "C" fn body(
    args: *const oflow_function_args,
    results: *const oflow_function_results,
    error: *mut oflow_message,
) -> i32 {
    // SAFETY: what a body is given.
    let (args, results) = unsafe { (&*args, &*results) };
    // SAFETY: null, or the steps of the function.
    let Some(steps) = (unsafe { args.user.cast::<Steps>().as_ref() }) else { return OFLOW_OK };
    let (mut from, mut known, mut owned) = (Bytes(steps), vec![], vec![]);
    for i in 0..args.arg_count {
        // SAFETY: as many arguments, each with as many tensors as it says.
        let arg = unsafe { &**args.args.add(i) };
        // SAFETY: as above.
        known.extend((0..arg.count).map(|t| unsafe { *arg.tensors.add(t) }));
    }
    let mut status = OFLOW_OK;
    while !from.0.is_empty() && status == OFLOW_OK {
        match from.byte() {
            0 => status = from.number() as i32,
            2 => {
                let at = from.byte();
                let tensor = known.get(usize::from(at)).copied().unwrap_or(u64::from(at) << 25);
                // SAFETY: the function of the results with its context.
                let _taken = results.tensor.map(|f| unsafe { f(results.context, tensor) });
            }
            3 => {
                let (integers, texts) = ([from.number(), 1], [oflow_str::of("a"), oflow_str::EMPTY]);
                let value = attr(&mut from, &integers, &texts);
                // SAFETY: the function of the results with its context.
                let _taken = results.value.map(|f| unsafe { f(results.context, &raw const value) });
            }
            4 => {
                let made = call(&mut from, &known, error);
                known.extend(&made);
                owned.extend(made);
            }
            5 => {
                let (what, at) = (from.byte(), from.byte());
                let tensor = known.get(usize::from(at)).copied().unwrap_or_else(|| from.number() as u64);
                // SAFETY: any number; a message with its room.
                let _done = match what {
                    0 => API.release.map(|f| unsafe { f(tensor, error) }),
                    _ => API.retain.map(|f| unsafe { f(tensor, error) }),
                };
                if what != 0 {
                    owned.push(tensor);
                }
            }
            _ => {}
        }
    }
    for tensor in owned {
        // SAFETY: any number; no message.
        let _done = API.release.map(|f| unsafe { f(tensor, ptr::null_mut()) });
    }
    status
}

/// A gradient rule that does the steps of its `user`.
pub(super) unsafe extern "C" fn grad_rule(grad: *const oflow_grad, error: *mut oflow_message) -> i32 {
    // SAFETY: what a rule is given.
    let grad = unsafe { &*grad };
    // SAFETY: null, or the steps of the op.
    let Some(steps) = (unsafe { grad.user.cast::<Steps>().as_ref() }) else { return OFLOW_OK };
    let (mut from, mut known) = (Bytes(steps), vec![]);
    let context: *mut c_void = grad.context;
    while !from.0.is_empty() {
        match from.byte() {
            0 => return from.number() as i32,
            6 => {
                let (what, name, index) = (u32::from(from.byte()), words(&mut from), from.byte());
                let mut value = OFLOW_NO_VALUE;
                // SAFETY: the function with its context, a text, a place and a message.
                let _done = grad.get.map(|f| unsafe { f(context, what, name, index.into(), &raw mut value, error) });
                known.push(value);
            }
            7 => {
                let name = words(&mut from);
                let inputs: Vec<u32> = (0..from.byte().min(8))
                    .map(|_| known.get(usize::from(from.byte())).copied().unwrap_or(7))
                    .collect();
                let (integers, texts) = ([from.number(), 1], [oflow_str::of("a"), oflow_str::EMPTY]);
                let value = attr(&mut Bytes(from.0), &integers, &texts);
                let attrs = [ptr::from_ref(&value)];
                let (mut results, mut count) = (ptr::null(), 0);
                let given = usize::from(integers[0] == 1);
                // SAFETY: the function with its context, lists of these lengths, places and a message.
                let done = grad.call.map(|f| unsafe {
                    let (data, n) = (inputs.as_ptr(), inputs.len());
                    f(context, name, data, n, attrs.as_ptr(), given, &raw mut results, &raw mut count, error)
                });
                if done == Some(OFLOW_OK) && count > 0 {
                    // SAFETY: a list of that length, until the next call.
                    known.extend(unsafe { std::slice::from_raw_parts(results, count) });
                }
            }
            8 => {
                let (name, index, at) = (words(&mut from), from.byte(), from.byte());
                let value = known.get(usize::from(at)).copied().unwrap_or(u32::from(at));
                // SAFETY: the function with its context, a text and a message.
                let _done = grad.set.map(|f| unsafe { f(context, name, index.into(), value, error) });
            }
            _ => {}
        }
    }
    OFLOW_OK
}
