//! Boxing of one tensor, recorded: `global.to_global(...)` and what the interpreter itself boxes.

use super::super::boxing::{BoxingReason, box_as, boxing_to};
use super::super::cache::DispatchPlan;
use super::super::call::Call;
use super::super::key::key_of;
use super::super::observers::{self, unobserved};
use super::super::state::planned;
use super::stated::check_grad_sbp;
use crate::context::{RankCtx, current_rank, no_grad};
use crate::control::flight::OpText;
use crate::error::{CallSite, Error, Result};
use crate::op;
use crate::ops::AttrValue;
use crate::placement::Placement;
use crate::plan::Plan;
use crate::sbp::NdSbp;
use crate::tensor::{GlobalRef, Tensor};

/// The op `to_global`. What it returns never shares writable storage with its source: in-place ops on a shared shard copy
/// first.
pub(in super::super) fn to_global(call: &Call<'_>, cause: BoxingReason) -> Result<Tensor> {
    let ctx = current_rank()?;
    let t = call.only_input()?;
    let decided = planned(&ctx, &key_of(call, None), || plan_of(&ctx, call, global_of(t)?))?;
    let b = decided.plan.boxings().next().ok_or_else(|| Error::registry("a plan without its boxing"))?;
    box_as(&ctx, cause, t, &b.boxing, decided.plan.stream_key, call.site)
}

/// Boxes a tensor for a call of `op`. The copy is not recorded; of observers, a capture alone sees it.
pub(in super::super) fn box_for(op: &'static str, t: &Tensor, to: &GlobalRef, site: CallSite) -> Result<Tensor> {
    let boxed = {
        let (_unrecorded, _unobserved) = (no_grad(), unobserved());
        t.check_origin().map_err(|e| e.at(site))?;
        let inputs = [Some(t)];
        let call = Call::new(op!("to_global")?, &inputs).attrs([AttrValue::from(&to.placement), (&to.sbp).into()]);
        to_global(&call.at(site), BoxingReason::Needed(op)).map_err(|e| e.at(site))?
    };
    observers::boxed(op, t, &boxed, site)?;
    Ok(boxed)
}

/// One step: the boxing.
#[cold]
fn plan_of(ctx: &RankCtx, call: &Call<'_>, g: &GlobalRef) -> Result<DispatchPlan> {
    let (placement, sbp) = (call.placement("placement")?, call.sbp("sbp")?);
    if let Some(s) = call.stated("grad_sbp")? {
        check_grad_sbp(&g.ty, &g.placement, s)?;
    }
    let boxing = boxing_to(ctx, g, placement, sbp)?;
    Ok(DispatchPlan { plan: Plan::of_boxing(g, boxing, layout_key(g, placement, sbp)), text: OpText::default() })
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
