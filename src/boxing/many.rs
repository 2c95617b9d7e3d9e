//! Many boxings at once: which steps of which plans are carried out as one collective.
//!
//! Boxings are taken in their order, in *batches* that hold no more than [`BATCH_BYTES`]. The plans of a batch advance
//! together: their first steps are the first *wave*, their second steps the second, and so on. Within a wave, steps of one
//! kind over one group and dtype (and op, and root) are one *bucket*: one collective over what they would send one after
//! another. All exchanges of one dtype are one batch of messages. Steps that do not depend on each other so no longer wait
//! for each other.
//!
//! **One total order.** All members of a group have the same steps over that group in a wave, so they form the same buckets;
//! a bucket's place is the number of its first boxing, which they know alike. An exchange concerns ranks that may not know
//! of each other, so exchanges come after the buckets of their wave, by dtype. Every rank so runs its collectives in
//! an order taken from one order of all of them, and none can wait in a circle.
//!
//! **The same bits.** Elements are reduced in member order whatever lies beside them.

use super::axes::AxisSet;
use super::cost::{Algorithm, Groups, LinkKind, Model, MoveCost};
use super::moved::Moved;
use super::plan::BoxingPlan;
use super::program::RankProgram;
use super::rank_step::RankStep;
use super::sizes::Sizes;
use super::step::Communication;
use super::steps::BoxingStep;
use crate::sbp::Sbp;
use oflow_kernels::DType;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Largest number of logical bytes that are boxed together. It limits the buffers for packing and unpacking.
pub const BATCH_BYTES: usize = 64 << 20;

/// Tensors up to this many (logical) bytes are boxed on the thread that issues kernels: handing them over would cost more than the
/// collective.
pub const INLINE_BYTES: usize = 64 << 10;

/// Divides boxings into batches of consecutive ones, each of at most [`BATCH_BYTES`] or of a single boxing. The same on every rank.
pub fn batches(plans: &[Arc<BoxingPlan>]) -> Vec<Range<usize>> {
    let bytes = |p: &BoxingPlan| p.shape.iter().product::<usize>() * p.dtype.size();
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut held = 0usize;
    for (i, plan) in plans.iter().enumerate() {
        held = held.saturating_add(bytes(plan));
        match all.last_mut() {
            Some(batch) if held <= BATCH_BYTES => batch.end = i + 1,
            _ => {
                held = bytes(plan);
                all.push(i..i + 1);
            }
        }
    }
    all
}

/// The work of one rank in one wave. Numbers are indices of boxings.
#[derive(Debug, Default)]
pub struct Wave {
    /// Steps without communication.
    pub local: Vec<usize>,
    /// Steps that are one collective, in the order in which they run.
    pub buckets: Vec<Vec<usize>>,
    /// Exchanges that are one batch of messages, in the order in which they run, after the buckets.
    pub exchanges: Vec<Vec<usize>>,
}

/// The waves of a batch on one rank.
pub fn waves(programs: &[(DType, Arc<RankProgram>)]) -> Vec<Wave> {
    let count = programs.iter().map(|(_, p)| p.steps.len()).max().unwrap_or(0);
    (0..count).map(|w| wave(programs, w)).collect()
}

fn wave(programs: &[(DType, Arc<RankProgram>)], number: usize) -> Wave {
    let mut wave = Wave::default();
    for (i, (dtype, program)) in programs.iter().enumerate() {
        let Some(step) = program.steps.get(number) else { continue };
        let alike = |bucket: &Vec<usize>| {
            let (other, first) = &programs[bucket[0]];
            other == dtype && first.steps.get(number).is_some_and(|s| s.joins(step))
        };
        let list = match step {
            RankStep::Exchange(_) => &mut wave.exchanges,
            _ if step.is_local() => {
                wave.local.push(i);
                continue;
            }
            _ => &mut wave.buckets,
        };
        match list.iter_mut().find(|b| alike(b)) {
            Some(bucket) => bucket.push(i),
            None => list.push(vec![i]),
        }
    }
    // A rank may lack the first exchange of a dtype that others have: the order may not depend on it.
    wave.exchanges.sort_by_key(|b| programs[b[0]].0);
    wave
}

/// Predicted time of each of several boxings, in picoseconds, when they are carried out together: a step that shares the
/// collective of an earlier one does not start it again.
pub fn predicted_together(plans: &[Arc<BoxingPlan>]) -> Vec<u64> {
    let mut all = Vec::with_capacity(plans.len());
    for batch in batches(plans) {
        let mut started = Vec::new();
        for plan in &plans[batch] {
            let mut sum = 0u64;
            for (number, step) in plan.steps.iter().enumerate() {
                let start = starting(&plan.model, &plan.shape, plan.dtype, step);
                let kind = (number, start, std::mem::discriminant(&step.op), step.before.placement.id(), plan.dtype);
                let shared = start.is_some() && started.contains(&kind);
                let own = step.cost_ps.saturating_sub(if shared { start.map_or(0, |s| s.0) } else { 0 });
                sum = u64::saturating_add(sum, own);
                started.push(kind);
            }
            all.push(sum);
        }
    }
    all
}

/// The part of a step's price that does not depend on its bytes, and the axes of its groups; none for a local step.
fn starting(model: &Model, shape: &[usize], dtype: DType, step: &BoxingStep) -> Option<(u64, AxisSet)> {
    let mesh = &step.after.placement;
    let axes = match step.op.communication() {
        Communication::None => return None,
        Communication::Messages { within } => {
            let link = model.between(mesh.device(), step.before.placement.ranks()[0], mesh.ranks()[0]);
            return Some((model.rate(link, Algorithm::Exchange).price(0, 0), within));
        }
        Communication::Groups(axes) => axes,
    };
    let ks: SmallVec<[usize; 4]> = axes.iter().map(|a| mesh.dims()[a]).collect();
    // The largest box before these axes split it.
    let mut sizes = Sizes::from_slice(shape);
    for (a, s) in step.before.sbp.iter().enumerate().filter(|(a, _)| !axes.contains(*a)) {
        if let (Sbp::Split(d), Some(k)) = (s, mesh.dims().get(a)) {
            sizes[*d] = sizes[*d].div_ceil(*k);
        }
    }
    let groups = Groups::along(model, mesh, axes);
    let at = MoveCost { model, groups: &groups, ks: &ks, sizes: &sizes, dtype };
    Some((step.op.kind().price(&at)?.start, axes))
}

/// Bytes that other ranks take from this one when the boxings are carried out together. All-reduces that share a bucket may
/// take two phases where each alone has one, and collectives over hosts may then be long enough to go by these; everything
/// else sends what it sends alone. Exact for the sum over the ranks, as [`BoxingPlan::bytes_sent_by`].
pub fn bytes_sent_together(plans: &[Arc<BoxingPlan>], rank: usize) -> u64 {
    let mut sum: u64 = plans.iter().map(|p| p.bytes_sent_by(rank)).sum();
    for batch in batches(plans) {
        let plans = &plans[batch];
        let programs: Vec<_> = plans.iter().map(|p| (p.dtype, p.program(rank))).collect();
        for (number, wave) in waves(&programs).into_iter().enumerate() {
            for bucket in &wave.buckets {
                let Some((moved, joined)) = joined(&programs, bucket, number) else { continue };
                let (model, on_host) = (&plans[bucket[0]].model, plans[bucket[0]].on_host());
                let apart: u64 = moved.iter().map(|m| m.sent(model, on_host)).sum();
                sum = sum + joined.sent(model, on_host) - apart;
            }
        }
    }
    sum
}

/// Of boxings that are carried out together, the bytes that all ranks send by the kind of link that they cross
/// ([`BoxingPlan::bytes_by_link`]). Those of a collective that several share are divided by their elements.
pub fn bytes_by_link_together(plans: &[Arc<BoxingPlan>]) -> Vec<BTreeMap<LinkKind, u64>> {
    let mut all: Vec<_> = plans.iter().map(|p| p.bytes_by_link()).collect();
    for batch in batches(plans).into_iter().filter(|b| b.len() > 1) {
        let (plans, links) = (&plans[batch.clone()], &mut all[batch]);
        let ranks: BTreeSet<usize> = plans.iter().flat_map(|p| p.ranks()).collect();
        for rank in ranks {
            let programs: Vec<_> = plans.iter().map(|p| (p.dtype, Arc::new(p.make_program(rank)))).collect();
            for (number, wave) in waves(&programs).into_iter().enumerate() {
                for bucket in &wave.buckets {
                    let Some((moved, joined)) = joined(&programs, bucket, number) else { continue };
                    let received = |i: usize, m: &Moved| {
                        let (plan, mut by_link) = (&plans[i], BTreeMap::<LinkKind, u64>::new());
                        m.received(&plan.model, plan.on_host(), |from, bytes| {
                            *by_link.entry(plan.between(from, rank)).or_insert(0) += bytes;
                        });
                        by_link
                    };
                    for (i, m) in bucket.iter().zip(&moved) {
                        for (kind, bytes) in received(*i, m) {
                            *links[*i].entry(kind).or_insert(0) -= bytes;
                        }
                    }
                    for (kind, bytes) in received(bucket[0], &joined) {
                        let mut left = (bytes, joined.elements());
                        for (i, m) in bucket.iter().zip(&moved) {
                            let share = u128::from(left.0) * u128::from(m.elements()) / u128::from(left.1.max(1));
                            *links[*i].entry(kind).or_insert(0) += share as u64;
                            left = (left.0 - share as u64, left.1 - m.elements());
                        }
                    }
                }
            }
        }
    }
    all.iter_mut().for_each(|links| links.retain(|_, bytes| *bytes > 0));
    all
}

/// Bytes moved by each step of a bucket and by the merged collective; `None` for a bucket of one step.
fn joined<'a>(
    programs: &'a [(DType, Arc<RankProgram>)],
    bucket: &[usize],
    number: usize,
) -> Option<(Vec<Moved<'a>>, Moved<'a>)> {
    if bucket.len() < 2 {
        return None;
    }
    let each = |i: &usize| {
        let (dtype, program) = &programs[*i];
        Moved::of(&program.steps[number], *dtype)
    };
    let moved = bucket.iter().map(each).collect::<Option<Vec<_>>>()?;
    let mut all = each(&bucket[0])?;
    moved[1..].iter().for_each(|m| all.join(m));
    Some((moved, all))
}
