//! A call in messages: its text, and the exception of one that no overload takes.

use crate::args::Arguments;
use crate::function::{Function, Overload};
use crate::read::Object;
use crate::tensor::Tensor;
use crate::{site, words};
use oflow::Error;
use oflow::functional::bind::{Given, Misfit, Misfits};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// An object in the text of a call: tensors by their types, and what is long by its class.
fn short(o: Borrowed<'_, '_, PyAny>, depth: usize) -> String {
    const LONGEST: usize = 60;
    if let Ok(t) = o.cast::<Tensor>() {
        return t.get().inner().short();
    }
    let members = match (o.cast::<PyList>(), o.cast::<PyTuple>()) {
        (Ok(l), _) => Some(l.iter().collect::<Vec<_>>()),
        (_, Ok(t)) => Some(t.iter().collect()),
        _ => None,
    };
    let class = || o.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
    // The text of a list is not asked of Python: that of a tensor in it may take all ranks.
    if let Some(members) = members {
        if members.len() > 8 || depth > 3 {
            return format!("{} of {}", class(), members.len());
        }
        let texts: Vec<String> = members.iter().map(|m| short(m.as_borrowed(), depth + 1)).collect();
        return format!("[{}]", texts.join(", "));
    }
    match o.repr() {
        Ok(r) if r.len().is_ok_and(|n| n <= LONGEST) => r.to_string(),
        _ => class(),
    }
}

/// The error with the called function in its text.
#[cold]
pub fn named_in(function: &Function, e: Error, given: &Given<'_, Object<'_, '_>>) -> Error {
    oflow::functional::named_in(function.full_name(), e, || given.text(function.full_name(), |o| short(o, 0)))
}

/// The exception of a call that no overload takes.
#[cold]
pub fn refused(
    py: Python<'_>,
    function: &Function,
    overloads: &[Overload],
    misfits: &Misfits,
    given: &Given<'_, Object<'_, '_>>,
) -> PyErr {
    let (name, site) = (function.full_name(), site::caller(py));
    let why = |(o, misfit): (&Overload, &Misfit)| {
        misfit.text(&Arguments::of(o.makes_tensor, o.variadic, &[]), &o.def.sig, given)
    };
    // What only adds an option is shown where the call gives it.
    let asked = |o: &Overload| {
        let last = o.def.sig.params.last();
        given.values().any(|(keyword, _)| keyword.is_some() && keyword == last.map(|p| p.name.as_str()))
    };
    let shown = |(o, _): &(&Overload, &Misfit)| !o.def.variant || asked(o);
    let tried: Vec<(&Overload, &Misfit)> = overloads.iter().zip(misfits).filter(shown).collect();
    let reasons: Vec<String> = tried.iter().map(|pair| why(*pair)).collect();
    let overloads: Vec<&Overload> = tried.iter().map(|(o, _)| *o).collect();
    let text = match (overloads.as_slice(), reasons.as_slice()) {
        ([overload], [reason]) => {
            format!("{name}(): {reason}\n  at {site}\n  it is: {}", words::python(name, &overload.def))
        }
        (all, reasons) => {
            let kind = |o: Object<'_, '_>| o.get_type().name().map_or_else(|_| "?".to_string(), |n| n.to_string());
            let got = given.text("", kind);
            let list: String = all
                .iter()
                .zip(reasons)
                .map(|(o, why)| format!("\n * {}\n      {why}", words::python(name, &o.def)))
                .collect();
            format!(
                "{name}() received an invalid combination of arguments - got {got}, but expected one of:{list}\n  at {site}"
            )
        }
    };
    PyTypeError::new_err(text)
}
