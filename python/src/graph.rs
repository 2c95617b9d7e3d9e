//! Captured functions: `oflow.graph`. Arguments, results and the graphs of one function are in `oflow/_graph.py`.

use crate::autograd::tensors;
use crate::checkpoint::{loading, saving};
use crate::errors::{OrRaise, from_callback};
use crate::tensor::Tensor;
use crate::{context, site, summary};
use oflow::graph::{Graph, GraphOptions, Memory, Passes, scan};
use oflow::program::OutsideKind;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A captured function of a list of tensors, which returns a list of tensors.
#[pyclass(frozen, module = "oflow", name = "_Graph")]
pub struct _Graph {
    graph: Mutex<Graph<Vec<oflow::Tensor>>>,
}

fn list<'py>(py: Python<'py>, all: Vec<oflow::Tensor>) -> PyResult<Bound<'py, PyList>> {
    let objects = all.into_iter().map(|t| Py::new(py, Tensor::of(t))).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, objects)
}

/// The passes that a program switches on and off: all, none, or by name.
#[derive(FromPyObject)]
pub enum Switches {
    All(bool),
    Named(BTreeMap<String, bool>),
}

/// Memory that a graph may take: a number of bytes, `"cheap"` or `"least"`.
#[derive(FromPyObject)]
pub enum Most {
    Bytes(usize),
    Word(String),
}

impl Switches {
    fn passes(self, memory: Most) -> oflow::Result<Passes> {
        let memory = match memory {
            Most::Bytes(bytes) => Memory::Budget(bytes),
            Most::Word(word) => word.parse()?,
        };
        let passes = match self {
            Switches::All(true) => Passes::default(),
            Switches::All(false) => Passes::none(),
            Switches::Named(named) => named.into_iter().try_fold(Passes::default(), |passes, (name, on)| {
                let without = passes.clone().without(&name)?;
                Ok::<_, oflow::Error>(if on { passes } else { without })
            })?,
        };
        Ok(passes.memory(memory))
    }
}

/// A plan as Python is told it: kernels, boxings, nodes on tensors, peak, bytes from outside, and of each arena the device, bytes and bound.
type Plan = (usize, usize, usize, usize, usize, Vec<(String, usize, usize)>);

#[pymethods]
impl _Graph {
    /// Captures `body`, which is given symbols like the examples.
    #[new]
    fn new(
        py: Python<'_>,
        names: Vec<String>,
        examples: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
        passes: (Switches, Most),
        variables: &Bound<'_, PyAny>,
    ) -> PyResult<_Graph> {
        context::enter(py)?;
        let variables = tensors(variables, "the variables of a graph")?;
        let (switches, memory) = passes;
        let passes = switches.passes(memory).or_raise(py)?;
        let examples = tensors(examples, "the inputs of a graph")?;
        let scope = site::caller(py).scope();
        let built = Graph::build(
            |g| {
                let inputs: oflow::Result<Vec<oflow::Tensor>> =
                    names.iter().zip(&examples).map(|(name, t)| g.input(name, t)).collect();
                let inputs = inputs?;
                variables.iter().try_for_each(|t| g.variable(t))?;
                // Its calls have lines of their own.
                drop(scope);
                let made = || tensors(&body.call1((list(py, inputs)?,))?, "the results of a graph");
                made().map_err(from_callback)
            },
            GraphOptions::default().passes(passes),
        );
        Ok(_Graph { graph: Mutex::new(built.or_raise(py)?) })
    }
    /// Runs the graph on inputs.
    fn run<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        context::enter(py)?;
        let (inputs, site) = (tensors(inputs, "the inputs of a graph")?, site::caller(py));
        let outs = py.detach(|| {
            let _scope = site.scope();
            let refs: Vec<&oflow::Tensor> = inputs.iter().collect();
            self.graph.lock().unwrap_or_else(PoisonError::into_inner).run(&refs)
        });
        list(py, outs.or_raise(py)?)
    }
    /// Saves the program and the plan of this rank to a folder; `state` names its tensors and optimizers.
    fn save(&self, py: Python<'_>, folder: PathBuf, state: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<()> {
        saving(py, state, |state| self.graph.lock().unwrap_or_else(PoisonError::into_inner).save(&folder, state))
    }
    /// Loads what `save` has written.
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf, state: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<_Graph> {
        let (graph, _) = loading(py, state, |state| Graph::load(&folder, state))?;
        Ok(_Graph { graph: Mutex::new(graph) })
    }
    /// The names of the inputs.
    fn inputs(&self) -> Vec<String> {
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        graph.program().outside_of(OutsideKind::Input).map(|o| o.name.clone()).collect()
    }
    /// The plan of this rank; None where runs are call by call.
    fn plan(&self) -> Option<Plan> {
        let plan = self.graph.lock().unwrap_or_else(PoisonError::into_inner).plan()?;
        let arenas = plan.arenas.iter().map(|a| (a.device.to_string(), a.bytes, a.bound)).collect();
        Some((plan.kernels, plan.boxings, plan.stepwise, plan.peak(), plan.outside, arenas))
    }
    /// The summary of the graph by module, as a text and as JSON.
    fn summary(&self) -> PyResult<(String, String)> {
        summary::told(&self.graph.lock().unwrap_or_else(PoisonError::into_inner).summary())
    }
    /// The description of the graph.
    fn explain(&self) -> String {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner).explain()
    }
}

/// A loop that carries tensors: `body` is given lists of the carried ones and of the slices, and returns lists of the next ones and of what is
/// collected. A section of the graph that is captured, if one is.
#[pyfunction]
pub fn _scan<'py>(
    py: Python<'py>,
    length: usize,
    init: &Bound<'py, PyAny>,
    xs: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    context::enter(py)?;
    let init = tensors(init, "the carried values of a scan")?;
    let xs = tensors(xs, "the values that a scan slices")?;
    let caller = site::caller(py);
    let scope = std::cell::RefCell::new(Some(caller.scope()));
    let scanned = scan(length, init, |i, carried: Vec<oflow::Tensor>| {
        let slices = xs.iter().map(|x| i.of(x)).collect::<oflow::Result<Vec<_>>>()?;
        // Its calls have lines of their own.
        let line = scope.borrow_mut().take();
        drop(line);
        let made = || -> PyResult<(Vec<oflow::Tensor>, Vec<oflow::Tensor>)> {
            let made = body.call1((list(py, carried)?, list(py, slices)?))?;
            let (next, outs): (Bound<'_, PyAny>, Bound<'_, PyAny>) = made.extract()?;
            Ok((tensors(&next, "carried values")?, tensors(&outs, "collected values")?))
        };
        let made = made().map_err(from_callback)?;
        scope.replace(Some(caller.scope()));
        Ok(made)
    });
    let (carried, outs) = scanned.or_raise(py)?;
    Ok((list(py, carried)?, list(py, outs)?))
}
