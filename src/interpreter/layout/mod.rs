//! Execution of layout ops: boxing, `distribute`, conversion between local and global tensors, copies between devices.
//!
//! Declarations and gradients are in `ops/families/layout.rs`. Every call comes through dispatch and ends in [`run`], which
//! records it like any other call.
//!
//! Layout ops are declared ops: `to_global` (boxing), `shards_to_global`, `to_local`, `distribute`, `box_many`,
//! `from_boxes`, `to_device`, and gradients of these that need an op of their own. Placements and nd-SBPs are plan
//! attributes. `OpDef::layout` says which function here runs in place of a kernel. Gradient rules of layout ops use
//! layout ops, so derivatives of every order exist. A boxing plan that a gradient needs is made when the gradient's op
//! runs (`back.rs`).
//!
//! The interpreter itself boxes between calls: the gradient of a leaf, a value inside a rule. That is the op `to_global`
//! on behalf of a `Cause`, recorded like a boxing of the program. A sample of the data given to `distribute` and
//! `from_vec` is hashed into the dispatch stream (`context/data_check.rs`), so ranks with different data are found.

mod back;
mod boxes;
mod many;
mod shards;
mod stated;
mod to_global;
mod value;

pub(super) use back::gradient_stays;
pub(super) use boxes::{collect, collect_into};
pub(super) use many::{BoxTo, issue_boxings, to_layouts, together_key, together_text};
pub(crate) use to_global::layout_key;
pub(super) use to_global::{box_for, to_global};
pub(crate) use value::compare_replicas;
pub use value::from_bytes;

use super::boxing::BoxingReason;
use super::call::{Call, Outputs};
use super::issue::own_memory;
use super::observers::{self, Issued};
use super::record::record;
use crate::context::grad_enabled;
use crate::error::{CallSite, Error, Result};
use crate::op;
use crate::ops::{AttrValue, LayoutOp, Withheld};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::tensor::{LocalTensor, Tensor};
use oflow_kernels::DType;
use smallvec::smallvec;

/// Carries a layout op out, on behalf of `cause`, and records it if the call says so.
pub(super) fn run(call: &Call<'_>, what: LayoutOp, cause: BoxingReason) -> Result<Outputs> {
    if call.given.is_some() || call.target.is_some() {
        return Err(Error::argument("a change of layout returns a new tensor where its attributes say")
            .help("copy its result with `copy_`"));
    }
    call.inputs.iter().flatten().try_for_each(|t| t.check_origin())?;
    let one = |t: Tensor| -> Outputs { smallvec![t] };
    own_memory(call);
    let outs = match what {
        LayoutOp::Box => one(to_global(call, cause)?),
        LayoutOp::BoxGrad => one(back::to_global_grad(call, cause)?),
        LayoutOp::BoxMany => many::box_many(call, cause)?,
        LayoutOp::BoxManyGrad => back::box_many_grad(call, cause)?,
        LayoutOp::ShardsToGlobal => one(shards::shards_to_global(call)?),
        LayoutOp::ToLocal => one(shards::to_local(call)?),
        LayoutOp::ToLocalGrad => one(shards::to_local_grad(call)?),
        LayoutOp::Distribute => one(value::distribute(call)?),
        LayoutOp::FromBoxes => one(boxes::from_boxes(call)?),
        LayoutOp::ToDevice => one(value::to_device(call)?),
    };
    observers::issued(call, &outs, &Issued { plan: None, boxed: &[], boxed_for: cause.boxed_for() })?;
    if call.recording {
        record(call, call.inputs, &outs, Withheld::default())?;
    }
    Ok(outs)
}

/// Boxing on behalf of `cause`: the logical value stays, the layout changes; recorded like the op `to_global`, which it is.
pub(crate) fn to_layout(
    cause: BoxingReason,
    t: &Tensor,
    placement: &Placement,
    sbp: &NdSbp,
    site: CallSite,
) -> Result<Tensor> {
    let inputs = [Some(t)];
    let mut call = Call::new(op!("to_global")?, &inputs).attrs([AttrValue::from(placement), sbp.into()]).at(site);
    call.recording = grad_enabled() && t.requires_grad();
    let mut outs = run(&call, LayoutOp::Box, cause).map_err(|e| e.at(site))?;
    Ok(outs.swap_remove(0))
}

/// The dtype that a rank told by its fingerprint.
///
/// # Errors
/// When this rank has not registered it.
fn dtype_of_rank(rank: usize, fingerprint: u64) -> Result<DType> {
    DType::of_fingerprint(fingerprint).ok_or_else(|| {
        Error::dtype(format!("rank {rank} gives a tensor of a dtype that is not registered here"))
            .help("register the job's dtypes on every rank, with the same names and parameters")
    })
}

/// Refuses a local tensor on another device than the placement that it is to become part of.
fn check_device(what: &str, local: &LocalTensor, placement: &Placement) -> Result<()> {
    let (here, there) = (local.ty.device, placement.device());
    if here == there {
        return Ok(());
    }
    Err(Error::placement(format!("the {what} is on {here}, the placement on {there}")).help("move it with `to_device`"))
}
