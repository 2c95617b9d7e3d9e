//! Why bytes move between ranks, and whether the policy of the thread allows it for that reason.

use super::receipts::in_backward;
use crate::boxing::BoxingPlan;
use crate::context::{Policy, policy};
use crate::error::{Error, Result};

/// The reason for which bytes move between ranks.
#[derive(Clone, Copy)]
pub(crate) enum BoxingReason {
    /// The program asked for it: `to_global` (and its gradient), reading.
    Asked(&'static str),
    /// An op needs it.
    Needed(&'static str),
    /// The complete gradient of a leaf goes to the leaf's layout.
    Gradient,
}

impl BoxingReason {
    /// The op, for tags and receipts.
    pub(super) fn op(self) -> &'static str {
        match self {
            BoxingReason::Asked(op) | BoxingReason::Needed(op) => op,
            BoxingReason::Gradient => "gradient",
        }
    }

    /// Whether the policy of this thread denies boxings for this reason.
    #[inline]
    pub(super) fn is_denied(self) -> bool {
        match policy() {
            Policy::DenyAll => true,
            Policy::Deny => !matches!(self, BoxingReason::Asked(_)),
            _ => false,
        }
    }
}

/// Refuses a boxing that is not of an op's input, where the policy denies it.
pub(super) fn check(reason: BoxingReason, plan: &BoxingPlan) -> Result<()> {
    if !reason.is_denied() || plan.bytes_sent() == 0 {
        return Ok(());
    }
    Err(match reason {
        BoxingReason::Asked(op) => denied(op, plan).help("the scope denies all communication; end it before"),
        BoxingReason::Gradient => denied("the gradient of a leaf", plan)
            .help("accumulate micro-batches under `no_sync()`, or end the scope before `backward()`"),
        BoxingReason::Needed(op) => denied(&format!("a value inside {op}"), plan),
    })
}

/// The error of a boxing of `what` that is denied.
pub(super) fn denied(what: &str, plan: &BoxingPlan) -> Error {
    let to = if plan.src.placement == plan.dst.placement { plan.dst.sbp.to_string() } else { plan.dst.to_string() };
    let back = if in_backward() { ", in backward" } else { "" };
    Error::denied(format!(
        "boxing is denied here: {what} would go from {} to {to}: {} B between ranks, {:.1} us{back}",
        plan.src.sbp,
        plan.bytes_sent(),
        plan.cost_ps as f64 / 1e6
    ))
}
