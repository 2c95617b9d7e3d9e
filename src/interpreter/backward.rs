//! Backward: nodes in falling order of their creation, never in the order results become ready, so every rank issues the
//! same communication in the same order (I9).

use super::emit::EagerEmit;
use super::grad_ctx::run_rule;
use super::layout::{BoxTo, to_layout, to_layouts};
use super::policy::Cause;
use super::receipts::BackwardScope;
use crate::context::{is_no_sync, nothing_asked, set_grad_enabled};
use crate::error::{CallSite, Error, Result};
use crate::op;
use crate::ops::{AttrValue, Attrs};
use crate::sbp::ReduceOp;
use crate::tensor::{Edge, LeafSlot, Node, Tensor};
use oflow_kernels::{DType, Scalar};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What `backward` does besides the usual.
#[derive(Clone, Debug, Default)]
pub struct BackwardOptions {
    /// Gradient of the output; without it the output must be a single number, and 1 is taken.
    pub gradient: Option<Tensor>,
    /// Keeps what was saved, for another backward through the same graph.
    pub retain_graph: bool,
    /// Records the backward pass itself, for second derivatives.
    pub create_graph: bool,
}

type Pending = BTreeMap<u64, (Arc<Node>, SmallVec<[Option<Tensor>; 2]>)>;

struct Engine<'a> {
    site: CallSite,
    pending: Pending,
    /// How many contributions each leaf still waits for, by slot address; with the sum so far.
    leaves: Vec<(Arc<LeafSlot>, usize, Option<Tensor>)>,
    /// Slots whose gradient is handed back instead of accumulated.
    wanted: &'a [Edge],
    found: Vec<Option<Tensor>>,
    options: &'a BackwardOptions,
    /// Complete gradients of small leaves on their way to their layouts, which go together; in order of completion, the
    /// same on every rank.
    bucket: Vec<(Arc<LeafSlot>, BoxTo)>,
    bucket_bytes: usize,
}

/// Gradients of at most this many bytes are boxed together: alone, each would be mostly latency.
const SMALL: usize = 64 << 10;
/// Gradients that wait for others until they are so many bytes.
const BUCKET: usize = 1 << 20;

/// Runs backward from `output`, accumulating into the leaves' `grad()`.
pub fn backward(output: &Tensor, options: &BackwardOptions, site: CallSite) -> Result<()> {
    run(std::slice::from_ref(output), std::slice::from_ref(&options.gradient), &[], options, site).map(drop)
}

/// Gradients of `outputs` with respect to `inputs`, without touching any `grad()`.
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
    site: CallSite,
) -> Result<Vec<Option<Tensor>>> {
    let edges: Vec<Edge> = inputs.iter().map(|t| t.edge()).collect();
    if let Some(i) = edges.iter().position(|e| !e.is_some()) {
        return Err(Error::autograd(format!("{:?} does not require a gradient", inputs[i]))
            .at(site)
            .help("call `requires_grad_(true)` on it before it is used"));
    }
    run(outputs, gradients, &edges, options, site)
}

fn run(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    wanted: &[Edge],
    options: &BackwardOptions,
    site: CallSite,
) -> Result<Vec<Option<Tensor>>> {
    let (_mode, _free) = (set_grad_enabled(options.create_graph), nothing_asked());
    let _span = tracing::debug_span!("backward").entered();
    let _scope = BackwardScope::enter();
    let mut e = Engine {
        site,
        pending: Pending::new(),
        leaves: vec![],
        wanted,
        found: vec![None; wanted.len()],
        options,
        bucket: vec![],
        bucket_bytes: 0,
    };
    e.count(outputs);
    for (i, out) in outputs.iter().enumerate() {
        out.check_origin().map_err(|e| e.at(site))?;
        if !out.requires_grad() {
            return Err(
                Error::autograd(format!("{out:?} does not depend on a tensor that requires a gradient")).at(site)
            );
        }
        let g = match gradients.get(i).cloned().flatten() {
            Some(g) if g.shape() == out.shape() => {
                g.check_origin().map_err(|e| e.at(site))?;
                g
            }
            Some(g) => {
                return Err(Error::autograd(format!("the gradient is {g:?}, the output {out:?}")).at(site));
            }
            None if out.numel() == 1 => ones_like(out, site)?,
            None => {
                return Err(Error::autograd(format!(
                    "backward of {out:?}, which is not a single number, needs its gradient"
                ))
                .at(site)
                .help("reduce it (`sum`, `mean`) or give `BackwardOptions { gradient: Some(..), .. }`"));
            }
        };
        e.send(&out.edge(), g)?;
    }
    while let Some((_, (node, grads))) = e.pending.pop_last() {
        e.node(&node, grads)?;
    }
    e.flush()?;
    Ok(e.found)
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

impl Engine<'_> {
    /// Counts the edges that lead into each leaf, so that its gradient is boxed once, when the last has arrived.
    fn count(&mut self, outputs: &[Tensor]) {
        let mut seen: BTreeMap<u64, Arc<Node>> = BTreeMap::new();
        let mut stack: Vec<Edge> = outputs.iter().map(|t| t.edge()).collect();
        while let Some(edge) = stack.pop() {
            match edge {
                Edge::None => {}
                Edge::Leaf(slot) => match self.leaves.iter_mut().find(|(s, ..)| Arc::ptr_eq(s, &slot)) {
                    Some((_, n, _)) => *n += 1,
                    None => self.leaves.push((slot, 1, None)),
                },
                Edge::Node(n, _) => {
                    if seen.insert(n.ordinal, n.clone()).is_none() {
                        stack.extend(n.edges.iter().cloned());
                    }
                }
            }
        }
    }

    fn node(&mut self, node: &Arc<Node>, mut grads: SmallVec<[Option<Tensor>; 2]>) -> Result<()> {
        let watched: Vec<_> = node.watched.lock().unwrap_or_else(|e| e.into_inner()).clone();
        for (i, slot, retain) in watched {
            if let Some(g) = grads[i].take() {
                let g = run_hooks(&slot, g)?;
                if retain {
                    *slot.grad.lock().unwrap_or_else(|e| e.into_inner()) = Some(g.clone());
                }
                grads[i] = Some(g);
            }
        }
        for (k, w) in self.wanted.iter().enumerate() {
            if let Edge::Node(n, i) = w
                && Arc::ptr_eq(n, node)
            {
                self.found[k] = grads[*i].clone();
            }
        }
        let result = run_rule(node, &grads).map_err(|e| e.at(node.site))?;
        if !self.options.retain_graph && !self.options.create_graph {
            *node.inputs.lock().unwrap_or_else(|e| e.into_inner()) = None;
            node.outputs.lock().unwrap_or_else(|e| e.into_inner()).clear();
        }
        drop(grads);
        for (edge, g) in node.edges.iter().zip(result) {
            match g {
                Some(g) => self.send(edge, g)?,
                // A leaf that gets nothing along this edge must not be waited for.
                None => self.arrived(edge, None)?,
            }
        }
        Ok(())
    }

    fn send(&mut self, edge: &Edge, g: Tensor) -> Result<()> {
        match edge {
            Edge::None => Ok(()),
            Edge::Leaf(_) => self.arrived(edge, Some(g)),
            Edge::Node(n, i) => {
                let slot = self.pending.entry(n.ordinal).or_insert_with(|| (n.clone(), smallvec![None; n.n_outputs]));
                let old = slot.1[*i].take();
                slot.1[*i] = Some(match (old, below_cast(n)) {
                    (None, _) => g,
                    (Some(old), None) => add(&old, &g, self.site)?,
                    (Some(old), Some(wide)) => {
                        add(&cast(&old, wide, self.site)?, &cast(&g, wide, self.site)?, self.site)?
                    }
                });
                Ok(())
            }
        }
    }

    fn arrived(&mut self, edge: &Edge, g: Option<Tensor>) -> Result<()> {
        let Edge::Leaf(slot) = edge else { return Ok(()) };
        let Some(k) = self.leaves.iter().position(|(s, ..)| Arc::ptr_eq(s, slot)) else { return Ok(()) };
        if let Some(g) = g {
            let old = self.leaves[k].2.take();
            self.leaves[k].2 = Some(match old {
                None => g,
                Some(old) => add(&old, &g, self.site)?,
            });
        }
        self.leaves[k].1 -= 1;
        if self.leaves[k].1 == 0
            && let Some(sum) = self.leaves[k].2.take()
        {
            self.finish(slot, sum)?;
        }
        Ok(())
    }

    /// A leaf's gradient is complete: it is boxed to the leaf's layout, at once or with others.
    fn finish(&mut self, slot: &Arc<LeafSlot>, g: Tensor) -> Result<()> {
        let mut g = run_hooks(slot, g)?;
        if let Some(target) = &slot.target
            && !is_no_sync()
            && let Some(have) = g.global()
            && (have.sbp != target.sbp || have.placement != target.placement)
        {
            // Halves lose bits with every addition: P is reduced in f32.
            let wide = g.dtype().is_half() && have.sbp.iter().any(|s| s.partial_op() == Some(ReduceOp::Sum));
            if wide {
                g = cast(&g, DType::F32, self.site)?;
            }
            let bytes = g.numel() * g.dtype().size();
            if bytes <= SMALL {
                let (placement, sbp) = (target.placement.clone(), target.sbp.clone());
                self.bucket.push((slot.clone(), BoxTo { tensor: g, placement, sbp }));
                self.bucket_bytes += bytes;
                return if self.bucket_bytes < BUCKET { Ok(()) } else { self.flush() };
            }
            g = to_layout(Cause::Gradient, &g, &target.placement, &target.sbp, self.site)?;
        }
        self.store(slot, g)
    }

    /// Boxes the gradients that wait for each other.
    fn flush(&mut self) -> Result<()> {
        self.bucket_bytes = 0;
        let (slots, boxings): (Vec<_>, Vec<_>) = std::mem::take(&mut self.bucket).into_iter().unzip();
        let boxed = to_layouts(Cause::Gradient, &boxings, self.site)?;
        slots.iter().zip(boxed).try_for_each(|(slot, g)| self.store(slot, g))
    }

    /// A leaf's gradient has its layout: cast to the leaf's dtype, accumulated.
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
                g = to_layout(Cause::Gradient, &g, &target.placement, &target.sbp, self.site)?;
            }
        }
        if !self.wanted.is_empty() {
            for (k, w) in self.wanted.iter().enumerate() {
                if let Edge::Leaf(s) = w
                    && Arc::ptr_eq(s, slot)
                {
                    self.found[k] = Some(g.clone());
                }
            }
            return Ok(());
        }
        let old = slot.grad.lock().unwrap_or_else(|e| e.into_inner()).take();
        let mut new = match old {
            None => g,
            Some(old) => add(&old, &g, self.site)?,
        };
        if let Some(target) = &slot.target
            && !is_no_sync()
            && new.sbp()? != &target.sbp
        {
            new = to_layout(Cause::Gradient, &new, &target.placement, &target.sbp, self.site)?;
        }
        *slot.grad.lock().unwrap_or_else(|e| e.into_inner()) = Some(new);
        Ok(())
    }
}

/// The dtype in which contributions to the result of a cast are added up: what was cast from f32 to a half (by autocast,
/// once for all its uses) has a gradient in f32, and it must not lose bits with every use.
pub(super) fn below_cast(node: &Node) -> Option<DType> {
    let from = node.input_types.first()?.as_ref()?.dtype;
    let to = node.attrs.first().filter(|_| node.op.name() == "cast")?;
    matches!(to, AttrValue::DType(d) if d.is_half() && matches!(from, DType::F32 | DType::F64)).then_some(from)
}

fn run_hooks(slot: &LeafSlot, mut g: Tensor) -> Result<Tensor> {
    let hooks = slot.hooks.lock().unwrap_or_else(|e| e.into_inner()).clone();
    for h in hooks {
        if let Some(new) = h(&g)? {
            g = new;
        }
    }
    Ok(g)
}

fn add(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    Ok(EagerEmit::new("backward", site).run("add", &[Some(a), Some(b)], &[])?[0].clone())
}

fn cast(t: &Tensor, dtype: DType, site: CallSite) -> Result<Tensor> {
    if t.dtype() == dtype {
        return Ok(t.clone());
    }
    Ok(EagerEmit::new("backward", site).run("cast", &[Some(t)], &[("dtype", dtype.into())])?[0].clone())
}
