//! Decides what a call does, where no earlier call of its kind has: inference, the choice of a signature, the plan.

use super::boxing::{check_world, plan_cx};
use super::cache::DispatchPlan;
use super::call::Call;
use super::comm_trace::{ReportHint, in_backward};
use super::state::state;
use super::writes::writes;
use crate::boxing::input_advice;
use crate::context::{AskedSbp, RankCtx};
use crate::control::flight::OpText;
use crate::error::Result;
use crate::ops::Op;
use crate::placement::Placement;
use crate::plan::{Plan, Step, Target, Where, hint_of, plan, with_choice};
use crate::tensor::Tensor;

/// Refuses a call whose op, ranks or device are not there; opens the device of this rank's part.
pub(super) fn check_there(ctx: &RankCtx, op: &Op, place: Where<'_>) -> Result<()> {
    op.check_there()?;
    let device = match place {
        Where::Local(device) => Some(device),
        Where::Global(p) => {
            check_world(ctx, p)?;
            p.position(ctx.rank()).map(|_| p.device())
        }
    };
    if let Some(device) = device {
        ctx.device(device)?;
    }
    Ok(())
}

/// The plan of a call that is not in the cache.
#[cold]
pub(super) fn decide(
    ctx: &RankCtx,
    call: &Call<'_>,
    place: Where<'_>,
    asked: Option<&AskedSbp>,
) -> Result<DispatchPlan> {
    let _span = tracing::debug_span!("dispatch_miss", op = call.op.name()).entered();
    check_there(ctx, call.op, place)?;
    let plan = call.with_request(place, asked, |r| plan(&plan_cx(ctx), r))?;
    tracing::trace!(op = call.op.name(), %plan, "plan");
    let text = match place {
        Where::Local(_) => OpText::default(),
        Where::Global(p) => {
            note_hint(ctx, call, &plan, p);
            OpText::new(text_of(call.op, call.target, &plan, p, || call.short()))
        }
    };
    Ok(DispatchPlan { plan, text })
}

/// Keeps for the report that the call, which moves nothing, makes a P result that is dear to reduce. In backward nobody can ask
/// for another. Advice never fails a call: where candidates that the call does not take cannot be priced there is none.
fn note_hint(ctx: &RankCtx, call: &Call<'_>, plan: &Plan, placement: &Placement) {
    if state(ctx).comm_trace.is_reporting() {
        note_inputs(ctx, call, placement);
    }
    let partial = plan.out_globals().next().is_some_and(|g| g.sbp.has_partial());
    let moves = plan.steps.iter().any(|s| matches!(s, Step::Box(_)));
    if in_backward() || moves || !partial {
        return;
    }
    if let Ok(Some(hint)) = call.with_request(Where::Global(placement), None, |r| hint_of(r, placement)) {
        let now = plan.out_globals().next().map_or(String::new(), |g| g.sbp.to_string());
        state(ctx).comm_trace.hint(ReportHint {
            advice: hint.to_string(),
            now,
            better: hint.sbp.to_string(),
            taken_ps: hint.taken,
            asked_ps: hint.asked,
            ..ReportHint::new(call.site, call.op.name(), call.short())
        });
    }
}

/// Keeps for the report which leaves, such as weights, would make the call cheaper in another layout.
fn note_inputs(ctx: &RankCtx, call: &Call<'_>, placement: &Placement) {
    let lives = |t: &Tensor| t.is_leaf() && t.requires_grad();
    if in_backward() || call.op.layout.is_some() || call.given.is_some() || writes(call) {
        return;
    }
    for i in (0..call.inputs.len()).filter(|i| call.inputs[*i].is_some_and(lives)) {
        let found = call
            .with_request(Where::Global(placement), None, |r| with_choice(r, placement, None, |c| input_advice(c, i)));
        let Ok(Some(found)) = found else { continue };
        state(ctx).comm_trace.hint(ReportHint {
            input: Some(found.name),
            tensor: call.inputs[i].map_or(String::new(), |t| format!("{}{:?}", t.dtype(), t.shape())),
            now: found.now.to_string(),
            better: found.better.to_string(),
            taken_ps: found.taken,
            asked_ps: found.asked,
            work: found.work,
            more_bytes: found.more_bytes,
            ..ReportHint::new(call.site, call.op.name(), call.short())
        });
    }
}

/// The call in short form. One that makes a tensor has nothing but its result that says which.
pub(super) fn text_of(
    op: &Op,
    target: Option<&Target>,
    plan: &Plan,
    placement: &Placement,
    short: impl FnOnce() -> String,
) -> String {
    match (target, plan.out_globals().next()) {
        (Some(Target::Global(_, sbp)), Some(out)) => format!("{}({}) on {placement} as {sbp}", op.name(), out.ty),
        _ => short(),
    }
}
