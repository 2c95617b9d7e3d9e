//! Recomputation: memory that is idle while most bytes are in use is given up, and its value is computed once more before it is read again.
//!
//! A value has the bits of its first computation, as kernels give the same result for the same operands, and a random call draws the same
//! numbers again. The choice is greedy, as that of dynamic tensor rematerialisation (Kirisame et al., ICLR 2021): at the point where most bytes
//! are in use, what frees most bytes for each picosecond that it costs goes first. Which values are given up for one budget are given up for
//! any smaller one too, so the predicted time falls as the budget grows.

use super::super::types::{Node, Program, ValueId, Work};
use super::liveness::{Liveness, Piece, Sizes};
use crate::error::{Error, Result};
use oflow_kernels::DType;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Memory that a graph may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Values that cost next to nothing to compute once more are not kept: activations, norms, copies. They add a thirtieth to the predicted
    /// time at most. Kept are results of what declares FLOPs, as products do, of what makes indices, as sorting does, and of ops with kernels
    /// of their own, whose time nobody knows.
    #[default]
    Cheap,
    /// As many bytes on each rank, with tensors from outside: parameters, states of optimizers and inputs. What costs least for a byte is
    /// computed once more until the budget is kept. That it cannot be kept is an error of the capture.
    Budget(usize),
    /// As few bytes as recomputation can reach.
    Least,
}

/// `cheap`, `least`, or a number of bytes.
impl FromStr for Memory {
    type Err = Error;
    fn from_str(text: &str) -> Result<Memory> {
        match text {
            "cheap" => Ok(Memory::Cheap),
            "least" => Ok(Memory::Least),
            bytes => bytes.parse().map(Memory::Budget).map_err(|_| {
                Error::argument(format!("a graph cannot take {text:?} of memory"))
                    .help("give `cheap`, the default, `least`, or a number of bytes")
            }),
        }
    }
}

/// Smaller values than this are kept where the time matters, and at least this part of the peak must be gained.
const SMALL: usize = 64 << 10;
const PART_OF_PEAK: usize = 500;
/// The part of the predicted time that cheap recomputation may add.
const PART_OF_TIME: u64 = 30;
/// Calls that are made once more for one value: longer chains are not considered.
const LONGEST: usize = 256;

/// Computes values once more as [`Memory`] says.
pub(super) fn recompute(program: &mut Program, memory: Memory) {
    let mut search = Search::new(program, memory);
    if let Some(smaller) = search.run() {
        *program = smaller;
    }
}

/// Values that are given up: by the number of their first value, the node after which uses read the second one.
type GivenUp = BTreeMap<usize, usize>;

/// A value that could be given up.
struct Candidate {
    /// Values that are given up with it, for the same reason.
    all: Vec<(usize, usize)>,
    bytes: usize,
    time: u64,
}

/// A program in which values are computed once more.
struct Rebuilt {
    program: Program,
    /// Node of the original program before which each node stands; its own place, of one of the original program.
    anchor: Vec<usize>,
    /// The value of the original program that each value is; whether it is computed once more.
    of: Vec<(ValueId, bool)>,
    live: Liveness,
}

struct Search<'a> {
    program: &'a Program,
    memory: Memory,
    /// Of the program as it was.
    live: Liveness,
    /// Node that makes each value.
    maker: Vec<Option<usize>>,
    /// Values by which a run decides: what is made under one belongs to it.
    guards: BTreeSet<ValueId>,
    time: Vec<u64>,
    given_up: GivenUp,
    /// Time that the calls take which are made once more.
    added: u64,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, memory: Memory) -> Search<'a> {
        let mut sizes = Sizes::default();
        let live = Liveness::of(program, &mut sizes);
        let mut maker = vec![None; program.values.len()];
        for (n, node) in program.nodes.iter().enumerate() {
            node.outputs.iter().for_each(|v| maker[v.index()] = Some(n));
        }
        let time = program.nodes.iter().map(|node| live.time_of(program, node, &mut sizes)).collect();
        let guards = program.nodes.iter().filter_map(|n| n.guard).map(|v| live.root[v.index()]).collect();
        Search { program, memory, live, maker, guards, time, given_up: GivenUp::new(), added: 0 }
    }

    /// The bytes that are to be reached, beside tensors from outside.
    fn target(&self) -> usize {
        match self.memory {
            Memory::Budget(bytes) => bytes.saturating_sub(self.live.outside),
            Memory::Cheap | Memory::Least => 0,
        }
    }

    /// The time that may be added.
    fn allowed(&self) -> u64 {
        match self.memory {
            Memory::Cheap => self.time.iter().sum::<u64>() / PART_OF_TIME,
            Memory::Budget(_) | Memory::Least => u64::MAX,
        }
    }

    /// The program with the smallest peak that was found, or the first within the budget; none where nothing is gained.
    fn run(&mut self) -> Option<Program> {
        let (target, allowed) = (self.target(), self.allowed());
        let mut now = self.rebuilt(&self.given_up);
        let (mut least, mut best) = (now.live.peak.1, None);
        while least > target {
            let mut round = self.candidates(&now);
            round.retain(|c| c.time <= allowed - self.added);
            let Some(first) = round.first() else { break };
            // Equal layers have equal candidates: they are taken together.
            let (bytes, time) = (first.bytes, first.time);
            round.retain(|c| (c.bytes, c.time) == (bytes, time));
            round.truncate(((allowed - self.added) / time.max(1)).try_into().unwrap_or(usize::MAX));
            let mut taken = self.with(&round);
            let mut next = self.rebuilt(&taken);
            if next.live.peak.1 <= target {
                // As many as are needed; their number is found by halving.
                let (mut low, mut high) = (1, round.len());
                while low < high {
                    let middle = low.midpoint(high);
                    let some = self.with(&round[..middle]);
                    let tried = self.rebuilt(&some);
                    if tried.live.peak.1 <= target {
                        (high, taken, next) = (middle, some, tried);
                    } else {
                        low = middle + 1;
                    }
                }
            }
            self.given_up = taken;
            self.added = self.added.saturating_add(round.iter().map(|c| c.time).sum());
            now = next;
            if now.live.peak.1 < least {
                least = now.live.peak.1;
                best = Some(now.program.clone());
            }
        }
        best
    }

    /// Values that are given up already, and these.
    fn with(&self, more: &[Candidate]) -> GivenUp {
        let mut all = self.given_up.clone();
        all.extend(more.iter().flat_map(|c| &c.all).copied());
        all
    }

    /// Values that can be given up at the peak, the best first.
    fn candidates(&self, now: &Rebuilt) -> Vec<Candidate> {
        let (peak, most) = now.live.peak;
        let least = match self.memory {
            Memory::Cheap => SMALL.max(most / PART_OF_PEAK),
            Memory::Budget(_) | Memory::Least => 1,
        };
        // The piece of memory of each value of the original program.
        let mut first: Vec<Option<&Piece>> = vec![None; self.program.values.len()];
        for (v, (of, again)) in now.of.iter().enumerate() {
            if !again {
                first[of.index()] = Some(&now.live.pieces[v]);
            }
        }
        let mut found: Vec<(usize, Candidate)> = vec![];
        for (v, piece) in first.iter().enumerate() {
            let Some((piece, made)) = piece.and_then(|p| Some((p, p.made?))) else { continue };
            if piece.bytes < least || made >= peak || self.given_up.contains_key(&v) || !self.may_be_given_up(v) {
                continue;
            }
            // In use at the peak, but not by the node there.
            let after = piece.uses.partition_point(|u| *u < peak);
            let Some(next) = piece.uses.get(after).filter(|u| **u > peak) else { continue };
            // It is there again when that node begins.
            if now.live.before[*next] >= most {
                continue;
            }
            let before = piece.uses[..after].last().copied().unwrap_or(made);
            let (before, next) = (now.anchor[before], now.anchor[*next]);
            if next <= now.anchor[peak] || before >= next {
                continue;
            }
            let mut chain =
                Chain { search: self, now, first: &first, all: vec![(v, before)], bytes: piece.bytes, time: 0 };
            if chain.compute((v, next), peak).is_some() && chain.bytes >= least {
                found.push((v, Candidate { all: chain.all, bytes: chain.bytes, time: chain.time }));
            }
        }
        // Bytes for each picosecond, by products, as fractions are compared; equal ones by their place.
        let better = |a: &Candidate, b: &Candidate| {
            let (a, b) = (a.bytes as u128 * u128::from(b.time), b.bytes as u128 * u128::from(a.time));
            b.cmp(&a)
        };
        found.sort_by(|(v, a), (w, b)| better(a, b).then((b.bytes, a.time).cmp(&(a.bytes, b.time))).then(v.cmp(w)));
        found.into_iter().map(|(_, c)| c).collect()
    }

    /// Whether the call that makes a value can be made once more: it does nothing else and writes nothing, and no memory that it makes is
    /// written or returned.
    fn may_be_given_up(&self, v: usize) -> bool {
        let Some(node) = self.maker[v].map(|n| &self.program.nodes[n]) else { return false };
        let Work::Call(call) = &node.work else { return false };
        let plain = !call.op.traits.side_effect && !call.into && call.host.is_none() && call.op.layout.is_none();
        let fixed = !call.op.traits.random || call.draw.is_some();
        let indices = || node.outputs.iter().any(|v| matches!(self.program.ty(*v).ty().dtype, DType::I32 | DType::I64));
        let cheap = self.memory != Memory::Cheap || call.op.flops.is_none() && call.op.kernels.is_empty() && !indices();
        let piece = &self.live.pieces[v];
        let guard = self.guards.contains(&ValueId(v as u32));
        let kept = guard
            || piece.uses.last() == Some(&self.program.nodes.len())
            || !self.live.writes_of(ValueId(v as u32)).is_empty();
        plain && fixed && cheap && !kept && node.writes.is_empty() && node.guard.is_none() && !node.recomputed
    }

    /// The program in which uses of what is given up read second values, which are computed before the first of these uses.
    fn rebuilt(&self, given_up: &GivenUp) -> Rebuilt {
        let mut made = Rebuild {
            search: self,
            given_up,
            again: BTreeMap::new(),
            into: Program::default(),
            anchor: vec![],
            of: vec![],
        };
        let program = self.program;
        let p = &mut made.into;
        (p.values, p.outside) = (program.values.clone(), program.outside.clone());
        (p.outputs, p.hosts, p.draws) = (program.outputs.clone(), program.hosts.clone(), program.draws.clone());
        made.of = (0..program.values.len() as u32).map(|v| (ValueId(v), false)).collect();
        for (n, node) in program.nodes.iter().enumerate() {
            let mut node = node.clone();
            // A window is made where it is read.
            if self.reads(n) {
                let backward = node.backward;
                let needs: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
                let now: Vec<ValueId> = needs.iter().map(|v| made.at(*v, n, backward)).collect();
                node.inputs.iter_mut().flatten().zip(now).for_each(|(v, now)| *v = now);
            }
            made.into.nodes.push(node);
            made.anchor.push(n);
        }
        let Rebuild { into: program, anchor, of, .. } = made;
        let live = Liveness::of(&program, &mut Sizes::default());
        Rebuilt { program, anchor, of, live }
    }

    /// Whether a node reads memory: others make windows.
    fn reads(&self, n: usize) -> bool {
        let node = &self.program.nodes[n];
        !matches!(node.outputs.as_slice(), [v] if self.live.root[v.index()] != *v)
    }
}

/// The calls that a candidate costs.
struct Chain<'a, 'b> {
    search: &'a Search<'b>,
    now: &'a Rebuilt,
    /// The piece of memory of each value of the original program, as it is now.
    first: &'a [Option<&'a Piece>],
    all: Vec<(usize, usize)>,
    bytes: usize,
    time: u64,
}

impl Chain<'_, '_> {
    /// Adds what it takes to compute a value once more, before a node of the original program. None where that cannot be.
    fn compute(&mut self, (v, at): (usize, usize), peak: usize) -> Option<()> {
        let search = self.search;
        let mut open = vec![v];
        while let Some(v) = open.pop() {
            let n = search.maker[v]?;
            self.time += search.time[n];
            for u in search.program.nodes[n].inputs.iter().flatten() {
                if search.live.writes_of(*u).iter().any(|w| (n..at).contains(w)) {
                    return None;
                }
                let u = search.live.root[u.index()].index();
                if search.live.pieces[u].made.is_none()
                    || search.given_up.contains_key(&u)
                    || self.all.iter().any(|(known, _)| *known == u)
                {
                    continue;
                }
                let piece = self.first[u]?;
                let last = *self.now.anchor.get(piece.last()).unwrap_or(&usize::MAX);
                if last >= at || piece.last() >= peak {
                    continue;
                }
                // It is kept for this, or computed once more itself: what frees more for its time.
                let (kept, more) = (self.bytes.saturating_sub(piece.bytes) as u128, search.time[search.maker[u]?]);
                let by_keeping = kept * u128::from(self.time + more);
                let longest = self.all.len() == LONGEST || !search.may_be_given_up(u);
                if longest || by_keeping >= self.bytes as u128 * u128::from(self.time) {
                    self.bytes = self.bytes.checked_sub(piece.bytes)?;
                } else {
                    self.all.push((u, last));
                    open.push(u);
                }
            }
        }
        Some(())
    }
}

/// A program that is made anew with second values.
struct Rebuild<'a, 'b> {
    search: &'a Search<'b>,
    given_up: &'a GivenUp,
    /// Second values, by the first ones.
    again: BTreeMap<usize, ValueId>,
    into: Program,
    anchor: Vec<usize>,
    of: Vec<(ValueId, bool)>,
}

impl Rebuild<'_, '_> {
    /// The value that is read for `v` by a call before node `n`, or by that node.
    fn known(&self, v: ValueId, n: usize) -> Option<ValueId> {
        let root = self.search.live.root[v.index()].index();
        match self.given_up.get(&root) {
            Some(last) if n > *last => self.again.get(&v.index()).copied(),
            _ => Some(v),
        }
    }

    /// The same, computed once more now if it is to be.
    fn at(&mut self, v: ValueId, n: usize, backward: bool) -> ValueId {
        let mut open = vec![v];
        while let Some(top) = open.last().copied() {
            let Some(made) = self.search.maker[top.index()].filter(|_| self.known(top, n).is_none()) else {
                open.pop();
                continue;
            };
            let node = &self.search.program.nodes[made];
            let missing = node.inputs.iter().flatten().find(|u| self.known(**u, n).is_none());
            if let Some(u) = missing {
                open.push(*u);
                continue;
            }
            open.pop();
            let mut node = Node { recomputed: true, backward, ..node.clone() };
            node.inputs.iter_mut().flatten().for_each(|u| *u = self.known(*u, n).unwrap_or(*u));
            for o in &mut node.outputs {
                let second = self.into.add_value(self.search.program.ty(*o).clone());
                self.again.insert(o.index(), second);
                self.of.push((*o, true));
                *o = second;
            }
            self.into.nodes.push(node);
            self.anchor.push(n);
        }
        self.known(v, n).unwrap_or(v)
    }
}
