//! Stated layouts of gradients: which can be.

use crate::error::{Error, Result};
use crate::ops::TensorType;
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, check_layout};

/// Whether that can be the layout of the gradient of such a tensor.
pub(super) fn check_grad_sbp(ty: &TensorType, placement: &Placement, stated: &NdSbp) -> Result<()> {
    check_layout(&ty.shape, ty.dtype, placement, stated).map_err(|e| {
        Error::sbp(format!("the gradient of {ty} on {placement} cannot be {stated}: {}", e.message())).help(
            e.help_text().unwrap_or("`grad_sbp` is a layout on the placement of the tensor that gets the gradient"),
        )
    })?;
    match stated.iter().find(|s| s.is_partial() && **s != Sbp::PARTIAL_SUM) {
        Some(s) => {
            Err(Error::sbp(format!("the gradient of {ty} cannot be {stated}: gradients add up, they are never {s}"))
                .help("state P(sum), B or S"))
        }
        None => Ok(()),
    }
}

/// The same for a gradient whose shards are those of a tensor that lies as `sbp`: split alike, and B or P elsewhere.
pub(super) fn check_shard_grad_sbp(ty: &TensorType, placement: &Placement, sbp: &NdSbp, stated: &NdSbp) -> Result<()> {
    check_grad_sbp(ty, placement, stated)?;
    let split = |a: usize| sbp[a].split_dim() == stated[a].split_dim() || placement.dims()[a] == 1;
    match (0..sbp.len()).find(|a| !split(*a)) {
        Some(a) => Err(Error::sbp(format!(
            "the gradient of shards of {ty} {sbp} cannot be {stated}: along mesh axis {a} each rank has a shard of {}, and a \
             gradient of the shard's shape",
            sbp[a]
        ))
        .help(match sbp[a].split_dim() {
            Some(_) => format!("state {} there", sbp[a]),
            None => "state P there if the ranks' gradients add up, B if each rank has the same, whole gradient".into(),
        })),
        None => Ok(()),
    }
}
