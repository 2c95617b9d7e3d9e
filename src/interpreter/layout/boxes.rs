//! Global tensors from boxes that ranks happen to hold. A collective: ranks first tell each other their boxes, so that all
//! plan alike and what is wrong with one rank's boxes is an error on all.

use super::super::boxing::{Storages, check_world};
use super::super::call::Call;
use super::super::comm_trace::note_exchange;
use super::dtype_of_rank;
use crate::boxing::{BoxesPlan, HeldBox, Layout, collect_boxes};
use crate::comm::{Communicator, Group, Tag};
use crate::context::{RankCtx, current_rank};
use crate::error::{Error, Result};
use crate::memory::{MemoryOwner, MemoryUse};
use crate::ops::{AttrValue, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::check_layout;
use crate::tensor::{Body, LocalTensor, Tensor, intern_global};
use crate::vm::{CollectWork, Instruction, StreamKind, Work};
use oflow_kernels::{DType, Dims, ShardBox};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The op `from_boxes`.
pub(super) fn from_boxes(call: &Call<'_>) -> Result<Tensor> {
    let ctx = &*current_rank()?;
    ctx.not_dry("make a tensor of boxes, which only the ranks that hold them know")?;
    let (placement, sbp, shape) = (call.placement("placement")?, call.sbp("sbp")?, call.sizes("shape")?);
    let offsets = call.list("offsets")?;
    if offsets.len() != call.inputs.len() {
        return Err(Error::argument(format!("{} boxes, {} offsets", call.inputs.len(), offsets.len())));
    }
    check_world(ctx, placement)?;
    let mut boxes: Vec<(Dims, &Tensor)> = Vec::with_capacity(offsets.len());
    for (at, t) in offsets.iter().zip(call.inputs) {
        let (AttrValue::Ints(at), Some(t)) = (at, t) else {
            return Err(Error::argument("a box or its offset is missing"));
        };
        // What is out of range is refused on all ranks, after they have told each other.
        boxes.push((at.iter().map(|n| *n as usize).collect(), t));
    }
    let shape: &[usize] = &shape;
    let mut key = crate::intern::FixedHasher::default();
    shape.hash(&mut key);
    key.write(format!("{sbp} {placement} {:?}", placement.ranks()).as_bytes());
    let tag = ctx.next_described("from_boxes", key.finish(), call.site, &|| call.short());
    ctx.quiesce()?;
    let comm = ctx.comm()?.as_ref();
    let infos =
        tell(comm, &tag, &boxes.iter().map(|(o, t)| BoxInfo::of(o, t, shape, placement)).collect::<Vec<_>>(), shape)?;
    // From here on every rank knows the same and decides the same.
    let mut held = Vec::with_capacity(infos.len());
    let mut dtype: Option<(usize, DType)> = None;
    for (rank, t) in &infos {
        let at = match &t.what {
            Ok(at) => at.clone(),
            Err(code) => return Err(refused(*rank, *code, shape)),
        };
        match dtype {
            Some((first, d)) if d != t.dtype => {
                return Err(Error::dtype(format!("rank {first} gives boxes of {d}, rank {rank} of {}", t.dtype))
                    .help("all boxes of one tensor have one dtype; `cast` before"));
            }
            _ => dtype = Some((*rank, t.dtype)),
        }
        held.push(HeldBox { rank: *rank, at });
    }
    let Some((_, dtype)) = dtype else {
        return Err(Error::dtype("no rank gives a box, so nobody knows the dtype")
            .help("`zeros` makes a tensor of a stated dtype"));
    };
    check_layout(shape, dtype, placement, sbp)?;
    let ty = intern_global(TensorType::new(shape, dtype), placement, sbp);
    let own: Vec<&LocalTensor> = boxes.iter().filter_map(|(_, t)| local(t)).collect();
    let plan = collect_boxes(shape, &held, &Layout::new(placement, sbp.clone()), ctx.planner().model())?;
    Ok(Tensor::from_shard(ty.clone(), collect(ctx, &tag, Arc::new(plan), &own, ty.ty.dtype, placement.device())?))
}

/// Issues the exchange in which ranks get the boxes that they are to have; `own` are this rank's, in order. Returns this rank's box.
pub(in super::super) fn collect(
    ctx: &RankCtx,
    tag: &Tag,
    plan: Arc<BoxesPlan>,
    own: &[&LocalTensor],
    dtype: DType,
    device: Device,
) -> Result<Option<LocalTensor>> {
    let dst = match plan.wants(ctx.rank()) {
        Some(want) => {
            let owner = MemoryOwner { used_for: MemoryUse::Boxing, op: tag.op, site: tag.site() };
            Some(owner.run(|| LocalTensor::alloc_like(ctx, &want.at.size, dtype, device))?)
        }
        None => None,
    };
    let storages = (own.iter().map(|l| l.storage.clone()).collect(), dst.iter().map(|d| d.storage.clone()).collect());
    collect_into(ctx, tag, (plan, dtype, device), (own, dst.as_ref()), storages)?;
    Ok(dst)
}

/// Issues the same into this rank's box of the result. The storages are those that are read and written.
pub(in super::super) fn collect_into(
    ctx: &RankCtx,
    tag: &Tag,
    (plan, dtype, device): (Arc<BoxesPlan>, DType, Device),
    (own, dst): (&[&LocalTensor], Option<&LocalTensor>),
    (reads, writes): Storages,
) -> Result<()> {
    let stopwatch = note_exchange(ctx, tag, plan.elements_sent() * dtype.size() as u64);
    let (own, dst) = (own.iter().map(|l| l.view()).collect(), dst.map(|d| d.view()));
    let work = Work::Collect(CollectWork { plan, tag: *tag, dtype, own, dst, stopwatch });
    ctx.submit_boxing(device, device, Instruction { work, stream: StreamKind::Comm, reads, writes })
}

fn local(t: &Tensor) -> Option<&LocalTensor> {
    if let Body::Local(l) = t.body() { Some(l) } else { None }
}

/// Why a box is refused, as it is told to the others.
#[derive(Clone, Copy)]
enum Refusal {
    Rank,
    Global,
    Gradient,
    Device,
}

impl Refusal {
    const ALL: [Refusal; 4] = [Refusal::Rank, Refusal::Global, Refusal::Gradient, Refusal::Device];
}

fn refused(rank: usize, why: Refusal, shape: &[usize]) -> Error {
    match why {
        Refusal::Rank => Error::shape(format!(
            "rank {rank} gives a box whose offset or tensor has not the {} dims of {shape:?}",
            shape.len()
        )),
        Refusal::Global => Error::argument(format!("rank {rank} gives a global tensor as a box"))
            .help("give `to_local()` of it, or change its layout with `to_global`"),
        Refusal::Gradient => Error::autograd(format!("rank {rank} gives a box that requires a gradient"))
            .help("`from_boxes` is not recorded, because overlapping boxes have no one gradient: `detach()` it"),
        Refusal::Device => Error::placement(format!("rank {rank} gives a box on another device than the placement's"))
            .help("move it with `to_device`"),
    }
}

/// Message of a rank about one of its boxes.
struct BoxInfo {
    dtype: DType,
    what: std::result::Result<ShardBox, Refusal>,
}

impl BoxInfo {
    fn of(offset: &[usize], t: &Tensor, shape: &[usize], placement: &Placement) -> BoxInfo {
        let what = match local(t) {
            None => Err(Refusal::Global),
            Some(_) if offset.len() != shape.len() || t.shape().len() != shape.len() => Err(Refusal::Rank),
            Some(_) if t.requires_grad() => Err(Refusal::Gradient),
            Some(l) if l.ty.device != placement.device() => Err(Refusal::Device),
            Some(_) => Ok(ShardBox { logical: shape.into(), offset: offset.into(), size: t.shape().into() }),
        };
        BoxInfo { dtype: t.dtype(), what }
    }

    /// Dtype, 0 or why it is refused, offset and sizes.
    fn encode(&self, dims: usize, out: &mut Vec<u8>) {
        let mut put = |x: u64| out.extend(x.to_le_bytes());
        put(self.dtype.fingerprint());
        match &self.what {
            Ok(at) => {
                put(0);
                at.offset.iter().chain(&at.size).for_each(|x| put(*x as u64));
            }
            Err(why) => {
                put(1 + *why as u64);
                (0..2 * dims).for_each(|_| put(0));
            }
        }
    }

    fn decode(rank: usize, row: &[u8], shape: &[usize]) -> Result<BoxInfo> {
        let mut words = row.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap_or_default()));
        let dtype = dtype_of_rank(rank, words.next().ok_or_else(broken)?)?;
        let mut words = words.map(|w| w as usize);
        let what = match words.next().ok_or_else(broken)? {
            0 => {
                let offset: Dims = words.by_ref().take(shape.len()).collect();
                Ok(ShardBox { logical: shape.into(), offset, size: words.collect() })
            }
            n => Err(*Refusal::ALL.get(n - 1).ok_or_else(broken)?),
        };
        Ok(BoxInfo { dtype, what })
    }
}

fn broken() -> Error {
    Error::comm("a rank's boxes arrived broken")
}

/// Everyone's boxes in order of ranks.
fn tell(comm: &dyn Communicator, tag: &Tag, mine: &[BoxInfo], shape: &[usize]) -> Result<Vec<(usize, BoxInfo)>> {
    let world = Group { ranks: (0..comm.world()).collect(), me: comm.rank() };
    let row = 8 * (2 + 2 * shape.len());
    let mut counts = vec![0u8; 8 * comm.world()];
    comm.all_gather(&world, tag, &(mine.len() as u64).to_le_bytes(), &mut counts, &vec![8; comm.world()])?;
    let counts: Vec<usize> = counts
        .chunks_exact(8)
        .map(|w| (u64::from_le_bytes(w.try_into().unwrap_or_default()) as usize).checked_mul(row))
        .collect::<Option<_>>()
        .ok_or_else(broken)?;
    let mut send = Vec::with_capacity(mine.len() * row);
    mine.iter().for_each(|t| t.encode(shape.len(), &mut send));
    let mut all = vec![0u8; counts.iter().sum()];
    comm.all_gather(&world, tag, &send, &mut all, &counts)?;
    let owners = counts.iter().enumerate().flat_map(|(rank, bytes)| std::iter::repeat_n(rank, bytes / row));
    owners.zip(all.chunks_exact(row)).map(|(rank, r)| Ok((rank, BoxInfo::decode(rank, r, shape)?))).collect()
}
