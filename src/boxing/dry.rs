//! Pricing a lowering: its program is run over descriptions, and the boxings that its inner calls would need are added up.

use super::choice::{ChoiceInput, choose, forward_price};
use super::{Layout, cost};
use crate::error::{Error, Result};
use crate::ops::{
    AttrKind, AttrValue, Attrs, Emit, InferCtx, LowerCall, NdSignature, Op, RuntimeAttrs, TensorType, Value, find,
};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use oflow_kernels::{DType, DTypeKind, Dims};
use smallvec::SmallVec;

/// Attribute values of a call in declared order: plan attributes, runtime attributes.
///
/// # Errors
/// On an unknown name, a missing required attribute or a value of the wrong type.
pub fn resolve_attrs(op: &Op, given: &[(&str, AttrValue)]) -> Result<(Attrs, RuntimeAttrs)> {
    for (n, _) in given {
        if op.sig.attr(n).is_none() && op.sig.runtime_attr(n).is_none() {
            let known: Vec<_> = op.sig.attrs.iter().chain(&op.sig.runtime).map(|a| a.name.as_str()).collect();
            return Err(Error::argument(format!("{} has no attribute '{n}'", op.name()))
                .help(format!("it has: {}", known.join(", "))));
        }
    }
    let value = |a: &crate::ops::AttrDef| -> Result<AttrValue> {
        match given.iter().find(|(n, _)| *n == a.name) {
            Some((_, v)) => a.accept(v.clone()),
            None => a
                .default
                .clone()
                .ok_or_else(|| Error::argument(format!("{} needs the attribute '{}'", op.name(), a.name))),
        }
    };
    let attrs = op.sig.attrs.iter().map(&value).collect::<Result<Attrs>>()?;
    let runtime = op
        .sig
        .runtime
        .iter()
        .map(|a| {
            let v = value(a)?;
            AttrKind::Scalar
                .accept(&a.name, v)?
                .to_scalar()
                .ok_or_else(|| Error::argument(format!("attribute '{}' must be a number", a.name)))
        })
        .collect::<Result<RuntimeAttrs>>()?;
    Ok((attrs, runtime))
}

struct DryEmit<'a> {
    placement: &'a Placement,
    values: Vec<(TensorType, NdSbp)>,
    total: u64,
}

impl Emit for DryEmit<'_> {
    fn emit(&mut self, name: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>> {
        let op = find(name)?;
        let (attrs, runtime) = resolve_attrs(op, attrs)?;
        let types: Vec<Option<TensorType>> =
            inputs.iter().map(|v| v.map(|v| self.values[v.0 as usize].0.clone())).collect();
        let sbps: Vec<Option<NdSbp>> = inputs.iter().map(|v| v.map(|v| self.values[v.0 as usize].1.clone())).collect();
        let kinds: SmallVec<[DTypeKind; 4]> = runtime.iter().map(|s| s.kind()).collect();
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
            runtime: &runtime,
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
    let call = LowerCall { inputs: &inputs, attrs: c.infer.attrs, runtime: c.runtime, outputs: &sig.outputs };
    let outs = (lowering.run)(&mut dry, &call)?;
    for (v, want) in outs.into_iter().zip(&sig.outputs) {
        dry.box_to(v, want)?;
    }
    Ok(dry.total.saturating_add(LEAST_LOWERING))
}
