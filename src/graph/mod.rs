//! Graph mode: a training step, or any other closure, captured once and run many times.
//!
//! [`Graph::build`] runs the closure on *symbols*, tensors without data. Its calls are inferred, sharded, boxed and recorded for backward as
//! always, and become a [`Program`]. [`Graph::run`] runs that: without inference, choice or recording, and with
//! the bits of the closure itself.
//!
//! ```
//! use oflow::graph::{Graph, GraphOptions};
//! use oflow::optim::{AdamW, AdamWOptions, Optimizer};
//! use oflow::prelude::*;
//! let w = ones([3, 1], Device::Cpu)?.requires_grad_(true)?;
//! let mut opt = AdamW::new(vec![w.clone()], AdamWOptions { lr: 0.1, ..Default::default() });
//! let (x0, y0) = (zeros([4, 3], Device::Cpu)?, zeros([4, 1], Device::Cpu)?);
//! let mut step = Graph::build(
//!     |g| {
//!         let (x, y) = (g.input("x", &x0)?, g.input("y", &y0)?);
//!         let loss = x.matmul(&w)?.mse_loss(&y)?;
//!         opt.zero_grad();
//!         loss.backward()?;
//!         opt.step()?;
//!         Ok(loss)
//!     },
//!     GraphOptions::default(),
//! )?;
//! assert_eq!(w.to_vec::<f32>()?, [1.0; 3]); // nothing has run yet
//! let (x, y) = (ones([4, 3], Device::Cpu)?, zeros([4, 1], Device::Cpu)?);
//! let first = step.run(&[&x, &y])?.item()?;
//! opt.set_lr(0.01);
//! let second = step.run(&[&x, &y])?.item()?;
//! assert!(second < first);
//! # Ok::<(), oflow::Error>(())
//! ```
//!
//! # What a graph has of the program
//!
//! - **Inputs** ([`GraphBuilder::input`]) are given at each run, with the shape and layout that they were captured with.
//! - **Variables** are the tensors that the closure trains or writes: parameters, running statistics, the state of optimizers. A run reads
//!   and writes the tensors themselves, so checkpoints, and eager code between runs, see them.
//! - **Constants** are other tensors from outside. Their values may not change between runs: then a run is an error, unless the closure
//!   declares them as variables ([`GraphBuilder::variable`]).
//! - **Numbers** of the host are fixed when the graph is captured, but for those of optimizers (rates, numbers of steps, all settings) and of a
//!   [`GradScaler`](crate::optim::GradScaler), which are read at each run, and random numbers, which are drawn as the closure would draw them.
//! - **Sections** that repeat ([`GraphBuilder::repeat`]) are captured once, and are loops of the plan.
//! - Gradients live inside of a run: `grad()` of a parameter is afterwards what it was before.
//!
//! A [`Session`] runs a step as graphs with sources that prepare its inputs on threads of their own, and reads its values behind the runs.
//!
//! # What a closure cannot do
//!
//! Read a value (`item`, `to_vec`, `if` on data), write through a view of a local tensor, keep a tensor that it made, seed a generator, or
//! call an op whose result has a length that depends on values. Each is an error at its line. An input has no gradient there:
//! [`Graph::gradient`] gives the graph of those. After a capture, also after one that failed, every tensor of the program is as before.

mod as_captured;
mod feed;
mod gradient;
mod outputs;
mod repeat;
#[doc(hidden)]
pub mod saved;
mod session;

pub use feed::{Feed, FeedPosition};
pub use outputs::GraphOutput;
pub use repeat::{Iteration, scan};
pub use session::{Session, SessionBuilder, SessionOptions};

use crate::context::current;
use crate::error::{CallSite, Error, Result};
pub use crate::interpreter::{ArenaSize, CudaGraphs, GraphPlan, Living, SourceGuard, source_thread};
use crate::interpreter::{Capture, Captured, GraphRuns, capture};
pub use crate::program::{Effect, Memory, Passes, Size};
use crate::program::{OutsideKind, ParameterRow, Program, Summary, ValueId, variable_name};
use crate::tensor::Tensor;
use crate::trace::{self, What};
use as_captured::AsCaptured;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

/// Options of [`Graph::build`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GraphOptions {
    /// Passes that improve the captured program; all by default.
    pub passes: Passes,
    /// Folder of a saved graph whose plan the captured program takes; none by default.
    pub saved: Option<PathBuf>,
}

impl GraphOptions {
    /// Sets the passes that improve the captured program.
    ///
    /// ```
    /// use oflow::graph::{GraphOptions, Passes};
    /// let as_captured = GraphOptions::default().passes(Passes::none());
    /// let without_one = GraphOptions::default().passes(Passes::default().without("common")?);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[must_use]
    pub fn passes(mut self, passes: Passes) -> GraphOptions {
        self.passes = passes;
        self
    }

    /// Takes what passes and planning have made of the program from a saved graph ([`Graph::save`]). The closure is captured all the same, and
    /// it is an error if it is not the closure of the saved graph; the options of passes and memory are those of that graph.
    ///
    /// ```
    /// use oflow::graph::{Graph, GraphOptions};
    /// use oflow::prelude::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let x = ones([2, 3], Device::Cpu)?;
    /// Graph::build(|g| g.input("x", &x)?.relu(), GraphOptions::default())?.save(folder, &[])?;
    /// // In another process:
    /// let graph = Graph::build(|g| g.input("x", &x)?.relu(), GraphOptions::default().saved(folder))?;
    /// let other = Graph::build(|g| g.input("x", &x)?.exp(), GraphOptions::default().saved(folder));
    /// assert!(other.unwrap_err().to_string().contains("the plan of another program"));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[must_use]
    pub fn saved(mut self, folder: impl Into<PathBuf>) -> GraphOptions {
        self.saved = Some(folder.into());
        self
    }

    /// Sets the memory that the graph may take: what does not fit is computed once more. Results stay the same, bit for bit.
    ///
    /// ```
    /// use oflow::graph::{GraphOptions, Memory};
    /// let options = GraphOptions::default().memory(Memory::Budget(8 << 30));
    /// ```
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> GraphOptions {
        self.passes = self.passes.memory(memory);
        self
    }
}

/// Handle with which the closure of [`Graph::build`] declares inputs.
pub struct GraphBuilder<'a> {
    capture: &'a Capture,
    /// Values that the closure names.
    names: &'a RefCell<Vec<(String, ValueId)>>,
}

impl GraphBuilder<'_> {
    /// Declares an input of the graph and returns the symbol that stands for it. The example gives its shape, dtype and layout; runs give
    /// inputs in the order in which they are declared.
    ///
    /// # Errors
    /// If there is an input of that name, or the example is a tensor of the graph already.
    #[track_caller]
    pub fn input(&self, name: &str, example: &Tensor) -> Result<Tensor> {
        self.capture.input(name, example, CallSite::here())
    }
    /// Declares that runs read the value that the tensor has then. A tensor that the closure writes, or that requires a gradient, is a variable
    /// anyway; another one is a constant, which nobody may write: declare the running statistics of a model that is evaluated while another
    /// graph trains it.
    ///
    /// ```
    /// use oflow::graph::{Graph, GraphOptions};
    /// use oflow::prelude::*;
    /// let mean = zeros([2], Device::Cpu)?;
    /// let x = ones([2], Device::Cpu)?;
    /// let evaluate = |g: &oflow::graph::GraphBuilder<'_>| {
    ///     g.variable(&mean)?;
    ///     g.input("x", &x)?.sub(&mean)
    /// };
    /// let mut evaluate = Graph::build(evaluate, GraphOptions::default())?;
    /// mean.add_(1.0)?;
    /// assert_eq!(evaluate.run(&[&x])?.to_vec::<f32>()?, [0.0; 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a call of the closure has made the tensor.
    #[track_caller]
    pub fn variable(&self, t: &Tensor) -> Result<()> {
        self.capture.variable(t, CallSite::here())
    }
    /// Names the value that a tensor is: one that a call has made, an input, or any tensor that the closure uses. [`Graph::value`] finds it
    /// by its name. Passes keep it.
    ///
    /// # Errors
    /// If there is a value of that name, or the tensor cannot be a value of the graph.
    #[track_caller]
    pub fn name(&self, name: &str, t: &Tensor) -> Result<()> {
        let site = CallSite::here();
        if self.capture.is_in_section() {
            return Err(Error::unsupported(format!("{name:?} names a value inside of a repeated section"))
                .at(site)
                .help("return the value from the section, and name what is collected"));
        }
        let v = self.capture.output(t, site).map_err(|e| e.at(site))?;
        let mut names = self.names.borrow_mut();
        if names.iter().any(|(known, _)| known == name) {
            return Err(Error::argument(format!("the graph has a value {name:?} already")).at(site));
        }
        names.push((name.to_string(), v));
        Ok(())
    }
}

/// How many lines of an arena's peak [`Graph::explain`] gives.
const AT_PEAK: usize = 12;

/// A captured closure: see the [module](self). `O` is what it returns.
pub struct Graph<O = Tensor> {
    /// The program as it was captured.
    captured: AsCaptured,
    effects: Vec<Effect>,
    names: Vec<(String, ValueId)>,
    runs: GraphRuns,
    outputs: PhantomData<fn() -> O>,
}

/// Numbers only: [`explain`](Graph::explain) and [`program`](Graph::program) have the text.
impl<O> fmt::Debug for Graph<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.runs.program();
        let (outside, nodes, outputs) = (program.outside.len(), program.nodes.len(), program.outputs.len());
        f.debug_struct("Graph")
            .field("outside", &outside)
            .field("nodes", &nodes)
            .field("outputs", &outputs)
            .finish_non_exhaustive()
    }
}

impl<O> Graph<O> {
    /// The graph of a captured program.
    fn of(mut captured: Captured, names: Vec<(String, ValueId)>, passes: &Passes) -> Result<Graph<O>> {
        // A pass keeps what is returned, and gives it its new number.
        let returned = captured.program.outputs.len();
        captured.program.outputs.extend(names.iter().map(|(_, v)| *v));
        let as_captured = captured.program.clone();
        let (mut tried, mut tries) = (passes.under(current().planner().model()), 0);
        loop {
            let (mut improved, mut names) = (captured.clone(), names.clone());
            let program = &mut improved.program;
            let effects = tried.run(program)?;
            let kept = program.outputs.split_off(returned);
            names.iter_mut().zip(kept).for_each(|((_, v), kept)| *v = kept);
            let runs = GraphRuns::new(improved, None)?;
            let less = match (passes.budget(), runs.plan()) {
                (Some(budget), Some(plan)) => tried.within((budget, plan.peak()), (runs.program(), &effects), tries)?,
                _ => None,
            };
            match less {
                Some(less) => (tried, tries) = (less, tries + 1),
                None => {
                    let captured = AsCaptured::Program(as_captured);
                    return Ok(Graph { captured, effects, names, runs, outputs: PhantomData });
                }
            }
        }
    }
}

impl<O: GraphOutput> Graph<O> {
    /// Captures a closure: it runs once, on symbols.
    ///
    /// On global tensors every rank captures the same closure; nothing is sent.
    ///
    /// # Errors
    /// Those of the closure, and if it does what a graph cannot do. The error names the line.
    #[track_caller]
    pub fn build(f: impl FnOnce(&GraphBuilder<'_>) -> Result<O>, options: GraphOptions) -> Result<Graph<O>> {
        let (site, GraphOptions { passes, saved }) = (CallSite::here(), options);
        let names = RefCell::default();
        let captured = capture(
            |capture| {
                let mut outputs = vec![];
                f(&GraphBuilder { capture, names: &names })?.take(&mut outputs);
                outputs.iter().map(|t| capture.output(t, site)).collect()
            },
            site,
        )?;
        match saved {
            None => Graph::of(captured, names.into_inner(), &passes),
            Some(folder) => Graph::of_saved(captured, names.into_inner(), &folder),
        }
        .map_err(|e| e.at(site))
    }

    /// Runs the graph on inputs, in the order in which they were declared.
    ///
    /// # Errors
    /// If an input has another shape, dtype or layout than the graph was captured with, if a constant was written since, and what the calls
    /// of the graph report, at their lines.
    #[track_caller]
    pub fn run(&mut self, inputs: &[&Tensor]) -> Result<O> {
        let site = CallSite::here();
        let begin = trace::begin();
        let outs = self.runs.run(inputs, &|| self.captured.program(), site)?;
        begin.end(site, || What::Graph);
        O::give(&mut outs.into_iter())
            .ok_or_else(|| Error::registry("a graph returns fewer tensors than its closure").at(site))
    }

    /// Returns the value of that name: an input, or one that [`GraphBuilder::name`] has named.
    pub fn value(&self, name: &str) -> Option<ValueId> {
        let named = self.names.iter().find(|(known, _)| known == name).map(|(_, v)| *v);
        named.or_else(|| self.program().input(name))
    }

    /// Returns what each pass has done to the captured program.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Returns the captured program, as the passes left it.
    pub fn program(&self) -> &Program {
        self.runs.program()
    }

    /// Describes the graph: how many values it has from outside, calls and boxings, what the passes did, the plan of this rank,
    /// and the program's text.
    pub fn explain(&self) -> String {
        let program = self.program();
        let (sections, count) = (program.sections(), |kind| program.outside_of(kind).count());
        let nodes = || program.nodes.iter().chain(sections.iter().flat_map(|s| &s.body.nodes));
        let boxings = nodes().filter(|n| n.is_boxing()).count();
        let mut text = format!(
            "{} inputs, {} variables, {} constants; {} nodes, {boxings} of them boxings, {} in backward, {} of those recomputed\n",
            count(OutsideKind::Input),
            count(OutsideKind::Variable),
            count(OutsideKind::Constant),
            nodes().count(),
            nodes().filter(|n| n.backward).count(),
            nodes().filter(|n| n.recomputed).count(),
        );
        for s in &sections {
            let (nodes, site) = (s.body.nodes.len(), s.node.site);
            text.push_str(&format!("repeat: time shape {:?}, {nodes} nodes at {site}\n", s.time_shape.as_slice()));
        }
        self.effects.iter().for_each(|e| text.push_str(&format!("pass {e}\n")));
        if let Some(plan) = self.plan() {
            text.push_str(&format!("plan: {plan}\n"));
            text.push_str(&format!("peak: {} bytes, {} of them from outside\n", plan.peak(), plan.outside));
            for l in plan.arenas.iter().flat_map(|a| &a.at_peak).take(AT_PEAK) {
                text.push_str(&format!("at the peak: {} bytes, {} of {} at {}\n", l.bytes, l.parts, l.op, l.site));
            }
        }
        text.push_str(&program.to_string());
        text
    }

    /// Returns what the graph consists of, by module: results with their layouts, multiplications, what boxings send, forward and backward
    /// together; and the variables with their layouts and this rank's bytes. A variable has the name of the module and the line that use it
    /// first.
    pub fn summary(&self) -> Summary {
        let (program, ctx) = (self.program(), current());
        let variables = program.outside.iter().filter(|o| o.kind == OutsideKind::Variable).map(|o| {
            let row = ParameterRow::new(&variable_name(o.site), program.ty(o.value), true, ctx.rank());
            (row, Some(o.value))
        });
        Summary::of(program, variables.collect(), (ctx.rank(), ctx.planner()))
    }

    /// Returns what this rank needs to run the graph; `None` where runs are call by call (`OFLOW_GRAPH=replay`).
    pub fn plan(&self) -> Option<GraphPlan> {
        self.runs.plan()
    }
}
