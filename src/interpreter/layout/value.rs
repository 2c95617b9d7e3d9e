//! Tensors from values: the logical value that every rank has, bytes in memory, another device's tensor.

use super::super::boxing::check_world;
use super::super::call::Call;
use super::super::copy::contiguous;
use super::super::copy::local_bytes;
use super::check_device;
use crate::context::{DataCheck, RankCtx, current, current_rank};
use crate::error::{CallSite, Error, Result};
use crate::intern::FixedHasher;
use crate::memory::{MemoryOwner, MemoryUse, zeroed};
use crate::ops::AttrValue;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp, check_layout, shard_box};
use crate::tensor::{Body, LocalTensor, Tensor, intern_global};
use oflow_kernels::DType;
use std::hash::{Hash, Hasher};

/// The op `distribute`: every rank of the world has the logical value; each keeps its shard. No communication. A hash of a sample of the
/// value stands in the dispatch stream, of the whole value with `OFLOW_CHECK=1`: ranks that give other values are told apart.
pub(super) fn distribute(call: &Call<'_>) -> Result<Tensor> {
    let ctx = current_rank()?;
    let (t, placement, sbp) = (call.only_input()?, call.placement("placement")?, call.sbp("sbp")?);
    let Body::Local(local) = t.body() else {
        return Err(Error::argument(format!("{t:?} is global already"))
            .help("`to_global` changes the layout of a global tensor"));
    };
    check_layout(local.dims(), local.dtype(), placement, sbp)?;
    check_world(&ctx, placement)?;
    check_device("value", local, placement)?;
    let mut key = FixedHasher::default();
    local.ty.ty.hash(&mut key);
    sbp.hash(&mut key);
    hash_placement(placement, &mut key);
    hash_value(&ctx, local, placement, &mut key)?;
    ctx.next_described("distribute", key.finish(), call.site, &|| call.short());
    shard_of(&ctx, local, placement, sbp)
}

/// Pieces of a sample.
const PIECES: usize = 16;
/// Bytes of a piece.
const PIECE: usize = 1 << 10;

/// Adds to the hash what the check of the job covers of a value. Memory of a device is not waited for unless all is asked for, and a
/// rank outside the placement may give any value then.
fn hash_value(ctx: &RankCtx, local: &LocalTensor, placement: &Placement, h: &mut FixedHasher) -> Result<()> {
    match ctx.data_check() {
        _ if ctx.is_dry() => Ok(()),
        DataCheck::Off => Ok(()),
        DataCheck::Sample if local.ty.device != Device::Cpu || placement.len() != ctx.world() => Ok(()),
        DataCheck::Sample => hash_sample(ctx, local, h),
        DataCheck::All => {
            h.write(&local_bytes(ctx, local)?);
            Ok(())
        }
    }
}

/// Adds the first and the last bytes to the hash, and others at equal distances between.
fn hash_sample(ctx: &RankCtx, local: &LocalTensor, h: &mut FixedHasher) -> Result<()> {
    let local = if local.is_contiguous() { local.clone() } else { contiguous(ctx, local)? };
    let (bytes, from) = (local.ty.ty.bytes(), local.offset * local.dtype().size());
    let vm = &ctx.device(local.ty.device)?.vm;
    let pieces = bytes.div_ceil(PIECE).min(PIECES);
    let mut piece = [0; PIECE];
    for i in 0..pieces {
        // Of a value of as many pieces all; of a longer one the last piece ends with it.
        let at = if bytes <= PIECES * PIECE { i * PIECE } else { (bytes - PIECE) * i / (PIECES - 1) };
        let n = PIECE.min(bytes - at);
        vm.read(&local.storage, from + at, &mut piece[..n])?;
        h.write(&piece[..n]);
    }
    Ok(())
}

/// Puts a hash of the tensors that every rank of the world should have alike into the dispatch stream, so that ranks whose replicas
/// differ are told apart at their next collective.
///
/// # Errors
/// A tensor's memory cannot be read.
pub(crate) fn compare_replicas(tensors: &[Tensor], site: CallSite) -> Result<()> {
    let mut key = FixedHasher::default();
    let mut compared = 0;
    let mut found = None;
    for t in tensors {
        let Some(g) = t.global() else { continue };
        let (ctx, alike) = (current_rank()?, g.sbp.iter().all(|s| s.is_broadcast()));
        if ctx.data_check() == DataCheck::Off || !alike || g.placement.len() != ctx.world() {
            continue;
        }
        match (ctx.data_check(), t.data()?) {
            // A dry run counts the op and has no data.
            _ if ctx.is_dry() => {}
            (_, None) => {}
            (DataCheck::All, Some(shard)) => key.write(&local_bytes(&ctx, &shard)?),
            (_, Some(shard)) => hash_sample(&ctx, &shard, &mut key)?,
        }
        compared += 1;
        found = Some(ctx);
    }
    if let Some(ctx) = found.filter(|ctx| ctx.world() > 1) {
        ctx.next_described("parameters", key.finish(), site, &|| format!("parameters({compared} tensors [B])"));
    }
    Ok(())
}

/// A placement by content, for the dispatch stream.
pub(super) fn hash_placement(p: &Placement, h: &mut FixedHasher) {
    h.write_u64(p.device().key());
    h.write_usize(p.axes());
    p.dims().iter().chain(p.ranks()).for_each(|n| h.write_usize(*n));
}

fn shard_of(ctx: &RankCtx, local: &LocalTensor, placement: &Placement, sbp: &NdSbp) -> Result<Tensor> {
    let ty = intern_global(local.ty.ty.clone(), placement, sbp);
    let Some(pos) = placement.position(ctx.rank()) else { return Ok(Tensor::from_shard(ty, None)) };
    let b = shard_box(local.dims(), placement, sbp, pos);
    let offset: isize = b.offset.iter().zip(&local.strides).map(|(o, s)| *o as isize * s).sum();
    // An empty shard lies at the end of a dim: its offset is outside, and addresses nothing.
    let offset = if b.size.contains(&0) { 0 } else { offset };
    let window = local.restride(offset, &b.size, local.strides.clone())?;
    // A copy: the caller may change its tensor afterwards.
    let mut own = contiguous(ctx, &window)?;
    let coord = placement.coord(pos);
    let kept = sbp.iter().enumerate().all(|(a, s)| *s != Sbp::PARTIAL_SUM || coord[a] == 0);
    if !kept {
        // P(sum): one copy and zeros.
        own = zeros_like(ctx, &own)?;
    }
    Ok(Tensor::from_shard(ty, Some(own)))
}

/// Zeros of the same type.
pub(super) fn zeros_like(ctx: &RankCtx, l: &LocalTensor) -> Result<LocalTensor> {
    let out = LocalTensor::alloc(ctx, &l.ty)?;
    if !ctx.is_dry() {
        ctx.device(l.ty.device)?.vm.write(&out.storage, 0, &zeroed(out.storage.bytes())?)?;
    }
    Ok(out)
}

/// The op `to_device`.
pub(super) fn to_device(call: &Call<'_>) -> Result<Tensor> {
    let t = call.only_input()?;
    let AttrValue::Device(device) = call.attr("device")? else {
        return Err(Error::argument("attribute 'device' must be a device"));
    };
    let Body::Local(l) = t.body() else {
        return Err(Error::placement(format!("{t:?} is not a local tensor")).help("use `to_global((&placement, sbp))`"));
    };
    if l.ty.device == *device {
        return Ok(t.detach());
    }
    let ctx = current();
    ctx.device(*device)?;
    if ctx.is_dry() {
        return Ok(Tensor::from_local(LocalTensor::alloc_like(&ctx, t.shape(), t.dtype(), *device)?));
    }
    from_bytes(&ctx, &local_bytes(&ctx, l)?, t.shape(), t.dtype(), *device, (call.op.name(), call.site))
}

/// A local tensor from values in memory. Memory reports name the op and the line.
pub fn from_bytes(
    ctx: &RankCtx,
    bytes: &[u8],
    shape: &[usize],
    dtype: DType,
    device: Device,
    (op, site): (&'static str, CallSite),
) -> Result<Tensor> {
    // A constant of a graph that is captured has data.
    let ctx = ctx.capture().map_or(ctx, |c| c.outer());
    let owner = MemoryOwner { used_for: MemoryUse::Data, op, site };
    let out = owner.run(|| LocalTensor::alloc_like(ctx, shape, dtype, device))?;
    ctx.device(device)?.vm.write(&out.storage, 0, bytes)?;
    Ok(Tensor::from_local(out))
}
