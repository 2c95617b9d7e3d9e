//! The eager emitter: the programs of gradient rules run at once, on tensors.

use super::boxing::BoxingReason;
use super::call::{Call, Outputs};
use super::layout::to_layout;
use crate::error::{CallSite, Result};
use crate::ops::resolve_symbolic;
use crate::ops::{AttrValue, Emit, Op, RuntimeAttrs, Value, find, lookup, shards_of};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Dims};
use smallvec::SmallVec;

/// Functions that gradient rules call by name. Their table stands above the interpreter, so each backward pass is given it.
pub(crate) trait Functions {
    /// Calls a function: tensors by place, other arguments by name, and the line of the rule's call.
    ///
    /// # Errors
    /// There is no function of that name, none takes these arguments, or it fails.
    fn call(
        &self,
        name: &str,
        inputs: &[Option<&Tensor>],
        attrs: &[(&str, AttrValue)],
        site: CallSite,
    ) -> Result<Vec<Tensor>>;
}

/// Whether a call with so many tensors and these attributes can be one of the op.
fn takes(op: &Op, inputs: usize, attrs: &[(&str, AttrValue)]) -> bool {
    let sig = &op.sig;
    let needed = sig.inputs.iter().filter(|i| !i.optional && !i.variadic).count();
    let given = |name: &str| attrs.iter().any(|(n, _)| *n == name);
    inputs >= needed
        && (inputs <= sig.inputs.len() || sig.repeating() > 0)
        && attrs.iter().all(|(n, _)| sig.attr(n).is_some() || sig.runtime_attr(n).is_some())
        && sig.attrs.iter().chain(&sig.runtime).all(|a| a.default.is_some() || given(&a.name))
}

/// Values of a running program, by number.
pub(super) struct EagerEmit<'f> {
    values: Vec<Tensor>,
    op: &'static str,
    site: CallSite,
    functions: Option<&'f dyn Functions>,
    /// Numbers that the program passes on as [`AttrValue::Given`].
    given: RuntimeAttrs,
}

impl<'f> EagerEmit<'f> {
    /// An empty program on behalf of a call of `op` at `site`; it calls ops only.
    pub fn new(op: &'static str, site: CallSite) -> EagerEmit<'f> {
        EagerEmit { values: vec![], op, site, functions: None, given: RuntimeAttrs::new() }
    }
    /// The program calls these functions too.
    pub fn with_functions(self, functions: &'f dyn Functions) -> EagerEmit<'f> {
        EagerEmit { functions: Some(functions), ..self }
    }
    /// The program passes on runtime attributes of a call with these.
    pub fn with_runtime(self, given: RuntimeAttrs) -> EagerEmit<'f> {
        EagerEmit { given, ..self }
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
        let (attrs, numbers) = resolve_symbolic(op, attrs)?;
        let runtime: RuntimeAttrs = numbers.iter().map(|n| n.of(&self.given)).collect::<Result<_>>()?;
        Call::new(op, inputs).attrs(attrs).runtime(runtime).at(self.site).run()
    }
}

impl Emit for EagerEmit<'_> {
    fn emit(&mut self, op: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>> {
        let tensors: SmallVec<[Option<Tensor>; 4]> = inputs.iter().map(|v| v.map(|v| self.get(v))).collect();
        let refs: SmallVec<[Option<&Tensor>; 4]> = tensors.iter().map(|t| t.as_ref()).collect();
        // An op goes before the function of its name, if it takes such a call.
        let outs = match self.functions {
            Some(functions) if !lookup(op)?.is_some_and(|op| takes(op, refs.len(), attrs)) => {
                functions.call(op, &refs, attrs, self.site)?
            }
            _ => self.run(op, &refs, attrs)?.into_vec(),
        };
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
    fn shards(&self, v: Value, dim: usize) -> usize {
        self.values[v.0 as usize].global().map_or(1, |g| shards_of(&g.placement, &g.sbp, dim))
    }
    fn box_to(&mut self, v: Value, sbp: &NdSbp) -> Result<Value> {
        let t = self.get(v);
        match t.global() {
            Some(g) if g.sbp != *sbp => {
                let out = to_layout(BoxingReason::Needed(self.op), &t, &g.placement.clone(), sbp, self.site)?;
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
