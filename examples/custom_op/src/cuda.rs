//! The CUDA kernels of `matmul_scale`: `cuda/matmul_scale.cu`, which is compiled at its first use on a GPU.

use oflow::backend::cuda::queue;
use oflow::kernels::View;
use oflow::kernels::cuda::{Args, Define, Launch, Source};
use oflow::ops::KernelCx;
use oflow::prelude::*;

static SOURCE: Source = Source::file("matmul_scale", include_str!("../cuda/matmul_scale.cu"));

/// A matrix as the kernel reads it: transposed or not.
struct Matrix<'a> {
    view: &'a View,
    row: i64,
    column: i64,
}

fn plain(view: &View) -> Matrix<'_> {
    Matrix { view, row: view.dims()[1] as i64, column: 1 }
}

fn transposed(view: &View) -> Matrix<'_> {
    Matrix { view, row: 1, column: view.dims()[1] as i64 }
}

pub(crate) fn forward(cx: &KernelCx<'_>) -> Result<()> {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    product(cx, cx.output(0), w.dims()[0], plain(x), plain(w))
}

pub(crate) fn backward(cx: &KernelCx<'_>) -> Result<()> {
    let (dy, x, w) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    product(cx, cx.output(0), w.dims()[1], plain(dy), transposed(w))?;
    product(cx, cx.output(1), x.dims()[0], transposed(x), plain(dy))
}

/// Puts `out = scale a b` on the stream, one thread per element.
fn product(cx: &KernelCx<'_>, out: &View, inner: usize, a: Matrix<'_>, b: Matrix<'_>) -> Result<()> {
    let q = queue(cx)?;
    let kernel = q.function(&SOURCE, "matmul_scale", &[Define::dtype("T", out.dtype())])?;
    let args = Args::new().view(out).view(a.view).view(b.view);
    let args = args.value(out.len() as u64).value(out.dims()[1] as u64).value(inner as u64);
    let args = args.value(a.row).value(a.column).value(b.row).value(b.column);
    let args = args.value(cx.scalar("scale")?.to_f64());
    // Without elements there are no blocks, and nothing is launched.
    Ok(q.launch(kernel, Launch::new(q.blocks(out.len(), 256, 4), 256), args)?)
}
