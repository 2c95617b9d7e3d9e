//! Scans along a dim; see [`crate::cpu::scan`]. All tensors are contiguous.

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::take::around;
use crate::{KernelError, Result, View};

pub(super) static RUN: Source = Source::file("run", include_str!("../../cuda/run.cu")).forms(&[
    "KIND=0 T=f32 O=f32 REVERSE=0",
    "KIND=0 T=i32 O=i64 REVERSE=0",
    "KIND={1,2} T=f32 O=f32 REVERSE=0",
    "KIND={1,2} T=i64 O=i64 REVERSE=0",
    "KIND=3 T=bf16 O=bf16 REVERSE=0",
    "KIND=4 T=f32 O=f32 REVERSE={0,1}",
]);

/// Lines of a block, or of a thread where there are enough of them or they are short.
const ENOUGH: usize = 1 << 14;
const SHORT: usize = 128;

/// Operation of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// Products: one input, one output.
    Product,
    /// The largest element so far: one input, values and places.
    Max,
    /// The smallest element so far.
    Min,
    /// The logarithm of the sum of exponentials: one input, one output.
    LogSumExp,
    /// `r[i] = b[i] + a[i] r[i - 1]`: inputs a and b, one output.
    Linear,
}

/// Runs along `dim`, with `reverse` from its end: `inputs` and `outputs` as [`Running`] says.
///
/// # Errors
/// If dims differ, there is no such dim, or a tensor is not contiguous.
pub fn run(q: &Queue, kind: Running, inputs: &[&View], outputs: &[&View], dim: usize, reverse: bool) -> Result<()> {
    let (x, out) = (inputs[0], outputs[0]);
    let all = || inputs.iter().chain(outputs);
    if dim >= x.rank() || !all().all(|v| v.dims() == x.dims() && v.is_contiguous()) {
        let dims: Vec<_> = all().map(|v| v.dims()).collect();
        return Err(KernelError::new(format!("{kind:?} along {dim} of {dims:?}: they differ or are not contiguous")));
    }
    if out.is_empty() {
        return Ok(());
    }
    let n = x.dims()[dim];
    let (outer, inner) = around(x.dims(), dim);
    let lines = outer * inner;
    let defines = [
        Define::int("KIND", kind as i64),
        Define::dtype("T", x.dtype()),
        Define::dtype("O", out.dtype()),
        Define::int("REVERSE", i64::from(reverse)),
    ];
    let args = Args::new().view(x).opt_view(inputs.get(1).copied()).view(out).opt_view(outputs.get(1).copied());
    let args = args.value(lines as u64).value(n as u64).value(inner as u64);
    let by_thread = n <= SHORT || lines >= ENOUGH;
    let (entry, blocks) = if by_thread { ("run_lines", lines.div_ceil(256)) } else { ("run_pieces", lines) };
    q.launch(q.function(&RUN, entry, &defines)?, Launch::new(blocks.min(1 << 16) as u32, 256), args)
}
