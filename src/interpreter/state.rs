//! What the interpreter keeps per rank: the plans of calls, receipts, and which boxings it has warned of.

use super::cache::DispatchCache;
use super::receipts::{Ring, Together};
use crate::context::RankCtx;
use crate::error::CallSite;
use crate::intern::FixedMap;
use std::sync::{Arc, Mutex};

/// Boxings remembered as warned of. A program that makes lines as it runs has no end of them; then all are forgotten, and warned of again.
pub(super) const WARNED_LIMIT: usize = 4096;

/// What the interpreter keeps per rank.
pub struct RankState {
    pub(super) cache: Mutex<DispatchCache>,
    pub(super) receipts: Arc<Ring>,
    /// Lists of boxings that were carried out together.
    pub(super) together: Mutex<FixedMap<u64, Arc<Together>>>,
    /// Boxings that a policy has warned of: line, op, backward. At most [`WARNED_LIMIT`].
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
#[inline]
pub(super) fn state(ctx: &RankCtx) -> &RankState {
    let slot = ctx.interpreter_slot().get_or_init(|| Box::new(RankState::new(ctx)));
    match slot.downcast_ref::<RankState>() {
        Some(s) => s,
        // Nothing else is ever put there.
        None => unreachable!("interpreter slot of another type"),
    }
}
