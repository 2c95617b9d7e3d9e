//! Pricing a lowering: its program is run over descriptions, and the boxings that its inner calls would need are added up.

use super::choice::{ChoiceInput, choose, forward_price};
use super::{Layout, cost};
use crate::error::{Error, Result};
use crate::ops::{
    AttrValue, Emit, InferCtx, LowerCall, NdSignature, TensorType, Value, op_in_lowering, resolve_symbolic, shards_of,
};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use oflow_kernels::{DType, DTypeKind, Dims};
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

/// What a lowering costs even if nothing is communicated. It runs several kernels where the direct signature runs one:
/// among free candidates the direct one wins.
pub(super) const LEAST_LOWERING: u64 = 1;

/// Price of the boxings inside lowering `l` of the op under `sig`.
pub(super) fn price_lowering(c: &ChoiceInput<'_>, sig: &NdSignature, l: u8) -> Result<u64> {
    let lowering =
        c.op.lowerings
            .get(l as usize)
            .ok_or_else(|| Error::registry(format!("{} has no lowering {l}", c.op.name())))?;
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
    let outs = (lowering.run)(&mut dry, &call)?;
    for (v, want) in outs.into_iter().zip(&sig.outputs) {
        dry.box_to(v, want)?;
    }
    Ok(dry.total.saturating_add(LEAST_LOWERING))
}
