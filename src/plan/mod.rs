//! Plan of a call, decided before it runs: boxings and kernels over numbered buffers.
//!
//! [`plan`] is a pure function of the op, its attributes, the types of its inputs and the modes of the call
//! ([`Request`]). It reads no tensor, no clock and no state, so a plan can be made for any rank of any world. Steps:
//! inference → candidate signatures → the choice → boxings of inputs → kernel, or the steps of a lowering → boxing of the
//! result. Where the shape of a result depends on values, the plan has the steps that find it (`dynamic_shape.rs`). The interpreter binds buffers to memory and runs the steps (`interpreter/run.rs`).
//!
//! A [`Plan`] numbers its buffers, the inputs first, and says which step reads each buffer for the last time. A kernel
//! step has localised attributes and the shard boxes of its tensors. If the program asks for a layout of the result, the
//! plan boxes the result where the signature gives another one. Plans of different ranks differ in shard sizes and
//! kernels only; `tests/builtin_ops/plan.rs` compares them.
//!
//! **Lowerings.** Some signatures cannot be carried out by the kernel on the shards alone: softmax over a split dim needs
//! communication. Such a signature names a *lowering*: a program of ordinary ops and boxings over an `Emit`. When the
//! call is planned, the program runs once and becomes steps of the plan (`lower.rs`). To price the signature, the program
//! runs over descriptions of tensors (`boxing/dry.rs`). The values of runtime attributes are unknown at that time, so the
//! program passes symbols on (`LowerCall::runtime`). The call is one op of the dispatch stream, and its boxings have the
//! tag of the call. A lowering draws no random numbers and writes no input. The gradient rule belongs to the op as a
//! whole.
//!
//! **Halos.** A kernel may read more of an input than the shard of its rank: a convolution that is split along the
//! image reads rows beside its part. The op declares the box that it reads (`OpDef::windows`). The plan gets a step for
//! each such input (`HaloStep`), in which ranks send each other the missing elements by a plan of boxes
//! (`boxing/boxes.rs`). `localize` and the kernel see the windows as input boxes, so a convolution computes the padding
//! that remains for its part.
//!
//! **Lengths that depend on values.** `nonzero`, `masked_select` and `unique` declare who decides the length of dim 0 of
//! their outputs (`OpDef::length`): an op that counts, or the kernel. Inference returns the greatest possible length, and
//! the plan has the steps that find the real one. Each rank makes the part of the result that follows from its shard.
//! `ExchangeLength` sends the length of that part to all ranks of the world, because ranks outside the placement know the type of
//! the result too. `Rebalance` makes the balanced split, or the requested layout, from the parts by one exchange. Nothing is
//! sent where every rank has the whole input. A rank that finds an impossible length sends that, and all ranks return the
//! same error. Such an op has no lowering and no view, cannot be called inside a lowering, and is refused in a dry run.

mod arena;
mod build;
mod dynamic_shape;
mod kernel;
mod lower;
mod request;
mod step;
mod types;

pub use arena::{ARENA_ALIGN, Lifetime, Packing, most_at_once, pack};
pub use build::{boxing_to, hint_of, plan, with_choice};
pub use dynamic_shape::parts_of;
pub use kernel::{KernelPlan, KernelTable};
pub use request::{Asked, Input, PlanCx, Request, Target, TypeRef, Where, local_type};
pub use step::{
    BoxStep, Buffer, BufferId, CrossDevice, ExchangeLengthStep, For, HaloStep, KernelStep, LengthId, Numbers, Plan,
    PlannedBoxing, RebalanceStep, Step,
};
pub use types::{GlobalRef, GlobalType, LocalRef, LocalType, intern_global, intern_local};
