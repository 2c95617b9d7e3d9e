//! Activation checkpointing: the calls of a scope are listed, what they save for backward is dropped, and backward runs the listed calls
//! once more.
//!
//! The list has calls, not the program: op, attributes with the drawn seeds, the casts of autocast as calls of their own, the layouts
//! that were asked for. So nothing of the program is kept, the second run draws the same numbers and makes the same bits, whatever modes
//! are in force then.
//!
//! **Values** are numbered when a listed call makes them. The number stands on the handle, and on handles of the same data without edge.
//! It counts as long as the version is the one that the value had. What has no number that counts (inputs of the scope, parameters,
//! what was written in place) is *outside*: the segment keeps it, as a recorded call would. Writes in place are not listed, so running
//! statistics are written once.
//!
//! **Nesting.** A call is listed in every segment in force. What is outside of the inner segment is kept by the outer one that made it, if any.
//!
//! **The second run** takes place when backward first asks for a value. It runs the calls that lead to values that were saved, in the
//! order in which they were listed, the same on every rank. The calls have the keys, so the plans, that they had: their inputs require
//! gradients as before. Their nodes are dropped at once. A value is held until all nodes that saved it are done.

use super::boxing::BoxingReason;
use super::call::Call;
use super::layout::to_layout;
use super::observers::{Level, Observer, Scope, observe, remade_outside};
use super::saved::restore;
use crate::context::{
    AskedSbp, Moments, asked_again, asked_sbp, grad_enabled, keeping, no_grad, set_grad_enabled, set_keeping,
};
use crate::error::{CallSite, Error, Result};
use crate::ops::{Attrs, Op, OpUse, RuntimeAttrs};
use crate::plan::Target;
use crate::tensor::{Edge, GlobalRef, LeafSlot, Packed, ReshardKey, Saved, SavedData, Tensor, Unpack};
use smallvec::SmallVec;
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
    fn issued(&self, at: Level, call: &Call<'_>, outs: &[Tensor]) -> Result<()> {
        let axes = outs.first().and_then(Tensor::global).map(|g| g.placement.axes());
        let what = What::Call(Box::new(ListedCall {
            op: call.op,
            attrs: call.attrs.clone(),
            runtime: call.runtime.clone(),
            target: call.target.cloned(),
            skip_unshard: call.skip_unshard,
            grad: grad_enabled(),
            keep: keeping(),
            asked: axes.filter(|_| call.op.layout.is_none()).and_then(|axes| asked_sbp(call.op, axes)),
            _used: call.op.hold(),
        }));
        self.0.push(at, what, call.inputs, outs, call.site)
    }
    fn boxed(&self, at: Level, input: &Tensor, out: &Tensor, to: &GlobalRef, site: CallSite) -> Result<()> {
        // A tensor from outside of the segment is kept, and boxed again by the call that reads it.
        if lock(&self.0.0).number_of(input).is_none() {
            return Ok(());
        }
        self.0.push(at, What::Boxed(to.clone()), &[Some(input)], std::slice::from_ref(out), site)
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
    entries: Vec<Entry>,
    /// The version of each value when it was made.
    versions: BTreeMap<u64, u64>,
    outside: Vec<Outside>,
    /// Values that nodes have saved, and where they are put.
    slots: BTreeMap<u64, Weak<Slot>>,
    saved: BTreeSet<u64>,
}

/// A listed call.
struct Entry {
    what: What,
    inputs: SmallVec<[In; 4]>,
    outs: SmallVec<[u64; 2]>,
    site: CallSite,
}

enum What {
    Call(Box<ListedCall>),
    /// The boxed copy of an input of a call.
    Boxed(GlobalRef),
}

struct ListedCall {
    op: &'static Op,
    attrs: Attrs,
    runtime: RuntimeAttrs,
    target: Option<Target>,
    skip_unshard: bool,
    grad: bool,
    keep: bool,
    asked: Option<AskedSbp>,
    _used: Option<OpUse>,
}

#[derive(Clone, Copy)]
enum In {
    Absent,
    /// A value, and whether it required a gradient there: a detached one does not.
    Value(u64, bool),
    Outside(usize),
}

/// A tensor that no listed call has made.
struct Outside {
    /// Without its edge, which could lead to a node that holds this segment; but a leaf is kept itself.
    kept: Saved,
    requires_grad: bool,
}

/// A value that nodes have saved. Empty until the second run.
struct Slot {
    segment: Arc<Segment>,
    number: u64,
    value: Mutex<Option<Tensor>>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl Listed {
    /// The number of a value that is as a listed call has made it.
    fn number_of(&self, t: &Tensor) -> Option<u64> {
        let number = t.stamp();
        if number == 0 || t.gathered_from().is_some() {
            return None;
        }
        (self.versions.get(&number) == Some(&t.version())).then_some(number)
    }

    fn input(&mut self, t: &Tensor, level: Level) -> In {
        if let Some(number) = self.number_of(t) {
            return In::Value(number, t.requires_grad());
        }
        let kept = |o: &Outside| match &o.kept.kept {
            SavedData::Tensor(k) => k.same(t) && o.kept.version == t.version(),
            _ => false,
        };
        if let Some(i) = self.outside.iter().position(kept) {
            return In::Outside(i);
        }
        self.outside.push(Outside {
            kept: remade_outside(level, t).unwrap_or_else(|| kept_itself(t)),
            requires_grad: t.requires_grad(),
        });
        In::Outside(self.outside.len() - 1)
    }
}

impl Segment {
    /// Lists a call.
    fn push(
        &self,
        level: Level,
        what: What,
        inputs: &[Option<&Tensor>],
        outs: &[Tensor],
        site: CallSite,
    ) -> Result<()> {
        let mut listed = lock(&self.0);
        let mut ins = SmallVec::new();
        for t in inputs {
            ins.push(match t {
                Some(t) => listed.input(t, level),
                None => In::Absent,
            });
        }
        for out in outs {
            listed.versions.insert(out.stamp(), out.version());
        }
        listed.entries.push(Entry { what, inputs: ins, outs: outs.iter().map(Tensor::stamp).collect(), site });
        Ok(())
    }

    /// Where a value is put that a node saves; none of a tensor that no listed call has made.
    fn slot(self: &Arc<Segment>, t: &Tensor) -> Option<Arc<Slot>> {
        let mut listed = lock(&self.0);
        let number = listed.number_of(t)?;
        if let Some(slot) = listed.slots.get(&number).and_then(Weak::upgrade) {
            return Some(slot);
        }
        let slot = Arc::new(Slot { segment: self.clone(), number, value: Mutex::default() });
        listed.slots.insert(number, Arc::downgrade(&slot));
        listed.saved.insert(number);
        Some(slot)
    }

    /// Runs the calls that lead to saved values, and puts these into their slots.
    fn run(&self) -> Result<()> {
        let listed = lock(&self.0);
        // How often each value is still read, in the calls that are needed.
        let mut reads: BTreeMap<u64, usize> = BTreeMap::new();
        let mut needed = vec![false; listed.entries.len()];
        for (needed, entry) in needed.iter_mut().zip(&listed.entries).rev() {
            *needed = entry.outs.iter().any(|n| listed.saved.contains(n) || reads.contains_key(n));
            if *needed {
                entry.inputs.iter().for_each(|i| {
                    if let In::Value(n, _) = i {
                        *reads.entry(*n).or_default() += 1;
                    }
                });
            }
        }
        let leaf = Arc::new(LeafSlot::default());
        let mut made: BTreeMap<u64, Tensor> = BTreeMap::new();
        let mut outside: Vec<Option<Tensor>> = vec![None; listed.outside.len()];
        for (_, entry) in needed.iter().zip(&listed.entries).filter(|(needed, _)| **needed) {
            let mut inputs: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
            for i in &entry.inputs {
                inputs.push(match i {
                    In::Absent => None,
                    In::Value(n, grad) => {
                        let t = made.get(n).ok_or_else(|| Error::autograd("a value is missing"))?;
                        Some(if t.requires_grad() == *grad { t.clone() } else { as_used(t, *grad, &leaf) })
                    }
                    In::Outside(k) => Some(match &outside[*k] {
                        Some(t) => t.clone(),
                        None => {
                            let t = listed.outside[*k].restore(&leaf, entry.site)?;
                            // What was gathered lives for one call.
                            if t.gathered_from().is_none() {
                                outside[*k] = Some(t.clone());
                            }
                            t
                        }
                    }),
                });
            }
            let outs = entry.run(&inputs)?;
            drop(inputs);
            for (n, out) in entry.outs.iter().zip(outs) {
                if let Some(slot) = listed.slots.get(n).and_then(Weak::upgrade) {
                    *lock(&slot.value) = Some(out.value());
                }
                if reads.contains_key(n) {
                    // The calls after it see that it requires a gradient; the node goes.
                    if out.requires_grad() {
                        out.set_edge(Edge::Leaf(leaf.clone()));
                    }
                    made.insert(*n, out);
                }
            }
            for i in &entry.inputs {
                if let In::Value(n, _) = i
                    && let Some(left) = reads.get_mut(n)
                {
                    *left -= 1;
                    if *left == 0 {
                        made.remove(n);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The same value, which requires a gradient or not. The leaf stands for where that would go.
fn as_used(t: &Tensor, grad: bool, leaf: &Arc<LeafSlot>) -> Tensor {
    let t = t.value();
    if grad {
        t.set_edge(Edge::Leaf(leaf.clone()));
    }
    t
}

impl Outside {
    fn restore(&self, leaf: &Arc<LeafSlot>, site: CallSite) -> Result<Tensor> {
        let changed = || {
            Error::autograd("a tensor that a checkpointed call took was changed in place before backward")
                .at(site)
                .help("use the op that returns a new tensor, or change it after backward")
        };
        let t = restore(&self.kept, site)?.ok_or_else(changed)?;
        Ok(if self.requires_grad && !t.requires_grad() { as_used(&t, true, leaf) } else { t })
    }
}

impl Entry {
    fn run(&self, inputs: &[Option<Tensor>]) -> Result<SmallVec<[Tensor; 2]>> {
        let refs: SmallVec<[Option<&Tensor>; 4]> = inputs.iter().map(Option::as_ref).collect();
        match &self.what {
            What::Call(c) => {
                let _modes = (set_grad_enabled(c.grad), set_keeping(c.keep), c.asked.as_ref().map(asked_again));
                let mut call = Call::of(c.op, &refs, c.attrs.clone(), c.runtime.clone(), self.site);
                call.skip_unshard = c.skip_unshard;
                call.target(c.target.as_ref()).run()
            }
            What::Boxed(to) => {
                let Some(Some(t)) = inputs.first() else { return Err(Error::autograd("a boxed copy of nothing")) };
                let key = ReshardKey::Boxed(to.id());
                if let Some(found) = t.resharded(key) {
                    return Ok(SmallVec::from_iter([found]));
                }
                let out = {
                    let _unrecorded = no_grad();
                    to_layout(BoxingReason::Needed("checkpoint"), t, &to.placement, &to.sbp, self.site)?
                };
                out.set_edge(t.edge());
                t.cache_resharded(key, &out);
                Ok(SmallVec::from_iter([out]))
            }
        }
    }
}

impl Slot {
    /// The value, made by the second run of the scope unless that has taken place.
    fn value(&self) -> Result<Tensor> {
        if let Some(t) = &*lock(&self.value) {
            return Ok(t.clone());
        }
        self.segment.run()?;
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
