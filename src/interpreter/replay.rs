//! Replay of a captured program: call by call, on tensors. A planned run carries out in this way what has no prebuilt form.

use super::boxing::BoxingReason;
use super::cache::DispatchPlan;
use super::call::Outputs;
use super::capture::{Captured, no_gradient};
use super::comm_trace::BackwardScope;
use super::issue::with_runtime;
use super::layout::to_layout;
use super::node::{planned_in_graph, run_call};
use super::read::logical_bytes;
use crate::context::{GeneratorState, RankCtx, current, grad_enabled};
use crate::control::flight::{GraphNodes, GraphRun};
use crate::error::{CallSite, Error, Result};
use crate::memory::Origin;
use crate::ops::{Op, OpUse, RuntimeAttrs};
use crate::plan::{Step, TypeRef};
use crate::program::{CallNode, Flat, GeneratorId, HostId, Loop, Node, OutsideKind, Program, ValueId, Work, described};
use crate::tensor::Tensor;
use oflow_kernels::{DTypeKind, Scalar};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A captured program with what a run needs beside it.
pub(crate) struct Replay {
    captured: Captured,
    /// The program as one list of nodes; none where it is one.
    flat: Option<Flat>,
    /// The context that it was captured in.
    origin: Origin,
    /// Versions that the constants had when it was captured, by number among the values from outside.
    versions: Vec<u64>,
    /// Whether each tensor from outside required a gradient then.
    trained: Vec<bool>,
    /// Whether the program writes each tensor from outside.
    written: Vec<bool>,
    /// Values that end with each node.
    ends: Vec<SmallVec<[ValueId; 2]>>,
    /// Plan of each call that kernels carry out.
    plans: Vec<Option<Arc<DispatchPlan>>>,
    /// Calls on global tensors that read the numbers of each host object.
    host_calls: Vec<Vec<u32>>,
    /// Hash of what every rank's program must have alike.
    hash: Option<u64>,
    /// Libraries whose ops the program calls stay loaded.
    _used: Vec<OpUse>,
}

/// State of a run.
#[derive(Default)]
pub(super) struct RunState {
    /// Tensors of values. A planned run makes those that it needs.
    pub(super) values: Vec<Option<Tensor>>,
    /// States of the generators when the run began; in a loop, those of the first iteration with the draws of the iterations before this one.
    pub(super) generators: SmallVec<[GeneratorState; 4]>,
    /// Guards that have been read; in a loop, in this iteration.
    pub(super) flags: SmallVec<[(ValueId, bool); 2]>,
    /// Number of the present iteration of each loop.
    pub(super) turns: SmallVec<[u64; 2]>,
}

impl Replay {
    /// Plans the calls of a program.
    ///
    /// # Errors
    /// What planning refuses.
    pub(crate) fn new(captured: Captured) -> Result<Replay> {
        let ctx = current();
        let flat = Flat::of(&captured.program);
        let program = flat.as_ref().map_or(&captured.program, |f| &f.program);
        let loops = flat.as_ref().map_or(&[][..], |f| &f.loops);
        let plan = |node| planned_in_graph(&ctx, program, node);
        let plans: Vec<_> = program.nodes.iter().map(plan).collect::<Result<_>>()?;
        let writes = |v: ValueId| program.nodes.iter().any(|n| n.writes.iter().any(|w| w.old == v));
        Ok(Replay {
            origin: ctx.origin(),
            versions: captured.outside.iter().map(Tensor::version).collect(),
            trained: captured.outside.iter().map(Tensor::requires_grad).collect(),
            written: program.outside.iter().map(|o| writes(o.value)).collect(),
            ends: Flat::last_uses(program, loops),
            host_calls: host_calls(program),
            hash: captured.program.global_hash(),
            _used: program.nodes.iter().filter_map(|n| n.call()?.op.hold()).collect(),
            plans,
            flat,
            captured,
        })
    }

    /// The program, as one list of nodes.
    pub(super) fn program(&self) -> &Program {
        self.flat.as_ref().map_or(&self.captured.program, |f| &f.program)
    }

    /// The loops of that list.
    pub(super) fn loops(&self) -> &[Loop] {
        self.flat.as_ref().map_or(&[], |f| &f.loops)
    }

    /// The captured program, with the objects of the process that it names by number.
    pub(super) fn captured(&self) -> &Captured {
        &self.captured
    }

    /// The tensors from outside.
    pub(super) fn outside(&self) -> &[Tensor] {
        &self.captured.outside
    }

    /// The plans of the calls that kernels carry out, by node.
    pub(super) fn plans(&self) -> &[Option<Arc<DispatchPlan>>] {
        &self.plans
    }

    /// The ops that the program calls, and those of its kernels, each once.
    pub(super) fn ops(&self) -> Vec<&'static Op> {
        let called = self.program().nodes.iter().filter_map(|n| Some(n.call()?.op));
        let steps = self.plans.iter().flatten().flat_map(|p| &p.plan.steps);
        let kernels = steps.filter_map(|s| match s {
            Step::Kernel(k) => Some(k.op),
            _ => None,
        });
        let named: BTreeMap<String, &'static Op> = called.chain(kernels).map(|op| (op.full_name(), op)).collect();
        named.into_values().collect()
    }

    /// Hash of what every rank's program must have alike.
    pub(super) fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// The plan of a node that kernels carry out.
    pub(super) fn plan(&self, n: usize) -> Option<&DispatchPlan> {
        self.plans[n].as_deref()
    }

    /// Values that end with a node.
    pub(super) fn ends(&self, n: usize) -> &[ValueId] {
        &self.ends[n]
    }

    /// Whether the program writes a tensor from outside.
    pub(super) fn is_written(&self, outside: usize) -> bool {
        self.written[outside]
    }

    /// An error of a node, with the call and its line.
    #[cold]
    pub(super) fn located(&self, n: usize, e: Error) -> Error {
        e.in_call(|| self.call_text(n)).at(self.program().nodes[n].site)
    }

    /// The call of a node in short form.
    fn call_text(&self, n: usize) -> String {
        let node = &self.program().nodes[n];
        let name = match &node.work {
            Work::Call(call) => call.op.name(),
            Work::Box(_) => "box",
            Work::Host(id) => return format!("host {}", self.program().hosts[id.0 as usize]),
            Work::Repeat(_) => "repeat",
        };
        let ty = |v: &Option<ValueId>| v.map_or_else(|| "none".to_string(), |v| self.program().ty(v).short());
        format!("{name}({})", node.inputs.iter().map(ty).collect::<Vec<_>>().join(", "))
    }

    /// The nodes, as the flight recorder tells of them.
    pub(super) fn told(&self) -> GraphNodes {
        let text = |n: usize| match self.plan(n).map(|p| p.text.as_str()) {
            Some(text) if !text.is_empty() => text.to_string(),
            _ => self.call_text(n),
        };
        GraphNodes::new(self.program().nodes.iter().enumerate().map(|(n, node)| (text(n), node.site)))
    }

    /// Runs the nodes call by call.
    pub(super) fn replay(&self, ctx: &RankCtx, state: &mut RunState, at: &GraphRun<'_>) -> Result<()> {
        self.replay_nodes(ctx, state, at, 0..self.program().nodes.len())
    }

    /// Runs these nodes, which are whole loops or no part of one, call by call.
    pub(super) fn replay_nodes(
        &self,
        ctx: &RankCtx,
        state: &mut RunState,
        at: &GraphRun<'_>,
        nodes: Range<usize>,
    ) -> Result<()> {
        let mut next = nodes.start;
        while next < nodes.end {
            let (n, node) = (next, &self.program().nodes[next]);
            at.come_to(n);
            if let Some(end) = self.loop_end(n) {
                next = self.turn(ctx, state, at, end).map_err(|e| e.at(node.site))?;
                continue;
            }
            next += 1;
            let takes_place = match node.guard {
                None => true,
                Some(v) => self.takes_place(state, v, node.site)?,
            };
            match takes_place {
                true => self.step(ctx, n, node, state)?,
                // What it would write over has its old value.
                false => {
                    node.writes.iter().for_each(|w| state.values[w.new.index()] = state.values[w.old.index()].clone());
                }
            }
            for ended in &self.ends[n] {
                state.values[ended.index()] = None;
            }
        }
        Ok(())
    }

    /// Reads a guard, once. The host waits for it, as it does where an eager program decides.
    pub(super) fn takes_place(&self, state: &mut RunState, v: ValueId, site: CallSite) -> Result<bool> {
        if let Some((_, flag)) = state.flags.iter().find(|(read, _)| *read == v) {
            return Ok(*flag);
        }
        let read = || {
            let flag = state.values[v.index()].as_ref();
            let flag = flag.ok_or_else(|| Error::registry("a guard of a program is missing"))?;
            Ok(logical_bytes(flag, site)?.first().is_some_and(|b| *b != 0))
        };
        let flag = read().map_err(|e: Error| e.at(site))?;
        state.flags.push((v, flag));
        Ok(flag)
    }

    /// The hash of a run: ranks that draw other numbers do not do the same.
    pub(super) fn with_generator(&self, hash: u64, state: &RunState) -> u64 {
        let global = GeneratorId::GLOBAL.0 as usize;
        match (self.program().draws.get(global), state.generators.get(global)) {
            (Some(draws), Some(g)) if *draws > 0 => {
                with_runtime(hash, &[Scalar::Int(g.seed as i64), Scalar::Int(g.ordinal as i64)])
            }
            _ => hash,
        }
    }

    pub(super) fn check_context(&self, ctx: &RankCtx) -> Result<()> {
        if ctx.capture().is_some() {
            return Err(Error::unsupported("a graph does not run while another is captured")
                .help("call the function that it was captured from"));
        }
        if !self.origin.is_usable(ctx.origin()) {
            return Err(Error::context(format!(
                "the graph was captured by {}; it cannot run in {}",
                self.origin,
                ctx.origin()
            )));
        }
        Ok(())
    }

    /// Binds the values from outside.
    pub(super) fn bind(&self, inputs: &[&Tensor], state: &mut RunState) -> Result<()> {
        let program = self.program();
        state.values.clear();
        state.values.resize(program.values.len(), None);
        state.flags.clear();
        state.turns.clear();
        state.turns.resize(self.loops().len(), 0);
        let wanted = program.outside_of(OutsideKind::Input).count();
        if wanted != inputs.len() {
            let names: Vec<String> = program.outside_of(OutsideKind::Input).map(|o| format!("{:?}", o.name)).collect();
            return Err(Error::argument(format!(
                "the graph has {wanted} inputs ({}), {} given",
                names.join(", "),
                inputs.len()
            )));
        }
        let mut given = inputs.iter();
        for (i, o) in program.outside.iter().enumerate() {
            let want = program.ty(o.value);
            let kept = &self.captured.outside[i];
            let t = match o.kind {
                OutsideKind::Input => *given.next().unwrap_or(&kept),
                _ => kept,
            };
            t.check_origin()?;
            if o.kind == OutsideKind::Input && grad_enabled() && t.requires_grad() {
                return Err(no_gradient(&o.name, t));
            }
            if !t.type_ref().is_some_and(|ty| ty.same(want)) {
                return Err(other_type(&o.name, o.kind, t, want));
            }
            if o.kind == OutsideKind::Variable {
                self.check_variable(i, t)?;
            }
            if o.kind == OutsideKind::Constant && t.version() != self.versions[i] {
                return Err(Error::argument(format!(
                    "{t:?}, a constant of the graph that it read first at {}, was written since the graph was captured",
                    o.site
                ))
                .help("declare it as a variable of the graph, or give it to the runs as an input"));
            }
            state.values[o.value.index()] = Some(t.clone());
        }
        Ok(())
    }

    /// Refuses a variable that the program trains no more, or trains now.
    fn check_variable(&self, i: usize, t: &Tensor) -> Result<()> {
        let again = "build the graph again after such a change";
        if let Some(replaced) = t.replaced() {
            return Err(Error::argument(format!(
                "{t:?} is a variable of the graph, but at {replaced} its module got another tensor in its place"
            ))
            .help(again));
        }
        if t.requires_grad() != self.trained[i] {
            let now = if self.trained[i] { "no longer requires" } else { "requires" };
            return Err(Error::argument(format!("{t:?}, a variable of the graph, {now} a gradient")).help(again));
        }
        Ok(())
    }

    /// States of the generators when the run begins; they advance by what the run draws.
    pub(super) fn draw(&self, ctx: &RankCtx, state: &mut RunState) -> Result<()> {
        state.generators.clear();
        for (g, draws) in self.program().draws.iter().enumerate() {
            let own = (g as u32).checked_sub(GeneratorId::FIRST_OWN).map(|own| &self.captured.generators[own as usize]);
            let begun = match (g as u32, own) {
                // The first draw, which refuses the generator of another rank.
                (_, Some(own)) if *draws > 0 => {
                    let (seed, ordinal) = own.draw()?;
                    GeneratorState { seed, ordinal }
                }
                (_, Some(own)) => own.state(),
                (n, None) if GeneratorId(n) == GeneratorId::GLOBAL => ctx.generator(),
                _ => ctx.local_generator(),
            };
            let after = GeneratorState { ordinal: begun.ordinal + draws, ..begun };
            match (g as u32, own) {
                _ if *draws == 0 => {}
                (_, Some(own)) => own.set_state(after)?,
                (n, None) if GeneratorId(n) == GeneratorId::GLOBAL => ctx.set_generator(after),
                _ => ctx.set_local_generator(after),
            }
            state.generators.push(begun);
        }
        Ok(())
    }

    /// Carries out a node on tensors.
    ///
    /// # Errors
    /// What the call reports, with its line.
    pub(super) fn step(&self, ctx: &RankCtx, n: usize, node: &Node, state: &mut RunState) -> Result<()> {
        self.step_on(ctx, n, node, (&state.generators, &mut state.values)).map_err(|e| e.at(node.site))
    }

    fn step_on(
        &self,
        ctx: &RankCtx,
        n: usize,
        node: &Node,
        (generators, values): (&[GeneratorState], &mut [Option<Tensor>]),
    ) -> Result<()> {
        let missing = || Error::registry(format!("a value that node {n} of a program needs is missing"));
        let _backward = node.backward.then(BackwardScope::enter);
        match &node.work {
            Work::Host(id) => self.advance(ctx, *id, node.site),
            Work::Repeat(_) => Err(missing()),
            Work::Box(op) => {
                let from = node.inputs.first().copied().flatten().ok_or_else(missing)?;
                let to = node.outputs.first().copied().ok_or_else(missing)?;
                let source = values[from.index()].clone().ok_or_else(missing)?;
                let ty = self.program().ty(to).global().ok_or_else(missing)?;
                values[to.index()] =
                    Some(to_layout(BoxingReason::Needed(op), &source, &ty.placement, &ty.sbp, node.site)?);
                Ok(())
            }
            Work::Call(call) if node.writes.is_empty() => {
                let outs = {
                    let there = |v: &Option<ValueId>| match v {
                        None => Ok(None),
                        Some(v) => values[v.index()].as_ref().map(Some).ok_or_else(missing),
                    };
                    let mut inputs: SmallVec<[Option<&Tensor>; 4]> = SmallVec::new();
                    for v in &node.inputs {
                        inputs.push(there(v)?);
                    }
                    self.call(ctx, n, (node, call), &inputs, None, generators)?
                };
                for (v, t) in node.outputs.iter().zip(outs) {
                    values[v.index()] = Some(t);
                }
                Ok(())
            }
            Work::Call(call) => {
                let tensor = |v: &Option<ValueId>| match v {
                    None => Ok(None),
                    Some(v) => values[v.index()].clone().map(Some).ok_or_else(missing),
                };
                let owned: SmallVec<[Option<Tensor>; 4]> = node.inputs.iter().map(tensor).collect::<Result<_>>()?;
                let written = node.writes.iter().map(|w| values[w.old.index()].clone().ok_or_else(missing));
                let written: SmallVec<[Tensor; 1]> = written.collect::<Result<_>>()?;
                for (w, t) in node.writes.iter().zip(&written) {
                    // A value that is read later is kept, in a handle of its own: the write goes to other memory then.
                    values[w.old.index()] = (!self.ends[n].contains(&w.old)).then(|| t.value());
                }
                let inputs: SmallVec<[Option<&Tensor>; 4]> = owned.iter().map(Option::as_ref).collect();
                let given = call.into.then(|| written.first()).flatten();
                let outs = self.call(ctx, n, (node, call), &inputs, given, generators)?;
                for (v, t) in node.outputs.iter().zip(outs) {
                    values[v.index()] = Some(t);
                }
                for (w, t) in node.writes.iter().zip(written) {
                    values[w.new.index()] = Some(t);
                }
                Ok(())
            }
        }
    }

    /// Makes a call on these tensors.
    fn call(
        &self,
        ctx: &RankCtx,
        n: usize,
        (node, call): (&Node, &CallNode),
        inputs: &[Option<&Tensor>],
        given: Option<&Tensor>,
        generators: &[GeneratorState],
    ) -> Result<Outputs> {
        let runtime = self.runtime_of(call, generators)?;
        run_call(ctx, (node, call), self.plans[n].as_deref(), runtime, inputs, given)
    }

    /// Lets a host object act. Ranks that give other numbers to calls on global tensors do not do the same.
    fn advance(&self, ctx: &RankCtx, id: HostId, site: CallSite) -> Result<()> {
        let (host, calls) = (&self.captured.hosts[id.0 as usize], &self.host_calls[id.0 as usize]);
        host.advance(site)?;
        if !calls.is_empty() {
            let mut hash = 0;
            for call in calls {
                hash = with_runtime(hash, &host.numbers(*call)?);
            }
            ctx.next_op("graph numbers", hash, site);
        }
        Ok(())
    }

    /// The runtime attributes of a call in this run.
    ///
    /// # Errors
    /// A host object has other settings than when the program was captured.
    pub(super) fn runtime(&self, call: &CallNode, state: &RunState) -> Result<RuntimeAttrs> {
        self.runtime_of(call, &state.generators)
    }

    fn runtime_of(&self, call: &CallNode, generators: &[GeneratorState]) -> Result<RuntimeAttrs> {
        if let Some((host, number)) = call.host {
            let numbers = self.captured.hosts[host.0 as usize].numbers(number)?;
            let kinds = |all: &RuntimeAttrs| all.iter().map(|s| s.kind()).collect::<SmallVec<[DTypeKind; 4]>>();
            return match kinds(&numbers) == kinds(&call.runtime) {
                true => Ok(numbers),
                false => Err(Error::argument(
                    "the settings have changed since the graph was captured, so that another call is needed",
                )
                .help("build the graph again after a change of settings other than rates")),
            };
        }
        let mut runtime = call.runtime.clone();
        if let Some(draw) = &call.draw {
            let state = generators[draw.generator.0 as usize];
            let numbers = [("seed", state.seed), ("ordinal", state.ordinal + draw.ordinal)];
            for (name, number) in numbers {
                if let Some(i) = call.op.sig.runtime_attr(name) {
                    runtime[i] = Scalar::Int(number as i64);
                }
            }
        }
        Ok(runtime)
    }
}

/// Calls on global tensors that read the numbers of each host object.
fn host_calls(program: &Program) -> Vec<Vec<u32>> {
    let mut calls = vec![vec![]; program.hosts.len()];
    for node in program.nodes.iter().filter(|n| n.needs().any(|v| program.ty(v).global().is_some())) {
        if let Some((host, number)) = node.call().and_then(|c| c.host)
            && let Some(calls) = calls.get_mut(host.0 as usize)
            && !calls.contains(&number)
        {
            calls.push(number);
        }
    }
    calls
}

/// The error of a tensor of another type than a program was captured with.
#[cold]
fn other_type(name: &str, kind: OutsideKind, t: &Tensor, want: &TypeRef) -> Error {
    let have = t.type_ref().map_or_else(|| format!("{t:?}"), |ty| described(&ty));
    match kind {
        OutsideKind::Input => Error::argument(format!(
            "input {name:?} of the graph is {have}, but it was captured with {}",
            described(want)
        ))
        .help("capture a graph for each shape and layout"),
        _ => Error::argument(format!("a tensor of the graph, {}, is {have} now", described(want))),
    }
}
