//! The eager gradient context: what a gradient rule sees of a recorded call.

use super::emit::{EagerEmit, Functions};
use super::grad_dtype::below_cast;
use super::saved::restore;
use super::supplied::{self, sum_to_shape};
use crate::error::{Error, Result};
use crate::ops::{
    AttrValue, Attrs, Emit, Grad, GradArg, GradCtx, GradWire, Numbers, Op, RuntimeAttrs, Value, derived_args,
    derived_grad_op, get_attr,
};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use crate::tensor::{Edge, Node, Tensor};
use oflow_kernels::{DType, Dims};
use smallvec::SmallVec;
use std::sync::Arc;

/// Runs the gradient rule of a node, which may call ops and `functions`.
///
/// # Errors
/// The rule is missing, or a tensor it needs was changed in place or freed.
pub(super) fn run_rule(
    node: &Arc<Node>,
    grads: &[Option<Tensor>],
    functions: &dyn Functions,
) -> Result<Vec<Option<Tensor>>> {
    if let Some(custom) = &node.custom {
        let made = (custom.backward)(grads).and_then(|made| fitted(node, &custom.name, made));
        return made.map_err(|e| e.in_call(|| custom.name.to_string()));
    }
    let mut ctx = EagerGrad {
        node,
        emit: EagerEmit::new(node.op.name(), node.site).with_functions(functions),
        grads: grads.to_vec(),
        result: vec![None; node.edges.len()],
    };
    match &node.op.grad {
        Grad::Missing => {
            return Err(Error::autograd(format!("op '{}' has no gradient rule", node.op.name()))
                .help("declare one with `OpDef::grad`, or `detach()` the input"));
        }
        Grad::None => {}
        Grad::FromExpr => from_expr(&mut ctx)?,
        Grad::Wiring(wires) => wired(&mut ctx, wires)?,
        Grad::Rule { run, .. } => run(&mut ctx)?,
    }
    Ok(ctx.result)
}

/// Checks the gradients that a user's backward returned, and fits them to the inputs.
fn fitted(node: &Node, name: &str, made: Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>> {
    let inputs = node.edges.len();
    if made.len() != inputs {
        return Err(Error::autograd(format!(
            "the backward of {name} returned {} gradients, expected {inputs}",
            made.len()
        ))
        .help("return one for each input that is a tensor, `None` where there is none"));
    }
    let one = |(i, g): (usize, Option<Tensor>)| match (g, &node.input_types[i]) {
        (Some(g), Some(of)) if node.edges[i].is_some() => {
            let wide = match &node.edges[i] {
                Edge::Node(n, _) => below_cast(n),
                _ => None,
            };
            let who = || format!("the backward of {name} returned, for input {i},");
            supplied::of_input(g, of, wide, &who, node.site).map(Some)
        }
        // No gradient is wanted of that input.
        (g, _) => Ok(g),
    };
    made.into_iter().enumerate().map(one).collect()
}

impl EagerEmit<'_> {
    fn call_one(&mut self, op: &str, args: &[Value], attrs: &[(&str, AttrValue)]) -> Result<Value> {
        (self as &mut dyn Emit).call(op, args, attrs)
    }
}

/// Carries out a gradient that is given as data. Wires that are outputs of one call make it once.
fn wired(ctx: &mut EagerGrad<'_>, wires: &[GradWire]) -> Result<()> {
    for (k, w) in wires.iter().enumerate() {
        if wires[..k].iter().any(|before| before.same_call(w)) {
            continue;
        }
        let wanted: SmallVec<[&GradWire; 4]> =
            wires[k..].iter().filter(|other| other.same_call(w) && ctx.needs(other.input)).collect();
        if wanted.is_empty() {
            continue;
        }
        let Some(args) = wired_args(ctx, w)? else { continue };
        let attrs: Vec<(&str, AttrValue)> =
            w.attrs.iter().map(|n| Ok((n.as_str(), ctx.attr(n)?))).collect::<Result<_>>()?;
        let outs = ctx.emit.emit(&w.op, &args, &attrs)?;
        for wire in wanted {
            let v = outs.get(wire.output).copied().ok_or_else(|| {
                let (op, i, n) = (ctx.node.op.name(), wire.output, outs.len());
                Error::autograd(format!("the gradient of {op} is wired to output {i} of {}, which has {n}", wire.op))
                    .help("outputs count from 0: see `GradWire::output`")
            })?;
            ctx.set(wire.input, v)?;
        }
    }
    Ok(())
}

/// The arguments of a wired call; none if nothing depends on an output whose gradient it takes.
fn wired_args(ctx: &mut EagerGrad<'_>, w: &GradWire) -> Result<Option<Vec<Option<Value>>>> {
    let mut args = Vec::with_capacity(w.args.len());
    for a in &w.args {
        args.push(match a {
            // An optional input that the call left out is left out of the gradient's call too.
            GradArg::Input(i) if !ctx.has(*i) => None,
            GradArg::Input(i) => Some(ctx.input(*i)?),
            GradArg::Output(i) => Some(ctx.output(*i)?),
            GradArg::OutGrad(i) => match ctx.grad(*i) {
                Some(g) => Some(g),
                None => return Ok(None),
            },
        });
    }
    Ok(Some(args))
}

fn from_expr(ctx: &mut EagerGrad<'_>) -> Result<()> {
    let op = ctx.node.op;
    let Some(dy) = ctx.grad(0) else { return Ok(()) };
    let dtypes = ctx.node.input_types.iter().flatten().map(|t| t.ty().dtype);
    let numbers = Numbers::of(op, dtypes, &ctx.node.runtime);
    for i in 0..op.sig.inputs.len() {
        if !ctx.needs(i) {
            continue;
        }
        let g = derived_grad_op(op, i, numbers)?;
        // The gradient of a copy or a sum is what arrives: a copy of it would say the same.
        if g.gives_its_input() {
            ctx.set(i, dy)?;
            continue;
        }
        let reads = derived_args(op, i, numbers)?;
        let mut args = vec![dy];
        for k in &reads.inputs {
            args.push(ctx.input(*k)?);
        }
        if reads.output {
            args.push(ctx.output(0)?);
        }
        let runtime: Vec<(&str, AttrValue)> = op
            .sig
            .runtime
            .iter()
            .zip(&ctx.node.runtime)
            .map(|(a, v)| (a.name.as_str(), AttrValue::Scalar(*v)))
            .collect();
        let dx = ctx.emit.call_one(g.name(), &args, &runtime)?;
        ctx.set(i, dx)?;
    }
    Ok(())
}

struct EagerGrad<'a> {
    node: &'a Arc<Node>,
    emit: EagerEmit<'a>,
    grads: Vec<Option<Tensor>>,
    result: Vec<Option<Tensor>>,
}

impl EagerGrad<'_> {
    /// The dtype that the gradient of an input is to have where the rule gives another, as ops that promote do: the
    /// input's, which is what the rule of the call before expects. A leaf casts when its gradient is complete, and a cast
    /// takes gradients of the dtype that it came from.
    fn wanted_dtype(&self, i: usize) -> Option<DType> {
        match self.node.edges.get(i)? {
            Edge::Node(n, _) => match below_cast(n) {
                Some(_) => None,
                // Nothing is added up in 8 bits: what passes an 8-bit float keeps its dtype.
                None => self.input_dtype(i).filter(|d| d.has_gradients()),
            },
            _ => None,
        }
    }
    fn changed(&self, what: &str) -> Error {
        Error::autograd(format!("{what} of {} was changed in place after it was used there", self.node.op.name()))
            .at(self.node.site)
            .help("use the op that returns a new tensor, or change it before")
    }
}

impl Emit for EagerGrad<'_> {
    fn emit(&mut self, op: &str, inputs: &[Option<Value>], attrs: &[(&str, AttrValue)]) -> Result<Vec<Value>> {
        self.emit.emit(op, inputs, attrs)
    }
    fn shape(&self, v: Value) -> Dims {
        self.emit.shape(v)
    }
    fn dtype(&self, v: Value) -> DType {
        self.emit.dtype(v)
    }
    fn nd_sbp(&self, v: Value) -> Option<NdSbp> {
        self.emit.nd_sbp(v)
    }
    fn shards(&self, v: Value, dim: usize) -> usize {
        self.emit.shards(v, dim)
    }
    fn box_to(&mut self, v: Value, sbp: &NdSbp) -> Result<Value> {
        self.emit.box_to(v, sbp)
    }
    fn detach(&mut self, v: Value) -> Value {
        self.emit.detach(v)
    }
}

impl GradCtx for EagerGrad<'_> {
    fn op(&self) -> &'static Op {
        self.node.op
    }
    fn attrs(&self) -> &Attrs {
        &self.node.attrs
    }
    fn runtime(&self) -> &RuntimeAttrs {
        &self.node.runtime
    }
    fn inputs(&self) -> usize {
        self.node.edges.len()
    }
    fn has(&self, i: usize) -> bool {
        self.node.input_types.get(i).is_some_and(|t| t.is_some())
    }
    fn needs(&self, i: usize) -> bool {
        self.node.edges.get(i).is_some_and(|e| e.is_some())
    }
    fn input(&mut self, i: usize) -> Result<Value> {
        let saved = self.node.inputs.lock().unwrap_or_else(|e| e.into_inner());
        let freed = || {
            Error::autograd("backward ran a second time through a graph whose tensors were freed")
                .at(self.node.site)
                .help("keep it with `backward_with(BackwardOptions { retain_graph: true, .. })`")
        };
        let all = saved.as_ref().ok_or_else(freed)?;
        let s = all.get(i).and_then(|s| s.as_ref()).ok_or_else(|| {
            Error::autograd(format!(
                "the gradient of {} reads input {i}, which it did not say it saves",
                self.node.op.name()
            ))
        })?;
        let t = restore(s, self.node.site)?.ok_or_else(|| self.changed("an input"))?;
        drop(saved);
        Ok(self.emit.put(t))
    }
    fn input_shape(&self, i: usize) -> Dims {
        self.node.input_types[i].as_ref().map(|t| t.ty().shape.clone()).unwrap_or_default()
    }
    fn input_dtype(&self, i: usize) -> Option<DType> {
        self.node.input_types.get(i).and_then(|t| t.as_ref()).map(|t| t.ty().dtype)
    }
    fn input_layout(&self, i: usize) -> Option<(Placement, NdSbp)> {
        let g = self.node.input_types.get(i)?.as_ref()?.global()?;
        Some((g.placement.clone(), g.sbp.clone()))
    }
    fn input_device(&self) -> Device {
        self.node.device
    }
    fn output(&mut self, i: usize) -> Result<Value> {
        let outs = self.node.outputs.lock().unwrap_or_else(|e| e.into_inner());
        let s = outs.get(i).and_then(|s| s.as_ref()).ok_or_else(|| {
            Error::autograd(format!("the gradient of {} reads output {i}, which is not saved", self.node.op.name()))
                .at(self.node.site)
                .help("if this is a second backward, keep the graph with `retain_graph`")
        })?;
        let t = restore(s, self.node.site)?.ok_or_else(|| self.changed("the output"))?.value();
        drop(outs);
        // Second derivatives go through the output to this very node.
        t.set_edge(Edge::Node(self.node.clone(), i));
        Ok(self.emit.put(t))
    }
    fn grad(&mut self, i: usize) -> Option<Value> {
        let g = self.grads.get(i).cloned().flatten()?;
        Some(self.emit.put(g))
    }
    fn set(&mut self, i: usize, v: Value) -> Result<()> {
        if let Some(of) = &self.node.input_types[i] {
            supplied::check_made(&self.emit.get(v), of, self.node.op.name())?;
        }
        let shape = self.input_shape(i);
        let v = if self.emit.shape(v) == shape { v } else { sum_to_shape(&mut self.emit, v, &shape)? };
        let v = match self.wanted_dtype(i) {
            Some(dtype) if dtype != self.emit.dtype(v) => {
                self.emit.call_one("cast", &[v], &[("dtype", dtype.into())])?
            }
            _ => v,
        };
        self.result[i] = Some(self.emit.get(v));
        Ok(())
    }
    fn attr(&self, name: &str) -> Result<AttrValue> {
        let op = self.node.op;
        match op.sig.runtime_attr(name).and_then(|i| self.node.runtime.get(i)) {
            Some(s) => Ok(AttrValue::Scalar(*s)),
            None => get_attr(op, &self.node.attrs, name).cloned(),
        }
    }
    fn emitter(&mut self) -> &mut dyn Emit {
        &mut self.emit
    }
}
