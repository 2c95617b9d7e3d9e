//! A function of the table in Python: its overloads, prepared for calls.

use crate::args::{named, takes};
use crate::errors::{OrRaise, Unfit};
use crate::read::convert;
use crate::{args, keywords, signature, words};
use oflow::Error;
use oflow::functional::bind::ByPosition;
use oflow::functional::{Arg, FnDef, FnParam, functions_generation, overloads};
use oflow::ops::ParamKind;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::sync::{Arc, PoisonError, RwLock};

/// An overload, prepared for calls from Python. A `Target` is given there by the names `device`, `placement` and `sbp`, and new
/// tensors take `requires_grad` too.
pub struct Overload {
    /// The function of the table.
    pub def: FnDef,
    /// Parameters that may be given by position. A list of integers as the last of them takes all further values: `x.reshape(2, 3)`.
    pub by_position: ByPosition,
    /// Whether a parameter says where a new tensor lives.
    pub makes_tensor: bool,
    /// Whether its tensors may be given one by one: `meshgrid(x, y)`.
    pub variadic: bool,
}

impl Overload {
    fn new(def: FnDef) -> Overload {
        let params = &def.sig.params;
        let by_position = |p: &&FnParam| !p.keyword_only && p.kind != ParamKind::Target;
        let count = params.iter().take_while(by_position).count();
        let variadic = keywords::is_variadic(&def.sig.name);
        let many = |p: &FnParam| signature::is_int_list(p) || variadic && p.kind == ParamKind::TensorTuple;
        let spreads = count.checked_sub(1).is_some_and(|last| many(&params[last]));
        let makes_tensor = params.iter().any(|p| p.kind == ParamKind::Target);
        Overload { by_position: ByPosition { count, spreads }, makes_tensor, variadic, def }
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

    /// Name of the function with its domain.
    pub fn full_name(&self) -> &str {
        &self.name
    }

    /// The text of `__doc__`, with the signature that `inspect` reads where there is one overload.
    pub fn doc(&self) -> String {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        words::doc(self.name(), &read.overloads.iter().map(|o| &o.def).collect::<Vec<_>>())
    }

    /// The overloads as they are now.
    ///
    /// # Errors
    /// The function is not there any more.
    pub fn overloads(&self, py: Python<'_>) -> PyResult<Arc<[Overload]>> {
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
            let params = &overload.def.sig.params;
            let is_attr = |i: &usize| matches!(params[*i].kind, ParamKind::Attr(_));
            let Some(i) = named(&overload.def.sig, &name).filter(is_attr) else {
                return Err(refused(format!("the op has no attribute '{name}'")));
            };
            let param = &params[i];
            base[i] = match convert(param, object.as_borrowed()) {
                Ok(value) => Some(value),
                Err(_) if object.is_none() && !param.is_required() => None,
                Err(Unfit::Raise(e)) => return Err(e),
                Err(Unfit::Text(why)) => return Err(refused(why)),
                Err(Unfit::Type) => {
                    let found = args::found(object.as_borrowed())?;
                    return Err(refused(format!("attribute '{name}' must be {}, not {found}", takes(param))));
                }
            };
        }
        Ok(base)
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
    #[getter(full_name)]
    fn py_full_name(&self) -> &str {
        &self.name
    }
    fn __repr__(&self) -> String {
        format!("<function oflow.{}>", self.name)
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
