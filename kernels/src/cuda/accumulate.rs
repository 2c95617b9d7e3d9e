//! Combining contributions of ranks, and what a rank contributes that has nothing.

use super::{Args, Define, Launch, Queue, Source, fill};
use crate::cpu::reduce::Reduce;
use crate::{DType, KernelError, ReduceOp, Result, View};

pub(super) static ACCUMULATE: Source = Source::file("accumulate", include_str!("../../cuda/accumulate.cu")).forms(&[
    "T={f32,i64} OP={0,1,2} MOST=16 VECTOR=1",
    "T=f32 OP=0 MOST={16,480} VECTOR=4",
    "T=bf16 OP=0 MOST=16 VECTOR=8",
]);

/// Sources of the usual program, and the most that the arguments of a kernel have room for.
const FEW: usize = 16;
const MANY: usize = 480;

/// `out = from[0] op from[1] op …`, `n` elements each, in this order; halves are combined in f32 and rounded once. `out`
/// may be one of the sources, but does not overlap them otherwise.
///
/// # Errors
/// Without sources, or with more than 480; what CUDA reports.
pub fn reduce_slices(q: &Queue, out: *mut u8, from: &[*const u8], n: usize, dtype: DType, op: ReduceOp) -> Result<()> {
    if from.is_empty() || from.len() > MANY {
        return Err(KernelError::new(format!("a reduction of {} contributions on a GPU", from.len())));
    }
    if n == 0 {
        return Ok(());
    }
    // Sums of complex numbers are those of their parts.
    let (dtype, n) = if dtype.is_complex() { (dtype.part(), 2 * n) } else { (dtype, n) };
    let aligned = from.iter().map(|p| p.addr()).chain([out.addr()]).all(|a| a.is_multiple_of(16));
    let vector = if aligned { 16 / dtype.size() } else { 1 };
    let few = from.len() <= FEW;
    let code = match op {
        ReduceOp::Sum => 0,
        ReduceOp::Max => 1,
        ReduceOp::Min => 2,
    };
    let f = q.function(
        &ACCUMULATE,
        "accumulate",
        &[
            Define::dtype("T", dtype),
            Define::int("OP", code),
            Define::int("MOST", if few { FEW } else { MANY } as i64),
            Define::int("VECTOR", vector as i64),
        ],
    )?;
    let args = Args::new().ptr(out).value(n as u64).value(from.len() as i32);
    let args = if few { args.value(addresses::<FEW>(from)) } else { args.value(addresses::<MANY>(from)) };
    q.launch(f, Launch::new(q.blocks(n.div_ceil(vector), 256, 2), 256), args)
}

fn addresses<const N: usize>(from: &[*const u8]) -> [u64; N] {
    std::array::from_fn(|i| from.get(i).map_or(0, |p| p.addr() as u64))
}

/// Sets every element of a contiguous view to the op's neutral element.
pub fn fill_identity(q: &Queue, out: &View, op: ReduceOp) -> Result<()> {
    let dtype = out.dtype();
    let number = if dtype.is_complex() && dtype.reduces(op) { dtype.part() } else { dtype };
    fill::fill(q, out, Reduce::from(op).identity(number.computed()?))
}
