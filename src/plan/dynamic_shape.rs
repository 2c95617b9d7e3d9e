//! Ops whose result has a length that depends on values: the steps that count, agree and settle.
//!
//! Each rank computes the result of its shard, a *part* of the result of the whole. Steps: the op that counts, where there is
//! one; `Agree`, by which all ranks know all lengths; the kernel, before it where the kernel decides the length; `Settle`, which
//! makes the layout of the whole from the parts. The types of the buffers have the greatest length that there can be.

use super::build::Builder;
use super::kernel::{Logical, kernel_plan};
use super::request::Request;
use super::step::{BufferId, ExchangeLengthStep, KernelStep, LengthId, Numbers, RebalanceStep, Step};
use super::types::{intern_global, intern_local};
use crate::error::{Error, Result};
use crate::ops::{Attrs, InferCtx, LengthBy, NdSignature, Op, StreamKind, TensorType, find, resolve_symbolic};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp, shard_box};
use oflow_kernels::{DType, DTypeKind, Dims, ShardBox};
use smallvec::SmallVec;

/// Where the parts of a result lie.
pub(super) struct ResultParts<'a> {
    pub placement: &'a Placement,
    pub sig: &'a NdSignature,
    /// Layout that is asked of output 0, where it is not the signature's.
    pub after: Option<&'a NdSbp>,
}

impl Builder<'_> {
    /// The steps of an op whose length is decided by `by`, on local tensors or on the shards of a global call. `outs` are the
    /// outputs of the whole call, with the greatest length.
    pub(super) fn dynamic_shape(
        &mut self,
        r: &Request<'_>,
        (by, device): (&LengthBy, Device),
        (infer, outs): (&InferCtx<'_>, &[TensorType]),
        inputs: &[Option<BufferId>],
        spread: Option<&ResultParts<'_>>,
    ) -> Result<SmallVec<[BufferId; 2]>> {
        check(r, outs, spread)?;
        // The boxes of the inputs here; none outside the placement.
        let boxes: Option<Vec<Option<ShardBox>>> = match spread {
            None => Some(infer.inputs.iter().map(|t| Some(ShardBox::whole(&t.as_ref()?.shape))).collect()),
            Some(s) => s.placement.position(self.cx.rank).map(|p| {
                let each = infer.inputs.iter().zip(&s.sig.inputs);
                each.map(|(t, n)| Some(shard_box(&t.as_ref()?.shape, s.placement, n, p))).collect()
            }),
        };
        let length = LengthId(self.lengths);
        self.lengths += 1;
        let counted = match by {
            LengthBy::Kernel => None,
            LengthBy::Op { name, input } => {
                Some(self.count(r, (name, *input), infer, inputs, boxes.as_deref(), device)?)
            }
        };
        let agree = |count| {
            Step::ExchangeLength(ExchangeLengthStep {
                count,
                makes: length,
                spread: spread.map(|s| (s.placement.clone(), s.sig.outputs[0].clone())),
            })
        };
        if let Some(count) = counted {
            self.steps.push(agree(count));
        }
        let (kernel, parts) = match &boxes {
            None => (None, None),
            Some(boxes) => {
                let physical = sized(infer.inputs, boxes);
                let here = InferCtx { inputs: &physical, ..*infer };
                let parts = r.op.infer(&here)?;
                let whole: Vec<ShardBox> = parts.iter().map(|t| ShardBox::whole(&t.shape)).collect();
                let logical = Logical { infer, op: r.op, outs: &parts };
                (kernel_plan(self.cx.kernels, &logical, (device, StreamKind::Compute), boxes, &whole)?, Some(parts))
            }
        };
        let mut made: SmallVec<[BufferId; 2]> = SmallVec::new();
        for o in 0..outs.len() {
            let local = parts.as_ref().map(|p| intern_local(&p[o].shape, p[o].dtype, device));
            let id = self.buffer(None, local);
            self.buffers[id.index()].length = Some(length);
            made.push(id);
        }
        let mut makes = made.clone();
        let by_kernel = counted.is_none().then(|| self.scalar(boxes.is_some(), &[1], device));
        makes.extend(by_kernel);
        self.steps.push(Step::Kernel(KernelStep {
            op: r.op,
            inputs: inputs.iter().copied().collect(),
            makes,
            kernel,
            numbers: Numbers::OfCall,
            view: false,
            cross_device: None,
            reuse: None,
        }));
        if let Some(count) = by_kernel {
            self.steps.push(agree(count));
        }
        let mut settled = SmallVec::new();
        for (o, from) in made.into_iter().enumerate() {
            let to = spread.map(|s| {
                let asked = s.after.filter(|_| o == 0);
                intern_global(outs[o].clone(), s.placement, asked.unwrap_or(&s.sig.outputs[o]))
            });
            let local = match spread {
                None => self.buffers[from.index()].local.clone(),
                Some(_) => None,
            };
            let makes = self.buffer(to, local);
            let parts = spread.map(|s| s.sig.outputs[o].clone());
            self.buffers[makes.index()].length = Some(length);
            self.steps.push(Step::Rebalance(RebalanceStep { from, makes, length, parts }));
            settled.push(makes);
        }
        Ok(settled)
    }

    /// The step that counts, on the shard here; returns the buffer of the count.
    fn count(
        &mut self,
        r: &Request<'_>,
        (name, input): (&str, usize),
        infer: &InferCtx<'_>,
        inputs: &[Option<BufferId>],
        boxes: Option<&[Option<ShardBox>]>,
        device: Device,
    ) -> Result<BufferId> {
        let op: &'static Op = find(name)?;
        let wrong =
            |why: String| Error::registry(format!("the length of {} is that of {name}, which {why}", r.op.name()));
        let (attrs, numbers): (Attrs, _) = resolve_symbolic(op, &[])?;
        let (Some(source), Some(Some(ty))) = (inputs.get(input).copied().flatten(), infer.inputs.get(input)) else {
            return Err(wrong(format!("is called on input {input}, which is not given")));
        };
        let shard = boxes.and_then(|b| b.get(input)?.clone());
        let physical = [Some(TensorType::new(shard.as_ref().map_or(&ty.shape, |b| &b.size), ty.dtype))];
        let kinds: SmallVec<[DTypeKind; 4]> = numbers.iter().map(|n| n.kind()).collect();
        let here = InferCtx { op, inputs: &physical, attrs: &attrs, runtime_kinds: &kinds };
        let outs = op.infer(&here)?;
        if outs.len() != 1 || outs[0].dtype != DType::I64 || outs[0].len() != 1 {
            return Err(wrong("does not give one i64".into()));
        }
        let kernel = match &shard {
            None => None,
            Some(shard) => {
                let whole = ShardBox::whole(&outs[0].shape);
                let logical = Logical { infer: &here, op, outs: &outs };
                kernel_plan(
                    self.cx.kernels,
                    &logical,
                    (device, StreamKind::Compute),
                    &[Some(ShardBox::whole(&shard.size))],
                    &[whole],
                )?
            }
        };
        let count = self.scalar(shard.is_some(), &outs[0].shape, device);
        self.steps.push(Step::Kernel(KernelStep {
            op,
            inputs: SmallVec::from_elem(Some(source), 1),
            makes: SmallVec::from_elem(count, 1),
            kernel,
            numbers: Numbers::Each(numbers, attrs),
            view: false,
            cross_device: None,
            reuse: None,
        }));
        Ok(count)
    }

    /// A buffer for one i64, of these dims.
    fn scalar(&mut self, here: bool, dims: &[usize], device: Device) -> BufferId {
        self.buffer(None, here.then(|| intern_local(dims, DType::I64, device)))
    }
}

/// The types of the shards.
fn sized(types: &[Option<TensorType>], boxes: &[Option<ShardBox>]) -> Vec<Option<TensorType>> {
    let each = types.iter().zip(boxes);
    each.map(|(t, b)| Some(TensorType::new(&b.as_ref()?.size, t.as_ref()?.dtype))).collect()
}

/// Refuses what cannot have a length that depends on values.
fn check(r: &Request<'_>, outs: &[TensorType], spread: Option<&ResultParts<'_>>) -> Result<()> {
    let name = r.op.name();
    if r.given.is_some() {
        return Err(Error::shape(format!(
            "the length of the result of {name} depends on values, so it cannot be written in place"
        ))
        .help("use the call that returns a new tensor, and `assign` where its shape is known to fit"));
    }
    if outs.is_empty() || outs.iter().any(|t| t.shape.is_empty()) {
        return Err(Error::registry(format!("{name} has a length that depends on values, but an output without dims")));
    }
    let Some(s) = spread else { return Ok(()) };
    let first = &s.sig.outputs[0];
    let legal = |n: &NdSbp| n == first && (0..n.len()).all(|a| matches!(n[a], Sbp::Split(0) | Sbp::Broadcast));
    match s.sig.outputs.iter().find(|n| !legal(n)) {
        None => Ok(()),
        Some(n) => Err(Error::registry(format!(
            "{name} has a length that depends on values, and a signature that gives {n}: its outputs can be S(0) or B, all alike"
        ))),
    }
}

/// The parts of a result as ranks hold them: the length of each, by rank of the world.
///
/// # Errors
/// A length is not possible, or ranks that must have equal parts do not.
pub fn parts_of(
    shape: &[usize],
    placement: &Placement,
    sbp: &NdSbp,
    lengths: &[i64],
) -> Result<(usize, Vec<ShardBox>)> {
    let split: SmallVec<[usize; 4]> = (0..sbp.len()).filter(|a| sbp[*a] == Sbp::Split(0)).collect();
    let length_at = |p: usize| {
        let (rank, length) = (placement.ranks()[p], lengths.get(placement.ranks()[p]).copied());
        let length = length.and_then(|n| usize::try_from(n).ok());
        length.ok_or_else(|| {
            Error::registry(format!("the kernel of rank {rank} gave a length that its result cannot have"))
        })
    };
    // Positions that differ only along axes that do not split have the same part.
    let mut starts: Vec<(Dims, usize, usize)> = Vec::new();
    let mut total = 0usize;
    let mut at = Vec::with_capacity(placement.len());
    for p in 0..placement.len() {
        let (coord, length) = (placement.coord(p), length_at(p)?);
        let key: Dims = split.iter().map(|a| coord[*a]).collect();
        match starts.iter().find(|(k, ..)| *k == key) {
            Some((_, _, has)) if *has != length => {
                let rank = placement.ranks()[p];
                return Err(Error::registry(format!(
                    "rank {rank} made a part of {length}, a rank with the same input one of {has}"
                )));
            }
            Some(_) => {}
            None => starts.push((key.clone(), 0, length)),
        }
        at.push(key);
    }
    // Outer axes first, as a nested split lies.
    starts.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, start, length) in &mut starts {
        *start = total;
        total = total.checked_add(*length).ok_or_else(|| Error::shape("the parts are too long together"))?;
    }
    let mut logical: Dims = shape.into();
    logical[0] = total;
    let part = |key: &Dims| {
        let (start, length) = starts.iter().find(|(k, ..)| k == key).map_or((0, 0), |(_, s, n)| (*s, *n));
        let mut b = ShardBox::whole(&logical);
        (b.offset[0], b.size[0]) = (start, length);
        b
    };
    Ok((total, at.iter().map(part).collect()))
}
