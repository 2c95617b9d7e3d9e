//! Between local and global: each rank's tensor as its shard, and a shard as a local tensor.

use super::super::boxing::check_world;
use super::super::call::Call;
use super::super::comm_trace::collective;
use super::super::copy::contiguous;
use super::check_device;
use super::dtype_of_rank;
use super::stated::check_shard_grad_sbp;
use super::value::{hash_placement, zeros_like};
use crate::comm::{Group, Tag};
use crate::context::{RankCtx, current, current_rank};
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::memory::zeroed;
use crate::ops::{AttrValue, TensorType};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, check_layout, shard_box};
use crate::tensor::{Body, LocalTensor, Tensor, intern_global};
use oflow_kernels::{DType, Dims};
use std::hash::{Hash, Hasher};

/// The op `shards_to_global`: each rank's tensor becomes its shard. A collective: shapes are checked, shards must be the
/// balanced split, B shards are made equal by broadcast from the first rank of each group.
pub(super) fn shards_to_global(call: &Call<'_>) -> Result<Tensor> {
    let ctx = current_rank()?;
    let (t, placement, sbp) = (call.only_input()?, call.placement("placement")?, call.sbp("sbp")?);
    let Body::Local(local) = t.body() else {
        return Err(Error::argument(format!("{t:?} is not a local tensor")));
    };
    check_world(&ctx, placement)?;
    ctx.quiesce()?;
    let tag = {
        let mut key = FixedHasher::default();
        sbp.hash(&mut key);
        hash_placement(placement, &mut key);
        ctx.next_described("to_global", key.finish(), call.site, &|| call.short())
    };
    let infos = tell(&ctx, &tag, local)?;
    let ty = whole(&infos, placement, sbp)?;
    if let Some(stated) = call.stated("grad_sbp")? {
        check_shard_grad_sbp(&ty, placement, sbp, stated)?;
    }
    let global = intern_global(ty, placement, sbp);
    if placement.position(ctx.rank()).is_none() {
        return Ok(Tensor::from_shard(global, None));
    }
    let shard = made_equal(&ctx, &tag, local, &global.ty, placement, sbp)?;
    Ok(Tensor::from_shard(global, Some(shard)))
}

/// Message of a rank about its shard.
struct ShardInfo {
    dims: Vec<usize>,
    /// Fingerprint of the dtype.
    dtype: u64,
    device: u64,
}

impl ShardInfo {
    fn text(&self) -> String {
        let dtype = DType::of_fingerprint(self.dtype).map_or("an unregistered dtype ", |d| d.name());
        format!("{dtype}{:?}", self.dims)
    }
}

/// Dims that fit the first message.
const FEW: usize = 8;

/// Every rank's shape, dtype and device, by rank. Tensors of many dims take a second message, of whoever has the most.
fn tell(ctx: &RankCtx, tag: &Tag, local: &LocalTensor) -> Result<Vec<ShardInfo>> {
    let mut row = vec![local.dims().len() as u64, local.dtype().fingerprint(), local.ty.device.key()];
    row.extend(local.dims().iter().map(|n| *n as u64));
    let gather = |words: usize| -> Result<Vec<Vec<u64>>> {
        let bytes: Vec<u8> = (0..words).flat_map(|i| row.get(i).copied().unwrap_or(0).to_le_bytes()).collect();
        let (rank, world) = (ctx.rank(), ctx.world());
        let mut all = vec![0u8; bytes.len() * world];
        let sent = (bytes.len() * world * (world - 1)) as u64;
        let group = Group { ranks: (0..world).collect(), me: rank };
        collective(ctx, tag, sent, |comm| comm.all_gather(&group, tag, &bytes, &mut all, &vec![bytes.len(); world]))?;
        if ctx.is_dry() {
            // Nobody tells: the other ranks' shards are taken to be as large as this one's.
            all.chunks_exact_mut(bytes.len()).for_each(|row| row.copy_from_slice(&bytes));
        }
        let word = |w: &[u8]| u64::from_le_bytes(w.try_into().unwrap_or_default());
        Ok(all.chunks_exact(bytes.len()).map(|row| row.chunks_exact(8).map(word).collect()).collect())
    };
    let mut rows = gather(3 + FEW)?;
    let most = rows.iter().map(|r| r[0]).max().unwrap_or(0) as usize;
    if most > FEW {
        rows = gather(3 + most)?;
    }
    Ok(rows
        .into_iter()
        .map(|r| ShardInfo {
            dims: r[3..].iter().take(r[0] as usize).map(|n| *n as usize).collect(),
            dtype: r[1],
            device: r[2],
        })
        .collect())
}

/// The type of the tensor that these shards are. Every rank knows the same and decides the same.
fn whole(infos: &[ShardInfo], placement: &Placement, sbp: &NdSbp) -> Result<TensorType> {
    let of = |position: usize| &infos[placement.ranks()[position]];
    let first = of(0);
    for (p, rank) in placement.ranks().iter().enumerate() {
        let t = of(p);
        if t.dtype != first.dtype || t.dims.len() != first.dims.len() {
            return Err(Error::shape(format!(
                "the shards differ: rank {} has {}, rank {rank} has {}",
                placement.ranks()[0],
                first.text(),
                t.text()
            ))
            .help("every rank must give a shard of the same rank and dtype"));
        }
        if t.device != placement.device().key() {
            return Err(Error::placement(format!(
                "the shard of rank {rank} is on another device than the placement, which is on {}",
                placement.device()
            ))
            .help("move it with `to_device`"));
        }
    }
    // A rank outside the placement may have anything.
    let dtype = dtype_of_rank(placement.ranks()[0], first.dtype)?;
    check_layout(&first.dims, dtype, placement, sbp)?;
    // Logical size of a split dim: the sum over the positions that hold its pieces (the others at coordinate 0).
    let mut logical = first.dims.clone();
    for (d, size) in logical.iter_mut().enumerate() {
        let axes: Vec<usize> = (0..sbp.len()).filter(|a| sbp[*a] == Sbp::Split(d)).collect();
        if !axes.is_empty() {
            *size = (0..placement.len())
                .filter(|p| placement.coord(*p).iter().enumerate().all(|(a, c)| axes.contains(&a) || *c == 0))
                .try_fold(0usize, |sum, p| sum.checked_add(of(p).dims[d]))
                .ok_or_else(|| Error::shape(format!("the sizes of dim {d} are too large together")))?;
        }
    }
    for (p, rank) in placement.ranks().iter().enumerate() {
        let want = shard_box(&logical, placement, sbp, p).size;
        if of(p).dims != want.as_slice() {
            return Err(Error::shape(format!(
                "the shards are not the balanced split of {logical:?} as {sbp}: rank {rank} has {:?}, the split gives {:?}",
                of(p).dims,
                want.as_slice()
            ))
            .help("use `distribute` if each rank has the logical value"));
        }
    }
    Ok(TensorType::new(&logical, dtype))
}

/// The shard of a rank in the placement. Along B axes everyone takes the bytes of coordinate 0.
fn made_equal(
    ctx: &RankCtx,
    tag: &Tag,
    shard: &LocalTensor,
    ty: &TensorType,
    placement: &Placement,
    sbp: &NdSbp,
) -> Result<LocalTensor> {
    let b_axes: Vec<usize> = (0..sbp.len()).filter(|a| sbp[*a].is_broadcast() && placement.dims()[*a] > 1).collect();
    // A copy: the caller may change its tensor afterwards.
    let own = contiguous(ctx, shard)?;
    if b_axes.is_empty() {
        return Ok(own);
    }
    ctx.quiesce()?;
    let position = placement.position(ctx.rank()).unwrap_or(0);
    let (members, me) = placement.group_along(position, b_axes.iter().copied());
    let ranks: Vec<usize> = members.into_iter().map(|p| placement.ranks()[p]).collect();
    let vm = &ctx.device(own.ty.device)?.vm;
    let mut buf = zeroed(if ctx.is_dry() { 0 } else { own.ty.ty.bytes() })?;
    if !ctx.is_dry() {
        vm.read(&own.storage, 0, &mut buf)?;
    }
    // Every group's first member sends its shard to the others.
    let first = |p: &usize| b_axes.iter().all(|a| placement.coord(*p)[*a] == 0);
    let elements = |p: usize| shard_box(&ty.shape, placement, sbp, p).size.iter().product::<usize>();
    let shards: usize = (0..placement.len()).filter(first).map(elements).sum();
    let sent = (shards * ty.dtype.size() * (ranks.len() - 1)) as u64;
    collective(ctx, tag, sent, |comm| comm.broadcast(&Group { ranks, me }, tag, 0, &mut buf))?;
    vm.write(&own.storage, 0, &buf)?;
    Ok(own)
}

/// The op `to_local`: this rank's shard as a local tensor. On a rank outside the placement zeros, where a shape is given.
pub(super) fn to_local(call: &Call<'_>) -> Result<Tensor> {
    let t = call.only_input()?;
    let g = t.global().ok_or_else(|| Error::sbp(format!("{t:?} is a local tensor already")))?;
    if let Some(stated) = call.stated("grad_sbp")? {
        check_shard_grad_sbp(&g.ty, &g.placement, &g.sbp, stated)?;
    }
    if let Some(data) = t.data()? {
        return Ok(Tensor::from_local(data.into_shard()));
    }
    if *call.attr("outside")? == AttrValue::Absent {
        return Err(Error::placement(format!("this rank is outside the placement of {t:?}; it has no shard")));
    }
    let (ctx, shape) = (current(), call.sizes("outside")?);
    let zeros = zeros_like(&ctx, &LocalTensor::alloc_like(&ctx, &shape, g.ty.dtype, g.placement.device())?)?;
    Ok(Tensor::from_local(zeros))
}

/// The op `to_local_grad`: gradients of shards are the shards of a gradient. Nothing is compared or sent: the tensor whose
/// shards they belong to is known.
pub(super) fn to_local_grad(call: &Call<'_>) -> Result<Tensor> {
    let ctx = current_rank()?;
    let (t, placement, sbp) = (call.only_input()?, call.placement("placement")?, call.sbp("sbp")?);
    let shape: Dims = call.sizes("shape")?;
    let Body::Local(local) = t.body() else {
        return Err(Error::argument(format!("{t:?} is not a local tensor")));
    };
    check_layout(&shape, local.dtype(), placement, sbp)?;
    check_world(&ctx, placement)?;
    let global = intern_global(TensorType::new(&shape, local.dtype()), placement, sbp);
    let Some(want) = global.shard_dims(ctx.rank()) else { return Ok(Tensor::from_shard(global, None)) };
    check_device("shard", local, placement)?;
    if local.dims() != want.as_slice() {
        return Err(Error::shape(format!(
            "the shard of {shape:?} as {sbp} on {placement} has {want:?} here, the tensor {:?}",
            local.dims()
        )));
    }
    Ok(Tensor::from_shard(global, Some(local.clone())))
}
