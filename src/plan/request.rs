//! Inputs of a plan: the call, its layouts and its target.

use super::kernel::KernelTable;
use super::types::{GlobalRef, LocalRef, intern_local};
use crate::boxing::Planner;
use crate::error::CallSite;
use crate::ops::{Attrs, NdSignature, Op, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use oflow_kernels::DTypeKind;

/// For whom a plan is made: a rank, the cost model of its job, the kernels there are.
#[derive(Clone, Copy)]
pub struct PlanCx<'a> {
    /// The rank whose part is planned.
    pub rank: usize,
    /// Plans boxings under the job's cost model.
    pub planner: &'a Planner,
    /// Table that chooses kernels.
    pub kernels: &'a dyn KernelTable,
}

/// Where a source op puts its result.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A local tensor.
    Local(Device),
    /// A global tensor.
    Global(Placement, NdSbp),
}

/// Where a call runs.
#[derive(Clone, Copy, Debug)]
pub enum Where<'a> {
    /// On local tensors of a device.
    Local(Device),
    /// On global tensors of a placement.
    Global(&'a Placement),
}

/// The type of a tensor.
#[derive(Clone)]
pub enum TypeRef {
    /// Of a local tensor.
    Local(LocalRef),
    /// Of a global tensor.
    Global(GlobalRef),
}

/// Returns the type of what a rank holds of a tensor; `None` outside of its placement.
pub fn local_type(rank: usize, ty: &TypeRef) -> Option<LocalRef> {
    match ty {
        TypeRef::Local(l) => Some(l.clone()),
        TypeRef::Global(g) => Some(intern_local(&g.shard_dims(rank)?, g.ty.dtype, g.placement.device())),
    }
}

impl TypeRef {
    /// Logical shape and dtype.
    pub fn ty(&self) -> &TensorType {
        match self {
            TypeRef::Local(l) => &l.ty,
            TypeRef::Global(g) => &g.ty,
        }
    }
    /// Whether both are the same type.
    pub fn same(&self, other: &TypeRef) -> bool {
        match (self, other) {
            (TypeRef::Local(a), TypeRef::Local(b)) => a.id() == b.id(),
            (TypeRef::Global(a), TypeRef::Global(b)) => a.id() == b.id(),
            _ => false,
        }
    }
    /// The type of a global tensor.
    pub fn global(&self) -> Option<&GlobalRef> {
        match self {
            TypeRef::Local(_) => None,
            TypeRef::Global(g) => Some(g),
        }
    }
    /// Shape, dtype and nd-SBP: `f32[2048, 256] [S(0)]`.
    pub fn short(&self) -> String {
        match self {
            TypeRef::Local(l) => l.ty.to_string(),
            TypeRef::Global(g) => format!("{} {}", g.ty, g.sbp),
        }
    }
}

/// One input of a call.
#[derive(Clone)]
pub struct Input {
    /// Logical type of the input.
    pub ty: TypeRef,
    /// Whether it wants a gradient of this call.
    pub needs_grad: bool,
    /// Whether it is also the tensor that the call writes its output into.
    pub given: bool,
}

/// A layout that the program asks of output 0.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The nd-SBP.
    pub sbp: &'a NdSbp,
    /// The function that asked: `with_sbp` or `pin_sbp`.
    pub by: &'static str,
    /// Where it was called.
    pub site: CallSite,
}

/// A call without its data: all that its plan depends on.
pub struct Request<'a> {
    /// The op that is called.
    pub op: &'static Op,
    /// Plan attributes in declared order.
    pub attrs: &'a Attrs,
    /// Kinds of the runtime attributes. Their values do not enter (I7).
    pub runtime_kinds: &'a [DTypeKind],
    /// Inputs in order (absent optional ones `None`).
    pub inputs: &'a [Option<Input>],
    /// Where it runs.
    pub place: Where<'a>,
    /// nd-SBP of the global tensor that a source op makes.
    pub target: Option<&'a NdSbp>,
    /// Type of the tensor that output 0 is written into.
    pub given: Option<TypeRef>,
    /// Whether inputs stay as they are where a signature takes them so ([`keep_layouts`](crate::keep_layouts)).
    pub keep: bool,
    /// The layout asked of output 0.
    pub asked: Option<Asked<'a>>,
    /// The signature that an earlier plan of the call has chosen, for inputs that lie as it says: nothing is chosen then.
    pub signature: Option<&'a NdSignature>,
}

impl Request<'_> {
    /// Logical types of the inputs.
    pub(super) fn types(&self) -> Vec<Option<TensorType>> {
        self.inputs.iter().map(|i| i.as_ref().map(|i| i.ty.ty().clone())).collect()
    }
}
