//! Boxings that are carried out together share collectives: what each is predicted to take, and sends, is told of all of them.

use super::super::state::state;
use crate::boxing::many::{bytes_by_link_together, predicted_together};
use crate::boxing::{BoxingPlan, LinkKind};
use crate::context::RankCtx;
use crate::intern::FixedHasher;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::{Arc, OnceLock, PoisonError};

/// Lists of plans remembered; then all are forgotten.
const REMEMBERED: usize = 256;

/// Plans that are carried out together.
pub(in super::super) struct Together {
    plans: Vec<Arc<BoxingPlan>>,
    /// What each takes of the whole, in picoseconds.
    pub(in super::super) predicted: Vec<u64>,
    links: OnceLock<Vec<BTreeMap<LinkKind, u64>>>,
}

impl Together {
    /// Of these plans; remembered, because a program boxes the same together again and again.
    pub(in super::super) fn of(ctx: &RankCtx, plans: &[Arc<BoxingPlan>]) -> Arc<Together> {
        let mut key = FixedHasher::default();
        plans.iter().for_each(|p| key.write_usize(Arc::as_ptr(p).addr()));
        let mut known = state(ctx).together.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |t: &Together| t.plans.len() == plans.len() && t.plans.iter().zip(plans).all(|(a, b)| Arc::ptr_eq(a, b));
        if let Some(found) = known.get(&key.finish()).filter(|t| same(t)) {
            return found.clone();
        }
        let predicted = predicted_together(plans);
        let together = Arc::new(Together { plans: plans.to_vec(), predicted, links: OnceLock::new() });
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key.finish(), together.clone());
        together
    }

    /// What one of them sends, over all ranks. Worked out when somebody asks.
    pub(super) fn links(&self, place: usize) -> &BTreeMap<LinkKind, u64> {
        &self.links.get_or_init(|| bytes_by_link_together(&self.plans))[place]
    }
}
