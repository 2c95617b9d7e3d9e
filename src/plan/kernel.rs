//! The kernel of a step: chosen for physical types, with all that is prepared once.

use crate::error::Result;
use crate::ops::{Attrs, InferCtx, KernelDef, KernelFn, KernelState, Op, StreamKind, TensorType};
use crate::placement::Device;
use oflow_kernels::ShardBox;
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::sync::{Arc, OnceLock};

/// Chooses kernels. Which there are is known by the backends, above this room.
pub trait KernelTable {
    /// The kernel of an op for physical inputs, attributes and outputs on a device.
    ///
    /// # Errors
    /// There is none.
    fn select(
        &self,
        op: &'static Op,
        device: Device,
        physical: &InferCtx<'_>,
        outs: &[TensorType],
    ) -> Result<KernelDef>;
}

/// All that is decided about a kernel once per plan.
pub struct KernelPlan {
    /// The op that the kernel computes.
    pub op: &'static Op,
    /// The kernel's name.
    pub name: SmolStr,
    /// Function that computes the outputs.
    pub run: KernelFn,
    /// State that was prepared with the plan.
    pub state: Option<KernelState>,
    /// Whether each node of a graph has a plan of its own, for the sake of its state.
    pub per_node: bool,
    /// Physical plan attributes.
    pub attrs: Attrs,
    /// Where the input shards lie.
    pub input_boxes: SmallVec<[Option<ShardBox>; 4]>,
    /// Where the output shards lie.
    pub output_boxes: SmallVec<[ShardBox; 2]>,
    /// Scratch memory, in bytes.
    pub workspace: usize,
    /// The stream that it runs on.
    pub stream: StreamKind,
    /// State that the kernel prepares at its first run.
    pub cache: OnceLock<KernelState>,
    /// `(input, output)`: the output may take the memory of the input.
    pub inplace: SmallVec<[(usize, usize); 2]>,
}

/// The logical side of a kernel's call.
pub(super) struct Logical<'a> {
    /// Op, logical inputs and attributes.
    pub infer: &'a InferCtx<'a>,
    /// The same op, which lives as long as the process.
    pub op: &'static Op,
    /// Logical types of the outputs.
    pub outs: &'a [TensorType],
}

/// Types and attributes of a call on one rank's shards.
struct Physical {
    attrs: Attrs,
    inputs: Vec<Option<TensorType>>,
    outs: Vec<TensorType>,
}

impl Logical<'_> {
    fn physical(&self, ins: &[Option<ShardBox>], outs: &[ShardBox]) -> Result<Physical> {
        let sized = |t: &TensorType, b: &ShardBox| TensorType::new(&b.size, t.dtype);
        let inputs = self.infer.inputs.iter().zip(ins).map(|(t, b)| Some(sized(t.as_ref()?, b.as_ref()?)));
        Ok(Physical {
            attrs: self.op.localized(self.infer, ins, outs)?,
            inputs: inputs.collect(),
            outs: self.outs.iter().zip(outs).map(|(t, b)| sized(t, b)).collect(),
        })
    }
}

/// Checks the shapes that an op says for its output shards ([`OpDef::physical_shapes`](crate::ops::OpDef::physical_shapes)), for the
/// boxes of one rank.
pub(super) fn check_shards(
    call: &Logical<'_>,
    ins: &[Option<ShardBox>],
    outs: &[ShardBox],
    rank: Option<usize>,
) -> Result<()> {
    let op = call.op;
    let Physical { attrs, inputs, outs: phys_out } = call.physical(ins, outs)?;
    let infer = InferCtx { op, inputs: &inputs, attrs: &attrs, runtime_kinds: call.infer.runtime_kinds };
    op.check_physical(&infer, &phys_out, rank)
}

/// Physical inference and the kernel; none where there is nothing to compute.
pub(super) fn kernel_plan(
    table: &dyn KernelTable,
    call: &Logical<'_>,
    (device, stream): (Device, StreamKind),
    ins: &[Option<ShardBox>],
    outs: &[ShardBox],
) -> Result<Option<Arc<KernelPlan>>> {
    let op = call.op;
    if !outs.is_empty() && outs.iter().all(|b| b.size.contains(&0)) && !op.traits.run_empty {
        return Ok(None);
    }
    let Physical { attrs, inputs, outs: phys_out } = call.physical(ins, outs)?;
    let infer = InferCtx { op, inputs: &inputs, attrs: &attrs, runtime_kinds: call.infer.runtime_kinds };
    let k = table.select(op, device, &infer, &phys_out)?;
    let state = k.state.as_ref().map(|f| f(&infer, &phys_out)).transpose()?;
    let workspace = k.workspace.as_ref().map_or(Ok(0), |f| f(&infer, &phys_out))?;
    Ok(Some(Arc::new(KernelPlan {
        op,
        name: k.name,
        run: k.run,
        state,
        per_node: k.state_per_node,
        attrs,
        input_boxes: ins.iter().cloned().collect(),
        output_boxes: outs.iter().cloned().collect(),
        workspace,
        stream,
        cache: OnceLock::new(),
        inplace: k.inplace.into_iter().collect(),
    })))
}
