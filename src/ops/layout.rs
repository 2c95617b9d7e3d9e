//! Ops that change where a tensor lies and not its value: which of them the interpreter carries out, as data.

/// Work of the interpreter for a layout op. The op's attributes say where to; it has no kernel, because what it needs is a
/// boxing plan, a message between ranks or a copy between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutOp {
    /// Boxing of a global tensor: `to_global`.
    Box,
    /// The gradient of a boxing on its way back: to the stated layout, on one placement as it is, else the cheapest way.
    BoxGrad,
    /// Boxing of many global tensors together.
    BoxMany,
    /// The gradients of many boxings on their way back, together.
    BoxManyGrad,
    /// Each rank's local tensor becomes its shard of a global one; the ranks compare their shapes.
    ShardsToGlobal,
    /// This rank's shard as a local tensor.
    ToLocal,
    /// Local gradients become the shards of a global one, whose type is known: nothing is compared or sent.
    ToLocalGrad,
    /// The logical value, which every rank has, becomes a global tensor.
    Distribute,
    /// A global tensor from boxes that ranks happen to hold.
    FromBoxes,
    /// A local tensor on another device.
    ToDevice,
}

impl LayoutOp {
    /// The function that programs call for it: for messages, comm records and the dispatch stream.
    pub fn function(self) -> &'static str {
        match self {
            LayoutOp::Box | LayoutOp::BoxGrad | LayoutOp::ShardsToGlobal => "to_global",
            LayoutOp::BoxMany | LayoutOp::BoxManyGrad => "box_many",
            LayoutOp::ToLocal | LayoutOp::ToLocalGrad => "to_local",
            LayoutOp::Distribute => "distribute",
            LayoutOp::FromBoxes => "from_boxes",
            LayoutOp::ToDevice => "to_device",
        }
    }
}
