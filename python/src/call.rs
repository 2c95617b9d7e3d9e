//! The way of a call from Python, in the order of its stages:
//!
//! | stage | what happens | where |
//! |---|---|---|
//! | found | CPython calls the function's trampoline; its overloads are read | `trampolines`, `function` |
//! | bound | the first overload that takes the arguments is chosen: its parameters get plain values | `oflow::functional::bind`, `args`, `read` |
//! | made | tensors are made of the values of an index, as in `x[[0, 2]]` | `data` |
//! | entered | the thread is in the context of its rank; the line of the program is noted | `context`, `site` |
//! | run | the library runs the function; other threads of Python meanwhile, if it takes long | `oflow::functional` |
//! | result | objects are made of what it gives; an exception of its error | `results`, `errors`, `call_text` |

use crate::args::Arguments;
use crate::errors::exception;
use crate::function::{Function, Overload};
use crate::tensor::Tensor;
use crate::{call_text, context, data, out, read, results, site};
use oflow::functional::bind::{self as binder, bind, first_fit};
use oflow::functional::{Arg, Bound as BoundArgs, FnReturn, Returned};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

/// The arguments of one call: by position, then by name.
pub struct Given<'a, 'py> {
    /// All arguments; of a method the tensor comes first.
    pub all: SmallVec<[Borrowed<'a, 'py, PyAny>; 8]>,
    /// The names of the last ones.
    pub names: Option<Borrowed<'a, 'py, PyTuple>>,
    /// Whether the first argument is the tensor of a method.
    pub is_method: bool,
}

/// Names of arguments.
type Names<'a, 'py> = SmallVec<[Borrowed<'a, 'py, PyString>; 4]>;

/// Outcome of a call that no overload takes.
#[derive(Clone, Copy)]
enum NoFit {
    /// A `TypeError` that says why.
    Raise,
    /// Python asks the other operand.
    NotImplemented,
}

/// Calls the first overload that takes the arguments.
///
/// # Errors
/// No overload does; otherwise those of the function.
pub fn call<'py>(py: Python<'py>, function: &Function, given: &Given<'_, 'py>) -> PyResult<Py<PyAny>> {
    stages(py, function, given, &[], NoFit::Raise)
}

/// The same, with values for parameters of its one overload that the call leaves out.
///
/// # Errors
/// As [`call`].
pub fn call_with<'py>(
    py: Python<'py>,
    function: &Function,
    given: &Given<'_, 'py>,
    base: &[Option<Arg>],
) -> PyResult<Py<PyAny>> {
    stages(py, function, given, base, NoFit::Raise)
}

/// The same for an operator of Python, whose result is `NotImplemented` where no overload takes the operands.
///
/// # Errors
/// Those of the function.
pub fn call_operator<'py>(py: Python<'py>, function: &Function, given: &Given<'_, 'py>) -> PyResult<Py<PyAny>> {
    stages(py, function, given, &[], NoFit::NotImplemented)
}

fn stages<'py>(
    py: Python<'py>,
    function: &Function,
    given: &Given<'_, 'py>,
    base: &[Option<Arg>],
    no_fit: NoFit,
) -> PyResult<Py<PyAny>> {
    // Found.
    let overloads = function.overloads(py)?;

    // Bound.
    let (mut names, mut keywords) = (Names::new(), SmallVec::<[&str; 4]>::new());
    for name in given.names.iter().flat_map(|names| names.iter_borrowed()) {
        names.push(name.cast()?);
    }
    for name in &names {
        keywords.push(name.to_str()?);
    }
    let values = binder::Given::new(&given.all, &keywords);
    let fitting = first_fit(&overloads, |o: &Overload| {
        let mut arguments = Arguments::of(o.makes_tensor, o.variadic, base);
        let mut args = bind(&mut arguments, &o.def.sig, o.by_position, &values)?;
        // Made.
        data::make_indices(py, &mut args, arguments.unmade)?;
        Ok((args, arguments.requires_grad))
    });
    let (overload, (args, requires_grad)) = match (fitting?, no_fit) {
        (Ok(fit), _) => fit,
        (Err(_), NoFit::NotImplemented) => {
            // The other operand would compare objects, or name neither library in its error.
            for operand in &given.all {
                if let Some(class) = read::of_another_library(operand)? {
                    return Err(read::foreign(&class));
                }
            }
            return Ok(py.NotImplemented());
        }
        (Err(misfits), NoFit::Raise) => {
            let into = if given.is_method { None } else { out::without(py, &overloads, &given.all, &keywords)? };
            if let Some(call) = into {
                let rest = Given { all: call.rest.into(), names: Some(call.names.as_borrowed()), is_method: false };
                let result = stages(py, function, &rest, base, no_fit)?.into_bound(py);
                return out::written(function, &result, call.out);
            }
            return Err(call_text::refused(py, function, &overloads, &misfits, &values));
        }
    };

    // Entered.
    context::enter(py)?;
    let long = context::takes_long(&args, &overload.def);
    let bound = BoundArgs { args, site: site::caller(py) };

    // Run.
    let raised = |e| exception(py, call_text::named_in(function, e, &values));
    let slots = match overload.def.sig.returns {
        FnReturn::Named(_) => overload.def.outputs(&bound).map_err(raised)?,
        _ => None,
    };
    let run = || match requires_grad {
        false => overload.def.run(bound),
        true => overload.def.run(bound).and_then(requiring_grad),
    };
    let returned = if long { py.detach(run) } else { run() };

    // Result.
    match returned {
        Ok(Returned::Tensors(tensors)) => {
            let first = given.all.first().and_then(|o| o.cast::<Tensor>().ok());
            results::tensors(py, &overload.def, tensors, slots.as_deref(), first)
        }
        Ok(Returned::Value(value)) => results::value(py, &value),
        Err(e) => Err(raised(e)),
    }
}

/// New tensors as leaves that require a gradient.
fn requiring_grad(returned: Returned) -> oflow::Result<Returned> {
    match returned {
        Returned::Tensors(all) => {
            Ok(Returned::Tensors(all.into_iter().map(|t| t.requires_grad_(true)).collect::<oflow::Result<_>>()?))
        }
        value => Ok(value),
    }
}
