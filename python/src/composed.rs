//! Functions that a program registers and that call other functions: `oflow.function`.

use crate::errors::{OrRaise, Unfit, from_callback};
use crate::tensor::Tensor;
use crate::types::{self, Generator};
use crate::{args, read};
use crate::{context, results, signature};
use oflow::functional::{Arg, Bound as BoundArgs, FnBody, FnDef, FnParam, FnReturn, FnSig, TensorIndex};
use oflow::functional::{overloads, register_function};
use oflow::interpreter::Target;
use oflow::ops::{AttrValue, ParamKind};
use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyTuple};
use std::cell::Cell;
use std::sync::Arc;

/// How many bodies may run inside each other on a thread. Each needs the stack of a call of Python and of one of the library, and
/// Python counts its own part only: a function that calls itself without end would overflow the stack before Python refuses it.
const DEEPEST: usize = 100;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The level of a body that runs.
struct Level;

impl Level {
    fn enter(name: &str) -> PyResult<Level> {
        if DEPTH.get() >= DEEPEST {
            let text = format!("{name}: bodies of functions call each other more than {DEEPEST} levels deep");
            return Err(PyRecursionError::new_err(text));
        }
        DEPTH.set(DEPTH.get() + 1);
        Ok(Level)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A member of an index as Python writes it.
fn index_member(py: Python<'_>, i: &TensorIndex) -> PyResult<Py<PyAny>> {
    let slice = |start: Option<i64>, end: Option<i64>, step: Option<i64>| -> PyResult<Py<PyAny>> {
        Ok(py.get_type::<PySlice>().call1((start, end, step))?.unbind())
    };
    match i {
        TensorIndex::Int(i) => Ok(i.into_pyobject(py)?.into_any().unbind()),
        TensorIndex::Slice { start, end, step } => slice(*start, *end, Some(*step)),
        TensorIndex::Full => slice(None, None, None),
        TensorIndex::Ellipsis => Ok(py.Ellipsis()),
        TensorIndex::NewAxis => Ok(py.None()),
        TensorIndex::Tensor(t) => Ok(Py::new(py, Tensor::of(t.clone()))?.into_any()),
        // A list again: on a global tensor it is an index where a local tensor is none.
        TensorIndex::Values(t) => Ok(Bound::new(py, Tensor::of(t.clone()))?.call_method0("tolist")?.unbind()),
    }
}

/// A place of a new tensor as the keywords of a factory: `oflow.zeros(size, **target)`.
fn target(py: Python<'_>, t: &Target) -> PyResult<Py<PyAny>> {
    let said = PyDict::new(py);
    match t {
        Target::Local(d) => said.set_item("device", Py::new(py, types::Device::of(*d))?)?,
        Target::Global(p, s) => {
            said.set_item("placement", Py::new(py, types::Placement::of(p.clone()))?)?;
            said.set_item("sbp", types::sbp_tuple(py, s)?)?;
        }
    }
    Ok(said.into_any().unbind())
}

/// An argument as the body gets it.
fn object(py: Python<'_>, arg: Option<&Arg>) -> PyResult<Py<PyAny>> {
    let tensor = |t: &oflow::Tensor| Py::new(py, Tensor::of(t.clone()));
    match arg {
        None | Some(Arg::None) => Ok(py.None()),
        Some(Arg::Tensor(t)) => Ok(tensor(t)?.into_any()),
        Some(Arg::Tensors(all)) => {
            let all = all.iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, all)?.into_any().unbind())
        }
        Some(Arg::Target(t)) => target(py, t),
        Some(Arg::Index(all)) => {
            let all = all.iter().map(|i| index_member(py, i)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, all)?.into_any().unbind())
        }
        Some(Arg::Generator(g)) => Ok(Py::new(py, Generator::of(g.clone()))?.into_any()),
        Some(Arg::Attr(v)) => results::value(py, v),
    }
}

/// A registered function: its signature, and what it runs.
struct Composed {
    sig: FnSig,
    body: Py<PyAny>,
}

impl Composed {
    /// Result of the body, read by `read`, in the context of whoever called.
    fn call<R>(
        &self,
        bound: &BoundArgs,
        read: impl FnOnce(&Composed, &Bound<'_, PyAny>) -> PyResult<R>,
    ) -> oflow::Result<R> {
        Python::attach(|py| -> PyResult<R> {
            let _level = Level::enter(&self.sig.name)?;
            let _rank = context::of_the_caller();
            let (mut values, named) = (vec![], PyDict::new(py));
            for (p, arg) in self.sig.params.iter().zip(&bound.args) {
                let value = object(py, arg.as_ref())?;
                match p.keyword_only {
                    true => named.set_item(signature::name_of(p), value)?,
                    false => values.push(value),
                }
            }
            let returned = self.body.bind(py).call(PyTuple::new(py, values)?, Some(&named))?;
            read(self, &returned)
        })
        .map_err(from_callback)
    }

    fn refused(&self, returned: &Bound<'_, PyAny>, why: &str) -> PyErr {
        let kind = returned.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "the body of {} returned {kind}: {why}; its signature is {}",
            self.sig.name, self.sig
        ))
    }

    /// The members of a list or tuple of tensors.
    fn members(&self, returned: &Bound<'_, PyAny>, why: &str) -> PyResult<Vec<oflow::Tensor>> {
        if !(returned.is_instance_of::<PyTuple>() || returned.is_instance_of::<PyList>()) {
            return Err(self.refused(returned, why));
        }
        let mut all = vec![];
        for (i, member) in returned.try_iter()?.enumerate() {
            let member = member?;
            let tensor = member.cast::<Tensor>().map_err(|_| {
                let kind = member.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
                self.refused(returned, &format!("{why}, and member {i} is {kind}"))
            })?;
            all.push(tensor.get().inner().clone());
        }
        Ok(all)
    }

    fn tensors(&self, returned: &Bound<'_, PyAny>) -> PyResult<Vec<oflow::Tensor>> {
        match &self.sig.returns {
            FnReturn::Void if returned.is_none() => Ok(vec![]),
            FnReturn::Void => Err(self.refused(returned, "a function that returns Void returns None")),
            FnReturn::Tensor => match returned.cast::<Tensor>() {
                Ok(t) => Ok(vec![t.get().inner().clone()]),
                Err(_) => Err(self.refused(returned, "it returns one Tensor")),
            },
            FnReturn::Named(names) => {
                let why = format!("it returns a tuple of {} Tensors ({})", names.len(), names.join(", "));
                let all = self.members(returned, &why)?;
                match all.len() == names.len() {
                    true => Ok(all),
                    false => Err(self.refused(returned, &format!("{why}, not of {}", all.len()))),
                }
            }
            // A value is read by `value`.
            FnReturn::TensorTuple | FnReturn::Value(_) => {
                self.members(returned, "it returns a tuple or list of Tensors")
            }
        }
    }

    fn value(&self, returned: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
        let FnReturn::Value(kind) = self.sig.returns else {
            return Err(self.refused(returned, "it returns tensors"));
        };
        let as_param = FnParam::new("result", ParamKind::Attr(kind));
        match read::convert(&as_param, returned.as_borrowed()) {
            Ok(Arg::Attr(v)) => Ok(v),
            Ok(_) | Err(Unfit::Type) => Err(self.refused(returned, &format!("it returns {}", args::takes(&as_param)))),
            Err(Unfit::Text(why)) => Err(self.refused(returned, &why)),
            Err(Unfit::Raise(e)) => Err(e),
        }
    }
}

/// Refuses names that no program can write.
fn check_names(py: Python<'_>, sig: &FnSig) -> PyResult<()> {
    let is_keyword = py.import("keyword")?.getattr("iskeyword")?;
    let usable = |name: &str| -> PyResult<bool> {
        let letters = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains('.');
        Ok(letters && !is_keyword.call1((name,))?.extract::<bool>()?)
    };
    for part in sig.name.split('.') {
        if !usable(part)? {
            return Err(PyValueError::new_err(format!("'{}' cannot be written as oflow.{}", part, sig.name)));
        }
    }
    for p in &sig.params {
        let name = signature::name_of(p);
        if !usable(&name)? {
            let text = format!("{}: '{name}' cannot be the name of a parameter in Python", sig.name);
            return Err(PyValueError::new_err(text));
        }
    }
    Ok(())
}

/// Refuses a name under which a program would find something else.
fn check_free(py: Python<'_>, sig: &FnSig) -> PyResult<()> {
    let name = &sig.name;
    let taken = |by: String| {
        let e = oflow::Error::registry(format!("the function {name} cannot be registered: oflow.{by}"));
        Err(e.help("give it a name or a domain of its own: \"mine.f(Tensor x) -> Tensor\"")).or_raise(py)
    };
    let known = overloads(name).unwrap_or_default();
    // Built-in ops have no domain in their names. Their functions take overloads.
    let of_an_op = known.iter().find_map(|d| match &d.body {
        FnBody::Op(op) | FnBody::InPlace(op) if d.sig.name == *name && (d.hidden || op.contains('.')) => Some(op),
        _ => None,
    });
    if let Some(op) = of_an_op {
        return taken(format!("{name} is the op {op}"));
    }
    let inside = format!("{name}.");
    if let Some(other) = oflow::functional::functions().iter().find(|d| d.sig.name.starts_with(&inside)) {
        return taken(format!("{name} is the domain of {}", other.sig.name));
    }
    let first = name.split('.').next().unwrap_or(name);
    if known.iter().all(|d| d.sig.name != *name) && py.import("oflow")?.dict().contains(first)? {
        return taken(format!("{first} is something else"));
    }
    Ok(())
}

/// Refuses a body that takes other arguments than it will get.
fn check_body(py: Python<'_>, sig: &FnSig, body: &Bound<'_, PyAny>) -> PyResult<()> {
    if !body.is_callable() {
        let kind = body.get_type().name()?;
        return Err(PyTypeError::new_err(format!("the body of {} must be a function, not {kind}", sig.name)));
    }
    let inspect = py.import("inspect")?;
    if inspect.getattr("iscoroutinefunction")?.call1((body,))?.is_truthy()?
        || inspect.getattr("isgeneratorfunction")?.call1((body,))?.is_truthy()?
    {
        let text = format!("the body of {} must return its result: it is a coroutine or a generator", sig.name);
        return Err(PyTypeError::new_err(text));
    }
    // Some functions written in C have no signature to look at.
    let Ok(has) = inspect.getattr("signature")?.call1((body,)) else { return Ok(()) };
    let (values, named) = (PyList::empty(py), PyDict::new(py));
    let mut shown = vec![];
    for p in &sig.params {
        let name = signature::name_of(p);
        match p.keyword_only {
            true => {
                named.set_item(&name, py.None())?;
                shown.push(format!("{name}=..."));
            }
            false => {
                values.append(py.None())?;
                shown.push(name.to_string());
            }
        }
    }
    has.call_method("bind", values.to_tuple(), Some(&named)).map(drop).map_err(|e| {
        let call = format!("({})", shown.join(", "));
        PyTypeError::new_err(format!(
            "the body of {} takes {has}, and is called as body{call}: {}; parameters behind * in the signature are given by name",
            sig.name,
            e.value(py)
        ))
    })
}

/// Registers a function, or an overload behind those of its name; returns the name.
#[pyfunction]
pub fn _register_function(py: Python<'_>, text: &str, body: &Bound<'_, PyAny>, doc: Option<&str>) -> PyResult<String> {
    let sig = FnSig::parse(text).or_raise(py)?;
    check_names(py, &sig)?;
    check_free(py, &sig)?;
    check_body(py, &sig, body)?;
    let composed = Composed { sig: sig.clone(), body: body.clone().unbind() };
    let body = match sig.returns {
        FnReturn::Value(_) => FnBody::Value(Arc::new(move |b| composed.call(b, Composed::value))),
        _ => FnBody::Code(Arc::new(move |b| composed.call(b, Composed::tensors))),
    };
    let def = FnDef::new(text, body).or_raise(py)?.doc(doc.unwrap_or_default());
    register_function(def).or_raise(py)?;
    Ok(sig.name)
}
