//! Boxing of one tensor: why bytes move, whether the policy of the thread allows it, the log that it asks for, and the boxing itself. The
//! boxed copy of an op's input is remembered.

use super::comm_trace::{in_backward, note};
use super::observers;
use super::run::Run;
use super::state::{WARNED_LIMIT, state};
use crate::backend;
use crate::boxing::BoxingPlan;
use crate::comm::Tag;
use crate::context::{Policy, RankCtx, policy};
use crate::error::{CallSite, Error, Result};
use crate::memory::{MemoryOwner, MemoryUse, Storage};
use crate::ops::{InferCtx, KernelDef, Op, TensorType};
use crate::placement::{Device, Placement};
use crate::plan::{self, BoxStep, For, GlobalRef, KernelTable, PlanCx, PlannedBoxing};
use crate::program::BoxedFor;
use crate::sbp::NdSbp;
use crate::tensor::{LocalTensor, ReshardKey, Tensor};
use crate::vm::{BoxWork, Instruction, StreamKind, Work};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

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
    /// The reason as a captured program has it; `None` if the program asked.
    pub(super) fn boxed_for(self) -> Option<BoxedFor> {
        match self {
            BoxingReason::Asked(_) => None,
            BoxingReason::Needed(op) => Some(BoxedFor::Op(op)),
            BoxingReason::Gradient => Some(BoxedFor::Gradient),
        }
    }

    /// The op, for tags and comm records.
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

/// The boxed copy of a global tensor. It has the edge of its source, and is remembered on the source's handle until that
/// changes: a P tensor used by three ops is reduced once.
pub(super) fn boxed(ctx: &RankCtx, t: &Tensor, b: &PlannedBoxing, tag: &Tag) -> Result<Tensor> {
    let key = ReshardKey::Boxed(b.to.id());
    if let Some(found) = t.resharded(key) {
        return Ok(found);
    }
    let out = Tensor::from_shard(b.to.clone(), run_boxing(ctx, t.data()?, b, tag)?);
    out.set_edge(t.edge());
    t.cache_resharded(key, &out);
    observers::boxed(tag.op, t, &out, tag.site())?;
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
    let owner = MemoryOwner { used_for: MemoryUse::Boxing, op: tag.op, site: tag.site() };
    let dst = b.local.as_ref().map(|l| owner.run(|| LocalTensor::alloc(ctx, l))).transpose()?;
    let storages = |l: &Option<LocalTensor>| l.iter().map(|l| l.storage.clone()).collect::<SmallVec<[Storage; 2]>>();
    let (reads, writes) = (storages(&src).into_iter().collect(), storages(&dst));
    issue_boxing(ctx, &b.plan, (src.as_ref(), dst.as_ref()), (reads, writes), tag)?;
    Ok(dst)
}

/// Storages that an instruction reads, and that it writes.
pub(super) type Storages = (SmallVec<[Storage; 4]>, SmallVec<[Storage; 2]>);

/// Issues a boxing from this rank's shard to its new one. The storages are those that it reads and writes.
pub(super) fn issue_boxing(
    ctx: &RankCtx,
    plan: &Arc<BoxingPlan>,
    (src, dst): (Option<&LocalTensor>, Option<&LocalTensor>),
    (reads, writes): Storages,
    tag: &Tag,
) -> Result<()> {
    log_boxing(ctx, plan, tag);
    let stopwatch = note(ctx, plan, tag);
    let (src, dst) = (src.map(LocalTensor::view), dst.map(LocalTensor::view));
    let work = Work::Boxing(BoxWork { plan: plan.clone(), tag: *tag, src, dst, stopwatch });
    let instruction = Instruction { work, stream: StreamKind::Comm, reads, writes };
    ctx.submit_boxing(plan.src.placement.device(), plan.dst.placement.device(), instruction)
}

/// The text of a boxing in the dispatch stream; `from` is its source as messages write it.
pub(super) fn boxing_text(reason: BoxingReason, from: &str, b: &PlannedBoxing) -> String {
    let (source, target) = (&b.plan.src.placement, &b.plan.dst.placement);
    let on = if source == target { String::new() } else { format!(" on {source}") };
    format!("{}({from}{on}, {}) on {target}", reason.op(), b.plan.dst.sbp)
}

/// Boxing in which nothing moves. Shards of a tensor without elements still have other sizes in another layout.
pub(super) fn unmoved(ctx: &RankCtx, src: Option<LocalTensor>, b: &PlannedBoxing) -> Result<Option<LocalTensor>> {
    Ok(match (&b.local, src) {
        (Some(l), Some(s)) if s.dims() == l.ty.shape.as_slice() => Some(s),
        (Some(l), _) => Some(LocalTensor::alloc(ctx, l)?),
        (None, _) => None,
    })
}

/// A planned boxing as the next op of the stream of global ops.
pub(super) fn box_as(
    ctx: &RankCtx,
    reason: BoxingReason,
    t: &Tensor,
    b: &PlannedBoxing,
    key: u64,
    site: CallSite,
) -> Result<Tensor> {
    check(reason, &b.plan)?;
    let text = || boxing_text(reason, &t.short(), b);
    let tag = ctx.next_described(reason.op(), key, site, &text);
    Ok(Tensor::from_shard(b.to.clone(), run_boxing(ctx, t.data()?, b, &tag)?))
}

impl Run<'_> {
    /// Boxes a buffer. The boxed copy of an input is kept by its handle.
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
