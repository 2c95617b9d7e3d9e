//! Runs a captured program call by call, with the plans that its signatures say and without recording for backward. It gives the bits that
//! the captured calls give when they are made by the program itself.

use super::boxing::{BoxingReason, plan_cx};
use super::cache::DispatchPlan;
use super::call::{Call, Outputs};
use super::capture::{Captured, no_gradient};
use super::comm_trace::BackwardScope;
use super::decide::check_there;
use super::layout::to_layout;
use super::read::logical_bytes;
use super::stages::{run_captured, run_captured_layout};
use crate::context::{GeneratorState, RankCtx, current, grad_enabled, no_grad, nothing_asked};
use crate::control::flight::OpText;
use crate::error::{CallSite, Error, Result};
use crate::memory::Origin;
use crate::ops::RuntimeAttrs;
use crate::plan::{Input, Request, Target, TypeRef, Where, plan};
use crate::program::{BoxedFor, CallNode, GeneratorId, Node, OutsideKind, Program, ValueId, Work, described};
use crate::tensor::Tensor;
use oflow_kernels::{DTypeKind, Scalar};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A captured program with what a run needs beside it.
pub(crate) struct Replay {
    captured: Captured,
    /// The context that it was captured in.
    origin: Origin,
    /// Versions that the constants had when it was captured, by number among the values from outside.
    versions: Vec<u64>,
    /// Whether each tensor from outside required a gradient then.
    trained: Vec<bool>,
    /// Values that end with each node.
    ends: Vec<SmallVec<[ValueId; 2]>>,
    /// Plan of each call that kernels carry out.
    plans: Vec<Option<DispatchPlan>>,
    /// Hash of what every rank's program must have alike.
    hash: Option<u64>,
}

impl Replay {
    /// Plans the calls of a program.
    ///
    /// # Errors
    /// What planning refuses.
    pub(crate) fn new(captured: Captured) -> Result<Replay> {
        let ctx = current();
        let program = &captured.program;
        let plans = program.nodes.iter().map(|node| planned(&ctx, program, node)).collect::<Result<_>>()?;
        Ok(Replay {
            origin: ctx.origin(),
            versions: captured.outside.iter().map(Tensor::version).collect(),
            trained: captured.outside.iter().map(Tensor::requires_grad).collect(),
            ends: program.last_uses(),
            plans,
            hash: program.global_hash(),
            captured,
        })
    }

    /// The program.
    pub(crate) fn program(&self) -> &Program {
        &self.captured.program
    }

    /// Runs the program on inputs, and returns its outputs.
    ///
    /// # Errors
    /// On other inputs than it was captured with, and what its calls report, with their lines.
    pub(crate) fn run(&self, inputs: &[&Tensor], site: CallSite) -> Result<Vec<Tensor>> {
        let ctx = current();
        self.check_context(&ctx).map_err(|e| e.at(site))?;
        let mut values = self.bind(inputs).map_err(|e| e.at(site))?;
        // Ranks whose programs differ are told apart at the next collective, before the calls that differ.
        if let Some(hash) = self.hash {
            let nodes = self.program().nodes.len();
            ctx.next_described("graph", hash, site, &|| format!("graph({nodes} nodes, {hash:016x})"));
        }
        let generators = self.draw(&ctx)?;
        let (_quiet, _free) = (no_grad(), nothing_asked());
        let mut flags: BTreeMap<ValueId, bool> = BTreeMap::new();
        for (n, node) in self.program().nodes.iter().enumerate() {
            let takes_place = match node.guard {
                None => true,
                Some(v) => match flags.get(&v) {
                    Some(flag) => *flag,
                    None => {
                        let flag = self.flag(&values, v, node.site).map_err(|e| e.at(node.site))?;
                        flags.insert(v, flag);
                        flag
                    }
                },
            };
            match takes_place {
                true => self.step(&ctx, n, node, &generators, &mut values).map_err(|e| e.at(node.site))?,
                // What it would write over has its old value.
                false => node.writes.iter().for_each(|w| values[w.new.index()] = values[w.old.index()].clone()),
            }
            for ended in &self.ends[n] {
                values[ended.index()] = None;
            }
        }
        self.captured.hosts.iter().for_each(|h| h.done());
        let missing = || Error::registry("a program did not make what it returns").at(site);
        self.program().outputs.iter().map(|v| values[v.index()].clone().ok_or_else(missing)).collect()
    }

    fn check_context(&self, ctx: &RankCtx) -> Result<()> {
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

    /// The values from outside.
    fn bind(&self, inputs: &[&Tensor]) -> Result<Vec<Option<Tensor>>> {
        let program = self.program();
        let mut values: Vec<Option<Tensor>> = vec![None; program.values.len()];
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
            let have = t.type_ref().map_or_else(|| format!("{t:?}"), |ty| described(&ty));
            if have != described(want) {
                return Err(match o.kind {
                    OutsideKind::Input => Error::argument(format!(
                        "input {:?} of the graph is {have}, but it was captured with {}",
                        o.name,
                        described(want)
                    ))
                    .help("capture a graph for each shape and layout"),
                    _ => Error::argument(format!("a tensor of the graph, {}, is {have} now", described(want))),
                });
            }
            if o.kind == OutsideKind::Variable {
                self.check_variable(i, t)?;
            }
            if o.kind == OutsideKind::Constant && t.version() != self.versions[i] {
                return Err(Error::argument(format!(
                    "{t:?}, a constant of the graph that it read first at {}, was written since the graph was captured",
                    o.site
                ))
                .help("give the graph as an input what changes between runs"));
            }
            values[o.value.index()] = Some(t.clone());
        }
        Ok(values)
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
    fn draw(&self, ctx: &RankCtx) -> Result<Vec<GeneratorState>> {
        let mut states = vec![];
        for (g, draws) in self.program().draws.iter().enumerate() {
            let own = (g as u32).checked_sub(GeneratorId::FIRST_OWN).map(|own| &self.captured.generators[own as usize]);
            let state = match (g as u32, own) {
                // The first draw, which refuses the generator of another rank.
                (_, Some(own)) if *draws > 0 => {
                    let (seed, ordinal) = own.draw()?;
                    GeneratorState { seed, ordinal }
                }
                (_, Some(own)) => own.state(),
                (n, None) if GeneratorId(n) == GeneratorId::GLOBAL => ctx.generator(),
                _ => ctx.local_generator(),
            };
            let after = GeneratorState { ordinal: state.ordinal + draws, ..state };
            match (g as u32, own) {
                _ if *draws == 0 => {}
                (_, Some(own)) => own.set_state(after)?,
                (n, None) if GeneratorId(n) == GeneratorId::GLOBAL => ctx.set_generator(after),
                _ => ctx.set_local_generator(after),
            }
            states.push(state);
        }
        Ok(states)
    }

    /// Reads a guard. The host waits for it, as it does where an eager program decides.
    fn flag(&self, values: &[Option<Tensor>], v: ValueId, site: CallSite) -> Result<bool> {
        let flag = values[v.index()].as_ref().ok_or_else(|| Error::registry("a guard of a program is missing"))?;
        Ok(logical_bytes(flag, site)?.first().is_some_and(|b| *b != 0))
    }

    fn step(
        &self,
        ctx: &RankCtx,
        n: usize,
        node: &Node,
        generators: &[GeneratorState],
        values: &mut [Option<Tensor>],
    ) -> Result<()> {
        let missing = || Error::registry(format!("a value that node {n} of a program needs is missing"));
        let _backward = node.backward.then(BackwardScope::enter);
        match &node.work {
            Work::Host(id) => self.captured.hosts[id.0 as usize].advance(node.site),
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
        let runtime = self.runtime(call, generators)?;
        let mut made =
            Call::of(call.op, inputs, call.attrs.clone(), runtime, node.site).target(call.target.as_ref()).given(given);
        match &self.plans[n] {
            None => {
                let what = call.op.layout.ok_or_else(|| Error::registry("a call of a program has no plan"))?;
                let cause = match call.boxed_for {
                    Some(BoxedFor::Gradient) => BoxingReason::Gradient,
                    Some(BoxedFor::Op(op)) => BoxingReason::Needed(op),
                    None => BoxingReason::Asked(what.function()),
                };
                run_captured_layout(&mut made, what, cause).map_err(|e| e.in_call(|| made.short()))
            }
            Some(plan) => run_captured(ctx, &mut made, plan).map_err(|e| e.in_call(|| made.short())),
        }
    }

    /// The runtime attributes of a call in this run.
    fn runtime(&self, call: &CallNode, generators: &[GeneratorState]) -> Result<RuntimeAttrs> {
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

/// The plan of a node that kernels carry out, by its signature.
fn planned(ctx: &RankCtx, program: &Program, node: &Node) -> Result<Option<DispatchPlan>> {
    let Some(call) = node.call().filter(|c| c.op.layout.is_none()) else { return Ok(None) };
    let make = || -> Result<DispatchPlan> {
        let into = call.into.then(|| node.writes.first().map(|w| w.old)).flatten();
        let input = |v: &Option<ValueId>| {
            let v = (*v)?;
            Some(Input { ty: program.ty(v).clone(), needs_grad: false, given: into == Some(v) })
        };
        let inputs: SmallVec<[Option<Input>; 4]> = node.inputs.iter().map(input).collect();
        let runtime_kinds: SmallVec<[DTypeKind; 4]> = call.runtime.iter().map(|s| s.kind()).collect();
        let of_type = |v: ValueId| match program.ty(v) {
            TypeRef::Local(l) => Where::Local(l.device),
            TypeRef::Global(g) => Where::Global(&g.placement),
        };
        let place = match (&call.target, node.needs().next()) {
            (Some(Target::Local(d)), _) => Where::Local(*d),
            (Some(Target::Global(p, _)), _) => Where::Global(p),
            (None, Some(v)) => of_type(v),
            (None, None) => return Err(Error::argument("a call without inputs has no target")),
        };
        check_there(ctx, call.op, place)?;
        let target = match &call.target {
            Some(Target::Global(_, sbp)) => Some(sbp),
            _ => None,
        };
        let plan = plan(
            &plan_cx(ctx),
            &Request {
                op: call.op,
                attrs: &call.attrs,
                runtime_kinds: &runtime_kinds,
                inputs: &inputs,
                place,
                target,
                given: into.map(|v| program.ty(v).clone()),
                keep: false,
                asked: None,
                signature: call.signature.as_ref(),
            },
        )?;
        let text = match place {
            Where::Local(_) => OpText::default(),
            Where::Global(p) => {
                let types: Vec<String> =
                    inputs.iter().map(|i| i.as_ref().map_or("none".to_string(), |i| i.ty.short())).collect();
                OpText::new(format!("{}({}) on {p}", call.op.name(), types.join(", ")))
            }
        };
        Ok(DispatchPlan { plan, text })
    };
    make().map(Some).map_err(|e| e.in_call(|| call.op.name().to_string()).at(node.site))
}
