//! An expression as instructions over slots.

use super::joined::{Basic, Compare};
use super::{Instruction, Op, Uniform};
use crate::DType;
use crate::expr::{BinaryOp, Chain, Class, Expr, UnaryOp};

/// Turns an expression into instructions in single-assignment form; equal ones are shared.
pub(super) struct Compiler {
    class: Class,
    inputs: usize,
    /// Slots and values that stand at the inputs of an expression.
    given: Vec<usize>,
    pub(super) uniforms: Vec<Uniform>,
    values: Vec<(Op, [usize; 4])>,
    /// Of each value, whether a 0 of its second operand is an error.
    divides: Vec<bool>,
}

impl Compiler {
    /// A compiler for expressions over that many inputs, computed in that arithmetic.
    pub(super) fn new(class: Class, inputs: usize) -> Compiler {
        let given = (0..inputs).collect();
        Compiler { class, inputs, given, uniforms: Vec::new(), values: Vec::new(), divides: Vec::new() }
    }

    /// The slot of the first value that is computed.
    pub(super) fn first_value(&self) -> usize {
        self.inputs + self.uniforms.len()
    }

    /// Gives slots to the numbers of the expression.
    pub(super) fn collect_uniforms(&mut self, e: &Expr) {
        let uniform = match e {
            Expr::Const(c) => Some(Uniform::Const(*c)),
            Expr::Scalar(i) => Some(Uniform::Scalar(*i)),
            _ => None,
        };
        if let Some(u) = uniform
            && self.find(u).is_none()
        {
            self.uniforms.push(u);
        }
        e.children().for_each(|c| self.collect_uniforms(c));
    }

    /// Constants are compared by bits, so that NaN is found and zeros keep their sign.
    fn find(&self, u: Uniform) -> Option<usize> {
        self.uniforms.iter().position(|v| match (u, v) {
            (Uniform::Const(a), Uniform::Const(b)) => a.to_bits() == b.to_bits(),
            (u, v) => u == *v,
        })
    }

    fn uniform(&self, u: Uniform) -> usize {
        self.inputs + self.find(u).expect("collected before")
    }

    /// The value that an instruction computes, a known one where there is one.
    pub(super) fn instruction(&mut self, op: Op, operands: [usize; 4]) -> usize {
        let known = self.values.iter().position(|v| *v == (op, operands));
        let index = known.unwrap_or_else(|| {
            self.values.push((op, operands));
            self.divides.push(false);
            self.values.len() - 1
        });
        self.first_value() + index
    }

    /// The slot or value number that holds the result of a chain.
    pub(super) fn chain(&mut self, chain: &Chain) -> usize {
        self.given.truncate(chain.inputs());
        let mut last = 0;
        for link in chain.links() {
            last = self.value(&link.expr, false);
            if let Some(d) = link.dtype.and_then(DType::builtin) {
                last = self.instruction(Op::Rounded(d), [last; 4]);
            }
            self.given.push(last);
        }
        last
    }

    /// The slot or value number that holds `e`; `guarded` as [`Expr::checks_divisor`] has it.
    pub(super) fn value(&mut self, e: &Expr, guarded: bool) -> usize {
        match e {
            Expr::Input(i) => self.given[*i],
            Expr::Const(c) => self.uniform(Uniform::Const(*c)),
            Expr::Scalar(i) => self.uniform(Uniform::Scalar(*i)),
            Expr::Output => unreachable!("refused by check_class"),
            Expr::Unary(op, a) => {
                let a = self.value(a, guarded);
                self.instruction(Op::Unary(*op), [a; 4])
            }
            Expr::Binary(op, a, b) => {
                let divides = Expr::checks_divisor(self.class, *op, b, guarded);
                let (a, b) = (self.value(a, guarded), self.value(b, guarded));
                // `a * b` is found again in `b * a`.
                let turned = (Op::Binary(*op), [b, a, b, b]);
                let swap = matches!(op, BinaryOp::Add | BinaryOp::Mul) && self.values.contains(&turned);
                let (a, b) = if swap { (b, a) } else { (a, b) };
                let at = self.instruction(Op::Binary(*op), [a, b, a, a]);
                let first = self.first_value();
                self.divides[at - first] |= divides;
                at
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.value(c, guarded), self.value(a, true), self.value(b, true));
                self.instruction(Op::Select, [c, a, b, c])
            }
        }
    }

    /// Joins two instructions into one where the first is only for the second: pairs of additions, subtractions and products, the two
    /// bounds of a clamp, a selection with its comparison. Says which values are thereby no longer computed by themselves.
    pub(super) fn fuse(&mut self, last: usize) -> Vec<bool> {
        let first = self.first_value();
        let mut uses = vec![0; self.values.len()];
        for (op, operands) in &self.values {
            operands[..op.arity()].iter().filter(|o| **o >= first).for_each(|o| uses[o - first] += 1);
        }
        let mut fused = vec![false; self.values.len()];
        for j in 0..=last - first {
            let (op, [a, b, c, _]) = self.values[j];
            let real = !self.class.is_complex();
            for (inner, other) in [(a, b), (b, a)] {
                if inner < first || uses[inner - first] != 1 {
                    continue;
                }
                let joined = match (self.values[inner - first], op) {
                    ((Op::Binary(one), [x, y, ..]), Op::Binary(two)) => match (Basic::of(one), Basic::of(two)) {
                        (Some(_), Some(Basic::Sub)) if inner == b => None,
                        (Some(one), Some(two)) => Some((Op::Pair(one, two), [x, y, other, x])),
                        _ if real && (one, two) == (BinaryOp::Max, BinaryOp::Min) => {
                            Some((Op::Clamp, [x, y, other, x]))
                        }
                        _ => None,
                    },
                    ((Op::Binary(by), [x, y, ..]), Op::Select) if real && inner == a => {
                        Compare::of(by).map(|by| (Op::SelectBy(by), [x, y, b, c]))
                    }
                    ((Op::Unary(UnaryOp::IsNan), [x, ..]), Op::Select)
                        if inner == a && matches!(self.class, Class::F32 | Class::F64) =>
                    {
                        Some((Op::SelectBy(Compare::Ne), [x, x, b, c]))
                    }
                    _ => None,
                };
                if let Some(joined) = joined {
                    self.values[j] = joined;
                    fused[inner - first] = true;
                    break;
                }
            }
        }
        fused
    }

    /// The values, but the last, that are the same for all elements because their operands are.
    fn same_for_all(&self, last: usize, fused: &[bool]) -> Vec<bool> {
        let first = self.first_value();
        let mut same = vec![false; self.values.len()];
        for (i, (op, operands)) in self.values.iter().enumerate().take(last - first) {
            let of_all = |o: &usize| if *o >= first { same[o - first] } else { *o >= self.inputs };
            same[i] = !fused[i] && operands[..op.arity()].iter().all(of_all);
        }
        same
    }

    /// Gives values to temporaries, reusing those whose value is no longer needed. Returns the instructions that are run once, those
    /// that are run for each chunk, and the number of temporaries.
    pub(super) fn allocate(&self, last: usize, fused: &[bool]) -> (Vec<Instruction>, Vec<Instruction>, usize) {
        let first = self.first_value();
        let final_value = last - first;
        let same = self.same_for_all(last, fused);
        let mut last_use = vec![0; self.values.len()];
        for (i, (_, operands)) in self.values.iter().enumerate().filter(|(i, _)| !fused[*i]) {
            operands.iter().filter(|o| **o >= first).for_each(|o| last_use[o - first] = i);
        }
        let mut place = vec![0u16; self.values.len()];
        let (mut free, mut count) = (Vec::new(), 0);
        let (mut once, mut each) = (Vec::new(), Vec::new());
        let instruction = |i: usize, place: &[u16], dst: u16| {
            let (op, operands) = self.values[i];
            let slot = |o: usize| if o >= first { place[o - first] } else { o as u16 };
            let of_all = |o: usize| if o >= first { same[o - first] } else { o >= self.inputs };
            let decided = match op {
                Op::Binary(BinaryOp::Pow) => of_all(operands[1]),
                Op::Select => of_all(operands[0]),
                Op::SelectBy(_) => of_all(operands[0]) && of_all(operands[1]),
                _ => false,
            };
            Instruction { op, operands: operands.map(slot), dst, divides: self.divides[i], decided }
        };
        // Their temporaries are theirs for all chunks.
        for i in (0..final_value).filter(|i| same[*i]) {
            count += 1;
            place[i] = (first + count - 1) as u16;
            once.push(instruction(i, &place, place[i]));
        }
        for (i, (_, operands)) in self.values.iter().enumerate().filter(|(i, _)| !fused[*i] && !same[*i]) {
            // The last instruction writes to the output. The others write to a temporary that is not an operand.
            let mut dst = 0;
            if i != final_value {
                dst = free.pop().unwrap_or_else(|| {
                    count += 1;
                    (first + count - 1) as u16
                });
            }
            for o in operands.iter().filter(|o| **o >= first && last_use[**o - first] == i && !same[**o - first]) {
                let slot = place[o - first];
                if !free.contains(&slot) {
                    free.push(slot);
                }
            }
            each.push(instruction(i, &place, dst));
            place[i] = dst;
            if i == final_value {
                break;
            }
        }
        (once, each, count)
    }
}
