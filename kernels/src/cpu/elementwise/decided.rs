//! Instructions of a run, of which numbers that are the same for all elements decide some.

use super::loops::Lanes;
use super::maps::Block;
use super::{Instruction, Op};
use smallvec::SmallVec;

/// The instructions of a run: powers by the way that their exponent allows; of selections whose condition is the same for all elements the
/// one arm, and nothing that only the other needs.
///
/// # Safety
/// Slots of values that are the same for all elements hold one at least.
pub(super) unsafe fn decided<T: Lanes>(instructions: &[Instruction], slots: &[*const T]) -> SmallVec<[Instruction; 8]> {
    let mut chosen = false;
    let mut made: SmallVec<[Instruction; 8]> = SmallVec::new();
    for i in instructions {
        let [a, b, c, d] = i.operands;
        // SAFETY: by the contract of this function; only a condition and an exponent are read.
        let (first, second) = (slots[a as usize], slots[b as usize]);
        let arm = match i.op {
            _ if !i.decided => None,
            // SAFETY: as above.
            Op::Select => Some(if unsafe { first.read() } != T::default() { b } else { c }),
            Op::SelectBy(by) => {
                let (yes, no, mut holds) = (T::from_f64(1.0), T::from_f64(0.0), T::default());
                // SAFETY: as above; the arms and the result are one element each.
                unsafe { T::select_by(by, [&yes, &no], Block { a: first, b: second, dst: &mut holds, n: 1 }) };
                Some(if holds == yes { c } else { d })
            }
            _ => None,
        };
        made.push(match (arm, i.op) {
            (Some(arm), _) => Instruction { op: Op::Copy, operands: [arm; 4], ..*i },
            // SAFETY: as above.
            (None, op) if i.decided => {
                Instruction { op: T::power(unsafe { second.read() }).map_or(op, Op::Power), ..*i }
            }
            _ => *i,
        });
        chosen |= arm.is_some();
    }
    if chosen {
        without_copies(&mut made);
        without_unused(&mut made);
    }
    made
}

/// Lets instructions read what a copy reads, where it is there still.
fn without_copies(instructions: &mut SmallVec<[Instruction; 8]>) {
    let mut at = 0;
    while at + 1 < instructions.len() {
        let Instruction { op: Op::Copy, operands: [from, ..], dst, .. } = instructions[at] else {
            at += 1;
            continue;
        };
        // What comes after the instruction that writes the copy's place anew reads another value.
        let last = instructions.len() - 1;
        let writes = |slot: u16| (at + 1..last).find(|i| instructions[*i].dst == slot).unwrap_or(last);
        let (end, gone) = (writes(dst), writes(from));
        let reads = |i: &Instruction| i.operands[..i.op.arity()].contains(&dst);
        if instructions[(gone + 1).min(end + 1)..=end].iter().any(reads) {
            at += 1;
            continue;
        }
        for i in &mut instructions[at + 1..=end] {
            i.operands.iter_mut().filter(|o| **o == dst).for_each(|o| *o = from);
        }
        instructions.remove(at);
    }
}

/// Leaves out what nothing reads. The last instruction writes the output, which the one before it can do where the last only copies.
fn without_unused(instructions: &mut SmallVec<[Instruction; 8]>) {
    let Some(last) = instructions.last() else { return };
    let mut read: SmallVec<[u16; 16]> = last.operands[..last.op.arity()].iter().copied().collect();
    for at in (0..instructions.len() - 1).rev() {
        let i = instructions[at];
        if !read.contains(&i.dst) && !i.divides {
            instructions.remove(at);
            continue;
        }
        read.retain(|slot| *slot != i.dst);
        read.extend_from_slice(&i.operands[..i.op.arity()]);
    }
    if let [.., before, Instruction { op: Op::Copy, operands: [from, ..], .. }] = instructions[..]
        && before.dst == from
    {
        instructions.pop();
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::elementwise::Program;
    use crate::expr::Expr;
    use crate::{DType, Scalar, View};

    /// Every program gives what the same one gives whose condition is a tensor.
    #[test]
    fn a_condition_of_all_elements_chooses_as_one_of_each() {
        let texts = [
            "select(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))",
            "select(w == 0, 0, w * pow(a, w - 1)) * b",
            "select(w > 0, a, b)",
            "select(w > 0, w, a)",
            "select(w, a * b, a - b) + select(w < 1, a, b) * select(w, b, a)",
            "select(a < b, select(w > 0, a, a * a), exp(select(w > 1, a, b)))",
            "a * b + select(w > 0, a * b, a * a) - select(w > 0, a - b, b) * (a * b)",
        ];
        let n = 1000;
        let numbers: Vec<f32> = (0..2 * n).map(|i| ((i * 37 + 11) % 101) as f32 / 40.0 - 1.0).collect();
        for text in texts {
            for w in [-1.0, 0.0, 0.3, 0.7, 2.0, 3.0] {
                let run = |scalars: &[&str]| {
                    let inputs: &[&str] = if scalars.is_empty() { &["a", "b", "w"] } else { &["a", "b"] };
                    let e = Expr::parse(text, inputs, scalars).unwrap();
                    let program = Program::compile(&e, &vec![DType::F32; inputs.len()], DType::F32).unwrap();
                    let (each, mut out) = (vec![w as f32; n], vec![0f32; n]);
                    // SAFETY: the vectors live longer than the views, and only the last is written.
                    unsafe {
                        let views = [&numbers[..n], &numbers[n..], &each[..]].map(|x| View::from_slice(x, &[n]));
                        let to = View::from_mut(&mut out, &[n]);
                        program.run(&views[..inputs.len()], &[Scalar::Float(w)][..scalars.len()], &to).unwrap();
                    }
                    out
                };
                for (i, (one, each)) in run(&["w"]).iter().zip(run(&[])).enumerate() {
                    let near = (one - each).abs() <= 1e-5 * each.abs() || one.is_nan() && each.is_nan();
                    assert!(near || *one == each, "{text}, w = {w}, element {i}: {one}, not {each}");
                }
            }
        }
    }
}
