//! An op with base attributes, made once and called many times: `oflow.OpCall`.

use crate::call::{Given, call_with};
use crate::errors::OrRaise;
use crate::function::{Function, hidden_from_python};
use crate::{results, signature};
use oflow::functional::{Arg, FnDef, FnParam};
use oflow::ops::ParamKind;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// An op with base attributes. They are checked once; a call takes them as they are, or changes some by name.
///
///     top = oflow.OpCall("sum", dims=[1])
///     top(x)
///     top(x, keepdim=True)
///
/// Inputs are those that the op declares, in its order; attributes that are not given have their defaults. An op that makes a tensor of
/// nothing is also given its place, as ``device=``, or ``placement=`` and ``sbp=``.
#[pyclass(frozen, module = "oflow", name = "OpCall")]
pub struct OpCall {
    function: Function,
    def: FnDef,
    /// One for each parameter: the attributes that were given.
    base: Vec<Option<Arg>>,
}

impl OpCall {
    /// The attributes with their parameters.
    fn attributes(&self) -> impl Iterator<Item = (&FnParam, Option<&Arg>)> {
        let all = self.def.sig.params.iter().zip(self.base.iter().map(Option::as_ref));
        all.filter(|(p, _)| matches!(p.kind, ParamKind::Attr(_)))
    }
}

#[pymethods]
impl OpCall {
    #[new]
    #[pyo3(signature = (op, /, **attrs))]
    fn new(py: Python<'_>, op: &str, attrs: Option<&Bound<'_, PyDict>>) -> PyResult<OpCall> {
        let found = oflow::ops::find(op).or_raise(py)?;
        let def = FnDef::of_op(found);
        if def.hidden {
            return Err(hidden_from_python(&def.sig.name)).or_raise(py);
        }
        let function = Function::of_op(def.clone());
        let base = function.base_values(py, attrs)?;
        let call = OpCall { function, def, base };
        let missing =
            call.attributes().find(|(p, given)| given.is_none() && p.is_required()).map(|(p, _)| p.name.clone());
        match missing {
            None => Ok(call),
            Some(name) => Err(PyTypeError::new_err(format!(
                "OpCall({op}): the attribute '{name}' has no default and is not given\n  it is: {}",
                call.def.sig
            ))),
        }
    }

    /// The name of the op, with its domain.
    #[getter]
    fn op(&self) -> &str {
        &self.def.sig.name
    }

    /// All attributes, defaults included.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let said = PyDict::new(py);
        for (p, given) in self.attributes() {
            let value = match given {
                Some(Arg::Attr(v)) => results::value(py, v)?,
                _ => p.default.as_ref().map_or(Ok(py.None()), |d| results::value(py, d))?,
            };
            said.set_item(signature::name_of(p), value)?;
        }
        Ok(said)
    }

    #[pyo3(signature = (*inputs, **attrs))]
    fn __call__(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyTuple>,
        attrs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let names = attrs.map(|attrs| attrs.keys().to_tuple());
        let values = attrs.map(|attrs| attrs.values().to_tuple());
        let all = inputs.iter_borrowed().chain(values.iter().flat_map(|v| v.iter_borrowed())).collect();
        let given = Given { all, names: names.as_ref().map(|n| n.as_borrowed()), is_method: false };
        call_with(py, &self.function, &given, &self.base)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let given = PyDict::new(py);
        for (p, value) in self.attributes() {
            if let Some(Arg::Attr(v)) = value {
                given.set_item(signature::name_of(p), results::value(py, v)?)?;
            }
        }
        Ok((PyTuple::new(py, [PyString::new(py, self.op())])?, given))
    }

    fn __repr__(&self) -> String {
        let given = self.attributes().filter_map(|(p, value)| match value {
            Some(Arg::Attr(v)) => Some(format!(", {}={}", signature::name_of(p), signature::value(v))),
            _ => None,
        });
        format!("oflow.OpCall(\"{}\"{})", self.op(), given.collect::<String>())
    }
}
