//! Dispatch plans and their bounded cache, one per rank.

use super::receipts::{Ring, Together};
use crate::boxing::BoxingPlan;
use crate::context::RankCtx;
use crate::control::flight::OpText;
use crate::error::CallSite;
use crate::intern::FixedMap;
use crate::ops::KeyWords;
use crate::sbp::NdSbp;
use crate::tensor::{GlobalRef, LocalRef};
use crate::vm::KernelPlan;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard};

/// Plans kept per rank. A model has a few hundred distinct calls; varying shapes must not grow it without bound.
pub const CACHE_LIMIT: usize = 4096;

/// What is decided about a call once.
pub struct DispatchPlan {
    /// Per input the boxing it needs.
    pub inputs: SmallVec<[Option<InputBoxing>; 4]>,
    /// The kernel; none on a rank outside the placement and where all outputs are empty.
    pub kernel: Option<Arc<KernelPlan>>,
    /// The lowering that carries the call out instead of a kernel, with the outputs' nd-SBPs.
    pub lowering: Option<(u8, SmallVec<[NdSbp; 2]>)>,
    /// Types of this rank's outputs (none outside the placement).
    pub out_local: Option<SmallVec<[LocalRef; 2]>>,
    /// Global types of the outputs; empty for a local call.
    pub out_global: SmallVec<[GlobalRef; 2]>,
    /// Boxing of output 0 to the layout that was asked for, where the kernel gives another.
    pub after: Option<InputBoxing>,
    /// Hash of what is the same on every rank, for the dispatch stream.
    pub stream_key: u64,
    /// The call in short form, for the flight recorder.
    pub text: OpText,
}

/// A boxing with the type it leads to.
#[derive(Clone)]
pub struct InputBoxing {
    /// Type after boxing.
    pub to: GlobalRef,
    /// This rank's shard type after boxing; none outside.
    pub local: Option<LocalRef>,
    /// The plan.
    pub plan: Arc<BoxingPlan>,
}

/// Plans by key.
#[derive(Default)]
pub struct DispatchCache {
    plans: FixedMap<KeyWords, Arc<DispatchPlan>>,
    /// Look-ups that found a plan.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
}

impl DispatchCache {
    /// The plan of that key.
    pub fn get(&mut self, key: &KeyWords) -> Option<Arc<DispatchPlan>> {
        let found = self.plans.get(key).cloned();
        match found {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        found
    }
    /// Adds a plan. When full, the older half goes.
    pub fn insert(&mut self, key: KeyWords, plan: Arc<DispatchPlan>) {
        if self.plans.len() >= CACHE_LIMIT {
            self.plans.drain(..CACHE_LIMIT / 2);
        }
        self.plans.insert(key, plan);
    }
    /// Number of plans held.
    pub fn plans(&self) -> usize {
        self.plans.len()
    }
}

/// What the interpreter keeps per rank.
pub struct RankState {
    cache: Mutex<DispatchCache>,
    pub(super) receipts: Arc<Ring>,
    /// Lists of boxings that were carried out together.
    pub(super) together: Mutex<FixedMap<u64, Arc<Together>>>,
    /// Boxings that a policy has warned of: line, op, backward. As many as the program has.
    pub(super) warned: Mutex<FixedMap<(CallSite, &'static str, bool), ()>>,
}

impl RankState {
    fn new(ctx: &RankCtx) -> RankState {
        RankState {
            cache: Mutex::default(),
            receipts: Ring::of_rank(ctx),
            together: Mutex::default(),
            warned: Mutex::default(),
        }
    }
}

/// The rank's state.
pub(super) fn state(ctx: &RankCtx) -> &RankState {
    let slot = ctx.interpreter_slot().get_or_init(|| Box::new(RankState::new(ctx)));
    match slot.downcast_ref::<RankState>() {
        Some(s) => s,
        // Nothing else is ever put there.
        None => unreachable!("interpreter slot of another type"),
    }
}

/// The rank's dispatch cache.
pub fn cache(ctx: &RankCtx) -> MutexGuard<'_, DispatchCache> {
    state(ctx).cache.lock().unwrap_or_else(|e| e.into_inner())
}
