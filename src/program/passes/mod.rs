//! Passes: changes of a captured program that keep what it computes, bit for bit.
//!
//! A pass is one file with one function from a program to a program, and one row of [`PASSES`], in whose order passes run. It may read what
//! ops declare (`NoSideEffect` is the absence of the trait `side_effect`; `random`), layouts and marks. After each pass the program is
//! verified.
//!
//! | pass | what it does | what stays |
//! |---|---|---|
//! | `identity` | changes of layout and ops that change nothing are left out | what is returned or written over |
//! | `common` | calls that repeat an earlier one give its result | random calls, calls with side effects, second runs of activation checkpointing |
//! | `update` | parameters are updated as soon as their gradients are there | steps that need all gradients |
//! | `recompute` | memory that is idle while most is in use is given up, and its value computed once more ([`Memory`]) | collectives, writes, calls with side effects |
//! | `order` | calls that end more memory than they make come first, where most is in use | the order of collectives, of writes and of calls with side effects |
//! | `gather` | parts of a step that gain nothing apart go together again | parts that keep the peak low |
//! | `dead` | calls whose results nobody needs are left out | calls with side effects, writes, numbers of random calls |
//! | `fuse` | elementwise calls whose results other elementwise calls alone read become one call | what is returned or written over, random calls, divisions of integers; the peak |
//! | `together` | small boxings of one kind that do not need each other become one | those of other reasons or layouts; the peak |
//! | `overlap` | large boxings go on while others compute: they begin early, and are waited for late | the peak, or a budget |
//!
//! A section that repeats is one node. Each pass runs over the calls of one iteration, which are a program too, before it runs over the program
//! around them.
//!
//! All ranks decide alike: a pass reads no values, no clocks and nothing of one rank alone.

mod changes;
mod common;
mod dead;
mod depends;
mod effect;
mod fuse;
mod identity;
mod liveness;
mod order;
mod overlap;
mod recompute;
mod streams;
mod together;
mod update;

pub use effect::{Effect, Size};
pub(super) use liveness::declared_flops;
pub use recompute::Memory;

use super::types::{Node, Program, Repeat, ValueId};
use crate::boxing::{Model, Planner};
use crate::error::{Error, Result};
use liveness::{Liveness, Sizes};

/// A pass.
struct Pass {
    name: &'static str,
    run: fn(&mut Program, &Passes),
}

/// The passes, in their order. `dead` comes after those that leave calls that nobody needs. `fuse` comes after it: the calls of a group have one
/// reader more where dead calls are there, and what is computed once more is chosen call by call. Then boxings find their places among the calls.
const PASSES: &[Pass] = &[
    Pass { name: "identity", run: |program, _| identity::identity(program) },
    Pass { name: "common", run: |program, _| common::common(program) },
    Pass { name: "update", run: |program, passes| update::update(program, passes.memory) },
    Pass { name: "recompute", run: |program, passes| recompute::recompute(program, passes.memory) },
    Pass { name: "order", run: |program, _| order::order(program) },
    Pass { name: "gather", run: |program, _| update::gather(program) },
    Pass { name: "dead", run: |program, _| dead::dead(program) },
    Pass { name: "fuse", run: |program, _| fuse::fuse(program) },
    Pass { name: "together", run: |program, passes| together::together(program, &passes.planner()) },
    Pass { name: "overlap", run: |program, passes| overlap::overlap(program, passes.room(), &passes.planner()) },
];

impl Pass {
    /// Runs the pass over the sections of a program, the inner ones first, and over the program.
    fn over(&self, program: &mut Program, passes: &Passes) {
        if program.nodes.iter().any(|n| n.repeat().is_some()) {
            let rooms = passes.rooms(program);
            let sections = program.nodes.iter_mut().filter_map(Node::repeat_mut);
            sections.zip(rooms).for_each(|(r, room)| self.over(&mut r.body, &room));
        }
        (self.run)(program, passes);
    }
}

/// How many smaller peaks are tried one by one for a budget.
const ONE_BY_ONE: usize = 16;

/// Set of the passes that run; all by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    off: Vec<&'static str>,
    /// Memory that the program may take.
    memory: Memory,
    /// Whether exchanges leave the peak as it is, also where a budget is larger.
    keeps_peak: bool,
    /// The cost model of the job; the fixed constants where there is none.
    model: Option<Box<Model>>,
}

impl Passes {
    /// Leaves every pass out.
    pub fn none() -> Passes {
        Passes { off: PASSES.iter().map(|p| p.name).collect(), ..Passes::default() }
    }

    /// Predicts times of boxings by this cost model.
    pub(crate) fn under(&self, model: &Model) -> Passes {
        Passes { model: Some(Box::new(*model)), ..self.clone() }
    }

    fn planner(&self) -> Planner {
        Planner::new(self.model.as_deref().copied().unwrap_or_default())
    }

    /// Sets the memory that the pass `recompute` aims at.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Passes {
        self.memory = memory;
        self
    }

    /// Leaves a pass out.
    ///
    /// # Errors
    /// There is no pass of that name.
    pub fn without(mut self, name: &str) -> Result<Passes> {
        let pass = PASSES.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
            Error::argument(format!("pass {name:?} does not exist"))
                .help(format!("the passes are {}", names.join(", ")))
        })?;
        if !self.off.contains(&pass.name) {
            self.off.push(pass.name);
        }
        Ok(self)
    }

    /// The name of a pass, if there is one of that name.
    pub(crate) fn known(name: &str) -> Option<&'static str> {
        PASSES.iter().map(|p| p.name).find(|known| *known == name)
    }

    /// The passes that aim at less memory, where the plan of a program takes more than the budget; none where it does not. `effects` are those of
    /// these passes on the program, `tries` how often it was tried.
    ///
    /// Exchanges give up first what they take. Recomputation is bound by what remains: its next aim is the next smaller peak at first, so that a
    /// smaller budget never computes less. Where ranks hold different parts of values, they cannot decide by their own plans, as all have to decide
    /// alike.
    ///
    /// # Errors
    /// The budget cannot be kept.
    pub(crate) fn within(
        &self,
        (budget, planned): (usize, usize),
        (program, effects): (&Program, &[Effect]),
        tries: usize,
    ) -> Result<Option<Passes>> {
        let Memory::Budget(aim) = self.memory else { return Ok(None) };
        let over = planned.saturating_sub(budget);
        if over == 0 {
            return Ok(None);
        }
        let of = |pass: &str| effects.iter().find(|e| e.pass == pass);
        if of("overlap").is_some_and(|e| e.after.peak > e.before.peak) {
            return Ok(Some(Passes { keeps_peak: true, ..self.clone() }));
        }
        let reached = of("recompute").map(|e| e.after.peak);
        match reached.filter(|peak| *peak <= aim && liveness::is_even(program)) {
            Some(peak) => {
                let by = if tries < ONE_BY_ONE { 1 } else { over };
                Ok(Some(self.clone().memory(Memory::Budget(peak.saturating_sub(by)))))
            }
            None => Err(Error::argument(format!(
                "the graph cannot keep to {budget} bytes: it takes {planned}, of them {} for tensors from outside",
                Liveness::of(program, &mut Sizes::default()).outside
            ))
            .help("give it a larger budget, a smaller batch, or more ranks that share its tensors")),
        }
    }

    /// The same passes for each section of a program: of a budget, a section has what the program around it leaves.
    fn rooms(&self, program: &Program) -> Vec<Passes> {
        let sections = program.nodes.iter().enumerate().filter_map(|(n, node)| Some((n, node.repeat()?)));
        let Memory::Budget(all) = self.memory else { return sections.map(|_| self.clone()).collect() };
        let mut sizes = Sizes::default();
        let live = Liveness::of(program, &mut sizes);
        let room = |(n, r): (usize, &Repeat)| {
            let inside = Liveness::of(&r.body, &mut sizes);
            let around = live.outside + live.used[n].saturating_sub(inside.peak.1);
            self.clone().memory(Memory::Budget((all + inside.outside).saturating_sub(around)))
        };
        sections.map(room).collect()
    }

    fn runs(&self, name: &str) -> bool {
        !self.off.contains(&name)
    }

    /// The bytes that the program may take; none where there is no budget.
    pub(crate) fn budget(&self) -> Option<usize> {
        match self.memory {
            Memory::Budget(bytes) => Some(bytes),
            Memory::Cheap | Memory::Least => None,
        }
    }

    /// The bytes up to which exchanges may raise the peak.
    fn room(&self) -> Option<usize> {
        self.budget().filter(|_| !self.keeps_peak)
    }

    /// Runs the passes on a program, and says what each has done.
    ///
    /// # Errors
    /// A pass has made a program that is not valid.
    pub fn run(&self, program: &mut Program) -> Result<Vec<Effect>> {
        let planner = self.planner();
        let (mut effects, mut before) = (vec![], Size::of(program, &planner));
        for pass in PASSES.iter().filter(|p| self.runs(p.name)) {
            pass.over(program, self);
            program.verify().map_err(|e| e.in_call(|| format!("pass {}", pass.name)))?;
            let after = Size::of(program, &planner);
            effects.push(Effect { pass: pass.name, before: std::mem::replace(&mut before, after), after });
        }
        Ok(effects)
    }
}

impl Program {
    /// Keeps these nodes only, and numbers the values again in the order in which they are defined.
    fn keep(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.nodes.retain(|_| kept.next().copied().unwrap_or(true));
        let mut number: Vec<Option<ValueId>> = vec![None; self.values.len()];
        let defined = self.outside.iter().map(|o| o.value).chain(self.nodes.iter().flat_map(Node::defines));
        let mut values = vec![];
        for v in defined {
            number[v.index()] = Some(ValueId(values.len() as u32));
            values.push(self.values[v.index()].clone());
        }
        self.values = values;
        // One that is not defined stays as it is, for the verifier to find.
        self.rename(|v| number.get(v.index()).copied().flatten().unwrap_or(v));
    }

    /// Whether each value is that of a tensor of its own: it is returned, or written over.
    fn own_values(&self) -> Vec<bool> {
        let mut own = vec![false; self.values.len()];
        let written = self.nodes.iter().flat_map(|n| &n.writes).map(|w| w.old);
        self.outputs.iter().copied().chain(written).for_each(|v| own[v.index()] = true);
        own
    }

    /// Gives every value another number.
    fn rename(&mut self, to: impl Fn(ValueId) -> ValueId) {
        for o in &mut self.outside {
            o.value = to(o.value);
        }
        for n in &mut self.nodes {
            n.rename_needs(&to);
            n.outputs.iter_mut().for_each(|v| *v = to(*v));
            n.writes.iter_mut().for_each(|w| w.new = to(w.new));
        }
        self.outputs.iter_mut().for_each(|v| *v = to(*v));
    }
}

impl Node {
    /// Reads other values in place of those that it reads.
    fn rename_needs(&mut self, to: impl Fn(ValueId) -> ValueId) {
        self.inputs.iter_mut().flatten().for_each(|v| *v = to(*v));
        self.writes.iter_mut().for_each(|w| w.old = to(w.old));
        self.guard.iter_mut().for_each(|v| *v = to(*v));
    }
}

#[cfg(test)]
mod boxing_tests;
#[cfg(test)]
mod fuse_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one pass on the text of a program, and compares the texts of the nodes.
    pub(super) fn check(pass: &str, text: &str, expect: &str) {
        check_with((pass, &Passes::default()), text, expect);
    }

    pub(super) fn check_with((pass, passes): (&str, &Passes), text: &str, expect: &str) {
        let mut program: Program = text.parse().unwrap();
        program.verify().unwrap();
        let pass = PASSES.iter().find(|p| p.name == pass).unwrap();
        (pass.run)(&mut program, passes);
        program.verify().unwrap();
        let plain = |t: &str| {
            let lines = t.lines().map(|l| l.split("  #").next().unwrap_or_default().trim());
            lines.filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(plain(&program.to_string()), plain(expect), "\n{program}");
    }

    #[test]
    fn equal_calls_are_made_once() {
        check(
            "common",
            "input %0 \"x\": f32[4] on cpu
             %1 = oflow.relu@1(%0): f32[4] on cpu
             %2 = oflow.mul_scalar@1(%1) {s=2.0}: f32[4] on cpu
             %3 = oflow.relu@1(%0): f32[4] on cpu
             %4 = oflow.mul_scalar@1(%3) {s=2.0}: f32[4] on cpu
             %5 = oflow.mul_scalar@1(%3) {s=-2.0}: f32[4] on cpu
             %6 = oflow.add@1(%2, %4): f32[4] on cpu
             %7 = oflow.add@1(%6, %5): f32[4] on cpu
             return %7",
            "input %0 \"x\": f32[4] on cpu
             %1 = oflow.relu@1(%0): f32[4] on cpu
             %2 = oflow.mul_scalar@1(%1) {s=2.0}: f32[4] on cpu
             %3 = oflow.mul_scalar@1(%1) {s=-2.0}: f32[4] on cpu
             %4 = oflow.add@1(%2, %2): f32[4] on cpu
             %5 = oflow.add@1(%4, %3): f32[4] on cpu
             return %5",
        );
    }

    #[test]
    fn a_value_is_boxed_once() {
        check(
            "common",
            "input %0 \"x\": f32[4, 4] [S(0)] on cpu[2]
             %1 = box(%0) for matmul: f32[4, 4] [B] on cpu[2]
             %2 = oflow.relu@1(%1): f32[4, 4] [B] on cpu[2]
             %3 = box(%0) for matmul: f32[4, 4] [B] on cpu[2]
             %4 = oflow.add@1(%2, %3): f32[4, 4] [B] on cpu[2]
             return %4",
            "input %0 \"x\": f32[4, 4] [S(0)] on cpu[2]
             %1 = box(%0) for matmul: f32[4, 4] [B] on cpu[2]
             %2 = oflow.relu@1(%1): f32[4, 4] [B] on cpu[2]
             %3 = oflow.add@1(%2, %1): f32[4, 4] [B] on cpu[2]
             return %3",
        );
    }

    #[test]
    fn what_must_not_be_merged_is_not() {
        // Results that are returned or written over are tensors of their own; second runs are there to save memory; random calls draw.
        let text = "draws 0 2
             input %0 \"x\": f32[4] on cpu
             %1 = oflow.relu@1(%0): f32[4] on cpu
             %2 = oflow.relu@1(%0): f32[4] on cpu
             %3 = oflow.tanh@1(%0): f32[4] on cpu
             %4 = oflow.tanh@1(%0): f32[4] on cpu
             %5 = oflow.mul_scalar@1(%4) {s=2.0} into %4: f32[4] on cpu
             %6 = oflow.exp@1(%0): f32[4] on cpu
             %7 = oflow.exp@1(%0): f32[4] on cpu recomputed backward
             %8 = oflow.exp@1(%0): f32[4] on cpu recomputed backward
             %9 = oflow.rand@1() {shape=[4], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 0} on cpu: f32[4] on cpu
             %10 = oflow.rand@1() {shape=[4], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 1} on cpu: f32[4] on cpu
             return %1, %2, %3, %5, %6, %7, %8, %9, %10";
        check("common", text, text);
    }

    #[test]
    fn what_nobody_needs_is_left_out() {
        check(
            "dead",
            "draws 0 1
             input %0 \"x\": f32[4] on cpu
             variable %1: f32[4] on cpu
             %2 = oflow.relu@1(%0): f32[4] on cpu
             %3 = oflow.exp@1(%2): f32[4] on cpu
             %4 = oflow.rand@1() {shape=[4], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 0} on cpu: f32[4] on cpu
             %5 = oflow.tanh@1(%0): f32[4] on cpu
             %6 = oflow.add@1(%1, %5) into %1: f32[4] on cpu
             %7 = oflow.neg@1(%0): f32[4] on cpu
             return %7",
            "draws 0 1
             input %0 \"x\": f32[4] on cpu
             variable %1: f32[4] on cpu
             %2 = oflow.tanh@1(%0): f32[4] on cpu
             %3 = oflow.add@1(%1, %2) into %1: f32[4] on cpu
             %4 = oflow.neg@1(%0): f32[4] on cpu
             return %4",
        );
    }

    #[test]
    fn what_changes_nothing_is_left_out() {
        check(
            "identity",
            "input %0 \"x\": f32[4, 4] [S(0)] on cpu[2]
             %1 = oflow.to_global@1(%0) {placement=cpu[2], sbp=[S(0)], grad_sbp=none}: f32[4, 4] [S(0)] on cpu[2]
             %2 = oflow.add@1(%1, %0): f32[4, 4] [S(0)] on cpu[2]
             %3 = oflow.add.grad.a@1(%2): f32[4, 4] [S(0)] on cpu[2] backward
             %4 = oflow.add.grad.b@1(%2): f32[4, 4] [S(0)] on cpu[2] backward
             %5 = oflow.add@1(%3, %3): f32[4, 4] [S(0)] on cpu[2]
             %6 = oflow.to_global@1(%5) {placement=cpu[2], sbp=[B], grad_sbp=none}: f32[4, 4] [B] on cpu[2]
             return %4, %6",
            "input %0 \"x\": f32[4, 4] [S(0)] on cpu[2]
             %1 = oflow.add@1(%0, %0): f32[4, 4] [S(0)] on cpu[2]
             %2 = oflow.add.grad.b@1(%1): f32[4, 4] [S(0)] on cpu[2] backward
             %3 = oflow.add@1(%1, %1): f32[4, 4] [S(0)] on cpu[2]
             %4 = oflow.to_global@1(%3) {placement=cpu[2], sbp=[B], grad_sbp=none}: f32[4, 4] [B] on cpu[2]
             return %2, %4",
        );
    }

    #[test]
    fn a_copy_of_a_window_onto_written_memory_stays() {
        let text = "variable %0: f32[4] on cpu
             %1 = oflow.reshape@1(%0) {shape=[2, 2]}: f32[2, 2] on cpu
             %2 = oflow.add.grad.a@1(%1): f32[2, 2] on cpu
             %3 = oflow.add@1(%0, %0) into %0: f32[4] on cpu
             %4 = oflow.relu@1(%2): f32[2, 2] on cpu
             return %4";
        check("identity", text, text);
        // What needs a copy of contiguous memory may be a window onto a variable with other strides.
        let text = "variable %0: f32[2, 3] on cpu
             %1 = oflow.permute@1(%0) {dims=[1, 0]}: f32[3, 2] on cpu
             %2 = oflow.reshape@1(%1) {shape=[6]}: f32[6] on cpu
             %3 = oflow.add.grad.a@1(%2): f32[6] on cpu
             %4 = oflow.add@1(%0, %0) into %0: f32[2, 3] on cpu
             %5 = oflow.relu@1(%3): f32[6] on cpu
             return %5";
        check("identity", text, text);
        // The same for a value that would be computed once more from it after the write.
        let text = "variable %0: f32[8, 8] on cpu
             input %1 \"x\": f32[64, 64] on cpu
             %2 = oflow.permute@1(%0) {dims=[1, 0]}: f32[8, 8] on cpu
             %3 = oflow.reshape@1(%2) {shape=[64]}: f32[64] on cpu
             %4 = oflow.mul@1(%3, %1): f32[64, 64] on cpu
             %5 = oflow.add@1(%0, %0) into %0: f32[8, 8] on cpu
             %6 = oflow.exp@1(%1): f32[64, 64] on cpu
             %7 = oflow.tanh@1(%1): f32[64, 64] on cpu
             %8 = oflow.mul@1(%6, %7): f32[64, 64] on cpu
             %9 = oflow.sum@1(%8) {dims=[], keepdim=false}: f32[] on cpu
             %10 = oflow.mul@1(%4, %9): f32[64, 64] on cpu
             return %10";
        check_with(("recompute", &Passes::default().memory(Memory::Least)), text, text);
    }

    /// Values that wait while others are computed.
    const WAITING: &str = "draws 0 1
             input %0 \"x\": f32[64] on cpu
             %1 = oflow.exp@1(%0): f32[64] on cpu
             %2 = oflow.relu@1(%1): f32[64] on cpu
             %3 = oflow.rand@1() {shape=[64], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 0} on cpu: f32[64] on cpu
             %4 = oflow.mul@1(%2, %3): f32[64] on cpu
             %5 = oflow.sum@1(%4) {dims=[], keepdim=false}: f32[] on cpu
             %6 = oflow.mul@1(%0, %0): f32[64] on cpu
             %7 = oflow.tanh@1(%0): f32[64] on cpu
             %8 = oflow.mul@1(%6, %7): f32[64] on cpu
             %9 = oflow.sum@1(%8) {dims=[], keepdim=false}: f32[] on cpu
             %10 = oflow.add@1(%5, %9): f32[] on cpu
             %11 = oflow.mul@1(%3, %10): f32[64] on cpu backward
             %12 = oflow.mul@1(%2, %11): f32[64] on cpu backward
             return %12";

    #[test]
    fn what_waits_at_the_peak_is_computed_once_more() {
        // %2 needs %1, which nobody keeps: both calls are made again. The random call draws the same numbers.
        check_with(
            ("recompute", &Passes::default().memory(Memory::Least)),
            WAITING,
            "draws 0 1
             input %0 \"x\": f32[64] on cpu
             %1 = oflow.exp@1(%0): f32[64] on cpu
             %2 = oflow.relu@1(%1): f32[64] on cpu
             %3 = oflow.rand@1() {shape=[64], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 0} on cpu: f32[64] on cpu
             %4 = oflow.mul@1(%2, %3): f32[64] on cpu
             %5 = oflow.sum@1(%4) {dims=[], keepdim=false}: f32[] on cpu
             %6 = oflow.mul@1(%0, %0): f32[64] on cpu
             %7 = oflow.tanh@1(%0): f32[64] on cpu
             %8 = oflow.mul@1(%6, %7): f32[64] on cpu
             %9 = oflow.sum@1(%8) {dims=[], keepdim=false}: f32[] on cpu
             %10 = oflow.add@1(%5, %9): f32[] on cpu
             %13 = oflow.rand@1() {shape=[64], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 0} on cpu: f32[64] on cpu recomputed backward
             %11 = oflow.mul@1(%13, %10): f32[64] on cpu backward
             %14 = oflow.exp@1(%0): f32[64] on cpu recomputed backward
             %15 = oflow.relu@1(%14): f32[64] on cpu recomputed backward
             %12 = oflow.mul@1(%15, %11): f32[64] on cpu backward
             return %12",
        );
        // These values are small: what is cheap keeps them.
        check("recompute", WAITING, WAITING);
    }

    #[test]
    fn products_and_sorted_values_are_not_cheap() {
        let text = "input %0 \"x\": f32[256, 256] on cpu
             %1 = oflow.exp@1(%0): f32[256, 256] on cpu
             %2, %3 = oflow.sort@1(%0) {dim=0, descending=false, stable=false}: f32[256, 256] on cpu; i64[256, 256] on cpu
             %4 = oflow.matmul@1(%0, %0) {transpose_a=false, transpose_b=false}: f32[256, 256] on cpu
             %5 = oflow.sum@1(%1) {dims=[], keepdim=false}: f32[] on cpu
             %6 = oflow.tanh@1(%0): f32[256, 256] on cpu
             %7 = oflow.relu@1(%0): f32[256, 256] on cpu
             %8 = oflow.matmul@1(%6, %7) {transpose_a=false, transpose_b=false}: f32[256, 256] on cpu
             %9 = oflow.sum@1(%8) {dims=[], keepdim=false}: f32[] on cpu
             %10 = oflow.add@1(%5, %9): f32[] on cpu
             %11 = oflow.matmul@1(%2, %4) {transpose_a=false, transpose_b=false}: f32[256, 256] on cpu
             %12 = oflow.mul@1(%11, %10): f32[256, 256] on cpu
             %13 = oflow.mul@1(%12, %1): f32[256, 256] on cpu
             return %13";
        let mut program: Program = text.parse().unwrap();
        Passes::default().without("order").unwrap().run(&mut program).unwrap();
        let again: Vec<&str> =
            program.nodes.iter().filter(|n| n.recomputed).map(|n| n.call().unwrap().op.name()).collect();
        assert_eq!(again, ["exp"], "{program}");
        Passes::default().memory(Memory::Least).run(&mut program).unwrap();
        assert!(program.nodes.iter().filter(|n| n.recomputed).count() > 1, "{program}");
    }

    #[test]
    fn what_frees_memory_comes_first() {
        check(
            "order",
            "input %0 \"x\": f32[64] on cpu
             %1 = oflow.exp@1(%0): f32[64] on cpu
             %2 = oflow.relu@1(%0): f32[64] on cpu
             %3 = oflow.tanh@1(%2): f32[64] on cpu
             %4 = oflow.reshape@1(%1) {shape=[8, 8]}: f32[8, 8] on cpu
             %5 = oflow.sum@1(%4) {dims=[0], keepdim=false}: f32[8] on cpu
             %6 = oflow.sum@1(%3) {dims=[], keepdim=false}: f32[] on cpu
             return %5, %6",
            "input %0 \"x\": f32[64] on cpu
             %1 = oflow.exp@1(%0): f32[64] on cpu
             %4 = oflow.reshape@1(%1) {shape=[8, 8]}: f32[8, 8] on cpu
             %5 = oflow.sum@1(%4) {dims=[0], keepdim=false}: f32[8] on cpu
             %2 = oflow.relu@1(%0): f32[64] on cpu
             %3 = oflow.tanh@1(%2): f32[64] on cpu
             %6 = oflow.sum@1(%3) {dims=[], keepdim=false}: f32[] on cpu
             return %5, %6",
        );
    }

    #[test]
    fn a_smaller_budget_gives_up_no_less() {
        let size = |memory: Memory| {
            let mut program: Program = WAITING.parse().unwrap();
            let passes = Passes::default().memory(memory).without("identity").unwrap().without("common").unwrap();
            let effects = passes.run(&mut program).unwrap();
            let after = effects.last().unwrap().after;
            (after.peak, after.nodes)
        };
        let (all, least) = (size(Memory::Budget(usize::MAX)), size(Memory::Least));
        assert!(least.0 < all.0 && least.1 > all.1, "{least:?} {all:?}");
        let mut nodes = all.1;
        for budget in (least.0..=all.0).rev() {
            let found = size(Memory::Budget(budget));
            assert!(found.0 <= budget && found.1 >= nodes, "{budget}: {found:?}, before {nodes} nodes");
            nodes = found.1;
        }
        assert_eq!(size(Memory::Budget(0)), least);
        assert_eq!("123".parse::<Memory>().unwrap(), Memory::Budget(123));
        assert!("much".parse::<Memory>().unwrap_err().to_string().contains("`least`"));
    }

    #[test]
    fn a_pass_has_a_switch() {
        let text = "input %0 \"x\": f32[4] on cpu\n%1 = oflow.relu@1(%0): f32[4] on cpu\nreturn %0";
        let run = |passes: &Passes| {
            let mut program: Program = text.parse().unwrap();
            let effects = passes.run(&mut program).unwrap();
            (program.nodes.len(), effects.iter().map(Effect::to_string).collect::<Vec<_>>().join("; "))
        };
        let all = "identity: 1 nodes -> 1, 0 boxings -> 0, 32 bytes -> 32, 1.000 of the time; common: 1 nodes -> 1, 0 boxings -> 0, 32 bytes -> 32, 1.000 of the time; \
                   update: 1 nodes -> 1, 0 boxings -> 0, 32 bytes -> 32, 1.000 of the time; \
                   recompute: 1 nodes -> 1, 0 boxings -> 0, 32 bytes -> 32, 1.000 of the time; order: 1 nodes -> 1, 0 boxings -> 0, 32 bytes -> 32, 1.000 of the time; \
                   gather: 1 nodes -> 1, 0 boxings -> 0, 32 bytes -> 32, 1.000 of the time; dead: 1 nodes -> 0, 0 boxings -> 0, 32 bytes -> 16, 0.000 of the time; \
                   fuse: 0 nodes -> 0, 0 boxings -> 0, 16 bytes -> 16, 0.000 of the time; together: 0 nodes -> 0, 0 boxings -> 0, 16 bytes -> 16, 0.000 of the time; \
                   overlap: 0 nodes -> 0, 0 boxings -> 0, 16 bytes -> 16, 0.000 of the time";
        assert_eq!(run(&Passes::default()), (0, all.to_string()));
        assert_eq!(run(&Passes::default().without("dead").unwrap()).0, 1);
        assert_eq!(run(&Passes::none()), (1, String::new()));
        let e = Passes::default().without("fusion").unwrap_err().to_string();
        assert!(
            e.contains("\"fusion\"") && e.contains("update, recompute, order, gather, dead, fuse, together, overlap"),
            "{e}"
        );
    }
}
