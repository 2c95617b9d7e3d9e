//! Softmax, its logarithm, and their gradients, along one dim.

use super::rows::{Rows, Sharing, blocks, room};
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::acc::acc_dtype;
use crate::cpu::softmax::check;
use crate::{Result, View};

pub(super) static SOFTMAX: Source = Source::file("softmax", include_str!("../../cuda/softmax.cu")).forms(&[
    "T=f32 LOG={0,1} VEC=4 ROW=32 PER={1,8}",
    "T=f32 LOG={0,1} VEC={1,4} ROW=512 PER=0",
    "T=f32 LOG=0 VEC=4 ROW=1024 PER=4",
    "T=bf16 LOG={0,1} VEC=8 ROW={32,256} PER=2",
    "T=f64 LOG={0,1} VEC=2 ROW={32,256} PER={0,4}",
]);

/// The kernels for rows of neighbouring elements and for other rows.
const SOFTMAX_ENTRIES: [&str; 2] = ["softmax_rows", "softmax_columns"];
const GRAD_ENTRIES: [&str; 2] = ["softmax_grad_rows", "softmax_grad_columns"];

/// `out = exp(x) / sum(exp(x))` along `dim`. A row of minus infinities gives NaN, as in PyTorch.
///
/// # Errors
/// If dims or dtypes differ, the dtype is not a float, or there is no such dim.
pub fn softmax(q: &Queue, x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[("the output", out)])?;
    along(q, SOFTMAX_ENTRIES, false, [x, out], dim)
}

/// `out = x - logsumexp(x)` along `dim`.
///
/// # Errors
/// Those of [`softmax`].
pub fn log_softmax(q: &Queue, x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[("the output", out)])?;
    along(q, SOFTMAX_ENTRIES, true, [x, out], dim)
}

/// Gradient of [`softmax`] from its result: `dx = y * (dy - sum(dy * y))`.
///
/// # Errors
/// Those of [`softmax`].
pub fn softmax_grad(q: &Queue, dy: &View, y: &View, dx: &View, dim: usize) -> Result<()> {
    check(dim, y, &[("dy", dy), ("dx", dx)])?;
    along(q, GRAD_ENTRIES, false, [dy, y, dx], dim)
}

/// Gradient of [`log_softmax`] from its result: `dx = dy - exp(y) * sum(dy)`.
///
/// # Errors
/// Those of [`softmax`].
pub fn log_softmax_grad(q: &Queue, dy: &View, y: &View, dx: &View, dim: usize) -> Result<()> {
    check(dim, y, &[("dy", dy), ("dx", dx)])?;
    along(q, GRAD_ENTRIES, true, [dy, y, dx], dim)
}

/// Rows of neighbouring elements are kept in registers where they fit; other rows are taken side by side.
fn along<const N: usize>(q: &Queue, entries: [&str; 2], log: bool, views: [&View; N], dim: usize) -> Result<()> {
    let x = views[0];
    acc_dtype(x.dtype())?;
    if x.is_empty() {
        return Ok(());
    }
    let rows = Rows::along(views, dim)?;
    let packed = rows.packed(N);
    let sharing = match packed {
        true => Sharing::of(rows.len as usize, rows.width(&views), room(x.dtype()) / (N - 1)),
        // Those kernels do not share rows so; one program serves all lengths.
        false => Sharing { width: 1, threads: 32, kept: 1 },
    };
    let (name, launch) = match packed {
        true => (entries[0], sharing.launch(rows.count, 128)),
        false => (entries[1], Launch::new(blocks(rows.count, 32), 256)),
    };
    let [vec, row, per] = sharing.defines();
    let defines = [Define::dtype("T", x.dtype()), Define::int("LOG", i64::from(log)), vec, row, per];
    let f = q.function(&SOFTMAX, name, &defines)?;
    q.launch_with(f, launch, views.iter().fold(Args::new(), |args, v| args.view(v)), &rows)
}
