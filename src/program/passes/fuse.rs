//! Fusion: elementwise calls whose results other elementwise calls alone read become one call, of the op `fused`. Those that one reduction alone
//! reads become one call with it, of the op `fused_reduce`.
//!
//! A group has one result, and the bits of its calls one after the other: the same functions in the same arithmetic, each value rounded to the
//! dtype that it had, and the additions in the same order. It stands where its last call stood, so what its other calls read lives up to there.
//!
//! One program is quicker than one for each call: from 8×8 elements in the first-level cache to 64 MiB in memory, in f32 and bf16, from two calls
//! on (`cargo bench -p oflow-kernels --bench fusion`). The exception is a pair on 64 elements of which one operand is a row, by 30 ns, less than
//! the call that is saved. So every group is fused that does not take more memory.

use super::super::types::{CallNode, Node, Program, ValueId, Work};
use super::liveness::{Liveness, Sizes};
use crate::ops::{
    AttrValue, Attrs, InferCtx, NdSignature, Op, RuntimeAttrs, TensorType, chain_of, find, normalize_dim, reads_chain,
};
use crate::placement::Device;
use crate::plan::TypeRef;
use oflow_kernels::DType;
use oflow_kernels::expr::{Chain, Class, Expr, Link};
use std::collections::BTreeMap;

/// Inputs of a fused call at most. What is computed at one time of each of them, and the values in between, are to fit the first-level cache.
const MOST_INPUTS: usize = 12;
/// Functions of a fused call at most.
const MOST_LINKS: usize = 1024;
/// How often groups are given up that take more memory than was predicted.
const TRIES: usize = 8;

/// Fuses groups of elementwise calls.
///
/// - A value that is returned, written over or asked by a guard is a tensor of its own: it is made by a call of its own.
/// - Calls of one group have one layout and shape of their results, and stand under one guard.
/// - Calls of backward, and calls that are made once more, are fused among themselves: what is recomputed is there to free memory.
/// - Integers that are divided are left, as a call reports a divisor that is 0.
/// - A reduction is `sum`, `mean`, `amax` or `amin` over the last dims, on the CPU. Over other dims its kernel folds several rows side by side,
///   which would be computed in pieces too small. So are those that read what was transposed.
/// - Groups that would raise the peak are not made.
pub(super) fn fuse(program: &mut Program) {
    let (Ok(op), Ok(reducing)) = (find("fused"), find("fused_reduce")) else { return };
    let mut sizes = Sizes::default();
    let before = Liveness::of(program, &mut sizes);
    let member = |node: &Node| Member::of(program, node, op).or_else(|| Member::of_reduction(program, node));
    let members: Vec<Option<Member>> = program.nodes.iter().map(member).collect();
    let mut care = vec![Care::None; program.nodes.len()];
    for _ in 0..TRIES {
        let mut groups = Groups::of(program, &before, &members, &mut sizes, &care);
        if groups.refuse_large(&mut sizes, &mut care) {
            continue;
        }
        let Some((fused, nodes)) = groups.fused([op, reducing]) else { return };
        let after = Liveness::of(&fused, &mut sizes);
        if after.peak.1 <= before.peak.1 {
            *program = fused;
            return;
        }
        let peak = nodes.get(after.peak.0).copied().unwrap_or(program.nodes.len());
        if !groups.refuse_around(peak, &mut care) {
            return;
        }
    }
}

/// How careful a call is with memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Care {
    /// The group as a whole is looked at.
    #[default]
    None,
    /// The call joins a group where that takes no more memory, whatever joins after it.
    Each,
    /// The call joins no group.
    Apart,
}

impl Care {
    fn more(self) -> Care {
        if self == Care::None { Care::Each } else { Care::Apart }
    }
}

/// A call that may be part of a group.
struct Member {
    /// The functions of the call, over its inputs.
    links: Vec<Link>,
    /// The arithmetic; `None` of truth values, which are the same in each.
    class: Option<Class>,
    /// Of a reduction, which can only be the last call of a group, what it reads and how many dims it reduces.
    reduces: Option<(ValueId, usize)>,
}

/// The device of a value.
fn device_of(ty: &TypeRef) -> Device {
    match ty {
        TypeRef::Local(l) => l.device,
        TypeRef::Global(g) => g.placement.device(),
    }
}

impl Member {
    /// The call of a node; `None` of what is no elementwise call, or does more than that.
    fn of(program: &Program, node: &Node, fused: &'static Op) -> Option<Member> {
        let (Work::Call(call), [out], []) = (&node.work, node.outputs.as_slice(), node.writes.as_slice()) else {
            return None;
        };
        let device = device_of(program.ty(*out));
        // Devices of other crates may have kernels of single expressions alone.
        let known = matches!(device, Device::Cpu | Device::Cuda | Device::Async);
        let (op, plain) = (call.op, known && call.target.is_none() && call.draw.is_none() && call.host.is_none());
        let lowered = call.signature.as_ref().is_some_and(|s| s.lowering.is_some());
        if !op.traits.elementwise || op.traits.side_effect || op.traits.random || !plain || lowered {
            return None;
        }
        let inputs: Vec<Option<TensorType>> =
            node.inputs.iter().map(|v| Some(program.ty((*v)?).ty().clone())).collect();
        let out = program.ty(*out).ty();
        if inputs.is_empty()
            || inputs.iter().any(|t| !t.as_ref().is_some_and(|t| t.dtype.is_real()))
            || !out.dtype.is_real()
        {
            return None;
        }
        if let (true, [AttrValue::Str(text), AttrValue::DType(compute), _]) =
            (std::ptr::eq(op, fused), call.attrs.as_slice())
        {
            let chain = chain_of(text, inputs.len()).ok()?;
            let class = Some(Class::of(compute.builtin()?));
            return Some(Member { links: chain.links().to_vec(), class, reduces: None });
        }
        let kinds: Vec<_> = call.runtime.iter().map(|s| s.kind()).collect();
        let infer = InferCtx { op, inputs: &inputs, attrs: &call.attrs, runtime_kinds: &kinds };
        let compute = op.compute_dtype(&infer, out.dtype).ok()?.builtin()?;
        let (class, expr) = (Class::of(compute), op.expr_of_kernels()?.simplify());
        if class.is_complex() || expr.divides_integers(class) {
            return None;
        }
        let logic =
            out.dtype == DType::Bool && inputs.iter().flatten().all(|t| t.dtype == DType::Bool) && expr.is_logic();
        let links = vec![Link { expr: expr.with_numbers(compute, &call.runtime)?, dtype: None }];
        Chain::new(inputs.len(), links.clone()).ok()?.check_class(class).ok()?;
        Some(Member { links, class: (!logic).then_some(class), reduces: None })
    }

    /// A reduction over the last dims that takes its input as it lies.
    fn of_reduction(program: &Program, node: &Node) -> Option<Member> {
        let (Work::Call(call), [Some(x)], [out], []) =
            (&node.work, node.inputs.as_slice(), node.outputs.as_slice(), node.writes.as_slice())
        else {
            return None;
        };
        let (op, [AttrValue::Ints(dims), AttrValue::Bool(_)]) = (call.op, call.attrs.as_slice()) else { return None };
        let (made, rank) = (program.ty(*x), program.ty(*x).ty().shape.len());
        let known = matches!(device_of(program.ty(*out)), Device::Cpu | Device::Async);
        let plain = call.target.is_none() && call.draw.is_none() && call.host.is_none();
        if !known || !plain || !op.is_builtin() || !reads_chain(op.name(), made.ty().dtype) {
            return None;
        }
        let lies =
            |s: &NdSignature| s.lowering.is_none() && made.global().is_some_and(|g| s.inputs.first() == Some(&g.sbp));
        if !call.signature.as_ref().is_none_or(lies) {
            return None;
        }
        let reduced = dims.iter().map(|d| normalize_dim(*d, rank).ok()).collect::<Option<Vec<usize>>>()?;
        let last = if dims.is_empty() { rank } else { dims.len() };
        let are_last = (rank.checked_sub(last)?..rank).all(|d| dims.is_empty() || reduced.contains(&d));
        are_last.then(|| Member { links: vec![], class: None, reduces: Some((*x, last)) })
    }
}

/// Calls that become one.
struct Group {
    /// Nodes, the last one first.
    nodes: Vec<usize>,
    /// Values from outside of the group.
    inputs: Vec<ValueId>,
    links: usize,
    class: Option<Class>,
    /// The value that has the shape and layout of all that is computed: the result, or what is reduced to it.
    like: ValueId,
}

/// Groups of a program.
struct Groups<'a> {
    program: &'a Program,
    live: &'a Liveness,
    members: &'a [Option<Member>],
    /// Nodes that read each value, in order; none that do so for the run or a guard.
    readers: Vec<Vec<usize>>,
    /// Values that are tensors of their own.
    own: Vec<bool>,
    /// Values whose elements do not lie in the order of their dims.
    turned: Vec<bool>,
    /// By the number of the last node.
    all: BTreeMap<usize, Group>,
    /// The last node of the group of each node.
    of: Vec<Option<usize>>,
    /// The node at which each piece of memory is last in use, and the bytes that are in use in each node, with the groups.
    last: Vec<usize>,
    used: Vec<usize>,
}

impl<'a> Groups<'a> {
    /// The groups.
    fn of(
        program: &'a Program,
        live: &'a Liveness,
        members: &'a [Option<Member>],
        sizes: &mut Sizes,
        care: &[Care],
    ) -> Groups<'a> {
        let (mut readers, mut own) = (vec![vec![]; program.values.len()], program.own_values());
        for (n, node) in program.nodes.iter().enumerate() {
            for v in node.inputs.iter().flatten() {
                readers[v.index()].push(n);
            }
            node.guard.iter().for_each(|v| own[v.index()] = true);
        }
        let mut groups = Groups {
            program,
            live,
            members,
            readers,
            own,
            turned: turned(program),
            all: BTreeMap::new(),
            of: vec![None; program.nodes.len()],
            last: live.pieces.iter().map(|p| p.last()).collect(),
            used: live.used.clone(),
        };
        for n in (0..program.nodes.len()).rev() {
            let Some(member) = &groups.members[n] else { continue };
            let (links, class) = (member.links.len(), member.class);
            let joined = groups.group_for(n).filter(|last| match care[n] {
                Care::None => true,
                Care::Each => groups.fits_memory(n, *last, sizes),
                Care::Apart => false,
            });
            let last = joined.unwrap_or(n);
            groups.of[n] = Some(last);
            let node = &program.nodes[n];
            let Some(like) = member.reduces.map(|(x, _)| x).or(node.outputs.first().copied()) else { continue };
            let group = groups.all.entry(last).or_insert_with(|| Group {
                nodes: vec![],
                inputs: vec![],
                links: 0,
                class: None,
                like,
            });
            group.inputs.retain(|v| !node.outputs.contains(v));
            for v in node.inputs.iter().flatten() {
                if !group.inputs.contains(v) {
                    group.inputs.push(*v);
                }
            }
            group.nodes.push(n);
            group.links += links;
            group.class = group.class.or(class);
        }
        groups
    }

    /// The last node of the group that a call may join: that of all its readers.
    fn group_for(&self, n: usize) -> Option<usize> {
        let (program, node) = (self.program, &self.program.nodes[n]);
        let [v] = node.outputs.as_slice() else { return None };
        let readers = &self.readers[v.index()];
        let last = self.of[*readers.first()?]?;
        if self.own[v.index()] || readers.iter().any(|r| self.of[*r] != Some(last)) {
            return None;
        }
        let (group, end) = (self.all.get(&last)?, &program.nodes[last]);
        let marks = |n: &Node| (n.guard, n.backward, n.recomputed);
        let member = self.members[n].as_ref().filter(|m| m.reduces.is_none())?;
        if marks(node) != marks(end) || !same_layout(program.ty(*v), program.ty(group.like)) {
            return None;
        }
        let class = match (group.class, member.class) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let holds = class.unwrap_or(Class::I64).holds(program.ty(*v).ty().dtype.builtin()?);
        let more = node.inputs.iter().flatten().filter(|v| !group.inputs.contains(v)).count();
        let fits = group.inputs.len() + more <= MOST_INPUTS + 1 && group.links + member.links.len() <= MOST_LINKS;
        let is_turned = |v: &ValueId| self.turned[v.index()];
        if self.members[last].as_ref().is_some_and(|m| m.reduces.is_some())
            && node.inputs.iter().flatten().any(is_turned)
        {
            return None;
        }
        // What the call reads has its value still where the group stands.
        let written = |v: &ValueId| self.live.writes_of(*v).iter().any(|w| (n..last).contains(w));
        (holds && fits && !node.inputs.iter().flatten().any(written)).then_some(last)
    }

    /// Memory of values that lives up to a node if that reads them, and not without it.
    fn longer<'v>(&self, values: impl Iterator<Item = &'v ValueId>, last: usize) -> Vec<usize> {
        let mut roots: Vec<usize> = values.map(|v| self.live.root[v.index()].index()).collect();
        roots.sort_unstable();
        roots.dedup();
        roots.retain(|p| self.live.pieces[*p].made.is_some() && self.last[*p] < last);
        roots
    }

    /// Says of groups that would raise the peak that their calls are to be more careful. Returns whether there is one.
    fn refuse_large(&mut self, sizes: &mut Sizes, care: &mut [Care]) -> bool {
        let (mut found, peak) = (false, self.live.peak.1);
        let all = std::mem::take(&mut self.all);
        for (last, group) in all.iter().filter(|(_, g)| g.nodes.len() > 1) {
            // Those that are careful have been looked at.
            let Some(first) = group.nodes.iter().copied().filter(|n| care[*n] == Care::None).min() else { continue };
            let longer = self.longer(group.inputs.iter(), *last);
            let inner = |n: &&usize| *n != last;
            let inside: Vec<(usize, usize, usize)> = (group.nodes.iter().filter(inner))
                .flat_map(|n| self.program.nodes[*n].outputs.iter().map(move |v| (*n, *v)))
                .map(|(n, v)| (n, self.last[v.index()], sizes.of(self.program.ty(v))))
                .collect();
            let out = self.program.nodes[*last].outputs.first().map(|v| self.program.ty(*v));
            let of_type = |v: &ValueId| out.is_some_and(|out| self.program.ty(*v).same(out));
            let ends = |v: &&ValueId| {
                let piece = self.live.root[v.index()].index();
                self.live.pieces[piece].made.is_some() && self.last[piece] <= *last && of_type(v)
            };
            // The result takes the memory of an operand of its type that ends with the call.
            let before = self.program.nodes[*last].inputs.iter().flatten().any(|v| ends(&v));
            let beside =
                if before && !group.inputs.iter().any(|v| ends(&v)) { out.map_or(0, |t| sizes.of(t)) } else { 0 };
            let after = |k: usize| {
                let more: usize =
                    longer.iter().filter(|p| self.last[**p] < k).map(|p| self.live.pieces[*p].bytes).sum();
                let less: usize =
                    inside.iter().filter(|(n, end, _)| *n < k && k <= *end).map(|(.., bytes)| bytes).sum();
                (self.used[k] + more + if k == *last { beside } else { 0 }).saturating_sub(less)
            };
            let used: Vec<usize> = (first + 1..=*last).map(after).collect();
            if used.iter().zip(&self.used[first + 1..]).any(|(after, before)| *after > peak.max(*before)) {
                group.nodes.iter().for_each(|n| care[*n] = care[*n].more());
                found = true;
                continue;
            }
            self.used[first + 1..=*last].copy_from_slice(&used);
            longer.iter().for_each(|p| self.last[*p] = *last);
        }
        self.all = all;
        found
    }

    /// Whether what node `n` reads may live up to node `last` without a higher peak; then it does.
    fn fits_memory(&mut self, n: usize, last: usize, sizes: &mut Sizes) -> bool {
        let (node, peak) = (&self.program.nodes[n], self.live.peak.1);
        let longer = self.longer(node.inputs.iter().flatten(), last);
        let made: usize = node.outputs.iter().map(|v| sizes.of(self.program.ty(*v))).sum();
        let after = |k: usize| {
            let more: usize = longer.iter().filter(|p| self.last[**p] < k).map(|p| self.live.pieces[*p].bytes).sum();
            // The value itself is in use up to its last reader, which is one of the group's.
            (self.used[k] + more).saturating_sub(made)
        };
        let used: Vec<usize> = (n + 1..=last).map(after).collect();
        if used.iter().zip(&self.used[n + 1..]).any(|(after, before)| *after > peak.max(*before)) {
            return false;
        }
        self.used[n + 1..=last].copy_from_slice(&used);
        longer.iter().for_each(|p| self.last[*p] = last);
        true
    }

    /// The program with one call for each group, and which node each of its nodes was; `None` where there is no group of several calls.
    fn fused(&self, ops: [&'static Op; 2]) -> Option<(Program, Vec<usize>)> {
        let mut program = self.program.clone();
        let mut kept = vec![true; program.nodes.len()];
        for (last, group) in self.all.iter().filter(|(_, g)| g.nodes.len() > 1) {
            let Some(call) = self.call_of(ops, *last, group) else { continue };
            program.nodes[*last] = call;
            group.nodes.iter().filter(|n| *n != last).for_each(|n| kept[*n] = false);
        }
        let nodes: Vec<usize> = (0..kept.len()).filter(|n| kept[*n]).collect();
        if nodes.len() == kept.len() {
            return None;
        }
        program.keep(&kept);
        Some((program, nodes))
    }

    /// The call of a group, of the first op or, where a reduction ends it, of the second.
    fn call_of(&self, [op, reducing]: [&'static Op; 2], last: usize, group: &Group) -> Option<Node> {
        let program = self.program;
        let mut inputs: Vec<ValueId> = vec![];
        let reduces = self.members[last].as_ref()?.reduces;
        let computed = group.nodes.len() - usize::from(reduces.is_some());
        let nodes = || group.nodes.iter().rev().take(computed).map(|n| (&program.nodes[*n], self.members[*n].as_ref()));
        for v in nodes().flat_map(|(node, _)| node.inputs.iter().flatten()) {
            if !inputs.contains(v) && group.inputs.contains(v) {
                inputs.push(*v);
            }
        }
        let class = group.class.unwrap_or(Class::I64);
        let native = match class {
            Class::F64 => DType::F64,
            Class::I64 => DType::I64,
            _ => DType::F32,
        };
        let mut place: BTreeMap<ValueId, Expr> = inputs.iter().copied().zip((0..).map(Expr::Input)).collect();
        let mut links: Vec<Link> = vec![];
        for (k, (node, member)) in nodes().enumerate() {
            let (mut values, before): (Vec<Expr>, usize) = (vec![], links.len());
            for v in node.inputs.iter().flatten() {
                values.push(place.get(v)?.clone());
            }
            for link in &member?.links {
                let expr = link.expr.substitute(&values, &[], None);
                values.push(match (&expr, link.dtype) {
                    // A cast to what holds every number.
                    (Expr::Input(_), None) => expr,
                    _ => {
                        links.push(Link { expr, dtype: link.dtype });
                        Expr::Input(inputs.len() + links.len() - 1)
                    }
                });
            }
            let (v, mut value) = (node.outputs.first()?, values.pop()?);
            let dtype = program.ty(*v).ty().dtype;
            // What the group gives is rounded when it is stored.
            let stored = k + 1 == computed;
            let newest = Expr::Input(inputs.len() + links.len().max(1) - 1);
            // A value that another call has made may be read as it is.
            let made = if stored { &links[..] } else { &links[before..] };
            let own = made.last().filter(|l| value == newest && l.dtype.is_none());
            let exact = dtype == native || dtype == DType::Bool && own.is_some_and(|l| l.expr.is_truth());
            match (own.is_some(), exact || stored) {
                (true, true) => {}
                (true, false) => links.last_mut()?.dtype = Some(dtype),
                (false, true) if !stored => {}
                (false, exact) => {
                    links.push(Link { expr: value, dtype: (!exact).then_some(dtype) });
                    value = Expr::Input(inputs.len() + links.len() - 1);
                }
            }
            place.insert(*v, value);
        }
        let chain = Chain::new(inputs.len(), links).ok()?;
        let end = &program.nodes[last];
        let out = program.ty(*end.outputs.first()?);
        let layout = |v: &ValueId| program.ty(*v).global().map(|g| g.sbp.clone());
        let signature = out.global().and_then(|g| {
            let inputs = inputs.iter().map(layout).collect::<Option<_>>()?;
            Some(NdSignature { inputs, outputs: [g.sbp.clone()].into_iter().collect(), lowering: None })
        });
        let made = program.ty(group.like).ty().dtype;
        let mut attrs: Attrs =
            [AttrValue::Str(chain.to_string().into()), native.into(), made.into()].into_iter().collect();
        if let (Some((_, dims)), Work::Call(reduction)) = (reduces, &end.work) {
            attrs.extend([AttrValue::Str(reduction.op.name().into()), (dims as i64).into()]);
            attrs.push(reduction.attrs.last()?.clone());
        }
        let call = CallNode {
            op: if reduces.is_some() { reducing } else { op },
            attrs,
            runtime: RuntimeAttrs::new(),
            draw: None,
            host: None,
            target: None,
            into: false,
            signature,
            boxed_for: None,
        };
        let inputs = inputs.into_iter().map(Some).collect();
        Some(Node { work: Work::Call(Box::new(call)), inputs, ..end.clone() })
    }

    /// Says of the groups that stand around a node that their calls are to be more careful. Returns whether there is one.
    fn refuse_around(&self, n: usize, care: &mut [Care]) -> bool {
        let around = |(last, g): &(&usize, &Group)| g.nodes.len() > 1 && g.nodes.last() <= Some(&n) && n <= **last;
        let mut found = false;
        for (_, group) in self.all.iter().filter(around) {
            group.nodes.iter().for_each(|n| care[*n] = care[*n].more());
            found = true;
        }
        found
    }
}

/// The values that are windows onto others of which they turn the dims, and windows onto such.
fn turned(program: &Program) -> Vec<bool> {
    let mut turned = vec![false; program.values.len()];
    for node in &program.nodes {
        let (Work::Call(call), [Some(x), ..], [y, ..]) = (&node.work, &node.inputs[..], &node.outputs[..]) else {
            continue;
        };
        let turns = matches!(call.op.name(), "permute" | "strided_read");
        turned[y.index()] = call.op.view.is_some() && (turns || turned[x.index()]);
    }
    turned
}

/// Whether two results have one shape, and lie alike on the same ranks.
fn same_layout(a: &TypeRef, b: &TypeRef) -> bool {
    match (a, b) {
        (TypeRef::Local(a), TypeRef::Local(b)) => a.ty.shape == b.ty.shape && a.device == b.device,
        (TypeRef::Global(a), TypeRef::Global(b)) => {
            a.ty.shape == b.ty.shape && a.placement == b.placement && a.sbp == b.sbp
        }
        _ => false,
    }
}
