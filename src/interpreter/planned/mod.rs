//! Planned execution: a captured program as prebuilt kernels and boxings over one arena for each device.
//!
//! A program is lowered for the rank ([`lower`]): its values become *slots*, windows onto *roots*, pieces of memory. A root is the memory of
//! a tensor from outside, a part of the arena, memory that a run returns, or memory that a node makes which is carried out on tensors. The
//! arena's parts get their offsets from their lifetimes ([`crate::plan::pack`]). So a run infers, chooses and allocates nothing for what
//! kernels do, and reads no tensor handles: it patches the views of what has moved since the last run, and calls the kernels.
//!
//! **Order.** Kernels of one stream run in the order of the program, so memory may be used again as soon as its last kernel has been
//! issued. Where another stream uses memory (boxings, copies), each part of the arena is a storage with users of its own, and a kernel that
//! begins to use bytes again waits for the users of all parts that have had them.
//!
//! **Exchanges** in host memory are listed, operation by operation, when their memory is bound ([`crate::vm::listed`]). Each piece of memory is
//! in use from the first operation that touches it to the last. Of one that goes on while others compute, all is in use until a call waits for it
//! (`ongoing.rs`).
//!
//! **Loops.** The acts of a repeated section are there once; see `repeat.rs`.
//!
//! **Tensors from outside** are bound at each run. A global tensor that the program writes gets memory of its own first, if other handles
//! share it, as a write does in an eager program.

mod act;
mod arenas;
mod boxings;
mod exchange;
mod lower;
mod ongoing;
mod record;
mod repeat;
mod reuse;
mod scratch;
mod section;
mod segment_run;
mod segments;
mod size;

pub(crate) use record::{ArenaRecord, PlanRecord};
pub use size::{ArenaSize, CudaGraphs, GraphPlan, Living};

use super::copy::contiguous;
use super::issue::with_runtime;
use super::repeat_run::tensor_of;
use super::replay::{Replay, RunState};
use super::writes::note_write;
use crate::backend;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::control::flight::GraphRun;
use crate::error::{Error, Result};
use crate::memory::{Storage, block_bytes};
use crate::ops::GivenValues;
use crate::placement::Device;
use crate::plan::{Step, pack};
use crate::program::{CallNode, Node, OutsideKind, ValueId};
use crate::tensor::LocalTensor;
use crate::vm::listed::Listed;
use crate::vm::{Instruction, KernelWork, Work};
use act::{Arena, Home, Kernel, Root, RootId, Slot, What};
use arenas::{Around, arenas, around};
use lower::{From, Lowered, Way, bytes_type};
use segments::Segments;
use smallvec::SmallVec;
use std::sync::Arc;

/// An operand of an act.
#[derive(Clone, Copy)]
enum Operand {
    Input(usize),
    Output(usize),
    Workspace,
    /// Memory of an exchange, whose elements have so many bytes.
    Exchanged(usize),
}

/// Memory of a root in a run.
struct Memory {
    storage: Storage,
    /// First element, in elements of the slots' dtype.
    offset: usize,
}

/// Marks memory as being written until it is dropped. A kernel may write that of many tensors; the marks take nothing from the heap.
struct Writing<'a> {
    memory: &'a [Option<Memory>],
    roots: &'a [RootId],
}

impl<'a> Writing<'a> {
    fn begin(memory: &'a [Option<Memory>], roots: &'a [RootId]) -> Result<Writing<'a>> {
        let mut writing = Writing { memory, roots: &[] };
        for (n, r) in roots.iter().enumerate() {
            memory[*r].as_ref().ok_or_else(unbound)?.storage.begin_write()?.leave();
            writing.roots = &roots[..=n];
        }
        Ok(writing)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.roots.iter().filter_map(|r| self.memory[*r].as_ref()).for_each(|m| m.storage.end_write());
    }
}

/// Whether tensors from outside lie as a program was planned for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fits {
    Yes,
    /// With other strides than when it was planned.
    Otherwise,
    /// A tensor that is written shares memory with another one, or is an input with strides: the run is call by call.
    Not,
}

/// A program planned for this rank.
pub(crate) struct Planned {
    lowered: Lowered,
    /// The kernels of the acts that are kernels.
    works: Vec<Option<KernelWork>>,
    /// The lists of the acts that are exchanges in host memory, as long as their memory stays where it is.
    lists: Vec<Option<Arc<Listed>>>,
    around: Vec<Around>,
    /// Operands that are windows onto each root.
    operands: Vec<SmallVec<[(usize, Operand); 2]>>,
    arenas: Vec<Arena>,
    memory: Vec<Option<Memory>>,
    /// Roots of slots without bytes, and roots whose memory a run holds until its end.
    empty: Vec<RootId>,
    held: Vec<RootId>,
    /// Storages of the tensors from outside, and whether each is written: room for a run.
    storages: Vec<(usize, bool)>,
    /// Address for which the views of each root were made.
    bound: Vec<usize>,
    /// Kernels that a device takes together.
    segments: Segments,
}

impl Planned {
    /// Plans a program, for tensors from outside as they lie now; as it was recorded, if a record is given.
    ///
    /// # Errors
    /// A backend has no kernel that copies, or the record is of another plan.
    pub(super) fn new(ctx: &RankCtx, replay: &Replay, recorded: Option<&PlanRecord>) -> Result<Planned> {
        let program = replay.program();
        let (loops, plans) = (replay.loops(), replay.plans());
        let from = From { ctx, program, loops, plans, outside: replay.outside(), copy: backend::copy_plan };
        let mut lowered = Lowered::new(&from)?;
        lowered.reuse();
        let arenas = match recorded {
            None => arenas(&lowered, |_, _, living| Ok(pack(living)))?,
            Some(record) => {
                record.check(&lowered)?;
                arenas(&lowered, |n, device, living| record.packing(n, device, living))?
            }
        };
        let none = LocalTensor::alloc(ctx, &bytes_type(0, Device::Cpu))?;
        let mut operands: Vec<SmallVec<[(usize, Operand); 2]>> = vec![SmallVec::new(); lowered.roots.len()];
        let mut works = vec![];
        for (k, act) in lowered.acts.iter().enumerate() {
            let root = |s: usize| lowered.slots[s].root;
            let kernel = match &act.what {
                What::Kernel(kernel) => kernel,
                What::Box(b) => {
                    for s in b.ends.iter().flat_map(|(from, to)| [from, to]).flatten() {
                        operands[root(*s)].push((k, Operand::Exchanged(lowered.slots[*s].ty.ty.dtype.size())));
                    }
                    for r in b.scratch.iter().flatten() {
                        operands[*r].push((k, Operand::Exchanged(1)));
                    }
                    works.push(None);
                    continue;
                }
            };
            for (i, s) in kernel.inputs.iter().enumerate() {
                if let Some(s) = s {
                    operands[root(*s)].push((k, Operand::Input(i)));
                }
            }
            kernel.outputs.iter().enumerate().for_each(|(o, s)| operands[root(*s)].push((k, Operand::Output(o))));
            if let Some(w) = kernel.workspace {
                operands[w].push((k, Operand::Workspace));
            }
            works.push(Some(KernelWork {
                plan: kernel.plan.clone(),
                // Views are made when their memory is known.
                inputs: kernel.inputs.iter().map(|_| None).collect(),
                outputs: kernel.outputs.iter().map(|_| none.view()).collect(),
                runtime: kernel.runtime.clone(),
                workspace: None,
                held: None,
                site: act.site,
            }));
        }
        let around = around(&lowered, &arenas);
        let segments = Segments::of(ctx, replay, &lowered, &around)?;
        let lists = vec![None; works.len()];
        let memory = lowered.roots.iter().map(|_| None).collect();
        let bound = vec![0; lowered.roots.len()];
        // A root whose memory another one has has no slots.
        let mut used = vec![false; lowered.roots.len()];
        lowered.slots.iter().for_each(|s| used[s.root] = true);
        let is_empty = |r: &Root| r.bytes == 0 && matches!(r.home, Home::Arena | Home::Fresh);
        let all = || lowered.roots.iter().enumerate();
        let empty = all().filter(|(r, root)| used[*r] && is_empty(root)).map(|(r, _)| r).collect();
        let held = all().filter(|(_, root)| root.home != Home::Arena).map(|(r, _)| r).collect();
        Ok(Planned {
            storages: vec![],
            empty,
            held,
            lowered,
            works,
            lists,
            around,
            operands,
            arenas,
            memory,
            bound,
            segments,
        })
    }

    /// The record of the plan.
    pub(super) fn record(&self) -> PlanRecord {
        PlanRecord::of(&self.lowered, &self.arenas)
    }

    /// Kernels, boxings and memory of a run.
    pub(super) fn describe(&self) -> GraphPlan {
        let arena = |a: &Arena| ArenaSize {
            device: a.device,
            parts: a.roots.len(),
            bytes: block_bytes(a.packing.bytes),
            packed: a.packing.bytes,
            bound: a.packing.bound,
            at_peak: Living::at_peak(&self.lowered, a),
        };
        let (outside, allocated) = size::beside(&self.lowered);
        GraphPlan {
            outside,
            allocated,
            kernels: self.works.iter().flatten().count(),
            boxings: self.works.iter().filter(|w| w.is_none()).count(),
            stepwise: self.lowered.ways.iter().filter(|w| matches!(w, Way::Stepwise(_))).count(),
            arenas: self.arenas.iter().map(arena).collect(),
            cuda_graphs: self.segments.describe(),
        }
    }

    /// Binds the memory of a root: makes the views anew if it has moved.
    fn bind(&mut self, root: RootId, storage: Storage, offset: usize) -> Result<()> {
        // All slots of a root have one dtype, but scratch memory has none.
        let size = |s: usize| self.lowered.slots[s].ty.ty.dtype.size();
        let address = |(k, operand): &(usize, Operand)| {
            let element = match (operand, self.lowered.acts[*k].kernel()) {
                (Operand::Exchanged(element), _) => *element,
                (Operand::Input(i), Some(kernel)) => kernel.inputs[*i].map_or(1, size),
                (Operand::Output(o), Some(kernel)) => size(kernel.outputs[*o]),
                (Operand::Workspace, _) | (_, None) => 1,
            };
            // Null is the address of nothing.
            storage.ptr() as usize + offset * element
        };
        let there = self.operands[root].first().map(address);
        if let Some(there) = there
            && std::mem::replace(&mut self.bound[root], there) != there
        {
            for (k, operand) in &self.operands[root] {
                self.lists[*k] = None;
                let (Some(kernel), Some(work)) = (self.lowered.acts[*k].kernel(), &mut self.works[*k]) else {
                    continue;
                };
                let window = |s: usize| Ok::<_, Error>(self.lowered.window_of(s, &storage, offset)?.view());
                match *operand {
                    Operand::Input(i) => work.inputs[i] = kernel.inputs[i].map(window).transpose()?,
                    Operand::Output(o) => work.outputs[o] = window(kernel.outputs[o])?,
                    Operand::Workspace => {
                        let ty = bytes_type(kernel.plan.workspace, storage.device());
                        let strides = SmallVec::from_elem(1, 1);
                        work.workspace = Some(LocalTensor::of_storage(&ty, storage.clone(), 0, strides)?.view());
                    }
                    Operand::Exchanged(_) => {}
                }
            }
        }
        self.memory[root] = Some(Memory { storage, offset });
        Ok(())
    }
}

impl Planned {
    /// Runs the program; the values from outside are bound in `state`. `at` is told the node that the run has come to.
    ///
    /// # Errors
    /// What kernels and nodes report, with their lines.
    pub(super) fn run(
        &mut self,
        ctx: &RankCtx,
        replay: &Replay,
        state: &mut RunState,
        at: &GraphRun<'_>,
    ) -> Result<()> {
        let done = self.bind_outside(ctx, replay, state).and_then(|()| self.nodes(ctx, replay, state, at));
        // What the run held of others is theirs again.
        for root in &self.held {
            self.memory[*root] = None;
        }
        done
    }

    /// Gives global tensors that the program writes memory of their own, and says whether a run of the plan can follow.
    ///
    /// # Errors
    /// There is no memory for the copies.
    pub(super) fn fits(&mut self, ctx: &RankCtx, replay: &Replay, state: &RunState) -> Result<Fits> {
        let storages = &mut self.storages;
        storages.clear();
        for (i, o) in replay.program().outside.iter().enumerate() {
            let (Some(slot), Some(t)) = (self.lowered.slot_of[o.value.index()], &state.values[o.value.index()]) else {
                continue;
            };
            let (written, strides) = (replay.is_written(i), &self.lowered.slots[slot].strides);
            let lies = |l: &LocalTensor| (l.strides == *strides, l.storage.id(), l.storage.holders());
            let Some((alike, id, holders)) = t.with_data(|l| l.map(lies))? else { return Ok(Fits::Otherwise) };
            if written && t.is_global() && holders > 1 {
                let Some(l) = t.data()? else { return Ok(Fits::Otherwise) };
                t.replace_shard(contiguous(ctx, &l)?);
            } else {
                storages.push((id, written));
            }
            match o.kind {
                _ if alike => {}
                // A copy would be written in its place.
                OutsideKind::Input if written => return Ok(Fits::Not),
                OutsideKind::Input => {}
                _ => return Ok(Fits::Otherwise),
            }
        }
        storages.sort_unstable();
        let mut of_one = storages.chunk_by(|a, b| a.0 == b.0);
        Ok(match of_one.any(|same| same.len() > 1 && same.iter().any(|(_, written)| *written)) {
            true => Fits::Not,
            false => Fits::Yes,
        })
    }

    /// Binds the arena, at the first run, and the tensors from outside.
    fn bind_outside(&mut self, ctx: &RankCtx, replay: &Replay, state: &mut RunState) -> Result<()> {
        for a in 0..self.arenas.len() {
            if self.arenas[a].memory.is_none() {
                let whole = ctx.device(self.arenas[a].device)?.alloc.alloc(self.arenas[a].packing.bytes)?;
                for i in 0..self.arenas[a].roots.len() {
                    let root = self.arenas[a].roots[i];
                    let part = whole.part(self.arenas[a].packing.offsets[i], self.lowered.roots[root].bytes)?;
                    self.bind(root, part, 0)?;
                }
                self.arenas[a].memory = Some(whole);
            }
        }
        // Nothing is packed or written where there are no bytes.
        for e in 0..self.empty.len() {
            let root = self.empty[e];
            if self.memory[root].is_none() {
                let none = ctx.device(self.lowered.roots[root].device)?.alloc.alloc(0)?;
                self.bind(root, none, 0)?;
            }
        }
        for o in &replay.program().outside {
            let (Some(slot), Some(t)) = (self.lowered.slot_of[o.value.index()], &state.values[o.value.index()]) else {
                continue;
            };
            let Slot { root, strides, .. } = &self.lowered.slots[slot];
            let found = t.with_data(|l| l.map(|l| (l.strides == *strides, l.storage.clone(), l.offset)))?;
            match found {
                Some((true, storage, offset)) => self.bind(*root, storage, offset)?,
                Some((false, ..)) => {
                    let (root, Some(l)) = (*root, t.data()?) else { continue };
                    let l = contiguous(ctx, &l)?;
                    self.bind(root, l.storage.clone(), l.offset)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn nodes(&mut self, ctx: &RankCtx, replay: &Replay, state: &mut RunState, at: &GraphRun<'_>) -> Result<()> {
        let program = replay.program();
        let mut next = 0;
        while let Some((n, node)) = program.nodes.get(next).map(|node| (next, node)) {
            at.come_to(n);
            if let Some(end) = replay.loop_end(n) {
                next = self.turn(ctx, replay, state, at, end).map_err(|e| e.at(node.site))?;
                continue;
            }
            next += 1;
            let takes_place = match node.guard {
                None => true,
                Some(v) => {
                    self.tensor_of(replay, state, v)?;
                    replay.takes_place(state, v, node.site)?
                }
            };
            match self.lowered.ways[n].clone() {
                Way::Acts(range, numbered) => {
                    for w in &node.writes {
                        if let Some(t) = state.values[w.old.index()].take() {
                            if takes_place {
                                note_write(&t)?;
                            }
                            state.values[w.new.index()] = Some(t);
                        }
                    }
                    if takes_place {
                        self.numbers(replay, state, n, node)?;
                        let tag = if numbered { self.entry(ctx, replay, state, n)? } else { None };
                        match self.segments.at(n) {
                            Some((s, is_last)) if is_last => self.segment(ctx, s).map_err(|e| replay.located(n, e))?,
                            Some(_) => {}
                            None => {
                                for k in range {
                                    self.act(ctx, k, tag.as_ref()).map_err(|e| replay.located(n, e))?;
                                }
                            }
                        }
                    }
                }
                Way::Stepwise(in_place) => self.stepwise(ctx, replay, state, (n, node, takes_place), &in_place)?,
            }
            for ended in replay.ends(n) {
                state.values[ended.index()] = None;
            }
        }
        for v in &program.outputs {
            self.tensor_of(replay, state, *v)?;
        }
        Ok(())
    }

    /// Gives the kernels of a node the numbers of this run.
    #[inline]
    fn numbers(&mut self, replay: &Replay, state: &RunState, n: usize, node: &Node) -> Result<()> {
        match node.call() {
            Some(call) if call.host.is_some() || call.draw.is_some() => {
                self.new_numbers(replay, state, n, (node, call))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn new_numbers(
        &mut self,
        replay: &Replay,
        state: &RunState,
        n: usize,
        (node, call): (&Node, &CallNode),
    ) -> Result<()> {
        let runtime = replay.runtime(call, state).map_err(|e| e.at(node.site))?;
        let Some(decided) = replay.plan(n) else { return Ok(()) };
        let check = || {
            if let Some(check) = &call.op.values {
                let dtype = |v: &Option<ValueId>| Some(replay.program().ty((*v)?).ty().dtype);
                let dtypes: SmallVec<[_; 4]> = node.inputs.iter().map(dtype).collect();
                check(&GivenValues { op: call.op, dtypes: &dtypes, attrs: &call.attrs, runtime: &runtime })?;
            }
            if decided.plan.hands_on_numbers { decided.plan.check_numbers(&runtime) } else { Ok(()) }
        };
        check().map_err(|e| replay.located(n, e))?;
        let Way::Acts(range, _) = self.lowered.ways[n].clone() else { return Ok(()) };
        for k in range {
            let step = self.lowered.acts[k].kernel().and_then(|k| decided.plan.steps.get(k.step?));
            if let (Some(Step::Kernel(step)), Some(work)) = (step, &mut self.works[k]) {
                work.runtime = step.runtime(&runtime)?;
            }
        }
        Ok(())
    }

    /// The entry in the dispatch stream of a call for which ranks exchange something.
    #[cold]
    fn entry(&self, ctx: &RankCtx, replay: &Replay, state: &RunState, n: usize) -> Result<Option<Tag>> {
        let node = &replay.program().nodes[n];
        let (Some(call), Some(decided)) = (node.call(), replay.plan(n)) else { return Ok(None) };
        let key = with_runtime(decided.plan.stream_key, &replay.runtime(call, state)?);
        Ok(Some(ctx.next_call(call.op.name(), key, node.site, &decided.text)))
    }

    /// Runs an act, or issues it.
    #[inline]
    fn act(&mut self, ctx: &RankCtx, k: usize, tag: Option<&Tag>) -> Result<()> {
        for f in 0..self.around[k].fresh.len() {
            let root = self.around[k].fresh[f];
            let (device, bytes) = (self.lowered.roots[root].device, self.lowered.roots[root].bytes);
            let storage = ctx.device(device)?.alloc.alloc(bytes)?;
            self.bind(root, storage, 0)?;
        }
        let around = &self.around[k];
        let (Some(work), What::Kernel(kernel)) = (&self.works[k], &self.lowered.acts[k].what) else {
            return self.exchange(ctx, k, tag);
        };
        let vm = &ctx.device(kernel.device)?.vm;
        let storage = |r: RootId| self.memory[r].as_ref().map(|m| &m.storage).ok_or_else(unbound);
        if !vm.computes_here() {
            return self.issue(ctx, k, work, kernel);
        }
        for (r, written) in &around.waits {
            let s = storage(*r)?;
            if s.is_streamed() {
                if *written { vm.wait_unused(s)? } else { vm.wait(s)? }
            }
        }
        if around.read.is_empty() && around.written.is_empty() {
            return vm.run_here(work);
        }
        // Other threads have these tensors too: see `memory/uses.rs`.
        let mut turns = SmallVec::<[_; 8]>::new();
        for r in &around.read {
            turns.push(storage(*r)?.turn()?);
        }
        let writing = Writing::begin(&self.memory, &around.written)?;
        vm.run_here(work)?;
        drop(writing);
        around.read.iter().zip(&turns).try_for_each(|(r, turn)| storage(*r)?.still(*turn))
    }

    /// Issues a kernel to the streams of its device.
    #[cold]
    fn issue(&self, ctx: &RankCtx, k: usize, work: &KernelWork, kernel: &Kernel) -> Result<()> {
        let (reads, writes) = self.storages(k, |_| true)?;
        let stream = kernel.plan.stream;
        ctx.device(kernel.device)?.vm.submit(Instruction { work: Work::Kernel(work.again()), stream, reads, writes })
    }

    /// The memory of a slot.
    fn local_of(&self, slot: usize) -> Result<LocalTensor> {
        let memory = self.memory[self.lowered.slots[slot].root].as_ref().ok_or_else(unbound)?;
        self.lowered.window_of(slot, &memory.storage, memory.offset)
    }

    /// Carries out a node on tensors.
    fn stepwise(
        &mut self,
        ctx: &RankCtx,
        replay: &Replay,
        state: &mut RunState,
        (n, node, takes_place): (usize, &Node, bool),
        in_place: &[RootId],
    ) -> Result<()> {
        for v in node.needs() {
            self.tensor_of(replay, state, v)?;
        }
        self.let_go(in_place);
        match takes_place {
            true => replay.step(ctx, n, node, state)?,
            false => node.writes.iter().for_each(|w| {
                state.values[w.new.index()] = state.values[w.old.index()].clone();
            }),
        }
        let made = if takes_place { node.defines().collect() } else { node.writes.iter().map(|w| w.new).collect() };
        self.bind_made(ctx, state, made)
    }

    /// Drops the run's hold on memory that a call writes in place: it is counted, and that of the tensor is to be the only one.
    fn let_go(&mut self, in_place: &[RootId]) {
        for root in in_place {
            if self.lowered.roots[*root].home != Home::Arena {
                self.memory[*root] = None;
            }
        }
    }

    /// Binds the memory of what was made on tensors.
    fn bind_made(&mut self, ctx: &RankCtx, state: &RunState, made: SmallVec<[ValueId; 4]>) -> Result<()> {
        for v in made {
            let (Some(slot), Some(t)) = (self.lowered.slot_of[v.index()], &state.values[v.index()]) else { continue };
            let root = self.lowered.slots[slot].root;
            let Some(l) = t.data()? else { continue };
            let l = if l.strides == self.lowered.slots[slot].strides { l } else { contiguous(ctx, &l)? };
            self.bind(root, l.storage.clone(), l.offset)?;
        }
        Ok(())
    }

    /// Makes the tensor of a value, unless there is one.
    fn tensor_of(&self, replay: &Replay, state: &mut RunState, v: ValueId) -> Result<()> {
        if state.values[v.index()].is_some() {
            return Ok(());
        }
        let local = self.lowered.slot_of[v.index()].map(|s| self.local_of(s)).transpose()?;
        state.values[v.index()] = Some(tensor_of(replay.program().ty(v), local)?);
        Ok(())
    }
}

#[cold]
fn unbound() -> Error {
    Error::registry("memory of a planned program is used before it is known")
}
