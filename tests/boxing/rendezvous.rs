//! A machine without buffering on which ranks run under an adversary, on one thread: fast enough for 100,000 sequences.
//!
//! What runs is the real code's sequence of transport operations, not a paraphrase. [`record`] carries a plan out with
//! `vm::box_many::execute_many` (which for one is `box_exec::execute`) over `comm::Collectives`, each rank on a [`Transport`] that writes down every acquire, publish,
//! receive, release and finish. A rank whose receive finds nothing posted yet stops with an error and starts again when the
//! others have posted more; what it does is the same each time (the recorder checks that), so in the end each rank's list
//! is complete. Operations depend on a plan's shapes, not on values, so one recording serves every sequence in which
//! the boxing stands.
//!
//! [`run`] then lets ranks step through their lists. **Semantics**: an acquire goes on when the buffer's last post has been
//! read by all its readers; a publish posts; a receive goes on when the peer's next post is there, and must be the one that
//! the real collective accepted; a finish, which ends every collective, goes on only when *everything* that the rank posted
//! has been read. So nothing is in flight between two collectives of a rank. Within one, a rank has `slots` posts in
//! flight, as the transports have `SLOTS`; with fewer the machine is stricter than any transport. **Adversary**: who of the
//! ranks that can move does. When none can, the waits are the report.

use super::hosts::table;
use super::oracle::shard_size;
use super::ranks::{Boxing, Memory, Random, room, tag};
use oflow::boxing::Planner;
use oflow::boxing::many::bytes_sent_together;
use oflow::comm::transport::{Arrived, Head, RunningCall, Segment, Transport};
use oflow::comm::{Collective, Collectives};
use oflow::error::{Error, Result};
use oflow::kernels::View;
use oflow::vm::box_many::{Ends, execute_many};
use std::sync::{Arc, Mutex, MutexGuard};

/// One operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Acquire,
    Publish(Vec<(usize, Post)>),
    Receive(usize, Post),
    Release(usize),
    Finish(Collective),
}

/// What the two ends of a post must agree about, besides the boxing that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    pub kind: u8,
    pub total: u64,
    pub len: usize,
}

/// A boxing's operations by rank of the world.
pub struct Recording {
    pub text: String,
    pub ops: Vec<Vec<Op>>,
    /// Bytes posted, over all ranks, and what the plan says.
    pub posted: u64,
    pub planned: u64,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

/// The posts from rank i to rank j at `i * world + j`, in order; shared by the ranks of a recording.
type Mail = Arc<Mutex<Vec<Vec<(Head, usize)>>>>;

/// A rank's end while its operations are written down. Bytes are all the same.
struct Recorder {
    rank: usize,
    world: usize,
    /// The host of each rank.
    hosts: Vec<usize>,
    mail: Mail,
    ops: Arc<Mutex<Vec<Op>>>,
    /// Posts to and from each rank in this attempt.
    sent: Mutex<Vec<usize>>,
    read: Mutex<Vec<usize>>,
    outbox: Arc<Mutex<Vec<Line>>>,
    capacity: usize,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

// SAFETY: the outbox holds `capacity` initialised bytes, aligned to 64, and is this rank's alone; what receive points to is
// another part of it that nobody writes while the collective reads: posts carry no bytes.
unsafe impl Transport for Recorder {
    fn rank(&self) -> usize {
        self.rank
    }
    fn world(&self) -> usize {
        self.world
    }
    fn capacity(&self) -> usize {
        self.capacity
    }
    fn hosts(&self) -> &[usize] {
        &self.hosts
    }
    fn acquire(&self, _: &RunningCall) -> Result<*mut u8> {
        lock(&self.ops).push(Op::Acquire);
        Ok(lock(&self.outbox).as_mut_ptr().cast())
    }
    fn publish(&self, call: &RunningCall, parts: &[Segment]) {
        let (mut mail, mut sent) = (lock(&self.mail), lock(&self.sent));
        let mut posts = Vec::new();
        for p in parts {
            let head = Head {
                ordinal: call.tag.ordinal,
                hash: call.tag.hash,
                kind: call.kind as u8,
                total: p.total,
                arrived: 0,
            };
            let link = &mut mail[self.rank * self.world + p.reader];
            match link.get(sent[p.reader]) {
                Some(before) => assert_eq!(*before, (head, p.len), "an attempt posts what the one before posted"),
                None => link.push((head, p.len)),
            }
            sent[p.reader] += 1;
            posts.push((p.reader, Post { kind: head.kind, total: p.total, len: p.len }));
        }
        lock(&self.ops).push(Op::Publish(posts));
    }
    fn receive(&self, _: &RunningCall, from: usize) -> Result<Arrived> {
        let n = lock(&self.read)[from];
        let Some(&(head, len)) = lock(&self.mail)[from * self.world + self.rank].get(n) else {
            return Err(Error::comm("nothing posted yet"));
        };
        lock(&self.ops).push(Op::Receive(from, Post { kind: head.kind, total: head.total, len }));
        let data = lock(&self.outbox).as_ptr().cast::<u8>().wrapping_add(self.capacity);
        Ok(Arrived { head, data, len })
    }
    fn release(&self, from: usize) {
        lock(&self.read)[from] += 1;
        lock(&self.ops).push(Op::Release(from));
    }
    fn describe_post(&self, _: usize, head: &Head) -> String {
        format!("{head:?}")
    }
    fn reject(&self, call: &RunningCall, from: usize) {
        panic!("rank {} rejects a post of rank {from} in {}", self.rank, call.describe());
    }
    fn finish(&self, call: &RunningCall) -> Result<()> {
        lock(&self.ops).push(Op::Finish(call.kind));
        Ok(())
    }
}

/// A rank's ends of a boxing: zeros, and room.
fn shards(b: &Boxing, rank: usize, from: &mut Memory, to: &mut Memory) -> (Option<View>, Option<View>) {
    let src = b.src.placement.position(rank).map(|p| {
        let size = shard_size(&b.shape, &b.src, p);
        let view = room(from, b.dtype, &size);
        from.bytes(size.iter().product::<usize>() * b.dtype.size()).fill(0);
        view
    });
    (src, b.dst.placement.position(rank).map(|p| room(to, b.dtype, &shard_size(&b.shape, &b.dst, p))))
}

/// Carries one boxing, or several together, out on every rank of the world over recorders with buffers of `capacity` bytes.
pub fn record(world: usize, capacity: usize, all: &[Boxing]) -> Recording {
    record_on(&[world], &Planner::default(), capacity, all)
}

/// As [`record`], on hosts with so many ranks each, for which the planner plans.
pub fn record_on(sizes: &[usize], planner: &Planner, capacity: usize, all: &[Boxing]) -> Recording {
    let hosts = table(sizes);
    let world = hosts.len();
    let plans: Vec<_> = all.iter().map(|b| planner.plan(&b.shape, b.dtype, &b.src, &b.dst).unwrap()).collect();
    let texts: Vec<_> = all.iter().map(|b| format!("{}{:?} {} -> {}", b.dtype, b.shape, b.src, b.dst)).collect();
    let text = texts.join(" and ");
    let mail: Mail = Arc::new(Mutex::new(vec![Vec::new(); world * world]));
    let mut ops: Vec<Option<Vec<Op>>> = vec![None; world];
    let mut before = usize::MAX;
    while ops.iter().any(|o| o.is_none()) {
        let now = lock(&mail).iter().map(Vec::len).sum::<usize>() * (world + 1) + ops.iter().flatten().count();
        assert_ne!(now, before, "no rank goes on even with unlimited buffers: {text}");
        before = now;
        for rank in (0..world).filter(|r| ops[*r].is_none()).collect::<Vec<_>>() {
            let list = Arc::new(Mutex::new(Vec::new()));
            let comm = Collectives::new(Recorder {
                rank,
                world,
                hosts: hosts.clone(),
                mail: mail.clone(),
                ops: list.clone(),
                sent: Mutex::new(vec![0; world]),
                read: Mutex::new(vec![0; world]),
                outbox: Arc::new(Mutex::new(vec![Line([0; 64]); capacity / 64 * 2])),
                capacity,
            });
            let mut memory: Vec<_> = all.iter().map(|_| (Memory::new(0), Memory::new(0))).collect();
            let views: Vec<_> = all.iter().zip(&mut memory).map(|(b, (from, to))| shards(b, rank, from, to)).collect();
            let ends: Vec<_> = views.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
            match execute_many(&plans, &ends, (&comm, crate::memory()), &tag(0)) {
                Ok(()) => ops[rank] = Some(std::mem::take(&mut lock(&list))),
                Err(e) => assert!(e.message().contains("nothing posted yet"), "{text}: {e}"),
            }
        }
    }
    let posted = lock(&mail).iter().flatten().map(|(_, len)| *len as u64).sum();
    let planned = (0..world).map(|r| bytes_sent_together(&plans, r)).sum();
    Recording { text, ops: ops.into_iter().flatten().collect(), posted, planned }
}

/// Who moves when several can.
#[derive(Clone, Copy, Debug)]
pub enum Adversary {
    /// Anyone.
    Random,
    /// The one that became able to move last, until it is blocked.
    LatestFirst,
    /// Anyone but this rank, as long as another can.
    Starve(usize),
}

/// What went wrong.
#[derive(Debug)]
pub enum Stop {
    /// No rank can move; who waits for whom.
    Deadlock(String),
    /// A rank took a post of another boxing.
    Diverged(String),
}

#[derive(Default)]
struct Link {
    /// Posts not yet released: boxing and contents.
    posts: std::collections::VecDeque<(usize, Post)>,
    sent: u32,
    taken: u32,
}

/// One rank between two operations.
struct Rank<'a> {
    /// Its calls in its own order: number of the boxing in the sequence and operations.
    calls: Vec<(usize, &'a [Op])>,
    call: usize,
    op: usize,
    /// Posts so far, and who must have taken what before a buffer is used again.
    posts: usize,
    pending: Vec<Vec<(usize, u32)>>,
}

impl<'a> Rank<'a> {
    fn next(&self) -> Option<(usize, &'a Op)> {
        self.calls.get(self.call).map(|(boxing, ops)| (*boxing, &ops[self.op]))
    }
}

pub struct Machine<'a> {
    sequence: &'a [&'a Recording],
    world: usize,
    slots: usize,
    links: Vec<Link>,
    ranks: Vec<Rank<'a>>,
}

impl<'a> Machine<'a> {
    /// `order[r]` lists the boxings in rank r's order of issue.
    pub fn new(sequence: &'a [&'a Recording], order: &[Vec<usize>], slots: usize) -> Machine<'a> {
        let world = order.len();
        let ranks = order.iter().enumerate().map(|(r, order)| {
            let calls = order.iter().map(|b| (*b, sequence[*b].ops[r].as_slice())).filter(|c| !c.1.is_empty());
            Rank { calls: calls.collect(), call: 0, op: 0, posts: 0, pending: vec![Vec::new(); slots] }
        });
        let links = (0..world * world).map(|_| Link::default()).collect();
        Machine { sequence, world, slots, links, ranks: ranks.collect() }
    }

    /// The rank that must move before this one can, and what it must do.
    fn blocked(&self, r: usize) -> Option<(usize, &'static str)> {
        let rank = &self.ranks[r];
        let unread = |slot: usize| {
            let late = |(q, n): &&(usize, u32)| self.links[r * self.world + q].taken < *n;
            rank.pending[slot].iter().find(late).map(|(q, _)| (*q, "to read"))
        };
        match rank.next()?.1 {
            Op::Acquire => unread(rank.posts % self.slots),
            Op::Finish(_) => (0..self.slots).find_map(unread),
            Op::Receive(from, _) => self.links[from * self.world + r].posts.is_empty().then_some((*from, "to send")),
            Op::Publish(_) | Op::Release(_) => None,
        }
    }

    fn step(&mut self, r: usize) -> Result<(), Stop> {
        let Some((boxing, op)) = self.ranks[r].next() else { return Ok(()) };
        match op {
            Op::Acquire => {
                let slot = self.ranks[r].posts % self.slots;
                self.ranks[r].pending[slot].clear();
            }
            Op::Publish(posts) => {
                let slot = self.ranks[r].posts % self.slots;
                for (reader, post) in posts {
                    let link = &mut self.links[r * self.world + reader];
                    link.posts.push_back((boxing, *post));
                    link.sent += 1;
                    self.ranks[r].pending[slot].push((*reader, link.sent));
                }
                self.ranks[r].posts += 1;
            }
            Op::Receive(from, post) => {
                let (theirs, arrived) = self.links[from * self.world + r].posts[0];
                if (theirs, arrived) != (boxing, *post) {
                    return Err(Stop::Diverged(format!(
                        "rank {r}, in #{boxing} {}, gets a post of rank {from} in #{theirs} {}",
                        self.sequence[boxing].text, self.sequence[theirs].text
                    )));
                }
            }
            Op::Release(from) => {
                let link = &mut self.links[from * self.world + r];
                link.posts.pop_front();
                link.taken += 1;
            }
            Op::Finish(_) => self.ranks[r].pending.iter_mut().for_each(Vec::clear),
        }
        let rank = &mut self.ranks[r];
        rank.op += 1;
        if rank.op == rank.calls[rank.call].1.len() {
            (rank.call, rank.op) = (rank.call + 1, 0);
        }
        Ok(())
    }

    fn collective(&self, r: usize) -> &'static str {
        let rank = &self.ranks[r];
        let rest = rank.calls.get(rank.call).map_or(&[][..], |c| &c.1[rank.op..]);
        let end = rest.iter().find_map(|o| if let Op::Finish(kind) = o { Some(kind.name()) } else { None });
        end.unwrap_or("nothing")
    }

    fn graph(&self) -> String {
        let waits = (0..self.world).filter_map(|r| {
            let ((on, what), (boxing, _)) = (self.blocked(r)?, self.ranks[r].next()?);
            let (kind, text) = (self.collective(r), &self.sequence[boxing].text);
            Some(format!("rank {r} waits for rank {on} {what}, in {kind} of #{boxing} {text}"))
        });
        waits.collect::<Vec<_>>().join("\n")
    }

    /// Runs all ranks to their ends; the number of operations.
    pub fn run(mut self, adversary: Adversary, rng: &mut Random) -> Result<u64, Stop> {
        let mut able: Vec<usize> = Vec::new();
        // When each rank could move again after a wait.
        let mut since = vec![0u64; self.world];
        for steps in 1.. {
            able.clear();
            let mut running = false;
            for (r, since) in since.iter_mut().enumerate() {
                if self.ranks[r].next().is_none() {
                    continue;
                }
                running = true;
                match self.blocked(r) {
                    Some(_) => *since = 0,
                    None => {
                        if *since == 0 {
                            *since = steps;
                        }
                        able.push(r);
                    }
                }
            }
            if able.is_empty() {
                return if running { Err(Stop::Deadlock(self.graph())) } else { Ok(steps - 1) };
            }
            let r = match adversary {
                Adversary::Random => *rng.of(&able),
                Adversary::LatestFirst => able.iter().copied().max_by_key(|r| since[*r]).unwrap_or(able[0]),
                Adversary::Starve(victim) => {
                    if able.len() > 1 {
                        able.retain(|r| *r != victim);
                    }
                    *rng.of(&able)
                }
            };
            self.step(r)?;
        }
        unreachable!("the sum of all operations is finite")
    }
}
