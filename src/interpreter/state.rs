//! State of the interpreter, one per rank: plans of calls, comm records, and the boxings it has warned of.

use super::cache::{DispatchCache, DispatchPlan};
use super::comm_trace::{KnownTogether, Ring};
use crate::context::RankCtx;
use crate::error::{CallSite, Result};
use crate::intern::FixedMap;
use crate::ops::KeyWords;
use std::sync::{Arc, Mutex, MutexGuard};

/// Boxings remembered as warned of. A program that makes lines as it runs has no end of them; then all are forgotten, and warned of again.
pub(super) const WARNED_LIMIT: usize = 4096;

/// State of the interpreter on one rank.
pub struct RankState {
    cache: Mutex<DispatchCache>,
    pub(super) comm_trace: Arc<Ring>,
    /// Lists of boxings that were carried out together.
    pub(super) together: Mutex<KnownTogether>,
    /// Boxings that a policy has warned of: line, op, backward. At most [`WARNED_LIMIT`].
    pub(super) warned: Mutex<FixedMap<(CallSite, &'static str, bool), ()>>,
}

impl RankState {
    #[cold]
    fn new(ctx: &RankCtx) -> RankState {
        RankState {
            cache: Mutex::default(),
            comm_trace: Ring::of_rank(ctx),
            together: Mutex::default(),
            warned: Mutex::default(),
        }
    }
}

/// The rank's state.
#[inline]
pub(super) fn state(ctx: &RankCtx) -> &RankState {
    let slot = ctx.interpreter_slot().get_or_init(|| Box::new(RankState::new(ctx)));
    match slot.downcast_ref::<RankState>() {
        Some(s) => s,
        // Nothing else is ever put there.
        None => unreachable!("interpreter slot of another type"),
    }
}

/// The rank's dispatch cache.
#[inline]
pub fn cache(ctx: &RankCtx) -> MutexGuard<'_, DispatchCache> {
    state(ctx).cache.lock().unwrap_or_else(|e| e.into_inner())
}

/// The plan of a key: from the rank's cache, or made and kept there.
///
/// # Errors
/// Those of `make`.
#[inline(always)]
pub(super) fn planned(
    ctx: &RankCtx,
    key: &KeyWords,
    make: impl FnOnce() -> Result<DispatchPlan>,
) -> Result<Arc<DispatchPlan>> {
    // Not locked while a plan is made, which takes long.
    let found = cache(ctx).get(key);
    if let Some(plan) = found {
        return Ok(plan);
    }
    let made = Arc::new(make()?);
    cache(ctx).insert(key.clone(), made.clone());
    Ok(made)
}
