//! Elementwise ops: a scalar expression compiled to a short list of instructions, run over chunks of elements.
//!
//! Each instruction is one vectorised loop over a chunk that stays in the first-level cache, so a long expression costs
//! one pass over memory. Inputs that already have the arithmetic's type and lie contiguously are read in place and the
//! last instruction writes straight to the output, so a single function has no copies at all.
//!
//! An element's bits do not depend on layout, chunking or threads: every path applies the same operations to it.

mod blocks;
mod compile;
mod complex;
mod computed;
mod decided;
mod joined;
mod loops;
mod maps;
mod operands;

use super::copy::{convert_run, copy};
use super::strided::{Walk, broadcast_strides, prefetch};
use crate::expr::{BinaryOp, Chain, Class, Entries, Expr, UnaryOp, common_dtype};
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, Complex, DType, KernelError, Result, Scalar, Strides, View};
use compile::Compiler;
pub(crate) use computed::Computed;
use decided::decided;
use joined::{Basic, Compare, Power};
use loops::Lanes;
use maps::Block;
use operands::{Chunk, Flat, OperandWalk, Operands};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::LocalKey;

/// Bytes of a thread's registers, with which a chunk's operands stay in the first-level cache.
const REGISTER_BYTES: usize = 16 << 10;
/// Bytes between registers, so that they do not lie a power of two apart: a load waits for a store to the same place of another page.
const REGISTER_GAP: usize = 128;
/// Least and most elements per chunk: with few of them, a loop costs less than its call.
const CHUNKS: [usize; 2] = [512, 4096];
/// Programs of so many inputs take nothing from the heap: graphs make none of more.
pub(super) const MOST: usize = 12;
/// Programs at least this long fetch the elements of the next chunk into the cache while they compute: by itself the CPU
/// would wait for memory in the first and the last instruction and leave it alone in those between.
const LONG_PROGRAM: usize = 4;
/// Rows at least this long are walked one at a time; shorter ones are gathered so that a chunk spans several.
const LONG_ROW: usize = 128;

/// Operation of one instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Copy,
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// `second(first(a, b), c)`: two instructions that take one way through the cache.
    Pair(Basic, Basic),
    /// The smaller of `c` and the larger of `a` and `b`.
    Clamp,
    Select,
    /// `c` where `a` and `b` compare so, else `d`.
    SelectBy(Compare),
    /// A power with an exponent that needs no logarithm.
    Power(Power),
    /// The number of this dtype that the operand is stored as.
    Rounded(Builtin),
}

impl Op {
    /// Number of operands.
    fn arity(self) -> usize {
        match self {
            Op::Copy | Op::Unary(_) | Op::Power(_) | Op::Rounded(_) => 1,
            Op::Binary(_) => 2,
            Op::Pair(..) | Op::Clamp | Op::Select => 3,
            Op::SelectBy(_) => 4,
        }
    }
}

/// `dst = op(a, b, c, d)` on slots; operands an op does not have repeat `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Instruction {
    op: Op,
    operands: [u16; 4],
    dst: u16,
    /// Whether an operand that is the same for all elements decides how it is computed: the exponent of a power, the condition of a
    /// selection.
    decided: bool,
    /// Whether a 0 of the second operand is an error: integers have no quotient by 0.
    divides: bool,
}

/// A value that is the same for all elements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Uniform {
    Const(f64),
    Scalar(usize),
}

/// An expression compiled for given dtypes. Plain data.
#[derive(Clone, Debug)]
pub struct Program {
    class: Class,
    /// Whether it is one instruction over inputs, of which all and the output have the dtype that the arithmetic computes in.
    plain: bool,
    inputs: Vec<Builtin>,
    out: Builtin,
    /// Slots are the inputs, then the uniforms, then temporaries; the last instruction writes the slot after those.
    uniforms: Vec<Uniform>,
    temporaries: usize,
    /// Instructions whose results are the same for all elements.
    once: Vec<Instruction>,
    /// Instructions that are run for each chunk.
    instructions: Vec<Instruction>,
    scalars: Entries,
    used: Vec<bool>,
    /// Whether an instruction divides integers, so that a run may fail.
    divides: bool,
}

/// Message of a kernel where integers are divided by 0.
pub(crate) const DIVIDED_BY_ZERO: &str = "expected a divisor without zeros, got a 0: integers have no quotient by 0 (floats give inf or NaN; `cast` to one for these)";

/// The dtypes of what an expression reads.
pub(crate) fn given<A: FromIterator<Builtin>>(dtypes: &[DType]) -> Result<A> {
    dtypes.iter().map(|d| d.cast()).collect()
}

/// An error unless a call gives what a program was compiled for: dtypes of the inputs, number of scalars, dtype of the output.
pub(crate) fn check(
    (dtypes, needed, result): (&[Builtin], usize, Builtin),
    inputs: &[impl Borrow<View>],
    scalars: &[Scalar],
    out: &View,
) -> Result<()> {
    if inputs.len() != dtypes.len() || scalars.len() < needed {
        return Err(KernelError::new(format!(
            "{} inputs and {} scalars given, {} and {} needed",
            inputs.len(),
            scalars.len(),
            dtypes.len(),
            needed
        )));
    }
    let fits = |v: &View, want: Builtin| match v.dtype() == want.dtype() {
        true => Ok(()),
        false => {
            let (given, want) = (v.dtype(), want.dtype());
            Err(KernelError::new(format!("given {given} where the kernel was compiled for {want}")))
        }
    };
    for (v, want) in inputs.iter().zip(dtypes) {
        fits(v.borrow(), *want)?;
    }
    fits(out, result)
}

impl Program {
    /// Compiles `expr` for inputs and an output of these dtypes, computed in the dtype to which they promote.
    ///
    /// # Errors
    /// As [`Self::compile_in`].
    pub fn compile(expr: &Expr, inputs: &[DType], out: DType) -> Result<Program> {
        Self::compile_in(expr, inputs, out, common_dtype(inputs, out)?)
    }

    /// Compiles `expr` for inputs and an output of these dtypes. Inputs and scalars are converted to `compute`: arithmetic
    /// is f64 for f64, f32 for f32 and the halves, else wrapping i64. There a division by 0 makes a run fail; in an arm of a
    /// selection it gives 0.
    ///
    /// # Errors
    /// Where the expression uses its own output or an input that is not there, or needs a float and `compute` is none;
    /// where a dtype is registered.
    pub fn compile_in(expr: &Expr, inputs: &[DType], out: DType, compute: DType) -> Result<Program> {
        Self::compile_chain(&Chain::of(expr.simplify(), inputs.len()), inputs, out, compute)
    }

    /// As [`Self::compile_in`], of a chain. Its functions are not simplified further.
    ///
    /// # Errors
    /// As [`Self::compile_in`].
    pub fn compile_chain(chain: &Chain, inputs: &[DType], out: DType, compute: DType) -> Result<Program> {
        let (inputs, out, compute): (Vec<_>, _, _) = (given(inputs)?, out.cast()?, compute.cast()?);
        let class = Class::of(compute);
        if inputs.len() < chain.inputs() {
            let (given, wanted) = (inputs.len(), chain.inputs());
            return Err(KernelError::new(format!("'{chain}' reads {wanted} inputs, and has {given}")));
        }
        chain.check_class(class)?;
        let mut c = Compiler::new(class, inputs.len());
        chain.links().iter().for_each(|l| c.collect_uniforms(&l.expr));
        let mut last = c.chain(chain);
        if last < c.first_value() {
            last = c.instruction(Op::Copy, [last; 4]);
        }
        let fused = c.fuse(last);
        let (once, instructions, temporaries) = c.allocate(last, &fused);
        if c.first_value() + temporaries >= u16::MAX as usize {
            return Err(KernelError::new("expression too large"));
        }
        let used = (0..inputs.len()).map(|i| chain.uses_input(i)).collect();
        let native = class.dtype();
        let is_native = |slot: &u16| inputs.get(*slot as usize) == Some(&native);
        let plain = |i: &Instruction| !matches!(i.op, Op::Rounded(_)) && i.operands.iter().all(is_native);
        let plain = out == native && matches!(&instructions[..], [only] if plain(only));
        Ok(Program {
            class,
            plain,
            divides: once.iter().chain(&instructions).any(|i| i.divides),
            inputs,
            out,
            temporaries,
            once,
            instructions,
            scalars: Entries::of(chain, compute),
            used,
            uniforms: c.uniforms,
        })
    }

    /// The arithmetic it computes in.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Computes every element of `out`. Inputs are broadcast to its dims; any strides; an input may be the very same
    /// window as the output.
    ///
    /// # Errors
    /// Where inputs or scalars are missing, a dtype is not the compiled one, or dims do not broadcast; where integers are
    /// divided by 0: then the output is partly written.
    pub fn run<V: Borrow<View> + Sync>(&self, inputs: &[V], scalars: &[Scalar], out: &View) -> Result<()> {
        check((&self.inputs, self.scalars.len(), self.out), inputs, scalars, out)?;
        let n = out.len();
        if n == 0 {
            return Ok(());
        }
        let zero = AtomicBool::new(false);
        self.run_all(inputs, scalars, out, &zero)?;
        match self.divides && zero.into_inner() {
            true => Err(KernelError::new(DIVIDED_BY_ZERO)),
            false => Ok(()),
        }
    }

    /// As [`Self::run`] of an output with elements; sets `zero` where integers are divided by 0.
    fn run_all<V: Borrow<View> + Sync>(
        &self,
        inputs: &[V],
        scalars: &[Scalar],
        out: &View,
        zero: &AtomicBool,
    ) -> Result<()> {
        let n = out.len();
        // The usual case needs no walk, and mostly no register.
        if let Some(flat) = Flat::of(inputs, out, n) {
            match &self.instructions[..] {
                [only] if self.plain && flat.repeated == 0 => self.straight(only, inputs, out, zero),
                [only] if flat.repeated == 0 && self.once.is_empty() && self.as_stored(only, inputs, out) => {}
                _ => self.dispatch(&Operands::new(flat, inputs, out, zero), scalars, n),
            }
            return Ok(());
        }
        let mut strides: SmallVec<[Strides; MOST]> = SmallVec::new();
        for v in inputs {
            strides.push(broadcast_strides(v.borrow(), out.dims())?);
        }
        if let Some(i) = self.copied() {
            // SAFETY: broadcasting repeats elements of the view.
            let source = unsafe { inputs[i].borrow().restride(0, out.dims().into(), strides[i].clone()) };
            return copy(&source, out);
        }
        let mut operands: SmallVec<[&[isize]; MOST + 1]> = SmallVec::new();
        operands.push(out.strides());
        operands.extend(strides.iter().map(|s| s.as_slice()));
        let operands = Operands::new(Walk::new(out.dims(), &operands, true), inputs, out, zero);
        match self.crossing(&operands.way) {
            Some(d) => self.dispatch_blocks(&operands, d, scalars),
            None => self.dispatch(&operands, scalars, n),
        }
        Ok(())
    }

    /// Computes everything by the one instruction of a plain program, all of whose operands lie side by side.
    fn straight<V: Borrow<View> + Sync>(&self, only: &Instruction, inputs: &[V], out: &View, zero: &AtomicBool) {
        let job = |range: Range<usize>| match self.class {
            Class::F32 => line::<f32, V>(only, inputs, out, range, zero),
            Class::F64 => line::<f64, V>(only, inputs, out, range, zero),
            Class::I64 => line::<i64, V>(only, inputs, out, range, zero),
            Class::C64 => line::<Complex<f32>, V>(only, inputs, out, range, zero),
            Class::C128 => line::<Complex<f64>, V>(only, inputs, out, range, zero),
        };
        parallel_for(out.len(), GRAIN, &job);
    }

    /// Computes everything without the arithmetic's type between, where that gives the same: conversions from it or to it, and sums,
    /// differences and products of small integers of one dtype, which wrap in any type.
    fn as_stored<V: Borrow<View> + Sync>(&self, only: &Instruction, inputs: &[V], out: &View) -> bool {
        let [a, b] = [0, 1].map(|o| inputs.get(only.operands[o] as usize).map(|v| v.borrow()));
        let (Some(a), Some(b)) = (a, b) else { return false };
        let dtype = |o: usize| self.inputs[only.operands[o] as usize];
        let (size, bytes) = (dtype(0).size(), self.out.size());
        let job = |f: &(dyn Fn([*const u8; 2], *mut u8, usize) + Sync)| {
            parallel_for(out.len(), GRAIN, &|range| {
                let from = [a, b].map(|v| v.ptr().wrapping_add(range.start * size).cast_const());
                f(from, out.ptr().wrapping_add(range.start * bytes), range.len());
            });
            true
        };
        match only.op {
            Op::Copy if [dtype(0), self.out].contains(&self.class.dtype()) => job(&|[from, _], to, n| {
                // SAFETY: the views have these elements side by side.
                unsafe { convert_run(from, dtype(0), 1, to, self.out, 1, n) };
            }),
            Op::Binary(op) if joined::is_small_integer(self.out) && dtype(0) == self.out && dtype(1) == self.out => {
                let Some(op) = Basic::of(op) else { return false };
                job(&|[a, b], dst, n| {
                    // SAFETY: the views have these elements side by side; an input that overlaps the output is the very same window.
                    unsafe { joined::wrapping(op, bytes, Block { a, b, dst, n }) };
                })
            }
            _ => false,
        }
    }

    /// The input of which the output is a plain copy.
    fn copied(&self) -> Option<usize> {
        match self.instructions[..] {
            [Instruction { op: Op::Copy, operands: [i, ..], .. }] => {
                let dtype = *self.inputs.get(i as usize)?;
                (dtype == self.out && Class::of(dtype) == self.class).then_some(i as usize)
            }
            _ => None,
        }
    }

    fn dispatch(&self, operands: &Operands<'_, impl OperandWalk>, scalars: &[Scalar], n: usize) {
        parallel_for(n, GRAIN, &|range| self.compute(operands, operands.ptrs[0], scalars, range));
    }

    /// Computes elements `range` into the output that begins at `out`.
    fn compute(
        &self,
        operands: &Operands<'_, impl OperandWalk>,
        out: *mut u8,
        scalars: &[Scalar],
        range: Range<usize>,
    ) {
        match self.class {
            Class::F32 => self.range::<f32>(operands, out, scalars, range),
            Class::F64 => self.range::<f64>(operands, out, scalars, range),
            Class::I64 => self.range::<i64>(operands, out, scalars, range),
            Class::C64 => self.range::<Complex<f32>>(operands, out, scalars, range),
            Class::C128 => self.range::<Complex<f64>>(operands, out, scalars, range),
        }
    }

    fn range<T: Lanes>(
        &self,
        operands: &Operands<'_, impl OperandWalk>,
        out: *mut u8,
        scalars: &[Scalar],
        range: Range<usize>,
    ) {
        let (way, out) = (&operands.way, (out, self.out));
        let inputs = || self.inputs.iter().enumerate().map(|(i, dtype)| (i, (operands.ptrs[i + 1], *dtype)));
        let registers = self.inputs.len() + self.uniforms.len() + self.temporaries + 1;
        // Whole cache lines per register.
        let most = (REGISTER_BYTES / (registers * size_of::<T>())).clamp(CHUNKS[0], CHUNKS[1]) / 64 * 64;
        let step = range.len().next_multiple_of(64).min(most);
        let pitch = step + REGISTER_GAP / size_of::<T>();
        with_scratch(&REGISTERS, registers * pitch, |scratch: *mut T| {
            let register = |slot: usize| scratch.wrapping_add(slot * pitch);
            let mut slots: SmallVec<[*const T; 3 * MOST]> = SmallVec::new();
            for s in 0..registers {
                slots.push(register(s).cast_const());
            }
            for (i, u) in self.uniforms.iter().enumerate() {
                let value = match u {
                    Uniform::Const(c) => T::from_f64(*c),
                    Uniform::Scalar(s) => T::from_scalar(self.scalars.enter(*s, scalars[*s])),
                };
                // SAFETY: the register has `step` elements.
                unsafe { T::fill(register(self.inputs.len() + i), value, step) };
            }
            for i in &self.once {
                // SAFETY: all operands are registers that were filled before, with `step` elements.
                unsafe {
                    execute(i, i.operands.map(|s| slots[s as usize]), register(i.dst as usize), step, operands.zero)
                };
            }
            let decided = self.instructions.iter().any(|i| i.decided).then(|| {
                // SAFETY: the registers of what is the same for all elements were filled before.
                unsafe { decided(&self.instructions, &slots) }
            });
            let instructions = decided.as_deref().unwrap_or(&self.instructions);
            let mut repeated: SmallVec<[bool; MOST]> = SmallVec::new();
            for (i, (from, dtype)) in inputs() {
                let same = way.repeats(i + 1);
                repeated.push(same);
                if same && self.used[i] {
                    // SAFETY: the view has this element (it is not empty, since the output is not); the register has
                    // `step` elements.
                    unsafe { convert_run(from, dtype, 0, register(i).cast(), T::DTYPE, 1, step) };
                }
            }
            let (inner, single) = (way.inner(), way.single());
            let mut flat: SmallVec<[bool; MOST + 1]> = SmallVec::new();
            for operand in 0..=self.inputs.len() {
                flat.push(way.flat(operand));
            }
            let mut at = range.start;
            while at < range.end {
                // One division for all operands, and none in the usual case of one row.
                let (row, first) = if single { (0, at) } else { (at / inner, at % inner) };
                let mut n = step.min(range.end - at);
                if inner >= LONG_ROW {
                    n = n.min(inner - first);
                }
                let chunk = Chunk { way, flat: &flat, at, row, first, n };
                for (i, from) in inputs() {
                    if !self.used[i] || repeated[i] {
                        continue;
                    }
                    slots[i] = match chunk.direct(i + 1, from, T::DTYPE) {
                        Some(p) => p.cast(),
                        None => {
                            // SAFETY: the register has at least `n` elements.
                            unsafe { chunk.gather(i + 1, from, register(i).cast(), T::DTYPE) };
                            register(i)
                        }
                    };
                }
                let direct = chunk.direct(0, out, T::DTYPE);
                let target = direct.map_or(register(registers - 1), |p| p.cast());
                if instructions.len() >= LONG_PROGRAM {
                    for (i, p) in slots[..self.inputs.len()].iter().enumerate() {
                        if self.used[i] && !repeated[i] {
                            prefetch(p.wrapping_add(n), n, true);
                        }
                    }
                    prefetch(target.wrapping_add(n), n, true);
                }
                let from = |i: &Instruction| i.operands.map(|s| slots[s as usize]);
                let (last, before) = instructions.split_last().expect("a program has an instruction");
                for i in before {
                    // SAFETY: slots hold `n` readable elements; temporaries are registers of this thread.
                    unsafe { execute(i, from(i), register(i.dst as usize), n, operands.zero) };
                }
                // SAFETY: as above; the target holds `n` elements, of the output or of a register.
                unsafe { execute(last, from(last), target, n, operands.zero) };
                if direct.is_none() {
                    // SAFETY: the register holds `n` computed elements.
                    unsafe { chunk.scatter(out, target.cast(), T::DTYPE) };
                }
                at += n;
            }
        });
    }
}

fn line<T: Lanes, V: Borrow<View>>(
    only: &Instruction,
    inputs: &[V],
    out: &View,
    range: Range<usize>,
    zero: &AtomicBool,
) {
    let at = |s: u16| inputs[s as usize].borrow().ptr().cast::<T>().wrapping_add(range.start).cast_const();
    let operands = only.operands.map(at);
    let target = out.ptr().cast::<T>().wrapping_add(range.start);
    // SAFETY: the views have these elements side by side in this type; an input that overlaps the output is the very same
    // window.
    unsafe { execute(only, operands, target, range.len(), zero) };
}

/// # Safety
/// The operands are readable for `n` elements, `dst` is writable for as many, and they overlap only where equal.
unsafe fn execute<T: Lanes>(i: &Instruction, [a, b, c, d]: [*const T; 4], dst: *mut T, n: usize, zero: &AtomicBool) {
    // SAFETY: by the contract of this function. The divisors are read before the destination, which may be the same, is
    // written.
    unsafe {
        if i.divides && T::any_zero(b, n) {
            zero.store(true, Ordering::Relaxed);
        }
        match i.op {
            Op::Copy => std::ptr::copy(a, dst, n),
            Op::Unary(op) => T::unary(op, Block { a, b: a, dst, n }),
            Op::Binary(op) => T::binary(op, Block { a, b, dst, n }),
            Op::Pair(first, second) => T::pair(first, second, c, Block { a, b, dst, n }),
            Op::Clamp => T::clamp(c, Block { a, b, dst, n }),
            Op::Select => T::select(a, Block { a: b, b: c, dst, n }),
            Op::SelectBy(by) => T::select_by(by, [c, d], Block { a, b, dst, n }),
            Op::Power(power) => T::raised(power, Block { a, b, dst, n }),
            Op::Rounded(to) => T::rounded(to, Block { a, b: a, dst, n }),
        }
    }
}

/// A cache line. Registers start at one: a vector that crosses lines takes twice as long to load or store.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line(#[allow(dead_code)] [u64; 8]);

pub(super) type Scratch = LocalKey<Cell<Vec<Line>>>;

thread_local! {
    /// Registers, kept between calls.
    static REGISTERS: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with room for `len` elements. Grows the thread's buffer where needed, else allocates nothing.
pub(super) fn with_scratch<T>(scratch: &'static Scratch, len: usize, f: impl FnOnce(*mut T)) {
    // Taken out while in use: a kernel started on this thread meanwhile gets its own.
    let mut buffer = scratch.take();
    let lines = (len * size_of::<T>()).div_ceil(64);
    if buffer.len() < lines {
        buffer.resize(lines, Line([0; 8]));
    }
    f(buffer.as_mut_ptr().cast());
    scratch.set(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str, inputs: &[DType]) -> Program {
        Program::compile(&Expr::parse(text, &["a", "b", "c"], &[]).unwrap(), inputs, DType::F32).unwrap()
    }

    #[test]
    fn two_of_sum_difference_and_product_are_one_instruction() {
        for first in ["+", "-", "*"] {
            for second in ["+", "-", "*"] {
                for (text, left) in
                    [(format!("(a {first} b) {second} c"), true), (format!("c {second} (a {first} b)"), false)]
                {
                    let fused = program(&text, &[DType::F32; 3]).instructions.len() == 1;
                    assert_eq!(fused, left || second != "-", "{text}");
                }
            }
        }
    }

    #[test]
    fn equal_parts_are_computed_once_and_registers_reused() {
        // One exponential, and a product and a sum in one instruction.
        let p = program("exp(a) * exp(a) + exp(a)", &[DType::F32]);
        assert_eq!((p.instructions.len(), p.temporaries), (2, 1));
        let chain = program("exp(tanh(sigmoid(relu(neg(a)))))", &[DType::F32]);
        assert_eq!((chain.instructions.len(), chain.temporaries), (5, 2));
    }
}
