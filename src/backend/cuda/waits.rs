//! Finds the earlier instructions that a new one must wait for: the last writer of what it reads; the last writer and all
//! readers since of what it writes.

use crate::intern::FixedMap;
use crate::memory::Storage;
use smallvec::SmallVec;

/// An instruction's place: stream and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) stream: usize,
    pub(super) seq: u64,
}

#[derive(Default)]
struct Uses {
    write: Option<Ticket>,
    reads: SmallVec<[Ticket; 2]>,
}

/// Uses of storages by instructions that may still be running, by address of the block. An address that is freed and
/// reused keeps its old tickets, which have passed by then: the instruction held the block.
#[derive(Default)]
pub(super) struct Waits {
    uses: FixedMap<usize, Uses>,
    /// The number of entries above which those that have passed are dropped.
    sweep_at: usize,
}

const SWEEP: usize = 4096;

impl Waits {
    /// Events that an instruction with these reads and writes has to wait for, apart from work on its own stream (which runs
    /// in order) and what has been `reached`.
    pub(super) fn needed(
        &self,
        reads: &[Storage],
        writes: &[Storage],
        own: Option<usize>,
        reached: impl Fn(Ticket) -> bool,
    ) -> SmallVec<[Ticket; 4]> {
        let mut found: SmallVec<[Ticket; 4]> = SmallVec::new();
        let mut add = |t: Ticket| {
            if Some(t.stream) != own && !found.contains(&t) && !reached(t) {
                found.push(t);
            }
        };
        for s in reads {
            if let Some(u) = self.uses.get(&s.id()) {
                u.write.into_iter().for_each(&mut add);
            }
        }
        for s in writes {
            if let Some(u) = self.uses.get(&s.id()) {
                u.write.into_iter().chain(u.reads.iter().copied()).for_each(&mut add);
            }
        }
        found
    }

    /// Notes that the instruction of that ticket uses these storages.
    pub(super) fn note(
        &mut self,
        reads: &[Storage],
        writes: &[Storage],
        ticket: Ticket,
        reached: impl Fn(Ticket) -> bool,
    ) {
        // Without this the table would grow with the number of blocks ever used.
        if self.uses.len() > self.sweep_at.max(SWEEP) {
            self.uses.retain(|_, u| !(u.write.iter().chain(&u.reads).all(|t| reached(*t))));
            self.sweep_at = self.uses.len() * 2;
        }
        for s in reads {
            let u = self.uses.entry(s.id()).or_default();
            u.reads.retain(|t| t.stream != ticket.stream);
            u.reads.push(ticket);
        }
        for s in writes {
            let u = self.uses.entry(s.id()).or_default();
            u.write = Some(ticket);
            u.reads.clear();
        }
    }

    /// The last write of a storage.
    pub(super) fn last_write(&self, s: &Storage) -> Option<Ticket> {
        self.uses.get(&s.id())?.write
    }
}
