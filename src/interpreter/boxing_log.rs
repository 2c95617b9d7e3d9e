//! The log of boxings that [`boxing_policy`](crate::boxing_policy) asks for: all of them, or those that are large.

use super::receipts::in_backward;
use super::state::{WARNED_LIMIT, state};
use crate::boxing::BoxingPlan;
use crate::comm::Tag;
use crate::context::{Policy, RankCtx, policy};
use std::fmt;

/// Logs a boxing that is about to run, if the policy asks for it.
pub(super) fn log_boxing(ctx: &RankCtx, plan: &BoxingPlan, tag: &Tag) {
    // The bytes are counted only where somebody wants to hear.
    if !matches!(policy(), Policy::Allow | Policy::Deny | Policy::DenyAll) {
        log(ctx, plan.bytes_sent(), Some(plan.cost_ps), plan, tag);
    }
}

/// Logs an exchange of boxes that is about to run. Its time is not predicted.
pub(super) fn log_exchange(ctx: &RankCtx, bytes: u64, tag: &Tag) {
    log(ctx, bytes, None, &format_args!("exchange of boxes, {bytes} B"), tag);
}

fn log(ctx: &RankCtx, bytes: u64, cost_ps: Option<u64>, plan: &dyn fmt::Display, tag: &Tag) {
    let policy = policy();
    let heard = match policy {
        Policy::Allow | Policy::Deny | Policy::DenyAll => return,
        Policy::Log => bytes > 0,
        Policy::WarnAboveBytes(most) => bytes > most,
        Policy::WarnAboveMicros(most) => bytes > 0 && cost_ps.is_some_and(|ps| ps / 1_000_000 >= most),
    };
    if !heard {
        return;
    }
    let direction = if in_backward() { "backward" } else { "forward" };
    let site = tag.site();
    if policy == Policy::Log {
        tracing::info!("boxing at {site}, {direction} of {}: {plan}", tag.op);
        return;
    }
    let mut warned = state(ctx).warned.lock().unwrap_or_else(|e| e.into_inner());
    if warned.len() >= WARNED_LIMIT {
        warned.clear();
    }
    if warned.insert((site, tag.op, in_backward()), ()).is_none() {
        tracing::warn!("large boxing at {site}, {direction} of {}: {plan}", tag.op);
    }
}
