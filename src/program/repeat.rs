//! Sections that a program repeats: a node has the calls of one iteration as a program of its own.
//!
//! The values from outside of that program say by their kind where they come from: [`OutsideKind::Around`], [`Slice`](OutsideKind::Slice),
//! [`Carried`](OutsideKind::Carried), [`Written`](OutsideKind::Written). It gives the next value of each that is carried, the last value of each
//! that is written, and then what is collected.
//!
//! | the node's | in the order of |
//! |---|---|
//! | inputs | values from outside that are not written |
//! | writes | written values |
//! | outputs | carried values, as the last iteration leaves them; then the collected ones, stacked along a new dim 0 |

use super::types::{Node, OutsideKind, Program, Repeat, ValueId, Work, described};
use crate::error::{Error, Result};
use crate::plan::{TypeRef, intern_global, intern_local};
use crate::sbp::{NdSbp, Sbp};
use smallvec::SmallVec;

/// A section of a program, and how often its calls are made.
pub struct Section<'a> {
    /// Counts of the sections around it and its own, the outermost first.
    pub time_shape: SmallVec<[u64; 2]>,
    /// The node that repeats it.
    pub node: &'a Node,
    /// Calls of one iteration.
    pub body: &'a Program,
}

impl Repeat {
    /// Returns the number of values from outside of that kind.
    pub fn of_kind(&self, kind: OutsideKind) -> usize {
        self.body.outside_of(kind).count()
    }
}

impl Node {
    /// Returns the section that it repeats, if it repeats one.
    pub fn repeat(&self) -> Option<&Repeat> {
        match &self.work {
            Work::Repeat(r) => Some(r),
            _ => None,
        }
    }
    /// The same, to be changed.
    pub(super) fn repeat_mut(&mut self) -> Option<&mut Repeat> {
        match &mut self.work {
            Work::Repeat(r) => Some(r),
            _ => None,
        }
    }
}

impl Program {
    /// Returns how often a run makes a value of this program: `[n]` of a value that is collected from the n iterations of a section, which gets a
    /// part in each of them, and `[1]` of others. Values inside of a section have the time shape of the section ([`sections`](Program::sections)).
    pub fn time_shape(&self, v: ValueId) -> SmallVec<[u64; 2]> {
        let collects = |n: &&Node| {
            let carried = n.repeat().map(|r| r.of_kind(OutsideKind::Carried));
            carried.is_some_and(|carried| n.outputs.iter().skip(carried).any(|o| *o == v))
        };
        let count = self.nodes.iter().find(collects).and_then(Node::repeat).map_or(1, |r| r.count);
        SmallVec::from_slice(&[count])
    }

    /// Returns the sections that the program repeats, each followed by the sections inside of it.
    pub fn sections(&self) -> Vec<Section<'_>> {
        let mut found = vec![];
        self.sections_into(&[], &mut found);
        found
    }

    fn sections_into<'a>(&'a self, around: &[u64], found: &mut Vec<Section<'a>>) {
        for node in &self.nodes {
            if let Some(Repeat { count, body, .. }) = node.repeat() {
                let time_shape: SmallVec<[u64; 2]> = around.iter().copied().chain([*count]).collect();
                found.push(Section { time_shape: time_shape.clone(), node, body });
                body.sections_into(&time_shape, found);
            }
        }
    }

    /// Checks a node that repeats a section; `hosts` are the host objects of the whole program.
    pub(super) fn verify_repeat(&self, node: &Node, r: &Repeat, hosts: &[String]) -> Result<()> {
        let Repeat { count, body, first_draws } = r;
        if *count == 0 {
            return Err(wrong("a section is repeated at least once"));
        }
        if node.guard.is_some() {
            return Err(wrong("a repeated section stands under no guard"));
        }
        if !body.hosts.is_empty() {
            return Err(wrong("a section has the host objects of the program, and none of its own"));
        }
        body.verify_with(hosts).map_err(|e| e.in_call(|| "a repeated section".to_string()))?;
        for (g, draws) in body.draws.iter().enumerate().filter(|(_, draws)| **draws > 0) {
            let taken = draws.checked_mul(*count).and_then(|all| all.checked_add(*first_draws.get(g)?));
            if taken.is_none_or(|taken| self.draws.get(g).is_none_or(|all| taken > *all)) {
                return Err(wrong(&format!("a run takes fewer draws of generator {g} than the section")));
            }
        }
        let (carried, written) = (r.of_kind(OutsideKind::Carried), r.of_kind(OutsideKind::Written));
        let collected = body.outputs.len().checked_sub(carried + written);
        let counts = (node.inputs.len() + written, node.writes.len(), Some(node.outputs.len()));
        if counts != (body.outside.len(), written, collected.map(|c| c + carried)) {
            return Err(wrong("a repeated section has other inputs, writes or outputs than its node"));
        }
        let same = |a: &TypeRef, b: &TypeRef, what: &str| match a.same(b) {
            true => Ok(()),
            false => Err(wrong(&format!("{what} is {} inside, and {} outside", described(a), described(b)))),
        };
        let (mut inputs, mut writes) = (node.inputs.iter(), node.writes.iter());
        let (mut carries, mut lasts) = (0, carried);
        for o in &body.outside {
            let ty = body.ty(o.value);
            if o.kind == OutsideKind::Written {
                let w = writes.next().ok_or_else(|| wrong("a written value is missing"))?;
                same(ty, self.ty(w.old), "a written value")?;
                same(body.ty(body.outputs[lasts]), ty, "the last value of a written one")?;
                lasts += 1;
                continue;
            }
            let from = inputs.next().copied().flatten().ok_or_else(|| wrong("an input of a section is left out"))?;
            match o.kind {
                OutsideKind::Around => same(ty, self.ty(from), "a value from around")?,
                OutsideKind::Carried => {
                    same(ty, self.ty(from), "a carried value")?;
                    same(body.ty(body.outputs[carries]), ty, "the next value of a carried one")?;
                    same(ty, self.ty(node.outputs[carries]), "a carried value")?;
                    carries += 1;
                }
                OutsideKind::Slice => {
                    let part = part_type(self.ty(from));
                    let rows = self.ty(from).ty().shape.first().map(|n| *n as u64);
                    match part.filter(|_| rows == Some(*count)) {
                        Some(part) => same(ty, &part, "a slice")?,
                        None => {
                            return Err(wrong(&format!("{} has no slice for each iteration", self.ty(from).short())));
                        }
                    }
                }
                kind => return Err(wrong(&format!("a section has no {}", kind.word()))),
            }
        }
        for (inside, out) in body.outputs[carried + written..].iter().zip(&node.outputs[carried..]) {
            let whole = stacked_type(body.ty(*inside), *count)?;
            same(&whole, self.ty(*out), "a collected value")?;
        }
        Ok(())
    }
}

fn wrong(what: &str) -> Error {
    Error::argument(format!("the program is not valid: {what}"))
}

/// The type of one slice along dim 0; `None` of a value without dims, and where dim 0 is split.
pub(crate) fn part_type(ty: &TypeRef) -> Option<TypeRef> {
    let (_, rest) = ty.ty().shape.split_first()?;
    match ty {
        TypeRef::Local(l) => Some(TypeRef::Local(intern_local(rest, l.ty.dtype, l.device))),
        TypeRef::Global(g) => {
            let down = |s: &Sbp| match s {
                Sbp::Split(d) => d.checked_sub(1).map(Sbp::Split),
                other => Some(*other),
            };
            let sbp: NdSbp = g.sbp.iter().map(down).collect::<Option<SmallVec<[Sbp; 4]>>>()?.into_iter().collect();
            let ty = crate::ops::TensorType::new(rest, g.ty.dtype);
            Some(TypeRef::Global(intern_global(ty, &g.placement, &sbp)))
        }
    }
}

/// The type of so many values, stacked along a new dim 0.
pub(crate) fn stacked_type(ty: &TypeRef, count: u64) -> Result<TypeRef> {
    let rows = usize::try_from(count).map_err(|_| Error::shape(format!("{count} values cannot be stacked")))?;
    let shape: SmallVec<[usize; 6]> = [rows].into_iter().chain(ty.ty().shape.iter().copied()).collect();
    let checked = crate::ops::TensorType::checked(&shape, ty.ty().dtype)?;
    Ok(match ty {
        TypeRef::Local(l) => TypeRef::Local(intern_local(&shape, l.ty.dtype, l.device)),
        TypeRef::Global(g) => {
            let up = |s: &Sbp| match s {
                Sbp::Split(d) => Sbp::Split(d + 1),
                other => *other,
            };
            let sbp: NdSbp = g.sbp.iter().map(up).collect();
            TypeRef::Global(intern_global(checked, &g.placement, &sbp))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Flat, Passes};

    const TEXT: &str = "draws 0 6
input %0 \"x\": f32[3, 4] on cpu
variable %1: f32[4] on cpu
%2 = oflow.full@1() {shape=[4], dtype=f32, value=0.5} on cpu: f32[4] on cpu
%3, %4, %5 = repeat 3(%2, %0) over %1 drawing from 0 0: f32[4] on cpu; f32[3, 4] on cpu; f32[4] on cpu
  draws 0 2
  carried %0: f32[4] on cpu
  slice %1: f32[4] on cpu
  written %2: f32[4] on cpu
  %3 = oflow.rand@1() {shape=[4], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 1} on cpu: f32[4] on cpu
  %4 = oflow.mul@1(%1, %3): f32[4] on cpu
  %5 = oflow.add@1(%2, %4) into %2: f32[4] on cpu
  %6 = oflow.add@1(%0, %5): f32[4] on cpu
  return %6, %5, %4
return %3, %4
";

    fn code(p: &Program) -> String {
        let text = p.to_string();
        text.lines().map(|l| format!("{}\n", l.split("  #").next().unwrap_or_default())).collect()
    }

    #[test]
    fn a_section_is_written_and_read_and_has_a_time_shape() {
        let program: Program = TEXT.parse().unwrap();
        assert_eq!(code(&program), TEXT);
        assert_eq!(Program::decode(&program.encode()).unwrap().to_string(), program.to_string());
        let shape = |v: u32| program.time_shape(ValueId(v)).to_vec();
        assert_eq!([0, 2, 3, 4, 5].map(shape), [vec![1], vec![1], vec![1], vec![3], vec![1]]);
        let inner = TEXT.replace("\n", "\n  ").replace("input %0 \"x\"", "slice %0").replace("variable", "written");
        let outer = format!(
            "draws 0 12\ninput %0 \"x\": f32[2, 3, 4] on cpu\nvariable %1: f32[4] on cpu\n\
             %2, %3 = repeat 2(%0) over %1 drawing from 0 0: f32[2, 3, 4] on cpu; f32[4] on cpu\n  {inner}return %2\n"
        );
        let outer = outer.replace("  return %3, %4\n", "  return %5, %4\n");
        let nested: Program = outer.parse().unwrap_or_else(|e| panic!("{e}\n{outer}"));
        let shapes: Vec<Vec<u64>> = nested.sections().iter().map(|s| s.time_shape.to_vec()).collect();
        assert_eq!(shapes, [vec![2], vec![2, 3]]);
        // A list has each call once, and both ends of each loop.
        let flat = Flat::of(&nested).unwrap();
        let ends: Vec<_> = flat.loops.iter().map(|l| (l.head, l.tail, l.count)).collect();
        assert_eq!(ends, [(0, 8, 2), (2, 7, 3)]);
        assert_eq!(flat.program.nodes.len(), 9);
    }

    #[test]
    fn what_is_no_section_is_refused_with_its_reason() {
        let said = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            TEXT.replacen(from, to, 1).parse::<Program>().map(drop).unwrap_err().to_string()
        };
        for (from, to, want) in [
            ("repeat 3(", "repeat 0(", "repeated at least once"),
            ("\"x\": f32[3, 4]", "\"x\": f32[2, 4]", "has no slice for each iteration"),
            ("draws 0 6", "draws 0 5", "fewer draws of generator 1"),
            ("drawing from 0 0", "drawing from 0 1", "fewer draws of generator 1"),
            ("return %6, %5, %4", "return %6, %5", "other inputs, writes or outputs"),
            ("return %6, %5, %4", "return %6, %5, %9", "a value that is defined above"),
            (" over %1", "", "other inputs, writes or outputs"),
            ("(%2, %0)", "(%2)", "other inputs, writes or outputs"),
            ("(%2, %0)", "(%0, %0)", "a carried value is f32[4] on cpu inside, and f32[3, 4] on cpu outside"),
            ("carried %0", "input %0 \"z\"", "a section has no input"),
            ("variable %1", "written %1", "as values of sections are"),
            ("f32[3, 4] on cpu; f32[4] on cpu\n", "f32[4, 3] on cpu; f32[4] on cpu\n", "a collected value"),
            ("\nreturn %3, %4", "", "ends without `return`"),
        ] {
            let e = said(from, to);
            assert!(e.contains(want), "{from} -> {to}: {e}");
        }
        let nested = "%0 = repeat 2(): f32[2] on cpu\n".repeat(40);
        assert!(nested.parse::<Program>().map(drop).unwrap_err().to_string().contains("at most 16 sections"));
    }

    #[test]
    fn a_section_carries_and_collects_what_is_needed() {
        let mut program: Program = TEXT.replace("return %3, %4", "return %5").parse().unwrap();
        let only = ["identity", "common", "recompute", "order"];
        let dead = only.iter().try_fold(Passes::default(), |passes, name| passes.without(name)).unwrap();
        dead.run(&mut program).unwrap();
        let want = "draws 0 6
input %0 \"x\": f32[3, 4] on cpu
variable %1: f32[4] on cpu
%2 = repeat 3(%0) over %1 drawing from 0 0: f32[4] on cpu
  draws 0 2
  slice %0: f32[4] on cpu
  written %1: f32[4] on cpu
  %2 = oflow.rand@1() {shape=[4], dtype=f32, lo=0.0, hi=1.0, seed=generator 1, ordinal=draw 1} on cpu: f32[4] on cpu
  %3 = oflow.mul@1(%0, %2): f32[4] on cpu
  %4 = oflow.add@1(%1, %3) into %1: f32[4] on cpu
  return %4
return %2
";
        assert_eq!(code(&program), want);
        // What is carried stays where its own next value, or what is collected, needs it.
        let mut program: Program = TEXT.replace("return %3, %4", "return %3").parse().unwrap();
        dead.run(&mut program).unwrap();
        assert!(program.to_string().contains("carried") && program.nodes[1].outputs.len() == 1, "{program}");
        // A section that writes nothing and of which nothing is needed is left out.
        let mut program: Program = TEXT.replace("return %3, %4", "return %2").parse().unwrap();
        program.nodes[1].writes.clear();
        let r = program.nodes[1].repeat_mut().unwrap();
        r.body.outside.iter_mut().filter(|o| o.kind == OutsideKind::Written).for_each(|o| o.kind = OutsideKind::Around);
        r.body.outputs.remove(1);
        program.nodes[1].inputs.push(Some(ValueId(1)));
        program.values.pop();
        dead.run(&mut program).unwrap();
        assert_eq!(program.nodes.len(), 1, "{program}");
    }
}
