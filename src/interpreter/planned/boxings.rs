//! Changes of layout of a program, and exchanges of the boxes that kernels read, as acts.
//!
//! An exchange in host memory is listed ([`OperationList`]) when it is lowered: so its scratch memory is part of the arena, and each piece of memory is
//! in use from the first operation that touches it to the last. What has been packed ends there, and what is not unpacked yet has not begun.

use super::super::boxing::{BoxingReason, boxing_text, boxing_to};
use super::super::call::Call;
use super::super::layout::{gradient_stays, layout_key, together_key, together_text};
use super::super::node::boxing_reason;
use super::act::{Act, Boxing, Ends, Entry, Home, RootId, Slot, SlotId, What};
use super::lower::Native;
use super::scratch::exchange_scratch;
use crate::backend::{self, BoxingPlace};
use crate::error::Result;
use crate::ops::{LayoutOp, RuntimeAttrs};
use crate::placement::Device;
use crate::plan::{GlobalRef, HaloStep, PlannedBoxing, intern_local};
use crate::program::Work;
use crate::vm::boxing_device::{Span, placeholder};
use crate::vm::listed::{OperationList, Walk};
use oflow_kernels::View;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Slots of results of boxings; none where this rank has no part.
type Made = SmallVec<[Option<SlotId>; 1]>;

impl Native<'_, '_> {
    /// Adds the act of a node that is a boxing, of one value or of several; none where it is to be carried out on tensors.
    pub(super) fn boxing_node(&mut self) -> Result<Option<()>> {
        let (node, program) = (self.node, self.from.program);
        let (reason, together) = match &node.work {
            Work::Box(op) => (BoxingReason::Needed(op), false),
            Work::Call(call) => match call.op.layout {
                Some(what @ (LayoutOp::Box | LayoutOp::BoxGrad)) => (boxing_reason(call, what), false),
                Some(what @ (LayoutOp::BoxMany | LayoutOp::BoxManyGrad)) => (boxing_reason(call, what), true),
                _ => return Ok(None),
            },
            Work::Host(_) | Work::Repeat(_) => return Ok(None),
        };
        let (mut moved, mut keys, mut stay) = (vec![], vec![], vec![]);
        for (i, (from, to)) in node.inputs.iter().zip(&node.outputs).enumerate() {
            let Some(from) = from else { return Ok(None) };
            let (Some(have), Some(want)) = (program.ty(*from).global(), program.ty(*to).global()) else {
                return Ok(None);
            };
            if self.stays(i, have)? {
                stay.push((*from, *to));
                continue;
            }
            keys.push(layout_key(have, &want.placement, &want.sbp));
            moved.push((boxing_to(self.from.ctx, have, &want.placement, &want.sbp)?, *from, *to));
        }
        if moved.iter().any(|(b, ..)| devices(b) != devices(&moved[0].0)) {
            return Ok(None);
        }
        for (from, to) in stay {
            self.l.place(to, self.l.slot_of[from.index()]);
        }
        let Some((first, from, _)) = moved.first() else { return Ok(Some(())) };
        let (short, plan) = (program.ty(*from).short(), &first.plan);
        let entry = match together {
            true => {
                let to = (short.as_str(), &plan.dst.placement, &plan.dst.sbp);
                (reason.op(), together_key(&keys), together_text(reason, moved.len(), to))
            }
            false => (reason.op(), keys[0], boxing_text(reason, &short, first)),
        };
        let all: Vec<_> = moved.iter().map(|(b, from, _)| (b, self.l.slot_of[from.index()])).collect();
        let made = self.boxings(&all, Some(entry))?;
        for ((.., to), slot) in moved.iter().zip(made) {
            self.l.place(*to, slot);
        }
        Ok(Some(()))
    }

    /// Whether the node leaves its gradient of that number and type as it is.
    fn stays(&self, i: usize, have: &GlobalRef) -> Result<bool> {
        match self.node.call() {
            Some(call) if matches!(call.op.layout, Some(LayoutOp::BoxGrad | LayoutOp::BoxManyGrad)) => {
                let call = Call::of(call.op, &[], call.attrs.clone(), RuntimeAttrs::new(), self.node.site);
                gradient_stays(&call, i, have)
            }
            _ => Ok(false),
        }
    }

    /// Boxes slots together, on one pair of devices. What stays where it is is the same slot.
    pub(super) fn boxings(&mut self, all: &[(&PlannedBoxing, Option<SlotId>)], entry: Option<Entry>) -> Result<Made> {
        let (mut plans, mut ends, mut made) = (vec![], vec![], Made::new());
        let new = self.l.roots.len();
        for (boxing, from) in all {
            let moves = !boxing.plan.is_identity();
            let dims = |s: &SlotId| &self.l.slots[*s].ty.ty.shape;
            let unmoved = from.filter(|s| !moves && boxing.local.as_ref().is_some_and(|l| l.ty.shape == *dims(s)));
            let to = unmoved.or_else(|| boxing.local.as_ref().map(|ty| self.l.slot(Home::Arena, ty)));
            made.push(to);
            if moves {
                plans.push(boxing.plan.clone());
                ends.push((*from, to));
            }
        }
        if let Some((first, _)) = all.first() {
            let walk = (!plans.is_empty()).then_some(Walk::Plans(plans));
            self.exchange((walk, ends), devices(first), new, entry)?;
        }
        Ok(made)
    }

    /// Gives this rank the box of an input that its kernel reads.
    pub(super) fn halo(&mut self, step: &HaloStep, from: Option<SlotId>) -> Result<Option<SlotId>> {
        let Some(own) = from else { return Ok(None) };
        let (dtype, device) = (self.l.slots[own].ty.ty.dtype, self.l.slots[own].ty.device);
        let new = self.l.roots.len();
        let want = step.plan.wants(self.from.ctx.rank()).map(|w| intern_local(&w.at.size, dtype, device));
        let to = want.map(|ty| self.l.slot(Home::Arena, &ty));
        let walk = Walk::Boxes(step.plan.clone(), dtype);
        self.exchange((Some(walk), vec![(from, to)]), (device, device), new, None)?;
        Ok(to)
    }

    /// Adds the act of an exchange. The roots from number `new` on are its results.
    fn exchange(
        &mut self,
        (walk, ends): (Option<Walk>, Vec<Ends>),
        devices: (Device, Device),
        new: RootId,
        entry: Option<Entry>,
    ) -> Result<()> {
        let root = |s: &SlotId| self.l.slots[*s].root;
        let reads: SmallVec<[RootId; 4]> = ends.iter().filter_map(|(from, _)| from.as_ref().map(root)).collect();
        let mut writes: SmallVec<[RootId; 2]> = ends.iter().filter_map(|(_, to)| to.as_ref().map(root)).collect();
        let time = self.l.time;
        let on_host = |device| backend::of(device).boxing_place() == BoxingPlace::Host;
        let (mut scratch, mut allocates, moves) = (None, None, walk.is_some());
        match &walk {
            Some(walk) if on_host(devices.0) && on_host(devices.1) => {
                let roots = self.list(walk, &ends, devices.1, new)?;
                writes.extend_from_slice(&roots);
                scratch = Some(roots);
            }
            Some(walk) => {
                reads.iter().chain(&writes).for_each(|r| self.l.used(*r));
                let bytes = |s: &Option<SlotId>| s.map_or(0, |s| self.l.slots[s].ty.bytes);
                let (sent, received) = (ends.iter().map(|e| bytes(&e.0)).sum(), ends.iter().map(|e| bytes(&e.1)).sum());
                allocates = Some(self.l.scratch.len());
                self.l.scratch(exchange_scratch(walk, sent, received));
                self.l.time += 1;
            }
            None => self.l.time += 1,
        }
        reads.iter().chain(&writes).for_each(|r| self.l.roots[*r].shared = true);
        let what = Boxing { walk, ends, devices, scratch, backward: self.node.backward, entry };
        self.l.acts.push(Act { what: What::Box(Box::new(what)), site: self.node.site, time, reads, writes });
        if moves && self.node.overlapped {
            self.l.goes_on(allocates);
        }
        Ok(())
    }

    /// Lists an exchange, with addresses that stand for memory: notes when each piece of memory is in use. Returns the scratch memory, in the
    /// order in which it is asked for.
    fn list(&mut self, walk: &Walk, ends: &[Ends], device: Device, new: RootId) -> Result<Vec<RootId>> {
        let mut places = Places { next: FIRST, all: vec![] };
        let mut view = |s: &Option<SlotId>| s.map(|s| places.view(&self.l.slots[s]));
        let views: Vec<_> = ends.iter().map(|(from, to)| (view(from), view(to))).collect();
        let (l, mut scratch, rank) = (&mut *self.l, vec![], self.from.ctx.rank());
        let list = OperationList::of(walk, rank, &views, &mut |bytes| {
            let root = l.root(Home::Arena, device, bytes);
            scratch.push(root);
            Ok(Span { ptr: std::ptr::without_provenance_mut(places.place(root, bytes)), len: bytes })
        })?;
        let mut used: BTreeMap<RootId, (usize, usize)> = BTreeMap::new();
        list.touched(|n, address| {
            if let Some(root) = places.at(address) {
                used.entry(root).or_insert((n, n)).1 = n;
            }
        });
        let now = l.time;
        for (r, (first, last)) in used {
            let root = &mut l.roots[r];
            if r >= new {
                root.first = now + first;
            }
            root.last = root.last.max(now + last);
        }
        l.time += list.len().max(1);
        Ok(scratch)
    }
}

fn devices(b: &PlannedBoxing) -> (Device, Device) {
    (b.plan.src.placement.device(), b.plan.dst.placement.device())
}

/// The first address that stands for memory, and a multiple that suits every dtype.
const FIRST: usize = 1 << 12;

/// Addresses that stand for memory which is not known yet: of each piece the one behind it, and the root.
struct Places {
    next: usize,
    all: Vec<(usize, RootId)>,
}

impl Places {
    /// Takes the next addresses for a piece of memory.
    fn place(&mut self, root: RootId, bytes: usize) -> usize {
        let at = self.next;
        self.next = (at + bytes.max(1)).next_multiple_of(FIRST);
        self.all.push((self.next, root));
        at
    }

    /// A view of the memory of a slot.
    fn view(&mut self, slot: &Slot) -> View {
        let (ty, mut low, mut high) = (&slot.ty.ty, 0usize, 0usize);
        for (size, stride) in ty.shape.iter().zip(&slot.strides) {
            let reach = size.saturating_sub(1) * stride.unsigned_abs();
            *if *stride < 0 { &mut low } else { &mut high } += reach;
        }
        let element = ty.dtype.size();
        let at = self.place(slot.root, (low + high + 1) * element);
        placeholder(at + low * element, ty.dtype, &ty.shape, &slot.strides)
    }

    /// The root that an address stands for.
    fn at(&self, address: usize) -> Option<RootId> {
        let at = self.all.partition_point(|(end, _)| *end <= address);
        self.all.get(at).filter(|_| address >= FIRST).map(|(_, root)| *root)
    }
}
