//! Backward of eager tensors: what the engine ([`super::engine`]) asks of a recorded program, answered with calls.

use super::boxing::BoxingReason;
use super::capture::{gradient_before, in_capture};
use super::comm_trace::BackwardScope;
use super::emit::{EagerEmit, Functions};
use super::engine::{self, BackwardGraph, Chosen, EdgeTo, Grads, LeafGrad};
use super::grad_ctx::run_rule;
use super::grad_dtype::{below_cast, cast};
use super::layout::{BoxTo, to_layout, to_layouts};
use super::supplied;
use crate::context::{is_no_sync, nothing_asked, set_grad_enabled};
use crate::error::{CallSite, Error, Result};
use crate::memory::MemoryUse;
use crate::op;
use crate::ops::{AttrValue, Attrs};
use crate::sbp::ReduceOp;
use crate::tensor::{Edge, Hook, HookMoment, LeafSlot, Node, Tensor};
use crate::trace::{self, What};
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;
use std::sync::Arc;

/// Options of `backward`.
#[derive(Clone, Debug, Default)]
pub struct BackwardOptions {
    /// Gradient of the output, of its shape and in its place; another dtype is cast. Without one the output must be one real number,
    /// and its gradient is 1.
    pub gradient: Option<Tensor>,
    /// Keeps the saved tensors, so that backward can run through the same graph again (PyTorch's `retain_graph`).
    pub retain_graph: bool,
    /// Records the backward pass itself, so that its results can be differentiated (PyTorch's `create_graph`).
    pub create_graph: bool,
    /// The only tensors to whose gradients backward adds; `None` for all leaves. Results of calls keep theirs, as after `retain_grad`. The
    /// functions `grad` do not read it.
    pub inputs: Option<Vec<Tensor>>,
}

/// A recorded program of eager tensors.
struct EagerGraph<'a> {
    site: CallSite,
    /// Edges whose gradients are handed back; without it they are accumulated.
    wanted: Option<&'a [Edge]>,
    found: Vec<Option<Tensor>>,
    options: &'a BackwardOptions,
    functions: &'a dyn Functions,
}

/// Runs backward from `outputs`, accumulating into the `grad()` of the leaves or of `options.inputs`. Gradient rules may call `functions`.
pub(crate) fn backward(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
    functions: &dyn Functions,
    site: CallSite,
) -> Result<()> {
    let chosen = match &options.inputs {
        None => None,
        Some(inputs) if inputs.is_empty() => {
            return Err(Error::autograd("backward to an empty list of inputs adds no gradient")
                .at(site)
                .help("name the tensors whose gradients are wanted, or leave `inputs` out for all leaves"));
        }
        Some(inputs) => Some(chosen(&edges_of(inputs, site)?)),
    };
    run(outputs, gradients, (None, chosen), options, functions, site).map(drop)
}

/// Where the gradients of tensors go.
fn edges_of(inputs: &[Tensor], site: CallSite) -> Result<Vec<Edge>> {
    let edges: Vec<Edge> = inputs.iter().map(|t| t.edge()).collect();
    match edges.iter().position(|e| !e.is_some()) {
        None => Ok(edges),
        Some(i) => Err(Error::autograd(format!("{:?} does not require a gradient", inputs[i]))
            .at(site)
            .help("call `requires_grad_(true)` on it before it is used")),
    }
}

fn chosen(edges: &[Edge]) -> Chosen {
    let mut chosen = Chosen::default();
    for edge in edges {
        match edge {
            Edge::None => {}
            Edge::Leaf(slot) => drop(chosen.leaves.insert(Arc::as_ptr(slot) as usize)),
            Edge::Node(node, _) => drop(chosen.nodes.insert(node.ordinal)),
        }
    }
    chosen
}

/// Gradients of `outputs` with respect to `inputs`, without touching any `grad()`. Gradient rules may call `functions`.
pub(crate) fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
    functions: &dyn Functions,
    site: CallSite,
) -> Result<Vec<Option<Tensor>>> {
    let edges = edges_of(inputs, site)?;
    run(outputs, gradients, (Some(&edges), Some(chosen(&edges))), options, functions, site)
}

fn run(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    (wanted, chosen): (Option<&[Edge]>, Option<Chosen>),
    options: &BackwardOptions,
    functions: &dyn Functions,
    site: CallSite,
) -> Result<Vec<Option<Tensor>>> {
    if gradients.len() > outputs.len() {
        let (n, m) = (gradients.len(), outputs.len());
        return Err(Error::autograd(format!("{n} gradients are given for {m} outputs")).at(site));
    }
    let (_mode, _free) = (set_grad_enabled(options.create_graph), nothing_asked());
    let _span = tracing::debug_span!("backward").entered();
    let begin = trace::begin();
    let _scope = BackwardScope::enter();
    let mut starts = Vec::with_capacity(outputs.len());
    for (i, out) in outputs.iter().enumerate() {
        let given = gradients.get(i).cloned().flatten();
        starts.push((link(&out.edge()), first_gradient(out, given, site)?));
    }
    let found = vec![None; wanted.map_or(0, <[Edge]>::len)];
    let mut graph = EagerGraph { site, wanted, found, options, functions };
    engine::run(&mut graph, starts, chosen.as_ref())?;
    // What one rule hands on to several inputs, or out of the caller's own gradient, may be one tensor.
    let mut found = graph.found;
    for g in &mut found {
        *g = g.take().map(|g| own(g, site)).transpose()?;
    }
    begin.end(site, || What::Backward);
    Ok(found)
}

/// The gradient that backward starts from at an output.
fn first_gradient(out: &Tensor, given: Option<Tensor>, site: CallSite) -> Result<Tensor> {
    out.check_origin().map_err(|e| e.at(site))?;
    if !out.requires_grad() {
        return Err(Error::autograd(format!("{out:?} does not depend on a tensor that requires a gradient")).at(site));
    }
    match given {
        Some(g) => supplied::of_output(g, out, site).map_err(|e| e.at(site)),
        None if out.dtype().is_complex() => {
            Err(Error::autograd(format!("backward of {out:?}, which is complex, needs its gradient"))
                .at(site)
                .help("make a real number of it (`abs`, `real`) or give `BackwardOptions { gradient: Some(..), .. }`"))
        }
        None if out.numel() == 1 => ones_like(out, site),
        None => Err(Error::autograd(format!("backward of {out:?}, which is not a single number, needs its gradient"))
            .at(site)
            .help("reduce it (`sum`, `mean`) or give `BackwardOptions { gradient: Some(..), .. }`")),
    }
}

fn ones_like(t: &Tensor, site: CallSite) -> Result<Tensor> {
    let target = match t.global() {
        Some(g) => super::Target::Global(
            g.placement.clone(),
            g.sbp.map(|s| if s.is_partial() { crate::sbp::Sbp::Broadcast } else { s }),
        ),
        None => super::Target::Local(t.device()),
    };
    let attrs: Attrs = smallvec![AttrValue::from(t.shape()), AttrValue::DType(t.dtype())];
    let one = smallvec![Scalar::Float(1.0)];
    super::Call::new(op!("full")?, &[]).attrs(attrs).runtime(one).target(&target).at(site).run1()
}

fn link(edge: &Edge) -> EdgeTo<Arc<Node>, Arc<LeafSlot>> {
    match edge {
        Edge::None => EdgeTo::Nowhere,
        Edge::Leaf(slot) => EdgeTo::Leaf(slot.clone()),
        Edge::Node(node, output) => EdgeTo::Node(node.clone(), *output),
    }
}

impl BackwardGraph for EagerGraph<'_> {
    type Value = Tensor;
    type Node = Arc<Node>;
    type Leaf = Arc<LeafSlot>;

    fn ordinal(&self, node: &Arc<Node>) -> u64 {
        node.ordinal
    }
    fn outputs(&self, node: &Arc<Node>) -> usize {
        node.n_outputs
    }
    fn edges(&self, node: &Arc<Node>) -> usize {
        node.edges.len()
    }
    fn edge(&self, node: &Arc<Node>, i: usize) -> EdgeTo<Arc<Node>, Arc<LeafSlot>> {
        link(&node.edges[i])
    }
    fn leaf_id(&self, leaf: &Arc<LeafSlot>) -> usize {
        Arc::as_ptr(leaf) as usize
    }

    fn add(&mut self, node: Option<&Arc<Node>>, a: Tensor, b: Tensor) -> Result<Tensor> {
        match node.and_then(|n| below_cast(n)) {
            None => add(&a, &b, self.site),
            Some(wide) => add(&cast(&a, wide, self.site)?, &cast(&b, wide, self.site)?, self.site),
        }
    }

    fn hook_node(&mut self, node: &Arc<Node>, grads: &mut Grads<Tensor>) -> Result<()> {
        let watched: Vec<_> = node.watched.lock().unwrap_or_else(|e| e.into_inner()).clone();
        for (i, slot, retain) in watched {
            if let Some(g) = grads[i].take() {
                let g = run_hooks(&slot, g).map_err(|e| e.at(node.site))?;
                if retain {
                    let old = slot.grad.lock().unwrap_or_else(|e| e.into_inner()).take();
                    let kept = match old {
                        None => own(g.clone(), self.site)?,
                        Some(old) => add(&old, &g, self.site)?,
                    };
                    *slot.grad.lock().unwrap_or_else(|e| e.into_inner()) = Some(kept);
                }
                grads[i] = Some(g);
            }
        }
        for (wanted, found) in self.wanted.unwrap_or_default().iter().zip(&mut self.found) {
            if let Edge::Node(n, i) = wanted
                && Arc::ptr_eq(n, node)
            {
                *found = grads[*i].clone();
            }
        }
        Ok(())
    }

    fn hook_leaf(&mut self, leaf: &Arc<LeafSlot>, grad: Tensor) -> Result<Tensor> {
        run_hooks(leaf, grad)
    }

    fn rule(&mut self, node: &Arc<Node>, grads: Grads<Tensor>) -> Result<Vec<Option<Tensor>>> {
        let result = run_rule(node, &grads, self.functions).map_err(|e| e.at(node.site))?;
        if !self.options.retain_graph && !self.options.create_graph {
            *node.inputs.lock().unwrap_or_else(|e| e.into_inner()) = None;
            node.outputs.lock().unwrap_or_else(|e| e.into_inner()).clear();
        }
        Ok(result)
    }

    fn to_leaf_layout(&mut self, leaf: &Arc<LeafSlot>, mut g: Tensor) -> Result<LeafGrad<Tensor>> {
        // Of a complex gradient a real leaf takes the real part.
        if let Some(ty) = leaf.ty.as_ref().filter(|ty| g.dtype().is_complex() && !ty.dtype.is_complex()) {
            g = cast(&g, ty.dtype, self.site)?;
        }
        let (Some(target), Some(have)) = (&leaf.target, g.global().cloned()) else { return Ok(LeafGrad::Ready(g)) };
        if is_no_sync() || (have.sbp == target.sbp && have.placement == target.placement) {
            return Ok(LeafGrad::Ready(g));
        }
        // Halves lose bits with every addition: P is reduced in f32.
        if g.dtype().is_half() && have.sbp.iter().any(|s| s.partial_op() == Some(ReduceOp::Sum)) {
            g = cast(&g, DType::F32, self.site)?;
        }
        let bytes = g.numel() * g.dtype().size();
        Ok(LeafGrad::NeedsBoxing(g, bytes))
    }

    fn box_one(&mut self, leaf: &Arc<LeafSlot>, g: Tensor) -> Result<Tensor> {
        match &leaf.target {
            Some(target) => to_layout(BoxingReason::Gradient, &g, &target.placement, &target.sbp, self.site),
            None => Ok(g),
        }
    }

    fn box_together(&mut self, all: &[(Arc<LeafSlot>, Tensor)]) -> Result<Vec<Tensor>> {
        let boxings = all.iter().filter_map(|(leaf, g)| {
            let target = leaf.target.as_ref()?;
            let (placement, sbp) = (target.placement.clone(), target.sbp.clone());
            Some(BoxTo { tensor: g.clone(), placement, sbp })
        });
        Ok(to_layouts(BoxingReason::Gradient, &boxings.collect::<Vec<_>>(), self.site)?.into_vec())
    }

    /// Casts to the leaf's dtype and accumulates.
    fn store(&mut self, slot: &Arc<LeafSlot>, mut g: Tensor) -> Result<()> {
        if let Some(ty) = &slot.ty
            && g.dtype() != ty.dtype
        {
            g = cast(&g, ty.dtype, self.site)?;
            // A cast takes no P through rounding: a leaf that is P gets its gradient back in its own layout.
            if let Some(target) = &slot.target
                && !is_no_sync()
                && g.sbp()? != &target.sbp
            {
                g = to_layout(BoxingReason::Gradient, &g, &target.placement, &target.sbp, self.site)?;
            }
        }
        if let Some(wanted) = self.wanted {
            for (wanted, found) in wanted.iter().zip(&mut self.found) {
                if let Edge::Leaf(s) = wanted
                    && Arc::ptr_eq(s, slot)
                {
                    *found = Some(g.clone());
                }
            }
            return Ok(());
        }
        let old = slot.grad.lock().unwrap_or_else(|e| e.into_inner()).take();
        let old = old.map_or_else(|| gradient_before(slot, &g), |old| Ok(Some(old)))?;
        let mut new = match old {
            None => own(g, self.site)?,
            Some(old) => add(&old, &g, self.site)?,
        };
        if let Some(target) = &slot.target
            && !is_no_sync()
            && new.sbp()? != &target.sbp
        {
            new = to_layout(BoxingReason::Gradient, &new, &target.placement, &target.sbp, self.site)?;
        }
        new.set_memory_use(MemoryUse::Gradient);
        *slot.grad.lock().unwrap_or_else(|e| e.into_inner()) = Some(new.clone());
        hooks_of(slot, HookMoment::Accumulated).iter().try_for_each(|h| (h.call)(&new).map(drop))
    }
}

/// A gradient that a program may keep and change: what arrives may be the gradient of another leaf too, or a view of it.
/// Global tensors are copied on write, so a handle of its own is enough.
fn own(g: Tensor, site: CallSite) -> Result<Tensor> {
    if g.is_its_own() {
        return Ok(g);
    }
    match g.is_global() {
        true => Ok(g.shadow()),
        false => Ok(EagerEmit::new("backward", site).run("copy", &[Some(&g)], &[])?[0].clone()),
    }
}

/// Hooks of a moment, in the order in which they were registered; one that is called may remove itself.
fn hooks_of(slot: &LeafSlot, moment: HookMoment) -> Vec<Hook> {
    let hooks = slot.hooks.lock().unwrap_or_else(|e| e.into_inner());
    hooks.iter().filter(|h| h.moment == moment).cloned().collect()
}

fn run_hooks(slot: &LeafSlot, mut g: Tensor) -> Result<Tensor> {
    for h in hooks_of(slot, HookMoment::Complete) {
        // A hook may write into it.
        g = own(g, h.site)?;
        if let Some(new) = (h.call)(&g)? {
            let new = in_capture(new, h.site)?;
            supplied::check_replaced(&new, &g, h.site)?;
            g = new;
        }
    }
    Ok(g)
}

fn add(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    Ok(EagerEmit::new("backward", site).run("add", &[Some(a), Some(b)], &[])?[0].clone())
}
