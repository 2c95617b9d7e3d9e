//! Programs as one list of nodes, with the loops among them: what runs a program walks over one list, and has one table for the values, plans and
//! ways of all nodes.
//!
//! A node that repeats a section is two here. At its *head* the loop begins: it gives the section its values. At its *tail* an iteration ends.
//! Between them stand the nodes of one iteration. A value from around that the section reads has one number; what it carries, slices and writes
//! has numbers of its own inside.

use super::types::{HostId, Node, OutsideKind, Program, Repeat, ValueId, Work, Write};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A value that goes from one iteration of a loop to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Value before the loop.
    pub(crate) before: ValueId,
    /// Value when an iteration begins.
    pub(crate) inside: ValueId,
    /// Value when it ends.
    pub(crate) next: ValueId,
    /// Value after the loop.
    pub(crate) after: ValueId,
}

/// A loop in a list of nodes.
pub(crate) struct Loop {
    /// Number of the first node: it begins the loop.
    pub(crate) head: usize,
    /// Number of the last node: it ends an iteration.
    pub(crate) tail: usize,
    /// Number of iterations.
    pub(crate) count: u64,
    /// Values that are made anew in each iteration.
    pub(crate) values: Range<usize>,
    /// Numbers that an iteration draws of each generator.
    pub(crate) draws: Vec<u64>,
    /// Host objects that act in it.
    pub(crate) hosts: Vec<HostId>,
    /// Values that are carried.
    pub(crate) carried: Vec<Turn>,
    /// Tensors that are written.
    pub(crate) written: Vec<Turn>,
    /// Values of which an iteration gets a slice, and the slice.
    pub(crate) slices: Vec<(ValueId, ValueId)>,
    /// Values that an iteration gives, and what they are collected in.
    pub(crate) collected: Vec<(ValueId, ValueId)>,
}

/// A program without sections, and its loops: an outer one before those inside of it.
#[derive(Default)]
pub(crate) struct Flat {
    pub(crate) program: Program,
    pub(crate) loops: Vec<Loop>,
}

impl Flat {
    /// The program as one list; `None` of one that repeats nothing, which is one.
    pub(crate) fn of(program: &Program) -> Option<Flat> {
        program.nodes.iter().any(|n| n.repeat().is_some()).then(|| {
            let own = Program {
                values: program.values.clone(),
                outside: program.outside.clone(),
                nodes: vec![],
                outputs: program.outputs.clone(),
                hosts: program.hosts.clone(),
                draws: program.draws.clone(),
            };
            let mut flat = Flat { program: own, loops: vec![] };
            let values: Vec<ValueId> = (0..program.values.len() as u32).map(ValueId).collect();
            flat.add(program, &values, &[]);
            flat
        })
    }

    /// Adds the nodes of a program whose values have these numbers. `first` draws are made before its own.
    fn add(&mut self, program: &Program, values: &[ValueId], first: &[u64]) {
        let at = |v: ValueId| values[v.index()];
        for node in &program.nodes {
            let mut own = Node {
                inputs: node.inputs.iter().map(|v| v.map(at)).collect(),
                outputs: node.outputs.iter().copied().map(at).collect(),
                writes: node.writes.iter().map(|w| Write { old: at(w.old), new: at(w.new) }).collect(),
                guard: node.guard.map(at),
                ..node.clone_without_work()
            };
            own.work = match &node.work {
                Work::Repeat(r) => {
                    self.repeat(own, r, first);
                    continue;
                }
                Work::Call(call) => {
                    let mut call = call.clone();
                    if let Some(draw) = &mut call.draw {
                        draw.ordinal += first.get(draw.generator.0 as usize).copied().unwrap_or(0);
                    }
                    Work::Call(call)
                }
                other => other.clone(),
            };
            self.program.nodes.push(own);
        }
    }

    /// Adds the loop of a section.
    fn repeat(&mut self, node: Node, r: &Repeat, first: &[u64]) {
        let (body, head) = (&r.body, self.program.nodes.len());
        let begin = self.program.values.len();
        let mut number: Vec<Option<ValueId>> = vec![None; body.values.len()];
        let (mut froms, mut writes) = (node.inputs.iter().flatten(), node.writes.iter());
        let (mut carried, mut written, mut slices) = (vec![], vec![], vec![]);
        for o in &body.outside {
            let before = match o.kind {
                OutsideKind::Written => writes.next().map(|w| w.old),
                _ => froms.next().copied(),
            };
            let Some(before) = before else { continue };
            let mut inside = || self.program.add_value(body.ty(o.value).clone());
            number[o.value.index()] = Some(match o.kind {
                OutsideKind::Carried => {
                    let inside = inside();
                    carried.push((before, inside));
                    inside
                }
                OutsideKind::Written => {
                    let inside = inside();
                    written.push((before, inside));
                    inside
                }
                OutsideKind::Slice => {
                    let inside = inside();
                    slices.push((before, inside));
                    inside
                }
                _ => before,
            });
        }
        let number: Vec<ValueId> = number
            .into_iter()
            .zip(&body.values)
            .map(|(known, ty)| known.unwrap_or_else(|| self.program.add_value(ty.clone())))
            .collect();
        let at_head = Node {
            work: marker(),
            inputs: node.inputs.clone(),
            outputs: carried.iter().chain(&slices).map(|(_, inside)| *inside).collect(),
            writes: written.iter().map(|(old, new)| Write { old: *old, new: *new }).collect(),
            ..node.clone_without_work()
        };
        self.program.nodes.push(at_head);
        let this = self.loops.len();
        let (count, draws) = (r.count, body.draws.clone());
        self.loops.push(Loop {
            head,
            tail: head,
            count,
            values: begin..begin,
            draws,
            hosts: vec![],
            carried: vec![],
            written: vec![],
            slices,
            collected: vec![],
        });
        let at = |draws: &[u64], g: usize| draws.get(g).copied().unwrap_or(0);
        let first: Vec<u64> = (0..body.draws.len()).map(|g| at(first, g) + at(&r.first_draws, g)).collect();
        self.add(body, &number, &first);
        let tail = self.program.nodes.len();
        let ends: Vec<ValueId> = body.outputs.iter().map(|v| number[v.index()]).collect();
        let (next, rest) = ends.split_at(carried.len());
        let (last, collected) = rest.split_at(written.len());
        let turn = |(((before, inside), next), after): (((ValueId, ValueId), &ValueId), &ValueId)| Turn {
            before,
            inside,
            next: *next,
            after: *after,
        };
        let news: Vec<ValueId> = node.writes.iter().map(|w| w.new).collect();
        let hosts = self.program.nodes[head..].iter().filter_map(|n| match n.work {
            Work::Host(id) => Some(id),
            _ => None,
        });
        let hosts = hosts.collect();
        let l = &mut self.loops[this];
        (l.tail, l.values, l.hosts) = (tail, begin..self.program.values.len(), hosts);
        l.collected = collected.iter().copied().zip(node.outputs[carried.len()..].iter().copied()).collect();
        l.carried = carried.into_iter().zip(next).zip(&node.outputs).map(turn).collect();
        l.written = written.into_iter().zip(last).zip(&news).map(turn).collect();
        let at_tail = Node {
            work: marker(),
            // The next iteration slices them again.
            inputs: next
                .iter()
                .chain(collected)
                .copied()
                .chain(l.slices.iter().map(|(whole, _)| *whole))
                .map(Some)
                .collect(),
            outputs: node.outputs.clone(),
            writes: l.written.iter().map(|t| Write { old: t.next, new: t.after }).collect(),
            ..node
        };
        self.program.nodes.push(at_tail);
    }

    /// Last node that needs each value, as [`Program::last_needed`] says; of a value from before a loop that needs it, the loop's end.
    pub(crate) fn last_needed(program: &Program, loops: &[Loop]) -> Vec<Option<usize>> {
        let mut last = program.last_needed();
        let mut made: Vec<usize> = vec![0; if loops.is_empty() { 0 } else { program.values.len() }];
        if loops.is_empty() {
            return last;
        }
        for (n, node) in program.nodes.iter().enumerate() {
            node.defines().for_each(|v| made[v.index()] = n + 1);
        }
        // Inner loops first: their values may be those of an outer one.
        for l in loops.iter().rev() {
            for (last, _) in last.iter_mut().zip(&made).filter(|(_, made)| **made <= l.head) {
                if last.is_some_and(|n| (l.head + 1..l.tail).contains(&n)) {
                    *last = Some(l.tail);
                }
            }
        }
        last
    }

    /// Values that no later node needs and no run returns, by node: those from before a loop that needs them end with it.
    pub(crate) fn last_uses(program: &Program, loops: &[Loop]) -> Vec<SmallVec<[ValueId; 2]>> {
        let mut ends = vec![SmallVec::new(); program.nodes.len()];
        for (v, n) in Flat::last_needed(program, loops).into_iter().enumerate() {
            if let Some(ends) = n.and_then(|n| ends.get_mut(n)) {
                ends.push(ValueId(v as u32));
            }
        }
        ends
    }
}

/// Work of a loop's first and last node.
fn marker() -> Work {
    Work::Repeat(Box::default())
}

impl Node {
    /// A node with the same line and marks, the work of a loop's end and no operands.
    fn clone_without_work(&self) -> Node {
        Node {
            work: marker(),
            inputs: SmallVec::new(),
            outputs: smallvec![],
            writes: smallvec![],
            guard: None,
            site: self.site,
            backward: self.backward,
            recomputed: self.recomputed,
            overlapped: self.overlapped,
        }
    }
}
