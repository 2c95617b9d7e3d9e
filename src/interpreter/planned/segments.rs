//! Segments: kernels of one GPU that follow each other in each run, issued as one piece of work (a CUDA graph).
//!
//! A segment consists of nodes whose kernels run on the compute stream of one device, with numbers that are the same in each run: without a guard,
//! numbers of the host or draws, outside of loops, whose windows move. None of them allocates, and all are ops of oflow's own: what a kernel of a
//! library does on the host would be done once only. A kernel that may wait for another stream begins a segment, so nothing waits earlier than it has to.
//!
//! Its memory lies where it lay as a rule. A segment is made when that was so in two runs; a run in which something has moved issues the kernels one by one.

use super::super::replay::Replay;
use super::act::{Home, Kernel, RootId, What};
use super::arenas::Around;
use super::lower::{Lowered, Way};
use super::size::CudaGraphs;
use crate::context::RankCtx;
use crate::error::Result;
use crate::ops::StreamKind;
use crate::placement::Device;
use crate::program;
use crate::vm::{Prepared, Segment, TakesSegments};
use std::ops::Range;
use std::sync::Arc;

/// Fewest kernels that are issued together.
const FEWEST: usize = 2;

/// A segment of a plan.
pub(super) struct Together {
    /// Nodes; the last one has a kernel.
    pub(super) nodes: Range<usize>,
    /// Kernels of the nodes.
    pub(super) acts: Range<usize>,
    pub(super) device: Device,
    /// Memory that the kernels read, and that they write or begin to use again; each once.
    pub(super) reads: Vec<RootId>,
    pub(super) writes: Vec<RootId>,
    /// Addresses of its views in the last run.
    pub(super) addresses: Vec<usize>,
    /// The segment for these addresses.
    pub(super) made: Option<Arc<Segment>>,
}

/// Segments of a plan, and how devices take them.
#[derive(Default)]
pub(super) struct Segments {
    pub(super) all: Vec<Together>,
    /// The setting that is against them.
    off: Option<&'static str>,
    /// Room for the addresses of a run.
    pub(super) now: Vec<usize>,
}

impl Segments {
    /// Finds the segments of a lowered program.
    pub(super) fn of(ctx: &RankCtx, replay: &Replay, lowered: &Lowered, around: &[Around]) -> Result<Segments> {
        let mut segments = Segments::default();
        let Some(takes) = takes(ctx, lowered)? else { return Ok(segments) };
        if let TakesSegments::Off(why) = takes.1 {
            segments.off = Some(why);
            return Ok(segments);
        }
        let device = takes.0;
        let uses = |open: Option<Together>| open.map(|s| s.with_uses(lowered, around));
        let in_loop = |n: usize| replay.loops().iter().any(|l| (l.head..=l.tail).contains(&n));
        let mut open: Option<Together> = None;
        for (n, node) in replay.program().nodes.iter().enumerate() {
            let acts = match &lowered.ways[n] {
                Way::Acts(acts, false) if is_constant(node) && !in_loop(n) => Some(acts.clone()),
                _ => None,
            };
            let fits = |k: usize| match &lowered.acts[k].what {
                What::Kernel(kernel) => may_be_captured(kernel, device) && around[k].fresh.is_empty(),
                What::Box(_) => false,
            };
            let Some(acts) = acts.filter(|acts| acts.clone().all(fits)) else {
                segments.add(uses(open.take()));
                continue;
            };
            let waits = |k: usize| {
                let other = |r: usize| lowered.roots[r].shared || !matches!(lowered.roots[r].home, Home::Outside(_));
                around[k].waits.iter().any(|(r, _)| other(*r))
            };
            if acts.is_empty() {
                continue;
            }
            if acts.clone().any(waits) {
                segments.add(uses(open.take()));
            }
            match &mut open {
                Some(open) => (open.nodes.end, open.acts.end) = (n + 1, acts.end),
                None => {
                    let (reads, writes, addresses) = (vec![], vec![], vec![]);
                    open = Some(Together { nodes: n..n + 1, acts, device, reads, writes, addresses, made: None });
                }
            }
        }
        segments.add(uses(open));
        Ok(segments)
    }

    fn add(&mut self, open: Option<Together>) {
        self.all.extend(open.filter(|s| s.acts.len() >= FEWEST));
    }

    /// The segment to which a node belongs, and whether it is the last one there.
    #[inline]
    pub(super) fn at(&self, node: usize) -> Option<(usize, bool)> {
        let s = self.all.partition_point(|s| s.nodes.end <= node);
        let nodes = &self.all.get(s)?.nodes;
        (nodes.start <= node).then_some((s, nodes.end == node + 1))
    }

    /// Numbers of segments and kernels, as a program is told.
    pub(super) fn describe(&self) -> CudaGraphs {
        let kernels = self.all.iter().map(|s| s.acts.len()).sum();
        let refused = self.off.map(str::to_string);
        let mut told = CudaGraphs { graphs: self.all.len(), kernels, captured: 0, refused };
        for made in self.all.iter().filter_map(|s| s.made.as_ref()) {
            match &*made.prepared() {
                Prepared::Not => {}
                Prepared::Ready(_) => told.captured += 1,
                Prepared::Refused(why) => told.refused = Some(why.clone()),
            }
        }
        told
    }
}

impl Together {
    /// Notes the memory that the kernels use.
    fn with_uses(mut self, lowered: &Lowered, around: &[Around]) -> Together {
        for k in self.acts.clone() {
            let again = around[k].waits.iter().filter(|(_, written)| *written).map(|(r, _)| r);
            self.reads.extend(&lowered.acts[k].reads);
            self.writes.extend(lowered.acts[k].writes.iter().chain(again));
        }
        for roots in [&mut self.reads, &mut self.writes] {
            roots.sort_unstable();
            roots.dedup();
        }
        self
    }
}

/// The device of the program whose streams take segments, or could; none where there is none.
fn takes(ctx: &RankCtx, lowered: &Lowered) -> Result<Option<(Device, TakesSegments)>> {
    let mut seen: Vec<Device> = vec![];
    for kernel in lowered.acts.iter().filter_map(|a| a.kernel()) {
        if seen.contains(&kernel.device) {
            continue;
        }
        seen.push(kernel.device);
        match ctx.device(kernel.device)?.vm.takes_segments() {
            TakesSegments::No => {}
            takes => return Ok(Some((kernel.device, takes))),
        }
    }
    Ok(None)
}

/// Whether a node does the same in each run.
fn is_constant(node: &program::Node) -> bool {
    let constant = match &node.work {
        program::Work::Call(call) => call.host.is_none() && call.draw.is_none(),
        program::Work::Box(_) => true,
        program::Work::Host(_) | program::Work::Repeat(_) => false,
    };
    constant && node.guard.is_none()
}

/// Whether all that a kernel does is on the compute stream of the device.
fn may_be_captured(kernel: &Kernel, device: Device) -> bool {
    let plan = &kernel.plan;
    kernel.device == device && plan.stream == StreamKind::Compute && plan.op.is_own() && !plan.per_node
}
