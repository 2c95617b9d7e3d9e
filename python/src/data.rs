//! Tensors from Python's numbers and lists, from NumPy, and back.

use crate::errors::{OrRaise, Unfit, exception};
use crate::numbers::scalar;
use crate::shared::{Memory, address, readable};
use crate::signature::dtype_name;
use crate::tensor::Tensor;
use crate::types;
use oflow::kernels::view::contiguous_strides;
use oflow::kernels::{Complex, DTypeKind, Element};
use oflow::sbp::NdSbp;
use oflow::tensor::LocalTensor;
use oflow::{DType, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyRange, PyString, PyTuple};
use pyo3::{Borrowed, intern};

/// A local tensor of values.
pub fn of_values<T: Element>(values: &[T], shape: &[usize], dtype: DType) -> Result<oflow::Tensor, Unfit> {
    let made = oflow::functional::from_vec(values.to_vec(), shape, oflow::placement::Device::Cpu);
    let cast = made.and_then(|t| if t.dtype() == dtype { Ok(t) } else { t.cast(dtype) });
    cast.map_err(|e| Unfit::Raise(Python::attach(|py| exception(py, e))))
}

/// Numbers of nested lists, row-major.
struct Nested {
    shape: Vec<usize>,
    numbers: Vec<Scalar>,
}

impl Nested {
    fn read(o: &Bound<'_, PyAny>) -> Result<Nested, Unfit> {
        let mut all = Nested { shape: vec![], numbers: vec![] };
        all.add(o, 0)?;
        Ok(all)
    }

    /// Deeper lists are refused: a list that holds itself would have no end.
    const DEEPEST: usize = 64;

    fn add(&mut self, o: &Bound<'_, PyAny>, depth: usize) -> Result<(), Unfit> {
        if !(o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>()) {
            if let Ok(t) = o.cast::<Tensor>() {
                // A list of tensors of one element.
                let item = crate::results::item(o.py(), t.get().inner()).map_err(Unfit::Raise)?;
                self.numbers.push(scalar(item.bind(o.py()).as_borrowed())?);
            } else {
                self.numbers.push(scalar(o.as_borrowed())?);
            }
            return match depth == self.shape.len() {
                true => Ok(()),
                false => Err(Unfit::Text("the lists are not nested alike: a number stands where a list should".into())),
            };
        }
        let members: Vec<Bound<'_, PyAny>> = o.try_iter()?.collect::<PyResult<_>>()?;
        if depth >= Self::DEEPEST {
            return Err(Unfit::Text(format!("lists are nested deeper than {}", Self::DEEPEST)));
        }
        match self.shape.get(depth) {
            Some(n) if *n != members.len() => {
                return Err(Unfit::Text(format!(
                    "the lists have different lengths: {n} and {} at depth {depth}",
                    members.len()
                )));
            }
            Some(_) => {}
            None if self.numbers.is_empty() => self.shape.push(members.len()),
            None => {
                return Err(Unfit::Text("the lists are not nested alike: a list stands where a number should".into()));
            }
        }
        members.iter().try_for_each(|m| self.add(m, depth + 1))
    }

    /// The dtype that PyTorch gives such numbers.
    fn dtype(&self) -> DType {
        let has = |kind: fn(&Scalar) -> bool| self.numbers.iter().any(kind);
        if has(|s| matches!(s, Scalar::Complex(..))) {
            DType::C64
        } else if self.numbers.is_empty() || has(|s| matches!(s, Scalar::Float(_))) {
            DType::F32
        } else if has(|s| matches!(s, Scalar::Int(_))) {
            DType::I64
        } else {
            DType::Bool
        }
    }

    fn tensor(&self, dtype: DType) -> Result<oflow::Tensor, Unfit> {
        if let Some(b) = dtype.builtin()
            && let Some(s) = self.numbers.iter().find(|s| !s.fits(b))
        {
            return Err(Unfit::Text(format!("{s} does not fit into {}", dtype_name(dtype))));
        }
        let kind = self.numbers.iter().map(|s| s.kind()).max();
        match kind {
            Some(DTypeKind::Complex) => {
                let pair = |s: &Scalar| {
                    let (re, im) = s.to_complex();
                    Complex { re, im }
                };
                of_values(&self.numbers.iter().map(pair).collect::<Vec<_>>(), &self.shape, dtype)
            }
            Some(DTypeKind::Float) => {
                of_values(&self.numbers.iter().map(|s| s.to_f64()).collect::<Vec<_>>(), &self.shape, dtype)
            }
            _ => of_values(&self.numbers.iter().map(|s| s.to_i64()).collect::<Vec<_>>(), &self.shape, dtype),
        }
    }
}

/// A list, a range or an array as an index.
pub fn index_tensor(o: Borrowed<'_, '_, PyAny>) -> Result<oflow::Tensor, Unfit> {
    if o.is_instance_of::<PyString>() {
        return Err(Unfit::Type);
    }
    if o.is_instance_of::<PyList>() {
        let all = Nested::read(&o)?;
        // An empty list chooses nothing.
        return all.tensor(if all.numbers.is_empty() { DType::I64 } else { all.dtype() });
    }
    if o.is_instance_of::<PyRange>() {
        let all: Vec<i64> = o.try_iter()?.map(|i| i?.extract()).collect::<PyResult<_>>()?;
        return of_values(&all, &[all.len()], DType::I64);
    }
    match Array::read(&o)? {
        Some(array) => array.copied(),
        None => Err(Unfit::Type),
    }
}

/// An array of NumPy, or anything with `__array_interface__`.
struct Array<'py> {
    owner: Bound<'py, PyAny>,
    data: usize,
    read_only: bool,
    dtype: DType,
    shape: Vec<usize>,
    /// In bytes.
    strides: Vec<isize>,
}

impl<'py> Array<'py> {
    fn read(o: &Bound<'py, PyAny>) -> Result<Option<Array<'py>>, Unfit> {
        let py = o.py();
        if !o.hasattr(intern!(py, "__array_interface__"))? || o.is_instance_of::<pyo3::types::PyType>() {
            return Ok(None);
        }
        let said = o.getattr(intern!(py, "__array_interface__"))?;
        let said = said.cast::<PyDict>().map_err(|_| Unfit::Type)?;
        let field = |name: &str| {
            said.get_item(name)?
                .filter(|v| !v.is_none())
                .ok_or_else(|| PyValueError::new_err(format!("__array_interface__ has no '{name}'")))
        };
        let code: String = field("typestr")?.extract()?;
        let dtype = dtype_of_code(&code).map_err(Unfit::Text)?;
        let shape: Vec<usize> = field("shape")?.extract()?;
        let (data, read_only): (usize, bool) = field("data")?.extract()?;
        let strides: Vec<isize> = match said.get_item("strides")?.filter(|v| !v.is_none()) {
            Some(s) => s.extract()?,
            None => contiguous_strides(&shape).iter().map(|s| s * dtype.size() as isize).collect(),
        };
        if strides.len() != shape.len() {
            return Err(Unfit::Text("__array_interface__ has not as many strides as dims".into()));
        }
        Ok(Some(Array { owner: o.clone(), data, read_only, dtype, shape, strides }))
    }

    /// The same memory as a tensor.
    fn shared(&self) -> Result<oflow::Tensor, Unfit> {
        if self.read_only {
            return Err(Unfit::Text(
                "the array is read-only; a tensor that shares its memory could be written. Give a copy: array.copy()"
                    .into(),
            ));
        }
        self.window()
    }

    /// A tensor of its own.
    fn copied(&self) -> Result<oflow::Tensor, Unfit> {
        let copy = self.window()?.copy();
        copy.map_err(|e| Unfit::Raise(exception(self.owner.py(), e)))
    }

    fn window(&self) -> Result<oflow::Tensor, Unfit> {
        let size = self.dtype.size() as isize;
        if self.strides.iter().zip(&self.shape).any(|(s, n)| *n > 1 && s % size != 0) {
            return Err(Unfit::Text(
                "the elements of the array do not lie at multiples of their size; give a copy: array.copy()".into(),
            ));
        }
        let strides: Vec<isize> = self.strides.iter().map(|s| s / size).collect();
        let memory = Memory { data: self.data, owner: Some(Box::new(self.owner.clone().unbind())) };
        memory.tensor(self.dtype, &self.shape, &strides).map_err(|e| Unfit::Raise(exception(self.owner.py(), e)))
    }
}

/// The dtype of an array interface.
fn dtype_of_code(code: &str) -> Result<DType, String> {
    let foreign = if cfg!(target_endian = "little") { '>' } else { '<' };
    let kind = code.trim_start_matches(['<', '>', '|', '=']);
    match DType::BUILTIN.into_iter().find(|d| array_kind(*d) == Some(kind)) {
        _ if code.starts_with(foreign) => Err(format!("the array has the byte order of another machine ({code})")),
        Some(d) => Ok(d),
        None => Err(format!(
            "oflow has no dtype for arrays of '{code}'; convert it first, for example with array.astype(numpy.float32)"
        )),
    }
}

/// Kind and bytes of a dtype in an array interface.
fn array_kind(dtype: DType) -> Option<&'static str> {
    dtype.builtin()?.facts().array
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
        crate::results::scalar(py, dtype.number(stored).unwrap_or(stored)).map(|o| o.into_bound(py))
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
            array.copied()?
        } else if data.hasattr(intern!(py, "__dlpack__"))? {
            crate::dlpack::import(data).map_err(Unfit::Raise)?.copy().map_err(raise)?
        } else {
            let all = Nested::read(data)?;
            return all.tensor(dtype.unwrap_or_else(|| all.dtype()));
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
    let shared = Array::read(array).and_then(|a| a.ok_or(Unfit::Type)).and_then(|a| a.shared());
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
    copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, inner) = (x.py(), x.get().inner());
    for arg in args {
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
