//! Activation checkpointing: the calls of a scope are listed, what they save for backward is dropped, and backward runs the listed calls
//! once more.
//!
//! The list is a [`Program`](crate::program::Program): ops, attributes with the drawn seeds, the casts of autocast as calls of their own,
//! the chosen signatures, boxings. So nothing of the closure is kept, the second run draws the same numbers and makes the same bits,
//! whatever modes are in force then.
//!
//! **Values** are numbered when a listed call makes them. The number stands on the handle, and on handles of the same data without edge.
//! It counts as long as the version is the one that the value had. What has no number that counts (inputs of the scope, parameters,
//! what was written in place) is *outside*: the segment keeps it, as a recorded call would. Writes in place are not listed, so running
//! statistics are written once.
//!
//! **Boxed inputs.** The copy to which an input is boxed is a value. It is made again too, unless it is the copy of a tensor from outside:
//! then a node that saves it keeps it.
//!
//! **Nesting.** A call is listed in every segment in force. What is outside of the inner segment is kept by the outer one that made it, if any.
//!
//! **The second run** takes place when backward first asks for a value. It runs the calls that lead to values that were saved, in the
//! order in which they were listed, the same on every rank. Each has the plan that its signature says, as in the run of a graph; nothing is
//! recorded. A value is held until all nodes that saved it are done. A graph that captures the second run marks its calls.

use super::call::{Call, Outputs};
use super::layout::box_for;
use super::node::{planned, run_call};
use super::observers::{Issued, Level, Observer, Scope, number, observe, remade_outside};
use super::program_builder::{ProgramBuilder, Recomputing, type_of};
use super::saved::restore;
use crate::context::{Moments, RankCtx, grad_enabled, here};
use crate::error::{CallSite, Error, Result};
use crate::ops::OpUse;
use crate::program::{Node, OutsideKind, ValueId, Work};
use crate::tensor::{Edge, Packed, ReshardKey, Saved, SavedData, Tensor, Unpack};
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// Until the guard is dropped, calls keep nothing for backward that calls in the scope have made. When backward needs a value of the
/// scope it runs these calls once more, in the modes in which they ran and with the same random numbers. So the scope needs memory for
/// its inputs and results only, and its time once more. Scopes nest.
///
/// [`nn::checkpoint`](crate::nn::checkpoint) is the function for programs; this is for other languages.
#[must_use = "the scope ends when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct RecomputeGuard {
    _scope: Option<Scope>,
}

crate::context::runs_closures!(RecomputeGuard);

/// Begins a scope whose calls backward runs again. Where nothing is recorded for backward it changes nothing.
pub fn recompute() -> RecomputeGuard {
    RecomputeGuard { _scope: grad_enabled().then(|| observe(Rc::new(Recompute(Arc::default())))) }
}

/// The calls of a scope.
#[derive(Default)]
struct Segment(Mutex<Listed>);

/// Lists the calls of a scope, and saves in their place the numbers of the values that they make.
struct Recompute(Arc<Segment>);

impl Observer for Recompute {
    fn moments(&self) -> Moments {
        Moments::ISSUED.and(Moments::SAVED)
    }
    fn issued(&self, at: Level, call: &Call<'_>, outs: &[Tensor], issued: &Issued<'_>) -> Result<()> {
        lock(&self.0.0).call(at, call, outs, issued)
    }
    fn saved(&self, tensor: &Tensor) -> Result<Option<Saved>> {
        Ok(self.0.slot(tensor).map(|slot| in_slot(slot, tensor, tensor.edge())))
    }
    fn remade(&self, tensor: &Tensor) -> Option<Saved> {
        self.0.slot(tensor).map(|slot| in_slot(slot, tensor, Edge::None))
    }
}

/// A tensor that is made again when it is needed.
fn in_slot(slot: Arc<Slot>, t: &Tensor, edge: Edge) -> Saved {
    static UNPACK: OnceLock<Unpack> = OnceLock::new();
    let unpack = UNPACK.get_or_init(|| {
        Arc::new(|p| {
            let slot = p.downcast_ref::<Arc<Slot>>();
            slot.ok_or_else(|| Error::autograd("a packed tensor of another scope"))?.value()
        })
    });
    let by = "checkpoint (run again)";
    let packed = Packed { value: Box::new(slot), unpack: unpack.clone(), ty: t.type_ref(), edge, by };
    Saved { kept: SavedData::Packed(Box::new(packed)), version: 0 }
}

#[derive(Default)]
struct Listed {
    /// The calls. Random ones state the numbers that they drew. The program returns the values that nodes have saved.
    builder: ProgramBuilder,
    /// The tensor of each value from outside. Without its edge, which could lead to a node that holds this segment; but a leaf is kept itself.
    outside: Vec<Saved>,
    /// Boxed copies of tensors from outside. A node that saves one keeps it.
    copies: BTreeSet<ValueId>,
    /// Where the values are put that nodes have saved.
    slots: BTreeMap<ValueId, Weak<Slot>>,
    /// Keep the libraries of the ops loaded.
    used: Vec<OpUse>,
}

/// A value that nodes have saved. Empty until the second run.
struct Slot {
    segment: Arc<Segment>,
    number: ValueId,
    value: Mutex<Option<Tensor>>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl Listed {
    /// The value that a tensor is, if it is as a listed call has made it.
    fn value_of(&self, t: &Tensor) -> Option<ValueId> {
        self.builder.value_of(t).filter(|_| t.gathered_from().is_none())
    }

    /// Lists a call.
    fn call(&mut self, at: Level, call: &Call<'_>, outs: &[Tensor], issued: &Issued<'_>) -> Result<()> {
        let mut inputs: SmallVec<[Option<ValueId>; 4]> = SmallVec::new();
        for (i, t) in call.inputs.iter().enumerate() {
            inputs.push(match (*t, issued.boxed.get(i).and_then(Option::as_ref)) {
                (None, _) => None,
                (Some(t), None) => Some(self.input(t, at, call.site)?),
                (Some(t), Some(copy)) => Some(self.boxed_input(t, copy, at, call)?),
            });
        }
        self.used.extend(call.op.hold());
        self.builder.push_call(call, issued, None, inputs, smallvec![], outs)
    }

    /// The value of an input. One that no listed call has made is kept.
    fn input(&mut self, t: &Tensor, level: Level, site: CallSite) -> Result<ValueId> {
        if let Some(value) = self.value_of(t) {
            return Ok(value);
        }
        let is_kept = |saved: &Saved| match &saved.kept {
            SavedData::Tensor(k) => k.same(t) && saved.version == t.version(),
            _ => false,
        };
        if let Some(i) = self.outside.iter().position(is_kept) {
            return Ok(self.builder.program.outside[i].value);
        }
        let value = self.builder.add_outside(type_of(t)?, OutsideKind::Constant, String::new(), site);
        self.outside.push(remade_outside(level, t).unwrap_or_else(|| kept_itself(t)));
        Ok(value)
    }

    /// The value of the copy to which an input was boxed, for this call or for one before.
    fn boxed_input(&mut self, t: &Tensor, copy: &Tensor, level: Level, call: &Call<'_>) -> Result<ValueId> {
        if copy.stamp() == 0 {
            number(copy);
        }
        if let Some(value) = self.value_of(copy) {
            return Ok(value);
        }
        let is_listed = self.value_of(t).is_some_and(|v| !self.copies.contains(&v));
        let from = self.input(t, level, call.site)?;
        let to = self.builder.push_boxing(call.op.name(), from, copy, call.site)?;
        if !is_listed {
            self.copies.insert(to);
        }
        Ok(to)
    }

    /// The tensor of a value that is read.
    fn read(&self, values: &mut [Option<Tensor>], v: ValueId, site: CallSite) -> Result<Tensor> {
        if let Some(t) = &values[v.index()] {
            return Ok(t.clone());
        }
        let place = self.builder.program.outside.binary_search_by_key(&v, |o| o.value);
        let saved =
            place.ok().and_then(|i| self.outside.get(i)).ok_or_else(|| Error::autograd("a value is missing"))?;
        let changed = || {
            Error::autograd("a tensor that a checkpointed call took was changed in place before backward")
                .at(site)
                .help("use the op that returns a new tensor, or change it after backward")
        };
        let t = restore(saved, site)?.ok_or_else(changed)?;
        // What was gathered lives for one call.
        if t.gathered_from().is_none() {
            values[v.index()] = Some(t.clone());
        }
        Ok(t)
    }

    /// Runs the calls that lead to saved values, and puts these into their slots.
    fn run(&self) -> Result<()> {
        let (ctx, program) = (here(), &self.builder.program);
        let _again = Recomputing::enter();
        let mut values: Vec<Option<Tensor>> = vec![None; program.values.len()];
        for (n, ends) in program.leading_to(&program.outputs) {
            let node = &program.nodes[n];
            let mut inputs: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
            for v in &node.inputs {
                inputs.push(v.map(|v| self.read(&mut values, v, node.site)).transpose()?);
            }
            let outs = self.step(&ctx, node, &inputs).map_err(|e| e.at(node.site))?;
            drop(inputs);
            for (v, out) in node.outputs.iter().zip(outs) {
                if let Some(slot) = self.slots.get(v).and_then(Weak::upgrade) {
                    *lock(&slot.value) = Some(out.value());
                }
                values[v.index()] = Some(out);
            }
            for ended in ends {
                values[ended.index()] = None;
            }
        }
        Ok(())
    }

    fn step(&self, ctx: &RankCtx, node: &Node, inputs: &[Option<Tensor>]) -> Result<Outputs> {
        let program = &self.builder.program;
        let refs: SmallVec<[Option<&Tensor>; 4]> = inputs.iter().map(Option::as_ref).collect();
        match &node.work {
            Work::Call(call) => {
                let plan = planned(ctx, program, node)?;
                run_call(ctx, (node, call), plan.as_deref(), call.runtime.clone(), &refs, None)
            }
            Work::Box(op) => {
                let to = node.outputs.first().and_then(|v| program.ty(*v).global());
                let (Some(Some(t)), Some(to)) = (refs.first(), to) else {
                    return Err(Error::autograd("a boxed copy of nothing"));
                };
                // A leaf may remember its copy.
                if let Some(found) = t.resharded(ReshardKey::Boxed(to.id())) {
                    return Ok(smallvec![found]);
                }
                Ok(smallvec![box_for(op, t, to, node.site)?])
            }
            Work::Host(_) | Work::Repeat(_) => Ok(Outputs::new()),
        }
    }
}

impl Segment {
    /// Where a value is put that a node saves; none of a tensor that no listed call has made.
    fn slot(self: &Arc<Segment>, t: &Tensor) -> Option<Arc<Slot>> {
        let mut listed = lock(&self.0);
        let number = listed.value_of(t).filter(|v| !listed.copies.contains(v))?;
        let known = listed.slots.get(&number);
        if let Some(slot) = known.and_then(Weak::upgrade) {
            return Some(slot);
        }
        if known.is_none() {
            listed.builder.program.outputs.push(number);
        }
        let slot = Arc::new(Slot { segment: self.clone(), number, value: Mutex::default() });
        listed.slots.insert(number, Arc::downgrade(&slot));
        Some(slot)
    }
}

impl Slot {
    /// The value, made by the second run of the scope unless that has taken place.
    fn value(&self) -> Result<Tensor> {
        if let Some(t) = &*lock(&self.value) {
            return Ok(t.clone());
        }
        lock(&self.segment.0).run()?;
        lock(&self.value).clone().ok_or_else(|| Error::autograd(format!("value {} was not made again", self.number)))
    }
}

/// Saves a tensor that neither a segment nor an outer one has made.
fn kept_itself(t: &Tensor) -> Saved {
    if let Some(source) = t.gathered_from() {
        return Saved { kept: SavedData::Gathered(source.clone()), version: source.version() };
    }
    let kept = if matches!(t.edge(), Edge::Leaf(_)) { t.clone() } else { t.value() };
    Saved { version: kept.version(), kept: SavedData::Tensor(kept) }
}
