//! Between layouts, and between local and global tensors: the three ways in and out that are never confused.

use super::dispatch::run_boxing;
use super::plan::boxing_to;
use super::policy::{self, Cause};
use super::receipts::collective;
use super::record::record_custom;
use crate::boxing::{Layout, dual, plan as boxing_plan};
use crate::comm::Group;
use crate::context::{RankCtx, current_rank, grad_enabled};
use crate::error::{CallSite, Error, Result};
use crate::ops::{TensorType, find};
use crate::placement::{Placement, shard_range};
use crate::sbp::{NdSbp, Sbp, check_layout, shard_box};
use crate::tensor::{Body, GlobalRef, LocalTensor, Tensor, intern_global};
use std::sync::Arc;

/// Boxing without a record: the logical value stays, the layout changes.
pub(crate) fn to_layout(
    cause: Cause,
    t: &Tensor,
    placement: &Placement,
    sbp: &NdSbp,
    site: CallSite,
) -> Result<Tensor> {
    let ctx = current_rank()?;
    let g = t.global().ok_or_else(|| Error::sbp(format!("{t:?} is not a global tensor")))?;
    let b = boxing_to(&ctx, g, placement, sbp)?;
    policy::check(cause, &b.plan).map_err(|e| e.at(site))?;
    let tag = ctx.next_op(cause.op(), layout_key(g, placement, sbp), site);
    run_boxing(&ctx, t, &b, &tag)
}

/// Hash of a boxing by content: type, and placement and SBP on both sides.
pub(super) fn layout_key(from: &GlobalRef, placement: &Placement, to: &NdSbp) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut h = crate::intern::FixedHasher::default();
    from.ty.shape.iter().for_each(|n| h.write_usize(*n));
    h.write_u32(from.ty.dtype as u32);
    (&from.sbp, to).hash(&mut h);
    for p in [&from.placement, placement] {
        h.write_u32(p.device() as u32);
        p.dims().iter().chain(p.ranks()).for_each(|n| h.write_usize(*n));
    }
    h.finish()
}

/// `global.to_global(...)`: boxing, recorded. Its gradient keeps its own SBP on the source's placement; from another
/// placement it comes back as `way_back` says; where a layout is stated it is boxed to that.
pub fn box_global(
    t: &Tensor,
    placement: &Placement,
    sbp: &NdSbp,
    grad_sbp: Option<&NdSbp>,
    site: CallSite,
) -> Result<Tensor> {
    let call = || format!("to_global({}, {sbp}) on {placement}", t.short());
    let out = (|| {
        let g = t.global().ok_or_else(|| Error::sbp(format!("{t:?} is not a global tensor")))?;
        if let Some(s) = grad_sbp {
            check_grad_sbp(&g.ty, &g.placement, s)?;
        }
        // What boxing returns never shares writable storage with its source: in-place ops on a shared shard copy first.
        to_layout(Cause::Asked("to_global"), t, placement, sbp, site)
    })()
    .map_err(|e| e.in_call(call).at(site))?;
    if grad_enabled()
        && t.requires_grad()
        && let (Some(src), Some(dst)) = (t.global().cloned(), out.global().cloned())
    {
        let stated = grad_sbp.cloned();
        let back = move |grads: &[Option<Tensor>]| {
            let Some(dy) = &grads[0] else { return Ok(vec![None]) };
            Ok(vec![Some(match grad_layout(dy, &src, &dst, stated.as_ref())? {
                Some(sbp) => box_global(dy, &src.placement, &sbp, None, site)?,
                None => dy.clone(),
            })])
        };
        record_custom(find("copy")?, &[t], std::slice::from_ref(&out), site, Arc::new(back));
    }
    Ok(out)
}

/// The SBP on the source's placement that the gradient of a boxing's output is boxed to on the way back; none if it stays as
/// it is.
pub(super) fn grad_layout(
    dy: &Tensor,
    src: &GlobalRef,
    dst: &GlobalRef,
    stated: Option<&NdSbp>,
) -> Result<Option<NdSbp>> {
    Ok(match (stated, dy.placement()? == &src.placement) {
        (Some(s), _) => Some(s.clone()),
        (None, true) => None,
        (None, false) => Some(way_back(dy, src, dst)?),
    })
}

/// Where the gradient of a boxing between placements goes on the source's: to the dual of the source's layout (S stays, B
/// becomes P, P becomes B), to that without P, or to its own layout there, whichever is cheapest with the way out of P that
/// remains; but to none that moves more bytes than the dual of the forward boxing, where one does not.
fn way_back(dy: &Tensor, src: &GlobalRef, dst: &GlobalRef) -> Result<NdSbp> {
    let ty = dy.ty();
    let plan = |from: &Layout, to: &Layout| boxing_plan(&ty.shape, ty.dtype, from, to);
    let home = |n: &NdSbp| Layout::new(&src.placement, n.clone());
    let have = dy.sbp()?;
    let here = Layout::new(&dst.placement, have.clone());
    let mirrored = dual(&src.sbp);
    let limit = plan(&Layout::new(&dst.placement, dual(&dst.sbp)), &home(&mirrored))?.bytes_sent();
    let whole = |n: &NdSbp| n.map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
    let mut ways = vec![whole(&mirrored)];
    if have.len() == src.placement.axes() {
        ways.push(have.clone());
    }
    let price = |n: &NdSbp| -> Result<(bool, u64)> {
        let p = plan(&here, &home(n))?;
        let rest = if n.has_partial() { plan(&home(n), &home(&whole(n)))?.cost_ps } else { 0 };
        Ok((p.bytes_sent() > limit, p.cost_ps.saturating_add(rest)))
    };
    let mut best = (price(&mirrored)?, mirrored);
    for n in ways {
        let p = price(&n)?;
        if p < best.0 {
            best = (p, n);
        }
    }
    Ok(best.1)
}

/// Whether that can be the layout of the gradient of such a tensor.
pub(super) fn check_grad_sbp(ty: &TensorType, placement: &Placement, stated: &NdSbp) -> Result<()> {
    check_layout(&ty.shape, ty.dtype, placement, stated).map_err(|e| {
        Error::sbp(format!("the gradient of {ty} on {placement} cannot be {stated}: {}", e.message())).help(
            e.help_text().unwrap_or("`grad_sbp` is a layout on the placement of the tensor that gets the gradient"),
        )
    })?;
    match stated.iter().find(|s| s.is_partial() && **s != Sbp::PARTIAL_SUM) {
        Some(s) => {
            Err(Error::sbp(format!("the gradient of {ty} cannot be {stated}: gradients add up, they are never {s}"))
                .help("state P(sum), B or S"))
        }
        None => Ok(()),
    }
}

/// The same for a gradient whose shards are those of a tensor that lies as `sbp`: split alike, and B or P elsewhere.
fn check_shard_grad_sbp(ty: &TensorType, placement: &Placement, sbp: &NdSbp, stated: &NdSbp) -> Result<()> {
    check_grad_sbp(ty, placement, stated)?;
    let split = |a: usize| sbp[a].split_dim() == stated[a].split_dim() || placement.dims()[a] == 1;
    match (0..sbp.len()).find(|a| !split(*a)) {
        Some(a) => Err(Error::sbp(format!(
            "the gradient of shards of {ty} {sbp} cannot be {stated}: along mesh axis {a} each rank has a shard of {}, and a \
             gradient of the shard's shape",
            sbp[a]
        ))
        .help(match sbp[a].split_dim() {
            Some(_) => format!("state {} there", sbp[a]),
            None => "state P there if the ranks' gradients add up, B if each rank has the same, whole gradient".into(),
        })),
        None => Ok(()),
    }
}

/// `local.to_global(...)`: each rank's tensor becomes its shard. A collective: shapes are checked, shards must be the
/// balanced split, B shards are made equal by broadcast from the first rank of each group.
pub fn shard_to_global(
    t: &Tensor,
    placement: &Placement,
    sbp: &NdSbp,
    grad_sbp: Option<&NdSbp>,
    site: CallSite,
) -> Result<Tensor> {
    let ctx = current_rank()?;
    let out = shard_to_global_inner(&ctx, t, placement, sbp, site)
        .and_then(|out| {
            if let (Some(stated), Some(g)) = (grad_sbp, out.global()) {
                check_shard_grad_sbp(&g.ty, placement, sbp, stated)?;
            }
            Ok(out)
        })
        .map_err(|e| e.in_call(|| format!("to_global({}, {sbp}) on {placement}", t.short())).at(site))?;
    if grad_enabled() && t.requires_grad() {
        let want = grad_sbp.cloned().unwrap_or_else(|| dual(sbp));
        let home = placement.clone();
        let back = move |grads: &[Option<Tensor>]| {
            let Some(dy) = &grads[0] else { return Ok(vec![None]) };
            let same = dy.sbp()? == &want && dy.placement()? == &home;
            let dy = if same { dy.clone() } else { box_global(dy, &home, &want, None, site)? };
            Ok(vec![dy.data()?.map(Tensor::from_local)])
        };
        record_custom(find("copy")?, &[t], std::slice::from_ref(&out), site, Arc::new(back));
    }
    Ok(out)
}

fn shard_to_global_inner(
    ctx: &RankCtx,
    t: &Tensor,
    placement: &Placement,
    sbp: &NdSbp,
    site: CallSite,
) -> Result<Tensor> {
    let Body::Local(local) = t.body() else {
        return Err(Error::argument(format!("{t:?} is not a local tensor")));
    };
    ctx.quiesce()?;
    let world = ctx.world();
    // Every rank tells its shape; the logical shape follows from the shards along each split axis.
    let tag = {
        use std::hash::{Hash, Hasher};
        let mut key = crate::intern::FixedHasher::default();
        sbp.hash(&mut key);
        placement.dims().iter().chain(placement.ranks()).for_each(|n| key.write_usize(*n));
        ctx.next_op("to_global", key.finish(), site)
    };
    let me = Group { ranks: (0..world).collect(), me: ctx.rank() };
    let mut mine = [-1i64; 10];
    mine[0] = local.dims().len() as i64;
    mine[1] = local.dtype() as i64;
    for (d, n) in local.dims().iter().enumerate().take(8) {
        mine[2 + d] = *n as i64;
    }
    let bytes: Vec<u8> = mine.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut all = vec![0u8; bytes.len() * world];
    let sent = (bytes.len() * world * (world - 1)) as u64;
    let counts = vec![bytes.len(); world];
    collective(ctx, &tag, sent, |comm| comm.all_gather(&me, &tag, &bytes, &mut all, &counts))?;
    let shapes: Vec<Vec<i64>> = all
        .chunks(bytes.len())
        .map(|c| c.chunks(8).map(|w| i64::from_le_bytes(w.try_into().unwrap_or_default())).collect())
        .collect();
    let of = |rank: usize| -> (Vec<usize>, i64) {
        let s = &shapes[rank];
        ((0..s[0] as usize).map(|d| s[2 + d] as usize).collect(), s[1])
    };
    let (first, dtype) = of(placement.ranks()[0]);
    for &r in placement.ranks() {
        let (s, d) = of(r);
        if d != dtype || s.len() != first.len() {
            return Err(Error::shape(format!(
                "the shards differ: rank {} has {:?}, rank {r} has {s:?}",
                placement.ranks()[0],
                first
            ))
            .help("every rank must give a shard of the same rank and dtype"));
        }
    }
    if sbp.len() != placement.axes() || sbp.iter().any(|s| s.split_dim().is_some_and(|d| d >= first.len())) {
        check_layout(&first, local.dtype(), placement, sbp)?;
    }
    // Logical size of a split dim: the sum over the positions that hold its pieces (the others at coordinate 0).
    let mut logical = first.clone();
    for (d, size) in logical.iter_mut().enumerate() {
        let axes: Vec<usize> = (0..sbp.len()).filter(|a| sbp[*a] == Sbp::Split(d)).collect();
        if !axes.is_empty() {
            *size = (0..placement.len())
                .filter(|p| placement.coord(*p).iter().enumerate().all(|(a, c)| axes.contains(&a) || *c == 0))
                .map(|p| of(placement.ranks()[p]).0[d])
                .sum();
        }
    }
    for p in 0..placement.len() {
        let want = shard_box(&logical, placement, sbp, p).size;
        let (have, _) = of(placement.ranks()[p]);
        if have != want.as_slice() {
            return Err(Error::shape(format!(
                "the shards are not the balanced split of {logical:?} as {sbp}: rank {} has {have:?}, the split gives {:?}",
                placement.ranks()[p],
                want.as_slice()
            ))
            .help("use `distribute` if each rank has the logical value"));
        }
    }
    let dtype = local.dtype();
    check_layout(&logical, dtype, placement, sbp)?;
    let ty = intern_global(TensorType::new(&logical, dtype), placement, sbp);
    let Some(pos) = placement.position(ctx.rank()) else { return Ok(Tensor::from_shard(ty, None)) };
    check_device("shard", local, placement)?;
    let shard = local.clone();
    // B axes: everyone takes the bytes of coordinate 0.
    let b_axes: Vec<usize> = (0..sbp.len()).filter(|a| sbp[*a].is_broadcast() && placement.dims()[*a] > 1).collect();
    if b_axes.is_empty() {
        return Ok(Tensor::from_shard(ty, Some(shard)));
    }
    let own = super::dispatch::contiguous(ctx, &shard)?;
    ctx.quiesce()?;
    let coord = placement.coord(pos);
    let ranks: Vec<usize> = (0..placement.len())
        .filter(|p| {
            let c = placement.coord(*p);
            (0..sbp.len()).all(|a| b_axes.contains(&a) || c[a] == coord[a])
        })
        .map(|p| placement.ranks()[p])
        .collect();
    let me = ranks.iter().position(|r| *r == ctx.rank()).unwrap_or(0);
    let len = own.ty.ty.len() * dtype.size();
    let vm = &ctx.device(own.ty.device)?.vm;
    let mut buf = vec![0; len];
    vm.read(&own.storage, 0, &mut buf)?;
    // Every group's first member sends its shard to the others.
    let first = |p: &usize| b_axes.iter().all(|a| placement.coord(*p)[*a] == 0);
    let shards: usize = (0..placement.len()).filter(first).map(|p| shard_len(&logical, placement, sbp, p)).sum();
    let sent = (shards * dtype.size() * (ranks.len() - 1)) as u64;
    collective(ctx, &tag, sent, |comm| comm.broadcast(&Group { ranks, me }, &tag, 0, &mut buf))?;
    vm.write(&own.storage, 0, &buf)?;
    Ok(Tensor::from_shard(ty, Some(own)))
}

fn shard_len(shape: &[usize], placement: &Placement, sbp: &NdSbp, position: usize) -> usize {
    shard_box(shape, placement, sbp, position).size.iter().product()
}

/// `distribute(&value, …)`: every rank of the world has the logical value; each keeps its shard. No communication. The
/// gradient of the value is whole (B) on every rank.
pub fn distribute(t: &Tensor, placement: &Placement, sbp: &NdSbp, site: CallSite) -> Result<Tensor> {
    let ctx = current_rank()?;
    let short = || format!("distribute({}, {sbp}) on {placement}", t.short());
    let out = distribute_inner(&ctx, t, placement, sbp).map_err(|e| e.in_call(short).at(site))?;
    if grad_enabled() && t.requires_grad() {
        let home = placement.clone();
        let back = move |grads: &[Option<Tensor>]| {
            let Some(dy) = &grads[0] else { return Ok(vec![None]) };
            let whole = box_global(dy, &home, &NdSbp::broadcast(home.axes()), None, site)?;
            Ok(vec![whole.data()?.map(Tensor::from_local)])
        };
        record_custom(find("copy")?, &[t], std::slice::from_ref(&out), site, Arc::new(back));
    }
    Ok(out)
}

fn distribute_inner(ctx: &RankCtx, t: &Tensor, placement: &Placement, sbp: &NdSbp) -> Result<Tensor> {
    let Body::Local(local) = t.body() else {
        return Err(Error::argument(format!("{t:?} is global already"))
            .help("`to_global` changes the layout of a global tensor"));
    };
    check_layout(local.dims(), local.dtype(), placement, sbp)?;
    check_device("value", local, placement)?;
    let ty = intern_global(t.ty().clone(), placement, sbp);
    let Some(pos) = placement.position(ctx.rank()) else { return Ok(Tensor::from_shard(ty, None)) };
    let b = shard_box(local.dims(), placement, sbp, pos);
    let offset: isize = b.offset.iter().zip(&local.strides).map(|(o, s)| *o as isize * s).sum();
    let window = local.restride((local.offset as isize + offset) as usize, &b.size, local.strides.clone());
    // A copy: the caller may change its tensor afterwards.
    let mut own = super::dispatch::contiguous(ctx, &window)?;
    let coord = placement.coord(pos);
    let kept = sbp.iter().enumerate().all(|(a, s)| *s != Sbp::PARTIAL_SUM || coord[a] == 0);
    if !kept {
        // P(sum): one copy and zeros.
        own = zeros_like(ctx, &own)?;
    }
    Ok(Tensor::from_shard(ty, Some(own)))
}

/// What becomes part of a global tensor lies where that does.
fn check_device(what: &str, local: &LocalTensor, placement: &Placement) -> Result<()> {
    let (here, there) = (local.ty.device, placement.device());
    if here == there {
        return Ok(());
    }
    Err(Error::placement(format!("the {what} is on {here}, the placement on {there}")).help("move it with `to_device`"))
}

fn zeros_like(ctx: &RankCtx, l: &LocalTensor) -> Result<LocalTensor> {
    let out = LocalTensor::alloc(ctx, &l.ty)?;
    ctx.device(l.ty.device)?.vm.write(&out.storage, 0, &vec![0; out.storage.bytes()])?;
    Ok(out)
}

/// `to_local()`: this rank's shard as a local tensor; its gradient becomes the gradient's shard (B → P unless stated).
pub fn to_local(t: &Tensor, grad_sbp: Option<&NdSbp>, site: CallSite) -> Result<Tensor> {
    let g = t.global().ok_or_else(|| Error::sbp(format!("{t:?} is a local tensor already")).at(site))?.clone();
    if let Some(stated) = grad_sbp {
        check_shard_grad_sbp(&g.ty, &g.placement, &g.sbp, stated)
            .map_err(|e| e.in_call(|| format!("to_local({}) on {}", t.short(), g.placement)).at(site))?;
    }
    let Some(data) = t.data()? else {
        return Err(Error::placement(format!("this rank is outside the placement of {t:?}; it has no shard")).at(site));
    };
    let out = Tensor::from_local(data);
    if grad_enabled() && t.requires_grad() {
        let want = grad_sbp.cloned().unwrap_or_else(|| dual(&g.sbp));
        let home = intern_global(g.ty.clone(), &g.placement, &want);
        let back = move |grads: &[Option<Tensor>]| {
            Ok(vec![match &grads[0] {
                Some(dy) => Some(Tensor::from_shard(home.clone(), dy.data()?)),
                None => None,
            }])
        };
        record_custom(find("copy")?, &[t], std::slice::from_ref(&out), site, Arc::new(back));
    }
    Ok(out)
}

/// The slice of a global batch of `len` rows that belongs to this rank's coordinate on a mesh axis.
pub fn batch_range(len: usize, placement: &Placement, axis: usize, rank: usize) -> Option<std::ops::Range<usize>> {
    let c = placement.coord(placement.position(rank)?);
    Some(shard_range(len, placement.dims()[axis], c[axis]))
}

/// A local tensor from values in memory.
pub fn from_bytes(
    ctx: &RankCtx,
    bytes: &[u8],
    shape: &[usize],
    dtype: oflow_kernels::DType,
    device: crate::placement::Device,
) -> Result<Tensor> {
    let out = LocalTensor::alloc_like(ctx, shape, dtype, device)?;
    ctx.device(device)?.vm.write(&out.storage, 0, bytes)?;
    Ok(Tensor::from_local(out))
}
