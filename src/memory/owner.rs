//! Owners of memory: which op at which line of the program made a block, and what the block is used for.
//!
//! A block of [`OWNED_FROM`] bytes or more is counted for its owner from its allocation to its end, so that an error for want of memory can
//! tell who holds it without having been told before. Smaller blocks are counted together: an entry costs some 10 ns, which a kernel on
//! 4 KiB outweighs and one on 64 bytes does not.
//!
//! The bytes of each owner *at the peak* are kept without copying the table at each new peak. Each peak has a number. A row keeps the bytes that it
//! had at the peak whose number it carries; a row that has not changed since the last peak still has the bytes of that peak.

use crate::error::{CallSite, NameScope};
use indexmap::map::Entry;
use oflow_base::intern::FixedMap;
use std::cell::Cell;
use std::fmt;

/// Blocks from this size on have an owner.
pub(super) const OWNED_FROM: usize = 4096;

/// More owners are not told apart: a program that makes lines or scopes as it runs would fill the memory.
const OWNERS: usize = 1 << 16;

/// Use of a block of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MemoryUse {
    /// A leaf that requires a gradient.
    Parameter,
    /// The gradient of a leaf.
    Gradient,
    /// State of an optimizer.
    OptimizerState,
    /// A result of forward: saved for backward, or held by the program.
    #[default]
    Activation,
    /// A result of backward that is no leaf's gradient.
    Backward,
    /// The result of a boxing, or memory that it needs while it runs.
    Boxing,
    /// Memory that a kernel needs while it runs, and copies made for it.
    Workspace,
    /// Values that the program gave: data, constants, tensors loaded from a file.
    Data,
    /// Memory of a captured graph, in which it packs its values.
    Graph,
}

impl MemoryUse {
    /// All of them, in the order of declaration.
    pub const ALL: [MemoryUse; 9] = [
        MemoryUse::Parameter,
        MemoryUse::Gradient,
        MemoryUse::OptimizerState,
        MemoryUse::Activation,
        MemoryUse::Backward,
        MemoryUse::Boxing,
        MemoryUse::Workspace,
        MemoryUse::Data,
        MemoryUse::Graph,
    ];

    /// Name in reports and timelines.
    pub fn name(self) -> &'static str {
        match self {
            MemoryUse::Parameter => "parameters",
            MemoryUse::Gradient => "gradients",
            MemoryUse::OptimizerState => "optimizer state",
            MemoryUse::Activation => "activations",
            MemoryUse::Backward => "backward",
            MemoryUse::Boxing => "boxing",
            MemoryUse::Workspace => "workspace",
            MemoryUse::Data => "data",
            MemoryUse::Graph => "graphs",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The owner of a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryOwner {
    /// Use of the block.
    pub used_for: MemoryUse,
    /// Name of the op that made it.
    pub op: &'static str,
    /// The user's line, with its name scope.
    pub site: CallSite,
}

impl MemoryOwner {
    /// Nobody that is known.
    const UNKNOWN: MemoryOwner = MemoryOwner { used_for: MemoryUse::Activation, op: "", site: CallSite::at("", 0) };

    /// The owner of what this thread allocates now: its last call, as a rule.
    pub fn here() -> MemoryOwner {
        HERE.get()
    }

    /// Makes this the owner of what this thread allocates from now on, until another one is.
    #[inline]
    pub(crate) fn begin(self) {
        HERE.set(self);
    }

    /// Runs `f`, which allocates for this owner.
    #[inline]
    pub(crate) fn run<R>(self, f: impl FnOnce() -> R) -> R {
        let before = HERE.replace(self);
        let result = f();
        HERE.set(before);
        result
    }

    /// Runs `f`, which allocates for another use of the present owner.
    #[inline]
    pub(crate) fn with_use<R>(used_for: MemoryUse, f: impl FnOnce() -> R) -> R {
        MemoryOwner { used_for, ..HERE.get() }.run(f)
    }

    pub(super) fn is_in_scope(&self) -> bool {
        self.site.scope != NameScope::default()
    }

    /// Place among the owners met last.
    fn slot(&self) -> usize {
        let at = |text: &str| text.as_ptr().addr();
        let mixed = (at(self.site.file) ^ at(self.op).rotate_left(17) ^ self.used_for.index())
            .wrapping_add((self.site.line as usize) << 8)
            .wrapping_add(self.site.scope.number() as usize);
        // The upper bits of a product depend on all bits of its factors.
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> (usize::BITS - SLOTS.ilog2())) % SLOTS
    }
}

thread_local! {
    /// Set by each call, and not restored at its end: a call that goes on after another one says so again before it allocates.
    static HERE: Cell<MemoryOwner> = const { Cell::new(MemoryOwner::UNKNOWN) };
}

/// Number of an owner in its table; none of a small block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnerId(u32);

impl OwnerId {
    /// The block is counted together with other small ones.
    pub(super) const NONE: OwnerId = OwnerId(0);

    /// Nobody that is known, or one that found no place in the table.
    const BEYOND: OwnerId = OwnerId(1);

    fn index(self) -> usize {
        self.0 as usize - 1
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn from_number(number: u32) -> OwnerId {
        OwnerId(number)
    }
}

/// Bytes and blocks of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bytes: usize,
    pub(super) blocks: usize,
}

#[derive(Clone, Copy, Default)]
struct Row {
    now: Share,
    /// Share at peak number `peak`.
    then: Share,
    peak: u64,
}

/// Owners met last, by a few bits of their names: most calls meet the owner of the step before.
const SLOTS: usize = 256;

/// Shares of all owners of one allocator.
pub(super) struct Owners {
    /// Numbers by owner.
    ids: FixedMap<MemoryOwner, OwnerId>,
    rows: Vec<Row>,
    /// Number of the last peak.
    peak: u64,
    recent: Box<[Option<(MemoryOwner, OwnerId)>; SLOTS]>,
    /// Bytes by use.
    sums: [usize; MemoryUse::ALL.len()],
}

impl Owners {
    pub(super) fn new() -> Owners {
        let mut ids = FixedMap::default();
        ids.insert(MemoryOwner::UNKNOWN, OwnerId::BEYOND);
        Owners { ids, rows: vec![Row::default()], peak: 0, recent: Box::new([None; SLOTS]), sums: Default::default() }
    }

    /// The number of an owner.
    #[inline]
    pub(super) fn id(&mut self, owner: &MemoryOwner) -> OwnerId {
        let slot = owner.slot();
        match &self.recent[slot] {
            Some((met, id)) if same(met, owner) => *id,
            _ => self.find(owner, slot),
        }
    }

    #[cold]
    fn find(&mut self, owner: &MemoryOwner, slot: usize) -> OwnerId {
        let full = self.ids.len() >= OWNERS;
        let id = match self.ids.entry(*owner) {
            Entry::Occupied(e) => *e.get(),
            Entry::Vacant(_) if full => return OwnerId::BEYOND,
            Entry::Vacant(e) => {
                self.rows.push(Row::default());
                *e.insert(OwnerId(self.rows.len() as u32))
            }
        };
        self.recent[slot] = Some((*owner, id));
        id
    }

    /// The owner of a number.
    pub(super) fn owner(&self, id: OwnerId) -> Option<&MemoryOwner> {
        // Numbers are places in the map, from 1.
        self.ids.get_index((id.0 as usize).checked_sub(1)?).map(|(owner, _)| owner)
    }

    fn used_for(&self, id: OwnerId) -> MemoryUse {
        self.owner(id).map_or(MemoryUse::default(), |o| o.used_for)
    }

    /// Adds a block to an owner.
    #[inline]
    pub(super) fn add(&mut self, id: OwnerId, bytes: usize) {
        let used_for = self.used_for(id);
        let row = self.row(id);
        row.now.bytes += bytes;
        row.now.blocks += 1;
        self.sums[used_for.index()] += bytes;
    }

    /// Takes a block from its owner.
    #[inline]
    pub(super) fn remove(&mut self, id: OwnerId, bytes: usize) {
        let used_for = self.used_for(id);
        let row = self.row(id);
        row.now.bytes -= bytes;
        row.now.blocks -= 1;
        self.sums[used_for.index()] -= bytes;
    }

    /// A row that is about to change.
    #[inline]
    fn row(&mut self, id: OwnerId) -> &mut Row {
        let row = &mut self.rows[id.index()];
        if row.peak != self.peak {
            (row.then, row.peak) = (row.now, self.peak);
        }
        row
    }

    /// The shares now are those of the highest peak so far.
    #[inline]
    pub(super) fn at_peak(&mut self) {
        self.peak += 1;
    }

    /// Bytes in use now for that purpose, in blocks that have an owner.
    pub(super) fn sum(&self, used_for: MemoryUse) -> usize {
        self.sums[used_for.index()]
    }

    /// Owners that hold something now.
    pub(super) fn now(&self) -> Vec<(MemoryOwner, Share)> {
        self.shares(|row| row.now)
    }

    /// Owners that held something at the peak.
    pub(super) fn then(&self) -> Vec<(MemoryOwner, Share)> {
        self.shares(|row| if row.peak == self.peak { row.then } else { row.now })
    }

    fn shares(&self, of: impl Fn(&Row) -> Share) -> Vec<(MemoryOwner, Share)> {
        self.ids.keys().zip(&self.rows).map(|(o, row)| (*o, of(row))).filter(|(_, s)| s.blocks > 0).collect()
    }
}

/// Whether both are one owner, by the addresses of their texts: equal texts at two addresses have two places among the recent ones.
#[inline]
fn same(a: &MemoryOwner, b: &MemoryOwner) -> bool {
    std::ptr::eq(a.op, b.op)
        && std::ptr::eq(a.site.file, b.site.file)
        && (a.site.line, a.site.scope, a.used_for) == (b.site.line, b.site.scope, b.used_for)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oflow_base::Random;

    fn owner(line: u32) -> MemoryOwner {
        MemoryOwner { used_for: MemoryUse::ALL[line as usize % 9], op: "op", site: CallSite::at("file.rs", line) }
    }

    /// Random programs beside tables that are copied at each peak.
    #[test]
    fn shares_at_the_peak_are_those_of_a_copied_table() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let mut owners = Owners::new();
            let mut blocks: Vec<(u32, usize)> = Vec::new();
            let (mut live, mut peak, mut copied) = (0, 0, Vec::new());
            for _ in 0..random.below(200) {
                if random.below(3) > 0 || blocks.is_empty() {
                    let (line, bytes) = (random.below(6) as u32, random.below(1000));
                    let id = owners.id(&owner(line));
                    owners.add(id, bytes);
                    blocks.push((line, bytes));
                    live += bytes;
                    if live > peak {
                        peak = live;
                        owners.at_peak();
                        copied = owners.now();
                    }
                } else {
                    let (line, bytes) = blocks.swap_remove(random.below(blocks.len()));
                    let id = owners.id(&owner(line));
                    owners.remove(id, bytes);
                    live -= bytes;
                }
                assert_eq!(owners.then(), copied);
                assert_eq!(owners.now().iter().map(|(_, s)| s.bytes).sum::<usize>(), live);
                assert_eq!(owners.sums.iter().sum::<usize>(), live);
            }
        }
    }

    #[test]
    fn owners_beyond_the_table_are_counted_together() {
        let mut owners = Owners::new();
        for line in 0..(OWNERS as u32 + 50) {
            let id = owners.id(&owner(line));
            owners.add(id, 1);
        }
        let now = owners.now();
        assert_eq!((now.len(), now[0].1), (OWNERS, Share { bytes: 51, blocks: 51 }));
    }

    #[test]
    fn equal_texts_at_two_addresses_are_one_owner() {
        let copy: &'static str = String::from("op").leak();
        let mut owners = Owners::new();
        let a = owners.id(&owner(3));
        let b = owners.id(&MemoryOwner { op: copy, ..owner(3) });
        assert_eq!(a, b);
        assert_ne!(a, owners.id(&owner(12)));
    }
}
