//! Lowerings flattened: the program of an op that its kernel alone cannot carry out becomes steps of the plan.

use super::build::Builder;
use super::request::{Input, Request, TypeRef, Where};
use super::step::{BufferId, For, Numbers, Step};
use crate::error::{Error, Result};
use crate::ops::{
    AttrValue, Emit, LowerCall, LowerFn, NdSignature, RuntimeArg, Value, op_in_lowering, resolve_symbolic, shards_of,
};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use oflow_kernels::{DType, DTypeKind, Dims};
use smallvec::SmallVec;

/// Emits steps. A value is a buffer of the plan.
struct PlanEmit<'a, 'b> {
    plan: &'a mut Builder<'b>,
    placement: &'a Placement,
    /// The runtime attributes of the op that is lowered.
    numbers: &'a Numbers,
}

impl Builder<'_> {
    /// The steps of a lowering's program; returns the outputs, in the layouts of the signature.
    pub(super) fn lower(
        &mut self,
        r: &Request<'_>,
        program: &LowerFn,
        sig: &NdSignature,
        inputs: &[Option<BufferId>],
        placement: &Placement,
        numbers: &Numbers,
    ) -> Result<SmallVec<[BufferId; 2]>> {
        let values: SmallVec<[Option<Value>; 4]> = inputs.iter().map(|b| b.map(|b| Value(b.0))).collect();
        let call = LowerCall {
            op: r.op,
            inputs: &values,
            attrs: r.attrs,
            runtime_kinds: r.runtime_kinds,
            outputs: &sig.outputs,
        };
        let mut emit = PlanEmit { plan: self, placement, numbers };
        let outs = program(&mut emit, &call)?;
        let mut made: SmallVec<[BufferId; 2]> = SmallVec::new();
        for (v, want) in outs.into_iter().zip(&sig.outputs) {
            made.push(BufferId(emit.box_to(v, want)?.0));
        }
        if made.len() != sig.outputs.len() {
            let (has, gives) = (sig.outputs.len(), made.len());
            return Err(Error::registry(format!("{} has {has} outputs, its lowering gives {gives}", r.op.name())));
        }
        // What is written in place has memory of its own, which no step may have read in the meantime.
        if r.given.is_some()
            && let Some(first) = made.first_mut()
        {
            let (global, local) = {
                let b = &self.buffers[first.index()];
                (b.global.clone(), b.local.clone())
            };
            self.steps.push(Step::Assign(*first));
            *first = self.buffer(global, local);
        }
        Ok(made)
    }
}

impl PlanEmit<'_, '_> {
    fn ty(&self, v: Value) -> Option<&super::types::GlobalRef> {
        self.plan.buffers.get(v.0 as usize).and_then(|b| b.global.as_ref())
    }
}

impl Emit for PlanEmit<'_, '_> {
    fn emit(&mut self, name: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>> {
        let op = op_in_lowering(name)?;
        let refuse = |why: &str| Err(Error::unsupported(format!("a lowering cannot call {name}: {why}")));
        if op.layout.is_some() {
            return refuse("it changes layouts; `box_to` does that");
        }
        if op.sig.inputs.iter().any(|i| i.mutable) {
            return refuse("it writes its input, which others may read");
        }
        if op.length.is_some() {
            return refuse("the shape of its result depends on values, and the program is planned without them");
        }
        if op.traits.random {
            return refuse("it draws random numbers, whose number in the stream is that of the whole call");
        }
        if inputs.iter().all(Option::is_none) {
            return refuse("without an input it has no placement; compute it from an input");
        }
        let (attrs, mut numbers) = resolve_symbolic(op, attrs)?;
        // Inside a lowering of a lowering, what is given is what the outer one stated.
        if let Numbers::Each(outer, _) = self.numbers {
            for n in &mut numbers {
                if let RuntimeArg::Given(g) = *n {
                    let missing = || Error::argument(format!("runtime attribute {} is missing", g.index));
                    *n = *outer.get(g.index).ok_or_else(missing)?;
                }
            }
        }
        let kinds: SmallVec<[DTypeKind; 4]> = numbers.iter().map(|n| n.kind()).collect();
        let ids: SmallVec<[Option<BufferId>; 4]> = inputs.iter().map(|v| v.map(|v| BufferId(v.0))).collect();
        let mut types: SmallVec<[Option<Input>; 4]> = SmallVec::new();
        for v in inputs {
            types.push(match v {
                None => None,
                Some(v) => {
                    let g = self.ty(*v).cloned();
                    let g = g.ok_or_else(|| Error::argument(format!("{name}: an input of a lowering has no type")))?;
                    Some(Input { ty: TypeRef::Global(g), needs_grad: false, given: false })
                }
            });
        }
        let request = Request {
            op,
            attrs: &attrs,
            runtime_kinds: &kinds,
            inputs: &types,
            place: Where::Global(self.placement),
            target: None,
            given: None,
            keep: false,
            asked: None,
            signature: None,
        };
        let made = self.plan.global(&request, &ids, self.placement, Numbers::Each(numbers, attrs.clone()))?;
        Ok(made.outputs.iter().map(|b| Value(b.0)).collect())
    }
    fn shape(&self, v: Value) -> Dims {
        self.ty(v).map_or_else(Dims::new, |g| g.ty.shape.clone())
    }
    fn dtype(&self, v: Value) -> DType {
        self.ty(v).map_or(DType::F32, |g| g.ty.dtype)
    }
    fn nd_sbp(&self, v: Value) -> Option<NdSbp> {
        self.ty(v).map(|g| g.sbp.clone())
    }
    fn shards(&self, v: Value, dim: usize) -> usize {
        self.ty(v).map_or(1, |g| shards_of(self.placement, &g.sbp, dim))
    }
    fn box_to(&mut self, v: Value, sbp: &NdSbp) -> Result<Value> {
        Ok(Value(self.plan.boxed(BufferId(v.0), self.placement, sbp, For::Lowering)?.0))
    }
    fn detach(&mut self, v: Value) -> Value {
        v
    }
}
