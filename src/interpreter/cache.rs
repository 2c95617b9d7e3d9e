//! Dispatch plans and their bounded cache.

use crate::control::flight::OpText;
use crate::intern::FixedMap;
use crate::ops::KeyWords;
use crate::plan::Plan;
use std::sync::Arc;

/// Maximum number of plans kept per rank. A model has a few hundred distinct calls; changing shapes make more.
pub const CACHE_LIMIT: usize = 4096;

/// A cached plan.
pub struct DispatchPlan {
    /// Steps and buffers.
    pub plan: Plan,
    /// The call in short form, for the flight recorder.
    pub text: OpText,
}

/// Plans by key.
#[derive(Default)]
pub struct DispatchCache {
    plans: FixedMap<KeyWords, Arc<DispatchPlan>>,
    /// Number of look-ups that found a plan.
    pub hits: u64,
    /// Number of look-ups that found none.
    pub misses: u64,
}

impl DispatchCache {
    /// Returns the plan of a key, if there is one.
    #[inline]
    pub fn get(&mut self, key: &KeyWords) -> Option<Arc<DispatchPlan>> {
        let found = self.plans.get(key).cloned();
        match found {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        found
    }
    /// Adds a plan. A full cache drops its older half first.
    pub fn insert(&mut self, key: KeyWords, plan: Arc<DispatchPlan>) {
        if self.plans.len() >= CACHE_LIMIT {
            self.plans.drain(..CACHE_LIMIT / 2);
        }
        self.plans.insert(key, plan);
    }
    /// Returns the number of plans in the cache.
    pub fn plans(&self) -> usize {
        self.plans.len()
    }
}
