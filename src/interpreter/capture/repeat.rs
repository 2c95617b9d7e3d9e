//! Capture of a section that is repeated: its calls become a program of their own, the body of one node.
//!
//! The closure of the section runs once. A value from around becomes a value from outside of the body when a call reads it. What the section
//! writes in place is carried in the tensor itself.
//!
//! Gradients of leaves are carried too (`leaf_gradients.rs`).
//!
//! What the loop does in its first iteration must be what it does in the others. So a tensor that the section makes must end with it, a gradient
//! must not come and go, and another handle of what the section writes must be taken inside.

use super::super::program_builder::type_of;
use super::leaf_gradients::{After, full, lock, negative_zeros, note_assigned};
use super::sections::{Open, Slot, Take};
use super::takes::{at, new_symbol};
use super::{Capture, State};
use crate::context::{grad_enabled, here};
use crate::error::{CallSite, Error, Result};
use crate::op;
use crate::plan::TypeRef;
use crate::program::{OutsideKind, Program, Repeat, ValueId, Work, Write, described, part_type, stacked_type};
use crate::tensor::{Custom, Edge, Node, Tensor};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The iteration of a section that is being captured.
pub(crate) struct Repetition<'a> {
    capture: &'a Capture,
    /// Number of the section among those that are inside of each other, from 1.
    depth: usize,
}

/// Values that a section gives.
type Given = (Vec<Tensor>, Vec<Tensor>);

/// A value that is collected from all iterations.
struct Collected {
    /// Value in the section.
    value: ValueId,
    /// Type of the whole.
    ty: TypeRef,
    /// Whether the value requires a gradient.
    recorded: bool,
}

/// A section whose calls have been captured.
struct Ended {
    body: Program,
    takes: Vec<Take>,
    /// Values around the section, of the takes.
    froms: Vec<ValueId>,
    /// Draws of each generator before it, and in an iteration.
    first: Vec<u64>,
    draws: Vec<u64>,
    count: usize,
    site: CallSite,
}

impl Capture {
    /// Whether a section is being captured.
    pub(crate) fn is_in_section(&self) -> bool {
        !self.0.borrow().open.is_empty()
    }

    /// Captures a section that is repeated `count` times. `body` is given the carried values, which begin with `init`, and gives their next ones
    /// and those that are collected. Returns the carried values after the last iteration, and the collected ones, stacked.
    ///
    /// # Errors
    /// Those of `body`, and if it does what is not the same in each iteration.
    pub(crate) fn repeat(
        &self,
        count: usize,
        init: Vec<Tensor>,
        body: impl FnOnce(&Repetition<'_>, Vec<Tensor>) -> Result<Given>,
        site: CallSite,
    ) -> Result<Given> {
        let depth = self.0.borrow().open.len();
        let done = self.open(count, &init, site).and_then(|carried| {
            let (next, outs) = body(&Repetition { capture: self, depth: depth + 1 }, carried)?;
            self.close(&init, next, outs, site)
        });
        done.map_err(|e| {
            let mut state = self.0.borrow_mut();
            while state.open.len() > depth
                && let Some(open) = state.open.pop()
            {
                state.builder = open.outer;
            }
            drop(state);
            // Tensors are no longer known then.
            if let Some(capture) = here().capture() {
                let text = format!("the closure of a graph goes on after a repeated section has failed: {e}");
                capture.refuse(Error::unsupported(text).at(site));
            }
            e
        })
    }

    /// Begins a section, and returns the symbols of its carried values.
    fn open(&self, count: usize, init: &[Tensor], site: CallSite) -> Result<Vec<Tensor>> {
        if self.0.borrow().builder.guard.is_some() {
            return Err(Error::unsupported("a repeated section inside of a guarded step").at(site));
        }
        let symbols = init.iter().map(|t| self.carried(t, site)).collect::<Result<Vec<_>>>()?;
        let mut state = self.0.borrow_mut();
        let froms = symbols.iter().map(|t| state.id_of(t)).collect::<Result<Vec<_>>>()?;
        let mut slots = vec![];
        for slot in state.leaf_slots() {
            let before = lock(&slot).clone();
            if let Some(before) = before {
                let from = state.id_of(&before)?;
                slots.push((slot, before, from));
            }
        }
        // Copies in other layouts and dtypes are those of the first iteration only, if the section writes the tensor.
        state.around().iter().for_each(|t| t.clear_reshard_cache());
        let first = state.drawn();
        let outer = std::mem::take(&mut state.builder);
        let made = state.made.len();
        state.open.push(Open { outer, count, site, first, made, takes: vec![], slots: vec![] });
        let depth = state.open.len();
        let take = |(t, from): (&Tensor, ValueId)| Ok(state.take_at(depth, type_of(t)?, Some(from))?.0);
        let carried = symbols.iter().zip(froms).map(take).collect::<Result<Vec<_>>>()?;
        for (slot, before, from) in slots {
            let (symbol, value) = state.take_at(depth, type_of(&before)?, Some(from))?;
            *lock(&slot) = Some(symbol);
            let slot = Slot { before: Some(before), take: Some(value), ..Slot::new(slot) };
            state.section()?.slots.push(slot);
        }
        Ok(carried)
    }

    /// The symbol of a value that may be carried.
    fn carried(&self, t: &Tensor, site: CallSite) -> Result<Tensor> {
        let symbol = self.symbol(t, site).map_err(|e| e.at(site))?;
        match grad_enabled() && symbol.requires_grad() {
            true => Err(Error::autograd(format!("{t:?}, which a repeated section carries, requires a gradient"))
                .at(site)
                .help("carry `detach()` of it; call `backward` inside of the section for gradients of its calls")),
            false => Ok(symbol),
        }
    }

    /// Ends a section.
    fn close(&self, init: &[Tensor], next: Vec<Tensor>, outs: Vec<Tensor>, site: CallSite) -> Result<Given> {
        let nexts = self.next_values(init, &next, site)?;
        let count = self.0.borrow().open.last().map_or(0, |o| o.count);
        let mut collected = vec![];
        for t in &outs {
            let (value, ty) =
                (self.output(t, site)?, stacked_type(&type_of(t)?, count as u64).map_err(|e| e.at(site))?);
            collected.push(Collected { value, ty, recorded: t.requires_grad() });
        }
        drop((next, outs));
        let grads = self.gradients(site)?;
        let mut state = self.0.borrow_mut();
        state.check_ended(site)?;
        let open = state.open.pop().ok_or_else(|| Error::registry("no section is open"))?;
        let draws: Vec<u64> = state.drawn().iter().enumerate().map(|(g, n)| n - at(&open.first, g)).collect();
        state.skip_draws(&draws, count);
        let body = std::mem::replace(&mut state.builder, open.outer).program;
        drop(state);
        if count == 0 {
            return self.nothing(init, open.takes, (&collected, grads), site);
        }
        let mut froms = vec![];
        for take in &open.takes {
            froms.push(match take.from {
                Some(from) => from,
                None => self.output(&negative_zeros(body.ty(take.value), site)?, site)?,
            });
        }
        let mut state = self.0.borrow_mut();
        let ended = Ended { body, takes: open.takes, froms, first: open.first, draws, count, site };
        let (finals, stacked) = state.add_section(ended, &nexts, &grads, &collected)?;
        drop(state);
        let mut finals = finals.into_iter();
        let given: Vec<Tensor> = finals.by_ref().take(init.len()).collect();
        for (slot, after) in grads {
            *lock(&slot.slot) = match after {
                After::Same(t) => t,
                After::Last(t) => Some(t),
                // In the order of what the section takes, which is that of the gradients.
                After::Carried(..) => finals.next(),
            };
            if slot.assigned {
                note_assigned(&slot.slot);
            }
        }
        Ok((given, stacked))
    }

    /// The next values of what a section carries.
    fn next_values(&self, init: &[Tensor], next: &[Tensor], site: CallSite) -> Result<Vec<ValueId>> {
        if next.len() != init.len() {
            let (n, m) = (init.len(), next.len());
            return Err(
                Error::argument(format!("a repeated section carries {n} values, and gives {m} next ones")).at(site)
            );
        }
        let mut values = vec![];
        for (before, t) in init.iter().zip(next) {
            let (from, to) = (type_of(before)?, type_of(&self.carried(t, site)?)?);
            if !from.same(&to) {
                let (from, to) = (described(&from), described(&to));
                return Err(Error::argument(format!("a repeated section carries {from}, and its next value is {to}"))
                    .at(site)
                    .help("the value that an iteration gives must have the shape, dtype and layout of the one that it gets"));
            }
            values.push(self.output(t, site)?);
        }
        Ok(values)
    }

    /// The end of a section that is repeated 0 times: nothing of it takes place.
    fn nothing(
        &self,
        init: &[Tensor],
        takes: Vec<Take>,
        (collected, grads): (&[Collected], Vec<(Slot, After)>),
        site: CallSite,
    ) -> Result<Given> {
        let mut state = self.0.borrow_mut();
        for take in takes {
            if let (Some((stamp, version, _)), Some(from)) = (take.last, take.from) {
                state.builder.set_known(stamp, version, from);
            }
        }
        drop(state);
        for (slot, _) in grads {
            *lock(&slot.slot) = slot.before;
        }
        let empty = |c: &Collected| full(&c.ty, 0.0, site);
        let init = init.iter().map(|t| Ok(self.symbol(t, site)?.shadow())).collect::<Result<_>>()?;
        Ok((init, collected.iter().map(empty).collect::<Result<_>>()?))
    }
}

impl Repetition<'_> {
    /// The slice along dim 0, of the number of the iteration, of a tensor from around the section.
    ///
    /// # Errors
    /// If the section makes the tensor, or it has no slice for each iteration.
    pub(crate) fn of(&self, t: &Tensor, site: CallSite) -> Result<Tensor> {
        let symbol = self.capture.symbol(t, site).map_err(|e| e.at(site))?;
        let refused = |what: &str, help: &str| Err(Error::argument(format!("{t:?} {what}")).at(site).help(help));
        if grad_enabled() && symbol.requires_grad() {
            return refused(
                "requires a gradient, which slices of a repeated section do not give",
                "slice `detach()` of it",
            );
        }
        let mut state = self.capture.0.borrow_mut();
        let found = state.import(self.depth - 1, &symbol);
        let Some((version, from)) = found.filter(|(version, _)| *version == symbol.version()) else {
            return refused("is made in the repeated section", "make it before the section, or take `select` of it");
        };
        let (ty, count) = (type_of(&symbol)?, state.open[self.depth - 1].count);
        if ty.ty().shape.first() != Some(&count) {
            return refused(
                &format!("has no slice along dim 0 for each of the {count} iterations"),
                "reshape it so that dim 0 counts the iterations",
            );
        }
        let Some(part) = part_type(&ty) else {
            return refused(
                "is split along dim 0, which counts the iterations",
                "split another dim: `to_global`, or `distribute`",
            );
        };
        let made = new_symbol(&part)?;
        let builder = state.at(self.depth);
        let value = builder.add_outside(part, OutsideKind::Slice, String::new(), site);
        builder.set_known(made.stamp(), made.version(), value);
        state.made_at(self.depth, &made, site);
        let handles = vec![symbol.weak()];
        let take = Take { value, from: Some(from), version, handles, written: None, last: None };
        state.open[self.depth - 1].takes.push(take);
        Ok(made)
    }
}

impl State {
    /// Adds the node of a section. Returns its carried values and what it collects.
    fn add_section(
        &mut self,
        section: Ended,
        nexts: &[ValueId],
        grads: &[(Slot, After)],
        collected: &[Collected],
    ) -> Result<Given> {
        let Ended { mut body, takes, froms, first, draws, count, site } = section;
        let (mut inputs, mut writes) = (SmallVec::new(), SmallVec::<[Write; 1]>::new());
        let (mut carries, mut lasts, mut written) = (vec![], vec![], vec![]);
        let carried = |take: ValueId| {
            grads.iter().find_map(|(_, g)| match g {
                After::Carried(of, next) if *of == take => Some(*next),
                _ => None,
            })
        };
        for (i, (take, from)) in takes.into_iter().zip(froms).enumerate() {
            let next = nexts.get(i).copied().or_else(|| carried(take.value));
            let kind = match (body.outside[i].kind, next, take.last) {
                (OutsideKind::Slice, ..) => OutsideKind::Slice,
                (_, Some(next), _) => {
                    carries.push(next);
                    OutsideKind::Carried
                }
                (OutsideKind::Carried, None, _) | (_, None, None) => OutsideKind::Around,
                (_, None, Some((stamp, version, last))) => {
                    let write = Write { old: from, new: self.builder.program.add_value(body.ty(take.value).clone()) };
                    lasts.push(last);
                    writes.push(write);
                    written.push((take.written, (stamp, version), write));
                    OutsideKind::Written
                }
            };
            body.outside[i].kind = kind;
            if kind != OutsideKind::Written {
                inputs.push(Some(from));
            }
        }
        let finals = carries.iter().map(|v| self.made_value(body.ty(*v).clone(), site)).collect::<Result<Vec<_>>>()?;
        let mut stacked = vec![];
        for c in collected {
            let t = self.made_value(c.ty.clone(), site)?;
            if c.recorded && t.dtype().passes_gradients() {
                t.set_edge(no_way_back(&t, site)?);
            }
            stacked.push(t);
        }
        let outputs = finals.iter().chain(&stacked).map(|t| self.id_of(t)).collect::<Result<_>>()?;
        body.outputs = carries.into_iter().chain(lasts).chain(collected.iter().map(|c| c.value)).collect();
        let mut first_draws = vec![];
        if draws.iter().any(|n| *n > 0) {
            let around = self.open.last().map_or(&[][..], |o| &o.first);
            first_draws = first.iter().enumerate().map(|(g, n)| n - at(around, g)).collect();
            body.draws = draws;
        }
        let repeat = Repeat { count: count as u64, body, first_draws };
        self.builder.push(Work::Repeat(Box::new(repeat)), inputs, outputs, writes, site);
        for (tensor, (stamp, version), write) in written {
            self.builder.set_known(stamp, version, write.new);
            self.note_write(tensor, (stamp, version), write)?;
        }
        Ok((finals, stacked))
    }
}

/// The edge of a collected value: its gradient does not go back through the loop.
fn no_way_back(t: &Tensor, site: CallSite) -> Result<Edge> {
    let backward = move |_: &[Option<Tensor>]| {
        Err(Error::autograd("a gradient does not go back into the iterations of a repeated section")
            .at(site)
            .help("call `backward` inside of the section, or repeat its calls with a loop of the program"))
    };
    let mut node = Node::new(op!("apply_custom")?, t.device(), site, smallvec![], smallvec![]);
    node.custom = Some(Custom { name: "repeat".into(), backward: Arc::new(backward) });
    Ok(Edge::Node(Arc::new(node), 0))
}
