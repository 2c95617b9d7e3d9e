//! Sessions: a step as graphs, with sources of its inputs and readers of its values.

use super::feed::Feeding;
use super::{Feed, FeedPosition, Graph, GraphBuilder, GraphOptions, GraphOutput, Memory, Passes};
use crate::context::{described, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::plan::TypeRef;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Options of a [`Session`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Passes that improve captured programs; all by default.
    pub passes: Passes,
    /// Most graphs that the session keeps, one for each kind of inputs; 8 by default.
    pub graphs: usize,
    /// Runs of one call of [`Session::run`]; 1 by default.
    pub runs_per_call: usize,
    /// Most batches of a source that wait for their run; 2 by default. One more is being made.
    pub ahead: usize,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions { passes: Passes::default(), graphs: 8, runs_per_call: 1, ahead: 2 }
    }
}

impl SessionOptions {
    /// Sets the memory that each captured program may take: see [`GraphOptions::memory`].
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> SessionOptions {
        self.passes = self.passes.memory(memory);
        self
    }
}

/// Makes setters of options.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $ty:ty;)*) => {
        impl SessionOptions {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $ty) -> SessionOptions {
                self.$name = $name;
                self
            })*
        }
    };
}
setters! {
    /// Sets the passes that improve captured programs.
    passes: Passes;
    /// Sets how many graphs the session keeps at most.
    graphs: usize;
    /// Sets how many runs a call of [`Session::run`] makes.
    runs_per_call: usize;
    /// Sets how many batches of a source may wait for their run.
    ahead: usize;
}

/// Values of a name that are read behind the runs.
struct Fetch {
    name: String,
    every: u64,
    read: VecDeque<(u64, Tensor)>,
}

/// Inputs of a run, by name. Sources come first, in the order in which they were added.
type Inputs = Vec<(Arc<str>, Tensor)>;

/// A graph, with the kind of inputs and the modes that it was captured for.
struct Kept {
    types: Vec<(Arc<str>, TypeRef)>,
    modes: Vec<String>,
    graph: Graph<Vec<Tensor>>,
    /// Places of the graph's inputs among those of a run.
    order: Vec<usize>,
}

/// A step that is run as a graph, with sources that make its inputs ahead of the runs and values that are read behind them.
///
/// [`Session::run`] takes the step's closure, which is called once for each kind of inputs (names, shapes, dtypes and layouts), on symbols:
/// what [`Graph`] says of closures holds. Give the same closure to every call. The session keeps the graphs of the kinds that were used last,
/// [`SessionOptions::graphs`] of them; another kind takes the place of the one that was used longest ago, and is captured again if it
/// returns. Graphs and sessions share parameters, and checkpoints of a program do not show which of them ran.
///
/// ```
/// use oflow::data::{Loader, Stream};
/// use oflow::graph::{Session, SessionOptions};
/// use oflow::optim::{Optimizer, Sgd, SgdOptions};
/// use oflow::prelude::*;
/// use std::sync::Arc;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let w = zeros([2, 1], (&mesh, sbp![B]))?.requires_grad_(true)?;
/// let mut opt = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.05, ..Default::default() });
/// let rows = Loader::new(&mesh, 4)
///     .column((0..16).map(|i| (i % 5) as f32).collect(), &[2])?
///     .column((0..8).map(|i| i as f32).collect(), &[1])?;
/// let mut train = Session::new(SessionOptions::default());
/// train.feed(&["x", "y"], Stream::new(Arc::new(rows)))?;
/// train.fetch("loss", 2)?; // of every second run
/// let mut losses = vec![];
/// for step in 0..10 {
///     opt.set_lr(0.05 / (1.0 + step as f64));
///     train.run(&[], |s| {
///         let loss = s.input("x")?.matmul(&w)?.mse_loss(&s.input("y")?)?;
///         opt.zero_grad();
///         loss.backward()?;
///         opt.step()?;
///         s.name("loss", &loss)
///     })?;
///     losses.extend(train.fetched("loss")?); // without waiting for the run that has just begun
/// }
/// train.finish();
/// losses.extend(train.fetched("loss")?);
/// assert_eq!(losses.iter().map(|(run, _)| *run).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
/// assert!(losses[4].1.item()? < losses[0].1.item()?);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Session {
    options: SessionOptions,
    feeds: Vec<RefCell<Feeding>>,
    fetches: Vec<Fetch>,
    /// Graphs by their last use; the latest stands last.
    graphs: Vec<Kept>,
    /// Runs that have been made.
    runs: u64,
    ended: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (feeds, fetches, graphs) = (self.feeds.len(), self.fetches.len(), self.graphs.len());
        let mut text = f.debug_struct("Session");
        text.field("feeds", &feeds).field("fetches", &fetches).field("graphs", &graphs).field("runs", &self.runs);
        text.finish_non_exhaustive()
    }
}

impl Session {
    /// Makes a session without sources.
    pub fn new(options: SessionOptions) -> Session {
        Session { options, feeds: vec![], fetches: vec![], graphs: vec![], runs: 0, ended: false }
    }

    /// Feeds inputs of these names from a source, which a thread of its own asks ahead of the runs from the first run on: any iterator of
    /// results with tensors, or a [`Stream`](crate::data::Stream). A run takes from every source; the session ends with the first source that
    /// ends. On several ranks every rank feeds the same number of batches.
    ///
    /// Dropping the session stops the thread; it waits for the batch that is being made.
    ///
    /// # Errors
    /// If an input has a source already.
    #[track_caller]
    pub fn feed(&mut self, names: &[&str], source: impl Feed) -> Result<()> {
        let site = CallSite::here();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) || self.feeding(name).is_some() {
                return Err(Error::argument(format!("input {name:?} has a source already")).at(site));
            }
        }
        self.feeds.push(RefCell::new(Feeding::new(names, Box::new(source))));
        Ok(())
    }

    /// Reads the value that the step names `name` ([`SessionBuilder::name`]), of every `every`th run: the first, then each `every` runs later.
    /// Call it before the first run; a graph that was captured before is captured again.
    ///
    /// # Errors
    /// If the name is read already, or `every` is 0.
    #[track_caller]
    pub fn fetch(&mut self, name: &str, every: u64) -> Result<()> {
        let site = CallSite::here();
        if self.fetches.iter().any(|f| f.name == name) {
            return Err(Error::argument(format!("the value {name:?} is fetched already")).at(site));
        }
        if every == 0 {
            return Err(Error::argument(format!("the value {name:?} is to be fetched every 0 runs"))
                .at(site)
                .help("1 fetches it in each run"));
        }
        self.fetches.push(Fetch { name: name.to_string(), every, read: VecDeque::new() });
        self.graphs.clear();
        Ok(())
    }

    /// Runs the step on the next batch of each source and on the inputs that are given by name, [`SessionOptions::runs_per_call`] times.
    /// Returns what the step returns in the last run; `None`, without a run, after a source has ended.
    ///
    /// # Errors
    /// - Those of a source, at the line where it failed; a session does not go on after one.
    /// - The step has no input of a name that is fed or given, or it has one that is neither; it names no value that is fetched.
    /// - What [`Graph::build`] and [`Graph::run`] report.
    #[track_caller]
    pub fn run<O: GraphOutput>(
        &mut self,
        given: &[(&str, &Tensor)],
        mut step: impl FnMut(&SessionBuilder<'_>) -> Result<O>,
    ) -> Result<Option<O>> {
        let site = CallSite::here();
        if self.options.runs_per_call == 0 || self.options.graphs == 0 {
            return Err(Error::argument("a session makes 0 runs a call, or keeps 0 graphs").at(site));
        }
        let mut last = None;
        for _ in 0..self.options.runs_per_call {
            let Some(inputs) = self.inputs(given).map_err(|e| e.at(site))? else { break };
            last = Some(self.run_on(&inputs, &mut step, site)?);
        }
        Ok(last)
    }

    /// Returns the values of a fetched name that have been read, with the number of their run, from 0, in order. Those of the last run are
    /// among them only after the session has ended, by a source or by [`finish`](Session::finish): so reading them waits for no run that
    /// has just begun. A global value is whole on each rank of its placement.
    ///
    /// # Errors
    /// If the name is not fetched.
    #[track_caller]
    pub fn fetched(&mut self, name: &str) -> Result<Vec<(u64, Tensor)>> {
        let before = if self.ended { self.runs } else { self.runs.saturating_sub(1) };
        let Some(fetch) = self.fetches.iter_mut().find(|f| f.name == name) else {
            return Err(Error::argument(format!("the value {name:?} is not fetched"))
                .at(CallSite::here())
                .help("fetch it before the runs"));
        };
        let known = fetch.read.iter().take_while(|(run, _)| *run < before).count();
        Ok(fetch.read.drain(..known).collect())
    }

    /// Ends the session: stops the threads of its sources. There are no further runs.
    pub fn finish(&mut self) {
        self.ended = true;
        self.feeds.iter_mut().for_each(|feed| feed.get_mut().end());
    }

    /// Returns the position of the source of an input, for checkpoints to save and load. It does not count batches that were made ahead.
    ///
    /// # Errors
    /// If the input has no source, or the source no position: an iterator has none, a [`Stream`](crate::data::Stream) has one.
    #[track_caller]
    pub fn position(&self, name: &str) -> Result<FeedPosition<'_>> {
        let site = CallSite::here();
        let Some(feed) = self.feeding(name) else {
            return Err(Error::argument(format!("input {name:?} has no source")).at(site));
        };
        if !feed.borrow_mut().has_position() {
            return Err(Error::argument(format!("the source of {name:?} has no position that can be saved"))
                .at(site)
                .help("feed a `Stream` of a loader"));
        }
        Ok(FeedPosition(feed))
    }

    /// Returns the number of runs that have been made.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns the graphs that the session keeps; the one that was used last is the last.
    pub fn graphs(&self) -> impl Iterator<Item = &Graph<Vec<Tensor>>> {
        self.graphs.iter().map(|kept| &kept.graph)
    }

    fn feeding(&self, name: &str) -> Option<&RefCell<Feeding>> {
        self.feeds.iter().find(|f| f.borrow().names.iter().any(|n| **n == *name))
    }

    /// The inputs of the next run; `None` at the end.
    fn inputs(&mut self, given: &[(&str, &Tensor)]) -> Result<Option<Inputs>> {
        let mut all: Inputs = vec![];
        if self.ended {
            return Ok(None);
        }
        for feed in &mut self.feeds {
            let feed = feed.get_mut();
            let Some(tensors) = feed.take(self.options.ahead)? else {
                self.finish();
                return Ok(None);
            };
            all.extend(feed.names.iter().cloned().zip(tensors));
        }
        for (name, tensor) in given {
            if all.iter().any(|(known, _)| **known == **name) {
                return Err(Error::argument(format!("input {name:?} is given twice, or has a source")));
            }
            all.push((Arc::from(*name), (*tensor).clone()));
        }
        Ok(Some(all))
    }

    /// Runs the step on inputs.
    fn run_on<O: GraphOutput>(
        &mut self,
        inputs: &Inputs,
        step: &mut impl FnMut(&SessionBuilder<'_>) -> Result<O>,
        site: CallSite,
    ) -> Result<O> {
        let modes = described();
        let kept = match self.graphs.iter().position(|kept| kept.fits(inputs, &modes)) {
            Some(at) => self.graphs.remove(at),
            None => self.capture(inputs, modes, step, site)?,
        };
        self.graphs.push(kept);
        if self.graphs.len() > self.options.graphs {
            self.graphs.remove(0);
        }
        let Some(kept) = self.graphs.last_mut() else { return Err(lost(site)) };
        let _line = site.scope();
        let ordered: Vec<&Tensor> = kept.order.iter().map(|i| &inputs[*i].1).collect();
        let mut outs = kept.graph.run(&ordered)?;
        let read = outs.split_off(outs.len().saturating_sub(self.fetches.len()));
        for (fetch, t) in self.fetches.iter_mut().zip(read) {
            if self.runs.is_multiple_of(fetch.every) {
                fetch.read.push_back((self.runs, whole(&t)?));
            }
        }
        self.runs += 1;
        O::give(&mut outs.into_iter()).ok_or_else(|| lost(site))
    }

    /// Captures the step for this kind of inputs.
    fn capture<O: GraphOutput>(
        &self,
        inputs: &Inputs,
        modes: Vec<String>,
        step: &mut impl FnMut(&SessionBuilder<'_>) -> Result<O>,
        site: CallSite,
    ) -> Result<Kept> {
        let types = inputs.iter().map(|(name, t)| Some((name.clone(), t.type_ref()?))).collect::<Option<Vec<_>>>();
        let types = types.ok_or_else(|| Error::argument("an input of the step has no data").at(site))?;
        let mut order = vec![];
        let line = site.scope();
        let graph = Graph::build(
            |g| {
                // The step's calls have lines of their own.
                drop(line);
                let builder = SessionBuilder { graph: g, inputs, order: RefCell::default(), named: RefCell::default() };
                let mut outs = vec![];
                step(&builder)?.take(&mut outs);
                builder.check_all_used()?;
                for fetch in &self.fetches {
                    outs.push(builder.named(&fetch.name)?);
                }
                order = builder.order.take();
                Ok(outs)
            },
            GraphOptions::default().passes(self.options.passes.clone()),
        );
        Ok(Kept { types, modes, graph: graph.map_err(|e| e.at(site))?, order })
    }
}

fn lost(site: CallSite) -> Error {
    Error::registry("a graph of a session returns fewer tensors than its step").at(site)
}

/// A value of its own that is whole on each rank: what the step names may be a tensor that later runs write.
fn whole(t: &Tensor) -> Result<Tensor> {
    let _quiet = no_grad();
    match t.global().map(|g| (NdSbp::broadcast(g.placement.axes()), &g.sbp)) {
        Some((whole, sbp)) if whole != *sbp => t.to_global(whole),
        _ => t.copy(),
    }
}

impl Kept {
    fn fits(&self, inputs: &Inputs, modes: &[String]) -> bool {
        let mut pairs = self.types.iter().zip(inputs);
        self.modes == modes
            && self.types.len() == inputs.len()
            && pairs.all(|((name, ty), (other, t))| name == other && t.type_ref().is_some_and(|t| t.same(ty)))
    }
}

/// Handle with which the step of a [`Session`] takes its inputs and names values.
pub struct SessionBuilder<'a> {
    graph: &'a GraphBuilder<'a>,
    inputs: &'a Inputs,
    /// Inputs that the step has taken.
    order: RefCell<Vec<usize>>,
    named: RefCell<Vec<(String, Tensor)>>,
}

impl SessionBuilder<'_> {
    /// Returns the symbol that stands for the input of that name, which a source feeds or a run is given.
    ///
    /// # Errors
    /// If there is no such input, or the step has taken it already.
    #[track_caller]
    pub fn input(&self, name: &str) -> Result<Tensor> {
        let site = CallSite::here();
        let Some(at) = self.inputs.iter().position(|(known, _)| **known == *name) else {
            let there = names(self.inputs.iter().map(|(name, _)| &**name));
            return Err(Error::argument(format!("input {name:?} of the step has no source and is not given"))
                .at(site)
                .help(format!("feed it, or give it to `run`; there are {there}")));
        };
        let symbol = self.graph.input(name, &self.inputs[at].1)?;
        self.order.borrow_mut().push(at);
        Ok(symbol)
    }

    /// Declares that runs read the value that the tensor has then: see [`GraphBuilder::variable`].
    ///
    /// # Errors
    /// If a call of the step has made the tensor.
    #[track_caller]
    pub fn variable(&self, t: &Tensor) -> Result<()> {
        self.graph.variable(t)
    }

    /// Names the value that a tensor is, for [`Session::fetch`] and [`Graph::value`].
    ///
    /// # Errors
    /// If there is a value of that name, or the tensor cannot be a value of the graph.
    #[track_caller]
    pub fn name(&self, name: &str, t: &Tensor) -> Result<()> {
        self.graph.name(name, t)?;
        self.named.borrow_mut().push((name.to_string(), t.clone()));
        Ok(())
    }

    pub(super) fn graph(&self) -> &GraphBuilder<'_> {
        self.graph
    }

    fn check_all_used(&self) -> Result<()> {
        let order = self.order.borrow();
        match self.inputs.iter().enumerate().find(|(i, _)| !order.contains(i)) {
            None => Ok(()),
            Some((_, (name, _))) => {
                let taken = names(order.iter().map(|i| &*self.inputs[*i].0));
                Err(Error::argument(format!(
                    "the step has no input {name:?}, which a source feeds or the run is given"
                ))
                .help(format!("it takes {taken}: take the input in the step, or leave out its source")))
            }
        }
    }

    fn named(&self, name: &str) -> Result<Tensor> {
        let named = self.named.borrow();
        named.iter().find(|(known, _)| known == name).map(|(_, t)| t.clone()).ok_or_else(|| {
            let there = names(named.iter().map(|(name, _)| &**name));
            Error::argument(format!("the step names no value {name:?}, which is fetched"))
                .help(format!("name it in the step, which names {there}"))
        })
    }
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = all.map(|name| format!("{name:?}")).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}
