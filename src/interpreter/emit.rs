//! The eager emitter: gradient rules and lowerings run at once, on tensors.

use super::call::Call;
use super::dispatch::Outputs;
use super::layout::to_layout;
use super::policy::Cause;
use crate::error::{CallSite, Result};
use crate::ops::resolve_attrs;
use crate::ops::{AttrValue, Emit, Value, find};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Dims};
use smallvec::SmallVec;

/// Values of a running program, by number.
pub struct EagerEmit {
    values: Vec<Tensor>,
    op: &'static str,
    site: CallSite,
}

impl EagerEmit {
    /// An empty program on behalf of a call of `op` at `site`.
    pub fn new(op: &'static str, site: CallSite) -> EagerEmit {
        EagerEmit { values: vec![], op, site }
    }
    /// Gives a tensor a number.
    pub fn put(&mut self, t: Tensor) -> Value {
        self.values.push(t);
        Value(self.values.len() as u32 - 1)
    }
    /// The tensor of that number.
    pub fn get(&self, v: Value) -> Tensor {
        self.values[v.0 as usize].clone()
    }
    /// Calls an op on tensors.
    pub fn run(&self, op: &str, inputs: &[Option<&Tensor>], attrs: &[(&str, AttrValue)]) -> Result<Outputs> {
        let op = find(op)?;
        let (attrs, runtime) = resolve_attrs(op, attrs)?;
        Call::new(op, inputs).attrs(attrs).runtime(runtime).at(self.site).run()
    }
}

impl Emit for EagerEmit {
    fn emit(&mut self, op: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>> {
        let tensors: SmallVec<[Option<Tensor>; 4]> = inputs.iter().map(|v| v.map(|v| self.get(v))).collect();
        let refs: SmallVec<[Option<&Tensor>; 4]> = tensors.iter().map(|t| t.as_ref()).collect();
        let outs = self.run(op, &refs, attrs)?;
        Ok(outs.into_iter().map(|t| self.put(t)).collect())
    }
    fn shape(&self, v: Value) -> Dims {
        self.values[v.0 as usize].ty().shape.clone()
    }
    fn dtype(&self, v: Value) -> DType {
        self.values[v.0 as usize].dtype()
    }
    fn nd_sbp(&self, v: Value) -> Option<NdSbp> {
        self.values[v.0 as usize].global().map(|g| g.sbp.clone())
    }
    fn box_to(&mut self, v: Value, sbp: &NdSbp) -> Result<Value> {
        let t = self.get(v);
        match t.global() {
            Some(g) if g.sbp != *sbp => {
                let out = to_layout(Cause::Needed(self.op), &t, &g.placement.clone(), sbp, self.site)?;
                Ok(self.put(out))
            }
            _ => Ok(v),
        }
    }
    fn detach(&mut self, v: Value) -> Value {
        let t = self.get(v).value();
        self.put(t)
    }
}
