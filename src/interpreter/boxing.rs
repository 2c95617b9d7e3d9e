//! Boxing of one tensor: on behalf of an op's input, where the boxed form is remembered, and as it is.

use super::boxing_log::log_boxing;
use super::observers;
use super::run::Run;
use crate::backend;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::{Error, Result};
use crate::ops::{InferCtx, KernelDef, Op, TensorType};
use crate::placement::{Device, Placement};
use crate::plan::{self, BoxStep, For, GlobalRef, KernelTable, PlanCx, PlannedBoxing};
use crate::sbp::NdSbp;
use crate::tensor::{FormOf, LocalTensor, Tensor};
use crate::vm::{BoxWork, Instruction, StreamKind, Work};

/// The kernels of the backends.
struct Registered;

impl KernelTable for Registered {
    fn select(
        &self,
        op: &'static Op,
        device: Device,
        physical: &InferCtx<'_>,
        outs: &[TensorType],
    ) -> Result<KernelDef> {
        backend::select(op, device, physical, outs)
    }
}

/// The rank as plans are made for it.
pub(super) fn plan_cx(ctx: &RankCtx) -> PlanCx<'_> {
    PlanCx { rank: ctx.rank(), planner: ctx.planner(), kernels: &Registered }
}

/// Refuses a placement with ranks that the world does not have.
pub(super) fn check_world(ctx: &RankCtx, placement: &Placement) -> Result<()> {
    match placement.ranks().iter().find(|r| **r >= ctx.world()) {
        Some(r) => {
            Err(Error::placement(format!("{placement} needs rank {r}, but the world has {} ranks", ctx.world()))
                .help("start the program with `oflaunch --nproc N`"))
        }
        None => Ok(()),
    }
}

/// The boxing of a global type to a layout, for this rank.
pub(super) fn boxing_to(ctx: &RankCtx, from: &GlobalRef, placement: &Placement, to: &NdSbp) -> Result<PlannedBoxing> {
    let planned = plan::boxing_to(&plan_cx(ctx), from, placement, to)?;
    check_world(ctx, placement)?;
    Ok(planned)
}

/// The boxed form of a global tensor. It has the edge of its source, and is remembered on the source's handle until that
/// changes: a P tensor used by three ops is reduced once.
pub(super) fn boxed(ctx: &RankCtx, t: &Tensor, b: &PlannedBoxing, tag: &Tag) -> Result<Tensor> {
    let form = FormOf::Boxed(b.to.id());
    if let Some(found) = t.form(form) {
        return Ok(found);
    }
    let out = Tensor::from_shard(b.to.clone(), run_boxing(ctx, t.data()?, b, tag)?);
    out.set_edge(t.edge());
    t.remember(form, &out);
    observers::boxed(t, &out, &b.to, tag.site())?;
    Ok(out)
}

/// Runs a boxing plan on the communication stream, from this rank's shard to its new one.
pub(super) fn run_boxing(
    ctx: &RankCtx,
    src: Option<LocalTensor>,
    b: &PlannedBoxing,
    tag: &Tag,
) -> Result<Option<LocalTensor>> {
    if b.plan.is_identity() {
        return unmoved(ctx, src, b);
    }
    let _span =
        tracing::debug_span!("boxing", plan = %b.plan, site = %format_args!("{}:{}", tag.file, tag.line)).entered();
    let dst = b.local.as_ref().map(|l| LocalTensor::alloc(ctx, l)).transpose()?;
    log_boxing(ctx, &b.plan, tag);
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
    Ok(dst)
}

/// Boxing in which nothing moves. Shards of a tensor without elements still have other sizes in another layout.
pub(super) fn unmoved(ctx: &RankCtx, src: Option<LocalTensor>, b: &PlannedBoxing) -> Result<Option<LocalTensor>> {
    Ok(match (&b.local, src) {
        (Some(l), Some(s)) if s.dims() == l.ty.shape.as_slice() => Some(s),
        (Some(l), _) => Some(LocalTensor::alloc(ctx, l)?),
        (None, _) => None,
    })
}

impl Run<'_> {
    /// Boxes a buffer. The boxed form of an input is kept by its handle.
    pub(super) fn boxing(&mut self, n: usize, b: &BoxStep) -> Result<()> {
        let tag = self.tag.ok_or_else(|| Error::registry("a boxing in the plan of a local call"))?;
        if let For::Input(i) = b.purpose
            && let Some(t) = self.call.inputs[i]
        {
            let form = boxed(self.ctx, t, &b.boxing, tag)?;
            self.make(b.makes, form.data()?);
            self.boxed.resize(i + 1, None);
            self.boxed[i] = Some(form);
            return Ok(());
        }
        let src = self.read(n, b.from)?;
        let dst = run_boxing(self.ctx, src, &b.boxing, tag)?;
        self.make(b.makes, dst);
        Ok(())
    }
}
