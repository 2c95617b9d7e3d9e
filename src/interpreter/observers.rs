//! Observers of the calls of a thread: one registry.
//!
//! An observer says at which [`Moments`] of a call it looks, and is in force from [`observe`] until the [`Scope`] is dropped. A call that
//! nobody observes reads one word for each moment. To add an observer, implement [`Observer`]; no other observer and no stage changes.
//!
//! Two observers are modes of the thread, which a closure on another thread can be given: the boxing policy looks at plans, the search for
//! NaN at results. They are named here, at their moments.

use super::anomaly;
use super::call::{Call, Outputs};
use super::policy;
use super::writes::writes;
use crate::context::{Moments, is_observed, observe_by_scopes};
use crate::error::{CallSite, Result};
use crate::placement::Placement;
use crate::plan::Plan;
use crate::program::BoxedFor;
use crate::tensor::{Saved, Tensor, next_stamp};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

/// Somebody who looks at calls. An error from a method is the error of the call.
pub(super) trait Observer {
    /// The moments at which it looks.
    fn moments(&self) -> Moments;
    /// `BEFORE`: the call is about to be decided.
    fn before(&self, _call: &Call<'_>) -> Result<()> {
        Ok(())
    }
    /// `PLANNED`: the call on global tensors has this plan.
    fn planned(&self, _call: &Call<'_>, _plan: &Plan, _placement: &Placement) {}
    /// `ISSUED`: the call has been issued and has these outputs, which are not recorded yet.
    fn issued(&self, _at: Level, _call: &Call<'_>, _outs: &[Tensor], _issued: &Issued<'_>) -> Result<()> {
        Ok(())
    }
    /// `CAPTURED`: the call has been issued.
    fn captured(&self, _call: &Call<'_>, _outs: &[Tensor], _issued: &Issued<'_>) -> Result<()> {
        Ok(())
    }
    /// `CAPTURED`: an input of a call of `op` at `site` was boxed for it.
    fn captured_boxing(&self, _op: &'static str, _input: &Tensor, _out: &Tensor, _site: CallSite) -> Result<()> {
        Ok(())
    }
    /// `SAVED`: what is kept of a tensor that a call saves for backward. None where an outer observer, or the call itself, decides.
    fn saved(&self, _tensor: &Tensor) -> Result<Option<Saved>> {
        Ok(None)
    }
    /// Stand-in for a tensor that this observer can make again, for an inner observer to keep.
    fn remade(&self, _tensor: &Tensor) -> Option<Saved> {
        None
    }
    /// `RESULTS`: the results go back to the caller. They may be replaced.
    fn results(&self, _call: &Call<'_>, _outs: &mut Outputs) -> Result<()> {
        Ok(())
    }
}

/// The place of an observer among those in force; an outer one has a lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u64);

/// An observer, or the hiding of all before.
enum Entry {
    Observer(Rc<dyn Observer>),
    /// Observers before this entry do not look at these moments.
    Hide(Moments),
}

thread_local! {
    static OPEN: RefCell<Vec<(Level, Entry)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an observer in force, or others hidden, until it is dropped. Scopes of a thread may be dropped in any order.
pub(super) struct Scope {
    level: Level,
    // The registry is per thread.
    _not_send: PhantomData<*const ()>,
}

impl Scope {
    fn open(entry: Entry) -> Scope {
        let level = OPEN.with_borrow_mut(|open| {
            let level = Level(open.last().map_or(0, |(level, _)| level.0 + 1));
            open.push((level, entry));
            note(open);
            level
        });
        Scope { level, _not_send: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // The registry is gone only when the thread ends. What an observer holds is dropped outside of the borrow.
        let _ended = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            let at = open.iter().rposition(|(level, _)| *level == self.level);
            let ended = at.map(|at| open.remove(at));
            note(&open);
            ended
        });
    }
}

/// Notes at which moments calls are observed.
fn note(open: &[(Level, Entry)]) {
    observe_by_scopes(open.iter().fold(Moments::NONE, |at, (_, entry)| match entry {
        Entry::Observer(o) => at.and(o.moments()),
        Entry::Hide(hidden) => at.without(*hidden),
    }));
}

/// Puts an observer in force until the scope is dropped.
pub(super) fn observe(observer: Rc<dyn Observer>) -> Scope {
    Scope::open(Entry::Observer(observer))
}

/// Hides calls from all observers of these moments until the scope is dropped; those that come after are not concerned.
pub(super) fn hide(at: Moments) -> Scope {
    Scope::open(Entry::Hide(at))
}

/// No scope observes which calls are made and what they save until it is dropped.
pub(super) fn unobserved() -> Scope {
    hide(Moments::ISSUED.and(Moments::SAVED))
}

/// The observers that look at a moment, the outermost first.
fn in_force(at: Moments) -> SmallVec<[(Level, Rc<dyn Observer>); 4]> {
    let of = |open: &RefCell<Vec<(Level, Entry)>>| {
        let open = open.borrow();
        let hides = |(_, entry): &(Level, Entry)| matches!(entry, Entry::Hide(hidden) if hidden.meets(at));
        let from = open.iter().rposition(hides).map_or(0, |hidden| hidden + 1);
        let looks = |(level, entry): &(Level, Entry)| match entry {
            Entry::Observer(o) if o.moments().meets(at) => Some((*level, o.clone())),
            _ => None,
        };
        open[from..].iter().filter_map(looks).collect()
    };
    // None are left when the thread ends.
    OPEN.try_with(of).unwrap_or_default()
}

/// Shows a call before anything is decided.
#[inline]
pub(super) fn before(call: &Call<'_>) -> Result<()> {
    if is_observed(Moments::BEFORE) { show(call) } else { Ok(()) }
}

#[cold]
fn show(call: &Call<'_>) -> Result<()> {
    in_force(Moments::BEFORE).iter().try_for_each(|(_, o)| o.before(call))
}

/// Shows the plan of a call on global tensors, also to the boxing policy, which may refuse it.
#[inline]
pub(super) fn planned(call: &Call<'_>, plan: &Plan, placement: &Placement) -> Result<()> {
    if is_observed(Moments::PLANNED) { show_plan(call, plan, placement) } else { Ok(()) }
}

#[cold]
fn show_plan(call: &Call<'_>, plan: &Plan, placement: &Placement) -> Result<()> {
    in_force(Moments::PLANNED).iter().for_each(|(_, o)| o.planned(call, plan, placement));
    policy::check_plan(call, plan, placement)
}

/// How a call was issued.
pub(super) struct Issued<'a> {
    /// Plan of an op that kernels carry out.
    pub(super) plan: Option<&'a Plan>,
    /// The copies to which inputs were boxed; shorter than the inputs where no later one is boxed.
    pub(super) boxed: &'a [Option<Tensor>],
    /// Of a change of layout that the program did not ask for: who did.
    pub(super) boxed_for: Option<BoxedFor>,
}

/// Shows a call that has been issued. One that writes in place is shown to a capture only.
#[inline]
pub(super) fn issued(call: &Call<'_>, outs: &[Tensor], issued: &Issued<'_>) -> Result<()> {
    if is_observed(Moments::ISSUED.and(Moments::CAPTURED)) { show_issued(call, outs, issued) } else { Ok(()) }
}

#[cold]
fn show_issued(call: &Call<'_>, outs: &[Tensor], issued: &Issued<'_>) -> Result<()> {
    if !writes(call) {
        // A change of layout that changes nothing hands its input on, which may have a number.
        let handed_on = |t: &Tensor| t.stamp() != 0 && call.inputs.iter().flatten().any(|i| i.same(t));
        outs.iter().filter(|t| !handed_on(t)).for_each(number);
        in_force(Moments::ISSUED).iter().try_for_each(|(at, o)| o.issued(*at, call, outs, issued))?;
    }
    in_force(Moments::CAPTURED).iter().try_for_each(|(_, o)| o.captured(call, outs, issued))
}

/// Shows a capture that an input of a call of `op` was boxed for it. Others see the copy when the call is issued.
#[inline]
pub(super) fn boxed(op: &'static str, input: &Tensor, out: &Tensor, site: CallSite) -> Result<()> {
    if is_observed(Moments::CAPTURED) { show_boxed(op, input, out, site) } else { Ok(()) }
}

#[cold]
fn show_boxed(op: &'static str, input: &Tensor, out: &Tensor, site: CallSite) -> Result<()> {
    number(out);
    in_force(Moments::CAPTURED).iter().try_for_each(|(_, o)| o.captured_boxing(op, input, out, site))
}

/// Gives a value a number, by which observers know it again.
pub(super) fn number(t: &Tensor) {
    t.set_stamp(next_stamp());
}

/// Asks the observers, the innermost first, for what to keep of a tensor that a call saves for backward. None where no observer decides.
#[inline]
pub(super) fn saved(tensor: &Tensor) -> Result<Option<Saved>> {
    if is_observed(Moments::SAVED) { ask_saved(tensor) } else { Ok(None) }
}

#[cold]
fn ask_saved(tensor: &Tensor) -> Result<Option<Saved>> {
    for (_, o) in in_force(Moments::SAVED).iter().rev() {
        if let Some(saved) = o.saved(tensor)? {
            return Ok(Some(saved));
        }
    }
    Ok(None)
}

/// Stand-in for a tensor that an observer outside of `at` can make again; the innermost of those is asked first.
pub(super) fn remade_outside(at: Level, tensor: &Tensor) -> Option<Saved> {
    in_force(Moments::SAVED).iter().rev().filter(|(level, _)| *level < at).find_map(|(_, o)| o.remade(tensor))
}

/// Looks at what a call has made: the search for NaN.
#[inline]
pub(super) fn made(call: &Call<'_>, outs: &Outputs) -> Result<()> {
    if is_observed(Moments::MADE) { anomaly::look(call, outs) } else { Ok(()) }
}

/// Shows the results of a call, which may be replaced.
#[inline]
pub(super) fn results(call: &Call<'_>, outs: &mut Outputs) -> Result<()> {
    if is_observed(Moments::RESULTS) { show_results(call, outs) } else { Ok(()) }
}

#[cold]
fn show_results(call: &Call<'_>, outs: &mut Outputs) -> Result<()> {
    in_force(Moments::RESULTS).iter().try_for_each(|(_, o)| o.results(call, outs))
}

#[cfg(test)]
mod tests;
