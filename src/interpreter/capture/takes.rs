//! Values that a section which is captured takes from around it, and what it does with them.

use super::super::program_builder::ProgramBuilder;
use super::sections::{Open, Take};
use super::{State, address};
use crate::context::here;
use crate::error::{CallSite, Error, Result};
use crate::plan::{TypeRef, local_type};
use crate::program::{Draw, OutsideKind, ValueId, Write};
use crate::tensor::{LocalTensor, Tensor, WeakTensor, next_stamp};

impl State {
    /// The builder of the program.
    pub(super) fn whole(&mut self) -> &mut ProgramBuilder {
        self.at(0)
    }

    /// The builder of the section of that number among those that are inside of each other; 0 of the program.
    pub(super) fn at(&mut self, depth: usize) -> &mut ProgramBuilder {
        match self.open.get_mut(depth) {
            Some(open) => &mut open.outer,
            None => &mut self.builder,
        }
    }

    pub(super) fn section(&mut self) -> Result<&mut Open> {
        self.open.last_mut().ok_or_else(|| Error::registry("no section is open"))
    }

    pub(super) fn count(&self) -> usize {
        self.open.last().map_or(1, |o| o.count)
    }

    /// Version and value of a number, in the innermost section that knows it.
    pub(super) fn known(&self, stamp: u64) -> Option<(u64, ValueId)> {
        let around = self.open.iter().rev().map(|o| &o.outer);
        [&self.builder].into_iter().chain(around).find_map(|b| b.known(stamp))
    }

    /// Version and value of a tensor in the innermost section, which takes it from around where it has to.
    pub(super) fn known_here(&mut self, t: &Tensor) -> Option<(u64, ValueId)> {
        let depth = self.open.len();
        let found = self.import(depth, t);
        for d in 1..=depth {
            let Some((_, v)) = self.at(d).known(t.stamp()) else { continue };
            let takes = &mut self.open[d - 1].takes;
            if let Ok(i) = takes.binary_search_by_key(&v, |take| take.value)
                && !takes[i].handles.iter().any(|h| h.number() == t.weak().number())
            {
                takes[i].handles.push(t.weak());
            }
        }
        found
    }

    pub(super) fn import(&mut self, depth: usize, t: &Tensor) -> Option<(u64, ValueId)> {
        if let Some(found) = self.at(depth).known(t.stamp()) {
            return Some(found);
        }
        let (version, from) = self.import(depth.checked_sub(1)?, t)?;
        let (ty, site) = (self.at(depth - 1).program.ty(from).clone(), self.open[depth - 1].site);
        let value = self.at(depth).add_outside(ty, OutsideKind::Around, String::new(), site);
        self.at(depth).set_known(t.stamp(), version, value);
        let take = Take { value, from: Some(from), version, handles: vec![], written: None, last: None };
        self.open[depth - 1].takes.push(take);
        Some((version, value))
    }

    /// The symbol of a value that a section carries, and its value there.
    pub(super) fn take_at(&mut self, depth: usize, ty: TypeRef, from: Option<ValueId>) -> Result<(Tensor, ValueId)> {
        let (symbol, site) = (new_symbol(&ty)?, self.open[depth - 1].site);
        let (builder, version) = (self.at(depth), symbol.version());
        let value = builder.add_outside(ty, OutsideKind::Carried, String::new(), site);
        builder.set_known(symbol.stamp(), version, value);
        self.made_at(depth, &symbol, site);
        let take = Take { value, from, version, handles: vec![], written: None, last: None };
        self.open[depth - 1].takes.push(take);
        Ok((symbol, value))
    }

    /// A section has made a tensor; those inside of it have not.
    pub(super) fn made_at(&mut self, depth: usize, t: &Tensor, site: CallSite) {
        let before = self.open.get(depth).map_or(self.made.len(), |inside| inside.made);
        self.made.insert(before, (t.weak(), site));
        self.open[depth..].iter_mut().for_each(|inside| inside.made += 1);
    }

    /// A tensor with a new value, which the next node makes.
    pub(super) fn made_value(&mut self, ty: TypeRef, site: CallSite) -> Result<Tensor> {
        let t = new_symbol(&ty)?;
        self.builder.define(&t)?;
        self.made.push((t.weak(), site));
        Ok(t)
    }

    /// The section has written a tensor.
    pub(super) fn note_written(&mut self, t: &Tensor, write: Write) -> Result<()> {
        match self.open.is_empty() {
            true => Ok(()),
            false => self.note_write(Some(t.weak()), (t.stamp(), t.version()), write),
        }
    }

    pub(super) fn note_write(
        &mut self,
        t: Option<WeakTensor>,
        (stamp, version): (u64, u64),
        write: Write,
    ) -> Result<()> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let is_old = |take: &&mut Take| match take.last {
            Some((.., last)) => last == write.old,
            None => take.value == write.old,
        };
        let Some(take) = open.takes.iter_mut().find(is_old) else { return Ok(()) };
        let kind = |v: ValueId| self.builder.program.outside.iter().find(|o| o.value == v).map(|o| o.kind);
        match kind(take.value) {
            Some(OutsideKind::Slice) => Err(Error::unsupported("a repeated section writes a slice that it has taken")
                .help("write `copy()` of the slice, or collect the results")),
            Some(OutsideKind::Carried) => Ok(()),
            _ => {
                take.last = Some((stamp, version, write.new));
                take.written = t;
                Ok(())
            }
        }
    }

    /// Draws so far, of each generator.
    pub(super) fn drawn(&self) -> Vec<u64> {
        let ctx = here();
        let own = self.generators.iter().map(|(_, drawn)| *drawn);
        [ctx.generator().ordinal, ctx.local_generator().ordinal].into_iter().chain(own).collect()
    }

    /// After one iteration, counts the draws of the others.
    pub(super) fn skip_draws(&mut self, draws: &[u64], count: usize) {
        let more = |g: usize| at(draws, g).wrapping_mul((count as u64).wrapping_sub(1));
        here().draw_many(more(0), more(1));
        for (i, (_, drawn)) in self.generators.iter_mut().enumerate() {
            *drawn = drawn.wrapping_add(more(i + 2));
        }
    }

    /// A draw, counted from the beginning of an iteration of the section.
    pub(super) fn draw_in_section(&self, draw: Draw) -> Result<Draw> {
        let first = self.open.last().map_or(0, |o| at(&o.first, draw.generator.0 as usize));
        let ordinal = draw.ordinal.checked_sub(first).ok_or_else(|| {
            Error::unsupported("a random call from before a repeated section is computed once more in it")
                .help("make the call, and the scope that computes it once more, inside of the section")
        })?;
        Ok(Draw { ordinal, ..draw })
    }

    /// The tensors that are known.
    pub(super) fn around(&self) -> Vec<Tensor> {
        let made = self.made.iter().filter_map(|(t, _)| t.get());
        made.chain(self.met.iter().map(|m| m.symbol.clone())).collect()
    }

    /// Refuses what is not the same in each iteration.
    pub(super) fn check_ended(&mut self, site: CallSite) -> Result<()> {
        // Nor has a copy been made in the next iteration.
        self.around().iter().for_each(|t| t.clear_reshard_cache());
        let from = self.section()?.made;
        let made = self.made.split_off(from);
        if let Some((t, at)) = made.iter().find_map(|(t, at)| Some((t.get()?, *at))) {
            return Err(Error::unsupported(format!("{t:?}, which a repeated section made, outlives it"))
                .at(at)
                .help("return it from the section: it is collected from all iterations, or carried to the next"));
        }
        let takes = &self.open.last().ok_or_else(|| Error::registry("no section is open"))?.takes;
        for take in takes {
            let handles = take.handles.iter().filter_map(WeakTensor::get);
            let Some(written) = &take.written else {
                match handles.filter(|t| !t.is_global()).find(|t| t.version() != take.version) {
                    None => continue,
                    Some(t) => {
                        return Err(Error::unsupported(format!("{t:?} shares memory that a repeated section writes"))
                            .at(site)
                            .help("take the view inside of the section, or give it a `copy()`"));
                    }
                }
            };
            let others = takes.iter().any(|other| other.value != take.value && other.from == take.from);
            // The capture alone holds a handle of a tensor with data that has ended.
            let ended = |t: &Tensor| self.by_address.get(&address(t)).is_some_and(|i| self.met[*i].tensor.is_sole());
            let mut handles = handles.filter(|t| t.weak().number() != written.number() && !ended(t));
            if let Some(t) = handles.next() {
                return Err(Error::unsupported(format!(
                    "{t:?} is another handle of a tensor that a repeated section writes"
                ))
                .at(site)
                .help("take the handle inside of the section, or give it a `copy()`"));
            }
            if others {
                return Err(Error::unsupported("a repeated section slices or carries a tensor that it writes")
                    .at(site)
                    .help("give the section a `copy()` of the tensor to slice or carry"));
            }
        }
        Ok(())
    }
}

pub(super) fn at(all: &[u64], g: usize) -> u64 {
    all.get(g).copied().unwrap_or(0)
}

/// A symbol of that type, with a number of its own.
pub(super) fn new_symbol(ty: &TypeRef) -> Result<Tensor> {
    let ctx = here();
    let shard = local_type(ctx.rank(), ty).map(|l| LocalTensor::alloc(&ctx, &l)).transpose()?;
    let t = match (ty, shard) {
        (TypeRef::Global(g), shard) => Tensor::from_shard(g.clone(), shard),
        (TypeRef::Local(_), Some(l)) => Tensor::from_local(l),
        (TypeRef::Local(l), None) => return Err(Error::registry(format!("a local value {} without data", l.ty))),
    };
    t.set_stamp(next_stamp());
    Ok(t)
}
