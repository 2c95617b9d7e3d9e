//! Exchanges beside computation: large boxings begin early and are waited for late.
//!
//! An exchange that is marked goes on while the calls behind it compute. From its beginning to the first call that waits for it, it keeps what it
//! reads, what it makes and its scratch memory, so memory limits how early it may begin. There are three ways to give it something to go on beside:
//!
//! - calls stand already between it and the first call that waits for it;
//! - it moves up, with what it needs and is quickly computed: a parameter is gathered while the layer before computes;
//! - the calls that wait for it move down: a parameter is updated while the gradients of the layer before are computed.
//!
//! The predicted run on two streams ([`super::streams`]) says which of them helps most. Collectives keep one order, the same on every rank.

use super::super::types::{Node, Program};
use super::depends::Depends;
use super::liveness::{Liveness, Sizes, is_even};
use super::streams::{Cost, Run, Streams};
use crate::boxing::Planner;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// An exchange is moved or marked if the run gets shorter by at least this part of its time.
const PART_OF_TIME: u64 = 16;
/// Nodes that are looked at on either side of an exchange.
const REACH: usize = 512;
/// Predicted times are rough: calls that compute so many times as long stand beside an exchange, where memory allows and no other exchange is in the
/// way.
const MARGIN: u64 = 4;
/// How often the exchanges are gone through.
const ROUNDS: usize = 2;
/// How often a way that takes too much memory is halved.
const HALVES: usize = 3;

/// Gives exchanges their places.
///
/// The peak stays, or where there is a budget, it stays within that. Where shards differ in size, all ranks keep their peaks.
pub(super) fn overlap(program: &mut Program, budget: Option<usize>, planner: &Planner) {
    program.nodes.iter_mut().for_each(|node| node.overlapped = false);
    let mut sizes = Sizes::default();
    let live = Liveness::of(program, &mut sizes);
    let streams = Streams::of(program, &live, (&mut sizes, planner));
    let exchanges = |n: &usize| matches!(streams.costs[*n], Cost::Exchanges(_));
    let all: Vec<usize> = (0..program.nodes.len()).filter(exchanges).collect();
    if all.is_empty() {
        return;
    }
    let budget = budget.filter(|_| is_even(program));
    let limit = live.peak.1.max(budget.map_or(0, |bytes| bytes.saturating_sub(live.outside)));
    let order: Vec<usize> = (0..program.nodes.len()).collect();
    let (depends, run) = (Depends::of(program, &live), streams.run(&order, |_| false));
    let overlapped = vec![false; order.len()];
    let mut search =
        Search { live: &live, streams: &streams, depends, limit, place: order.clone(), order, overlapped, run };
    for _ in 0..ROUNDS {
        let found = all.iter().filter(|n| search.improve(**n)).count();
        if found == 0 {
            break;
        }
    }
    let Search { order, overlapped, .. } = search;
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut program.nodes).into_iter().map(Some).collect();
    let placed = |n: usize| nodes[n].take().map(|node| Node { overlapped: overlapped[n], ..node });
    program.nodes = order.into_iter().filter_map(placed).collect();
}

struct Search<'a> {
    live: &'a Liveness,
    streams: &'a Streams,
    depends: Depends,
    /// The most bytes that may be in use.
    limit: usize,
    /// Nodes in their new order, by their numbers in the program, and the place of each.
    order: Vec<usize>,
    place: Vec<usize>,
    /// Exchanges that go on while others compute.
    overlapped: Vec<bool>,
    /// The predicted run.
    run: Run,
}

impl Search<'_> {
    /// Finds the way that shortens the run most, of those within the limit. Says whether there is one.
    fn improve(&mut self, n: usize) -> bool {
        let Cost::Exchanges(time) = self.streams.costs[n] else { return false };
        // What a run returns is waited for behind it.
        let first = self.first_user(n).unwrap_or(self.order.len());
        let between: u64 = self.order[self.place[n] + 1..first].iter().map(|k| self.computes(*k)).sum();
        // With the exchanges before it that go on at first.
        let needed = self.run.done[n] - self.run.asked[n];
        let beside =
            Beside { needed: needed.saturating_sub(between), wanted: (needed * MARGIN).saturating_sub(between) };
        let mut ways = vec![Way { kind: Kind::Stay, at: self.place[n], nodes: vec![], beside: 0, passes: false }];
        if beside.wanted > 0 {
            ways.extend(self.down(n, first, beside));
            ways.extend(self.up(n, time, beside));
        }
        let mut found: Vec<(u64, Way)> = vec![];
        for way in ways {
            let gain = self.gain(n, &way);
            if gain > 0 && gain >= time / PART_OF_TIME {
                found.push((gain, way));
            }
        }
        // Of equal ones the first.
        found.sort_by_key(|(gain, way)| (Reverse(*gain), way.passes, Reverse(way.beside.min(beside.wanted))));
        found.into_iter().any(|(_, way)| self.take(n, way, time))
    }

    /// By how much the run gets shorter.
    fn gain(&self, n: usize, way: &Way) -> u64 {
        let after = self.streams.run(&way.applied(&self.order), |k| k == n || self.overlapped[k]);
        self.run.time.saturating_sub(after.time)
    }

    /// Goes a way, or a shorter one that takes less memory.
    fn take(&mut self, n: usize, mut way: Way, time: u64) -> bool {
        for _ in 0..=HALVES {
            let order = way.applied(&self.order);
            let used = self.live.in_use(&order, |k| k == n || self.overlapped[k]).used;
            if used.iter().all(|used| *used <= self.limit) {
                order.iter().enumerate().for_each(|(at, k)| self.place[*k] = at);
                (self.order, self.overlapped[n]) = (order, true);
                self.run = self.streams.run(&self.order, |k| self.overlapped[k]);
                return true;
            }
            let Some(shorter) = self.shorter(n, &way) else { return false };
            let gain = self.gain(n, &shorter);
            if gain == 0 || gain < time / PART_OF_TIME {
                return false;
            }
            way = shorter;
        }
        false
    }

    /// The exchange moves up, until calls that compute long enough stand between it and the first call that waits for it, or until another
    /// exchange is in the way. Where that is too early to help, it moves past that one too.
    fn up(&self, n: usize, time: u64, mut until: Beside) -> Vec<Way> {
        let at = self.place[n];
        // It is moved, and what it needs of the nodes that it passes.
        let mut moved = BTreeSet::from([n]);
        let (mut best, mut beside, mut ways, mut passes) = (None, 0, vec![], false);
        for to in (at.saturating_sub(REACH)..at).rev() {
            let k = self.order[to];
            let needed = self.depends.behind[k].iter().any(|b| moved.contains(b));
            match self.streams.costs[k] {
                Cost::Computes(computes) if needed => {
                    moved.insert(k);
                    // What takes as long to compute is no help.
                    if moved.iter().map(|m| self.computes(*m)).sum::<u64>() > time || computes > until.needed {
                        break;
                    }
                }
                Cost::Computes(0) => {}
                Cost::Computes(computes) => {
                    best = Some(to);
                    beside += computes;
                    if until.is_met(beside, passes) {
                        break;
                    }
                }
                Cost::Exchanges(other) if !needed => {
                    ways.extend(best.take().filter(|_| !passes).map(|to| self.upward(to, at, n, (beside, passes))));
                    if beside >= until.needed {
                        break;
                    }
                    // That one needs its time too.
                    passes = true;
                    until.needed += other;
                }
                Cost::Exchanges(_) | Cost::Between(_) | Cost::Section { .. } => break,
            }
        }
        ways.extend(best.map(|to| self.upward(to, at, n, (beside, passes))));
        ways
    }

    /// The way of an exchange from one place up to another.
    fn upward(&self, to: usize, at: usize, n: usize, (beside, passes): (u64, bool)) -> Way {
        let mut needs = BTreeSet::from([n]);
        let (mut stay, mut moved) = (vec![], vec![]);
        for &k in self.order[to..=at].iter().rev() {
            let needed = k == n || self.depends.behind[k].iter().any(|b| needs.contains(b));
            if needed {
                needs.insert(k);
                moved.push(k);
            } else {
                stay.push(k);
            }
        }
        let nodes = moved.into_iter().rev().chain(stay.into_iter().rev()).collect();
        Way { at: to, nodes, kind: Kind::Up(at), beside, passes }
    }

    /// The calls that wait for the exchange move down, until others have computed long enough, or until another exchange is in the way.
    fn down(&self, n: usize, first: usize, until: Beside) -> Option<Way> {
        let (mut waits, mut best, mut beside) = (BTreeSet::from([n]), None, 0);
        for to in first..self.order.len().min(first + REACH) {
            let k = self.order[to];
            if self.depends.before[k].iter().any(|b| waits.contains(b)) {
                waits.insert(k);
                continue;
            }
            match self.streams.costs[k] {
                Cost::Computes(0) => {}
                Cost::Computes(computes) => {
                    best = Some(to);
                    beside += computes;
                    if until.is_met(beside, false) {
                        break;
                    }
                }
                Cost::Exchanges(_) if beside < until.needed => {}
                // Others begin after all exchanges.
                Cost::Exchanges(_) | Cost::Between(_) | Cost::Section { .. } => break,
            }
        }
        Some(self.downward(first, best?, n, beside))
    }

    /// The way of what waits for an exchange, from the first of it down to another place.
    fn downward(&self, first: usize, to: usize, n: usize, beside: u64) -> Way {
        let mut waits = BTreeSet::from([n]);
        let (mut stay, mut moved) = (vec![], vec![]);
        for &k in &self.order[first..=to] {
            if self.depends.before[k].iter().any(|b| waits.contains(b)) {
                waits.insert(k);
                moved.push(k);
            } else {
                stay.push(k);
            }
        }
        let nodes = stay.into_iter().chain(moved).collect();
        Way { at: first, nodes, kind: Kind::Down, beside, passes: false }
    }

    /// A way half as long.
    fn shorter(&self, n: usize, way: &Way) -> Option<Way> {
        let half = way.nodes.len() / 2;
        match way.kind {
            Kind::Stay => None,
            Kind::Up(at) if half > 0 => Some(self.upward(at - half, at, n, (0, way.passes))),
            Kind::Down if half > 1 => Some(self.downward(way.at, way.at + half - 1, n, 0)),
            Kind::Up(_) | Kind::Down => None,
        }
    }

    /// The place of the first node that uses what the exchange makes, or writes what it reads; also through windows, which nobody waits for.
    fn first_user(&self, n: usize) -> Option<usize> {
        let (mut open, mut first) = (vec![n], None);
        while let Some(n) = open.pop() {
            for &b in &self.depends.behind[n] {
                match self.streams.costs[b] {
                    Cost::Computes(0) => open.push(b),
                    _ => first = Some(first.map_or(self.place[b], |f: usize| f.min(self.place[b]))),
                }
            }
        }
        first
    }

    fn computes(&self, n: usize) -> u64 {
        match self.streams.costs[n] {
            Cost::Computes(time) => time,
            Cost::Between(_) | Cost::Exchanges(_) | Cost::Section { .. } => 0,
        }
    }
}

/// Direction of a way.
#[derive(Clone, Copy)]
enum Kind {
    /// The exchange stays where it is.
    Stay,
    /// The exchange moves up from this place.
    Up(usize),
    /// The calls that wait for it move down.
    Down,
}

/// How long calls are to compute beside an exchange that do not yet.
#[derive(Clone, Copy)]
struct Beside {
    /// So that nothing waits, as predicted.
    needed: u64,
    /// With the margin.
    wanted: u64,
}

impl Beside {
    /// Whether this is enough; behind other exchanges that are passed there is no margin.
    fn is_met(&self, beside: u64, passes: bool) -> bool {
        beside >= if passes { self.needed } else { self.wanted }
    }
}

/// New places of some nodes that stand behind each other.
struct Way {
    kind: Kind,
    /// The first of these places.
    at: usize,
    /// The nodes in their new order.
    nodes: Vec<usize>,
    /// How long the calls compute that stand beside the exchange then and did not before.
    beside: u64,
    /// Whether the exchange begins before others that it stood behind.
    passes: bool,
}

impl Way {
    /// The order that comes of it.
    fn applied(&self, order: &[usize]) -> Vec<usize> {
        let mut all = order.to_vec();
        all[self.at..self.at + self.nodes.len()].copy_from_slice(&self.nodes);
        all
    }
}
