//! Boxing many tensors at once: one op of the stream of global ops, one record, one instruction.

use super::cache::InputBoxing;
use super::convert::{check_grad_sbp, grad_layout, layout_key};
use super::dispatch::unmoved;
use super::plan::boxing_to;
use super::policy::{self, Cause};
use super::receipts::{Together, note_together};
use super::record::record_custom;
use crate::comm::Tag;
use crate::context::{RankCtx, current_rank, grad_enabled};
use crate::error::{CallSite, Error, Result};
use crate::ops::find;
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::{BoxManyWork, Instruction, StreamKind, Work};
use smallvec::SmallVec;
use std::hash::Hasher;
use std::sync::Arc;

/// A global tensor with the layout that it is to have.
pub struct BoxTo {
    /// The tensor.
    pub tensor: Tensor,
    /// Where to.
    pub placement: Placement,
    /// As what.
    pub sbp: NdSbp,
    /// The SBP of its gradient, where one is stated.
    pub grad_sbp: Option<NdSbp>,
}

/// `box_many(...)`: what `to_global` does to each, with their communication together. Recorded as one call, so the
/// gradients travel together too.
pub fn box_many(all: &[BoxTo], site: CallSite) -> Result<Vec<Tensor>> {
    let outs = layouts(Cause::Asked("box_many"), all, site).map_err(|e| e.at(site))?;
    if grad_enabled() && all.iter().any(|b| b.tensor.requires_grad()) {
        let globals =
            all.iter().zip(&outs).filter_map(|(b, out)| Some((b.tensor.global()?, out.global()?, &b.grad_sbp)));
        let ways: Vec<_> = globals.map(|(src, dst, stated)| (src.clone(), dst.clone(), stated.clone())).collect();
        let back = move |grads: &[Option<Tensor>]| {
            let mut found: Vec<Option<Tensor>> = grads.to_vec();
            let (mut moved, mut places) = (Vec::new(), Vec::new());
            for (i, dy) in grads.iter().enumerate() {
                let Some(dy) = dy else { continue };
                let (src, dst, stated) = &ways[i];
                if let Some(sbp) = grad_layout(dy, src, dst, stated.as_ref())? {
                    moved.push(BoxTo { tensor: dy.clone(), placement: src.placement.clone(), sbp, grad_sbp: None });
                    places.push(i);
                }
            }
            for (i, dx) in places.into_iter().zip(box_many(&moved, site)?) {
                found[i] = Some(dx);
            }
            Ok(found)
        };
        let inputs: Vec<&Tensor> = all.iter().map(|b| &b.tensor).collect();
        record_custom(find("copy")?, &inputs, &outs, site, Arc::new(back));
    }
    Ok(outs)
}

/// The tensors in their layouts, not recorded.
pub(super) fn layouts(cause: Cause, all: &[BoxTo], site: CallSite) -> Result<Vec<Tensor>> {
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let ctx = current_rank()?;
    let mut key = crate::intern::FixedHasher::default();
    let mut boxings = Vec::with_capacity(all.len());
    for (i, b) in all.iter().enumerate() {
        let call = || format!("box_many: tensor {i}, {} to {} on {}", b.tensor.short(), b.sbp, b.placement);
        let boxing: Result<InputBoxing> = (|| {
            let local = || Error::sbp(format!("{:?} is not a global tensor", b.tensor));
            let g = b.tensor.global().ok_or_else(|| local().help("`to_global` or `distribute` makes one of it"))?;
            if let Some(s) = &b.grad_sbp {
                check_grad_sbp(&g.ty, &g.placement, s)?;
            }
            key.write_u64(layout_key(g, &b.placement, &b.sbp));
            let boxing = boxing_to(&ctx, g, &b.placement, &b.sbp)?;
            policy::check(cause, &boxing.plan)?;
            Ok(boxing)
        })();
        // A gradient's error names itself: the program did not write this call.
        let named = |e: Error| if matches!(cause, Cause::Gradient) { e.at(site) } else { e.in_call(call) };
        boxings.push((&b.tensor, boxing.map_err(named)?));
    }
    let tag = ctx.next_op(cause.op(), key.finish(), site);
    run_boxings(&ctx, &boxings, &tag)
}

/// Runs several boxings together on the communication stream, as one op of the stream of global ops.
fn run_boxings(ctx: &RankCtx, all: &[(&Tensor, InputBoxing)], tag: &Tag) -> Result<Vec<Tensor>> {
    let mut outs: Vec<Option<Tensor>> = vec![None; all.len()];
    // One instruction for each pair of devices, in the order in which they first stand.
    let ends = |b: &InputBoxing| (b.plan.src.placement.device(), b.plan.dst.placement.device());
    let mut devices: SmallVec<[(Device, Device); 2]> = SmallVec::new();
    for (_, b) in all {
        if !devices.contains(&ends(b)) {
            devices.push(ends(b));
        }
    }
    for (from, to) in devices {
        let mut work = BoxManyWork {
            plans: Vec::new(),
            tag: *tag,
            ends: Vec::new(),
            stopwatches: Vec::new(),
            predicted: Vec::new(),
        };
        let (mut reads, mut writes) = (SmallVec::new(), SmallVec::new());
        for ((t, b), out) in all.iter().zip(&mut outs).filter(|((_, b), _)| ends(b) == (from, to)) {
            let src = t.data()?;
            if b.plan.is_identity() {
                *out = Some(unmoved(ctx, src, b)?);
                continue;
            }
            let dst = b.local.as_ref().map(|l| LocalTensor::alloc(ctx, l)).transpose()?;
            policy::tell(ctx, &b.plan, tag);
            work.plans.push(b.plan.clone());
            work.ends.push((src.as_ref().map(|s| s.view()), dst.as_ref().map(|d| d.view())));
            reads.extend(src.map(|s| s.storage));
            writes.extend(dst.as_ref().map(|d| d.storage.clone()));
            *out = Some(Tensor::from_shard(b.to.clone(), dst));
        }
        if !work.plans.is_empty() {
            let together = Together::of(ctx, &work.plans);
            work.stopwatches = note_together(ctx, &work.plans, &together, tag);
            work.predicted = together.predicted.clone();
            let _span = tracing::debug_span!("boxings", count = work.plans.len()).entered();
            let i = Instruction { work: Work::BoxMany(work), stream: StreamKind::Comm, reads, writes };
            ctx.submit_boxing(from, to, i)?;
        }
    }
    Ok(outs.into_iter().flatten().collect())
}
