//! Loops of a planned program. The acts of one iteration are lowered once. An act at the loop's head copies what is carried, so that the initial
//! value stays; acts at its tail copy the next values over the present ones, unless they are made in their memory. Slices and collected parts
//! are windows that move from iteration to iteration.
//!
//! Memory from before the loop that the loop uses is kept until its end. So nothing that an iteration makes lies there, and each iteration finds
//! what the first one has found.

use super::super::repeat_run::{LoopEnd, part_of, part_strides};
use super::super::replay::{Replay, RunState};
use super::act::{Act, Home, RootId, SlotId, What};
use super::lower::{From, Lowered, Native, Way};
use super::section::{Inside, Moving, Section, Written};
use super::{Planned, unbound};
use crate::context::RankCtx;
use crate::control::flight::GraphRun;
use crate::error::{Error, Result};
use crate::memory::block_bytes;
use crate::plan::local_type;
use crate::program::{Loop, Node, Turn, Write};
use crate::tensor::Tensor;
use oflow_kernels::view::is_contiguous;
use smallvec::SmallVec;

/// A loop that is being lowered.
pub(super) struct Open {
    number: usize,
    /// Time at which the first iteration begins.
    begin: usize,
    /// The first act of an iteration.
    acts: usize,
    inside: Inside,
    collected: Vec<Option<SlotId>>,
}

impl Lowered {
    /// Lowers the first or the last node of a loop; of one that is carried out on tensors, all of its nodes.
    pub(super) fn loop_end(&mut self, from: &From<'_>, n: usize, open: &mut Vec<Open>) -> Result<()> {
        let before = self.acts.len();
        match from.loops.iter().position(|l| l.head == n) {
            Some(number) => {
                self.sections.resize_with(from.loops.len(), || Section::Acts(Inside::default()));
                let l = &from.loops[number];
                let plain = |w: &Turn| {
                    let slot = self.slot_of[w.before.index()];
                    slot.is_none_or(|s| self.is_contiguous(s) && !self.is_needed(w.before, self.slots[s].root, n))
                };
                if !l.written.iter().all(plain) {
                    self.on_tensors(from, number);
                    return Ok(());
                }
                open.push(self.begin_loop(from, number)?);
            }
            None => {
                let ended = open.pop().ok_or_else(|| Error::registry("a loop of a program ends before it begins"))?;
                let first = ended.acts;
                self.end_loop(from, ended)?;
                self.wait_for_exchanges(before..self.acts.len());
                self.wait_for_all(first);
            }
        }
        self.ways.push(Way::Acts(before..self.acts.len(), false));
        self.wait_for_exchanges(before..self.acts.len());
        Ok(())
    }

    fn begin_loop(&mut self, from: &From<'_>, number: usize) -> Result<Open> {
        let (program, rank) = (from.program, from.ctx.rank());
        let l = &from.loops[number];
        let node = &program.nodes[l.head];
        let (mut inside, mut collected) = (Inside::default(), vec![]);
        for c in &l.carried {
            let source = self.slot_of[c.before.index()];
            let slot = match (source, local_type(rank, program.ty(c.inside))) {
                (Some(source), Some(ty)) => {
                    let slot = self.slot(Home::Arena, &ty);
                    Native { l: self, from, n: l.head, node }.copy_into(source, slot)?;
                    Some(slot)
                }
                _ => None,
            };
            self.place(c.inside, slot);
        }
        for (whole, part) in &l.slices {
            let moving = self.slot_of[whole.index()].map(|whole| self.moving(whole));
            inside.moving.extend(moving.map(|(m, _)| m));
            self.place(*part, moving.map(|(_, slot)| slot));
        }
        for (_, whole) in &l.collected {
            let whole = local_type(rank, program.ty(*whole)).map(|ty| self.slot(Home::Arena, &ty));
            let moving = whole.map(|whole| self.moving(whole));
            inside.moving.extend(moving.map(|(m, _)| m));
            inside.wholes.extend(whole.map(|s| self.slots[s].root));
            collected.push(moving.map(|(_, slot)| slot));
        }
        for w in &l.written {
            self.own[w.inside.index()] = self.own[w.before.index()];
            self.place(w.inside, self.slot_of[w.before.index()]);
        }
        let read: SmallVec<[RootId; 4]> =
            node.needs().filter_map(|v| self.slot_of[v.index()]).map(|s| self.slots[s].root).collect();
        read.into_iter().for_each(|r| self.used(r));
        self.time += 1;
        Ok(Open { number, begin: self.time, acts: self.acts.len(), inside, collected })
    }

    /// A window onto one part of a slot along dim 0.
    fn moving(&mut self, whole: SlotId) -> (Moving, SlotId) {
        let (ty, outer) = (self.slots[whole].ty.clone(), self.slots[whole].root);
        let (by, strides) = part_strides(&ty.ty.shape, &self.slots[whole].strides);
        let part = part_of(&ty);
        let slot = self.slot(Home::Part(outer), &part);
        self.slots[slot].strides = strides;
        let window = self.slots[slot].root;
        let mut may_be = self.roots[outer].may_be.clone();
        may_be.push(window);
        may_be.sort_unstable();
        // Whoever uses the whole is to be waited for.
        (self.roots[window].may_be, self.roots[window].shared) = (may_be, true);
        (Moving { window, whole, by }, slot)
    }

    fn end_loop(&mut self, from: &From<'_>, open: Open) -> Result<()> {
        let Open { number, begin, acts, mut inside, collected } = open;
        let l = &from.loops[number];
        let (n, node) = (l.tail, &from.program.nodes[l.tail]);
        for ((part, whole), window) in l.collected.iter().zip(collected) {
            let Some(window) = window else { continue };
            if let Some(part) = self.slot_of[part.index()] {
                Native { l: self, from, n, node }.copy_into(part, window)?;
            }
            let found = inside.moving.iter().find(|m| m.window == self.slots[window].root).map(|m| m.whole);
            if let Some(slot) = found {
                let root = self.slots[slot].root;
                if let Some(act) = self.acts.last_mut() {
                    act.writes.push(root);
                }
                self.used(root);
                self.place(*whole, Some(slot));
            }
        }
        self.next_values(from, l, (begin, acts))?;
        for w in &l.written {
            let (to, last) = (self.slot_of[w.inside.index()], self.slot_of[w.next.index()]);
            inside.written.push(match (to, last) {
                (Some(to), Some(last)) if to != last => match self.roots[self.slots[to].root].home {
                    Home::Outside(_) => Written::Moved(to),
                    _ => Written::Copied,
                },
                _ => Written::InPlace,
            });
            self.own[w.after.index()] = self.own[w.before.index()];
            self.place(w.after, to);
        }
        for c in &l.carried {
            let slot = self.slot_of[c.inside.index()];
            slot.into_iter().for_each(|s| self.used(self.slots[s].root));
            self.place(c.after, slot);
        }
        for (whole, _) in &l.slices {
            let slot = self.slot_of[whole.index()];
            slot.into_iter().for_each(|s| self.used(self.slots[s].root));
        }
        // What lies there when the loop begins lies there in each iteration.
        let now = self.time;
        for r in self.roots.iter_mut().filter(|r| r.first < begin && r.last >= begin) {
            r.last = now;
        }
        self.time += 1;
        self.sections[number] = Section::Acts(inside);
        Ok(())
    }

    /// The acts that put the next values of what a loop carries and writes where an iteration finds them.
    fn next_values(&mut self, from: &From<'_>, l: &Loop, (begin, acts): (usize, usize)) -> Result<()> {
        let (n, node) = (l.tail, &from.program.nodes[l.tail]);
        let moved = l.carried.iter().map(|c| (c.next, c.inside)).chain(l.written.iter().map(|w| (w.next, w.inside)));
        let slots =
            moved.filter_map(|(next, inside)| Some((self.slot_of[next.index()]?, self.slot_of[inside.index()]?)));
        // The tensor from outside has its new memory itself.
        let moves = |(_, to): &(SlotId, SlotId)| !matches!(self.roots[self.slots[*to].root].home, Home::Outside(_));
        let mut pairs: Vec<(SlotId, SlotId)> = slots.filter(|(a, b)| a != b).filter(moves).collect();
        let targets: Vec<RootId> = pairs.iter().map(|(_, to)| self.slots[*to].root).collect();
        // A value that lies where another one is to be copied is read before.
        for (source, _) in &mut pairs {
            if targets.contains(&self.slots[*source].root) {
                *source = Native { l: self, from, n, node }.copy(*source)?;
            }
        }
        for (source, to) in pairs {
            if !self.made_in_place((source, to), (begin, acts)) {
                Native { l: self, from, n, node }.copy_into(source, to)?;
            }
        }
        Ok(())
    }

    /// Lets a next value be made in the memory of the present one, if nobody needs that any more when it is made.
    fn made_in_place(&mut self, (source, to): (SlotId, SlotId), (begin, acts): (usize, usize)) -> bool {
        let whole = |s: SlotId| {
            let (slot, root) = (&self.slots[s], &self.roots[self.slots[s].root]);
            let all =
                slot.offset == 0 && slot.ty.bytes == root.bytes && is_contiguous(&slot.ty.ty.shape, &slot.strides);
            all && root.home == Home::Arena
        };
        let (a, b) = (self.slots[source].root, self.slots[to].root);
        let next = &self.roots[a];
        // Also memory that was made on tensors and may be that of the present value.
        let shown = self.late.get(&b).into_iter().flatten();
        let present = shown.map(|r| self.roots[*r].last).fold(self.roots[b].last, usize::max);
        let collects = |s: &Section| matches!(s, Section::Acts(inside) if inside.wholes.contains(&a));
        let alike = self.slots[source].ty.id() == self.slots[to].ty.id() && whole(source) && whole(to);
        if !alike || next.first < begin || self.sections.iter().any(collects) {
            return false;
        }
        let ends = |act: &Act| {
            let What::Kernel(k) = &act.what else { return false };
            let proposed = k.plan.inplace.iter().any(|(i, o)| {
                let input = k.inputs.get(*i).copied().flatten();
                input == Some(to) && k.outputs.get(*o) == Some(&source)
            });
            proposed && act.reads.iter().chain(&act.writes).filter(|r| **r == b).count() == 1
        };
        let free = next.first > present
            || next.first == present && self.acts[acts..].iter().any(|act| act.time == next.first && ends(act));
        if !free {
            return false;
        }
        let instead = |r: &mut RootId| {
            if *r == a {
                *r = b;
            }
        };
        self.slots.iter_mut().for_each(|s| instead(&mut s.root));
        self.acts[acts..].iter_mut().for_each(|act| act.reads.iter_mut().chain(&mut act.writes).for_each(instead));
        for way in &mut self.ways {
            if let Way::Stepwise(roots) = way {
                roots.iter_mut().for_each(instead);
            }
        }
        self.may_share.iter_mut().for_each(|(kept, by)| [kept, by].into_iter().for_each(instead));
        for r in &mut self.roots {
            if r.may_be.binary_search(&a).is_ok()
                && let Err(at) = r.may_be.binary_search(&b)
            {
                r.may_be.insert(at, b);
            }
        }
        let shown = self.late.get(&a).cloned().unwrap_or_default();
        let of_present = self.late.entry(b).or_default();
        of_present.extend(shown);
        of_present.sort_unstable();
        of_present.dedup();
        let (last, shared, needed) = (self.roots[a].last, self.roots[a].shared, self.roots[a].needed);
        let present = &mut self.roots[b];
        (present.last, present.shared) = (present.last.max(last), present.shared | shared);
        present.needed = present.needed.max(needed);
        // Nobody uses it.
        let gone = &mut self.roots[a];
        (gone.bytes, gone.first, gone.last) = (0, 0, 0);
        true
    }

    /// A loop that is carried out on tensors: it writes over a value that is needed later.
    fn on_tensors(&mut self, from: &From<'_>, number: usize) {
        let (program, l) = (from.program, &from.loops[number]);
        let (head, tail) = (&program.nodes[l.head], &program.nodes[l.tail]);
        let write = |w: &Turn| Write { old: w.before, new: w.after };
        let mut node = Node { inputs: head.inputs.clone(), outputs: tail.outputs.clone(), ..tail.clone() };
        node.writes = l.written.iter().map(write).collect();
        let bytes = |v: usize| local_type(from.ctx.rank(), &program.values[v]).map_or(0, |ty| block_bytes(ty.bytes));
        let scratch: usize = l.values.clone().map(bytes).sum();
        // The most of all nodes, with what each of them allocates beside its results.
        self.scratch(scratch.saturating_mul(2));
        let in_place = self.stepwise(from, (l.head, &node));
        l.written.iter().for_each(|w| self.own[w.after.index()] = self.own[w.before.index()]);
        self.ways.resize(l.tail + 1, Way::Stepwise(SmallVec::new()));
        let needs = node.needs().collect();
        self.sections[number] = Section::OnTensors(needs, in_place);
    }

    /// Finds what a loop has to allocate when it begins.
    pub(super) fn end_loops(&mut self) {
        for section in &mut self.sections {
            if let Section::Acts(inside) = section {
                let fresh = inside.wholes.iter().copied().filter(|r| self.roots[*r].home == Home::Fresh);
                inside.fresh = fresh.collect();
            }
        }
    }

    /// The root whose memory a root is a part of, or itself.
    pub(super) fn whole_of(&self, root: RootId) -> RootId {
        match self.roots[root].home {
            Home::Part(whole) => self.whole_of(whole),
            _ => root,
        }
    }
}

impl Planned {
    /// Begins a loop or ends an iteration. Returns the node that comes next.
    pub(super) fn turn(
        &mut self,
        ctx: &RankCtx,
        replay: &Replay,
        state: &mut RunState,
        at: &GraphRun<'_>,
        end: LoopEnd,
    ) -> Result<usize> {
        let (LoopEnd::Head(number) | LoopEnd::Tail(number)) = end;
        let l = &replay.loops()[number];
        if let Section::OnTensors(..) = self.lowered.sections[number] {
            return self.loop_on_tensors(ctx, replay, state, at, number);
        }
        let n = if matches!(end, LoopEnd::Head(_)) { l.head } else { l.tail };
        if let LoopEnd::Head(_) = end {
            for w in &l.written {
                state.values[w.inside.index()] = state.values[w.before.index()].take();
            }
            self.allocate(ctx, number)?;
            self.move_windows(number, 0)?;
        }
        let Way::Acts(range, _) = self.lowered.ways[n].clone() else { return Err(unbound()) };
        for k in range {
            self.act(ctx, k, None).map_err(|e| replay.located(n, e))?;
        }
        if let LoopEnd::Head(_) = end {
            replay.ends(n).iter().for_each(|v| state.values[v.index()] = None);
            return Ok(l.head + 1);
        }
        let mut tensors: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
        for (i, w) in l.written.iter().enumerate() {
            let t = state.values[w.next.index()].take();
            let Section::Acts(inside) = &self.lowered.sections[number] else { return Err(unbound()) };
            tensors.push(match inside.written[i] {
                Written::InPlace => t,
                Written::Copied => None,
                Written::Moved(slot) => {
                    if let Some(t) = &t {
                        self.moved_to(slot, t)?;
                    }
                    t
                }
            });
        }
        let more = replay.end_iteration(state, number);
        for (w, t) in l.written.iter().zip(tensors) {
            state.values[if more { w.inside } else { w.after }.index()] = t;
        }
        if !more {
            replay.ends(n).iter().for_each(|v| state.values[v.index()] = None);
            return Ok(l.tail + 1);
        }
        self.move_windows(number, state.turns[number])?;
        at.turn();
        Ok(l.head + 1)
    }

    /// Allocates what a loop collects and the run returns.
    fn allocate(&mut self, ctx: &RankCtx, number: usize) -> Result<()> {
        let Section::Acts(inside) = &self.lowered.sections[number] else { return Ok(()) };
        for f in 0..inside.fresh.len() {
            let Section::Acts(inside) = &self.lowered.sections[number] else { return Ok(()) };
            let root = inside.fresh[f];
            let (device, bytes) = (self.lowered.roots[root].device, self.lowered.roots[root].bytes);
            let storage = ctx.device(device)?.alloc.alloc(bytes)?;
            self.bind(root, storage, 0)?;
        }
        Ok(())
    }

    /// Moves the windows of a loop to the parts of an iteration.
    fn move_windows(&mut self, number: usize, i: u64) -> Result<()> {
        let moving = |planned: &Planned, m: usize| match &planned.lowered.sections[number] {
            Section::Acts(inside) => inside.moving.get(m).copied(),
            Section::OnTensors(..) => None,
        };
        let mut m = 0;
        while let Some(Moving { window, whole, by }) = moving(self, m) {
            let slot = &self.lowered.slots[whole];
            let memory = self.memory[slot.root].as_ref().ok_or_else(unbound)?;
            let first = memory.offset.checked_add_signed(slot.offset + by * i as isize);
            let (storage, first) = (memory.storage.clone(), first.ok_or_else(unbound)?);
            self.bind(window, storage, first)?;
            m += 1;
        }
        Ok(())
    }

    /// A tensor from outside has other memory since a node has written it: the slot shows it now.
    fn moved_to(&mut self, slot: SlotId, t: &Tensor) -> Result<()> {
        let Some(l) = t.data()? else { return Ok(()) };
        if l.strides != self.lowered.slots[slot].strides {
            return Err(Error::registry("a tensor that a loop writes lies in other strides than before"));
        }
        let root = self.lowered.slots[slot].root;
        self.bind(root, l.storage.clone(), l.offset)
    }

    fn loop_on_tensors(
        &mut self,
        ctx: &RankCtx,
        replay: &Replay,
        state: &mut RunState,
        at: &GraphRun<'_>,
        number: usize,
    ) -> Result<usize> {
        let l = &replay.loops()[number];
        let Section::OnTensors(needs, in_place) = &self.lowered.sections[number] else { return Err(unbound()) };
        for v in needs {
            self.tensor_of(replay, state, *v)?;
        }
        let in_place = in_place.clone();
        self.let_go(&in_place);
        replay.replay_nodes(ctx, state, at, l.head..l.tail + 1)?;
        self.bind_made(ctx, state, replay.program().nodes[l.tail].defines().collect())?;
        Ok(l.tail + 1)
    }
}
