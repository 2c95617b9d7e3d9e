//! Elementwise ops: a scalar expression compiled to a short list of instructions, run over chunks of elements.
//!
//! Each instruction is one vectorised loop over a chunk that stays in the first-level cache, so a long expression costs
//! one pass over memory. Inputs that already have the arithmetic's type and lie contiguously are read in place and the
//! last instruction writes straight to the output, so a single function has no copies at all.
//!
//! An element's bits do not depend on layout, chunking or threads: every path applies the same operations to it.

mod loops;

use super::copy::convert_run;
use super::lane::Lane;
use super::strided::{Walk, broadcast_strides, prefetch};
use crate::expr::{BinaryOp, Class, Entries, Expr, UnaryOp, common_dtype};
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, DType, KernelError, Result, Scalar, Strides, View};
use loops::{Basic, Block, Lanes};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;

/// Elements per chunk: a register of f32 is 2 KiB.
const CHUNK: usize = 512;
/// Programs at least this long fetch the elements of the next chunk into the cache while they compute: by itself the CPU
/// would wait for memory in the first and the last instruction and leave it alone in those between.
const LONG_PROGRAM: usize = 4;
/// Rows at least this long are walked one at a time; shorter ones are gathered so that a chunk spans several.
const LONG_ROW: usize = 128;

/// What one instruction computes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Copy,
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// `second(first(a, b), c)`: two instructions that take one way through the cache.
    Pair(Basic, Basic),
    Select,
}

/// `dst = op(a, b, c)` on slots; operands an op does not have repeat `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Instruction {
    op: Op,
    operands: [u16; 3],
    dst: u16,
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
    inputs: Vec<Builtin>,
    out: Builtin,
    /// Slots are the inputs, then the uniforms, then temporaries; the last instruction writes the slot after those.
    uniforms: Vec<Uniform>,
    temporaries: usize,
    instructions: Vec<Instruction>,
    scalars: Entries,
    used: Vec<bool>,
}

/// The dtypes of what an expression computes with.
pub(crate) fn computed<A: FromIterator<Builtin>>(dtypes: &[DType]) -> Result<A> {
    dtypes.iter().map(|d| d.computed()).collect()
}

/// An error unless a call gives what a program was compiled for: dtypes of the inputs, number of scalars, dtype of the output.
pub(crate) fn check(
    (dtypes, needed, result): (&[Builtin], usize, Builtin),
    inputs: &[View],
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
    for (v, want) in inputs.iter().zip(dtypes).chain([(out, &result)]) {
        let want = want.dtype();
        if v.dtype() != want {
            return Err(KernelError::new(format!("given {} where the kernel was compiled for {want}", v.dtype())));
        }
    }
    Ok(())
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
    /// is f64 for f64, f32 for f32 and the halves, else wrapping i64, where division by zero gives zero.
    ///
    /// # Errors
    /// Where the expression uses its own output or an input that is not there, or needs a float and `compute` is none;
    /// where a dtype is registered.
    pub fn compile_in(expr: &Expr, inputs: &[DType], out: DType, compute: DType) -> Result<Program> {
        let (inputs, out, compute): (Vec<_>, _, _) = (computed(inputs)?, out.computed()?, compute.computed()?);
        let class = Class::of(compute);
        let expr = expr.simplify();
        expr.check_class(class, inputs.len())?;
        let mut c = Compiler { inputs: inputs.len(), uniforms: Vec::new(), values: Vec::new() };
        c.collect_uniforms(&expr);
        let mut last = c.value(&expr);
        if last < c.first_value() {
            last = c.instruction(Op::Copy, [last; 3]);
        }
        let fused = c.fuse(last);
        let (instructions, temporaries) = c.allocate(last, &fused);
        if c.first_value() + temporaries >= u16::MAX as usize {
            return Err(KernelError::new("expression too large"));
        }
        let used = (0..inputs.len()).map(|i| expr.uses_input(i)).collect();
        Ok(Program {
            class,
            inputs,
            out,
            temporaries,
            instructions,
            scalars: Entries::of(&expr, compute),
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
    /// Where inputs or scalars are missing, a dtype is not the compiled one, or dims do not broadcast.
    pub fn run(&self, inputs: &[View], scalars: &[Scalar], out: &View) -> Result<()> {
        check((&self.inputs, self.scalars.len(), self.out), inputs, scalars, out)?;
        if out.is_empty() {
            return Ok(());
        }
        let mut strides: SmallVec<[Strides; 4]> = SmallVec::new();
        // The usual case needs no walk: everything contiguous, or a single repeated element.
        let n = out.len();
        let flat = |v: &View| (v.dims() == out.dims() && v.is_contiguous()) || (v.len() == 1 && v.rank() <= out.rank());
        if out.is_contiguous() && inputs.iter().all(flat) {
            strides.push(smallvec::smallvec![1]);
            strides.extend(inputs.iter().map(|v| smallvec::smallvec![(v.len() == n) as isize]));
            let walk = Walk { dims: smallvec::smallvec![n], strides };
            self.dispatch(&walk, inputs, scalars, out);
            return Ok(());
        }
        for v in inputs {
            strides.push(broadcast_strides(v, out.dims())?);
        }
        let mut operands: SmallVec<[&[isize]; 8]> = SmallVec::new();
        operands.push(out.strides());
        operands.extend(strides.iter().map(|s| s.as_slice()));
        let walk = Walk::new(out.dims(), &operands, true);
        self.dispatch(&walk, inputs, scalars, out);
        Ok(())
    }

    fn dispatch(&self, walk: &Walk, inputs: &[View], scalars: &[Scalar], out: &View) {
        let n = walk.rows() * walk.inner();
        let job = |range: Range<usize>| match self.class {
            Class::F32 => self.range::<f32>(walk, inputs, scalars, out, range),
            Class::F64 => self.range::<f64>(walk, inputs, scalars, out, range),
            Class::I64 => self.range::<i64>(walk, inputs, scalars, out, range),
        };
        parallel_for(n, GRAIN, &job);
    }

    /// Computes elements `range` of the walk.
    fn range<T: Lanes>(&self, walk: &Walk, inputs: &[View], scalars: &[Scalar], out: &View, range: Range<usize>) {
        let registers = self.inputs.len() + self.uniforms.len() + self.temporaries + 1;
        with_scratch(registers * CHUNK, range.len().min(CHUNK), |scratch: *mut T, step| {
            let register = |slot: usize| scratch.wrapping_add(slot * step);
            let mut slots: SmallVec<[*const T; 16]> = (0..registers).map(|s| register(s).cast_const()).collect();
            for (i, u) in self.uniforms.iter().enumerate() {
                let value = match u {
                    Uniform::Const(c) => T::from_f64(*c),
                    Uniform::Scalar(s) => T::from_scalar(self.scalars.enter(*s, scalars[*s])),
                };
                // SAFETY: the register has `step` elements.
                unsafe { T::fill(register(self.inputs.len() + i), value, step) };
            }
            let mut repeated: SmallVec<[bool; 8]> = SmallVec::new();
            for (i, v) in inputs.iter().enumerate() {
                let same = walk.strides[i + 1].iter().all(|s| *s == 0);
                repeated.push(same);
                if same && self.used[i] {
                    // SAFETY: the view has this element (it is not empty, since the output is not); the register has
                    // `step` elements.
                    unsafe { convert_run(v.ptr(), self.inputs[i], 0, register(i).cast(), T::DTYPE, 1, step) };
                }
            }
            let (inner, single) = (walk.inner(), walk.dims.len() == 1);
            let mut at = range.start;
            while at < range.end {
                // One division for all operands, and none in the usual case of one row.
                let (row, first) = if single { (0, at) } else { (at / inner, at % inner) };
                let mut n = step.min(range.end - at);
                if inner >= LONG_ROW {
                    n = n.min(inner - first);
                }
                let chunk = Chunk { walk, at, row, first, n };
                for (i, v) in inputs.iter().enumerate() {
                    if !self.used[i] || repeated[i] {
                        continue;
                    }
                    slots[i] = match chunk.direct(i + 1, v, T::DTYPE) {
                        Some(p) => p.cast(),
                        None => {
                            // SAFETY: the register has at least `n` elements.
                            unsafe { chunk.gather(i + 1, (v, self.inputs[i]), register(i).cast(), T::DTYPE) };
                            register(i)
                        }
                    };
                }
                let direct = chunk.direct(0, out, T::DTYPE);
                let target = direct.map_or(register(registers - 1), |p| p.cast());
                if self.instructions.len() >= LONG_PROGRAM {
                    for (i, p) in slots[..inputs.len()].iter().enumerate() {
                        if self.used[i] && !repeated[i] {
                            prefetch(p.wrapping_add(n), n, true);
                        }
                    }
                    prefetch(target.wrapping_add(n), n, true);
                }
                let (last, before) = self.instructions.split_last().expect("a program has an instruction");
                for i in before {
                    // SAFETY: slots hold `n` readable elements; temporaries are registers of this thread.
                    unsafe { execute(i, &slots, register(i.dst as usize), n) };
                }
                // SAFETY: as above; the target holds `n` elements, of the output or of a register.
                unsafe { execute(last, &slots, target, n) };
                if direct.is_none() {
                    // SAFETY: the register holds `n` computed elements.
                    unsafe { chunk.scatter((out, self.out), target.cast(), T::DTYPE) };
                }
                at += n;
            }
        });
    }
}

/// # Safety
/// The operand slots are readable for `n` elements, `dst` is writable for as many, and they overlap only where equal.
unsafe fn execute<T: Lanes>(i: &Instruction, slots: &[*const T], dst: *mut T, n: usize) {
    let [a, b, c] = i.operands.map(|s| slots[s as usize]);
    // SAFETY: by the contract of this function.
    unsafe {
        match i.op {
            Op::Copy => std::ptr::copy(a, dst, n),
            Op::Unary(op) => T::unary(op, Block { a, b: a, dst, n }),
            Op::Binary(op) => T::binary(op, Block { a, b, dst, n }),
            Op::Pair(first, second) => T::pair(first, second, c, Block { a, b, dst, n }),
            Op::Select => T::select(a, Block { a: b, b: c, dst, n }),
        }
    }
}

/// `n` elements of a walk from element `at`, which is number `first` of row `row`.
struct Chunk<'a> {
    walk: &'a Walk,
    at: usize,
    row: usize,
    first: usize,
    n: usize,
}

impl Chunk<'_> {
    /// The address of the chunk's elements where they lie side by side in the given dtype.
    fn direct(&self, operand: usize, v: &View, dtype: Builtin) -> Option<*mut u8> {
        let (row, first) = (self.row, self.first);
        if v.dtype() != dtype.dtype() || self.walk.inner_stride(operand) != 1 || first + self.n > self.walk.inner() {
            return None;
        }
        let offset = self.walk.row_offset(operand, row) + first as isize;
        Some(v.ptr().wrapping_offset(offset * dtype.size() as isize))
    }

    /// Calls `f(address, stride, position in the chunk, count)` for the part of the chunk in each row.
    fn rows(&self, operand: usize, v: &View, mut f: impl FnMut(*mut u8, isize, usize, usize)) {
        let inner = self.walk.inner();
        let stride = self.walk.inner_stride(operand);
        let mut done = 0;
        while done < self.n {
            let (row, first) = ((self.at + done) / inner, (self.at + done) % inner);
            let count = (inner - first).min(self.n - done);
            let offset = self.walk.row_offset(operand, row) + first as isize * stride;
            f(v.ptr().wrapping_offset(offset * v.dtype().size() as isize), stride, done, count);
            done += count;
        }
    }

    /// # Safety
    /// `to` has room for the chunk's elements as `dtype`.
    unsafe fn gather(&self, operand: usize, (v, from): (&View, Builtin), to: *mut u8, dtype: Builtin) {
        self.rows(operand, v, |p, stride, done, count| {
            let to = to.wrapping_add(done * dtype.size());
            // SAFETY: the walk visits elements of the view; room is given.
            unsafe { convert_run(p, from, stride, to, dtype, 1, count) }
        });
    }

    /// # Safety
    /// `from` holds the chunk's elements as `dtype`; the view is an output.
    unsafe fn scatter(&self, (v, to): (&View, Builtin), from: *const u8, dtype: Builtin) {
        self.rows(0, v, |p, stride, done, count| {
            let from = from.wrapping_add(done * dtype.size());
            // SAFETY: the walk visits elements of the view; the elements are given.
            unsafe { convert_run(from, dtype, 1, p, to, stride, count) }
        });
    }
}

/// A cache line. Registers start at one: a vector that crosses lines takes twice as long to load or store.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u64; 8]);

thread_local! {
    /// Registers, kept between calls.
    static SCRATCH: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with room for `len` elements and the given step. Grows the thread's buffer where needed, else allocates
/// nothing.
fn with_scratch<T: Lane>(len: usize, step: usize, f: impl FnOnce(*mut T, usize)) {
    // Taken out while in use: a kernel started on this thread meanwhile gets its own.
    let mut buffer = SCRATCH.take();
    let lines = (len * size_of::<T>()).div_ceil(64);
    if buffer.len() < lines {
        buffer.resize(lines, Line([0; 8]));
    }
    // Whole cache lines per register.
    f(buffer.as_mut_ptr().cast(), step.next_multiple_of(64).min(CHUNK));
    SCRATCH.set(buffer);
}

/// Turns an expression into instructions in single-assignment form; equal ones are shared.
struct Compiler {
    inputs: usize,
    uniforms: Vec<Uniform>,
    values: Vec<(Op, [usize; 3])>,
}

impl Compiler {
    fn first_value(&self) -> usize {
        self.inputs + self.uniforms.len()
    }

    fn collect_uniforms(&mut self, e: &Expr) {
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

    fn instruction(&mut self, op: Op, operands: [usize; 3]) -> usize {
        let known = self.values.iter().position(|v| *v == (op, operands));
        let index = known.unwrap_or_else(|| {
            self.values.push((op, operands));
            self.values.len() - 1
        });
        self.first_value() + index
    }

    /// The slot or value number that holds `e`.
    fn value(&mut self, e: &Expr) -> usize {
        match e {
            Expr::Input(i) => *i,
            Expr::Const(c) => self.uniform(Uniform::Const(*c)),
            Expr::Scalar(i) => self.uniform(Uniform::Scalar(*i)),
            Expr::Output => unreachable!("refused by check_class"),
            Expr::Unary(op, a) => {
                let a = self.value(a);
                self.instruction(Op::Unary(*op), [a; 3])
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                // One order, so that `a * b` is found again in `b * a`.
                let swap = matches!(op, BinaryOp::Add | BinaryOp::Mul) && b < a;
                let (a, b) = if swap { (b, a) } else { (a, b) };
                self.instruction(Op::Binary(*op), [a, b, a])
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.value(c), self.value(a), self.value(b));
                self.instruction(Op::Select, [c, a, b])
            }
        }
    }

    /// Makes pairs of additions, subtractions and products of which the first is only for the second; says which values
    /// are thereby no longer computed by themselves.
    fn fuse(&mut self, last: usize) -> Vec<bool> {
        let first = self.first_value();
        let mut uses = vec![0; self.values.len()];
        for (op, operands) in &self.values {
            let count = match op {
                Op::Copy | Op::Unary(_) => 1,
                Op::Binary(_) => 2,
                Op::Pair(..) | Op::Select => 3,
            };
            operands[..count].iter().filter(|o| **o >= first).for_each(|o| uses[o - first] += 1);
        }
        let mut fused = vec![false; self.values.len()];
        for j in 0..=last - first {
            let (Op::Binary(second), [a, b, _]) = self.values[j] else { continue };
            let Some(second) = Basic::of(second) else { continue };
            for (inner, other) in [(a, b), (b, a)] {
                if inner < first || uses[inner - first] != 1 || (inner == b && second == Basic::Sub) {
                    continue;
                }
                if let (Op::Binary(op), [x, y, _]) = self.values[inner - first]
                    && let Some(op) = Basic::of(op)
                {
                    self.values[j] = (Op::Pair(op, second), [x, y, other]);
                    fused[inner - first] = true;
                    break;
                }
            }
        }
        fused
    }

    /// Gives values to temporaries, reusing those whose value is no longer needed; also returns how many there are.
    fn allocate(&self, last: usize, fused: &[bool]) -> (Vec<Instruction>, usize) {
        let first = self.first_value();
        let final_value = last - first;
        let mut last_use = vec![0; self.values.len()];
        for (i, (_, operands)) in self.values.iter().enumerate().filter(|(i, _)| !fused[*i]) {
            operands.iter().filter(|o| **o >= first).for_each(|o| last_use[o - first] = i);
        }
        let mut place = vec![0u16; self.values.len()];
        let (mut free, mut count) = (Vec::new(), 0);
        let mut out = Vec::new();
        for (i, (op, operands)) in self.values.iter().enumerate().filter(|(i, _)| !fused[*i]) {
            let slot = |o: usize| if o >= first { place[o - first] } else { o as u16 };
            let operands_at = operands.map(slot);
            // The last instruction writes to the output. The others write to a temporary that is not an operand.
            let mut dst = 0;
            if i != final_value {
                dst = free.pop().unwrap_or_else(|| {
                    count += 1;
                    (first + count - 1) as u16
                });
            }
            for o in operands.iter().filter(|o| **o >= first && last_use[**o - first] == i) {
                let slot = place[o - first];
                if !free.contains(&slot) {
                    free.push(slot);
                }
            }
            place[i] = dst;
            out.push(Instruction { op: *op, operands: operands_at, dst });
            if i == final_value {
                break;
            }
        }
        (out, count)
    }
}

#[cfg(test)]
mod tests;
