//! Methods and properties of `oflow.Tensor`: what no row of the table says.

use crate::data::item;
use crate::errors::OrRaise;
use crate::operators::{Operator, Rows, binary, call, in_place, reflected};
use crate::tensor::Tensor;
use crate::types::{self, dtype_object};
use crate::{context, data, display, dlpack, shared, site};
use oflow::BackwardOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyDict, PyTuple, PyType};

#[pymethods]
impl Tensor {
    /// A handle of the same tensor, for subclasses; or a tensor from values, as ``oflow.tensor``.
    #[new]
    #[classmethod]
    #[pyo3(signature = (data, *args, dtype=None, **kwargs))]
    fn new(
        class: &Bound<'_, PyType>,
        data: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tensor> {
        let py = class.py();
        context::enter(py)?;
        // A subclass may have arguments of its own.
        if class.is(py.get_type::<Tensor>()) && (!args.is_empty() || kwargs.is_some()) {
            return Err(PyTypeError::new_err(
                "Tensor() takes data and a dtype; sizes are given to oflow.empty or oflow.zeros",
            ));
        }
        match (data.cast::<Tensor>(), dtype) {
            (Ok(t), None) => Ok(Tensor::of(t.get().inner().clone())),
            _ => data::tensor_of(py, data, dtype),
        }
    }

    /// The sizes of the logical tensor.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner().shape())
    }
    /// The number of dims.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner().ndim()
    }
    /// The type of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<types::DType>> {
        dtype_object(py, self.inner().dtype())
    }
    /// The device; of a global tensor that of its placement.
    #[getter]
    fn device(&self) -> types::Device {
        types::Device::of(self.inner().device())
    }
    /// Whether it is a global tensor.
    #[getter]
    fn is_global(&self) -> bool {
        self.inner().is_global()
    }
    /// Whether it is a local tensor.
    #[getter]
    fn is_local(&self) -> bool {
        !self.inner().is_global()
    }
    /// The placement of a global tensor.
    #[getter]
    fn placement(&self, py: Python<'_>) -> PyResult<types::Placement> {
        self.inner().placement().or_raise(py).map(|p| types::Placement::of(p.clone()))
    }
    /// How a global tensor lies along each axis of its mesh.
    #[getter]
    fn sbp(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        types::sbp_tuple(py, self.inner().sbp().or_raise(py)?)
    }
    /// Whether gradients are computed for it.
    #[getter]
    fn get_requires_grad(&self) -> bool {
        self.inner().requires_grad()
    }
    #[setter]
    fn set_requires_grad(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        self.inner().clone().requires_grad_(on).or_raise(py).map(drop)
    }
    /// Sets whether gradients are computed for this leaf, and returns it.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_(slf: Py<Self>, py: Python<'_>, requires_grad: bool) -> PyResult<Py<Self>> {
        slf.get().set_requires_grad(py, requires_grad)?;
        Ok(slf)
    }
    /// Whether it is no result of a recorded call.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.inner().is_leaf()
    }
    /// Whether it is a view: a local one shares its base's memory, a global one is a value that cannot be written.
    #[getter]
    fn is_view(&self) -> bool {
        self.inner().is_view()
    }
    /// The name of the recorded call that made it, with its line; None for a leaf.
    #[getter]
    fn grad_fn(&self) -> Option<String> {
        self.inner().made_by().map(|(op, site)| format!("{op} at {site}"))
    }
    /// The accumulated gradient of a leaf, or of a result that ``retain_grad`` was called on; None if there is none.
    #[getter]
    fn get_grad(&self) -> Option<Tensor> {
        self.inner().grad().map(Tensor::of)
    }
    #[setter]
    fn set_grad(&self, py: Python<'_>, grad: &Bound<'_, PyAny>) -> PyResult<()> {
        let grad = crate::autograd::given(grad, "grad")?;
        let site = site::caller(py);
        let _scope = site.scope();
        self.inner().set_grad(grad).or_raise(py)
    }
    /// The number of in-place changes so far.
    #[getter]
    fn _version(&self) -> u64 {
        self.inner().version()
    }
    /// The address of the first element of a local tensor.
    fn data_ptr(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(shared::address(&shared::readable(py, &self.inner().detach(), "data_ptr()")?))
    }
    /// The strides of a local tensor, in elements.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, shared::readable(py, &self.inner().detach(), "stride()")?.strides())
    }
    /// The same data without gradient. A local result shares the memory.
    fn detach(&self) -> Tensor {
        Tensor::of(self.inner().detach())
    }
    /// The tensor with another dtype or on another device; itself where it has both: ``x.to(oflow.float64)``, ``x.to("cpu")``,
    /// ``x.to(other)``. A global tensor changes its layout with ``to_global``.
    ///
    /// ``non_blocking`` is taken and has no effect: calls are asynchronous where the device is.
    #[pyo3(signature = (*args, dtype=None, device=None, non_blocking=false, copy=false, memory_format=None))]
    fn to<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        dtype: Option<Bound<'py, PyAny>>,
        device: Option<Bound<'py, PyAny>>,
        non_blocking: bool,
        copy: bool,
        memory_format: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = non_blocking;
        types::memory_format(memory_format)?;
        data::to(slf, args, dtype, device, copy)
    }
    /// The tensor as bool; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn bool<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::Bool)
    }
    /// The tensor as uint8; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn byte<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::U8)
    }
    /// The tensor as int8; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn char<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::I8)
    }
    /// The tensor as int16; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn short<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::I16)
    }
    /// The tensor as int32; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn int<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::I32)
    }
    /// The tensor as int64; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn long<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::I64)
    }
    /// The tensor as float16; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn half<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::F16)
    }
    /// The tensor as bfloat16; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn bfloat16<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::BF16)
    }
    /// The tensor as float32; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn float<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::F32)
    }
    /// The tensor as float64; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn double<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::F64)
    }
    /// The tensor as complex64; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn cfloat<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::C64)
    }
    /// The tensor as complex128; itself where it is.
    #[pyo3(signature = (memory_format=None))]
    fn cdouble<'py>(slf: &Bound<'py, Self>, memory_format: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        types::memory_format(memory_format)?;
        data::cast(slf, oflow::DType::C128)
    }
    /// The real part of complex numbers, a copy; a real tensor itself.
    #[getter(real)]
    fn real_part<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, inner) = (slf.py(), slf.get().inner());
        if !inner.dtype().is_complex() {
            return Ok(slf.clone().into_any());
        }
        let site = site::caller(py);
        let _scope = site.scope();
        Ok(Bound::new(py, Tensor::of(inner.real().or_raise(py)?))?.into_any())
    }
    /// The imaginary part of complex numbers, a copy.
    #[getter(imag)]
    fn imaginary_part(&self, py: Python<'_>) -> PyResult<Tensor> {
        let site = site::caller(py);
        let _scope = site.scope();
        self.inner().imag().or_raise(py).map(Tensor::of)
    }
    /// The conjugate transpose of the matrix, or of the last two dims of a batch.
    #[getter(mH)]
    fn m_h(&self, py: Python<'_>) -> PyResult<Tensor> {
        let site = site::caller(py);
        let _scope = site.scope();
        self.inner().adjoint().or_raise(py).map(Tensor::of)
    }
    /// The one number of a complex tensor.
    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<pyo3::types::PyComplex>().call1((item(py, self.inner())?,))
    }
    /// The matrix, or the last two dims of a batch, transposed: a view.
    #[getter(mT)]
    fn m_t(&self, py: Python<'_>) -> PyResult<Tensor> {
        let site = site::caller(py);
        let _scope = site.scope();
        self.inner().transpose(-2, -1).or_raise(py).map(Tensor::of)
    }
    /// The tensor with its dims in the opposite order: a view.
    #[getter(T)]
    fn t_(&self, py: Python<'_>) -> PyResult<Tensor> {
        let site = site::caller(py);
        let _scope = site.scope();
        let order: Vec<i64> = (0..self.inner().ndim() as i64).rev().collect();
        self.inner().permute(order).or_raise(py).map(Tensor::of)
    }
    /// A copy in memory of its own; the gradient passes through.
    #[pyo3(signature = (*, memory_format=None))]
    fn clone(&self, py: Python<'_>, memory_format: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
        types::memory_format(memory_format)?;
        let site = site::caller(py);
        let _scope = site.scope();
        self.inner().copy().or_raise(py).map(Tensor::of)
    }

    /// Gradients of this number with respect to all leaves it depends on, added to their ``grad``; with ``inputs`` to that of these tensors
    /// only, of which those that are results of calls keep theirs.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        context::enter(py)?;
        let options = BackwardOptions {
            gradient: gradient.map_or(Ok(None), |g| crate::autograd::given(&g, "gradient"))?,
            retain_graph: retain_graph.unwrap_or(create_graph),
            create_graph,
            inputs: inputs.map(|i| crate::autograd::tensors(i, "inputs")).transpose()?,
        };
        let site = site::caller(py);
        let run = || {
            let _scope = site.scope();
            self.inner().backward_with(&options)
        };
        py.detach(run).or_raise(py)
    }
    /// Keeps the gradient of a result of a call, for ``grad`` after backward.
    fn retain_grad(&self, py: Python<'_>) -> PyResult<()> {
        self.inner().retain_grad().or_raise(py)
    }
    /// Calls ``hook`` with this tensor's gradient when it is complete; a tensor that it returns takes its place.
    fn register_hook(&self, py: Python<'_>, hook: Bound<'_, PyAny>) -> PyResult<crate::autograd::HookHandle> {
        crate::autograd::register_hook(py, self.inner(), hook)
    }
    /// Calls ``hook`` with this leaf whenever backward has added to its ``grad``: it may read, change and clear it, and returns None.
    fn register_post_accumulate_grad_hook(
        slf: &Bound<'_, Self>,
        hook: Bound<'_, PyAny>,
    ) -> PyResult<crate::autograd::HookHandle> {
        crate::autograd::register_post_accumulate_grad_hook(slf, hook)
    }

    /// The one element, as a number of Python. On a global tensor all ranks call it.
    fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        context::enter(py)?;
        item(py, self.inner())
    }
    /// The values as nested lists. On a global tensor all ranks call it.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        context::enter(py)?;
        let site = site::caller(py);
        let _scope = site.scope();
        data::to_list(py, self.inner())
    }
    /// An array of NumPy that shares the memory of a local tensor on the CPU: a write to one is seen in the other.
    ///
    /// ``force=True`` first takes away what forbids that: the gradient, and another device.
    #[pyo3(signature = (*, force=false))]
    fn numpy<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        context::enter(py)?;
        if force && !self.inner().is_global() {
            let plain = self.inner().detach().to_device(oflow::placement::Device::Cpu).or_raise(py)?;
            return data::to_numpy(py, &plain);
        }
        data::to_numpy(py, self.inner())
    }
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.numpy(py, false)?;
        let same = match &dtype {
            Some(d) => array.getattr("dtype")?.eq(d)?,
            None => true,
        };
        match (same, copy) {
            (true, Some(true)) => array.call_method0("copy"),
            (true, _) => Ok(array),
            (false, Some(false)) => Err(PyValueError::new_err("another dtype needs a copy, which copy=False forbids")),
            (false, _) => array.call_method1("astype", (dtype,)),
        }
    }
    /// NumPy leaves operators to tensors.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }
    /// The capsule of DLPack, for ``torch.from_dlpack`` and others.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        context::enter(py)?;
        if stream.is_some_and(|s| s.extract::<i64>().map_or(true, |s| s != -1)) {
            return Err(PyValueError::new_err("a tensor on the CPU has no stream"));
        }
        dlpack::export(py, self.inner(), max_version, dl_device, copy)
    }
    /// Kind and number of DLPack's device.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        dlpack::device_of(self.inner())
    }

    fn __repr__(&self) -> String {
        self.inner().to_string()
    }
    /// HTML for notebooks: what ``repr`` says, and a picture of the layout.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(display::tensor(&slf.get_type().name()?.to_string(), slf.get().inner()))
    }
    /// A tensor without dims formats as its number. Printing never communicates: of a global tensor that is the number that
    /// this rank holds.
    fn __format__<'py>(slf: &Bound<'py, Self>, spec: &str) -> PyResult<Bound<'py, PyAny>> {
        let (py, inner) = (slf.py(), slf.get().inner());
        if spec.is_empty() && (inner.is_global() || inner.ndim() != 0) {
            return Ok(slf.str()?.into_any());
        }
        let refused = |why: &str, help: &str| {
            PyTypeError::new_err(format!("expected a number to format as '{spec}', got {inner:?}{why}; {help}"))
        };
        if inner.ndim() != 0 {
            return Err(refused("", "format an element: x[0].item(), or the text of all: str(x)"));
        }
        let local = match inner.global() {
            None => inner.clone(),
            Some(g) => {
                let held = if g.sbp.iter().all(|s| s.is_broadcast()) { inner.shard().or_raise(py)? } else { None };
                let why = ", whose value this rank does not hold";
                oflow::Tensor::from_local(held.ok_or_else(|| refused(why, "call item() on all ranks and format that"))?)
            }
        };
        item(py, &local)?.bind(py).call_method1("__format__", (spec,))
    }
    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }
    fn __len__(&self) -> PyResult<usize> {
        self.inner().shape().first().copied().ok_or_else(|| PyTypeError::new_err("len() of a tensor without dims"))
    }
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.inner().numel() != 1 {
            return Err(PyValueError::new_err(format!(
                "the truth of {:?} is ambiguous: it has {} elements; use any() or all()",
                self.inner(),
                self.inner().numel()
            )));
        }
        item(py, self.inner())?.is_truthy(py)
    }
    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        let n = item(py, self.inner())?;
        n.bind(py).call_method0("__float__").and_then(|x| x.extract()).or_else(|_| n.extract::<bool>(py).map(f64::from))
    }
    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let n = item(py, self.inner())?;
        Ok(py.get_type::<pyo3::types::PyInt>().call1((n,))?.unbind())
    }
    fn __index__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.inner().dtype().has_gradients() || self.inner().numel() != 1 {
            return Err(PyTypeError::new_err(format!(
                "{:?} cannot be an index: only integers of one element can",
                self.inner()
            )));
        }
        self.__int__(py)
    }
    fn __contains__(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = slf.py();
        let equal = binary(py, Operator::eq, [slf.as_any(), value])?;
        match equal.bind(py).cast::<Tensor>() {
            Ok(t) => t.get().inner().any(()).and_then(|t| t.item()).or_raise(py).map(|x| x != 0.0),
            Err(_) => Ok(false),
        }
    }
    fn __iter__(slf: Py<Self>) -> PyResult<Rows> {
        if slf.get().inner().ndim() == 0 {
            return Err(PyTypeError::new_err("iteration over a tensor without dims"));
        }
        Ok(Rows::of(slf))
    }
    /// The elements of this tensor where the condition is true, else those of ``other``; shapes broadcast.
    fn r#where<'py>(
        slf: &Bound<'py, Self>,
        condition: &Bound<'py, PyAny>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let all = [condition.as_borrowed(), slf.as_any().as_borrowed(), other.as_borrowed()];
        call(slf.py(), Operator::where_, &all)
    }
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        call(slf.py(), Operator::index, &[slf.as_any().as_borrowed(), index.as_borrowed()])
    }
    fn __setitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let array = value.is_instance_of::<Tensor>() || crate::read::scalar(value.as_borrowed()).is_ok();
        let made;
        let value = if array {
            value
        } else {
            let site = site::caller(py);
            let _scope = site.scope();
            let t = data::beside(slf.get().inner(), value)?;
            made = Bound::new(py, Tensor::of(t))?.into_any();
            &made
        };
        call(py, Operator::index_put_, &[slf.as_any().as_borrowed(), index.as_borrowed(), value.as_borrowed()])
            .map(drop)
    }
    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("elements of a tensor cannot be deleted"))
    }
    fn __add__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::add, [slf.as_any(), o])
    }
    fn __radd__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::add, [slf.as_any(), o])
    }
    fn __sub__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::sub, [slf.as_any(), o])
    }
    fn __rsub__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::sub, [o, slf.as_any()])
    }
    fn __mul__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::mul, [slf.as_any(), o])
    }
    fn __rmul__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::mul, [slf.as_any(), o])
    }
    fn __truediv__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::div, [slf.as_any(), o])
    }
    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::div, [o, slf.as_any()])
    }
    fn __floordiv__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::floor_divide, [slf.as_any(), o])
    }
    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, Operator::floor_divide, o)
    }
    fn __mod__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::remainder, [slf.as_any(), o])
    }
    fn __rmod__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, Operator::remainder, o)
    }
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        o: &Bound<'py, PyAny>,
        _m: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::pow, [slf.as_any(), o])
    }
    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        o: &Bound<'py, PyAny>,
        _m: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::pow, [o, slf.as_any()])
    }
    fn __matmul__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::matmul, [slf.as_any(), o])
    }
    fn __and__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_and, [slf.as_any(), o])
    }
    fn __rand__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_and, [slf.as_any(), o])
    }
    fn __or__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_or, [slf.as_any(), o])
    }
    fn __ror__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_or, [slf.as_any(), o])
    }
    fn __xor__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_xor, [slf.as_any(), o])
    }
    fn __rxor__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_xor, [slf.as_any(), o])
    }
    fn __lshift__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_left_shift, [slf.as_any(), o])
    }
    fn __rlshift__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, Operator::bitwise_left_shift, o)
    }
    fn __rrshift__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, Operator::bitwise_right_shift, o)
    }
    fn __rshift__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf.py(), Operator::bitwise_right_shift, [slf.as_any(), o])
    }
    fn __iadd__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::add_, o)
    }
    fn __isub__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::sub_, o)
    }
    fn __imul__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::mul_, o)
    }
    fn __itruediv__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::div_, o)
    }
    fn __ifloordiv__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::floor_divide_, o)
    }
    fn __imod__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::remainder_, o)
    }
    fn __ipow__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>, _m: Option<&Bound<'py, PyAny>>) -> PyResult<()> {
        in_place(slf, Operator::pow_, o)
    }
    fn __iand__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::bitwise_and_, o)
    }
    fn __ior__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::bitwise_or_, o)
    }
    fn __ixor__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::bitwise_xor_, o)
    }
    fn __ilshift__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::bitwise_left_shift_, o)
    }
    fn __irshift__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>) -> PyResult<()> {
        in_place(slf, Operator::bitwise_right_shift_, o)
    }
    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        call(slf.py(), Operator::neg, &[slf.as_any().as_borrowed()])
    }
    fn __pos__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        call(slf.py(), Operator::abs, &[slf.as_any().as_borrowed()])
    }
    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let which = match slf.get().inner().dtype() {
            oflow::DType::Bool => Operator::logical_not,
            _ => Operator::bitwise_not,
        };
        call(slf.py(), which, &[slf.as_any().as_borrowed()])
    }
    fn __richcmp__<'py>(slf: &Bound<'py, Self>, o: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let which = match op {
            CompareOp::Eq => Operator::eq,
            CompareOp::Ne => Operator::ne,
            CompareOp::Lt => Operator::lt,
            CompareOp::Le => Operator::le,
            CompareOp::Gt => Operator::gt,
            CompareOp::Ge => Operator::ge,
        };
        binary(slf.py(), which, [slf.as_any(), o])
    }

    /// A local tensor by its values, for ``pickle``.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, _protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oflow._tensor")?.getattr("_reduce")?.call1((slf,))
    }
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oflow._tensor")?.getattr("_copy")?.call1((slf,))
    }
    fn __deepcopy__(slf: &Bound<'_, Self>, memo: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        let copy = slf.py().import("oflow._tensor")?.getattr("_deepcopy")?.call1((slf, memo))?;
        Ok(copy.unbind())
    }
}
