//! Exchanges that go on while others compute ([`Node::overlapped`](crate::program::Node::overlapped)).
//!
//! What such an exchange reads, makes and takes for itself is in use up to the first act that waits for it: one that uses what it makes. If that is
//! another such exchange, the stream of exchanges waits and no call does, so the memory is in use up to what waits for that one.

use super::act::{Boxing, Ongoing, RootId, What};
use super::lower::Lowered;
use smallvec::SmallVec;
use std::ops::Range;

impl Lowered {
    /// Lets the last act, which is an exchange, go on while others compute.
    pub(super) fn goes_on(&mut self, scratch: Option<usize>) {
        let Some(act) = self.acts.len().checked_sub(1) else { return };
        let What::Box(b) = &self.acts[act].what else { return };
        let made = self.made_by(b);
        let used = self.acts[act].reads.iter().chain(&self.acts[act].writes).copied().collect();
        self.ongoing.push(Ongoing { act, made, used, scratch });
    }

    /// Memory of what an exchange makes: without its scratch memory.
    fn made_by(&self, b: &Boxing) -> SmallVec<[RootId; 2]> {
        b.ends.iter().filter_map(|(_, to)| to.map(|s| self.slots[s].root)).collect()
    }

    /// Ends the exchanges for which these acts wait.
    pub(super) fn wait_for_exchanges(&mut self, acts: Range<usize>) {
        for k in acts {
            if self.ongoing.is_empty() {
                return;
            }
            let act = &self.acts[k];
            let uses = |o: &Ongoing| o.act < k && act.reads.iter().chain(&act.writes).any(|r| o.made.contains(r));
            let waits: Vec<usize> = (0..self.ongoing.len()).filter(|i| uses(&self.ongoing[*i])).collect();
            let (time, next) = (act.time, self.ongoing.iter().find(|o| o.act == k).map(|o| o.made.clone()));
            for i in waits.into_iter().rev() {
                match &next {
                    Some(made) => self.ongoing[i].made = made.clone(),
                    None => self.ended(i, time),
                }
            }
        }
    }

    /// Ends the exchanges that make this memory, for a node that is carried out on tensors now.
    pub(super) fn wait_for_memory(&mut self, roots: &[RootId]) {
        for i in (0..self.ongoing.len()).rev() {
            if self.ongoing[i].made.iter().any(|r| roots.contains(r)) {
                self.ended(i, self.time);
            }
        }
    }

    /// Ends all exchanges from this act on: where an iteration of a loop or the program ends.
    pub(super) fn wait_for_all(&mut self, from: usize) {
        for i in (0..self.ongoing.len()).rev() {
            if self.ongoing[i].act >= from {
                self.ended(i, self.time);
            }
        }
    }

    /// Ends an exchange: its memory has been in use up to this time.
    fn ended(&mut self, i: usize, time: usize) {
        let o = self.ongoing.swap_remove(i);
        let last = time.saturating_sub(1);
        for r in o.used {
            let root = &mut self.roots[r];
            root.held = root.held.max(Some(last));
            root.last = root.last.max(last);
        }
        if let Some(scratch) = o.scratch {
            self.scratch[scratch].last = self.scratch[scratch].last.max(last);
        }
    }
}
