//! Appends calls to a [`Program`] as they are made: what captures ([`capture`](super::capture)) and activation checkpointing
//! ([`recompute`](super::recompute)) have in common.
//!
//! A tensor is known by the number that observers gave it, in the version that it had then.

use super::call::Call;
use super::comm_trace::in_backward;
use super::observers::Issued;
use crate::error::{CallSite, Error, Result};
use crate::plan::{TypeRef, intern_global};
use crate::program::{CallNode, Draw, Node, Outside, OutsideKind, Program, ValueId, Work, Write};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A program to which calls are appended, and the values of tensors.
#[derive(Default)]
pub(super) struct ProgramBuilder {
    pub(super) program: Program,
    /// Version and value of each number.
    known: BTreeMap<u64, (u64, ValueId)>,
    /// Guard of the nodes that are appended now.
    pub(super) guard: Option<ValueId>,
}

thread_local! {
    static RECOMPUTING: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calls of this thread as made once more until dropped.
pub(super) struct Recomputing(bool);

impl Recomputing {
    pub(super) fn enter() -> Recomputing {
        Recomputing(RECOMPUTING.replace(true))
    }
}

impl Drop for Recomputing {
    fn drop(&mut self) {
        RECOMPUTING.set(self.0);
    }
}

/// The type of a tensor that has one.
pub(super) fn type_of(t: &Tensor) -> Result<TypeRef> {
    match t.type_ref() {
        Some(ty) => Ok(ty),
        None => Err(t.data().err().unwrap_or_else(|| Error::unsupported("tensor without data"))),
    }
}

impl ProgramBuilder {
    /// Version and value of a number.
    pub(super) fn known(&self, stamp: u64) -> Option<(u64, ValueId)> {
        self.known.get(&stamp).copied()
    }

    /// The value that a tensor is, if a node has made it and nothing has written it since.
    pub(super) fn value_of(&self, t: &Tensor) -> Option<ValueId> {
        let found = self.known(t.stamp()).filter(|(version, _)| *version == t.version());
        found.map(|(_, value)| value)
    }

    /// A new value, which this tensor is now.
    pub(super) fn define(&mut self, t: &Tensor) -> Result<ValueId> {
        let id = self.program.add_value(type_of(t)?);
        self.known.insert(t.stamp(), (t.version(), id));
        Ok(id)
    }

    /// A new value from outside.
    pub(super) fn add_outside(&mut self, ty: TypeRef, kind: OutsideKind, name: String, site: CallSite) -> ValueId {
        let value = self.program.add_value(ty);
        self.program.outside.push(Outside { value, kind, name, site });
        value
    }

    /// This number is that value, in that version.
    pub(super) fn set_known(&mut self, stamp: u64, version: u64, value: ValueId) {
        self.known.insert(stamp, (version, value));
    }

    /// Appends a node.
    pub(super) fn push(
        &mut self,
        work: Work,
        inputs: SmallVec<[Option<ValueId>; 4]>,
        outputs: SmallVec<[ValueId; 2]>,
        writes: SmallVec<[Write; 1]>,
        site: CallSite,
    ) {
        let (guard, backward, recomputed) = (self.guard, in_backward(), RECOMPUTING.get());
        let overlapped = false;
        self.program.nodes.push(Node { work, inputs, outputs, writes, guard, site, backward, recomputed, overlapped });
    }

    /// Appends a call that has been issued: its inputs as they were boxed for it, what it writes over, and what it has made.
    pub(super) fn push_call(
        &mut self,
        call: &Call<'_>,
        issued: &Issued<'_>,
        draw: Option<Draw>,
        inputs: SmallVec<[Option<ValueId>; 4]>,
        writes: SmallVec<[Write; 1]>,
        made: &[Tensor],
    ) -> Result<()> {
        // That of a call that makes a tensor is its target.
        let signature = issued.plan.and_then(|p| p.chosen.clone()).filter(|_| call.target.is_none());
        // A result that is boxed to the layout that the program asks for is two nodes.
        let unboxed = match (&signature, made.first().and_then(Tensor::global)) {
            (Some(sig), Some(g)) if sig.outputs[0] != g.sbp => {
                Some(TypeRef::Global(intern_global(g.ty.clone(), &g.placement, &sig.outputs[0])))
            }
            _ => None,
        };
        let mut outputs: SmallVec<[ValueId; 2]> = SmallVec::new();
        for (o, t) in made.iter().enumerate() {
            outputs.push(match &unboxed {
                Some(ty) if o == 0 => self.program.add_value(ty.clone()),
                _ => self.define(t)?,
            });
        }
        let node = CallNode {
            op: call.op,
            attrs: call.attrs.clone(),
            runtime: call.runtime.clone(),
            draw,
            host: call.host.map(|h| (h.host, h.call)),
            target: call.target.cloned(),
            into: call.given.is_some(),
            signature,
            boxed_for: issued.boxed_for,
        };
        let before = outputs.first().copied().filter(|_| unboxed.is_some());
        self.push(Work::Call(Box::new(node)), inputs, outputs, writes, call.site);
        match (before, made.first()) {
            (Some(from), Some(out)) => self.push_boxing(call.op.name(), from, out, call.site).map(drop),
            _ => Ok(()),
        }
    }

    /// Appends the boxing of a value because a call of `op` needs it, or because it is asked of the op's result.
    pub(super) fn push_boxing(
        &mut self,
        op: &'static str,
        from: ValueId,
        out: &Tensor,
        site: CallSite,
    ) -> Result<ValueId> {
        let to = self.define(out)?;
        self.push(Work::Box(op), smallvec![Some(from)], smallvec![to], smallvec![], site);
        Ok(to)
    }
}
