//! One value everywhere.

use super::elementwise::Program;
use super::{Args, Launch, Queue, Source};
use crate::expr::Expr;
use crate::{Builtin, Result, Scalar, View};
use std::sync::OnceLock;

pub(super) static FILL: Source = Source::file("fill", include_str!("../../cuda/fill.cu")).forms(&[""]);

/// `out = value`, converted to the element type; any strides.
///
/// # Errors
/// For a registered dtype; what CUDA reports.
pub fn fill(q: &Queue, out: &View, value: Scalar) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let dtype = out.dtype().cast()?;
    if !out.is_contiguous() {
        return strided(q, out, dtype, value);
    }
    let (size, bytes) = (out.dtype().size(), out.len() * out.dtype().size());
    let element = dtype.encode(value);
    // An element of 16 bytes is a pattern where its halves are the same.
    if size > 8 && element[..8] != element[8..] {
        return strided(q, out, dtype, value);
    }
    let pattern = u64::from_le_bytes(std::array::from_fn(|i| element[i % size]));
    if pattern == 0 {
        // SAFETY: the output's memory, all of it; it lives until the stream has done its work, by the contract of views.
        return unsafe { q.stream().set_zero(out.ptr(), bytes) };
    }
    let f = q.function(&FILL, "fill", &[])?;
    // Four vectors a thread.
    let launch = Launch::new(q.blocks(bytes.div_ceil(64), 256, 4), 256);
    q.launch(f, launch, Args::new().view(out).value(bytes as u64).value(pattern))
}

fn strided(q: &Queue, out: &View, dtype: Builtin, value: Scalar) -> Result<()> {
    static PROGRAMS: [OnceLock<Result<Program>>; Builtin::ALL.len()] = [const { OnceLock::new() }; Builtin::ALL.len()];
    let program = PROGRAMS[dtype as usize].get_or_init(|| Program::compile(&Expr::Scalar(0), &[], out.dtype()));
    program.as_ref().map_err(Clone::clone)?.run(q, &[], &[value], out)
}
