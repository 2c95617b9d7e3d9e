//! Early updates: a step of many parameters is taken apart, and each part is made as soon as its gradients are there and nobody reads the old values
//! any more. So gradients end during backward, not after it.
//!
//! `update` takes apart before memory is given up, so that no more is given up than is needed. It keeps each part back until the next one could be made:
//! calls that read the old values may still be made later then. `gather` follows when calls have their places: each part is made as early as it can be,
//! and parts that gain nothing apart go together again, because one call of many parameters is faster than many calls.

use super::super::types::{Node, Program, ValueId, Work};
use super::liveness::{Liveness, Sizes};
use super::recompute::Memory;
use std::collections::{BTreeMap, BTreeSet};

/// Where memory is not said, steps whose gradients are less than this, or less than this part of the peak, stay whole.
const SMALL: usize = 64 << 10;
const PART_OF_PEAK: usize = 64;
/// A part has at least this part of the bytes of a step's gradients: more parts would save little more.
const PARTS: usize = 16;

/// Takes steps apart.
pub(super) fn update(program: &mut Program, memory: Memory) {
    let live = Liveness::of(program, &mut Sizes::default());
    let early = Early::new(program, &live);
    let least = match memory {
        Memory::Cheap => SMALL.max(live.peak.1 / PART_OF_PEAK),
        Memory::Budget(_) | Memory::Least => 1,
    };
    let mut moves = Moves::default();
    for n in 0..program.nodes.len() {
        if let Some(parts) = early.parts(program, n, least) {
            moves.taken.insert(n);
            parts.into_iter().for_each(|(at, node)| moves.to.entry(at).or_default().push(node));
        }
    }
    moves.apply(program);
}

/// Makes parts as early as they can be, and puts them together again where the peak stays.
pub(super) fn gather(program: &mut Program) {
    let calls = parts_of(program);
    if calls.is_empty() {
        return;
    }
    let mut sizes = Sizes::default();
    let live = Liveness::of(program, &mut sizes);
    let early = Early::new(program, &live);
    let mut moves = Moves::default();
    for n in calls.into_iter().flatten() {
        let node = &program.nodes[n];
        moves.taken.insert(n);
        moves.to.entry(early.ready(n, node)).or_default().push(node.clone());
    }
    moves.apply(program);
    let live = Liveness::of(program, &mut sizes);
    let (mut early, mut used) = (Early::new(program, &live), live.used.clone());
    let mut kept = vec![true; program.nodes.len()];
    for parts in parts_of(program) {
        let mut later = parts[parts.len() - 1];
        for part in parts.into_iter().rev().skip(1) {
            let bytes = early.ended(part, &program.nodes[part]);
            let fits = used[part + 1..=later].iter().all(|used| used + bytes <= live.peak.1);
            if !fits || !early.may_wait(program, part, later) {
                later = part;
                continue;
            }
            used[part + 1..=later].iter_mut().for_each(|used| *used += bytes);
            early.waits(&program.nodes[part], part, later);
            let earlier = program.nodes[part].clone();
            program.nodes[later].prepend(earlier);
            kept[part] = false;
        }
    }
    let mut kept = kept.into_iter();
    program.nodes.retain(|_| kept.next().unwrap_or(true));
    hosts_first(program);
}

/// Nodes of each step that is in parts.
fn parts_of(program: &Program) -> Vec<Vec<usize>> {
    let mut calls: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (n, node) in program.nodes.iter().enumerate().filter(|(_, node)| is_step(node)) {
        if let Some((host, number)) = node.call().and_then(|c| c.host) {
            calls.entry((host.0, number)).or_default().push(n);
        }
    }
    calls.into_values().filter(|parts| parts.len() > 1).collect()
}

/// Nodes that are taken away, and nodes that are put before others.
#[derive(Default)]
struct Moves {
    taken: BTreeSet<usize>,
    to: BTreeMap<usize, Vec<Node>>,
}

impl Moves {
    fn apply(mut self, program: &mut Program) {
        if self.taken.is_empty() {
            return;
        }
        let mut nodes = vec![];
        for (n, node) in std::mem::take(&mut program.nodes).into_iter().enumerate() {
            nodes.extend(self.to.remove(&n).into_iter().flatten());
            nodes.extend((!self.taken.contains(&n)).then_some(node));
        }
        program.nodes = nodes;
        hosts_first(program);
    }
}

/// Lets each host object whose calls have moved act right before the first of them.
fn hosts_first(program: &mut Program) {
    for id in 0..program.hosts.len() as u32 {
        let acts = |n: &Node| matches!(n.work, Work::Host(host) if host.0 == id);
        let calls = |n: &Node| n.call().and_then(|c| c.host).is_some_and(|(host, _)| host.0 == id);
        let (Some(at), Some(first)) = (program.nodes.iter().position(acts), program.nodes.iter().position(calls))
        else {
            continue;
        };
        if is_step(&program.nodes[first]) {
            let node = program.nodes.remove(at);
            program.nodes.insert(first - usize::from(at < first), node);
        }
    }
}

/// Whether a node is a step of parameters that do not depend on each other, with numbers of the host.
fn is_step(node: &Node) -> bool {
    node.call().is_some_and(|c| c.op.traits.separable && c.host.is_some()) && node.outputs.is_empty()
}

impl Node {
    /// The step of some of the parameters of a step, by number.
    fn part(&self, entries: &[usize]) -> Node {
        let mut node = self.clone();
        let Work::Call(call) = &mut node.work else { return node };
        let size = call.op.sig.repeating();
        let inputs = || entries.iter().flat_map(|e| e * size..(e + 1) * size);
        // The write of each input: those that are there, in order.
        let mut writes = self.writes.iter();
        let mut written = |(i, v): (usize, &Option<ValueId>)| match v.is_some() && call.op.sig.mutates(i) {
            true => writes.next().copied(),
            false => None,
        };
        let of: Vec<_> = self.inputs.iter().enumerate().map(&mut written).collect();
        node.inputs = inputs().map(|i| self.inputs[i]).collect();
        node.writes = inputs().filter_map(|i| of[i]).collect();
        if let Some(sig) = &mut call.signature {
            sig.inputs = inputs().map(|i| sig.inputs[i].clone()).collect();
        }
        node
    }

    /// Adds the parameters of an earlier part of the same step.
    fn prepend(&mut self, earlier: Node) {
        let later = std::mem::replace(self, earlier);
        self.inputs.extend(later.inputs);
        self.writes.extend(later.writes);
        if let (Work::Call(call), Work::Call(more)) = (&mut self.work, later.work)
            && let (Some(sig), Some(more)) = (&mut call.signature, more.signature)
        {
            sig.inputs.extend(more.inputs);
        }
    }
}

/// Facts about when steps may be made.
struct Early<'a> {
    live: &'a Liveness,
    /// The node that defines each value; none of one from outside.
    defined: Vec<Option<usize>>,
    /// Nodes that read or write memory, in order, by the value that it shows.
    touched: Vec<Vec<usize>>,
}

impl<'a> Early<'a> {
    fn new(program: &Program, live: &'a Liveness) -> Early<'a> {
        let mut defined = vec![None; program.values.len()];
        let mut touched = vec![vec![]; program.values.len()];
        for (n, node) in program.nodes.iter().enumerate() {
            node.defines().for_each(|v| defined[v.index()] = Some(n));
            node.needs().for_each(|v| touched[live.shown(v).index()].push(n));
        }
        Early { live, defined, touched }
    }

    /// The parts into which a step is taken whose gradients have at least so many bytes, each with the node before which it stands; none where it
    /// stays whole.
    fn parts(&self, program: &Program, n: usize, least: usize) -> Option<Vec<(usize, Node)>> {
        let node = &program.nodes[n];
        let size = node.call().filter(|_| is_step(node))?.op.sig.repeating();
        let mut entries: Vec<(usize, usize, usize)> = (0..node.inputs.len() / size)
            .map(|e| {
                let part = node.part(&[e]);
                (self.ready(n, &part), e, self.ended(n, &part))
            })
            .collect();
        let total: usize = entries.iter().map(|e| e.2).sum();
        if total < least || entries.iter().all(|e| e.0 >= n) {
            return None;
        }
        entries.sort_unstable();
        let (mut parts, mut some, mut bytes) = (vec![], vec![], 0);
        let last = entries.len() - 1;
        for (i, (at, e, ended)) in entries.into_iter().enumerate() {
            some.push(e);
            bytes += ended;
            if bytes >= total / PARTS || i == last {
                some.sort_unstable();
                parts.push((at, node.part(&some)));
                (bytes, some) = (0, vec![]);
            }
        }
        // Each one when the next could be made.
        let after: Vec<usize> = parts.iter().map(|(at, _)| *at).skip(1).chain([n]).collect();
        parts.iter_mut().zip(after).for_each(|((at, _), after)| *at = after);
        Some(parts).filter(|parts| parts.len() > 1)
    }

    /// The first node before which a part of step `n` may stand: what it needs is there, and nobody after it reads or writes what it writes.
    fn ready(&self, n: usize, part: &Node) -> usize {
        let made = part.needs().filter_map(|v| self.defined[v.index()]);
        let others = part.writes.iter().filter_map(|w| {
            let all = &self.touched[self.live.shown(w.old).index()];
            all[..all.partition_point(|m| *m < n)].last().copied()
        });
        made.chain(others).max().map_or(0, |m| m + 1)
    }

    /// Bytes that end with a part of step `n`.
    fn ended(&self, n: usize, part: &Node) -> usize {
        let roots: BTreeSet<ValueId> = part.inputs.iter().flatten().map(|v| self.live.root[v.index()]).collect();
        let pieces = roots.iter().map(|r| &self.live.pieces[r.index()]);
        pieces.filter(|p| p.made.is_some() && p.last() == n).map(|p| p.bytes).sum()
    }

    /// Whether a part may be made later: nobody in between uses what it writes, or writes what it reads.
    fn may_wait(&self, program: &Program, part: usize, later: usize) -> bool {
        let node = &program.nodes[part];
        let between =
            |v: ValueId| self.touched[self.live.shown(v).index()].iter().filter(|m| part < **m && **m < later);
        let written = node.writes.iter().all(|w| between(w.old).next().is_none());
        let wrote = |m: &usize, v: ValueId| {
            program.nodes[*m].writes.iter().any(|w| self.live.shown(w.old) == self.live.shown(v))
        };
        written && node.inputs.iter().flatten().all(|v| !between(*v).any(|m| wrote(m, *v)))
    }

    /// Notes that a part is made with a later one.
    fn waits(&mut self, part: &Node, at: usize, later: usize) {
        part.defines().for_each(|v| self.defined[v.index()] = Some(later));
        for v in part.needs() {
            let all = &mut self.touched[self.live.shown(v).index()];
            all.retain(|m| *m != at);
            if let Err(place) = all.binary_search(&later) {
                all.insert(place, later);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: &str =
        "lr=host 0.0, decay=host 0.0, dampening=host 0.0, weight_decay=host 0.0, nesterov=host 0.0, first=host 0.0";

    /// Two weights, of which the second is read after its gradient is there; `before` comes first.
    fn program(before: &str, split: bool) -> Program {
        let step = |all: &[[u32; 5]]| {
            let list = |of: &dyn Fn(&[u32; 5]) -> String| all.iter().map(of).collect::<Vec<_>>().join(", ");
            let made = list(&|[_, _, _, p, m]| format!("%{p}, %{m}"));
            let (read, over) =
                (list(&|[p, g, m, ..]| format!("%{p}, %{g}, %{m}")), list(&|[p, _, m, ..]| format!("%{p}, %{m}")));
            let types = vec!["f32[64] on cpu"; 2 * all.len()].join("; ");
            format!("{made} = oflow.sgd_many@1({read}) {{{NUMBERS}}} over {over}: {types}\n")
        };
        let (second, first) = ([1, 8, 3, 11, 12], [0, 16, 2, 13, 14]);
        let host = "host 0 \"sgd_many\"\n";
        let (early, late) = match split {
            true => (format!("{host}{}", step(&[second])), step(&[first])),
            false => (String::new(), format!("{host}{}", step(&[first, second]))),
        };
        let text = format!(
            "variable %0: f32[64] on cpu
             variable %1: f32[64] on cpu
             variable %2: f32[64] on cpu
             variable %3: f32[64] on cpu
             input %4 \"x\": f32[64] on cpu
             input %5 \"z\": f32[4096] on cpu
             {before}
             %6 = oflow.mul@1(%4, %0): f32[64] on cpu
             %7 = oflow.mul@1(%6, %1): f32[64] on cpu
             %8 = oflow.mul@1(%7, %6): f32[64] on cpu backward
             %9 = oflow.mul@1(%7, %1): f32[64] on cpu backward
             {early}%10 = oflow.mul@1(%9, %4): f32[64] on cpu backward
             %15 = oflow.tanh@1(%10): f32[64] on cpu backward
             %16 = oflow.mul@1(%15, %10): f32[64] on cpu backward
             {late}return %7"
        );
        let program: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        program
    }

    fn plain(program: &Program) -> String {
        let text = program.to_string();
        text.lines().map(|l| l.split("  #").next().unwrap_or_default().trim()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_parameter_is_updated_after_its_gradient_and_the_last_use_of_its_old_value() {
        let mut found = program("", false);
        update(&mut found, Memory::Least);
        found.verify().unwrap();
        assert_eq!(found.nodes.iter().filter(|n| is_step(n)).count(), 2, "{found}");
        gather(&mut found);
        found.verify().unwrap();
        assert_eq!(plain(&found), plain(&program("", true)));
        // Its gradients are small.
        let mut whole = program("", false);
        update(&mut whole, Memory::Cheap);
        assert_eq!(plain(&whole), plain(&program("", false)));
    }

    #[test]
    fn parts_that_gain_nothing_go_together_again() {
        // The peak is elsewhere.
        let before = "%17 = oflow.exp@1(%5): f32[4096] on cpu
             %18 = oflow.sum@1(%17) {dims=[], keepdim=false}: f32[] on cpu";
        let mut found = program(before, true);
        gather(&mut found);
        found.verify().unwrap();
        let steps = |p: &Program| p.nodes.iter().filter(|n| is_step(n)).map(|n| n.inputs.len()).collect::<Vec<_>>();
        assert_eq!(steps(&found), [6], "{found}");
        // The host acts right before.
        let at = found.nodes.iter().position(is_step).unwrap();
        assert!(matches!(found.nodes[at - 1].work, Work::Host(_)), "{found}");
        // Here a gradient that waits would be in use at the peak.
        let mut apart = program("", true);
        gather(&mut apart);
        assert_eq!(steps(&apart), [3, 3], "{apart}");
    }
}
