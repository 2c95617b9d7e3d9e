//! Gradients of leaves in a section that is captured: the loop of calls that a section stands for adds to them in each iteration.
//!
//! A gradient that is there before the section is carried. A leaf that has none gets one to add to when its first one of an iteration is stored:
//! before the loop that is -0, to which every number can be added without another bit. One that the section clears first begins anew in
//! each iteration.

use super::super::program_builder::type_of;
use super::sections::{Open, Slot};
use super::{Capture, State, current, is_capturing};
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::op;
use crate::ops::{AttrValue, Attrs};
use crate::plan::{Target, TypeRef};
use crate::program::{OutsideKind, ValueId};
use crate::tensor::{Edge, LeafSlot, Tensor, borrowed_leaves};
use oflow_kernels::Scalar;
use smallvec::smallvec;
use std::sync::Arc;

/// Gradient of a leaf after a section.
pub(super) enum After {
    /// Gradient that was there before, or none.
    Same(Option<Tensor>),
    /// A carried value: the value that the section takes for it, and its next value.
    Carried(ValueId, ValueId),
    /// A tensor from around the section, which the section has set.
    Last(Tensor),
}

impl Capture {
    /// Takes the gradients that leaves have at the end of a section, and says what becomes of them. Those that are carried stand in the order of
    /// the values that are taken for them.
    pub(super) fn gradients(&self, site: CallSite) -> Result<Vec<(Slot, After)>> {
        let mut state = self.0.borrow_mut();
        let slots = std::mem::take(&mut state.section()?.slots);
        let mut all = vec![];
        for mut s in slots {
            let last = lock(&s.slot).take();
            // The leaf was made in the section, and has ended.
            let noted =
                state.open.iter().filter(|o| o.slots.iter().any(|known| Arc::ptr_eq(&known.slot, &s.slot))).count();
            let gone = Arc::strong_count(&s.slot) == 1 + noted;
            let after = match (last.filter(|_| !gone), s.before.take()) {
                (None, Some(before)) => {
                    let taken = s.take.filter(|v| state.section_reads(*v));
                    s.before = Some(before);
                    match taken {
                        Some(_) if state.count() > 1 => {
                            return Err(comes_and_goes(&s.slot, "only in the first iteration", site));
                        }
                        _ => After::Same(None),
                    }
                }
                (None, None) => {
                    // What the section around begins with is added to in the first iteration only.
                    let added = s.take.is_some_and(|v| state.section_reads(v));
                    if s.first_only || added && state.count() > 1 {
                        state.note_first_only(&s.slot);
                    }
                    After::Same(None)
                }
                (Some(last), before) => {
                    if s.first_only && s.take.is_some() {
                        match state.count() > 1 {
                            true => return Err(comes_and_goes(&s.slot, "only in the first iteration", site)),
                            false => state.note_first_only(&s.slot),
                        }
                    }
                    if s.found_none && state.count() > 1 {
                        return Err(comes_and_goes(&s.slot, "from the second iteration on", site));
                    }
                    let next = state.id_of(&last)?;
                    let unchanged = s.take == Some(next);
                    s.before = before;
                    match (s.take, unchanged) {
                        (_, true) => After::Same(s.before.clone()),
                        (Some(take), false) => After::Carried(take, next),
                        (None, false) if state.is_around(next) => After::Last(last),
                        (None, false) => {
                            let depth = state.open.len();
                            let (_, take) = state.take_at(depth, type_of(&last)?, None)?;
                            After::Carried(take, next)
                        }
                    }
                }
            };
            all.push((s, after));
        }
        let place = |after: &After| match after {
            After::Carried(take, _) => take.0,
            _ => 0,
        };
        all.sort_by_key(|(_, after)| place(after));
        Ok(all)
    }
}

impl State {
    /// The slots of leaves that are known.
    pub(super) fn leaf_slots(&self) -> Vec<Arc<LeafSlot>> {
        let made = self.made.iter().filter_map(|(t, _)| t.get());
        let mut slots: Vec<Arc<LeafSlot>> = vec![];
        for t in borrowed_leaves().into_iter().chain(made) {
            if let Edge::Leaf(slot) = t.edge()
                && !slots.iter().any(|s| Arc::ptr_eq(s, &slot))
            {
                slots.push(slot);
            }
        }
        slots
    }

    /// Notes that the innermost section adds to the gradient with which the one around it begins in its first iteration only.
    fn note_first_only(&mut self, slot: &Arc<LeafSlot>) {
        if let Some(around) = self.open.iter_mut().nth_back(1) {
            let known = around.slot(slot);
            around.slots[known].first_only = true;
        }
    }

    /// Whether a call of the innermost section reads a value.
    pub(super) fn section_reads(&self, v: ValueId) -> bool {
        self.builder.program.nodes.iter().any(|n| n.needs().any(|u| u == v))
    }

    /// Whether a value is one from around the innermost section, the same in each iteration.
    pub(super) fn is_around(&self, v: ValueId) -> bool {
        self.builder.program.outside.iter().any(|o| o.value == v && o.kind == OutsideKind::Around)
    }
}

pub(super) fn lock(slot: &LeafSlot) -> std::sync::MutexGuard<'_, Option<Tensor>> {
    slot.grad.lock().unwrap_or_else(|e| e.into_inner())
}

/// A tensor of that type whose elements have one value.
pub(super) fn full(ty: &TypeRef, value: f64, site: CallSite) -> Result<Tensor> {
    let target = match ty {
        TypeRef::Local(l) => Target::Local(l.device),
        TypeRef::Global(g) => Target::Global(g.placement.clone(), g.sbp.clone()),
    };
    let attrs: Attrs = smallvec![AttrValue::from(ty.ty().shape.as_slice()), AttrValue::DType(ty.ty().dtype)];
    let value = smallvec![Scalar::Float(value)];
    super::Call::new(op!("full")?, &[]).attrs(attrs).runtime(value).target(&target).at(site).run1()
}

/// A tensor of that type to which every number can be added without another bit. A partial one has -0 in all parts, as 0 has 0.
pub(super) fn negative_zeros(ty: &TypeRef, site: CallSite) -> Result<Tensor> {
    let _quiet = no_grad();
    match ty.global().filter(|g| g.sbp.iter().any(|s| s.is_partial())) {
        None => full(ty, -0.0, site),
        Some(_) => super::Call::new(op!("neg")?, &[Some(&full(ty, 0.0, site)?)]).at(site).run1(),
    }
}

#[cold]
fn comes_and_goes(slot: &LeafSlot, when: &str, site: CallSite) -> Error {
    let leaf = slot.ty.as_ref().map_or_else(|| "a leaf".to_string(), |ty| format!("a leaf {ty}"));
    Error::unsupported(format!("{leaf} has a gradient {when} of a repeated section"))
        .at(site)
        .help("clear the gradient before the section, or at the beginning of the section")
}

/// The gradient to which the first one that the section in progress stores for a leaf is added; none where it is the first of all, or the section
/// has cleared it.
pub(in crate::interpreter) fn gradient_before(slot: &Arc<LeafSlot>, g: &Tensor) -> Result<Option<Tensor>> {
    if !is_capturing() {
        return Ok(None);
    }
    let capture = current()?;
    let mut state = capture.0.borrow_mut();
    let (depth, ty) = (state.open.len(), type_of(g)?);
    // The outermost section that has not set it itself begins with -0; those inside of it go on from what it has.
    let begun = |open: &Open| open.slots.iter().any(|s| Arc::ptr_eq(&s.slot, slot) && (s.assigned || s.take.is_some()));
    let from = state.open.iter().rposition(begun).map_or(0, |known| known + 1);
    let mut found = None;
    for d in from..depth {
        let (symbol, value) = state.take_at(d + 1, ty.clone(), found.map(|(_, v)| v))?;
        let open = &mut state.open[d];
        let known = open.slot(slot);
        open.slots[known].take = Some(value);
        found = Some((symbol, value));
    }
    Ok(found.map(|(symbol, _)| symbol))
}

/// A program has found no gradient in a leaf's slot.
pub(crate) fn note_no_gradient(slot: &Arc<LeafSlot>) {
    in_section(slot, |s| {
        s.found_none |= s.take.is_none();
        true
    });
}

/// A program has set or cleared a leaf's gradient.
pub(crate) fn note_assigned(slot: &Arc<LeafSlot>) {
    in_section(slot, |s| {
        s.assigned = true;
        false
    });
}

/// Notes something of a leaf's slot in the sections in progress, from the innermost on: as long as `f` says so and no section has set it.
fn in_section(slot: &Arc<LeafSlot>, f: impl Fn(&mut Slot) -> bool) {
    if !is_capturing() {
        return;
    }
    let Ok(capture) = current() else { return };
    let mut state = capture.0.borrow_mut();
    for open in state.open.iter_mut().rev() {
        let i = open.slot(slot);
        let known = &mut open.slots[i];
        if known.assigned || !f(known) {
            return;
        }
    }
}
