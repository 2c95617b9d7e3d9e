//! The lowering of a program for one rank: its calls become kernels and boxings over slots, windows onto the program's memory.
//!
//! A node is lowered when it is a boxing (`boxings.rs`), or its plan has kernels, boxings and halos only and its operands lie as they take them.
//! Others (lengths that depend on values, copies between devices, writes to memory whose old value is needed) are carried out one by one on tensors, as
//! a replay does.

use super::super::cache::DispatchPlan;
use super::act::{Act, Home, Kernel, Ongoing, Root, RootId, Slot, SlotId, What};
use super::scratch::stepwise_scratch;
use super::section::Section;
use crate::context::RankCtx;
use crate::error::{Error, Result};
use crate::memory::Storage;
use crate::ops::{RuntimeAttrs, StreamKind};
use crate::placement::Device;
use crate::plan::{
    BufferId, KernelPlan, KernelStep, Lifetime, LocalRef, Numbers, Plan, Step, intern_local, local_type,
};
use crate::program::{CallNode, Flat, Loop, Node, OutsideKind, Program, ValueId, Work};
use crate::tensor::{LocalTensor, Tensor};
use oflow_kernels::DType;
use oflow_kernels::view::{copied, is_contiguous};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// How a node is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// On tensors. What it writes over in this memory nobody needs: it may be written in place.
    Stepwise(SmallVec<[RootId; 1]>),
    /// By these acts; none where this rank has no part, or nothing is computed. Whether the call has an entry in the dispatch stream, for the
    /// boxings inside it.
    Acts(Range<usize>, bool),
}

/// A program lowered for one rank.
#[derive(Default)]
pub(super) struct Lowered {
    pub(super) roots: Vec<Root>,
    pub(super) slots: Vec<Slot>,
    /// The slot of each value; none where this rank has no part of it.
    pub(super) slot_of: Vec<Option<SlotId>>,
    /// Whether each value is that of a tensor from outside: its own, or one that was written over it.
    pub(super) own: Vec<bool>,
    pub(super) acts: Vec<Act>,
    /// Per node.
    pub(super) ways: Vec<Way>,
    /// Per loop.
    pub(super) sections: Vec<Section>,
    /// Last node that needs each value.
    last: Vec<Option<usize>>,
    /// Memory that is made by nodes that are carried out on tensors, by the memory that it may be.
    pub(super) late: BTreeMap<RootId, SmallVec<[RootId; 2]>>,
    /// Pairs of memory: the first may be that of the second, which is made by a node that is carried out on tensors.
    pub(super) may_share: Vec<(RootId, RootId)>,
    /// Memory that boxings, and nodes that are carried out on tensors, allocate while they run: at most so much.
    pub(super) scratch: Vec<Lifetime>,
    /// Exchanges that go on, while nodes are lowered.
    pub(super) ongoing: Vec<Ongoing>,
    pub(super) time: usize,
}

/// Program, plans and tensors that a lowering starts from.
pub(super) struct From<'a> {
    pub(super) ctx: &'a RankCtx,
    pub(super) program: &'a Program,
    /// Loops of the program.
    pub(super) loops: &'a [Loop],
    /// Plans of the calls that kernels carry out, by node.
    pub(super) plans: &'a [Option<Arc<DispatchPlan>>],
    /// Tensors from outside.
    pub(super) outside: &'a [Tensor],
    /// Kernel that copies, of a device.
    pub(super) copy: fn(Device) -> Result<Arc<KernelPlan>>,
}

impl Lowered {
    /// Lowers a program.
    ///
    /// # Errors
    /// A backend has no kernel that copies.
    pub(super) fn new(from: &From<'_>) -> Result<Lowered> {
        let program = from.program;
        let values = program.values.len();
        let (slot_of, own, last) = (vec![None; values], vec![false; values], Flat::last_needed(program, from.loops));
        let mut l = Lowered { slot_of, own, last, ..Lowered::default() };
        program.outside.iter().for_each(|o| l.own[o.value.index()] = true);
        for (i, o) in program.outside.iter().enumerate() {
            let made = from.outside[i].with_data(|t| t.map(|t| (t.ty.clone(), copied(&t.strides))))?;
            let Some((ty, strides)) = made else { continue };
            let root = l.root(Home::Outside(i), ty.device, ty.bytes);
            // What is given at a run is made contiguous.
            let strides = if o.kind == OutsideKind::Input { copied(&ty.strides) } else { strides };
            l.slots.push(Slot { ty, root, offset: 0, strides });
            l.place(o.value, Some(l.slots.len() - 1));
        }
        let handles = handed_out_views(program);
        let mut open = vec![];
        while let Some((n, node)) = program.nodes.get(l.ways.len()).map(|node| (l.ways.len(), node)) {
            if let Work::Repeat(_) = &node.work {
                l.loop_end(from, n, &mut open)?;
                continue;
            }
            let before = (l.roots.len(), l.slots.len(), l.acts.len(), l.time, l.scratch.len());
            let native = match handles[n] {
                true => None,
                false => Native { l: &mut l, from, n, node }.lower()?,
            };
            let way = match native {
                Some(()) => {
                    let numbered =
                        node.call().is_some() && from.plans[n].as_ref().is_some_and(|p| p.plan.communicates());
                    Way::Acts(before.2..l.acts.len(), numbered)
                }
                None => {
                    l.roots.truncate(before.0);
                    l.slots.truncate(before.1);
                    l.acts.truncate(before.2);
                    l.time = before.3;
                    l.scratch.truncate(before.4);
                    Way::Stepwise(l.stepwise(from, (n, node)))
                }
            };
            node.writes.iter().for_each(|w| l.own[w.new.index()] = l.own[w.old.index()]);
            l.ways.push(way);
            l.wait_for_exchanges(before.2..l.acts.len());
        }
        l.wait_for_all(0);
        l.end(program);
        Ok(l)
    }

    pub(super) fn root(&mut self, home: Home, device: Device, bytes: usize) -> RootId {
        let (root, now) = (self.roots.len(), self.time);
        let may_be = SmallVec::from_elem(root, 1);
        let (held, shared, needed) = (None, false, None);
        self.roots.push(Root { home, device, bytes, first: now, last: now, held, shared, needed, may_be });
        root
    }

    /// A slot of memory of its own.
    pub(super) fn slot(&mut self, home: Home, ty: &LocalRef) -> SlotId {
        let root = self.root(home, ty.device, ty.bytes);
        self.slots.push(Slot { ty: ty.clone(), root, offset: 0, strides: copied(&ty.strides) });
        self.slots.len() - 1
    }

    pub(super) fn scratch(&mut self, bytes: usize) {
        self.scratch.push(Lifetime { bytes, first: self.time, last: self.time });
    }

    pub(super) fn used(&mut self, root: RootId) {
        let now = self.time;
        let r = &mut self.roots[root];
        r.last = r.last.max(now);
    }

    pub(super) fn is_contiguous(&self, s: SlotId) -> bool {
        let s = &self.slots[s];
        is_contiguous(&s.ty.ty.shape, &s.strides)
    }

    /// Adds a node that is carried out on tensors: what it makes is known then. Returns the memory that it may write in place.
    pub(super) fn stepwise(&mut self, from: &From<'_>, (n, node): (usize, &Node)) -> SmallVec<[RootId; 1]> {
        let read: SmallVec<[RootId; 4]> =
            node.needs().filter_map(|v| self.slot_of[v.index()]).map(|s| self.slots[s].root).collect();
        self.wait_for_memory(&read);
        for r in &read {
            self.used(*r);
            self.roots[*r].shared = true;
        }
        let mut in_place = SmallVec::new();
        for w in &node.writes {
            let old = self.slot_of[w.old.index()].map(|s| (s, self.slots[s].root));
            let free = old.filter(|(_, root)| !self.is_needed(w.old, *root, n));
            in_place.extend(free.map(|(_, root)| root));
            let kept = free.filter(|(_, root)| matches!(self.roots[*root].home, Home::Outside(_)));
            let slot = kept.map(|(s, _)| s).or_else(|| self.late(from, w.new, &read));
            self.place(w.new, slot);
        }
        for v in &node.outputs {
            let slot = self.late(from, *v, &read);
            self.place(*v, slot);
        }
        let plan = from.plans[n].as_ref().map(|decided| &decided.plan);
        self.scratch(stepwise_scratch(plan, node, |v| local_type(from.ctx.rank(), from.program.ty(v))));
        self.time += 1;
        in_place
    }

    /// Whether a value in the memory of `v`, which a node writes, is needed after it, in the program or, as the value of another tensor from
    /// outside, after the run.
    pub(super) fn is_needed(&self, v: ValueId, root: RootId, n: usize) -> bool {
        let of = |r: RootId| &self.roots[r].may_be;
        let of_others =
            |r: RootId| matches!(self.roots[r].home, Home::Outside(_)) && !(r == root && self.own[v.index()]);
        if of(root).iter().any(|r| of_others(*r)) {
            return true;
        }
        let needed = |r: &RootId| self.roots[*r].needed > Some(n);
        of(root).iter().any(|r| needed(r) || self.late.get(r).is_some_and(|late| late.iter().any(needed)))
    }

    /// Says where a value is.
    pub(super) fn place(&mut self, v: ValueId, slot: Option<SlotId>) {
        self.slot_of[v.index()] = slot;
        if let Some(s) = slot {
            let root = &mut self.roots[self.slots[s].root];
            root.needed = root.needed.max(self.last[v.index()]);
        }
    }

    fn late(&mut self, from: &From<'_>, v: ValueId, read: &[RootId]) -> Option<SlotId> {
        let ty = local_type(from.ctx.rank(), from.program.ty(v))?;
        let slot = self.slot(Home::Late, &ty);
        let root = self.slots[slot].root;
        let mut may_be: SmallVec<[RootId; 2]> = read.iter().flat_map(|r| self.roots[*r].may_be.clone()).collect();
        may_be.push(root);
        may_be.sort_unstable();
        may_be.dedup();
        for r in &may_be {
            self.late.entry(*r).or_default().push(root);
        }
        self.roots[root].may_be = may_be;
        self.roots[root].shared = true;
        self.may_share.extend(read.iter().map(|r| (*r, root)));
        Some(slot)
    }

    /// The memory that a run returns is its own, and what shares memory lives as long as the other.
    fn end(&mut self, program: &Program) {
        for v in &program.outputs {
            if let Some(s) = self.slot_of[v.index()] {
                let root = self.slots[s].root;
                self.used(root);
                self.returned(root);
            }
        }
        // What was made later comes first.
        for (kept, by) in std::mem::take(&mut self.may_share).into_iter().rev() {
            self.roots[kept].last = self.roots[kept].last.max(self.roots[by].last);
            if self.roots[by].last >= self.time {
                self.returned(kept);
            }
        }
        self.end_loops();
    }

    fn returned(&mut self, root: RootId) {
        let r = &mut self.roots[root];
        if r.home == Home::Arena {
            r.home = Home::Fresh;
        }
    }
}

/// Whether each node is a view op whose result a run returns, itself or through other such nodes: handles know that they are views.
fn handed_out_views(program: &Program) -> Vec<bool> {
    let mut handed = vec![false; program.values.len()];
    program.outputs.iter().for_each(|v| handed[v.index()] = true);
    let mut nodes = vec![false; program.nodes.len()];
    for (n, node) in program.nodes.iter().enumerate().rev() {
        let is_view = node.call().is_some_and(|c| c.op.view.is_some() && !c.into);
        if is_view && node.outputs.iter().any(|v| handed[v.index()]) {
            nodes[n] = true;
            node.inputs.iter().flatten().for_each(|v| handed[v.index()] = true);
        }
    }
    nodes
}

/// A node being lowered to acts.
pub(super) struct Native<'a, 'b> {
    pub(super) l: &'a mut Lowered,
    pub(super) from: &'a From<'b>,
    pub(super) n: usize,
    pub(super) node: &'a Node,
}

impl Native<'_, '_> {
    /// Adds the node's acts; none where it is to be carried out on tensors.
    fn lower(mut self) -> Result<Option<()>> {
        let node = self.node;
        if node.is_boxing() {
            return self.boxing_node();
        }
        let (Work::Call(call), Some(decided)) = (&node.work, &self.from.plans[self.n]) else { return Ok(None) };
        let plan = &decided.plan;
        if plan.lengths > 0 {
            return Ok(None);
        }
        if !self.writes_are_plain(call) {
            return Ok(None);
        }
        let mut at: Vec<Option<SlotId>> = vec![None; plan.buffers.len()];
        for (b, v) in node.inputs.iter().enumerate() {
            at[b] = v.and_then(|v| self.l.slot_of[v.index()]);
        }
        if plan.takes_part || plan.communicates() {
            let given = call.into.then(|| self.l.slot_of[node.writes[0].old.index()]).flatten();
            if call.into && given.is_none() && plan.takes_part {
                return Ok(None);
            }
            for (s, step) in plan.steps.iter().enumerate() {
                let done = match step {
                    Step::Kernel(_) | Step::Assign(_) if !plan.takes_part => Some(()),
                    Step::Kernel(k) => self.kernel(call, plan, (s, k), given, &mut at)?,
                    Step::Assign(from) => self.assign(given, at[from.index()])?,
                    Step::Box(b) => {
                        let made = self.boxings(&[(&b.boxing, at[b.from.index()])], None)?;
                        at[b.makes.index()] = made.into_iter().next().flatten();
                        Some(())
                    }
                    Step::Halo(h) => {
                        at[h.makes.index()] = self.halo(h, at[h.from.index()])?;
                        Some(())
                    }
                    Step::ExchangeLength(_) | Step::Rebalance(_) => None,
                };
                if done.is_none() {
                    return Ok(None);
                }
            }
        }
        if !call.into {
            for (v, b) in node.outputs.iter().zip(&plan.outputs) {
                self.l.place(*v, at[b.index()]);
            }
        }
        for w in &node.writes {
            self.l.place(w.new, self.l.slot_of[w.old.index()]);
        }
        Ok(Some(()))
    }

    /// Whether the node writes memory of which nobody needs the old value, and of which its other inputs are no other windows.
    fn writes_are_plain(&self, call: &CallNode) -> bool {
        let l = &*self.l;
        self.node.writes.iter().all(|w| {
            let Some(target) = l.slot_of[w.old.index()] else { return true };
            let root = l.slots[target].root;
            let same = |s: SlotId| {
                let (a, b) = (&l.slots[s], &l.slots[target]);
                a.offset == b.offset && a.strides == b.strides && a.ty.id() == b.ty.id()
            };
            let inputs = self.node.inputs.iter().enumerate().filter(|(i, _)| !call.op.sig.mutates(*i));
            let clear =
                inputs.filter_map(|(_, v)| l.slot_of[(*v)?.index()]).all(|s| l.slots[s].root != root || same(s));
            l.is_contiguous(target) && clear && !l.is_needed(w.old, root, self.n)
        })
    }

    fn kernel(
        &mut self,
        call: &CallNode,
        plan: &Plan,
        (s, step): (usize, &KernelStep),
        given: Option<SlotId>,
        at: &mut [Option<SlotId>],
    ) -> Result<Option<()>> {
        if step.cross_device.is_some() {
            return Ok(None);
        }
        let of_call = matches!(step.numbers, Numbers::OfCall);
        let in_place = of_call && !self.node.writes.is_empty();
        let given = given.filter(|_| in_place);
        if !in_place && self.window(call, plan, step, at)? {
            return Ok(Some(()));
        }
        let Some(kernel) = &step.kernel else {
            if given.is_none() {
                self.make(plan, &step.makes, at);
            }
            return Ok(Some(()));
        };
        let mut inputs: SmallVec<[Option<SlotId>; 4]> = SmallVec::new();
        let (mut reads, mut writes): (SmallVec<[RootId; 4]>, SmallVec<[RootId; 2]>) = Default::default();
        for (i, id) in step.inputs.iter().enumerate() {
            let Some(mut slot) = id.and_then(|b| at[b.index()]) else {
                inputs.push(None);
                continue;
            };
            let mutable = step.op.writes_inputs() && step.op.sig.mutates(i);
            if !step.op.traits.strided && !self.l.is_contiguous(slot) {
                if mutable {
                    return Ok(None);
                }
                slot = self.copy(slot)?;
            }
            let root = self.l.slots[slot].root;
            if mutable {
                writes.push(root)
            } else {
                reads.push(root)
            }
            inputs.push(Some(slot));
        }
        let outputs: SmallVec<[SlotId; 2]> = match given {
            Some(given) => SmallVec::from_slice(&[given]),
            None => self.make(plan, &step.makes, at),
        };
        writes.extend(outputs.iter().map(|s| self.l.slots[*s].root));
        let workspace = (kernel.workspace > 0).then(|| self.l.root(Home::Arena, plan.device, kernel.workspace));
        writes.extend(workspace);
        let runtime = step.runtime(&call.runtime)?;
        let operands = Operands { inputs, outputs, workspace, reads, writes };
        self.push(kernel, Some(s), (plan.device, runtime), operands);
        Ok(Some(()))
    }

    /// Memory for what a step makes.
    fn make(&mut self, plan: &Plan, makes: &[BufferId], at: &mut [Option<SlotId>]) -> SmallVec<[SlotId; 2]> {
        let mut made = SmallVec::new();
        for b in makes {
            if let Some(ty) = &plan.buffers[b.index()].local {
                let slot = self.l.slot(Home::Arena, ty);
                at[b.index()] = Some(slot);
                made.push(slot);
            }
        }
        made
    }

    /// Makes the result of a view op another window onto the memory of its input, where strides can say it.
    fn window(&mut self, call: &CallNode, plan: &Plan, step: &KernelStep, at: &mut [Option<SlotId>]) -> Result<bool> {
        let local = plan.steps.len() == 1 && plan.buffers.iter().all(|b| b.global.is_none());
        let (Some(view), Some(Some(from)), [made]) = (&step.op.view, step.inputs.first(), step.makes.as_slice()) else {
            return Ok(false);
        };
        if !(step.view || local) {
            return Ok(false);
        }
        let (Some(source), Some(ty)) = (at[from.index()], &plan.buffers[made.index()].local) else { return Ok(false) };
        let attrs = match &step.kernel {
            Some(kernel) => &kernel.attrs,
            None if local => &call.attrs,
            None => return Ok(false),
        };
        let (shape, source) = (&ty.ty.shape, &self.l.slots[source]);
        // Offsets are counted in elements.
        if source.ty.ty.dtype != ty.ty.dtype {
            return Ok(false);
        }
        let Some((by, strides)) = view(&source.ty.ty.shape, &source.strides, attrs, shape) else { return Ok(false) };
        // Without elements nothing is addressed, and the place may lie outside.
        let offset = source.offset + if shape.contains(&0) { 0 } else { by };
        let slot = Slot { ty: ty.clone(), root: source.root, offset, strides };
        self.l.slots.push(slot);
        at[made.index()] = Some(self.l.slots.len() - 1);
        Ok(true)
    }

    /// A contiguous copy.
    pub(super) fn copy(&mut self, from: SlotId) -> Result<SlotId> {
        let ty = self.l.slots[from].ty.clone();
        let to = self.l.slot(Home::Arena, &ty);
        self.copy_into(from, to)?;
        Ok(to)
    }

    pub(super) fn copy_into(&mut self, from: SlotId, to: SlotId) -> Result<()> {
        let device = self.l.slots[from].ty.device;
        let operands = Operands {
            inputs: SmallVec::from_slice(&[Some(from)]),
            outputs: SmallVec::from_slice(&[to]),
            workspace: None,
            reads: SmallVec::from_slice(&[self.l.slots[from].root]),
            writes: SmallVec::from_slice(&[self.l.slots[to].root]),
        };
        self.push(&(self.from.copy)(device)?, None, (device, RuntimeAttrs::new()), operands);
        Ok(())
    }

    /// Copies a result into the tensor that the call writes.
    fn assign(&mut self, given: Option<SlotId>, from: Option<SlotId>) -> Result<Option<()>> {
        let (Some(to), Some(from)) = (given, from) else { return Ok(None) };
        self.copy_into(from, to)?;
        Ok(Some(()))
    }

    fn push(
        &mut self,
        plan: &Arc<KernelPlan>,
        step: Option<usize>,
        (device, runtime): (Device, RuntimeAttrs),
        operands: Operands,
    ) {
        let on_compute = plan.stream == StreamKind::Compute;
        for r in operands.reads.iter().chain(&operands.writes) {
            self.l.used(*r);
            self.l.roots[*r].shared |= !on_compute;
        }
        let (plan, site, time) = (plan.clone(), self.node.site, self.l.time);
        let Operands { inputs, outputs, workspace, reads, writes } = operands;
        let kernel = Kernel { plan, step, device, runtime, inputs, outputs, workspace };
        let what = What::Kernel(Box::new(kernel));
        self.l.acts.push(Act { what, site, time, reads, writes });
        self.l.time += 1;
    }
}

/// Operands of a kernel, with the memory that it reads and writes.
struct Operands {
    inputs: SmallVec<[Option<SlotId>; 4]>,
    outputs: SmallVec<[SlotId; 2]>,
    workspace: Option<RootId>,
    reads: SmallVec<[RootId; 4]>,
    writes: SmallVec<[RootId; 2]>,
}

impl Lowered {
    /// The memory of a slot, given that of its root and the number of the first element there.
    pub(super) fn window_of(&self, slot: SlotId, storage: &Storage, first: usize) -> Result<LocalTensor> {
        let s = &self.slots[slot];
        let offset = first.checked_add_signed(s.offset);
        let offset = offset.ok_or_else(|| Error::registry("a window of a program begins before its memory"))?;
        LocalTensor::of_storage(&s.ty, storage.clone(), offset, copied(&s.strides))
    }
}

/// Bytes as a tensor, for scratch memory.
pub(super) fn bytes_type(bytes: usize, device: Device) -> LocalRef {
    intern_local(&[bytes], DType::U8, device)
}
