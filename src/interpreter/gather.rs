//! Parameters that are stored split and read whole ([`nn::zero`](crate::nn::zero)): before a call is issued, its inputs that are
//! marked so are boxed to the layout in which calls read them.
//!
//! So the call is the one that it would be without the mark: the same signature, the same bits. The gathered form has the edge of its
//! source, whose gradient therefore goes straight to the source's layout: a reduce-scatter. Some forms are remembered until the source
//! changes. The others live for one call: what backward needs of them is saved as the source, and gathered once more.
//!
//! What a call writes, and what a layout op takes, is the tensor as it is stored. Under autocast the shard is cast, and then gathered.

use super::call::Call;
use super::dispatch::Outputs;
use super::layout::to_layout;
use super::policy::Cause;
use super::saved::unseen;
use crate::context::no_grad;
use crate::error::{CallSite, Result};
use crate::tensor::{FormOf, Tensor};
use smallvec::SmallVec;

/// Whether a call is to be given gathered inputs.
#[inline]
pub(super) fn wanted(call: &Call<'_>) -> bool {
    let any = (0..call.inputs.len()).any(|i| reads(call, i).is_some());
    any && !call.as_stored && call.op.layout.is_none()
}

/// Input `i`, if the call reads it and it is marked.
#[inline]
fn reads<'a>(call: &Call<'a>, i: usize) -> Option<&'a Tensor> {
    let t = call.inputs[i].filter(|t| t.for_use().is_some())?;
    let written = call.op.sig.mutates(i) || call.given.is_some_and(|given| given.same(t));
    (!written).then_some(t)
}

/// Runs a call with gathered inputs.
#[cold]
pub(super) fn run(call: Call<'_>) -> Result<Outputs> {
    let mut inputs: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for (i, t) in call.inputs.iter().enumerate() {
        // One tensor that is given twice is gathered once.
        let before = call.inputs[..i].iter().position(|other| matches!((t, other), (Some(a), Some(b)) if a.same(b)));
        inputs.push(match (before, reads(&call, i)) {
            (Some(k), Some(_)) => inputs[k].clone(),
            (None, Some(t)) => Some(gathered(t, call.site).map_err(|e| e.in_call(|| call.short()).at(call.site))?),
            (_, None) => t.cloned(),
        });
    }
    let refs: SmallVec<[Option<&Tensor>; 4]> = inputs.iter().map(|t| t.as_ref()).collect();
    Call { inputs: &refs, ..call }.run()
}

/// The tensor in the layout in which calls read it.
pub(super) fn gathered(t: &Tensor, site: CallSite) -> Result<Tensor> {
    let Some(how) = t.for_use() else { return Ok(t.clone()) };
    let form = FormOf::Boxed(how.to.id());
    if how.keeps
        && let Some(found) = t.form(form)
    {
        return Ok(found);
    }
    let out = {
        let (_unrecorded, _unlisted) = (no_grad(), unseen());
        to_layout(Cause::Needed("parameter"), t, &how.to.placement, &how.to.sbp, site)?
    };
    out.set_edge(t.edge());
    match how.keeps {
        true => t.remember(form, &out),
        false => out.set_gathered_from(t),
    }
    Ok(out)
}
