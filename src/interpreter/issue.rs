//! Issues a call, and lets it run: random ops draw their numbers, and a call on global tensors takes its place in the stream of global ops,
//! which ranks compare.

use super::cache::DispatchPlan;
use super::call::{Call, Outputs};
use super::comm_trace::in_backward;
use super::run::{Boxed, carry_out};
use super::view::local_view;
use super::writes::begin_write;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::Result;
use crate::intern::FixedHasher;
use crate::memory::{MemoryOwner, MemoryUse};
use oflow_kernels::Scalar;
use smallvec::smallvec;
use std::hash::Hasher;

/// The stages issue and run, of a call that is decided. A call on global tensors is numbered; in a run of a captured program only where ranks
/// exchange something for it. Copies to which its inputs are boxed are put into `boxed`.
#[inline(always)]
pub(super) fn issue_and_run(
    ctx: &RankCtx,
    call: &mut Call<'_>,
    decided: &DispatchPlan,
    (global, numbered): (bool, bool),
    boxed: &mut Boxed,
) -> Result<Outputs> {
    let tag = issue(ctx, call, decided, (global, numbered))?;
    own_memory(call);
    if !global
        && call.op.view.is_some()
        && let Some(view) = local_view(call, &decided.plan)?
    {
        return Ok(smallvec![view]);
    }
    let _writing = begin_write(call, global);
    carry_out(ctx, call, &decided.plan, tag.as_ref(), boxed)
}

/// Makes the call the owner of what the thread allocates.
#[inline(always)]
pub(super) fn own_memory(call: &Call<'_>) {
    let used_for = if in_backward() { MemoryUse::Backward } else { MemoryUse::Activation };
    MemoryOwner { used_for, op: call.op.name(), site: call.site }.begin();
}

/// Draws the numbers of a random op and numbers a global call. Returns the number of a global call, none of a local one.
#[inline(always)]
fn issue(
    ctx: &RankCtx,
    call: &mut Call<'_>,
    decided: &DispatchPlan,
    (global, numbered): (bool, bool),
) -> Result<Option<Tag>> {
    if !global {
        draw(ctx, call, false);
        return Ok(None);
    }
    if decided.plan.hands_on_numbers {
        decided.plan.check_numbers(&call.runtime)?;
    }
    draw(ctx, call, true);
    if !numbered {
        return Ok(None);
    }
    let key = with_runtime(decided.plan.stream_key, &call.runtime);
    Ok(Some(ctx.next_call(call.op.name(), key, call.site, &decided.text)))
}

/// Fills the seed and ordinal that a random op was not given. Global ops advance the global generator on every rank, also
/// on those outside the placement.
#[inline(always)]
fn draw(ctx: &RankCtx, call: &mut Call<'_>, global: bool) {
    if !call.op.traits.random {
        return;
    }
    let (Some(s), Some(o)) = (call.op.sig.runtime_attr("seed"), call.op.sig.runtime_attr("ordinal")) else { return };
    if call.runtime[o] == Scalar::Int(-1) {
        let (seed, ordinal) = ctx.draw(global);
        call.runtime[s] = Scalar::Int(seed as i64);
        call.runtime[o] = Scalar::Int(ordinal as i64);
    }
}

/// The key of a call with the values of its runtime attributes: a scalar operand or a seed that differs between ranks makes
/// tensors differ that are to be equal.
pub(super) fn with_runtime(key: u64, runtime: &[Scalar]) -> u64 {
    let mut h = FixedHasher::default();
    h.write_u64(key);
    for scalar in runtime {
        let (kind, bits) = match *scalar {
            Scalar::Bool(b) => (0, u64::from(b)),
            Scalar::Int(i) => (1, i as u64),
            // A NaN is a NaN, whatever made it.
            Scalar::Float(x) if x.is_nan() => (2, u64::MAX),
            Scalar::Float(x) => (2, x.to_bits()),
            Scalar::Complex(re, im) => {
                h.write_u64(im.to_bits());
                (3, re.to_bits())
            }
        };
        h.write_u64(bits ^ kind << 62);
    }
    h.finish()
}
