//! Boxing of one tensor: on behalf of an op's input, where the boxed form is remembered, and as it is.

use super::cache::InputBoxing;
use super::policy;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::Result;
use crate::tensor::{FormOf, LocalTensor, Tensor};
use crate::vm::{BoxWork, Instruction, StreamKind, Work};

/// The boxed form of a global tensor. It has the edge of its source, and is remembered on the source's handle until that
/// changes: a P tensor used by three ops is reduced once.
pub(super) fn boxed(ctx: &RankCtx, t: &Tensor, b: &InputBoxing, tag: &Tag) -> Result<Tensor> {
    let form = FormOf::Boxed(b.to.id());
    if let Some(found) = t.form(form) {
        return Ok(found);
    }
    let out = run_boxing(ctx, t, b, tag)?;
    out.set_edge(t.edge());
    t.remember(form, &out);
    Ok(out)
}

/// Runs a boxing plan on the communication stream.
pub(super) fn run_boxing(ctx: &RankCtx, t: &Tensor, b: &InputBoxing, tag: &Tag) -> Result<Tensor> {
    let src = t.data()?;
    if b.plan.is_identity() {
        return unmoved(ctx, src, b);
    }
    let _span =
        tracing::debug_span!("boxing", plan = %b.plan, site = %format_args!("{}:{}", tag.file, tag.line)).entered();
    let dst = b.local.as_ref().map(|l| LocalTensor::alloc(ctx, l)).transpose()?;
    policy::tell(ctx, &b.plan, tag);
    let stopwatch = super::receipts::note(ctx, &b.plan, tag);
    let instruction = Instruction {
        work: Work::Boxing(BoxWork {
            plan: b.plan.clone(),
            tag: *tag,
            src: src.as_ref().map(|s| s.view()),
            dst: dst.as_ref().map(|d| d.view()),
            stopwatch,
        }),
        stream: StreamKind::Comm,
        reads: src.iter().map(|s| s.storage.clone()).collect(),
        writes: dst.iter().map(|d| d.storage.clone()).collect(),
    };
    ctx.submit_boxing(b.plan.src.placement.device(), b.plan.dst.placement.device(), instruction)?;
    Ok(Tensor::from_shard(b.to.clone(), dst))
}

/// Boxing in which nothing moves. Shards of a tensor without elements still have other sizes in another layout.
pub(super) fn unmoved(ctx: &RankCtx, src: Option<LocalTensor>, b: &InputBoxing) -> Result<Tensor> {
    let shard = match (&b.local, src) {
        (Some(l), Some(s)) if s.dims() == l.ty.shape.as_slice() => Some(s),
        (Some(l), _) => Some(LocalTensor::alloc(ctx, l)?),
        (None, _) => None,
    };
    Ok(Tensor::from_shard(b.to.clone(), shard))
}
