//! Boxing of one tensor, recorded: `global.to_global(...)` and what the interpreter itself boxes.

use super::super::boxing::{boxing_to, run_boxing};
use super::super::cache::{DispatchPlan, planned};
use super::super::call::Call;
use super::super::key::key_of;
use super::super::reason::{BoxingReason, check};
use super::stated::check_grad_sbp;
use crate::context::{RankCtx, current_rank, grad_enabled};
use crate::control::flight::OpText;
use crate::error::{CallSite, Error, Result};
use crate::op;
use crate::ops::{AttrValue, LayoutOp};
use crate::placement::Placement;
use crate::plan::{Plan, PlannedBoxing};
use crate::sbp::NdSbp;
use crate::tensor::{GlobalRef, Tensor};

/// Boxing on behalf of `cause`: the logical value stays, the layout changes; recorded like the op `to_global`, which it is.
pub(crate) fn to_layout(
    cause: BoxingReason,
    t: &Tensor,
    placement: &Placement,
    sbp: &NdSbp,
    site: CallSite,
) -> Result<Tensor> {
    let inputs = [Some(t)];
    let mut call = Call::new(op!("to_global")?, &inputs).attrs([AttrValue::from(placement), sbp.into()]).at(site);
    call.recording = grad_enabled() && t.requires_grad();
    let mut outs = super::run(&call, LayoutOp::Box, cause).map_err(|e| e.at(site))?;
    Ok(outs.swap_remove(0))
}

/// The op `to_global`. What it returns never shares writable storage with its source: in-place ops on a shared shard copy
/// first.
pub(super) fn to_global(call: &Call<'_>, cause: BoxingReason) -> Result<Tensor> {
    let ctx = current_rank()?;
    let t = call.only_input()?;
    let decided = planned(&ctx, &key_of(call, None), || plan_of(&ctx, call, global_of(t)?))?;
    let b = decided.plan.boxings().next().ok_or_else(|| Error::registry("a plan without its boxing"))?;
    box_as(&ctx, cause, t, &b.boxing, decided.plan.stream_key, call.site)
}

/// One step: the boxing.
fn plan_of(ctx: &RankCtx, call: &Call<'_>, g: &GlobalRef) -> Result<DispatchPlan> {
    let (placement, sbp) = (call.placement("placement")?, call.sbp("sbp")?);
    if let Some(s) = call.stated("grad_sbp")? {
        check_grad_sbp(&g.ty, &g.placement, s)?;
    }
    let boxing = boxing_to(ctx, g, placement, sbp)?;
    Ok(DispatchPlan { plan: Plan::of_boxing(g, boxing, layout_key(g, placement, sbp)), text: OpText::default() })
}

/// A planned boxing as the next op of the stream of global ops.
pub(super) fn box_as(
    ctx: &RankCtx,
    cause: BoxingReason,
    t: &Tensor,
    b: &PlannedBoxing,
    key: u64,
    site: CallSite,
) -> Result<Tensor> {
    check(cause, &b.plan)?;
    let text = || {
        let (from, to) = (&b.plan.src.placement, &b.plan.dst.placement);
        let from = if from == to { String::new() } else { format!(" on {from}") };
        format!("{}({}{from}, {}) on {to}", cause.op(), t.short(), b.plan.dst.sbp)
    };
    let tag = ctx.next_described(cause.op(), key, site, &text);
    Ok(Tensor::from_shard(b.to.clone(), run_boxing(ctx, t.data()?, b, &tag)?))
}

/// The type of a tensor that must be global.
pub(super) fn global_of(t: &Tensor) -> Result<&GlobalRef> {
    t.global().ok_or_else(|| {
        Error::sbp(format!("{t:?} is not a global tensor")).help("`to_global` or `distribute` makes one of it")
    })
}

/// Hash of a boxing by content: type, and placement and SBP on both sides.
pub(crate) fn layout_key(from: &GlobalRef, placement: &Placement, to: &NdSbp) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut h = crate::intern::FixedHasher::default();
    from.ty.shape.iter().for_each(|n| h.write_usize(*n));
    from.ty.dtype.hash(&mut h);
    (&from.sbp, to).hash(&mut h);
    for p in [&from.placement, placement] {
        h.write_u64(p.device().key());
        p.dims().iter().chain(p.ranks()).for_each(|n| h.write_usize(*n));
    }
    h.finish()
}
