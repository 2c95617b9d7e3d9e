//! Ops that a program in Python declares: `oflow.op`. What it is written in there is in `oflow/_op.py`.

use crate::errors::{OrRaise, from_callback};
use crate::ffi::{bytes_of, write_bytes};
use crate::read::attr_of;
use crate::results;
use crate::signature::dtype_name;
use crate::types::{dtype_of, raised};
use oflow::kernels::{Dims, View};
use oflow::ops::{
    AttrKind, AttrValue, DTypeRule, FnReturn, FnSig, Grad, GradCtx, InferCtx, OpDef, ParamKind, SbpHints, Value,
};
use oflow::placement::Placement;
use oflow::{DType, Error, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyTuple};
use smallvec::SmallVec;

/// Advice for a body that an op cannot have.
const AS_FUNCTION: &str = "`oflow.function` registers a function of several ops";

/// The text of an op from that of its function: tensors of `dtypes`, numbers as attributes of the plan or, for an expression, of
/// the call.
fn op_text(sig: &FnSig, dtypes: &str, runtime: bool) -> PyResult<String> {
    let (mut inputs, mut attrs) = (vec![], vec![]);
    for p in &sig.params {
        match p.kind {
            ParamKind::Tensor => inputs.push(format!("{}{}: {dtypes}", p.name, if p.optional { "?" } else { "" })),
            ParamKind::TensorTuple => inputs.push(format!("{}...: {dtypes}", p.name)),
            ParamKind::Attr(kind) => {
                let number = matches!(kind, AttrKind::Int | AttrKind::Float | AttrKind::Bool | AttrKind::Scalar);
                let word = if runtime && number { "runtime " } else { "" };
                let default = p.default.as_ref().map_or(String::new(), |d| format!(" = {d}"));
                let optional = if p.optional { "?" } else { "" };
                attrs.push(format!("{}{optional}: {word}{}{default}", p.name, kind.name()));
            }
            _ => {
                let text = format!("an op has no parameter of the type {}; {AS_FUNCTION} that takes it", p.kind.name());
                return Err(PyValueError::new_err(text));
            }
        }
    }
    let outputs = match &sig.returns {
        FnReturn::Tensor => "y".to_string(),
        FnReturn::Named(names) => format!("({})", names.join(", ")),
        _ => {
            return Err(PyValueError::new_err(format!(
                "an op returns a Tensor, or several with names: (Tensor a, Tensor b); {AS_FUNCTION} that returns something else"
            )));
        }
    };
    let attrs = if attrs.is_empty() { String::new() } else { format!("; {}", attrs.join(", ")) };
    Ok(format!("{}({}{attrs}) -> {outputs}", sig.name, inputs.join(", ")))
}

/// A value as an object, inside of the library.
fn object(py: Python<'_>, v: &AttrValue) -> Result<Py<PyAny>> {
    results::value(py, v).map_err(from_callback)
}

/// Attributes of a call by name.
fn attrs_dict<'py>(
    py: Python<'py>,
    op: &OpDef,
    attrs: &[AttrValue],
    runtime: &[oflow::Scalar],
) -> Result<Bound<'py, PyDict>> {
    let said = PyDict::new(py);
    for (a, v) in op.sig.attrs.iter().zip(attrs) {
        said.set_item(a.name.as_str(), object(py, v)?).map_err(from_callback)?;
    }
    for (a, s) in op.sig.runtime.iter().zip(runtime) {
        said.set_item(a.name.as_str(), results::scalar(py, *s).map_err(from_callback)?).map_err(from_callback)?;
    }
    Ok(said)
}

/// An array of NumPy over bytes.
fn array<'py>(py: Python<'py>, bytes: Bound<'py, PyAny>, dtype: DType, dims: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    if dtype == DType::BF16 || !dtype.is_real() {
        let text = format!("a kernel in Python gets arrays of NumPy, which has no {}", dtype_name(dtype));
        return Err(PyTypeError::new_err(text));
    }
    let numpy = py.import("numpy")?;
    let name = dtype_name(dtype).trim_start_matches("oflow.").to_string();
    let flat = match bytes.len()? {
        // `frombuffer` refuses empty buffers.
        0 => numpy.call_method1("zeros", (0, name))?,
        _ => numpy.call_method1("frombuffer", (bytes, name))?,
    };
    flat.call_method1("reshape", (PyTuple::new(py, dims)?,))
}

/// A kernel in Python: `kernel(inputs, outputs, attrs)` reads arrays and writes arrays.
fn kernel(cx: &oflow::ops::KernelCx<'_>, run: &Py<PyAny>) -> Result<()> {
    Python::attach(|py| {
        let attrs = attrs_dict(py, cx.op, cx.attrs, cx.runtime)?;
        let call = || -> PyResult<Vec<Bound<'_, PyByteArray>>> {
            let inputs = PyList::empty(py);
            for view in cx.inputs {
                match view {
                    Some(v) => {
                        let bytes = PyBytes::new(py, &bytes_of(v).or_raise(py)?).into_any();
                        inputs.append(array(py, bytes, v.dtype(), v.dims())?)?
                    }
                    None => inputs.append(py.None())?,
                }
            }
            let (outputs, mut all) = (PyList::empty(py), vec![]);
            for v in cx.outputs {
                let bytes = PyByteArray::new(py, &vec![0; v.len() * v.dtype().size()]);
                outputs.append(array(py, bytes.clone().into_any(), v.dtype(), v.dims())?)?;
                all.push(bytes);
            }
            run.bind(py).call1((inputs, outputs, attrs))?;
            Ok(all)
        };
        let outputs = call().map_err(from_callback)?;
        let write = |(v, bytes): (&View, &Bound<'_, PyByteArray>)| write_bytes(v, &bytes.to_vec());
        cx.outputs.iter().zip(&outputs).try_for_each(write)
    })
}

/// Shapes by code in Python: `shape(shapes, attrs)` gives the shape of the output, or a list of them.
fn shapes(c: &InferCtx<'_>, rule: &Py<PyAny>) -> Result<SmallVec<[Dims; 2]>> {
    Python::attach(|py| {
        let attrs = attrs_dict(py, c.op, c.attrs, &[])?;
        let call = || -> PyResult<SmallVec<[Dims; 2]>> {
            let inputs = c.inputs.iter().map(|t| t.as_ref().map(|t| PyTuple::new(py, t.shape.iter())).transpose());
            let inputs = PyList::new(py, inputs.collect::<PyResult<Vec<_>>>()?)?;
            let said = rule.bind(py).call1((inputs, attrs))?;
            // Sizes, or a list of them for each output.
            let one = said.extract::<Vec<usize>>().map(|sizes| vec![sizes]);
            let all = one.or_else(|_| said.extract::<Vec<Vec<usize>>>()).map_err(|_| {
                PyTypeError::new_err(format!(
                    "the shape function of {} returned {said}: it returns sizes such as (2, 3), or a list of these for several outputs",
                    c.op.sig.name
                ))
            })?;
            Ok(all.into_iter().map(|s| s.into_iter().collect()).collect())
        };
        call().map_err(from_callback)
    })
}

/// The rows that a rule over nd-SBPs in Python gives: `rule(mesh, shapes, inputs, output, keep, attrs)`, with nd-SBPs as texts.
fn by_hints(rule: &Py<PyAny>, c: &InferCtx<'_>, mesh: &Placement, hints: &SbpHints<'_>) -> Result<Vec<String>> {
    Python::attach(|py| {
        let attrs = attrs_dict(py, c.op, c.attrs, &[])?;
        let call = || -> PyResult<Vec<String>> {
            let shapes = c.inputs.iter().map(|t| t.as_ref().map(|t| PyTuple::new(py, t.shape.iter())).transpose());
            let shapes = shapes.collect::<PyResult<Vec<_>>>()?;
            let inputs: Vec<Option<String>> = hints.inputs.iter().map(|s| Some(s.as_ref()?.to_string())).collect();
            let (mesh, output) = (PyTuple::new(py, mesh.dims())?, hints.output.map(|s| s.to_string()));
            rule.bind(py).call1((mesh, shapes, inputs, output, hints.keep, attrs))?.extract()
        };
        call().map_err(from_callback)
    })
}

/// A gradient in Python: `plan(given, shapes, attrs)` gives the calls, each as (function, values, attributes), and for each input the
/// value that is its gradient, or None. Values are numbered: gradients of outputs, then inputs, then results of the calls.
fn gradient(g: &mut dyn GradCtx, plan: &Py<PyAny>, outputs: usize) -> Result<()> {
    let dys: Vec<Option<Value>> = (0..outputs).map(|i| g.grad(i)).collect();
    if dys.iter().all(Option::is_none) {
        return Ok(());
    }
    let count = g.inputs();
    let shapes: Vec<Option<Vec<usize>>> = (0..count).map(|i| g.has(i).then(|| g.input_shape(i).to_vec())).collect();
    type Step = (String, Vec<usize>, Vec<(String, AttrValue)>);
    let (steps, found) = Python::attach(|py| -> Result<(Vec<Step>, Vec<Option<usize>>)> {
        let attrs = attrs_dict(py, g.op(), g.attrs(), g.runtime())?;
        let call = || -> PyResult<(Vec<Step>, Vec<Option<usize>>)> {
            let given: Vec<bool> = dys.iter().map(Option::is_some).collect();
            let said = plan.bind(py).call1((given, shapes, attrs))?;
            type Noted<'py> = Vec<(String, Vec<usize>, Bound<'py, PyDict>)>;
            let (steps, found): (Noted<'_>, Vec<Option<usize>>) = said.extract()?;
            let mut all = vec![];
            for (name, values, named) in steps {
                let mut attrs = vec![];
                for (n, v) in &named {
                    let value = attr_of(v.as_borrowed()).map_err(|no| raised(no, &v, "an attribute"))?;
                    attrs.push((n.extract()?, value));
                }
                all.push((name, values, attrs));
            }
            Ok((all, found))
        };
        call().map_err(from_callback)
    })?;
    let mut values: Vec<Option<Value>> = dys;
    for i in 0..count {
        values.push(if g.has(i) { Some(g.input(i)?) } else { None });
    }
    let value = |values: &[Option<Value>], i: usize| {
        values.get(i).copied().flatten().ok_or_else(|| Error::autograd(format!("value {i} of the gradient is missing")))
    };
    for (name, of, attrs) in &steps {
        let inputs = of.iter().map(|i| value(&values, *i)).collect::<Result<Vec<_>>>()?;
        let attrs: Vec<(&str, AttrValue)> = attrs.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
        let made = g.call(name, &inputs, &attrs)?;
        values.push(Some(made));
    }
    for (i, from) in found.iter().enumerate() {
        if let Some(from) = from
            && g.needs(i)
        {
            let dx = value(&values, *from)?;
            g.set(i, dx)?;
        }
    }
    Ok(())
}

/// Registers an op; returns its full name.
#[pyfunction]
pub fn _register_op(py: Python<'_>, text: &str, said: &Bound<'_, PyDict>) -> PyResult<String> {
    let field =
        |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> { Ok(said.get_item(name)?.filter(|v| !v.is_none())) };
    let texts = |name: &str| -> PyResult<Vec<String>> { field(name)?.map_or(Ok(vec![]), |v| v.extract()) };
    let one = |name: &str| -> PyResult<Option<String>> { field(name)?.map(|v| v.extract()).transpose() };
    let expression = one("expression")?;
    let dtypes = one("inputs")?.unwrap_or_else(|| "float".into());
    let function = FnSig::parse(text).or_raise(py)?;
    let op_text = op_text(&function, &dtypes, expression.is_some())?;
    let mut def = match &expression {
        Some(e) => OpDef::elementwise(&op_text, e),
        None => OpDef::new(&op_text),
    }
    .or_raise(py)?;
    def = def.function(text).domain(&one("domain")?.unwrap_or_else(|| "user".into()));
    if let Some(doc) = one("doc")? {
        def = def.doc(&doc);
    }
    if let Some(run) = field("kernel")?.map(Bound::unbind) {
        def = def.cpu(move |cx| kernel(cx, &run));
    }
    if let Some(rule) = field("shape")?.map(Bound::unbind) {
        def = def.shapes(move |c| shapes(c, &rule));
    }
    if let Some(rule) = field("dtype")? {
        let outputs = def.sig.outputs.len();
        def = def.dtype(match rule.extract::<String>().as_deref() {
            Ok("promote") => DTypeRule::Promote,
            Ok("promote_float") => DTypeRule::PromoteFloat,
            Ok("promote_int") => DTypeRule::PromoteInt,
            Ok("same") => DTypeRule::Input(0),
            _ => {
                let of = |o: &Bound<'_, PyAny>| dtype_of(o).map_err(|no| raised(no, o, "a dtype"));
                let many = rule.is_instance_of::<PyList>() || rule.is_instance_of::<PyTuple>();
                DTypeRule::Fixed(match many {
                    true => rule.try_iter()?.map(|o| of(&o?)).collect::<PyResult<_>>()?,
                    false => vec![of(&rule)?; outputs],
                })
            }
        });
    }
    if let Some(factors) = one("factors")? {
        def = def.factors(&factors);
    }
    let rows = texts("signatures")?;
    if !rows.is_empty() {
        def = def.signatures(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let linear = texts("linear")?;
    if !linear.is_empty() {
        def = def.linear_in(&linear.iter().map(String::as_str).collect::<Vec<_>>());
    }
    def = def.nd_rows(&texts("nd_infer")?, &texts("nd_extra")?, &texts("nd_valid")?).or_raise(py)?;
    if let Some(rule) = field("nd_infer_rule")?.map(Bound::unbind) {
        def = def.nd_infer_rows(move |c, mesh, hints| by_hints(&rule, c, mesh, hints));
    }
    if let Some(rule) = field("nd_choose")?.map(Bound::unbind) {
        def = def.nd_choose_row(move |c, mesh, hints| Ok(by_hints(&rule, c, mesh, hints)?.pop()));
    }
    if let Some(plan) = field("gradient")?.map(Bound::unbind) {
        let outputs = def.sig.outputs.len();
        def = def.grad(Grad::rule(move |g| gradient(g, &plan, outputs)));
    }
    def.samples = texts("samples")?.into_iter().map(Into::into).collect();
    let name = format!("{}.{}", def.domain, def.sig.name);
    if oflow::ops::find(&name).is_ok_and(|op| op.name() == name) {
        let e = oflow::Error::registry(format!("there is an op {name} already; an op has one signature"));
        return Err(e.help("for overloads give each op a name of its own, and register one function of several signatures with `oflow.function`"))
            .or_raise(py);
    }
    let op = oflow::ops::register(def).or_raise(py)?;
    Ok(op.name().to_string())
}

/// Checks an op of that name as `oflow::testing::conformance` does; returns the report as text.
#[pyfunction]
pub fn _conformance(py: Python<'_>, name: &str) -> PyResult<String> {
    let op = oflow::ops::find(name).or_raise(py)?;
    let report = py.detach(|| oflow::testing::conformance(op));
    report.or_raise(py).map(|r| r.to_string())
}
