//! Which earlier instructions a new one must wait for: the last writer of what it reads; the last writer and all readers
//! since of what it writes.

use super::instruction::Instruction;
use super::stream::StreamThread;
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
}

impl Waits {
    /// What `i` has to wait for, apart from work on its own stream (which runs in order).
    pub(super) fn needed(
        &mut self,
        i: &Instruction,
        threads: &[StreamThread],
        own: Option<usize>,
    ) -> SmallVec<[Ticket; 4]> {
        let mut found: SmallVec<[Ticket; 4]> = SmallVec::new();
        let mut add = |t: Ticket| {
            if Some(t.stream) != own && !threads[t.stream].progress().reached(t.seq) && !found.contains(&t) {
                found.push(t);
            }
        };
        for s in &i.reads {
            if let Some(u) = self.uses.get(&s.id()) {
                u.write.into_iter().for_each(&mut add);
            }
        }
        for s in &i.writes {
            if let Some(u) = self.uses.get(&s.id()) {
                u.write.into_iter().chain(u.reads.iter().copied()).for_each(&mut add);
            }
        }
        found
    }

    /// Notes that the instruction of that ticket uses its storages.
    pub(super) fn note(&mut self, i: &Instruction, ticket: Ticket) {
        // Old tickets have passed long ago; without this the table would grow with the number of blocks ever used.
        if self.uses.len() > 4096 {
            let passed = |t: &Ticket| t.seq + 4096 < ticket.seq && t.stream == ticket.stream;
            self.uses.retain(|_, u| !(u.write.iter().all(passed) && u.reads.iter().all(passed)));
        }
        for s in &i.reads {
            let u = self.uses.entry(s.id()).or_default();
            u.reads.retain(|t| t.stream != ticket.stream);
            u.reads.push(ticket);
        }
        for s in &i.writes {
            let u = self.uses.entry(s.id()).or_default();
            u.write = Some(ticket);
            u.reads.clear();
        }
    }

    /// The pending write of a storage.
    pub(super) fn last_write(&self, s: &Storage, threads: &[StreamThread]) -> Option<Ticket> {
        let t = self.uses.get(&s.id())?.write?;
        (!threads[t.stream].progress().reached(t.seq)).then_some(t)
    }

    pub(super) fn clear(&mut self) {
        self.uses.clear();
    }
}
