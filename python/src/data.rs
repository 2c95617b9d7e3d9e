//! Tensors of the plain values that `read` has read, and tensors as lists, numbers and arrays.

use crate::errors::{OrRaise, Unfit, exception};
use crate::ffi::Memory;
use crate::read::{Array, Index, Nested, Number, Values, array_kind};
use crate::shared::{address, readable};
use crate::signature::dtype_name;
use crate::tensor::Tensor;
use crate::{context, results, site, types};
use oflow::functional::bind::Refused;
use oflow::functional::{Arg, Bound as BoundArgs, FnDef, Returned, TensorIndex, overloads};
use oflow::kernels::{Complex, DTypeKind, Element};
use oflow::ops::AttrValue;
use oflow::sbp::NdSbp;
use oflow::tensor::LocalTensor;
use oflow::{DType, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::OnceLock;

/// A local tensor of values.
fn of_values<T: Element>(values: &[T], shape: &[usize], dtype: DType) -> Result<oflow::Tensor, Unfit> {
    let made = oflow::functional::from_vec(values.to_vec(), shape, oflow::placement::Device::Cpu);
    let cast = made.and_then(|t| if t.dtype() == dtype { Ok(t) } else { t.cast(dtype) });
    cast.map_err(|e| Unfit::Raise(Python::attach(|py| exception(py, e))))
}

/// Makes tensors of the values of indices. `unmade`: the indices, with the number of each among the arguments that are indices.
///
/// # Errors
/// The values do not fit together, or a tensor among them cannot be read.
pub fn make_indices(
    py: Python<'_>,
    args: &mut [Option<Arg>],
    unmade: Vec<(usize, Index)>,
) -> Result<(), Refused<PyErr>> {
    for (number, Index { mut members, values }) in unmade {
        let Some((i, arg)) = args.iter_mut().enumerate().filter(|(_, a)| matches!(a, Some(Arg::Index(_)))).nth(number)
        else {
            continue;
        };
        for (at, values) in values {
            members[at] = TensorIndex::Values(tensor_of_index(py, &values).map_err(|no| Refused::of(no, i, i))?);
        }
        *arg = Some(Arg::Index(members));
    }
    Ok(())
}

/// The tensor of a member of an index.
fn tensor_of_index(py: Python<'_>, values: &Values) -> Result<oflow::Tensor, Unfit> {
    match values {
        Values::Numbers(nested) => {
            let numbers = numbers_of(py, nested)?;
            // An empty list chooses nothing.
            let dtype = if numbers.is_empty() { DType::I64 } else { dtype_for(&numbers) };
            of_numbers(&numbers, &nested.shape, dtype)
        }
        Values::Ints(all) => of_values(all, &[all.len()], DType::I64),
        Values::Array(array) => copy_of(py, array),
    }
}

/// The numbers of nested lists; tensors among them are read.
fn numbers_of(py: Python<'_>, nested: &Nested) -> Result<Vec<Scalar>, Unfit> {
    let one = |n: &Number| match n {
        Number::Known(s) => Ok(*s),
        Number::Tensor(t) => number_of(py, t),
    };
    nested.numbers.iter().map(one).collect::<PyResult<_>>().map_err(Unfit::Raise)
}

/// The only element of a tensor; waits for other ranks where it must.
fn number_of(py: Python<'_>, t: &oflow::Tensor) -> PyResult<Scalar> {
    static ITEM: OnceLock<FnDef> = OnceLock::new();
    let def = match ITEM.get() {
        Some(def) => def,
        None => {
            let found = overloads("item").or_raise(py)?.into_iter().next();
            let found = found.ok_or_else(|| PyTypeError::new_err("item() is missing"))?;
            ITEM.get_or_init(|| found)
        }
    };
    context::enter(py)?;
    let bound = BoundArgs { args: vec![Some(t.into())], site: site::caller(py) };
    let returned = if t.is_global() { py.detach(|| def.run(bound)) } else { def.run(bound) };
    match returned.map_err(|e| exception(py, e))? {
        Returned::Value(AttrValue::Scalar(s)) => Ok(s),
        _ => Err(PyTypeError::new_err("item() gave no number")),
    }
}

/// One element, as a number of Python; waits for other ranks where it must.
pub fn item(py: Python<'_>, t: &oflow::Tensor) -> PyResult<Py<PyAny>> {
    results::scalar(py, number_of(py, t)?)
}

/// The dtype that PyTorch gives such numbers.
fn dtype_for(numbers: &[Scalar]) -> DType {
    let has = |kind: fn(&Scalar) -> bool| numbers.iter().any(kind);
    if has(|s| matches!(s, Scalar::Complex(..))) {
        DType::C64
    } else if numbers.is_empty() || has(|s| matches!(s, Scalar::Float(_))) {
        DType::F32
    } else if has(|s| matches!(s, Scalar::Int(_))) {
        DType::I64
    } else {
        DType::Bool
    }
}

fn of_numbers(numbers: &[Scalar], shape: &[usize], dtype: DType) -> Result<oflow::Tensor, Unfit> {
    if let Some(b) = dtype.builtin()
        && let Some(s) = numbers.iter().find(|s| !s.fits(b))
    {
        return Err(Unfit::Text(format!("{s} does not fit into {}", dtype_name(dtype))));
    }
    match numbers.iter().map(|s| s.kind()).max() {
        Some(DTypeKind::Complex) => {
            let pair = |s: &Scalar| {
                let (re, im) = s.to_complex();
                Complex { re, im }
            };
            of_values(&numbers.iter().map(pair).collect::<Vec<_>>(), shape, dtype)
        }
        Some(DTypeKind::Float) => of_values(&numbers.iter().map(|s| s.to_f64()).collect::<Vec<_>>(), shape, dtype),
        _ => of_values(&numbers.iter().map(|s| s.to_i64()).collect::<Vec<_>>(), shape, dtype),
    }
}

/// A tensor of the memory of an array.
fn window(py: Python<'_>, array: &Array) -> Result<oflow::Tensor, Unfit> {
    let size = array.dtype.size() as isize;
    if array.strides.iter().zip(&array.shape).any(|(s, n)| *n > 1 && s % size != 0) {
        return Err(Unfit::Text(
            "the elements of the array do not lie at multiples of their size; give a copy: array.copy()".into(),
        ));
    }
    let strides: Vec<isize> = array.strides.iter().map(|s| s / size).collect();
    let memory = Memory { data: array.data, owner: Some(Box::new(array.owner.clone_ref(py))) };
    memory.tensor(array.dtype, &array.shape, &strides).map_err(|e| Unfit::Raise(exception(py, e)))
}

/// A tensor of the values of an array.
fn copy_of(py: Python<'_>, array: &Array) -> Result<oflow::Tensor, Unfit> {
    window(py, array)?.copy().map_err(|e| Unfit::Raise(exception(py, e)))
}

/// A tensor that shares the memory of an array.
fn shared_with(py: Python<'_>, array: &Array) -> Result<oflow::Tensor, Unfit> {
    if array.read_only {
        return Err(Unfit::Text(
            "the array is read-only; a tensor that shares its memory could be written. Give a copy: array.copy()"
                .into(),
        ));
    }
    window(py, array)
}

/// The code of a dtype in an array interface.
fn code_of(dtype: DType) -> Option<String> {
    let kind = array_kind(dtype)?;
    let order = match (dtype.size(), cfg!(target_endian = "little")) {
        (1, _) => '|',
        (_, true) => '<',
        (_, false) => '>',
    };
    Some(format!("{order}{kind}"))
}

/// Memory of a tensor, for NumPy: the array holds this object, and so the memory.
#[pyclass(frozen, module = "oflow")]
pub struct _Memory {
    local: LocalTensor,
}

#[pymethods]
impl _Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let l = &self.local;
        let code = code_of(l.dtype()).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "NumPy has no {}; convert it first: x.cast(oflow.float32)",
                dtype_name(l.dtype())
            ))
        })?;
        let size = l.dtype().size();
        let said = PyDict::new(py);
        said.set_item("version", 3)?;
        said.set_item("typestr", code)?;
        said.set_item("shape", PyTuple::new(py, l.dims())?)?;
        said.set_item("strides", PyTuple::new(py, l.strides().iter().map(|s| s * size as isize))?)?;
        // A shard is written by the global tensor's own calls only.
        said.set_item("data", (address(l), l.is_shard() || l.overlaps_itself()))?;
        Ok(said)
    }
}

/// An array of NumPy that shares the memory of a local tensor.
pub fn to_numpy<'py>(py: Python<'py>, t: &oflow::Tensor) -> PyResult<Bound<'py, PyAny>> {
    let local = readable(py, t, "numpy()")?;
    local.storage().share_outside();
    let memory = Bound::new(py, _Memory { local })?;
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (memory,))
}

/// The values as nested lists.
pub fn to_list<'py>(py: Python<'py>, t: &oflow::Tensor) -> PyResult<Bound<'py, PyAny>> {
    let (dtype, shape) = (t.dtype(), t.shape().to_vec());
    let bytes = py.detach(|| t.to_bytes()).or_raise(py)?;
    let number = |b: &[u8]| -> PyResult<Bound<'py, PyAny>> {
        let stored = dtype.storage().decode(b).ok_or_else(|| PyValueError::new_err("no element"))?;
        results::scalar(py, dtype.number(stored).unwrap_or(stored)).map(|o| o.into_bound(py))
    };
    let mut level: Vec<Bound<'py, PyAny>> = bytes.chunks_exact(dtype.size()).map(number).collect::<PyResult<_>>()?;
    for (d, n) in shape.iter().enumerate().rev() {
        // Without elements there are still as many lists as the outer sizes say.
        let outer: usize = shape[..d].iter().product();
        let mut members = level.into_iter();
        level = (0..outer)
            .map(|_| Ok(PyList::new(py, members.by_ref().take(*n).collect::<Vec<_>>())?.into_any()))
            .collect::<PyResult<_>>()?;
    }
    level.pop().ok_or_else(|| PyValueError::new_err("no element"))
}

/// A tensor from numbers, nested lists, an array or a tensor. The data is copied.
pub fn from_data(py: Python<'_>, data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<oflow::Tensor> {
    let made = || -> Result<oflow::Tensor, Unfit> {
        let raise = |e| Unfit::Raise(exception(py, e));
        let given = if let Ok(t) = data.cast::<Tensor>() {
            t.get().inner().detach().copy().map_err(raise)?
        } else if let Some(array) = Array::read(data)? {
            copy_of(py, &array)?
        } else if data.hasattr(intern!(py, "__dlpack__"))? {
            crate::dlpack::import(data).map_err(Unfit::Raise)?.copy().map_err(raise)?
        } else {
            let nested = Nested::read(data)?;
            let numbers = numbers_of(py, &nested)?;
            return of_numbers(&numbers, &nested.shape, dtype.unwrap_or_else(|| dtype_for(&numbers)));
        };
        match dtype {
            Some(d) if d != given.dtype() => given.cast(d).map_err(raise),
            _ => Ok(given),
        }
    };
    made().map_err(|no| crate::types::raised(no, data, "a number, a list of numbers, an array or a tensor"))
}

/// Plain data beside a tensor, in its dtype: on its device, and whole on each rank of a global tensor. Every rank gives the same data.
pub fn beside(x: &oflow::Tensor, data: &Bound<'_, PyAny>) -> PyResult<oflow::Tensor> {
    let py = data.py();
    let local = from_data(py, data, Some(x.dtype()))?;
    if !x.is_global() {
        return local.to_device(x.device()).or_raise(py);
    }
    let placement = x.placement().or_raise(py)?;
    let local = local.to_device(placement.device()).or_raise(py)?;
    oflow::distribute(&local, (placement, NdSbp::broadcast(placement.axes()))).or_raise(py)
}

/// A tensor that shares the memory of an array of NumPy: a write to one is seen in the other.
#[pyfunction]
pub fn from_numpy(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    crate::context::enter(py)?;
    let shared = Array::read(array).and_then(|a| a.ok_or(Unfit::Type)).and_then(|a| shared_with(py, &a));
    shared.map(Tensor::of).map_err(|no| crate::types::raised(no, array, "an array of NumPy"))
}

/// A local tensor of values.
pub fn tensor_of(py: Python<'_>, values: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
    let dtype = dtype.map(|d| types::dtype_of(d).map_err(|no| types::raised(no, d, "a dtype"))).transpose()?;
    from_data(py, values, dtype).map(Tensor::of)
}

/// A tensor with that dtype; itself where it has it.
pub fn cast<'py>(slf: &Bound<'py, Tensor>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    if slf.get().inner().dtype() == dtype {
        return Ok(slf.clone().into_any());
    }
    let site = crate::site::caller(py);
    let _scope = site.scope();
    let made = slf.get().inner().cast(dtype).or_raise(py)?;
    Ok(Bound::new(py, Tensor::of(made))?.into_any())
}

/// A tensor with another dtype or on another device; itself where it has both.
pub fn to<'py>(
    x: &Bound<'py, Tensor>,
    args: &Bound<'py, PyTuple>,
    mut dtype: Option<Bound<'py, PyAny>>,
    mut device: Option<Bound<'py, PyAny>>,
    mut copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, inner) = (x.py(), x.get().inner());
    let mut flags = 0;
    for arg in args {
        // Behind what to convert to: whether without waiting, and whether to copy.
        if let Ok(yes) = arg.cast_exact::<pyo3::types::PyBool>() {
            flags += 1;
            if flags > 2 {
                return Err(PyTypeError::new_err("to() takes two truth values, non_blocking and copy"));
            }
            copy |= flags == 2 && yes.is_true();
            continue;
        }
        let place = match arg.cast::<Tensor>() {
            Ok(other) => {
                let other = other.get().inner();
                dtype = Some(types::dtype_object(py, other.dtype())?.into_bound(py).into_any());
                device = Some(Bound::new(py, types::Device::of(other.device()))?.into_any());
                continue;
            }
            Err(_) if types::dtype_of(&arg).is_ok() => &mut dtype,
            Err(_) => &mut device,
        };
        if place.replace(arg).is_some() {
            return Err(PyTypeError::new_err("to() takes one dtype, one device, or a tensor that has both"));
        }
    }
    let site = crate::site::caller(py);
    let _scope = site.scope();
    let mut t = inner.clone();
    if let Some(d) = device {
        let device = types::device_of(&d).map_err(|no| types::raised(no, &d, "a dtype or a device"))?;
        // A global tensor stays on its placement.
        if device != t.device() {
            t = t.to_device(device).or_raise(py)?;
        }
    }
    if let Some(d) = dtype {
        t = t.cast(types::dtype_of(&d).map_err(|no| types::raised(no, &d, "a dtype"))?).or_raise(py)?;
    }
    match t.same(inner) {
        true if copy => Ok(Bound::new(py, Tensor::of(t.copy().or_raise(py)?))?.into_any()),
        true => Ok(x.clone().into_any()),
        false => Ok(Bound::new(py, Tensor::of(t))?.into_any()),
    }
}

/// A tensor from a number, nested lists, an array or another tensor, whose data is copied.
///
/// Floats are float32 unless ``dtype`` says otherwise, integers int64; arrays keep their dtype. With ``placement`` and ``sbp`` it is a
/// global tensor, of which every rank gives the same (logical) value.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, placement=None, sbp=None, requires_grad=false))]
pub fn tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    placement: Option<&Bound<'_, PyAny>>,
    sbp: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<Tensor> {
    crate::context::enter(py)?;
    let site = crate::site::caller(py);
    let _scope = site.scope();
    let local = tensor_of(py, data, dtype)?.inner().clone();
    let t = match (placement, sbp, device) {
        (None, None, None) => local,
        (None, None, Some(d)) => {
            local.to_device(types::device_of(d).map_err(|no| types::raised(no, d, "a device"))?).or_raise(py)?
        }
        (Some(p), Some(s), None) => {
            let place = types::placement_of(p).map_err(|no| types::raised(no, p, "a placement"))?;
            let sbp = types::sbp_of(s).map_err(|no| types::raised(no, s, "an sbp"))?;
            let local = local.to_device(place.device()).or_raise(py)?;
            oflow::distribute(&local, (&place, sbp)).or_raise(py)?
        }
        _ => {
            return Err(PyTypeError::new_err(
                "give a device for a local tensor, or placement and sbp for a global one",
            ));
        }
    };
    let t = if requires_grad { t.requires_grad_(true).or_raise(py)? } else { t };
    Ok(Tensor::of(t))
}
