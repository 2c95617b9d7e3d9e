//! The origin of a tensor: the program, with data, or a dry run, without.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The origin of a storage or a tensor: the program, with data, or one dry run, without. An op on tensors of different origins is
/// an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Number of the dry run in this process; 0: data.
    run: u64,
    rank: u32,
    world: u32,
}

impl Origin {
    /// The origin of tensors with data.
    pub const DATA: Origin = Origin { run: 0, rank: 0, world: 0 };

    /// A new dry run as that rank of that many.
    pub(crate) fn dry_run(rank: u32, world: u32) -> Origin {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        Origin { run: RUNS.fetch_add(1, Ordering::Relaxed) + 1, rank, world }
    }

    /// Returns whether it is a dry run.
    pub fn is_dry(self) -> bool {
        self.run != 0
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        self.run == other.run
    }
}
impl Eq for Origin {}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.run {
            0 => f.write_str("the program, with data"),
            run => write!(f, "dry run {run}, rank {} of {}", self.rank, self.world),
        }
    }
}
