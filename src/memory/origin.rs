//! The origin of a tensor: the program, with data, a rank of a world, or a dry run or the capture of a graph, without data.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// The origin of a storage or a tensor: the program, with data, or one dry run or capture, without; of a global tensor also the context of the
/// rank whose shard it has. An op on tensors that were made elsewhere is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Number of the dry run or capture in this process, with the bit [`CAPTURE`] of a capture; 0: data. One word, because each call copies
    /// origins.
    run: u32,
    /// Number of the context in this process; none: any, as local tensors with data are of all ranks that are threads of a process.
    context: Option<NonZeroU32>,
    rank: u32,
    world: u32,
}

/// Bit of the number of a capture. A process has fewer dry runs.
const CAPTURE: u32 = 1 << 31;

impl Origin {
    /// The origin of local tensors with data.
    pub const DATA: Origin = Origin { run: 0, context: None, rank: 0, world: 0 };

    /// A new context of that rank of a world of that many, with data.
    pub(crate) fn rank_context(rank: u32, world: u32) -> Origin {
        static CONTEXTS: AtomicU32 = AtomicU32::new(1);
        let context = NonZeroU32::new(CONTEXTS.fetch_add(1, Ordering::Relaxed));
        Origin { run: 0, context, rank, world }
    }

    /// A new dry run as that rank of that many.
    pub(crate) fn dry_run(rank: u32, world: u32) -> Origin {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        Origin { run: RUNS.fetch_add(1, Ordering::Relaxed) + 1, context: None, rank, world }
    }

    /// A new capture of a graph, as that rank of that many.
    pub(crate) fn capture(rank: u32, world: u32) -> Origin {
        let run = Self::dry_run(rank, world);
        Origin { run: run.run | CAPTURE, ..run }
    }

    /// Returns whether it has no data: a dry run, or the capture of a graph.
    pub fn is_dry(self) -> bool {
        self.run != 0
    }

    /// Returns whether it is the capture of a graph.
    pub fn is_capture(self) -> bool {
        self.run & CAPTURE != 0
    }

    /// Returns whether it is the context of a rank, or of a dry run.
    pub(crate) fn is_rank(self) -> bool {
        self.is_dry() || self.context.is_some()
    }

    /// Returns whether a tensor of this origin can be used where tensors of the origin `here` are made.
    #[inline]
    pub fn is_usable(self, here: Origin) -> bool {
        self.run == here.run && (self.context.is_none() || self.context == here.context)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.run, self.context) {
            (0, None) => f.write_str("the program, with data"),
            (0, Some(n)) => write!(f, "rank {} of {} (context {n} of this process)", self.rank, self.world),
            (run, _) if self.is_capture() => write!(f, "the capture of graph {}", run & !CAPTURE),
            (run, _) => write!(f, "dry run {run}, rank {} of {}", self.rank, self.world),
        }
    }
}
