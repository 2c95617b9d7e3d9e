//! Sizes of programs, as passes predict them, and what a pass does to them.

use super::super::types::Program;
use super::liveness::{Liveness, Sizes};
use super::streams::Streams;
use crate::boxing::Planner;
use std::fmt;

/// Size of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of nodes, those of sections included.
    pub nodes: usize,
    /// Number of nodes that box: ranks exchange something for them.
    pub boxings: usize,
    /// The most bytes that are in use at one time on the rank that holds most, with tensors from outside, as passes predict it.
    pub peak: usize,
    /// Time of a run on the rank that has most to do, in picoseconds, as passes predict it. It is for comparison with that of other programs.
    pub time: u64,
    /// The part of this time in which exchanges between ranks go on and nothing is computed.
    pub exposed: u64,
}

impl Size {
    pub(super) fn of(program: &Program, planner: &Planner) -> Size {
        let sections = program.sections();
        let nodes = || program.nodes.iter().chain(sections.iter().flat_map(|s| &s.body.nodes));
        let mut sizes = Sizes::default();
        let live = Liveness::of(program, &mut sizes);
        let run = Streams::of(program, &live, (&mut sizes, planner)).run_as_it_is(program);
        Size {
            nodes: nodes().count(),
            boxings: nodes().filter(|n| n.is_boxing()).count(),
            peak: live.outside + live.peak.1,
            time: run.time,
            exposed: run.exposed,
        }
    }
}

/// Effect of a pass on a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Name of the pass.
    pub pass: &'static str,
    /// The program before it.
    pub before: Size,
    /// The program after it.
    pub after: Size,
}

/// `common: 63 nodes -> 60, 10 boxings -> 9, 4096 bytes -> 3584, 0.953 of the time`; where ranks exchange something also
/// `, exposed 0.210 of it -> 0.180`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effect { pass, before, after } = self;
        let (b, a) = (before, after);
        write!(f, "{pass}: {} nodes -> {}, {} boxings -> {}", b.nodes, a.nodes, b.boxings, a.boxings)?;
        write!(f, ", {} bytes -> {}, {:.3} of the time", b.peak, a.peak, a.time as f64 / b.time.max(1) as f64)?;
        if b.boxings + a.boxings > 0 {
            let part = |s: &Size| s.exposed as f64 / s.time.max(1) as f64;
            write!(f, ", exposed {:.3} of it -> {:.3}", part(b), part(a))?;
        }
        Ok(())
    }
}
