//! How long the memory of a program's values is in use: what passes decide by. All of it is alike on all ranks: a value counts with the
//! bytes of the rank that holds most of it.

use super::super::types::{CallNode, Node, Program, ValueId, Work};
use super::changes::{changes, stays};
use crate::boxing::{self, Layout};
use crate::ops::{InferCtx, TensorType};
use crate::plan::{GlobalRef, TypeRef};
use oflow_kernels::Strides;
use oflow_kernels::view::{contiguous_strides, copied};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Picoseconds of one FLOP, and of a byte that is read or written. Passes compare predicted times with each other only.
const PS_PER_FLOP: u64 = 20;
const PS_PER_BYTE: u64 = 100;
/// Picoseconds of a call that computes nothing.
pub(super) const PS_PER_CALL: u64 = 200_000;

/// Memory of one value and of all windows onto it.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// Node that makes it; none of a tensor from outside.
    pub(super) made: Option<usize>,
    /// Bytes on the rank that holds most of it.
    pub(super) bytes: usize,
    /// Nodes that read it, in order; the number of nodes where a run returns it. Making a window is no reading.
    pub(super) uses: Vec<usize>,
    /// Nodes that write over it.
    pub(super) writes: Vec<usize>,
    /// The last node during which an exchange that goes on may use it.
    pub(super) held: Option<usize>,
}

impl Piece {
    /// The node at which it is last in use.
    pub(super) fn last(&self) -> usize {
        self.uses.last().copied().max(self.writes.last().copied()).max(self.made).max(self.held).unwrap_or(0)
    }
}

/// Memory of a program's values.
pub(super) struct Liveness {
    /// The value that each value is a window onto; itself of one that has memory of its own.
    pub(super) root: Vec<ValueId>,
    /// By root.
    pub(super) pieces: Vec<Piece>,
    /// The value whose memory each value may show: also through views that need a copy where tensors are contiguous, as outside tensors may have
    /// any strides.
    shown: Vec<ValueId>,
    /// Nodes that write memory, by the value that is shown.
    written: Vec<Vec<usize>>,
    /// Bytes that are in use when each node begins; tensors from outside do not count.
    pub(super) before: Vec<usize>,
    /// Bytes that are in use in each node.
    pub(super) used: Vec<usize>,
    /// The node in which most bytes are in use, and these bytes.
    pub(super) peak: (usize, usize),
    /// Bytes of the tensors from outside.
    pub(super) outside: usize,
    /// By node.
    facts: Vec<Facts>,
}

/// Memory that a node uses, by number of the value that has it.
#[derive(Default)]
struct Facts {
    /// Bytes beside what it reads and makes; and those of a boxing that goes on while others compute.
    scratch: (usize, usize),
    /// Memory that a boxing reads, and memory that it makes.
    moved: (SmallVec<[usize; 1]>, SmallVec<[usize; 1]>),
    /// Result of an elementwise call, and operands of the same type.
    alike: Option<(usize, SmallVec<[usize; 2]>)>,
}

/// Bytes that are in use where the nodes stand in some order.
pub(super) struct InUse {
    /// When each node begins, and in it, by its place; and after the last.
    pub(super) before: Vec<usize>,
    pub(super) used: Vec<usize>,
    /// The last place in which an exchange that goes on may use each value's memory.
    held: Vec<Option<usize>>,
}

/// Sizes of types on the rank that holds most of a value, and of what boxings take beside.
#[derive(Default)]
pub(super) struct Sizes {
    shards: BTreeMap<u64, usize>,
    scratch: BTreeMap<(u64, u64), usize>,
}

impl Sizes {
    pub(super) fn of(&mut self, ty: &TypeRef) -> usize {
        match ty {
            TypeRef::Local(l) => l.bytes,
            TypeRef::Global(g) => *self.shards.entry(g.id()).or_insert_with(|| largest_shard(g)),
        }
    }

    /// Bytes that a boxing takes between its steps.
    fn scratch(&mut self, from: &GlobalRef, to: &GlobalRef) -> usize {
        *self.scratch.entry((from.id(), to.id())).or_insert_with(|| {
            let layout = |g: &GlobalRef| Layout::new(&g.placement, g.sbp.clone());
            let plan = boxing::plan(&from.ty.shape, from.ty.dtype, &layout(from), &layout(to));
            plan.map_or(0, |p| p.extra_bytes().try_into().unwrap_or(usize::MAX))
        })
    }
}

/// The balanced split gives the larger parts to the smaller coordinates.
fn largest_shard(g: &GlobalRef) -> usize {
    let first = g.placement.ranks().first().and_then(|rank| g.shard_dims(*rank));
    first.map_or(0, |dims| dims.iter().product::<usize>()) * g.ty.dtype.size()
}

/// Whether all ranks hold as much of each global value.
pub(super) fn is_even(program: &Program) -> bool {
    let shard = |g: &GlobalRef, rank: Option<&usize>| rank.and_then(|rank| g.shard_dims(*rank));
    let even = |g: &GlobalRef| shard(g, g.placement.ranks().first()) == shard(g, g.placement.ranks().last());
    let mut global = program.values.iter().filter_map(TypeRef::global);
    let Some(first) = global.next() else { return true };
    even(first)
        && global.all(|g| g.placement.ranks() == first.placement.ranks() && even(g))
        && program.sections().iter().all(|s| is_even(s.body))
}

impl Liveness {
    pub(super) fn of(program: &Program, sizes: &mut Sizes) -> Liveness {
        let count = program.values.len();
        let mut root: Vec<ValueId> = (0..count as u32).map(ValueId).collect();
        let mut strides: Vec<Option<Strides>> = vec![None; count];
        let mut pieces = vec![Piece::default(); count];
        let (mut shown, mut written) = (root.clone(), vec![vec![]; count]);
        let mut outside = 0;
        for o in &program.outside {
            let bytes = sizes.of(program.ty(o.value));
            pieces[o.value.index()].bytes = bytes;
            outside += bytes;
        }
        for (n, node) in program.nodes.iter().enumerate() {
            if let (Some(Some(from)), [to]) = (node.inputs.first(), node.outputs.as_slice())
                && (node.is_boxing() || node.call().is_some_and(|c| c.op.view.is_some()))
            {
                shown[to.index()] = shown[from.index()];
            }
            for w in &node.writes {
                shown[w.new.index()] = shown[w.old.index()];
                written[shown[w.old.index()].index()].push(n);
            }
            if let Some((from, to, seen)) = window(program, node, &strides) {
                (root[to.index()], strides[to.index()]) = (root[from.index()], seen);
                continue;
            }
            for v in node.inputs.iter().flatten().chain(&node.guard) {
                pieces[root[v.index()].index()].uses.push(n);
            }
            for w in &node.writes {
                root[w.new.index()] = root[w.old.index()];
                strides[w.new.index()] = strides[w.old.index()].clone();
                pieces[root[w.old.index()].index()].writes.push(n);
            }
            for v in &node.outputs {
                pieces[v.index()] = Piece { made: Some(n), bytes: sizes.of(program.ty(*v)), ..Piece::default() };
            }
        }
        for v in &program.outputs {
            pieces[root[v.index()].index()].uses.push(program.nodes.len());
        }
        let facts = program.nodes.iter().map(|node| Facts::of(program, node, (&root, &pieces), sizes)).collect();
        let (before, used, peak) = (vec![], vec![], (0, 0));
        let mut live = Liveness { root, pieces, shown, written, before, used, peak, outside, facts };
        let order: Vec<usize> = (0..program.nodes.len()).collect();
        let InUse { before, used, held } = live.in_use(&order, |n| program.nodes[n].overlapped);
        live.pieces.iter_mut().zip(held).for_each(|(piece, held)| piece.held = held);
        let most = used.iter().copied().max().unwrap_or(0);
        live.peak = (used.iter().position(|u| *u == most).unwrap_or(0), most);
        (live.before, live.used) = (before, used);
        live
    }

    /// Bytes in use if the nodes stood in this order, and these exchanges went on while others compute.
    ///
    /// Memory of such an exchange is in use up to the first node that uses what it makes; if that is another such exchange, up to what waits for
    /// that one.
    pub(super) fn in_use(&self, order: &[usize], overlapped: impl Fn(usize) -> bool) -> InUse {
        let end = order.len();
        let mut place = vec![end; end + 1];
        order.iter().enumerate().for_each(|(at, n)| place[*n] = at);
        let users = |v: usize| self.pieces[v].uses.iter().chain(&self.pieces[v].writes).map(|n| place[*n]);
        let mut held: Vec<Option<usize>> = vec![None; self.pieces.len()];
        // The place in which the exchange in each place is waited for; that behind it, of others.
        let mut waits: Vec<usize> = (1..=end + 1).collect();
        for at in (0..end).rev().filter(|at| overlapped(order[*at])) {
            let (read, made) = &self.facts[order[at]].moved;
            let first = made.iter().flat_map(|v| users(*v)).min().unwrap_or(at + 1);
            let goes_on = order.get(first).is_some_and(|n| overlapped(*n));
            waits[at] = if goes_on { waits[first] } else { first };
            read.iter().chain(made).for_each(|v| held[*v] = held[*v].max(Some(waits[at] - 1)));
        }
        let mut last = vec![None; self.pieces.len()];
        let (mut begin, mut over) = (vec![0usize; end + 1], vec![0usize; end + 2]);
        for (v, piece) in self.pieces.iter().enumerate() {
            let Some(made) = piece.made.map(|n| place[n]) else { continue };
            let until = users(v).chain(held[v]).fold(made, usize::max);
            last[v] = Some(until);
            begin[made] += piece.bytes;
            over[until + 1] += piece.bytes;
        }
        let (mut before, mut used, mut now) = (Vec::with_capacity(end + 1), Vec::with_capacity(end + 1), 0);
        for at in 0..=end {
            before.push(now - over[at]);
            now = before[at] + begin[at];
            used.push(now);
        }
        for (at, n) in order.iter().enumerate() {
            let facts = &self.facts[*n];
            match overlapped(*n) {
                true => used[at..waits[at]].iter_mut().for_each(|used| *used += facts.scratch.1),
                false => used[at] += facts.scratch.0,
            }
            // An operand that ends with an elementwise call: the result takes its memory.
            let ends = |v: &usize| last[*v] == Some(at) && held[*v].is_none_or(|held| held < at);
            if let Some((made, operands)) = &facts.alike
                && operands.iter().any(ends)
            {
                used[at] -= self.pieces[*made].bytes;
            }
        }
        InUse { before, used, held }
    }

    /// The value whose memory the value may show: itself, where it has memory of its own.
    pub(super) fn shown(&self, v: ValueId) -> ValueId {
        self.shown[v.index()]
    }

    /// Nodes that write memory that the value may show.
    pub(super) fn writes_of(&self, v: ValueId) -> &[usize] {
        &self.written[self.shown[v.index()].index()]
    }
}

impl Facts {
    fn of(program: &Program, node: &Node, (root, pieces): (&[ValueId], &[Piece]), sizes: &mut Sizes) -> Facts {
        let mut facts = Facts { scratch: scratch(program, node, sizes), ..Facts::default() };
        if node.is_boxing() {
            let made = node.outputs.iter().filter(|v| root[v.index()] == **v).map(|v| v.index());
            facts.moved = (node.inputs.iter().flatten().map(|v| root[v.index()].index()).collect(), made.collect());
        }
        if let (Some(call), [made]) = (node.call(), node.outputs.as_slice())
            && call.op.traits.elementwise
        {
            let alike = |v: &&ValueId| pieces[v.index()].made.is_some() && program.ty(**v).same(program.ty(*made));
            let operands = node.inputs.iter().flatten().filter(alike).map(|v| v.index()).collect();
            facts.alike = Some((made.index(), operands));
        }
        facts
    }
}

/// Value that the node makes a window onto, the window, and its strides where they are not those of contiguous memory.
fn window(program: &Program, node: &Node, strides: &[Option<Strides>]) -> Option<(ValueId, ValueId, Option<Strides>)> {
    let (Some(Some(from)), [to]) = (node.inputs.first(), node.outputs.as_slice()) else { return None };
    let (a, b) = (program.ty(*from), program.ty(*to));
    let call = match &node.work {
        Work::Box(_) => return stays(a, b).then(|| (*from, *to, strides[from.index()].clone())),
        Work::Call(call) if call.op.layout.is_some() => {
            return stays(a, b).then(|| (*from, *to, strides[from.index()].clone()));
        }
        Work::Call(call) => call,
        Work::Host(_) | Work::Repeat(_) => return None,
    };
    if call.into || !node.writes.is_empty() || a.ty().dtype != b.ty().dtype {
        return None;
    }
    let contiguous = || contiguous_strides(&a.ty().shape);
    let of_input = strides[from.index()].as_ref().map_or_else(contiguous, |s| copied(s));
    let (_, seen) = call.op.view.as_ref()?(&a.ty().shape, &of_input, &call.attrs, &b.ty().shape)?;
    Some((*from, *to, Some(seen)))
}

/// Bytes that a change of layout takes beside its input and its result. Several that are made together take none: an input ends when it has been
/// packed, and a result begins when it is unpacked. But where they go on while others compute, they take both once more. A section takes what an
/// iteration has in use.
fn scratch(program: &Program, node: &Node, sizes: &mut Sizes) -> (usize, usize) {
    if let Some(r) = node.repeat() {
        let inside = Liveness::of(&r.body, sizes).peak.1;
        return (inside, inside);
    }
    match changes(program, node).as_deref() {
        Some([(from, to)]) => {
            let bytes = sizes.scratch(from, to);
            (bytes, bytes)
        }
        Some(several) => {
            let all = several.iter().map(|(a, b)| sizes.scratch(a, b) + largest_shard(a) + largest_shard(b));
            (0, all.sum())
        }
        None => (0, 0),
    }
}

impl Liveness {
    /// Predicted time of all nodes on the rank that has most to do, in picoseconds. Only ratios matter.
    pub(super) fn time(&self, program: &Program, sizes: &mut Sizes) -> u64 {
        program.nodes.iter().map(|node| self.time_of(program, node, sizes)).sum()
    }

    /// Predicted time of a node. Making a window takes none.
    pub(super) fn time_of(&self, program: &Program, node: &Node, sizes: &mut Sizes) -> u64 {
        if let Some(r) = node.repeat() {
            let once = Liveness::of(&r.body, sizes).time(&r.body, sizes);
            return once.saturating_mul(r.count);
        }
        let is_window = |v: &ValueId| self.root[v.index()] != *v;
        if node.writes.is_empty() && node.outputs.iter().all(is_window) {
            return 0;
        }
        let tensors = || node.inputs.iter().flatten().chain(&node.outputs);
        let bytes: usize = tensors().map(|v| sizes.of(program.ty(*v))).sum();
        let moved = bytes as u64 * PS_PER_BYTE;
        let flops = node.call().and_then(|call| declared_flops(program, node, call)).map_or(0, |all| {
            // The rank's part of the work is as large as the smallest part that it has of a tensor.
            let part = tensors().map(|v| (sizes.of(program.ty(*v)) as u64, program.ty(*v).ty().bytes().max(1) as u64));
            let (rank, whole) = part.min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap_or((1, 1));
            (u128::from(all) * u128::from(rank) / u128::from(whole)) as u64
        });
        PS_PER_CALL + moved.saturating_add(flops.saturating_mul(PS_PER_FLOP))
    }
}

/// The FLOPs that an op declares for the call, on all ranks together.
pub(in super::super) fn declared_flops(program: &Program, node: &Node, call: &CallNode) -> Option<u64> {
    let declared = call.op.flops.as_ref()?;
    let inputs: Vec<Option<TensorType>> = node.inputs.iter().map(|v| v.map(|v| program.ty(v).ty().clone())).collect();
    let kinds: Vec<_> = call.runtime.iter().map(|s| s.kind()).collect();
    // A number that is too large for what the op computes with is no reason to refuse the program.
    declared(&InferCtx { op: call.op, inputs: &inputs, attrs: &call.attrs, runtime_kinds: &kinds }).ok()
}
