//! Boxings that are carried out together share collectives: what each is predicted to take, and sends, is told of all of them.

use crate::boxing::many::{bytes_by_link_together, predicted_together};
use crate::boxing::{BoxingPlan, LinkKind};
use crate::intern::{FixedHasher, FixedMap};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

/// Lists of plans remembered; then all are forgotten.
const REMEMBERED: usize = 256;

/// Lists of plans that were carried out together, by a hash of theirs.
pub(in super::super) type KnownTogether = FixedMap<u64, Arc<Together>>;

/// The list of boxings that one was carried out with, and its place there.
pub(super) type Shared = Option<(Arc<Together>, usize)>;

/// Bytes that a boxing sends, by the kind of link: those of its plan, or its share where it went together with others.
pub(super) fn links(plan: &BoxingPlan, together: &Shared) -> BTreeMap<LinkKind, u64> {
    together.as_ref().map_or_else(|| plan.bytes_by_link(), |(t, place)| t.links(*place).clone())
}

/// Plans that are carried out together.
pub(in super::super) struct Together {
    plans: Vec<Arc<BoxingPlan>>,
    /// Predicted share of each boxing in the whole time, in picoseconds.
    pub(in super::super) predicted: Vec<u64>,
    links: OnceLock<Vec<BTreeMap<LinkKind, u64>>>,
}

impl Together {
    /// Of these plans; remembered, because a program boxes the same together again and again.
    pub(in super::super) fn of(known: &mut KnownTogether, plans: &[Arc<BoxingPlan>]) -> Arc<Together> {
        let mut key = FixedHasher::default();
        plans.iter().for_each(|p| key.write_usize(Arc::as_ptr(p).addr()));
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

    /// Bytes that one of the boxings sends, over all ranks. Worked out when somebody asks.
    pub(super) fn links(&self, place: usize) -> &BTreeMap<LinkKind, u64> {
        &self.links.get_or_init(|| bytes_by_link_together(&self.plans))[place]
    }
}
