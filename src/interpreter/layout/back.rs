//! Gradients of boxings: the layout that each is boxed to is decided when the gradient is known.

use super::super::boxing::{BoxingReason, box_as, boxing_to};
use super::super::call::{Call, Outputs, as_stated};
use super::many::{BoxRequest, box_together};
use super::to_global::{global_of, layout_key};
use crate::boxing::{Layout, plan as boxing_plan};
use crate::context::current_rank;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, LayoutOp};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, dual};
use crate::tensor::{GlobalRef, Tensor};

/// Layouts of a boxing, as its gradient comes back.
struct Boxed<'a> {
    /// Where the tensor lay.
    home: (&'a Placement, &'a NdSbp),
    /// Where it was boxed to.
    from: (&'a Placement, &'a NdSbp),
    /// Layout that was stated for the gradient.
    stated: Option<&'a NdSbp>,
}

/// The op `to_global_grad`.
pub(super) fn to_global_grad(call: &Call<'_>, cause: BoxingReason) -> Result<Tensor> {
    let dy = call.only_input()?;
    let boxed = Boxed {
        home: (call.placement("placement")?, call.sbp("sbp")?),
        from: (call.placement("from")?, call.sbp("from_sbp")?),
        stated: call.stated("grad_sbp")?,
    };
    match boxed.goes_to(dy)? {
        None => Ok(stays(call, dy)),
        Some(to) => {
            let (ctx, g) = (current_rank()?, global_of(dy)?);
            let b = boxing_to(&ctx, g, boxed.home.0, &to)?;
            box_as(&ctx, cause, dy, &b, layout_key(g, boxed.home.0, &to), call.site)
        }
    }
}

/// Whether the op `to_global_grad`, or `box_many_grad`, leaves its gradient of that number and type as it is.
pub(in super::super) fn gradient_stays(call: &Call<'_>, i: usize, dy: &GlobalRef) -> Result<bool> {
    let (home, stated) = match call.op.layout {
        Some(LayoutOp::BoxManyGrad) => {
            let AttrValue::Placement(home) = &call.list("placements")?[i] else {
                return Err(Error::argument(format!("gradient {i} has no placement")));
            };
            (home, as_stated("grad_sbps", &call.list("grad_sbps")?[i])?)
        }
        _ => (call.placement("placement")?, call.stated("grad_sbp")?),
    };
    Ok(stated.is_none() && dy.placement == *home)
}

/// The op `box_many_grad`: those that move go together.
pub(super) fn box_many_grad(call: &Call<'_>, cause: BoxingReason) -> Result<Outputs> {
    let columns = ["placements", "sbps", "from", "from_sbps", "grad_sbps"];
    let columns: Vec<&[AttrValue]> = columns.iter().map(|name| call.list(name)).collect::<Result<_>>()?;
    if columns.iter().any(|c| c.len() != call.inputs.len()) {
        return Err(Error::argument("each tensor needs a layout, the one that it came from, and a stated one or none"));
    }
    let mut found: Vec<Option<Tensor>> = vec![None; call.inputs.len()];
    let (mut moved, mut places) = (vec![], vec![]);
    for (i, dy) in call.inputs.iter().enumerate() {
        let dy = dy.ok_or_else(|| Error::argument(format!("tensor {i} is missing")))?;
        let placement = |column: usize| match &columns[column][i] {
            AttrValue::Placement(p) => Ok(p),
            v => Err(Error::argument(format!("'{v}' is not a placement"))),
        };
        let sbp = |column: usize| {
            let stated = as_stated("sbps", &columns[column][i])?;
            stated.ok_or_else(|| Error::argument(format!("tensor {i} has no SBP")))
        };
        let boxed = Boxed {
            home: (placement(0)?, sbp(1)?),
            from: (placement(2)?, sbp(3)?),
            stated: as_stated("grad_sbps", &columns[4][i])?,
        };
        match boxed.goes_to(dy)? {
            None => found[i] = Some(stays(call, dy)),
            Some(sbp) => {
                moved.push(BoxRequest { tensor: dy, placement: boxed.home.0, sbp, stated: None });
                places.push(i);
            }
        }
    }
    for (i, dx) in places.into_iter().zip(box_together(cause, &moved, call.site)?) {
        found[i] = Some(dx);
    }
    Ok(found.into_iter().flatten().collect())
}

/// A gradient that stays where it is; a handle of its own where the call is recorded.
fn stays(call: &Call<'_>, dy: &Tensor) -> Tensor {
    if call.recording { dy.value() } else { dy.clone() }
}

impl Boxed<'_> {
    /// The SBP on the source's placement that the gradient is boxed to; none if it stays as it is.
    fn goes_to(&self, dy: &Tensor) -> Result<Option<NdSbp>> {
        Ok(match (self.stated, dy.placement()? == self.home.0) {
            (Some(s), _) => Some(s.clone()),
            (None, true) => None,
            (None, false) => Some(self.way_back(dy)?),
        })
    }

    /// Where the gradient of a boxing between placements goes on the source's: to the dual of the source's layout (S stays, B
    /// becomes P, P becomes B), to that without P, or to its own layout there, whichever is cheapest with the way out of P that
    /// remains; but to none that moves more bytes than the dual of the forward boxing, where one does not.
    fn way_back(&self, dy: &Tensor) -> Result<NdSbp> {
        let ((src, src_sbp), (dst, dst_sbp)) = (self.home, self.from);
        let ty = dy.ty();
        let plan = |from: &Layout, to: &Layout| boxing_plan(&ty.shape, ty.dtype, from, to);
        let home = |n: &NdSbp| Layout::new(src, n.clone());
        let have = dy.sbp()?;
        let here = Layout::new(dst, have.clone());
        let mirrored = dual(src_sbp);
        let limit = plan(&Layout::new(dst, dual(dst_sbp)), &home(&mirrored))?.bytes_sent();
        let whole = |n: &NdSbp| n.map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
        let mut ways = vec![whole(&mirrored)];
        if have.len() == src.axes() {
            ways.push(have.clone());
        }
        let price = |n: &NdSbp| -> Result<(bool, u64)> {
            let p = plan(&here, &home(n))?;
            let rest = if n.has_partial() { plan(&home(n), &home(&whole(n)))?.cost_ps } else { 0 };
            Ok((p.bytes_sent() > limit, p.cost_ps.saturating_add(rest)))
        };
        let mut best = (price(&mirrored)?, mirrored);
        for n in ways {
            let p = price(&n)?;
            if p < best.0 {
                best = (p, n);
            }
        }
        Ok(best.1)
    }
}
