//! The predicted run of a program on two streams: calls compute on one, in their order; boxings of more than [`INLINE_BYTES`] are exchanged on the
//! other one, in theirs. A call waits for the exchange that makes what it reads or that uses what it writes.
//!
//! Smaller boxings are carried out between calls, after all exchanges before them. So are exchanges that are not [`Node::overlapped`]: the next
//! call may be given their memory.

use super::super::types::{Node, Program, ValueId};
use super::changes::{Change, changes};
use super::liveness::{Liveness, PS_PER_CALL, Sizes};
use crate::boxing::many::predicted_together;
use crate::boxing::{BoxingPlan, INLINE_BYTES, Layout, Planner};
use crate::plan::GlobalRef;
use std::sync::Arc;

/// The plans of changes of layout; `None` where one of them has none.
pub(super) fn plans(changes: &[Change<'_>], planner: &Planner) -> Option<Vec<Arc<BoxingPlan>>> {
    let layout = |g: &GlobalRef| Layout::new(&g.placement, g.sbp.clone());
    let plan = |(from, to): &Change<'_>| planner.plan(&from.ty.shape, from.ty.dtype, &layout(from), &layout(to)).ok();
    changes.iter().map(plan).collect()
}

/// Stream of a node, with its predicted time in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    Computes(u64),
    /// A boxing between calls.
    Between(u64),
    /// A boxing on the stream of exchanges.
    Exchanges(u64),
    /// A section with boxings, which begins after all exchanges before it, with the part of its time in which nothing is computed.
    Section {
        time: u64,
        exposed: u64,
    },
}

impl Cost {
    fn of(program: &Program, live: &Liveness, node: &Node, (sizes, planner): (&mut Sizes, &Planner)) -> Cost {
        if let Some(r) = node.repeat() {
            let streams = Streams::of(&r.body, &Liveness::of(&r.body, sizes), (sizes, planner));
            let once = streams.run_as_it_is(&r.body);
            let (time, exposed) = (once.time.saturating_mul(r.count), once.exposed.saturating_mul(r.count));
            return match streams.costs.iter().all(|c| matches!(c, Cost::Computes(_))) {
                true => Cost::Computes(time),
                false => Cost::Section { time, exposed },
            };
        }
        match changes(program, node) {
            Some(moved) if moved.is_empty() => Cost::Computes(0),
            Some(moved) => {
                let predicted = plans(&moved, planner).map_or(0, |all| predicted_together(&all).iter().sum());
                let bytes: usize = moved.iter().map(|(from, _)| from.ty.bytes()).sum();
                if bytes > INLINE_BYTES { Cost::Exchanges(predicted) } else { Cost::Between(predicted) }
            }
            None => Cost::Computes(live.time_of(program, node, sizes)),
        }
    }
}

/// Memory that a node uses, by number of the value that has it.
#[derive(Default)]
struct Uses {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

/// Costs of the nodes and the memory that they use, whatever their order is.
pub(super) struct Streams {
    pub(super) costs: Vec<Cost>,
    uses: Vec<Uses>,
    values: usize,
}

/// A predicted run. Times are in picoseconds from its beginning.
#[derive(Default)]
pub(super) struct Run {
    pub(super) time: u64,
    /// Part of the time in which exchanges go on and nothing is computed.
    pub(super) exposed: u64,
    /// By node that is an exchange: when it is its turn among the calls, and when it is done.
    pub(super) asked: Vec<u64>,
    pub(super) done: Vec<u64>,
}

impl Streams {
    pub(super) fn of(program: &Program, live: &Liveness, (sizes, planner): (&mut Sizes, &Planner)) -> Streams {
        let cost = |node| Cost::of(program, live, node, (&mut *sizes, planner));
        let costs = program.nodes.iter().map(cost).collect();
        let root = |v: ValueId| live.root[v.index()].index();
        let uses = |node: &Node| {
            let is_window = |v: &ValueId| root(*v) != v.index();
            if node.writes.is_empty() && !node.outputs.is_empty() && node.outputs.iter().all(is_window) {
                return Uses::default();
            }
            let made = node.outputs.iter().map(|v| root(*v));
            Uses {
                reads: node.inputs.iter().flatten().chain(&node.guard).map(|v| root(*v)).collect(),
                writes: node.writes.iter().map(|w| root(w.old)).chain(made).collect(),
            }
        };
        Streams { costs, uses: program.nodes.iter().map(uses).collect(), values: program.values.len() }
    }

    /// The run in the order and with the marks that the program has.
    pub(super) fn run_as_it_is(&self, program: &Program) -> Run {
        let order: Vec<usize> = (0..program.nodes.len()).collect();
        self.run(&order, |n| program.nodes[n].overlapped)
    }

    /// The run of the nodes in an order.
    pub(super) fn run(&self, order: &[usize], overlapped: impl Fn(usize) -> bool) -> Run {
        let count = self.costs.len();
        let mut run = Run { asked: vec![0; count], done: vec![0; count], ..Run::default() };
        // When the last exchange that makes and that reads each piece of memory is done.
        let (mut made, mut read) = (vec![0u64; self.values], vec![0u64; self.values]);
        let (mut now, mut busy, mut computed) = (0u64, 0u64, 0u64);
        for &n in order {
            let uses = &self.uses[n];
            run.asked[n] = now;
            match self.costs[n] {
                Cost::Computes(time) => {
                    let ready = uses.reads.iter().map(|r| made[*r]);
                    let free = uses.writes.iter().map(|w| made[*w].max(read[*w]));
                    now = ready.chain(free).fold(now, u64::max) + time;
                    computed += time;
                }
                Cost::Exchanges(time) if overlapped(n) => {
                    // To hand it over takes as long as a call.
                    now += PS_PER_CALL;
                    computed += PS_PER_CALL;
                    busy = busy.max(now) + time;
                    run.done[n] = busy;
                    uses.reads.iter().for_each(|r| read[*r] = busy);
                    uses.writes.iter().for_each(|w| made[*w] = busy);
                }
                Cost::Exchanges(time) | Cost::Between(time) => {
                    now = now.max(busy) + time;
                    (busy, run.done[n]) = (now, now);
                }
                Cost::Section { time, exposed } => {
                    now = now.max(busy) + time;
                    busy = now;
                    computed += time - exposed;
                }
            }
        }
        run.time = now.max(busy);
        run.exposed = run.time - computed;
        run
    }
}
