//! Rewrite of a call that writes its result over an input: where the gradient reads what the input was, the call gets a copy of it.
//! PyTorch keeps such copies for its in-place forms too.

use super::call::{Call, Rewrite, Rewritten};
use super::record::grad_reads;
use crate::context::inner_calls;
use crate::error::Result;
use crate::op;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// Keeps what a call in place writes over.
pub(super) const KEEP_OVERWRITTEN: Rewrite = Rewrite {
    applies: |call| call.given.is_some() && call.is_recorded(),
    rewrite: |call| keep(call).map_err(|e| e.in_call(|| call.short()).at(call.site)),
};

/// The call with copies of those inputs. None where the gradient reads none of them.
fn keep(call: &Call<'_>) -> Result<Option<Rewritten>> {
    // A wrong number of inputs is refused by inference.
    let Some(given) = call.given.filter(|_| call.inputs.len() == call.op.sig.inputs.len()) else { return Ok(None) };
    let needs = |i: usize| call.inputs[i].is_some_and(|t| t.requires_grad());
    let (read, _) = grad_reads(call, needs)?;
    let lost = |i: usize, t: &Tensor| read >> i.min(63) & 1 == 1 && t.memory_id() == given.memory_id();
    let lost_at = |i: usize| call.inputs[i].is_some_and(|t| lost(i, t));
    if !(0..call.inputs.len()).any(lost_at) {
        return Ok(None);
    }
    let _inner = inner_calls();
    let keep = |(i, t): (usize, &Option<&Tensor>)| match *t {
        Some(t) if lost(i, t) => Call::of(op!("copy")?, &[Some(t)], smallvec![], smallvec![], call.site)
            .run1()
            .map(Some)
            .map_err(|e| e.within(|| format!("{} in place keeps what it writes over", call.op.name()))),
        t => Ok(t.cloned()),
    };
    Ok(Some(Rewritten::Inputs(call.inputs.iter().enumerate().map(keep).collect::<Result<_>>()?)))
}
