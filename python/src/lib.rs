//! `oflow._oflow`, the part of the Python module that is written in Rust.
//!
//! Functions are not written here: they are the rows of [`oflow::functional::functions`]. [`call`] tells the way of a call: from
//! [`trampolines`] through [`args`], which makes arguments of objects, to [`results`], which makes objects of results. `unsafe` is in
//! [`trampolines`], [`site`], [`ffi`] and [`owned`] only.
//!
//! `optim`, `checkpoint`, `loader` and `nn` wrap the rooms of the library of those names. Modules, groups of parameters
//! and the sections of checkpoints are written in Python. A call site is a Python line (`site`). Memory is shared with
//! NumPy and through DLPack (`data`, `dlpack`). `cargo xtask codegen` writes the stubs.

#![deny(unsafe_code)]

mod args;
mod autograd;
mod call;
mod call_text;
mod checkpoint;
mod comm_trace;
mod composed;
mod context;
mod data;
mod dispatch_hooks;
mod display;
mod dlpack;
mod errors;
#[allow(unsafe_code)]
mod ffi;
mod function;
mod graph;
mod guards;
mod job;
mod keywords;
mod libraries;
mod loader;
mod log;
mod memory;
mod modes;
mod nn;
mod op_call;
mod operators;
mod ops;
mod optim;
mod out;
#[allow(unsafe_code)]
mod phrases;
mod place;
mod profile;
mod read;
mod results;
mod shared;
mod signature;
#[allow(unsafe_code)]
mod site;
mod summary;
mod tensor;
mod tensor_methods;
#[allow(unsafe_code)]
mod trampolines;
mod types;
mod words;

use errors::OrRaise;
use function::Function;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Names of all functions of the table, those of ops that were registered later included, sorted.
#[pyfunction]
fn _function_names() -> Vec<String> {
    let mut all: Vec<String> = oflow::functional::functions().into_iter().map(|d| d.sig.name).collect();
    all.sort();
    all.dedup();
    all
}

/// The texts of the overloads of a function.
#[pyfunction]
fn _signatures(py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
    Ok(oflow::functional::overloads(name).or_raise(py)?.iter().map(|d| d.sig.to_string()).collect())
}

/// The function of a name: of the table, or of an op.
#[pyfunction]
fn _function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let function = Py::new(py, Function::find(name).or_raise(py)?)?;
    trampolines::function_object(py, &function, "oflow")
}

/// Whether a function takes a tensor first, so that it is a method of tensors.
fn is_method(defs: &[oflow::functional::FnDef]) -> bool {
    use oflow::ops::ParamKind::Tensor;
    defs.iter().any(|d| d.sig.params.first().is_some_and(|p| p.kind == Tensor))
}

#[pymodule]
fn _oflow(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    // Their functions are in the domains `fft` and `linalg`: `oflow.linalg.svd`.
    oflow_fft::register().or_raise(py)?;
    oflow_linalg::register().or_raise(py)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<tensor::Tensor>()?;
    m.add_class::<types::DType>()?;
    m.add_class::<types::Device>()?;
    m.add_class::<types::Placement>()?;
    m.add_class::<types::Sbp>()?;
    m.add_class::<types::Generator>()?;
    m.add_class::<Function>()?;
    m.add_class::<libraries::Library>()?;
    m.add_class::<op_call::OpCall>()?;
    m.add_class::<dispatch_hooks::WatchedCall>()?;
    m.add_class::<graph::_Graph>()?;
    m.add_function(wrap_pyfunction!(graph::_scan, m)?)?;
    m.add_class::<nn::_Replicas>()?;
    m.add_class::<optim::_Optimizer>()?;
    m.add_class::<optim::_Lbfgs>()?;
    m.add_class::<optim::_Ema>()?;
    m.add_class::<optim::GradScaler>()?;
    m.add_class::<checkpoint::_CheckpointManager>()?;
    m.add_class::<checkpoint::_Checkpoint>()?;
    m.add_class::<log::_Log>()?;
    m.add_class::<loader::_Loader>()?;
    m.add_class::<profile::_Profile>()?;
    m.add_class::<profile::_BatchPlace>()?;
    m.add_class::<profile::_BatchTimer>()?;
    m.add_class::<loader::Stream>()?;
    types::add_dtypes(m)?;
    types::add_memory_formats(m)?;
    let functions = [
        wrap_pyfunction!(_function_names, m)?,
        wrap_pyfunction!(_signatures, m)?,
        wrap_pyfunction!(_function, m)?,
        wrap_pyfunction!(site::_set_package, m)?,
        wrap_pyfunction!(data::tensor, m)?,
        wrap_pyfunction!(data::from_numpy, m)?,
        wrap_pyfunction!(dlpack::from_dlpack, m)?,
        wrap_pyfunction!(autograd::grad, m)?,
        wrap_pyfunction!(autograd::_backward, m)?,
        wrap_pyfunction!(autograd::_apply_custom, m)?,
        wrap_pyfunction!(comm_trace::take_comm_trace, m)?,
        wrap_pyfunction!(comm_trace::report, m)?,
        wrap_pyfunction!(profile::mark_step, m)?,
        wrap_pyfunction!(comm_trace::_with_sbp, m)?,
        wrap_pyfunction!(ops::_register_op, m)?,
        wrap_pyfunction!(composed::_register_function, m)?,
        wrap_pyfunction!(ops::_conformance, m)?,
        wrap_pyfunction!(libraries::_load_library, m)?,
        wrap_pyfunction!(libraries::_build_library, m)?,
        wrap_pyfunction!(libraries::_unload_library, m)?,
        wrap_pyfunction!(libraries::_loaded_libraries, m)?,
        wrap_pyfunction!(context::init, m)?,
        wrap_pyfunction!(context::is_initialized, m)?,
        wrap_pyfunction!(context::_finish, m)?,
        wrap_pyfunction!(context::rank, m)?,
        wrap_pyfunction!(context::world_size, m)?,
        wrap_pyfunction!(context::manual_seed, m)?,
        wrap_pyfunction!(context::_generators, m)?,
        wrap_pyfunction!(context::_set_generators, m)?,
        wrap_pyfunction!(context::barrier, m)?,
        wrap_pyfunction!(memory::memory_stats, m)?,
        wrap_pyfunction!(memory::reset_peak_memory, m)?,
        wrap_pyfunction!(memory::_memory_report, m)?,
        wrap_pyfunction!(summary::_summarize, m)?,
        wrap_pyfunction!(modes::_enter, m)?,
        wrap_pyfunction!(modes::_leave, m)?,
        wrap_pyfunction!(modes::_modes, m)?,
        wrap_pyfunction!(modes::is_grad_enabled, m)?,
        wrap_pyfunction!(job::_report_failure, m)?,
        wrap_pyfunction!(job::_forked, m)?,
        wrap_pyfunction!(job::_rank_variables, m)?,
        wrap_pyfunction!(nn::_leaf, m)?,
        wrap_pyfunction!(nn::_relayout, m)?,
        wrap_pyfunction!(nn::_replaced, m)?,
        wrap_pyfunction!(nn::_zero, m)?,
        wrap_pyfunction!(nn::_draw, m)?,
        wrap_pyfunction!(types::_sbps, m)?,
        wrap_pyfunction!(phrases::_in_python, m)?,
        wrap_pyfunction!(optim::_clip_grad_norm, m)?,
        wrap_pyfunction!(checkpoint::_save_file, m)?,
        wrap_pyfunction!(checkpoint::_load_file, m)?,
        wrap_pyfunction!(log::_log, m)?,
        wrap_pyfunction!(log::_flush_log, m)?,
    ];
    for f in functions {
        m.add_function(f)?;
    }
    let class = py.get_type::<tensor::Tensor>();
    // What the class says itself stays: properties, and methods with options of their own.
    let own = class.dir()?;
    let (mut methods, names) = (vec![], PyList::empty(py));
    for name in _function_names().into_iter().filter(|n| !n.contains('.')) {
        names.append(&name)?;
        if is_method(&oflow::functional::overloads(&name).or_raise(py)?) && !own.contains(&name)? {
            methods.push(Py::new(py, Function::find(&name).or_raise(py)?)?);
        }
    }
    trampolines::add_methods(&class, methods)?;
    for name in names.iter() {
        let name: String = name.extract()?;
        // `oflow.sbp` is a module, as `oflow.dtype` is a class; `oflow.functional` has the functions of these names.
        if name == "sbp" || m.hasattr(name.as_str())? {
            continue;
        }
        m.add(name.as_str(), _function(py, &name)?)?;
    }
    m.add("_names", names)
}
