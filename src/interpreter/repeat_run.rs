//! Loops of a run: what takes place where an iteration begins and ends, on tensors, and what all runs have in common.

use super::copy::{contiguous, copy_into};
use super::replay::{Replay, RunState};
use crate::context::RankCtx;
use crate::control::flight::GraphRun;
use crate::error::{Error, Result};
use crate::plan::{LocalRef, TypeRef, intern_local, local_type};
use crate::program::{ValueId, Work};
use crate::tensor::{LocalTensor, Tensor};
use oflow_kernels::Strides;
use smallvec::SmallVec;

/// The first or the last node of a loop, by the loop's number.
#[derive(Clone, Copy)]
pub(super) enum LoopEnd {
    Head(usize),
    Tail(usize),
}

/// The type of one part along dim 0 of what a rank holds.
pub(super) fn part_of(whole: &LocalRef) -> LocalRef {
    intern_local(whole.ty.shape.get(1..).unwrap_or(&[]), whole.ty.dtype, whole.device)
}

/// Elements from one part along dim 0 to the next, and the strides inside of a part.
pub(super) fn part_strides(whole: &[usize], strides: &[isize]) -> (isize, Strides) {
    // Without elements nothing is addressed.
    let by = if whole.contains(&0) { 0 } else { strides.first().copied().unwrap_or(0) };
    (by, strides.iter().skip(1).copied().collect())
}

impl Replay {
    /// Whether a node begins or ends a loop.
    #[inline]
    pub(super) fn loop_end(&self, n: usize) -> Option<LoopEnd> {
        match self.program().nodes[n].work {
            Work::Repeat(_) => self.loop_at(n),
            _ => None,
        }
    }

    fn loop_at(&self, n: usize) -> Option<LoopEnd> {
        self.loops().iter().enumerate().find_map(|(i, l)| match n {
            n if n == l.head => Some(LoopEnd::Head(i)),
            n if n == l.tail => Some(LoopEnd::Tail(i)),
            _ => None,
        })
    }

    /// An iteration has ended: its values are gone, and the next one draws other numbers. Returns whether there is a next one.
    pub(super) fn end_iteration(&self, state: &mut RunState, number: usize) -> bool {
        let l = &self.loops()[number];
        state.values[l.values.clone()].fill(None);
        state.flags.clear();
        l.hosts.iter().for_each(|id| self.captured().hosts[id.0 as usize].done());
        let more = state.turns[number] + 1 < l.count;
        for (g, draws) in state.generators.iter_mut().zip(&l.draws) {
            match more {
                true => g.ordinal += draws,
                // What comes after the loop counts its draws itself.
                false => g.ordinal -= draws * state.turns[number],
            }
        }
        state.turns[number] = if more { state.turns[number] + 1 } else { 0 };
        more
    }

    /// Begins a loop or ends an iteration, on tensors. Returns the node that comes next.
    pub(super) fn turn(&self, ctx: &RankCtx, state: &mut RunState, at: &GraphRun<'_>, end: LoopEnd) -> Result<usize> {
        let (LoopEnd::Head(number) | LoopEnd::Tail(number)) = end;
        let l = &self.loops()[number];
        let values = &mut state.values;
        let (next, last) = match end {
            LoopEnd::Head(_) => {
                for (_, whole) in &l.collected {
                    values[whole.index()] = Some(self.alloc(ctx, *whole)?);
                }
                let carried = l.carried.iter().map(|c| own(ctx, &there(values, c.before)?));
                let carried: SmallVec<[Tensor; 4]> = carried.collect::<Result<_>>()?;
                let mut written = SmallVec::<[Tensor; 4]>::new();
                for w in &l.written {
                    let t = there(values, w.before)?;
                    // A value that is read later is kept, in a handle of its own: the section writes other memory then.
                    values[w.before.index()] = (!self.ends(l.head).contains(&w.before)).then(|| t.value());
                    written.push(t);
                }
                (carried, written)
            }
            LoopEnd::Tail(_) => {
                for (part, whole) in &l.collected {
                    collect(ctx, &there(values, *part)?, &there(values, *whole)?, state.turns[number])?;
                }
                let carried = l.carried.iter().map(|c| own(ctx, &there(values, c.next)?));
                let carried = carried.collect::<Result<_>>()?;
                let written = l.written.iter().map(|w| values[w.next.index()].take().ok_or_else(missing));
                let written = written.collect::<Result<_>>()?;
                if !self.end_iteration(state, number) {
                    let values = &mut state.values;
                    l.carried.iter().zip(carried).for_each(|(c, t): (_, Tensor)| values[c.after.index()] = Some(t));
                    l.written.iter().zip(written).for_each(|(w, t): (_, Tensor)| values[w.after.index()] = Some(t));
                    self.ends(l.tail).iter().for_each(|v| values[v.index()] = None);
                    return Ok(l.tail + 1);
                }
                at.turn();
                (carried, written)
            }
        };
        let values = &mut state.values;
        for (_, part) in &l.slices {
            values[part.index()] = None;
        }
        for (whole, part) in &l.slices {
            values[part.index()] = Some(self.slice(values, (*whole, *part), state.turns[number])?);
        }
        l.carried.iter().zip(next).for_each(|(c, t)| values[c.inside.index()] = Some(t));
        l.written.iter().zip(last).for_each(|(w, t)| values[w.inside.index()] = Some(t));
        if matches!(end, LoopEnd::Head(_)) {
            self.ends(l.head).iter().for_each(|v| values[v.index()] = None);
        }
        Ok(l.head + 1)
    }

    /// A tensor for a value.
    fn alloc(&self, ctx: &RankCtx, v: ValueId) -> Result<Tensor> {
        let ty = self.program().ty(v);
        let local = local_type(ctx.rank(), ty).map(|l| LocalTensor::alloc(ctx, &l)).transpose()?;
        tensor_of(ty, local)
    }

    /// Slice `i` of a value.
    fn slice(&self, values: &[Option<Tensor>], (whole, part): (ValueId, ValueId), i: u64) -> Result<Tensor> {
        let local = there(values, whole)?.data()?.map(|l| part_at(&l, i)).transpose()?;
        tensor_of(self.program().ty(part), local)
    }
}

fn missing() -> Error {
    Error::registry("a value that a loop of a program needs is missing")
}

fn there(values: &[Option<Tensor>], v: ValueId) -> Result<Tensor> {
    values[v.index()].clone().ok_or_else(missing)
}

/// The tensor of a type, with this rank's part.
pub(super) fn tensor_of(ty: &TypeRef, local: Option<LocalTensor>) -> Result<Tensor> {
    match (ty, local) {
        (TypeRef::Global(g), local) => Ok(Tensor::from_shard(g.clone(), local)),
        (TypeRef::Local(_), Some(local)) => Ok(Tensor::from_local(local)),
        (TypeRef::Local(l), None) => Err(Error::registry(format!("a value {} of a program has no memory", l.ty))),
    }
}

/// A tensor of its own with the same value, which may be written.
fn own(ctx: &RankCtx, t: &Tensor) -> Result<Tensor> {
    match t.is_global() {
        // Written memory that others have is copied then.
        true => Ok(t.value()),
        false => Ok(Tensor::from_local(contiguous(ctx, &t.data()?.ok_or_else(missing)?)?)),
    }
}

fn part_at(whole: &LocalTensor, i: u64) -> Result<LocalTensor> {
    let (by, strides) = part_strides(whole.dims(), whole.strides());
    whole.window(&part_of(whole.ty()), by * i as isize, strides)
}

/// Copies what iteration `i` gives into its part of the whole.
fn collect(ctx: &RankCtx, part: &Tensor, whole: &Tensor, i: u64) -> Result<()> {
    match (part.data()?, whole.data()?) {
        (Some(part), Some(whole)) => copy_into(ctx, &part, &part_at(&whole, i)?),
        _ => Ok(()),
    }
}
