//! Sizes of a planned program, as programs are told them.

use super::act::{Arena, Home, Root};
use super::lower::Lowered;
use crate::error::CallSite;
use crate::memory::block_bytes;
use crate::placement::Device;
use crate::plan::{Lifetime, most_at_once};
use std::fmt;

/// Memory of one device that a graph needs on this rank, beside the tensors from outside and those that a run returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaSize {
    /// Device that holds it.
    pub device: Device,
    /// How many values, temporaries and pieces of scratch memory have a part of it.
    pub parts: usize,
    /// Size of the block that the allocator gives for it.
    pub bytes: usize,
    /// Bytes that its parts take.
    pub packed: usize,
    /// The most bytes of its parts that are in use at one time: no arena is smaller.
    pub bound: usize,
    /// Parts that are in use at that time, the largest first.
    pub at_peak: Vec<Living>,
}

/// Parts of an arena that calls of one op on one line have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Living {
    /// Name of the op; `box` of a change of layout.
    pub op: &'static str,
    /// Line of the calls.
    pub site: CallSite,
    /// How many parts.
    pub parts: usize,
    /// Bytes of these parts.
    pub bytes: usize,
}

/// Bytes of the tensors from outside, and the most that a run allocates beside the arenas.
pub(super) fn beside(lowered: &Lowered) -> (usize, usize) {
    let outside =
        lowered.roots.iter().filter(|r| matches!(r.home, Home::Outside(_))).map(|r| block_bytes(r.bytes)).sum();
    let lifetime = |r: &Root| Lifetime { bytes: block_bytes(r.bytes), first: r.first, last: r.last };
    let others = lowered.roots.iter().filter(|r| matches!(r.home, Home::Fresh | Home::Late));
    let others = others.map(lifetime).chain(lowered.scratch.iter().copied());
    (outside, most_at_once(&others.collect::<Vec<_>>()).0)
}

impl Living {
    /// Parts that are in use at the peak of an arena.
    pub(super) fn at_peak(lowered: &Lowered, arena: &Arena) -> Vec<Living> {
        let mut made: Vec<Option<(&'static str, CallSite)>> = vec![None; lowered.roots.len()];
        for act in &lowered.acts {
            let op = act.kernel().map_or("box", |k| k.plan.op.name());
            act.writes.iter().for_each(|w| {
                made[*w].get_or_insert((op, act.site));
            });
        }
        let mut living: Vec<Living> = vec![];
        for r in &arena.roots {
            let (root, Some((op, site))) = (&lowered.roots[*r], made[*r]) else { continue };
            if !(root.first..=root.last).contains(&arena.packing.peak) {
                continue;
            }
            match living.iter_mut().find(|l| l.op == op && l.site == site) {
                Some(l) => (l.parts, l.bytes) = (l.parts + 1, l.bytes + root.bytes),
                None => living.push(Living { op, site, parts: 1, bytes: root.bytes }),
            }
        }
        living.sort_by_key(|l| std::cmp::Reverse(l.bytes));
        living
    }
}

/// Kernels, boxings and memory with which a rank runs a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphPlan {
    /// Kernels that are prebuilt.
    pub kernels: usize,
    /// Boxings that are prebuilt, those that are carried out together as one, and exchanges of halos.
    pub boxings: usize,
    /// Nodes that are carried out on tensors: settings of hosts, copies between devices, views that a run returns.
    pub stepwise: usize,
    /// The arena of each device. It is allocated at the first run and kept as long as the graph.
    pub arenas: Vec<ArenaSize>,
    /// Bytes of the tensors from outside: parameters, states of optimizers, inputs, constants.
    pub outside: usize,
    /// Most bytes that a run allocates beside the arenas: what it returns, what nodes make that are carried out on tensors, and what boxings
    /// take between their steps that are not in host memory.
    pub allocated: usize,
    /// Kernels that a GPU takes together.
    pub cuda_graphs: CudaGraphs,
}

/// Kernels of a plan that follow each other on a GPU and are launched together, as CUDA graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaGraphs {
    /// Number of CUDA graphs.
    pub graphs: usize,
    /// Number of their kernels.
    pub kernels: usize,
    /// How many have been captured: at the second run with memory at the same addresses.
    pub captured: usize,
    /// Why their kernels are launched one by one: a setting, or what the driver said of one of them.
    pub refused: Option<String>,
}

impl GraphPlan {
    /// Most bytes in use during a run, with the tensors from outside.
    pub fn peak(&self) -> usize {
        self.outside + self.allocated + self.arenas.iter().map(|a| a.bytes).sum::<usize>()
    }
}

/// `13 kernels, 4 boxings, 2 nodes on tensors, 4096 bytes on cuda for 9 values (1.00 of the bound), 12 kernels in 2 CUDA graphs`.
impl fmt::Display for GraphPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kernels, {} boxings, {} nodes on tensors", self.kernels, self.boxings, self.stepwise)?;
        for a in &self.arenas {
            let gap = a.packed as f64 / a.bound.max(1) as f64;
            write!(f, ", {} bytes on {} for {} values ({gap:.2} of the bound)", a.bytes, a.device, a.parts)?;
        }
        let CudaGraphs { graphs, kernels, refused, .. } = &self.cuda_graphs;
        match refused {
            Some(why) => write!(f, ", no CUDA graphs: {why}")?,
            None if *graphs > 0 => write!(f, ", {kernels} kernels in {graphs} CUDA graphs")?,
            None => {}
        }
        Ok(())
    }
}
