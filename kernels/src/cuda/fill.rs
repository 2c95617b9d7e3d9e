//! One value everywhere.

use super::{Args, Define, Launch, Queue, Source};
use crate::{KernelError, Result, Scalar, View};

static FILL: Source = Source::file("fill", include_str!("../../cuda/fill.cu"));

/// `out = value`, converted to the element type. `out` is contiguous.
pub fn fill(q: &Queue, out: &View, value: Scalar) -> Result<()> {
    if !out.is_contiguous() {
        return Err(KernelError::new("fill needs a contiguous output"));
    }
    let f = q.function(&FILL, "fill", &[Define::dtype("T", out.dtype())])?;
    let is_float = matches!(value, Scalar::Float(_));
    let args = Args::new()
        .view(out)
        .value(out.len() as u64)
        .value(value.to_f64())
        .value(value.to_i64())
        .value(i32::from(is_float));
    q.launch(f, Launch::new(q.blocks(out.len(), 256, 4), 256), args)
}
