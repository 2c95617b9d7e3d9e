//! A function of the table in Python: its overloads, the match of arguments, and the call.

use crate::args::{No, convert, takes};
use crate::errors::{OrRaise, exception};
use crate::ffi::Given;
use crate::tensor::Tensor;
use crate::{context, results, signature, site, words};
use oflow::functional::{Arg, Bound as BoundArgs, FnDef, FnParam, FnReturn, Returned, functions_generation, overloads};
use oflow::interpreter::Target;
use oflow::ops::ParamKind;
use oflow::{Error, ErrorKind};
use pyo3::Borrowed;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use std::sync::{Arc, PoisonError, RwLock};

/// An overload, prepared for calls from Python. A `Target` is given there by the names `device`, `placement` and `sbp`, and new
/// tensors take `requires_grad` too.
pub struct Overload {
    /// The function of the table.
    pub def: FnDef,
    /// How many parameters may be given by position.
    pub positional: usize,
    /// The parameter that says where a new tensor lives.
    pub target: Option<usize>,
    /// Whether the last parameter by position is a list of integers: `x.reshape(2, 3)`.
    pub spreads: bool,
}

impl Overload {
    fn new(def: FnDef) -> Overload {
        let params = &def.sig.params;
        let by_position = |p: &&FnParam| !p.keyword_only && p.kind != ParamKind::Target;
        let positional = params.iter().take_while(by_position).count();
        let target = params.iter().position(|p| p.kind == ParamKind::Target);
        let spreads = positional.checked_sub(1).is_some_and(|last| signature::is_int_list(&params[last]));
        Overload { target, spreads, positional, def }
    }

    fn param(&self, i: usize) -> &FnParam {
        &self.def.sig.params[i]
    }
}

/// The arguments of a call, as the library takes them.
struct Matched {
    args: Vec<Option<Arg>>,
    requires_grad: bool,
}

/// Words that Python programs say for `dims`.
const FOR_DIMS: &str = "dim";

impl Overload {
    /// The parameter that a keyword names.
    fn named(&self, name: &str) -> Option<usize> {
        let all = &self.def.sig.params;
        let found = all.iter().position(|p| signature::name_of(p) == name && p.kind != ParamKind::Target);
        found.or_else(|| if name == FOR_DIMS { all.iter().position(|p| p.name == "dims") } else { None })
    }

    /// The arguments of a call; `base` has values for parameters that the call leaves out.
    fn matched(&self, given: &Given<'_, '_>, base: &[Option<Arg>]) -> Result<Matched, No> {
        let params = &self.def.sig.params;
        let mut args: Vec<Option<Arg>> = Vec::with_capacity(params.len());
        let mut positional = given.positional;
        let mut spread = None;
        if positional > self.positional {
            if !self.spreads {
                let takes = match self.positional {
                    1 => "1 positional argument".to_string(),
                    n => format!("{n} positional arguments"),
                };
                return Err(No::Text(format!("takes {takes} but {positional} were given")));
            }
            let first = self.positional - 1;
            spread = Some(&given.all[first..positional]);
            positional = first;
        }
        for (i, param) in params.iter().enumerate() {
            args.push(match given.all.get(i).filter(|_| i < positional) {
                Some(object) if !(object.is_none() && self.may_be_left_out(i)) => Some(convert(param, *object)?),
                _ => None,
            });
        }
        if let Some(all) = spread {
            args[self.positional - 1] = Some(crate::args::ints_of(all.iter().copied()).map_err(|_| No::Kind)?);
        }
        let mut place = Place::default();
        if let Some(names) = &given.names {
            for (name, object) in names.iter_borrowed().zip(&given.all[given.positional..]) {
                let name = name.cast::<PyString>()?.to_str()?.to_owned();
                let Some(i) = self.named(&name) else {
                    match self.target {
                        Some(_) if place.takes(&name, *object)? => continue,
                        _ => return Err(No::Text(format!("got an unexpected keyword argument '{name}'"))),
                    }
                };
                if i < positional || (spread.is_some() && i + 1 == self.positional) || args[i].is_some() {
                    return Err(No::Text(format!("got multiple values for argument '{name}'")));
                }
                if !(object.is_none() && self.may_be_left_out(i)) {
                    args[i] = Some(convert(self.param(i), *object)?);
                }
            }
        }
        for (i, param) in params.iter().enumerate() {
            if Some(i) == self.target {
                args[i] = Some(Arg::Target(place.target()?));
            } else if args[i].is_none() {
                if let Some(Some(value)) = base.get(i) {
                    args[i] = Some(value.clone());
                    continue;
                }
                match &param.default {
                    Some(value) => args[i] = Some(Arg::Attr(value.clone())),
                    None if param.optional => {}
                    None => return Err(No::Text(format!("missing a required argument: '{}'", param.name))),
                }
            }
        }
        Ok(Matched { args, requires_grad: place.requires_grad })
    }

    fn may_be_left_out(&self, i: usize) -> bool {
        !self.param(i).is_required()
    }

    /// Why the arguments do not fit, in Python's words.
    fn reason(&self, no: No, given: &Given<'_, '_>) -> PyResult<String> {
        match no {
            No::Raise(e) => Err(e),
            No::Text(text) => Ok(text),
            No::Kind => {
                for (i, object) in given.all.iter().enumerate() {
                    let (index, position) = match i < given.positional {
                        true => (Some(i.min(self.positional.saturating_sub(1))), format!(" (position {})", i + 1)),
                        false => {
                            let name = given.names.as_ref().and_then(|n| n.get_item(i - given.positional).ok());
                            let name = name.and_then(|n| n.extract::<String>().ok());
                            (name.and_then(|n| self.named(&n)), String::new())
                        }
                    };
                    let Some(param) = index.map(|i| self.param(i)) else { continue };
                    if let Err(No::Kind) = convert(param, *object) {
                        let found = found(object)?;
                        return Ok(format!(
                            "argument '{}'{position} must be {}, not {found}",
                            param.name,
                            takes(param)
                        ));
                    }
                }
                Ok("an argument has the wrong type".into())
            }
        }
    }
}

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

/// The type of an object; of a list or tuple with those of its members.
fn found(object: &Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let name = object.get_type().name()?.to_string();
    if !(object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()) {
        return Ok(name);
    }
    let mut kinds: Vec<String> = vec![];
    for member in object.try_iter()? {
        let kind = member?.get_type().name()?.to_string();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(if kinds.is_empty() { format!("empty {name}") } else { format!("{name} of {}", kinds.join(", ")) })
}

/// Where a new tensor lives, as Python says it.
#[derive(Default)]
struct Place {
    device: Option<oflow::placement::Device>,
    placement: Option<oflow::placement::Placement>,
    sbp: Option<oflow::sbp::NdSbp>,
    requires_grad: bool,
}

impl Place {
    /// Whether the keyword is one of a place.
    fn takes(&mut self, name: &str, object: Borrowed<'_, '_, PyAny>) -> Result<bool, No> {
        if object.is_none() {
            return Ok(matches!(name, "device" | "placement" | "sbp" | "requires_grad"));
        }
        let wrong = |what: &str| No::Text(format!("argument '{name}' must be {what}"));
        match name {
            "device" => self.device = Some(crate::types::device_of(&object).map_err(|e| e.or_kind(wrong("a device")))?),
            "placement" => {
                self.placement = Some(crate::types::placement_of(&object).map_err(|e| e.or_kind(wrong("a placement")))?)
            }
            "sbp" => {
                self.sbp =
                    Some(crate::types::sbp_of(&object).map_err(|e| e.or_kind(wrong("an sbp or a tuple of them")))?)
            }
            "requires_grad" => self.requires_grad = object.extract::<bool>().map_err(|_| wrong("bool"))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn target(&mut self) -> Result<Target, No> {
        match (self.device, self.placement.take(), self.sbp.take()) {
            (None, None, None) => Ok(Target::Local(oflow::placement::Device::Cpu)),
            (Some(device), None, None) => Ok(Target::Local(device)),
            (None, Some(placement), Some(sbp)) => Ok(Target::Global(placement, sbp)),
            (None, Some(_), None) => Err(No::Text("a global tensor needs an sbp too: placement=..., sbp=...".into())),
            (None, None, Some(_)) => Err(No::Text("an sbp needs a placement too: placement=..., sbp=...".into())),
            (Some(_), ..) => {
                Err(No::Text("give a device for a local tensor, or placement and sbp for a global one".into()))
            }
        }
    }
}

/// The overloads of a name, as they were at one time.
struct Read {
    /// None: those of one op, which do not change.
    generation: Option<u64>,
    overloads: Arc<[Overload]>,
}

/// A function of the table, by name.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct Function {
    name: String,
    read: RwLock<Read>,
}

impl Function {
    /// The function of that name.
    pub fn find(name: &str) -> oflow::Result<Function> {
        Ok(Function { name: name.to_string(), read: RwLock::new(read(name)?) })
    }

    /// The function of an op under its own name, without overloads.
    pub fn of_op(def: FnDef) -> Function {
        let read = Read { generation: None, overloads: [Overload::new(def.clone())].into() };
        Function { name: def.sig.name, read: RwLock::new(read) }
    }

    /// Name of the function in Python.
    pub fn name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// The text of `__doc__`, with the signature that `inspect` reads where there is one overload.
    pub fn doc(&self) -> String {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        words::doc(self.name(), &read.overloads.iter().map(|o| &o.def).collect::<Vec<_>>())
    }

    fn overloads(&self, py: Python<'_>) -> PyResult<Arc<[Overload]>> {
        let generation = functions_generation();
        {
            let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
            if read.generation.is_none_or(|of| of == generation) {
                return Ok(read.overloads.clone());
            }
        }
        let fresh = read(&self.name).or_raise(py)?;
        let overloads = fresh.overloads.clone();
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(overloads)
    }

    /// Calls the first overload that takes the arguments.
    pub fn call(&self, py: Python<'_>, given: &Given<'_, '_>) -> PyResult<Py<PyAny>> {
        self.call_with(py, given, &[])
    }

    /// The same, with values for parameters of its one overload that the call leaves out.
    pub fn call_with(&self, py: Python<'_>, given: &Given<'_, '_>, base: &[Option<Arg>]) -> PyResult<Py<PyAny>> {
        match self.fitting(py, given, base)? {
            Some(result) => Ok(result),
            None => Err(self.refused(py, given, base)?),
        }
    }

    /// Attributes by name, one for each parameter of its one overload.
    pub fn base_values(&self, py: Python<'_>, attrs: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Option<Arg>>> {
        let overloads = self.overloads(py)?;
        let overload = &overloads[0];
        let mut base = vec![None; overload.def.sig.params.len()];
        for (name, object) in attrs.iter().flat_map(|attrs| attrs.iter()) {
            let name: String = name.extract()?;
            let refused = |why: String| {
                let of = words::python(&self.name, &overload.def);
                PyTypeError::new_err(format!("OpCall({}): {why}\n  it is: {of}", self.name))
            };
            let is_attr = |i: &usize| matches!(overload.param(*i).kind, ParamKind::Attr(_));
            let Some(i) = overload.named(&name).filter(is_attr) else {
                return Err(refused(format!("the op has no attribute '{name}'")));
            };
            let param = overload.param(i);
            base[i] = match convert(param, object.as_borrowed()) {
                Ok(value) => Some(value),
                Err(_) if object.is_none() && overload.may_be_left_out(i) => None,
                Err(No::Raise(e)) => return Err(e),
                Err(No::Text(why)) => return Err(refused(why)),
                Err(No::Kind) => {
                    let found = found(&object.as_borrowed())?;
                    return Err(refused(format!("attribute '{name}' must be {}, not {found}", takes(param))));
                }
            };
        }
        Ok(base)
    }

    /// The result of the first overload that takes the arguments; none if there is none.
    pub fn call_fitting(&self, py: Python<'_>, given: &Given<'_, '_>) -> PyResult<Option<Py<PyAny>>> {
        self.fitting(py, given, &[])
    }

    fn fitting(&self, py: Python<'_>, given: &Given<'_, '_>, base: &[Option<Arg>]) -> PyResult<Option<Py<PyAny>>> {
        let overloads = self.overloads(py)?;
        for overload in overloads.iter() {
            match overload.matched(given, base) {
                Ok(matched) => return self.run(py, overload, matched, given).map(Some),
                Err(No::Raise(e)) => return Err(e),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn run(&self, py: Python<'_>, overload: &Overload, matched: Matched, given: &Given<'_, '_>) -> PyResult<Py<PyAny>> {
        context::enter(py)?;
        let long = context::takes_long(&matched.args, &overload.def);
        let bound = BoundArgs { args: matched.args, site: site::caller(py) };
        let slots = match overload.def.sig.returns {
            FnReturn::Named(_) => overload.def.outputs(&bound).map_err(|e| exception(py, self.named_in(e, given)))?,
            _ => None,
        };
        let run = || match matched.requires_grad {
            false => overload.def.run(bound),
            true => overload.def.run(bound).and_then(requiring_grad),
        };
        let returned = if long { py.detach(run) } else { run() };
        match returned {
            Ok(Returned::Tensors(tensors)) => {
                let first = given.all.first().and_then(|o| o.cast::<Tensor>().ok());
                results::tensors(py, &overload.def, tensors, slots.as_deref(), first)
            }
            Ok(Returned::Value(value)) => results::value(py, &value),
            Err(e) => Err(exception(py, self.named_in(e, given))),
        }
    }

    /// The error with this function in its text: a function that calls others fails in one of them, whose name tells the program nothing.
    /// Errors about other ranks name the ops of all ranks.
    fn named_in(&self, e: Error, given: &Given<'_, '_>) -> Error {
        let is_named = |text: &str| text.strip_prefix(self.name()).is_some_and(|rest| rest.starts_with(['(', ':']));
        let of_ranks = matches!(e.kind(), ErrorKind::Peer | ErrorKind::Link | ErrorKind::Diverged);
        if of_ranks || is_named(&e.to_string()) { e } else { e.within(|| self.text_of_call(given)) }
    }

    /// A call as text, as the library writes it.
    fn text_of_call(&self, given: &Given<'_, '_>) -> String {
        let texts: Vec<String> = given.all.iter().map(|o| short(*o, 0)).collect();
        let names = given
            .names
            .iter()
            .flat_map(|n| n.iter_borrowed())
            .map(|n| n.str().map_or_else(|_| "?=".into(), |n| format!("{n}=")));
        let named = texts[given.positional..].iter().zip(names).map(|(t, n)| n + t);
        let all: Vec<String> = texts[..given.positional].iter().cloned().chain(named).collect();
        format!("{}({})", self.name, all.join(", "))
    }

    /// The exception of a call that fits no overload.
    fn refused(&self, py: Python<'_>, given: &Given<'_, '_>, base: &[Option<Arg>]) -> PyResult<PyErr> {
        let overloads = self.overloads(py)?;
        let mut reasons = vec![];
        for overload in overloads.iter() {
            match overload.matched(given, base) {
                Ok(_) => reasons.push(String::new()),
                Err(no) => reasons.push(overload.reason(no, given)?),
            }
        }
        let site = site::caller(py);
        let text = match (overloads.as_ref(), reasons.as_slice()) {
            ([overload], [reason]) => {
                format!("{}(): {reason}\n  at {site}\n  it is: {}", self.name, words::python(&self.name, &overload.def))
            }
            (all, reasons) => {
                let got: Vec<String> = given
                    .all
                    .iter()
                    .enumerate()
                    .map(|(i, o)| {
                        let kind = o.get_type().name().map_or_else(|_| "?".to_string(), |n| n.to_string());
                        let name = i.checked_sub(given.positional).zip(given.names.as_ref());
                        let name = name.and_then(|(k, names)| names.get_item(k).ok());
                        name.map_or(kind.clone(), |n| format!("{n}={kind}"))
                    })
                    .collect();
                let list: String = all
                    .iter()
                    .zip(reasons)
                    .map(|(o, why)| format!("\n * {}\n      {why}", words::python(&self.name, &o.def)))
                    .collect();
                format!(
                    "{}() received an invalid combination of arguments - got ({}), but expected one of:{list}\n  at {site}",
                    self.name,
                    got.join(", ")
                )
            }
        };
        Ok(PyTypeError::new_err(text))
    }
}

#[pymethods]
impl Function {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Function> {
        Function::find(name).or_raise(py)
    }
    /// The function itself, by its own name: a pickle of a built-in function asks its `__self__` for it.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match name == slf.get().name() {
            true => slf.py().import("oflow._namespace")?.getattr("_function")?.call1((&slf.get().name,)),
            false => Err(PyAttributeError::new_err(name.to_string())),
        }
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().name.clone(),))
    }
    /// The name with its domain.
    #[getter]
    fn full_name(&self) -> &str {
        &self.name
    }
    fn __repr__(&self) -> String {
        format!("<function oflow.{}>", self.name)
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

fn read(name: &str) -> oflow::Result<Read> {
    let generation = functions_generation();
    let (hidden, shown): (Vec<FnDef>, Vec<FnDef>) = overloads(name)?.into_iter().partition(|d| d.hidden);
    if shown.is_empty()
        && let Some(def) = hidden.first()
    {
        return Err(hidden_from_python(&def.sig.name));
    }
    Ok(Read { generation: Some(generation), overloads: shown.into_iter().map(Overload::new).collect() })
}

/// The error of a call of what is declared `hidden`.
pub fn hidden_from_python(name: &str) -> Error {
    Error::registry(format!("{name} is declared `hidden`: it cannot be called from Python"))
        .help("Rust calls it by name, and gradient rules do, in every language; without the trait `hidden` Python may call it too")
}
