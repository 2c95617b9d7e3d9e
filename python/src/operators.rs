//! Operators of Python on tensors: each calls a function of the table.

use crate::call::{self, Given};
use crate::errors::{OrRaise, Unfit};
use crate::function::Function;
use crate::read::scalar;
use crate::tensor::Tensor;
use crate::{context, site};
use oflow::functional::{IntoTarget, full};
use oflow::sbp::NdSbp;
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use pyo3::{Borrowed, intern};
use smallvec::smallvec;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// Functions that operators call, found once.
macro_rules! operators {
    ($($name:ident)*) => {
        /// A function that an operator calls.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        pub enum Operator { $($name),* }

        fn operator(py: Python<'_>, which: Operator) -> PyResult<&'static Function> {
            static FOUND: OnceLock<Vec<Function>> = OnceLock::new();
            if let Some(found) = FOUND.get() {
                return Ok(&found[which as usize]);
            }
            let mut all = vec![];
            for name in [$(stringify!($name)),*] {
                // A word of Rust's own.
                let name = if name == "where_" { "where" } else { name };
                all.push(Function::find(name).or_raise(py)?);
            }
            Ok(&FOUND.get_or_init(|| all)[which as usize])
        }
    };
}
operators! { add sub mul div floor_divide remainder pow matmul eq ne lt le gt ge neg abs bitwise_and bitwise_or bitwise_xor
bitwise_left_shift bitwise_right_shift bitwise_not logical_not add_ sub_ mul_ div_ pow_ floor_divide_ remainder_ bitwise_and_
bitwise_or_ bitwise_xor_ bitwise_left_shift_ bitwise_right_shift_ index index_put_ where_ }

/// Calls a function on these objects; `NotImplemented` where it does not take them, so that Python asks the other operand.
pub fn binary<'py>(py: Python<'py>, which: Operator, objects: [&Bound<'py, PyAny>; 2]) -> PyResult<Py<PyAny>> {
    let all = smallvec![objects[0].as_borrowed(), objects[1].as_borrowed()];
    call::call_operator(py, operator(py, which)?, &Given { all, names: None, is_method: false })
}

/// Calls a function of two tensors on a number and a tensor, in this order; `NotImplemented` for what is no number. The number has the
/// dtype that it has behind a tensor: that of the tensor, unless its kind is above it.
pub fn reflected<'py>(slf: &Bound<'py, Tensor>, which: Operator, o: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
    let (py, x) = (slf.py(), slf.get().inner());
    let number = match scalar(o.as_borrowed()) {
        Ok(number) => number,
        Err(Unfit::Raise(e)) => return Err(e),
        Err(_) => return Ok(py.NotImplemented()),
    };
    context::enter(py)?;
    let site = site::caller(py);
    let scope = site.scope();
    let dtype = x.dtype().promote_scalar(number.kind());
    let made = match x.is_global() {
        false => full([], number, x.device().dtype(dtype)),
        true => {
            let placement = x.placement().or_raise(py)?;
            full([], number, (placement, NdSbp::broadcast(placement.axes())).dtype(dtype))
        }
    };
    drop(scope);
    let made = Bound::new(py, Tensor::of(made.or_raise(py)?))?;
    binary(py, which, [made.as_any(), slf.as_any()])
}

pub fn call<'py>(py: Python<'py>, which: Operator, objects: &[Borrowed<'_, 'py, PyAny>]) -> PyResult<Py<PyAny>> {
    call::call(py, operator(py, which)?, &Given { all: objects.into(), names: None, is_method: false })
}

/// Writes the result of an operator to its left operand. An array of NumPy on the right is a tensor beside it.
pub fn in_place<'py>(slf: &Bound<'py, Tensor>, which: Operator, o: &Bound<'py, PyAny>) -> PyResult<()> {
    let py = slf.py();
    let is_array = |o: &Bound<'py, PyAny>| o.hasattr(intern!(py, "__array_interface__"));
    let known = o.is_instance_of::<Tensor>() || o.is_instance_of::<PyFloat>() || o.is_instance_of::<PyInt>();
    let made;
    let o = if known || !is_array(o)? {
        o
    } else {
        made = py.import("oflow._numpy")?.getattr("_tensor")?.call1((o, slf))?;
        &made
    };
    call(py, which, &[slf.as_any().as_borrowed(), o.as_borrowed()]).map(drop)
}

/// The rows of a tensor, one after the other.
#[pyclass(frozen, module = "oflow")]
pub struct Rows {
    tensor: Py<Tensor>,
    next: AtomicI64,
}

impl Rows {
    /// Iterator over the rows of a tensor with dims.
    pub fn of(tensor: Py<Tensor>) -> Rows {
        Rows { tensor, next: AtomicI64::new(0) }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        let size = self.tensor.get().inner().shape().first().copied().unwrap_or(0);
        if usize::try_from(i).map_or(true, |i| i >= size) {
            return Err(PyStopIteration::new_err(()));
        }
        let index = i.into_pyobject(py)?.into_any();
        call(py, Operator::index, &[self.tensor.bind(py).as_any().as_borrowed(), index.as_borrowed()])
    }
}
