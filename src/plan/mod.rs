//! What a call does, decided before it runs: boxings and kernels over numbered buffers.
//!
//! [`plan`] is a pure function of the op, its attributes, the types of its inputs and the modes of the call
//! ([`Request`]). It reads no tensor, no clock and no state, so a plan can be made for any rank of any world. Steps:
//! inference → candidate signatures → the choice → boxings of inputs → kernel, or the steps of a lowering → boxing of the
//! result. Where the shape of a result depends on values, the plan has the steps that find it (`counted.rs`). The interpreter binds buffers to memory and runs the steps (`interpreter/steps.rs`).

mod build;
mod counted;
mod kernel;
mod lower;
mod request;
mod step;
mod types;

pub use build::{boxing_to, hint_of, plan, with_choice};
pub use counted::parts_of;
pub use kernel::{KernelPlan, KernelTable};
pub use request::{Asked, Input, PlanCx, Request, Target, TypeRef, Where};
pub use step::{
    BoxStep, Buffer, BufferId, CrossDevice, ExchangeLengthStep, For, HaloStep, KernelStep, LengthId, Numbers, Plan,
    PlanSignature, PlannedBoxing, RebalanceStep, Step,
};
pub use types::{GlobalRef, GlobalType, LocalRef, LocalType, intern_global, intern_local};
