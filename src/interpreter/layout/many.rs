//! Boxing many tensors at once: one op of the stream of global ops, one record, one instruction.

use super::super::boxing::{BoxingReason, Storages, boxing_to, check, log_boxing, unmoved};
use super::super::call::{Call, Outputs, as_stated};
use super::super::comm_trace::{note_together, together};
use super::stated::check_grad_sbp;
use super::to_global::{global_of, layout_key};
use crate::boxing::BoxingPlan;
use crate::comm::Tag;
use crate::context::{RankCtx, current_rank, grad_enabled};
use crate::error::{CallSite, Error, Result};
use crate::memory::{MemoryOwner, MemoryUse};
use crate::op;
use crate::ops::{AttrValue, LayoutOp};
use crate::placement::{Device, Placement};
use crate::plan::PlannedBoxing;
use crate::sbp::NdSbp;
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::{BoxManyWork, Instruction, StreamKind, Work};
use oflow_kernels::View;
use smallvec::SmallVec;
use std::hash::Hasher;
use std::sync::Arc;

/// A global tensor with the layout that it is to have.
pub(in crate::interpreter) struct BoxTo {
    /// Tensor to box.
    pub tensor: Tensor,
    /// Placement of the result.
    pub placement: Placement,
    /// nd-SBP of the result.
    pub sbp: NdSbp,
}

/// The tensors in their layouts on behalf of `cause`, recorded like the op `box_many`, which it is.
pub(in crate::interpreter) fn to_layouts(cause: BoxingReason, all: &[BoxTo], site: CallSite) -> Result<Outputs> {
    let inputs: Vec<Option<&Tensor>> = all.iter().map(|b| Some(&b.tensor)).collect();
    let placements: Vec<AttrValue> = all.iter().map(|b| (&b.placement).into()).collect();
    let sbps: Vec<AttrValue> = all.iter().map(|b| (&b.sbp).into()).collect();
    let stated = vec![AttrValue::Absent; all.len()];
    let mut call = Call::new(op!("box_many")?, &inputs).attrs([placements, sbps, stated]).at(site);
    call.recording = grad_enabled() && all.iter().any(|b| b.tensor.requires_grad());
    super::run(&call, LayoutOp::BoxMany, cause)
}

/// The op `box_many`: what `to_global` does to each, with their communication together. Recorded as one call, so the
/// gradients travel together too.
pub(super) fn box_many(call: &Call<'_>, cause: BoxingReason) -> Result<Outputs> {
    let (placements, sbps, stated) = (call.list("placements")?, call.list("sbps")?, call.list("grad_sbps")?);
    let n = call.inputs.len();
    if [placements.len(), sbps.len(), stated.len()] != [n; 3] {
        return Err(Error::argument(format!(
            "{n} tensors need {n} placements, SBPs and stated SBPs (none for those that state nothing)"
        )));
    }
    let mut ways = Vec::with_capacity(n);
    for (i, t) in call.inputs.iter().enumerate() {
        let (Some(tensor), AttrValue::Placement(placement), AttrValue::NdSbp(sbp)) = (t, &placements[i], &sbps[i])
        else {
            return Err(Error::argument(format!("tensor {i} or its layout is missing")));
        };
        ways.push(BoxRequest { tensor, placement, sbp: sbp.clone(), stated: as_stated("grad_sbps", &stated[i])? });
    }
    box_together(cause, &ways, call.site)
}

/// A tensor and the layout to box it to.
pub(super) struct BoxRequest<'a> {
    pub tensor: &'a Tensor,
    pub placement: &'a Placement,
    pub sbp: NdSbp,
    /// The SBP of its gradient, where one is stated.
    pub stated: Option<&'a NdSbp>,
}

/// The tensors in their layouts, not recorded.
pub(super) fn box_together(cause: BoxingReason, all: &[BoxRequest<'_>], site: CallSite) -> Result<Outputs> {
    if all.is_empty() {
        return Ok(Outputs::new());
    }
    let ctx = current_rank()?;
    let mut keys = Vec::with_capacity(all.len());
    let mut boxings = Vec::with_capacity(all.len());
    for (i, way) in all.iter().enumerate() {
        let call = || format!("box_many: tensor {i}, {} to {} on {}", way.tensor.short(), way.sbp, way.placement);
        let boxing: Result<PlannedBoxing> = (|| {
            let g = global_of(way.tensor)?;
            if let Some(s) = way.stated {
                check_grad_sbp(&g.ty, &g.placement, s)?;
            }
            keys.push(layout_key(g, way.placement, &way.sbp));
            let boxing = boxing_to(&ctx, g, way.placement, &way.sbp)?;
            check(cause, &boxing.plan)?;
            Ok(boxing)
        })();
        // A gradient's error names itself: the program did not write this call.
        let named = |e: Error| if matches!(cause, BoxingReason::Gradient) { e.at(site) } else { e.in_call(call) };
        boxings.push((way.tensor, boxing.map_err(named)?));
    }
    let text = || together_text(cause, all.len(), (&all[0].tensor.short(), all[0].placement, &all[0].sbp));
    let tag = ctx.next_described(cause.op(), together_key(&keys), site, &text);
    run_boxings(&ctx, &boxings, &tag)
}

/// Key of boxings that are made together in the dispatch stream, from the keys of each.
pub(in super::super) fn together_key(keys: &[u64]) -> u64 {
    let mut key = crate::intern::FixedHasher::default();
    keys.iter().for_each(|k| key.write_u64(*k));
    key.finish()
}

/// Text of boxings that are made together in the dispatch stream. Of the first it has the type, as messages write it, and the new layout.
pub(in super::super) fn together_text(
    cause: BoxingReason,
    count: usize,
    (first, placement, sbp): (&str, &Placement, &NdSbp),
) -> String {
    format!("{}({count} tensors, first {first} to {sbp} on {placement})", cause.op())
}

/// Runs several boxings together on the communication stream, as one op of the stream of global ops.
fn run_boxings(ctx: &RankCtx, all: &[(&Tensor, PlannedBoxing)], tag: &Tag) -> Result<Outputs> {
    let mut outs: Vec<Option<Tensor>> = vec![None; all.len()];
    // One instruction for each pair of devices, in the order in which they first stand.
    let ends = |b: &PlannedBoxing| (b.plan.src.placement.device(), b.plan.dst.placement.device());
    let mut devices: SmallVec<[(Device, Device); 2]> = SmallVec::new();
    for (_, b) in all {
        if !devices.contains(&ends(b)) {
            devices.push(ends(b));
        }
    }
    for (from, to) in devices {
        let (mut plans, mut shards) = (Vec::new(), Vec::new());
        let (mut reads, mut writes) = Storages::default();
        for ((t, b), out) in all.iter().zip(&mut outs).filter(|((_, b), _)| ends(b) == (from, to)) {
            let src = t.data()?;
            if b.plan.is_identity() {
                *out = Some(Tensor::from_shard(b.to.clone(), unmoved(ctx, src, b)?));
                continue;
            }
            let owner = MemoryOwner { used_for: MemoryUse::Boxing, op: tag.op, site: tag.site() };
            let dst = b.local.as_ref().map(|l| owner.run(|| LocalTensor::alloc(ctx, l))).transpose()?;
            log_boxing(ctx, &b.plan, tag);
            plans.push(b.plan.clone());
            shards.push((src.as_ref().map(|s| s.view()), dst.as_ref().map(|d| d.view())));
            reads.extend(src.map(|s| s.storage));
            writes.extend(dst.as_ref().map(|d| d.storage.clone()));
            *out = Some(Tensor::from_shard(b.to.clone(), dst));
        }
        if !plans.is_empty() {
            issue_boxings(ctx, (plans, shards), (reads, writes), tag)?;
        }
    }
    Ok(outs.into_iter().flatten().collect())
}

/// This rank's source and destination shard of a boxing.
type Shards = (Option<View>, Option<View>);

/// Issues boxings of one pair of devices together, from this rank's shards to its new ones. The storages are those that they read and write.
pub(in super::super) fn issue_boxings(
    ctx: &RankCtx,
    (plans, ends): (Vec<Arc<BoxingPlan>>, Vec<Shards>),
    (reads, writes): Storages,
    tag: &Tag,
) -> Result<()> {
    let Some(first) = plans.first() else { return Ok(()) };
    let (from, to) = (first.src.placement.device(), first.dst.placement.device());
    let together = together(ctx, &plans);
    let stopwatch = note_together(ctx, &plans, &together, tag);
    let _span = tracing::debug_span!("boxings", count = plans.len()).entered();
    let work = BoxManyWork { plans, tag: *tag, ends, stopwatch, predicted: together.predicted.clone() };
    ctx.submit_boxing(from, to, Instruction { work: Work::BoxMany(work), stream: StreamKind::Comm, reads, writes })
}
