//! Copies of local tensors: to contiguous memory, to other devices, to bytes.

use crate::backend;
use crate::context::RankCtx;
use crate::error::{CallSite, Result};
use crate::memory::zeroed;
use crate::placement::Device;
use crate::tensor::LocalTensor;
use crate::vm::Instruction;
use smallvec::SmallVec;

/// A contiguous copy in memory of its own, on any device; it passes through host memory.
pub(super) fn copied_to(ctx: &RankCtx, l: &LocalTensor, device: Device) -> Result<LocalTensor> {
    let out = LocalTensor::alloc_like(ctx, l.dims(), l.dtype(), device)?;
    if !ctx.is_dry() {
        ctx.device(device)?.vm.write(&out.storage, 0, &local_bytes(ctx, l)?)?;
    }
    Ok(out)
}

/// A contiguous copy on the same device; counted.
pub(super) fn contiguous(ctx: &RankCtx, l: &LocalTensor) -> Result<LocalTensor> {
    let out = LocalTensor::alloc(ctx, &l.ty)?;
    copy_into(ctx, l, &out)?;
    Ok(out)
}

/// Copies the elements of one local tensor into another of its type; counted.
pub(super) fn copy_into(ctx: &RankCtx, l: &LocalTensor, out: &LocalTensor) -> Result<()> {
    let vm = &ctx.device(l.ty.device)?.vm;
    vm.count_copy();
    let mut i = Instruction::of_kernel(backend::copy_plan(l.ty.device)?, SmallVec::new(), CallSite::here());
    i.input(l.view(), &l.storage, false);
    i.output(out.view(), &out.storage);
    vm.submit(i)
}

/// The bytes of a local tensor, row-major.
pub fn local_bytes(ctx: &RankCtx, l: &LocalTensor) -> Result<Vec<u8>> {
    let l = if l.is_contiguous() { l.clone() } else { contiguous(ctx, l)? };
    let mut bytes = zeroed(l.ty.ty.bytes())?;
    ctx.device(l.ty.device)?.vm.read(&l.storage, l.offset * l.dtype().size(), &mut bytes)?;
    Ok(bytes)
}
