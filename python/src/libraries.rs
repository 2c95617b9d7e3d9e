//! Libraries of ops: `oflow.ops`.

use crate::errors::OrRaise;
use oflow::libraries::{self, BuildOptions};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A loaded library of ops.
#[pyclass(frozen, module = "oflow.ops")]
pub struct Library(libraries::Library);

#[pymethods]
impl Library {
    /// Name that the library declares.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }
    /// Version that the library declares; may be empty.
    #[getter]
    fn version(&self) -> &str {
        self.0.version()
    }
    /// The file that was loaded, or the sources that it was built of.
    #[getter]
    fn file(&self) -> &str {
        self.0.file()
    }
    /// Hash that ranks compare: of the file, or of the sources and options.
    #[getter]
    fn hash(&self) -> &str {
        self.0.hash()
    }
    /// The names of its ops.
    #[getter]
    fn ops(&self) -> Vec<&'static str> {
        self.0.ops().iter().map(|op| op.name()).collect()
    }
    fn __repr__(&self) -> String {
        format!("<library {:?}>", self.0)
    }
}

#[pyfunction]
pub fn _load_library(py: Python<'_>, path: PathBuf) -> PyResult<Library> {
    py.detach(|| libraries::load(path)).or_raise(py).map(Library)
}

#[pyfunction]
pub fn _build_library(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    name: Option<String>,
    flags: Vec<String>,
    dependencies: Vec<String>,
    cache: Option<PathBuf>,
    debug: bool,
) -> PyResult<Library> {
    let mut options = BuildOptions::new().debug(debug);
    options = name.iter().fold(options, |o, name| o.name(name));
    options = cache.into_iter().fold(options, |o, folder| o.cache(folder));
    options = flags.iter().fold(options, |o, flag| o.flag(flag));
    options = dependencies.iter().fold(options, |o, line| o.dependency(line));
    // Compilers take seconds.
    py.detach(|| libraries::build_and_load(&sources, options)).or_raise(py).map(Library)
}

#[pyfunction]
pub fn _unload_library(py: Python<'_>, library: &Library) -> PyResult<()> {
    libraries::unload(&library.0).or_raise(py)
}

#[pyfunction]
pub fn _loaded_libraries() -> Vec<Library> {
    libraries::loaded().into_iter().map(Library).collect()
}
