//! A receipt per boxing: which line of the program moved which bytes.

use super::cache::state;
use crate::boxing::BoxingPlan;
use crate::comm::Tag;
use crate::context::{RankCtx, current};
use crate::error::CallSite;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Receipts kept per rank; older ones are dropped.
pub const RECEIPTS_LIMIT: usize = 4096;

/// One boxing that happened.
#[derive(Clone)]
pub struct Receipt {
    /// The op that needed it.
    pub op: &'static str,
    /// The user's line (in backward: of the forward call).
    pub site: CallSite,
    /// Whether it happened in backward.
    pub backward: bool,
    /// What was done.
    pub plan: Arc<BoxingPlan>,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = if self.backward { "backward" } else { "forward" };
        write!(f, "{} {dir} of {}: {}", self.site, self.op, self.plan)
    }
}

/// The ring of receipts.
#[derive(Default)]
pub(super) struct Receipts {
    ring: VecDeque<Receipt>,
}

thread_local! {
    static BACKWARD: Cell<bool> = const { Cell::new(false) };
}

/// Marks boxings of this thread as backward until dropped.
pub(super) struct BackwardScope(bool);

impl BackwardScope {
    pub(super) fn enter() -> BackwardScope {
        BackwardScope(BACKWARD.replace(true))
    }
}

impl Drop for BackwardScope {
    fn drop(&mut self) {
        BACKWARD.set(self.0);
    }
}

pub(super) fn note(ctx: &RankCtx, plan: &Arc<BoxingPlan>, tag: &Tag) {
    let site = CallSite { file: tag.file, line: tag.line };
    let receipt = Receipt { op: tag.op, site, backward: BACKWARD.get(), plan: plan.clone() };
    let mut r = state(ctx).receipts.lock().unwrap_or_else(|e| e.into_inner());
    if r.ring.len() == RECEIPTS_LIMIT {
        r.ring.pop_front();
    }
    r.ring.push_back(receipt);
}

/// Takes this rank's receipts, oldest first.
///
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let x = zeros([4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
/// x.to_global(sbp![B])?;
/// for receipt in oflow::take_receipts() {
///     println!("{receipt}");
/// }
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn take_receipts() -> Vec<Receipt> {
    let ctx = current();
    let mut r = state(&ctx).receipts.lock().unwrap_or_else(|e| e.into_inner());
    std::mem::take(&mut r.ring).into()
}
