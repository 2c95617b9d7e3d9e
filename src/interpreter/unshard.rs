//! Parameters that are stored split and read whole ([`nn::zero`](crate::nn::zero)): before a call is issued, its inputs that are
//! marked so are boxed to the layout in which calls read them.
//!
//! So the call is the one that it would be without the mark: the same signature, the same bits. The unsharded copy has the edge of its
//! source, whose gradient therefore goes straight to the source's layout: a reduce-scatter. Some copies are cached until the source
//! changes. The others live for one call: what backward needs of them is saved as the source, and gathered once more.
//!
//! What a call writes, and what a layout op takes, is the tensor as it is stored. Under autocast the shard is cast, and then gathered.

use super::call::{Call, OwnedInputs, Rewrite, Rewritten};
use super::layout::box_for;
use crate::error::{CallSite, Result};
use crate::tensor::{ReshardKey, Tensor};

/// Gathers the inputs of a call that are stored split.
pub(super) const UNSHARD: Rewrite = Rewrite { applies: wanted, rewrite: unshard_inputs };

/// Whether a call is to be given gathered inputs.
#[inline]
fn wanted(call: &Call<'_>) -> bool {
    let any = (0..call.inputs.len()).any(|i| reads(call, i).is_some());
    any && !call.skip_unshard && call.op.layout.is_none()
}

/// Input `i`, if the call reads it and it is marked.
#[inline]
fn reads<'a>(call: &Call<'a>, i: usize) -> Option<&'a Tensor> {
    let t = call.inputs[i].filter(|t| t.for_use().is_some())?;
    let written = call.op.sig.mutates(i) || call.given.is_some_and(|given| given.same(t));
    (!written).then_some(t)
}

/// The call with gathered inputs.
fn unshard_inputs(call: &Call<'_>) -> Result<Option<Rewritten>> {
    let mut inputs = OwnedInputs::new();
    for (i, t) in call.inputs.iter().enumerate() {
        // One tensor that is given twice is gathered once.
        let before = call.inputs[..i].iter().position(|other| matches!((t, other), (Some(a), Some(b)) if a.same(b)));
        inputs.push(match (before, reads(call, i)) {
            (Some(k), Some(_)) => inputs[k].clone(),
            (None, Some(t)) => Some(unsharded(t, call.site).map_err(|e| e.in_call(|| call.short()).at(call.site))?),
            (_, None) => t.cloned(),
        });
    }
    Ok(Some(Rewritten::Inputs(inputs)))
}

/// The tensor in the layout in which calls read it.
pub(super) fn unsharded(t: &Tensor, site: CallSite) -> Result<Tensor> {
    let Some(how) = t.for_use() else { return Ok(t.clone()) };
    let key = ReshardKey::Boxed(how.to.id());
    if how.keeps
        && let Some(found) = t.resharded(key)
    {
        return Ok(found);
    }
    let out = box_for("parameter", t, &how.to, site)?;
    out.set_edge(t.edge());
    match how.keeps {
        true => t.cache_resharded(key, &out),
        false => out.set_gathered_from(t),
    }
    Ok(out)
}
