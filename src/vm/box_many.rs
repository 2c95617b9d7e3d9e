//! Runs many boxing plans together on this rank: in waves, with steps of one kind packed into one collective.
//!
//! [`crate::boxing::many`] decides which steps are packed together, and says why this cannot deadlock and gives the same bits. Here the
//! send buffer of a bucket is packed member by member, within a member boxing by boxing; the collective runs once; its result is unpacked
//! in the same order. A bucket of one step runs as a single boxing, without packing.

use super::box_exec::{Run, assemble, call, checked, execute_at, finish, no_shard, own_box};
use super::boxing_device::{ALIGN, Among, BoxingDevice, Message, Scratch, Span, along, part_bytes, view_at};
use super::boxing_device_host::on_host;
use crate::boxing::many::{batches, waves};
use crate::boxing::{BoxingPlan, GroupOp, Parts, RankCollective, RankProgram, RankStep};
use crate::comm::{Communicator, Tag};
use crate::error::{Error, Result};
use crate::memory::Allocator;
use oflow_kernels::{DType, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// This rank's shards of one plan, as [`execute`](super::box_exec::execute) takes them.
pub struct Ends<'a> {
    /// Shard of the source layout.
    pub src: Option<&'a View>,
    /// Shard of the destination layout.
    pub dst: Option<&'a View>,
}

/// Runs this rank's part of many plans, as [`execute`](super::box_exec::execute) does for each, with fewer collectives. All ranks of all
/// placements call this with the same plans in the same order.
///
/// # Errors
/// As [`execute`](super::box_exec::execute).
pub fn execute_many(
    plans: &[Arc<BoxingPlan>],
    ends: &[Ends],
    (comm, memory): (&dyn Communicator, &Allocator),
    tag: &Tag,
) -> Result<()> {
    on_host((comm, memory), tag, |host| execute_many_at(host, plans, ends))
}

/// Like [`execute_many`], on the device of the shards.
pub(crate) fn execute_many_at<P: BoxingDevice>(place: &mut P, plans: &[Arc<BoxingPlan>], ends: &[Ends]) -> Result<()> {
    if plans.len() != ends.len() {
        return Err(Error::argument(format!("{} plans with the shards of {}", plans.len(), ends.len())));
    }
    for batch in batches(plans) {
        match &plans[batch.clone()] {
            [plan] => execute_at(place, plan, ends[batch.start].src, ends[batch.start].dst)?,
            plans => Batch::new(place, plans, &ends[batch])?.waves()?,
        }
    }
    Ok(())
}

struct Batch<'a, P> {
    plans: &'a [Arc<BoxingPlan>],
    programs: Vec<(DType, Arc<RankProgram>)>,
    ends: &'a [Ends<'a>],
    /// This rank's shard of each boxing before the current wave; `None` if it has none.
    shards: Vec<Option<View>>,
    arena: Arena,
    /// For each boxing, the first boxing of the same scope: exchanges of one scope may share a batch of messages. All ranks that take
    /// part in the boxing take part in that first one too, so the scopes are the same on all of them.
    scopes: Vec<usize>,
    place: &'a mut P,
}

/// Scratch memory for the shards between two steps. No part is reused, because a later step may still read the output of an earlier one
/// through a view.
struct Arena(Span);

/// Bytes that a shard takes in the arena.
fn aligned_bytes(dtype: DType, size: &[usize]) -> usize {
    (size.iter().product::<usize>() * dtype.size()).next_multiple_of(ALIGN)
}

impl Arena {
    fn new<P: BoxingDevice>(place: &mut P, programs: &[(DType, Arc<RankProgram>)]) -> Result<Arena> {
        let mut needed = 0;
        for (dtype, program) in programs {
            let mut size = program.src.clone();
            for (i, step) in program.steps.iter().enumerate() {
                size = step.size_after(size);
                if let Some(size) = size.as_ref().filter(|_| !program.writes_destination(i)) {
                    needed += aligned_bytes(*dtype, size);
                }
            }
        }
        Ok(Arena(place.scratch_buffer(Scratch::Arena, needed)?))
    }

    fn take(&mut self, dtype: DType, size: &[usize]) -> View {
        let bytes = self.0.cut(aligned_bytes(dtype, size));
        view_at(bytes.ptr, dtype, size)
    }
}

impl<'a, P: BoxingDevice> Batch<'a, P> {
    fn new(place: &'a mut P, plans: &'a [Arc<BoxingPlan>], ends: &'a [Ends<'a>]) -> Result<Batch<'a, P>> {
        let programs = plans.iter().zip(ends).map(|(p, e)| Ok((p.dtype, checked(p, place.rank(), e.src, e.dst)?)));
        let programs = programs.collect::<Result<Vec<_>>>()?;
        let shards = ends.iter().map(|e| e.src.cloned()).collect();
        let arena = Arena::new(place, &programs)?;
        let numbers: Vec<usize> = plans.iter().map(|p| place.scope(p)).collect();
        let first = |n: &usize| numbers.iter().position(|m| m == n).unwrap_or(0);
        let scopes = numbers.iter().map(first).collect();
        Ok(Batch { plans, programs, ends, shards, arena, scopes, place })
    }

    fn waves(&mut self) -> Result<()> {
        let scopes = std::mem::take(&mut self.scopes);
        for (number, wave) in waves(&self.programs).into_iter().enumerate() {
            for i in wave.local {
                self.alone(i, number)?;
            }
            for bucket in wave.buckets {
                match bucket.as_slice() {
                    [only] => self.alone(*only, number)?,
                    several => self.bucket(several, number)?,
                }
            }
            for mut exchange in wave.exchanges {
                // Sorting keeps the order of the boxings within a scope.
                exchange.sort_by_key(|i| scopes[*i]);
                for one in exchange.chunk_by(|i, j| scopes[*i] == scopes[*j]) {
                    match one {
                        [only] => self.alone(*only, number)?,
                        several => self.exchange(several, number)?,
                    }
                }
            }
        }
        for (shard, e) in self.shards.iter().zip(self.ends) {
            finish(self.place, shard.as_ref(), e.dst)?;
        }
        Ok(())
    }

    /// Memory that step `number` of boxing `i` writes: the destination, or a part of the arena.
    fn output(&mut self, i: usize, number: usize, size: &[usize]) -> View {
        let (dtype, program) = &self.programs[i];
        match self.ends[i].dst {
            Some(dst) if program.writes_destination(number) => dst.clone(),
            _ => self.arena.take(*dtype, size),
        }
    }

    /// Runs step `number` of boxing `i` by itself.
    fn alone(&mut self, i: usize, number: usize) -> Result<()> {
        let (dtype, program) = (self.programs[i].0, self.programs[i].1.clone());
        let (input, dst) = (self.shards[i].take(), self.ends[i].dst);
        let arena = &mut self.arena;
        let mut run = Run { place: &mut *self.place, plan: &self.plans[i] };
        self.shards[i] = run.step(&program.steps[number], input, |_, size| match dst {
            Some(dst) if program.writes_destination(number) => Ok(dst.clone()),
            _ => Ok(arena.take(dtype, size)),
        })?;
        Ok(())
    }

    /// Runs step `number` of several boxings as one collective.
    fn bucket(&mut self, several: &[usize], number: usize) -> Result<()> {
        let dtype = self.programs[several[0]].0;
        let programs: Vec<Arc<RankProgram>> = several.iter().map(|i| self.programs[*i].1.clone()).collect();
        let mut jobs: Vec<Job> = Vec::with_capacity(several.len());
        for (&i, program) in several.iter().zip(&programs) {
            let c = collective(&program.steps[number])?;
            // In a broadcast only the root has an input.
            let shard = match self.shards[i].take() {
                None if c.op != GroupOp::Broadcast => return Err(no_shard()),
                shard => shard,
            };
            let out = self.output(i, number, &c.size);
            jobs.push(Job::new(c, shard, out));
        }
        let RankCollective { op, members, .. } = collective(&programs[0].steps[number])?;
        let (mut to, mut from) = (zeros(members.ranks.len()), zeros(members.ranks.len()));
        for job in &jobs {
            to.iter_mut().zip(&job.send_bytes).for_each(|(sum, n)| *sum += n);
            from.iter_mut().zip(&job.receive_bytes).for_each(|(sum, n)| *sum += n);
        }
        let (send_all, receive_all) = (to.iter().sum(), from.iter().sum());
        let place = &mut *self.place;
        let sent = place.scratch_buffer(Scratch::Send, send_all)?;
        let mut rest = sent;
        for m in 0..members.ranks.len() {
            for job in &jobs {
                let (now, later) = rest.split_at(job.send_bytes[m]);
                if let Some(shard) = &job.shard
                    && let Some(part) = part(shard, job.cut, m)?
                {
                    place.copy(&part, &now.view(dtype, part.dims()))?;
                }
                rest = later;
            }
        }
        let received = match op {
            GroupOp::Broadcast => sent,
            _ => place.scratch_buffer(Scratch::Receive, receive_all)?,
        };
        place.collective(members, call(*op, dtype, (sent, &to), (received, &from)))?;
        let mut rest = received;
        for m in 0..members.ranks.len() {
            for job in &jobs {
                let (now, later) = rest.split_at(job.receive_bytes[m]);
                if let Some(to) = part(&job.out, job.joined, m)? {
                    place.copy(&now.view(dtype, to.dims()), &to)?;
                }
                rest = later;
            }
        }
        for (i, job) in several.iter().zip(jobs) {
            self.shards[*i] = Some(job.out);
        }
        Ok(())
    }

    /// Runs step `number`, an exchange, of several boxings of one dtype as one batch of messages.
    fn exchange(&mut self, several: &[usize], number: usize) -> Result<()> {
        let dtype = self.programs[several[0]].0;
        let programs: Vec<Arc<RankProgram>> = several.iter().map(|i| self.programs[*i].1.clone()).collect();
        let steps: Vec<_> = programs
            .iter()
            .filter_map(|p| if let RankStep::Exchange(x) = &p.steps[number] { Some(x) } else { None })
            .collect();
        let mut outs = Vec::with_capacity(several.len());
        for (&i, x) in several.iter().zip(&steps) {
            outs.push(x.size.as_ref().map(|size| self.output(i, number, size)));
        }
        let bytes = |size: &[usize]| size.iter().product::<usize>() * dtype.size();
        // One message per peer: the parts of all boxings for it, one after another.
        let to = peers(steps.iter().map(|x| x.sends.iter().map(|t| (t.rank, bytes(&t.size)))));
        let from = peers(steps.iter().map(|x| x.receives.iter().map(|t| (t.rank, bytes(&t.size)))));
        let place = &mut *self.place;
        let all = |peers: &[(usize, usize)]| peers.iter().map(|p| p.1.next_multiple_of(ALIGN)).sum();
        let mut rest = place.scratch_buffer(Scratch::Send, all(&to))?;
        let mut sends: Vec<Message> = Vec::with_capacity(to.len());
        for (peer, len) in to {
            let message = rest.cut(len);
            let mut free = message;
            for (&i, x) in several.iter().zip(&steps) {
                for t in x.sends.iter().filter(|t| t.rank == peer) {
                    let (now, later) = free.split_at(bytes(&t.size));
                    let part = own_box(self.shards[i].as_ref(), &t.offset, &t.size)?;
                    place.copy(&part, &now.view(dtype, &t.size))?;
                    free = later;
                }
            }
            sends.push((peer, message));
        }
        let mut rest = place.scratch_buffer(Scratch::Receive, all(&from))?;
        let receives: Vec<Message> = from.into_iter().map(|(peer, len)| (peer, rest.cut(len))).collect();
        if !sends.is_empty() || !receives.is_empty() {
            place.exchange(Among::Plan(&self.plans[several[0]]), &sends, &receives)?;
        }
        // The part of each peer's message that is not unpacked yet.
        let mut rests = receives;
        for ((&i, x), out) in several.iter().zip(&steps).zip(outs) {
            let mut messages: SmallVec<[Span; 8]> = SmallVec::new();
            for t in &x.receives {
                let lost = || Error::comm(format!("no message from rank {}", t.rank));
                let (_, rest) = rests.iter_mut().find(|(peer, _)| *peer == t.rank).ok_or_else(lost)?;
                let (now, later) = rest.split_at(bytes(&t.size));
                messages.push(now);
                *rest = later;
            }
            let shard = self.shards[i].take();
            if let Some(out) = &out {
                assemble(place, x, shard.as_ref(), &messages, out)?;
            }
            self.shards[i] = out;
        }
        Ok(())
    }
}

/// Sums the bytes of each peer; the result is in order of ranks.
fn peers(messages: impl Iterator<Item = impl Iterator<Item = (usize, usize)>>) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = messages.flatten().collect();
    all.sort_unstable();
    all.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        sum.1 += if same { next.1 } else { 0 };
        same
    });
    all
}

/// Bytes for each member of a group.
type Counts = SmallVec<[usize; 8]>;

/// A boxing's step in a bucket.
struct Job<'a> {
    shard: Option<View>,
    out: View,
    /// The parts of the input that the members receive, and the parts of the output that they send; `None` for all of it.
    cut: Option<&'a Parts>,
    joined: Option<&'a Parts>,
    /// Bytes to and from each member.
    send_bytes: Counts,
    receive_bytes: Counts,
}

impl<'a> Job<'a> {
    fn new(c: &'a RankCollective, shard: Option<View>, out: View) -> Job<'a> {
        let (cut, joined) = (c.cut.as_ref(), c.joined.as_ref());
        let bytes = |parts: Option<&Parts>, v: &View| match parts {
            Some(parts) => part_bytes(v.dtype(), v.dims(), parts),
            // All members have the whole; it is counted once, for the first member.
            None => (0..c.members.ranks.len()).map(|m| if m == 0 { v.len() * v.dtype().size() } else { 0 }).collect(),
        };
        let (send_bytes, receive_bytes) = (bytes(cut, shard.as_ref().unwrap_or(&out)), bytes(joined, &out));
        Job { shard, out, cut, joined, send_bytes, receive_bytes }
    }
}

/// A member's part of a view. Without `parts` the first member has the whole view, the others have nothing.
fn part(v: &View, parts: Option<&Parts>, member: usize) -> Result<Option<View>> {
    match parts {
        Some(parts) => along(v, parts.dim, &parts.ranges[member]).map(Some),
        None => Ok((member == 0).then(|| v.clone())),
    }
}

fn zeros(members: usize) -> Counts {
    Counts::from_elem(0, members)
}

fn collective(step: &RankStep) -> Result<&RankCollective> {
    match step {
        RankStep::Collective(c) => Ok(c),
        _ => Err(Error::comm("a step without a group has no bucket")),
    }
}
