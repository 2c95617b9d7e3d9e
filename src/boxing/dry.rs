//! Pricing a lowering: its program is run over descriptions, and the boxings that its inner calls would need are added up.

use super::choice::{ChoiceInput, choose, forward_price};
use super::cost::{Algorithm, Model};
use super::exchange::{meet, volume};
use super::{Layout, cost};
use crate::error::Result;
use crate::ops::{
    AttrValue, Emit, InferCtx, LowerCall, LoweredBy, NdSignature, PartBoxes, TensorType, Value, WindowsFn,
    op_in_lowering, resolve_symbolic, shards_of,
};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use oflow_kernels::{DType, DTypeKind, Dims, ShardBox};
use smallvec::SmallVec;

struct DryEmit<'a> {
    placement: &'a Placement,
    values: Vec<(TensorType, NdSbp)>,
    total: u64,
}

impl Emit for DryEmit<'_> {
    fn emit(&mut self, name: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>> {
        let op = op_in_lowering(name)?;
        let (attrs, runtime) = resolve_symbolic(op, attrs)?;
        let types: Vec<Option<TensorType>> =
            inputs.iter().map(|v| v.map(|v| self.values[v.0 as usize].0.clone())).collect();
        let sbps: Vec<Option<NdSbp>> = inputs.iter().map(|v| v.map(|v| self.values[v.0 as usize].1.clone())).collect();
        let kinds: SmallVec<[DTypeKind; 4]> = runtime.iter().map(|n| n.kind()).collect();
        let infer = InferCtx { op, inputs: &types, attrs: &attrs, runtime_kinds: &kinds };
        let outs = op.infer(&infer)?;
        let call = ChoiceInput {
            op,
            infer: &infer,
            outs: &outs,
            placement: self.placement,
            sbps: &sbps,
            needs_grad: &[],
            fixed_inputs: &[],
            given_out: None,
            request: None,
            keep: false,
        };
        let chosen = choose(&call)?.sig;
        let price = forward_price(&call, &chosen)?;
        self.total = self.total.saturating_add(price.forward).saturating_add(price.lowering);
        Ok(outs
            .into_iter()
            .zip(chosen.outputs)
            .map(|(t, s)| {
                self.values.push((t, s));
                Value(self.values.len() as u32 - 1)
            })
            .collect())
    }
    fn shape(&self, v: Value) -> Dims {
        self.values[v.0 as usize].0.shape.clone()
    }
    fn dtype(&self, v: Value) -> DType {
        self.values[v.0 as usize].0.dtype
    }
    fn nd_sbp(&self, v: Value) -> Option<NdSbp> {
        Some(self.values[v.0 as usize].1.clone())
    }
    fn shards(&self, v: Value, dim: usize) -> usize {
        shards_of(self.placement, &self.values[v.0 as usize].1, dim)
    }
    fn box_to(&mut self, v: Value, sbp: &NdSbp) -> Result<Value> {
        let (t, have) = self.values[v.0 as usize].clone();
        let at = |sbp: NdSbp| Layout::new(self.placement, sbp);
        self.total = self.total.saturating_add(cost(&t.shape, t.dtype, &at(have), &at(sbp.clone()))?);
        self.values.push((t, sbp.clone()));
        Ok(Value(self.values.len() as u32 - 1))
    }
    fn detach(&mut self, v: Value) -> Value {
        v
    }
}

/// Least price of a lowering, in picoseconds, even if nothing is communicated. It runs several kernels where the direct
/// signature runs one: among free candidates the direct one wins.
pub(super) const LEAST_LOWERING: u64 = 1;

/// Price of the boxings inside lowering `l` of the op under `sig`.
pub(super) fn price_lowering(c: &ChoiceInput<'_>, sig: &NdSignature, l: u8) -> Result<u64> {
    let program = match c.op.lowered_by(l)? {
        LoweredBy::Program(run) => run,
        LoweredBy::Windows(f) => return price_windows(c, sig, f),
    };
    let mut dry = DryEmit { placement: c.placement, values: vec![], total: 0 };
    let mut inputs = Vec::with_capacity(sig.inputs.len());
    for (t, s) in c.infer.inputs.iter().zip(&sig.inputs) {
        inputs.push(t.as_ref().map(|t| {
            dry.values.push((t.clone(), s.clone()));
            Value(dry.values.len() as u32 - 1)
        }));
    }
    let call = LowerCall {
        op: c.op,
        inputs: &inputs,
        attrs: c.infer.attrs,
        runtime_kinds: c.infer.runtime_kinds,
        outputs: &sig.outputs,
    };
    let outs = program(&mut dry, &call)?;
    for (v, want) in outs.into_iter().zip(&sig.outputs) {
        dry.box_to(v, want)?;
    }
    Ok(dry.total.saturating_add(LEAST_LOWERING))
}

/// Positions whose windows are looked at for a price.
const LOOKED_AT: usize = 64;

/// Price of the exchange that gives each rank its windows: that of the rank that receives the most.
fn price_windows(c: &ChoiceInput<'_>, sig: &NdSignature, windows: &WindowsFn) -> Result<u64> {
    let model = Model::default();
    let splits = |a: &usize| sig.inputs.iter().any(|s| s[*a].split_dim().is_some());
    let link = (0..c.placement.axes()).filter(splits).map(|a| model.along(c.placement, a)).max();
    let Some(link) = link else { return Ok(LEAST_LOWERING) };
    let mut most = 0;
    // The first and the last ones of a split lack less than those between.
    for position in (0..c.placement.len()).step_by(c.placement.len().div_ceil(LOOKED_AT)) {
        let part = PartBoxes::at(position, c.placement, c.infer, c.outs, sig, Some(windows))?;
        let mut price = 0u64;
        for (t, (reads, shard)) in c.infer.inputs.iter().zip(part.reads.iter().zip(&part.shards)) {
            let (Some(t), Some(reads), Some(shard)) = (t, reads, shard) else { continue };
            let (all, lacks) = (volume(reads), volume(reads) - volume(&meet(reads, shard)));
            if lacks > 0 {
                let size = t.dtype.size() as u64;
                // From a neighbour on each side where the window goes on; the window is a copy.
                let goes_on = |d: usize| {
                    let end = |b: &ShardBox| b.offset[d] + b.size[d];
                    u64::from(reads.offset[d] < shard.offset[d]) + u64::from(end(reads) > end(shard))
                };
                let peers = (0..t.shape.len()).map(goes_on).sum::<u64>().max(1);
                let exchange = model.rate(link, Algorithm::Exchange).price(peers, lacks.saturating_mul(size));
                price = price.saturating_add(exchange).saturating_add(model.copied(all.saturating_mul(size)));
            }
        }
        most = most.max(price);
    }
    Ok(most.saturating_add(LEAST_LOWERING))
}
