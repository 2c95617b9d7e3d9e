//! Runs of a captured program: planned, or call by call with the plans that its signatures say. Both give the bits that the captured calls
//! give when they are made by the program itself, and neither records for backward.
//!
//! A run is call by call ("replay") where somebody observes calls (hooks, lists of calls, boxing policies, the search for NaN, checks of
//! data), where tensors from outside share memory that the program writes or an input that it writes has strides, and where
//! `OFLOW_GRAPH=replay` says so.
//!
//! Before the first run ranks compare their programs (`graph_check.rs`).
//!
//! The dispatch stream has one entry for the run, one for each node for which ranks exchange something, and one for the numbers of each
//! host object that calls on global tensors read; kernels alone have none. So a planned run of one rank and a replay of another agree. Both tell
//! the recorder which node they have come to.

use super::capture::Captured;
use super::graph_check::compare;
use super::planned::{Fits, GraphPlan, PlanRecord, Planned};
use super::replay::{Replay, RunState};
use crate::context::{DataCheck, Moments, Policy, RankCtx, current, is_observed, no_grad, nothing_asked, policy};
use crate::control::flight::{GraphNodes, GraphRun};
use crate::error::{CallSite, Error, Result};
use crate::memory::{MemoryOwner, MemoryUse};
use crate::ops::Op;
use crate::program::Program;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// A captured program that runs.
pub(crate) struct GraphRuns {
    replay: Replay,
    /// Whether runs are call by call because the environment says so.
    stepwise: bool,
    /// The planned program; none during a run.
    planned: Option<Box<Planned>>,
    /// Memory of the last run's state.
    state: RunState,
    shared: Shared,
}

/// State of what a rank tells others of its graph.
#[derive(Default)]
struct Shared {
    /// Whether the ranks have compared their programs.
    compared: bool,
    /// The nodes, as the recorder tells of them; none before the first run.
    nodes: Option<GraphNodes>,
}

/// Outputs of a run.
pub(crate) type Returned = SmallVec<[Tensor; 2]>;

impl GraphRuns {
    /// Plans a program; as it was recorded, if a record is given.
    ///
    /// # Errors
    /// What planning refuses, a record of another plan, and a value of `OFLOW_GRAPH` that is none.
    pub(crate) fn new(captured: Captured, recorded: Option<&PlanRecord>) -> Result<GraphRuns> {
        let (replay, stepwise) = (Replay::new(captured)?, replays()?);
        let planned = match stepwise {
            true => None,
            false => Some(Box::new(Planned::new(&current(), &replay, recorded)?)),
        };
        Ok(GraphRuns { replay, stepwise, planned, state: RunState::default(), shared: Shared::default() })
    }

    /// The program.
    pub(crate) fn program(&self) -> &Program {
        &self.replay.captured().program
    }

    /// The captured program, with the objects of the process that it names by number.
    pub(crate) fn captured(&self) -> &Captured {
        self.replay.captured()
    }

    /// The plan of this rank; none where runs are call by call.
    pub(crate) fn plan(&self) -> Option<GraphPlan> {
        self.planned.as_ref().map(|p| p.describe())
    }

    /// The record of the plan of this rank; none where runs are call by call.
    pub(crate) fn record(&self) -> Option<PlanRecord> {
        self.planned.as_ref().map(|p| p.record())
    }

    /// The ops that the program calls, and those of its kernels.
    pub(crate) fn ops(&self) -> Vec<&'static Op> {
        self.replay.ops()
    }

    /// Runs the program on inputs, and returns its outputs. `as_captured` gives the program before passes, for errors.
    ///
    /// # Errors
    /// On other inputs than it was captured with, and what its calls report, with their lines.
    pub(crate) fn run(
        &mut self,
        inputs: &[&Tensor],
        as_captured: &dyn Fn() -> Option<Program>,
        site: CallSite,
    ) -> Result<Returned> {
        let ctx = current();
        self.replay.check_context(&ctx).map_err(|e| e.at(site))?;
        let (mut state, mut planned) = (std::mem::take(&mut self.state), self.planned.take());
        let call = (inputs, as_captured, site, self.stepwise);
        let done = run(&self.replay, &ctx, call, (&mut state, &mut planned), &mut self.shared);
        state.values.clear();
        (self.state, self.planned) = (state, planned);
        done
    }
}

/// A run on a state that it may use, by the plan where that is there and fits.
fn run(
    replay: &Replay,
    ctx: &RankCtx,
    (inputs, as_captured, site, stepwise): (&[&Tensor], &dyn Fn() -> Option<Program>, CallSite, bool),
    (state, planned): (&mut RunState, &mut Option<Box<Planned>>),
    shared: &mut Shared,
) -> Result<Returned> {
    MemoryOwner { used_for: MemoryUse::Graph, op: "graph", site }.begin();
    replay.captured().hosts.iter().try_for_each(|h| h.begin(site))?;
    replay.bind(inputs, state).map_err(|e| e.at(site))?;
    if let Some(hash) = replay.hash()
        && !shared.compared
    {
        compare(ctx, (&replay.captured().program, hash), as_captured, site).map_err(|e| e.at(site))?;
        shared.compared = true;
    }
    let observed = is_observed(Moments::ANY) || ctx.data_check() == DataCheck::All || policy() != Policy::Allow;
    let mut fits = Fits::Not;
    if !stepwise && !observed {
        if let Some(planned) = planned {
            fits = planned.fits(ctx, replay, state)?;
        }
        if planned.is_none() || fits == Fits::Otherwise {
            let mut made = Planned::new(ctx, replay, None).map_err(|e| e.at(site))?;
            fits = made.fits(ctx, replay, state)?;
            *planned = Some(Box::new(made));
        }
    }
    replay.draw(ctx, state)?;
    // Ranks whose programs differ are told apart at the next collective, before the calls that differ.
    let mut graph = 0;
    if let Some(hash) = replay.hash() {
        let nodes = replay.program().nodes.len();
        let key = replay.with_generator(hash, state);
        graph = ctx.next_described("graph", key, site, &|| format!("graph({nodes} nodes, {hash:016x})")).ordinal;
    }
    let at = match ctx.is_rank() {
        true => ctx.recorder().begin_run(shared.nodes.get_or_insert_with(|| replay.told()), graph),
        false => GraphRun::default(),
    };
    let (_quiet, _free) = (no_grad(), nothing_asked());
    match planned {
        Some(planned) if fits == Fits::Yes => planned.run(ctx, replay, state, &at)?,
        _ => replay.replay(ctx, state, &at)?,
    }
    drop(at);
    replay.captured().hosts.iter().for_each(|h| h.done());
    let missing = || Error::registry("a program did not make what it returns").at(site);
    replay.program().outputs.iter().map(|v| state.values[v.index()].clone().ok_or_else(missing)).collect()
}

/// Whether runs are call by call because the environment says so.
fn replays() -> Result<bool> {
    match std::env::var("OFLOW_GRAPH").as_deref() {
        Err(_) | Ok("" | "plan") => Ok(false),
        Ok("replay") => Ok(true),
        Ok(other) => Err(Error::argument(format!("OFLOW_GRAPH={other:?} says nothing about graphs"))
            .help("set it to `plan`, the default, or to `replay`, which runs graphs call by call")),
    }
}
