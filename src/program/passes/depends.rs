//! Dependencies between the nodes of a program, which any order keeps: definitions before uses, writes where they are among the uses of memory, and the
//! order of side effects. Collectives may change places: all ranks change them alike.

use super::super::types::{HostId, Node, Program, Work};
use super::dead::has_side_effect;
use super::liveness::Liveness;
use std::collections::BTreeMap;

/// For each node those that stay before it and behind it: the next ones, from which the others follow.
pub(super) struct Depends {
    pub(super) before: Vec<Vec<usize>>,
    pub(super) behind: Vec<Vec<usize>>,
}

/// Uses of memory since it was written, and that write.
#[derive(Clone, Default)]
struct Used {
    written: Option<usize>,
    read: Vec<usize>,
}

impl Used {
    /// The nodes behind which a use of the memory stays.
    fn by(&mut self, n: usize, writes: bool, before: &mut Vec<usize>) {
        before.extend(self.written);
        match writes {
            true => {
                before.append(&mut self.read);
                self.written = Some(n);
            }
            false => self.read.push(n),
        }
    }
}

impl Depends {
    pub(super) fn of(program: &Program, live: &Liveness) -> Depends {
        let count = program.nodes.len();
        let mut defined = vec![None; program.values.len()];
        let mut memory = vec![Used::default(); program.values.len()];
        // A host object acts before calls read its numbers, and again after that; also in sections.
        let mut hosts: BTreeMap<HostId, Used> = BTreeMap::new();
        let mut section = None;
        let mut effects = Used::default();
        let (mut before, mut behind) = (vec![vec![]; count], vec![vec![]; count]);
        for (n, node) in program.nodes.iter().enumerate() {
            let mut all: Vec<usize> = node.needs().filter_map(|v| defined[v.index()]).collect();
            for v in node.inputs.iter().flatten().chain(&node.guard) {
                memory[live.shown(*v).index()].by(n, false, &mut all);
            }
            for w in &node.writes {
                memory[live.shown(w.old).index()].by(n, true, &mut all);
            }
            if has_effect(node) {
                effects.by(n, true, &mut all);
            }
            let asked = match &node.work {
                Work::Host(id) => Some((*id, true)),
                Work::Call(call) => call.host.map(|(id, _)| (id, false)),
                Work::Repeat(_) => {
                    hosts.values_mut().for_each(|h| h.by(n, true, &mut all));
                    section = Some(n);
                    None
                }
                Work::Box(_) => None,
            };
            if let Some((id, acts)) = asked {
                let host = hosts.entry(id).or_insert_with(|| Used { written: section, read: vec![] });
                host.by(n, acts, &mut all);
            }
            all.sort_unstable();
            all.dedup();
            all.retain(|m| *m != n);
            all.iter().for_each(|m| behind[*m].push(n));
            before[n] = all;
            node.defines().for_each(|v| defined[v.index()] = Some(n));
        }
        Depends { before, behind }
    }
}

/// Whether a node acts on more than its values: it stays in its place among others that do.
fn has_effect(node: &Node) -> bool {
    has_side_effect(node) || node.call().is_some_and(|c| c.op.traits.random && c.draw.is_none())
}
