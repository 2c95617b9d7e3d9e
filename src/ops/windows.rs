//! Windows: a kernel on a rank's part of the output reads more of an input than the rank's shard, as a convolution reads the rows beside
//! it. The op says which box of each input it reads; the ranks exchange what they do not have.

use super::def::NdSignature;
use super::infer::{InferCtx, LocalizeCtx, TensorType};
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::sbp::shard_box;
use oflow_kernels::ShardBox;
use std::sync::Arc;

/// The boxes of the inputs that a rank reads, from the boxes of its shards: one for each input, none of an input that was left out.
pub type WindowsFn = Arc<dyn Fn(&LocalizeCtx<'_>) -> Result<Vec<Option<ShardBox>>> + Send + Sync>;

/// The boxes of one rank's part of a call.
pub(crate) struct PartBoxes {
    /// Shards of the inputs at the position.
    pub(crate) shards: Vec<Option<ShardBox>>,
    /// Boxes of the inputs that the kernel reads.
    pub(crate) reads: Vec<Option<ShardBox>>,
    /// Shards of the outputs at the position.
    pub(crate) outputs: Vec<ShardBox>,
}

impl PartBoxes {
    /// Boxes at a position of the placement. Without windows a kernel reads the shards.
    ///
    /// # Errors
    /// The windows are not inside the inputs.
    pub(crate) fn at(
        position: usize,
        placement: &Placement,
        infer: &InferCtx<'_>,
        outs: &[TensorType],
        sig: &NdSignature,
        windows: Option<&WindowsFn>,
    ) -> Result<PartBoxes> {
        let inputs = infer.inputs.iter().zip(&sig.inputs);
        let shards: Vec<Option<ShardBox>> =
            inputs.map(|(t, s)| t.as_ref().map(|t| shard_box(&t.shape, placement, s, position))).collect();
        let each = outs.iter().zip(&sig.outputs);
        let outputs: Vec<ShardBox> = each.map(|(t, s)| shard_box(&t.shape, placement, s, position)).collect();
        let reads = match windows {
            None => shards.clone(),
            Some(f) => f(&LocalizeCtx { logical: infer, inputs: &shards, outputs: &outputs })?,
        };
        let inside = |w: &ShardBox, b: &ShardBox| {
            w.logical == b.logical
                && w.offset.len() == b.logical.len()
                && w.size.len() == b.logical.len()
                && (0..b.logical.len()).all(|d| w.offset[d].checked_add(w.size[d]).is_some_and(|e| e <= b.logical[d]))
        };
        let fits = |(w, b): (&Option<ShardBox>, &Option<ShardBox>)| match (w, b) {
            (Some(w), Some(b)) => inside(w, b),
            (w, b) => w.is_none() == b.is_none(),
        };
        if reads.len() != shards.len() || !reads.iter().zip(&shards).all(fits) {
            return Err(Error::registry(format!(
                "the windows of {} are not boxes of its inputs: {reads:?} of {shards:?}",
                infer.op.sig.name
            )));
        }
        Ok(PartBoxes { shards, reads, outputs })
    }
}
