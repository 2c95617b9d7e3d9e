//! Program of one rank in a plan.

use super::rank_step::RankStep;
use oflow_kernels::Dims;

/// The work of one rank in a plan.
#[derive(Clone, Debug)]
pub struct RankProgram {
    /// Sizes of this rank's source shard; none outside the source placement.
    pub src: Option<Dims>,
    /// Sizes of this rank's destination shard; none outside the destination placement.
    pub dst: Option<Dims>,
    /// One entry per step of the plan.
    pub steps: Vec<RankStep>,
}

impl RankProgram {
    /// Whether a step's output is the destination shard: what follows keeps it. A collective never reads and writes the same memory.
    pub fn writes_destination(&self, step: usize) -> bool {
        self.steps[step + 1..].iter().all(|s| matches!(s, RankStep::Keep))
    }
}
