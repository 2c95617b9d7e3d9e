//! Activation checkpointing: the calls of a scope are listed, what they save for backward is dropped, and backward runs the listed calls
//! once more.
//!
//! The list has calls, not the program: op, attributes with the drawn seeds, the casts of autocast as calls of their own, the layouts
//! that were asked for. So nothing of the program is kept, the second run draws the same numbers and makes the same bits, whatever modes
//! are in force then.
//!
//! **Values** are numbered when a listed call makes them. The number stands on the handle, and on handles of the same data without edge.
//! It counts as long as the version is the one that the value had. What has no number that counts (inputs of the scope, parameters,
//! what was written in place) is *outside*: the tape keeps it, as a recorded call would. Writes in place are not listed, so running
//! statistics are written once.
//!
//! **Nesting.** A call is listed on every tape in force. What is outside of the inner tape is kept by the outer one, if it knows it.
//!
//! **The second run** takes place when backward first asks for a value. It runs the calls that lead to values that were saved, in the
//! order in which they were listed, the same on every rank. The calls have the keys, so the plans, that they had: their inputs require
//! gradients as before. Their nodes are dropped at once. A value is held until all nodes that saved it are done.

use super::call::Call;
use super::layout::to_layout;
use super::policy::Cause;
use super::saved::{restore, saved_outside};
use crate::context::{AskedSbp, asked_again, asked_sbp, grad_enabled, keeping, no_grad, set_grad_enabled, set_keeping};
use crate::error::{CallSite, Error, Result};
use crate::ops::{Attrs, Op, OpUse, RuntimeAttrs};
use crate::plan::Target;
use crate::tensor::{Edge, FormOf, GlobalRef, LeafSlot, Saved, Tensor};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Numbers of values; no two tapes have one in common, unless they list the same call.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// The calls of a scope.
#[derive(Default)]
pub(super) struct Tape(Mutex<Listed>);

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
    /// The boxed form of an input of a call.
    Boxed(GlobalRef),
}

struct ListedCall {
    op: &'static Op,
    attrs: Attrs,
    runtime: RuntimeAttrs,
    target: Option<Target>,
    as_stored: bool,
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
    /// Without its edge, which could lead to a node that holds this tape; but a leaf is kept itself.
    kept: Saved,
    requires_grad: bool,
}

/// A value that nodes have saved. Empty until the second run.
pub(super) struct Slot {
    tape: Arc<Tape>,
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

    fn input(&mut self, t: &Tensor, level: usize) -> Result<In> {
        if let Some(number) = self.number_of(t) {
            return Ok(In::Value(number, t.requires_grad()));
        }
        let kept = |o: &Outside| match &o.kept.kept {
            crate::tensor::Kept::Tensor(k) => k.same(t) && o.kept.version == t.version(),
            _ => false,
        };
        if let Some(i) = self.outside.iter().position(kept) {
            return Ok(In::Outside(i));
        }
        self.outside.push(Outside { kept: saved_outside(t, level)?, requires_grad: t.requires_grad() });
        Ok(In::Outside(self.outside.len() - 1))
    }
}

impl Tape {
    /// Lists a call.
    fn push(
        &self,
        level: usize,
        what: What,
        inputs: &[Option<&Tensor>],
        outs: &[Tensor],
        site: CallSite,
    ) -> Result<()> {
        let mut listed = lock(&self.0);
        let mut ins = SmallVec::new();
        for t in inputs {
            ins.push(match t {
                Some(t) => listed.input(t, level)?,
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
    pub(super) fn slot(self: &Arc<Tape>, t: &Tensor) -> Option<Arc<Slot>> {
        let mut listed = lock(&self.0);
        let number = listed.number_of(t)?;
        if let Some(slot) = listed.slots.get(&number).and_then(Weak::upgrade) {
            return Some(slot);
        }
        let slot = Arc::new(Slot { tape: self.clone(), number, value: Mutex::default() });
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
                call.as_stored = c.as_stored;
                call.target(c.target.as_ref()).run()
            }
            What::Boxed(to) => {
                let Some(Some(t)) = inputs.first() else { return Err(Error::autograd("a boxed form of nothing")) };
                let form = FormOf::Boxed(to.id());
                if let Some(found) = t.form(form) {
                    return Ok(SmallVec::from_iter([found]));
                }
                let out = {
                    let _unrecorded = no_grad();
                    to_layout(Cause::Needed("checkpoint"), t, &to.placement, &to.sbp, self.site)?
                };
                out.set_edge(t.edge());
                t.remember(form, &out);
                Ok(SmallVec::from_iter([out]))
            }
        }
    }
}

impl Slot {
    /// The value, made by the second run of the scope unless that has taken place.
    pub(super) fn value(&self) -> Result<Tensor> {
        if let Some(t) = &*lock(&self.value) {
            return Ok(t.clone());
        }
        self.tape.run()?;
        lock(&self.value).clone().ok_or_else(|| Error::autograd(format!("value {} was not made again", self.number)))
    }
}

/// Lists a call that has been carried out, on the tapes in force. One that writes in place is not listed.
#[cold]
pub(super) fn list(tapes: &[(usize, Arc<Tape>)], call: &Call<'_>, outs: &[Tensor]) -> Result<()> {
    outs.iter().for_each(|t| t.set_stamp(NUMBER.fetch_add(1, Ordering::Relaxed)));
    let axes = outs.first().and_then(Tensor::global).map(|g| g.placement.axes());
    for (level, tape) in tapes {
        let what = What::Call(Box::new(ListedCall {
            op: call.op,
            attrs: call.attrs.clone(),
            runtime: call.runtime.clone(),
            target: call.target.cloned(),
            as_stored: call.as_stored,
            grad: grad_enabled(),
            keep: keeping(),
            asked: axes.filter(|_| call.op.layout.is_none()).and_then(|axes| asked_sbp(call.op, axes)),
            _used: call.op.hold(),
        }));
        tape.push(*level, what, call.inputs, outs, call.site)?;
    }
    Ok(())
}

/// Lists that an input of a call was boxed for it, on the tapes that know the input.
#[cold]
pub(super) fn list_boxed(
    tapes: &[(usize, Arc<Tape>)],
    t: &Tensor,
    out: &Tensor,
    to: &GlobalRef,
    site: CallSite,
) -> Result<()> {
    let knowing: Vec<_> = tapes.iter().filter(|(_, tape)| lock(&tape.0).number_of(t).is_some()).collect();
    if knowing.is_empty() {
        return Ok(());
    }
    out.set_stamp(NUMBER.fetch_add(1, Ordering::Relaxed));
    knowing.into_iter().try_for_each(|(level, tape)| {
        tape.push(*level, What::Boxed(to.clone()), &[Some(t)], std::slice::from_ref(out), site)
    })
}

/// What a tape keeps of a tensor that neither it nor an outer one knows.
pub(super) fn kept_itself(t: &Tensor) -> Saved {
    if let Some(source) = t.gathered_from() {
        return Saved { kept: crate::tensor::Kept::Gathered(source.clone()), version: source.version() };
    }
    let kept = if matches!(t.edge(), Edge::Leaf(_)) { t.clone() } else { t.value() };
    Saved { version: kept.version(), kept: crate::tensor::Kept::Tensor(kept) }
}
