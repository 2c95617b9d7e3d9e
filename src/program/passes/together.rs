//! Boxings together: small boxings that do not need each other become one, which starts its collectives once for all of them.
//!
//! A small boxing is one whose predicted time is for the most part the start of its collectives. What stands between the first of them and the last and
//! needs one of them is moved behind. The elements are added in the same order, so the bits stay (see [`crate::boxing::many`]).

use super::super::build::call;
use super::super::types::{BoxedFor, CallNode, Node, Program, ValueId, Work};
use super::changes::{Change, changes};
use super::depends::Depends;
use super::liveness::{Liveness, Sizes};
use super::streams::plans;
use crate::boxing::many::predicted_together;
use crate::boxing::{BoxingPlan, Planner};
use crate::ops::{AttrValue, Attrs, LayoutOp, find};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Logical bytes that are boxed together at most: the first of them is waited for as long as the last.
const MOST_BYTES: usize = 1 << 20;
/// How often groups are given up that take more memory than there was in use.
const TRIES: usize = 8;

/// Boxes small tensors together.
///
/// - All change the same layout to the same one, for the same reason and of one dtype: so they share each collective, and policies and records tell
///   what they told.
/// - Forward and backward are not mixed, nor what stands under different guards or is computed once more.
/// - Groups that would raise the peak are not made.
pub(super) fn together(program: &mut Program, planner: &Planner) {
    let mut sizes = Sizes::default();
    let before = Liveness::of(program, &mut sizes);
    let kinds: Vec<Option<Kind>> = program.nodes.iter().map(|node| Kind::of(program, node, planner)).collect();
    if kinds.iter().flatten().count() < 2 {
        return;
    }
    let mut apart = BTreeSet::new();
    for _ in 0..TRIES {
        let mut groups = Groups::new(program, &before, &kinds);
        (0..program.nodes.len()).for_each(|n| groups.add(n, &apart));
        if groups.members.iter().all(|m| m.len() < 2) {
            return;
        }
        let Some(tried) = groups.made() else { return };
        let after = Liveness::of(&tried, &mut sizes);
        if after.peak.1 <= before.peak.1 {
            *program = tried;
            return;
        }
        let peak = groups.order.get(after.peak.0).copied().unwrap_or(program.nodes.len());
        if !groups.refuse_around(peak, &mut apart) {
            return;
        }
    }
}

/// A small boxing, of one value or of several.
struct Kind {
    /// Text of what boxings must have alike to go together. Placements are numbered in it, as in this process.
    alike: String,
    bytes: usize,
}

impl Kind {
    fn of(program: &Program, node: &Node, planner: &Planner) -> Option<Kind> {
        let moved = changes(program, node).filter(|m| !m.is_empty() && m.len() == node.outputs.len())?;
        let why = reason(node);
        let change = |(from, to): &Change<'_>| {
            format!("{} {} {} to {} {}", from.ty.dtype, from.placement.id(), from.sbp, to.placement.id(), to.sbp)
        };
        let first = change(&moved[0]);
        let plans = plans(&moved, planner)?;
        if !moved.iter().all(|m| change(m) == first) || !plans.iter().all(is_small) {
            return None;
        }
        let alike =
            format!("{} {why:?} {:?} {} {} {first}", is_gradient(node), node.guard, node.backward, node.recomputed);
        Some(Kind { alike, bytes: moved.iter().map(|(from, _)| from.ty.bytes()).sum() })
    }
}

/// Whether a boxing takes most of its time to start its collectives: of two that go together, the second one does not.
fn is_small(plan: &Arc<BoxingPlan>) -> bool {
    let second = predicted_together(&[plan.clone(), plan.clone()]).pop().unwrap_or(plan.cost_ps);
    let saved = plan.cost_ps.saturating_sub(second);
    saved > 0 && saved.saturating_mul(2) >= plan.cost_ps
}

/// The reason of a boxing.
fn reason(node: &Node) -> Option<BoxedFor> {
    match &node.work {
        Work::Call(call) => call.boxed_for,
        Work::Box(op) => Some(BoxedFor::Op(op)),
        Work::Host(_) | Work::Repeat(_) => None,
    }
}

/// Whether a boxing decides by the gradient that it is given.
fn is_gradient(node: &Node) -> bool {
    let layout = node.call().and_then(|c| c.op.layout);
    matches!(layout, Some(LayoutOp::BoxGrad | LayoutOp::BoxManyGrad))
}

/// Boxings that go together, and the order of the nodes that comes of it.
struct Groups<'a> {
    program: &'a Program,
    kinds: &'a [Option<Kind>],
    depends: Depends,
    order: Vec<usize>,
    /// The boxings of which each node consists, in order; none of one that has gone to another.
    members: Vec<Vec<usize>>,
    /// The group that the next boxing of a kind may join, and its bytes.
    open: BTreeMap<&'a str, (usize, usize)>,
}

impl<'a> Groups<'a> {
    fn new(program: &'a Program, live: &Liveness, kinds: &'a [Option<Kind>]) -> Groups<'a> {
        let count = program.nodes.len();
        let (depends, order) = (Depends::of(program, live), (0..count).collect());
        let members = (0..count).map(|n| vec![n]).collect();
        Groups { program, kinds, depends, order, members, open: BTreeMap::new() }
    }

    /// Adds a boxing to the open group of its kind, unless it needs a member, or begins a new one.
    fn add(&mut self, n: usize, apart: &BTreeSet<usize>) {
        let kinds: &'a [Option<Kind>] = self.kinds;
        let Some(kind) = kinds[n].as_ref().filter(|_| !apart.contains(&n)) else { return };
        let group = match self.open.get(kind.alike.as_str()).copied() {
            Some((group, bytes)) if bytes + kind.bytes <= MOST_BYTES && self.join(group, n) => (n, bytes + kind.bytes),
            _ => (n, kind.bytes),
        };
        self.open.insert(&kind.alike, group);
    }

    /// Lets a group go to the place of a later boxing, and what needs it behind; not where the boxing needs it.
    fn join(&mut self, group: usize, n: usize) -> bool {
        let place = |m: usize| self.order.iter().position(|k| *k == m);
        let (Some(first), Some(last)) = (place(group), place(n)) else { return false };
        if first > last {
            return false;
        }
        let mut needs = BTreeSet::from([group]);
        let (mut stay, mut moved) = (vec![], vec![]);
        for &m in &self.order[first + 1..=last] {
            if self.depends.before[m].iter().any(|b| needs.contains(b)) {
                needs.insert(m);
                moved.push(m);
            } else {
                stay.push(m);
            }
        }
        if needs.contains(&n) {
            return false;
        }
        // The boxing stands last of those that stay.
        drop(self.order.splice(first..=last, stay.into_iter().chain(moved)));
        let mut all = std::mem::take(&mut self.members[group]);
        all.append(&mut self.members[n]);
        self.members[n] = all;
        let (before, behind) =
            (std::mem::take(&mut self.depends.before[group]), std::mem::take(&mut self.depends.behind[group]));
        for m in &behind {
            self.depends.before[*m].iter_mut().filter(|b| **b == group).for_each(|b| *b = n);
        }
        self.depends.before[n].extend(before);
        self.depends.behind[n].extend(behind);
        true
    }

    /// The program with a node for each group.
    fn made(&self) -> Option<Program> {
        let mut made = Program { nodes: vec![], ..self.program.clone() };
        for n in &self.order {
            made.nodes.push(match self.members[*n].as_slice() {
                [only] => self.program.nodes[*only].clone(),
                several => {
                    let nodes: Vec<&Node> = several.iter().map(|n| &self.program.nodes[*n]).collect();
                    joined(self.program, &nodes)?
                }
            });
        }
        Some(made)
    }

    /// Lets the members of groups stay apart between which the peak is. Says whether there are any.
    fn refuse_around(&self, peak: usize, apart: &mut BTreeSet<usize>) -> bool {
        let around = |m: &&Vec<usize>| m.len() > 1 && (m[0]..=m[m.len() - 1]).contains(&peak);
        let before = apart.len();
        apart.extend(self.members.iter().filter(around).flatten());
        apart.len() > before
    }
}

/// The boxing of all values of these, which are of one kind.
fn joined(program: &Program, nodes: &[&Node]) -> Option<Node> {
    let first = *nodes.first()?;
    let op = find(if is_gradient(first) { "box_many_grad" } else { "box_many" }).ok()?;
    let mut columns: Vec<Vec<AttrValue>> = vec![vec![]; op.sig.attrs.len()];
    for node in nodes {
        for (c, column) in columns.iter_mut().enumerate() {
            match &node.work {
                Work::Call(call) => match call.attrs.get(c) {
                    Some(AttrValue::List(all)) => column.extend(all.iter().cloned()),
                    Some(one) => column.push(one.clone()),
                    None => column.push(AttrValue::Absent),
                },
                _ => {
                    let to = program.ty(*node.outputs.first()?).global()?;
                    column.push(
                        [(&to.placement).into(), (&to.sbp).into()].into_iter().nth(c).unwrap_or(AttrValue::Absent),
                    );
                }
            }
        }
    }
    let attrs = columns.into_iter().map(|c| AttrValue::List(c.into())).collect::<Attrs>();
    let call = CallNode { attrs, boxed_for: reason(first), ..call(op) };
    let inputs: SmallVec<[Option<ValueId>; 4]> = nodes.iter().flat_map(|n| n.inputs.iter().copied()).collect();
    let outputs: SmallVec<[ValueId; 2]> = nodes.iter().flat_map(|n| n.outputs.iter().copied()).collect();
    Some(Node { work: Work::Call(Box::new(call)), inputs, outputs, ..first.clone() })
}
