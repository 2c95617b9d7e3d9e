//! Elementwise ops: a scalar expression as a CUDA program, one for given dtypes.

use super::pointwise::{Operand, Pointwise};
use super::{Queue, Source};
use crate::cpu::elementwise::{check, given};
use crate::cpu::strided::{Walk, broadcast_strides};
use crate::expr::{Chain, Class, Entries, Expr, common_dtype};
use crate::{Builtin, DType, Result, Scalar, Strides, View};
use smallvec::{SmallVec, smallvec};

/// An expression written for given dtypes. It is compiled for a GPU, and for the kind of strides it meets, when it first
/// runs there; afterwards a run looks up nothing.
#[derive(Debug)]
pub struct Program {
    class: Class,
    inputs: SmallVec<[Builtin; 4]>,
    /// The inputs that the expression uses.
    used: SmallVec<[usize; 4]>,
    out: Builtin,
    scalars: Entries,
    /// Moves elements as they are.
    copies: bool,
    kernel: Pointwise,
}

impl Program {
    /// Writes `expr` for inputs and an output of these dtypes, computed in the dtype to which they promote.
    ///
    /// # Errors
    /// As [`Self::compile_in`].
    pub fn compile(expr: &Expr, inputs: &[DType], out: DType) -> Result<Program> {
        Self::compile_in(expr, inputs, out, common_dtype(inputs, out)?)
    }

    /// Writes `expr` for inputs and an output of these dtypes. Arithmetic is that of the CPU's program of `compute`: f64 for
    /// f64, f32 for f32 and the halves, else wrapping i64. There a division by 0 is reported to the queue's fault slot; in an
    /// arm of a selection it gives 0.
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
        let text = chain.cuda_source(inputs, out, compute)?;
        let (inputs, out, compute): (SmallVec<_>, _, _) = (given(inputs)?, out.cast()?, compute.cast()?);
        let used: SmallVec<[usize; 4]> = (0..inputs.len()).filter(|i| chain.uses_input(*i)).collect();
        Ok(Program {
            class: Class::of(compute),
            out,
            scalars: Entries::of(chain, compute),
            copies: chain.is_copy() && inputs.as_slice() == [out],
            inputs,
            kernel: Pointwise::new(Source::generated("elementwise", text), None, used.len())
                .reporting(chain.divides_integers(Class::of(compute))),
            used,
        })
    }

    /// Computes every element of `out`. Inputs are broadcast to its dims; any strides; an input may be the very same
    /// window as the output.
    ///
    /// # Errors
    /// Where inputs or scalars are missing, a dtype is not the given one, or dims do not broadcast; what CUDA reports.
    pub fn run(&self, q: &Queue, inputs: &[View], scalars: &[Scalar], out: &View) -> Result<()> {
        check((&self.inputs, self.scalars.len(), self.out), inputs, scalars, out)?;
        if out.is_empty() {
            return Ok(());
        }
        if self.copies && inputs[0].dims() == out.dims() {
            return super::copy::copy(q, &inputs[0], out);
        }
        let walk = self.walk(inputs, out)?;
        let operand = |v: &View| Operand { at: v.ptr(), size: v.dtype().size() };
        let mut operands: SmallVec<[Operand; 8]> = smallvec![operand(out)];
        operands.extend(self.used.iter().map(|i| operand(&inputs[*i])));
        let mut bits: SmallVec<[u64; 4]> = SmallVec::new();
        let single = |x: f64| u64::from((x as f32).to_bits());
        for (i, s) in scalars[..self.scalars.len()].iter().enumerate() {
            let s = self.scalars.enter(i, *s);
            match (self.class, s.to_complex()) {
                (Class::F32, _) => bits.push(single(s.to_f64())),
                (Class::F64, _) => bits.push(s.to_f64().to_bits()),
                (Class::I64, _) => bits.push(s.to_i64() as u64),
                (Class::C64, (re, im)) => bits.extend([single(re), single(im)]),
                (Class::C128, (re, im)) => bits.extend([re.to_bits(), im.to_bits()]),
            }
        }
        self.kernel.launch(q, &walk, &operands, &bits)
    }

    /// The program that contiguous tensors of one shape ask for.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn for_contiguous(&self) -> Result<super::programs::Program> {
        let mut operands: SmallVec<[Operand; 8]> =
            smallvec![Operand { at: std::ptr::null_mut(), size: self.out.size() }];
        operands.extend(self.used.iter().map(|i| Operand { at: std::ptr::null_mut(), size: self.inputs[*i].size() }));
        let strides = operands.iter().map(|_| smallvec![1]).collect();
        self.kernel.program(&Walk { dims: smallvec![1 << 20], strides }, &operands)
    }

    /// The walk over the output and the inputs that are used.
    fn walk(&self, inputs: &[View], out: &View) -> Result<Walk> {
        let n = out.len();
        let flat = |v: &View| (v.dims() == out.dims() && v.is_contiguous()) || (v.len() == 1 && v.rank() <= out.rank());
        if out.is_contiguous() && inputs.iter().all(flat) {
            let mut strides: SmallVec<[Strides; 4]> = smallvec![smallvec![1]];
            strides.extend(self.used.iter().map(|i| smallvec![(inputs[*i].len() == n) as isize]));
            return Ok(Walk { dims: smallvec![n], strides });
        }
        let mut strides: SmallVec<[Strides; 4]> = SmallVec::new();
        for v in inputs {
            strides.push(broadcast_strides(v, out.dims())?);
        }
        let mut operands: SmallVec<[&[isize]; 8]> = smallvec![out.strides()];
        operands.extend(self.used.iter().map(|i| strides[*i].as_slice()));
        Ok(Walk::new(out.dims(), &operands, true))
    }
}
