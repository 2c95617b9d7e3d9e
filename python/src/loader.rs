//! Batches of rows in memory: `oflow.data.Loader` and its stream.

use crate::errors::OrRaise;
use crate::optim::free;
use crate::tensor::Tensor;
use crate::{context, site, types};
use oflow::data::{Loader as Rows, Stream as Batches};
use oflow::kernels::{Element, Visitor};
use oflow::state::{LoadState, Stateful};
use oflow::{Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard};

/// The engine of `oflow.data.Loader`.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Loader {
    inner: Arc<Rows>,
}

/// Adds a local tensor as a column: its first dim are the rows.
fn with_column(rows: Rows, t: &oflow::Tensor) -> Result<Rows> {
    if t.is_global() {
        return Err(Error::argument("a column is a local tensor that has all rows; this one is global"));
    }
    let Some((_, shape)) = t.shape().split_first() else {
        return Err(Error::shape("a column has a dim of rows; this tensor is a scalar"));
    };
    /// A column of elements of that type.
    struct Column<'a>(Rows, &'a oflow::Tensor, &'a [usize]);
    impl Visitor for Column<'_> {
        type Out = Result<Rows>;
        fn visit<T: Element>(self) -> Result<Rows> {
            self.0.column(self.1.to_vec::<T>()?, self.2)
        }
    }
    match t.dtype().builtin() {
        Some(builtin) => builtin.visit(Column(rows, t, shape)),
        None => Err(Error::dtype(format!("a column cannot be {}", t.dtype()))),
    }
}

#[pymethods]
impl _Loader {
    #[new]
    fn new(
        py: Python<'_>,
        placement: &Bound<'_, PyAny>,
        batch: usize,
        columns: Vec<Bound<'_, Tensor>>,
        split_along: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
        drop_last: bool,
    ) -> PyResult<_Loader> {
        context::enter(py)?;
        let placement = types::placement_of(placement).map_err(|no| types::raised(no, placement, "a placement"))?;
        let site = site::caller(py);
        let _scope = site.scope();
        let mut rows = Rows::new(&placement, batch);
        if let Some(axis) = split_along {
            rows = match axis.extract::<usize>() {
                Ok(axis) => rows.split_along(axis),
                Err(_) => rows.split_along(axis.extract::<String>()?.as_str()),
            }
            .or_raise(py)?;
        }
        // Columns of width 0 do not tell how many rows there are.
        if let Some(count) = columns.first().and_then(|c| c.get().inner().shape().first().copied()) {
            rows = rows.with_rows(count);
        }
        for column in &columns {
            rows = with_column(rows, column.get().inner()).or_raise(py)?;
        }
        if let Some(seed) = seed {
            rows = rows.shuffled(seed);
        }
        Ok(_Loader { inner: Arc::new(if drop_last { rows.drop_last() } else { rows }) })
    }
    fn rows(&self) -> usize {
        self.inner.rows()
    }
    fn batches(&self) -> usize {
        self.inner.batches()
    }
    /// The batches from an epoch on.
    fn stream(&self, py: Python<'_>, epoch: u64, seed: Option<u64>) -> PyResult<Stream> {
        let mut stream = Batches::new(self.inner.clone());
        let values = [("epoch", json!(epoch)), ("row", json!(0)), ("order", json!((self.inner.rows(), seed)))];
        let values = values.into_iter().map(|(name, v)| (name.to_string(), v)).collect();
        stream.load_state(&mut LoadState::new([], &values)).or_raise(py)?;
        Ok(Stream { inner: Mutex::new(stream) })
    }
}

fn tuple(py: Python<'_>, tensors: Vec<oflow::Tensor>) -> PyResult<Bound<'_, PyTuple>> {
    let all = tensors.into_iter().map(|t| Py::new(py, Tensor::of(t))).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, all)
}

/// The batches of a loader, epoch after epoch, without end. A checkpoint saves its position.
#[pyclass(frozen, module = "oflow.data")]
pub struct Stream {
    inner: Mutex<Batches<Arc<Rows>>>,
}

impl Stream {
    /// The stream of the library.
    pub fn stream(&self) -> Result<MutexGuard<'_, Batches<Arc<Rows>>>> {
        free(&self.inner, "the stream")
    }
}

#[pymethods]
impl Stream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        context::enter(py)?;
        let site = site::caller(py);
        let _scope = site.scope();
        let batch = self.stream().and_then(|mut s| s.next()).or_raise(py)?;
        tuple(py, batch)
    }
    /// The epoch of the last batch that was returned.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stream().or_raise(py)?.epoch())
    }
    /// How many batches of the epoch have been returned.
    #[getter]
    fn batch(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.stream().or_raise(py)?.batch())
    }
    /// Whether the last batch of the epoch has been returned.
    #[getter]
    fn at_end_of_epoch(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.stream().or_raise(py)?.at_end_of_epoch())
    }
    /// Another stream at the same position.
    fn _fork(&self, py: Python<'_>) -> PyResult<Stream> {
        Ok(Stream { inner: Mutex::new(self.stream().or_raise(py)?.clone()) })
    }
    /// Passes over the next batch.
    fn _skip(&self, py: Python<'_>) -> PyResult<()> {
        self.stream().and_then(|mut s| s.skip()).or_raise(py)
    }
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a stream is saved by a checkpoint"))
    }
}
