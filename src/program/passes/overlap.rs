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
use std::collections::BTreeSet;

/// An exchange is moved or marked if the run gets shorter by at least this part of its time.
const PART_OF_TIME: u64 = 16;
/// Nodes that are looked at on either side of an exchange.
const REACH: usize = 512;
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
    let depends = Depends::of(program, &live);
    let run = streams.run(&order, |_| false);
    let mut search = Search { program, streams, depends, sizes, limit, place: order.clone(), order, run };
    for _ in 0..ROUNDS {
        let found = all.iter().filter(|n| search.improve(**n)).count();
        if found == 0 {
            break;
        }
    }
}

struct Search<'a> {
    program: &'a mut Program,
    streams: Streams,
    depends: Depends,
    sizes: Sizes,
    /// The most bytes that may be in use.
    limit: usize,
    /// Nodes by their first numbers, in the order of the program, and the place of each.
    order: Vec<usize>,
    place: Vec<usize>,
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
        // Exchanges before it go on at first.
        let missing = (self.run.done[n] - self.run.asked[n]).saturating_sub(between);
        let mut ways = vec![Way::stay(self.place[n])];
        if missing > 0 {
            ways.extend(self.down(n, first, missing));
            ways.extend(self.up(n, time, missing));
        }
        let mut found: Vec<(u64, Way)> = vec![];
        for way in ways {
            let gain = self.gain(n, &way);
            if gain > 0 && gain >= time / PART_OF_TIME {
                found.push((gain, way));
            }
        }
        // Of equal ones the first.
        found.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
        found.into_iter().any(|(_, way)| self.take(n, way, time))
    }

    /// By how much the run gets shorter.
    fn gain(&self, n: usize, way: &Way) -> u64 {
        let order = way.applied(&self.order);
        let after = self.streams.run(&order, |k| k == n || self.program.nodes[self.place[k]].overlapped);
        self.run.time.saturating_sub(after.time)
    }

    /// Goes a way, or a shorter one that takes less memory.
    fn take(&mut self, n: usize, mut way: Way, time: u64) -> bool {
        for _ in 0..=HALVES {
            if self.fits(n, &way) {
                let of_program = |k: usize| self.program.nodes[self.place[k]].overlapped;
                self.run = self.streams.run(&self.order, of_program);
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

    /// Goes a way and marks the exchange, if the memory that is in use stays within the limit.
    fn fits(&mut self, n: usize, way: &Way) -> bool {
        let (before, marked) = (self.order.clone(), self.program.nodes[self.place[n]].overlapped);
        self.arrange(way.applied(&before));
        self.program.nodes[self.place[n]].overlapped = true;
        if Liveness::of(self.program, &mut self.sizes).peak.1 <= self.limit {
            return true;
        }
        self.program.nodes[self.place[n]].overlapped = marked;
        self.arrange(before);
        false
    }

    /// Puts the nodes of the program in an order.
    fn arrange(&mut self, order: Vec<usize>) {
        let mut nodes: Vec<Option<Node>> = std::mem::take(&mut self.program.nodes).into_iter().map(Some).collect();
        self.program.nodes = order.iter().filter_map(|n| nodes[self.place[*n]].take()).collect();
        order.iter().enumerate().for_each(|(at, n)| self.place[*n] = at);
        self.order = order;
    }

    /// The exchange moves up, until calls that compute as long stand between it and the first call that waits for it; also less far, where
    /// it would pass other exchanges.
    fn up(&self, n: usize, time: u64, mut missing: u64) -> Vec<Way> {
        let at = self.place[n];
        // It is moved, and what it needs of the nodes that it passes.
        let mut moved = BTreeSet::from([n]);
        let (mut best, mut places) = (None, vec![]);
        for to in (at.saturating_sub(REACH)..at).rev() {
            let k = self.order[to];
            let needed = self.depends.behind[k].iter().any(|b| moved.contains(b));
            match self.streams.costs[k] {
                Cost::Computes(computes) if needed => {
                    moved.insert(k);
                    // What takes as long to compute is no help.
                    if moved.iter().map(|m| self.computes(*m)).sum::<u64>() > time || computes > missing {
                        break;
                    }
                }
                Cost::Computes(0) => {}
                Cost::Computes(computes) => {
                    best = Some(to);
                    if computes >= missing {
                        break;
                    }
                    missing -= computes;
                }
                // The other one needs its time too.
                Cost::Exchanges(other) if !needed => {
                    places.extend(best.take());
                    missing += other;
                }
                Cost::Exchanges(_) | Cost::Between(_) | Cost::Section { .. } => break,
            }
        }
        places.extend(best);
        places.dedup();
        let last = places.len().saturating_sub(1);
        let ends = places.iter().enumerate().filter(|(i, _)| *i == 0 || *i == last);
        ends.map(|(_, to)| self.upward(*to, at, n)).collect()
    }

    /// The way of an exchange from one place up to another.
    fn upward(&self, to: usize, at: usize, n: usize) -> Way {
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
        Way { at: to, nodes: moved.into_iter().rev().chain(stay.into_iter().rev()).collect(), kind: Kind::Up(at) }
    }

    /// The calls that wait for the exchange move down, until others have computed as long.
    fn down(&self, n: usize, first: usize, mut missing: u64) -> Option<Way> {
        let (mut waits, mut best) = (BTreeSet::from([n]), None);
        for to in first..self.order.len().min(first + REACH) {
            let k = self.order[to];
            if self.depends.before[k].iter().any(|b| waits.contains(b)) {
                waits.insert(k);
                continue;
            }
            match self.streams.costs[k] {
                Cost::Computes(0) | Cost::Exchanges(_) => {}
                Cost::Computes(computes) => {
                    best = Some(to);
                    if computes >= missing {
                        break;
                    }
                    missing -= computes;
                }
                // They begin after all exchanges.
                Cost::Between(_) | Cost::Section { .. } => break,
            }
        }
        Some(self.downward(first, best?, n))
    }

    /// The way of what waits for an exchange, from the first of it down to another place.
    fn downward(&self, first: usize, to: usize, n: usize) -> Way {
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
        Way { at: first, nodes: stay.into_iter().chain(moved).collect(), kind: Kind::Down }
    }

    /// A way half as long.
    fn shorter(&self, n: usize, way: &Way) -> Option<Way> {
        let half = way.nodes.len() / 2;
        match way.kind {
            Kind::Stay => None,
            Kind::Up(at) if half > 0 => Some(self.upward(at - half, at, n)),
            Kind::Down if half > 1 => Some(self.downward(way.at, way.at + half - 1, n)),
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

/// New places of some nodes that stand behind each other.
struct Way {
    /// The first of these places.
    at: usize,
    /// The nodes in their new order.
    nodes: Vec<usize>,
    kind: Kind,
}

impl Way {
    fn stay(at: usize) -> Way {
        Way { at, nodes: vec![], kind: Kind::Stay }
    }

    /// The order that comes of it.
    fn applied(&self, order: &[usize]) -> Vec<usize> {
        let mut all = order.to_vec();
        all[self.at..self.at + self.nodes.len()].copy_from_slice(&self.nodes);
        all
    }
}
