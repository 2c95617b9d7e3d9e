//! The part of a program that every rank must have alike: what it does with global tensors.

use super::text::Line;
use super::types::{Program, ValueId, Work, described};
use crate::error::CallSite;
use crate::intern::FixedHasher;
use std::collections::BTreeSet;
use std::hash::Hasher;

/// A line of a program's text that ranks have alike: a value from outside, or a node.
pub struct AlikeLine {
    /// The node's number in the program, from 1; `None` of a value from outside.
    pub node: Option<usize>,
    /// Name of the op, or the word for the value.
    pub op: String,
    /// The line's text.
    pub text: String,
    /// The line of the call, or that which has used the value first.
    pub site: CallSite,
}

impl Program {
    /// The lines that ranks have alike, in order.
    fn alike(&self) -> Vec<AlikeLine> {
        let mut lines = vec![];
        self.alike_into(&self.hosts, &mut 0, &mut lines);
        lines
    }

    /// Adds these lines. Nodes are numbered through, those of sections included; so is the end of a section.
    fn alike_into(&self, hosts: &[String], number: &mut usize, lines: &mut Vec<AlikeLine>) {
        let is_global = |v: ValueId| self.ty(v).global().is_some();
        lines.extend(self.outside.iter().filter(|o| is_global(o.value)).map(|o| {
            let word = o.kind.word();
            let text = format!("{word} {} {}", o.value, described(self.ty(o.value)));
            AlikeLine { node: None, op: word.into(), text, site: o.site }
        }));
        for node in &self.nodes {
            *number += 1;
            let op = match &node.work {
                Work::Call(c) => c.op.name(),
                Work::Repeat(_) => "repeat",
                Work::Box(_) | Work::Host(_) => "box",
            };
            let global = node.needs().chain(node.defines()).any(is_global)
                || node.repeat().is_some_and(|r| !r.body.global_ranks().is_empty());
            if global {
                let text = Line(self, node, hosts).to_string();
                lines.push(AlikeLine { node: Some(*number), op: op.into(), text, site: node.site });
            }
            if let Some(r) = node.repeat() {
                r.body.alike_into(hosts, number, lines);
                *number += 1;
                if global {
                    let text = r.body.return_line();
                    lines.push(AlikeLine { node: Some(*number), op: op.into(), text, site: node.site });
                }
            }
        }
    }

    /// Returns hashes of what the program does with global tensors, the same on every rank of a correct job: ops, attributes, types, layouts
    /// and their order. The n-th is that of the first n + 1 lines of the program's text that are about global tensors.
    pub fn alike_hashes(&self) -> Vec<u64> {
        let mut h = FixedHasher::default();
        let next = |line: AlikeLine| {
            h.write(line.text.as_bytes());
            h.finish()
        };
        self.alike().into_iter().map(next).collect()
    }

    /// Returns the last one of [`Program::alike_hashes`]; `None` of a program of local tensors alone, in which ranks may differ.
    pub fn global_hash(&self) -> Option<u64> {
        self.alike_hashes().pop()
    }

    /// Returns the n-th line that ranks have alike.
    pub fn alike_line(&self, n: usize) -> Option<AlikeLine> {
        self.alike().into_iter().nth(n)
    }

    /// Returns the ranks of the placements of its global tensors, in order.
    pub fn global_ranks(&self) -> Vec<usize> {
        let mut ranks = BTreeSet::new();
        let mut last = None;
        let sections = self.sections();
        let values = [self].into_iter().chain(sections.iter().map(|s| s.body)).flat_map(|p| &p.values);
        for placement in values.filter_map(|ty| Some(&ty.global()?.placement)) {
            // Neighbours have mostly the same.
            if last.replace(placement) != Some(placement) {
                ranks.extend(placement.ranks());
            }
        }
        ranks.into_iter().collect()
    }
}
