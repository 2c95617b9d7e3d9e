//! Layouts that the program asks for: of the result of a call, and of the gradient of its result.

use super::call::{Call, Outputs};
use crate::context::{AskedSbp, asked_grad_sbp, asked_sbp, nothing_asked};
use crate::error::{Error, Result};
use crate::op;
use crate::placement::Placement;
use smallvec::smallvec;

/// The layout that the program asks of this call's result. A call that makes a tensor states it itself; one that writes in
/// place cannot change it.
#[inline(always)]
pub(super) fn layout_of_result(call: &Call<'_>, placement: &Placement) -> Result<Option<AskedSbp>> {
    let Some(asked) = asked_sbp(call.op, placement.axes()).filter(|_| call.target.is_none()) else { return Ok(None) };
    match call.given.and_then(|g| g.global()) {
        None => Ok(Some(asked)),
        Some(g) if asked.op.is_some() || g.sbp == asked.sbp => Ok(None),
        Some(g) => Err(Error::sbp(format!(
            "the result is written in place into a tensor that is {}, but `with_sbp` at {} asks for {}",
            g.sbp, asked.site, asked.sbp
        ))
        .help("use the op that returns a new tensor")),
    }
}

/// Where a layout is asked of the gradient of output 0, backward comes past a boxing to it.
#[inline]
pub(super) fn box_gradient(call: &Call<'_>, outs: &mut Outputs) -> Result<()> {
    let Some(g) = outs.first().and_then(|out| out.global()).filter(|_| call.given.is_none()) else { return Ok(()) };
    let Some(asked) = asked_grad_sbp(call.op, g.placement.axes()) else { return Ok(()) };
    if !outs[0].requires_grad() {
        return Ok(());
    }
    let attrs = smallvec![g.placement.clone().into(), g.sbp.clone().into(), asked.sbp.clone().into()];
    let _free = nothing_asked();
    let boxed = Call::of(op!("to_global")?, &[Some(&outs[0])], attrs, smallvec![], call.site).run1();
    outs[0] = boxed.map_err(|e| {
        let (by, sbp, why) = (asked.site, &asked.sbp, e.message());
        Error::sbp(format!("the gradient cannot be {sbp}, which `with_grad_sbp` at {by} asks for: {why}"))
            .in_call(|| call.short())
            .at(call.site)
            .help("ask for a layout that a tensor of the result's shape and placement can have, around that call alone")
    })?;
    Ok(())
}
