//! Softmax, its logarithm, logsumexp, and their gradients, along one dim.

use super::acc::with_acc;
use super::rowmath;
use super::rows::{Buffered, Buffers, Rows, check_dim, check_dims, check_dtype};
use crate::parallel::parallel_for;
use crate::{Dims, Result, View};

/// Which of the two functions a shared loop computes.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Log,
}

/// `out = exp(x) / sum(exp(x))` along `dim`. A row of minus infinities gives NaN, as in PyTorch.
///
/// # Errors
/// Where dims or dtypes differ, the dtype is not a float, or there is no such dim.
pub fn softmax(x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[("the output", out)])?;
    with_acc!(x.dtype(), forward(Kind::Plain, x, out, dim));
    Ok(())
}

/// `out = x - logsumexp(x)` along `dim`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax(x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[("the output", out)])?;
    with_acc!(x.dtype(), forward(Kind::Log, x, out, dim));
    Ok(())
}

/// Gradient of [`softmax`] from its result: `dx = y * (dy - sum(dy * y))`.
///
/// # Errors
/// As [`softmax`].
pub fn softmax_grad(dy: &View, y: &View, dx: &View, dim: usize) -> Result<()> {
    check(dim, y, &[("dy", dy), ("dx", dx)])?;
    with_acc!(y.dtype(), backward(Kind::Plain, dy, y, dx, dim));
    Ok(())
}

/// Gradient of [`log_softmax`] from its result: `dx = dy - exp(y) * sum(dy)`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax_grad(dy: &View, y: &View, dx: &View, dim: usize) -> Result<()> {
    check(dim, y, &[("dy", dy), ("dx", dx)])?;
    with_acc!(y.dtype(), backward(Kind::Log, dy, y, dx, dim));
    Ok(())
}

/// `out = log(sum(exp(x)))` along `dim`, which `out` does not have. An empty row gives minus infinity.
///
/// # Errors
/// As [`softmax`].
pub fn logsumexp(x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[])?;
    let mut dims = Dims::from(x.dims());
    dims.remove(dim);
    check_dims("the output", out, &dims)?;
    check_dtype("the output", out, x.dtype())?;
    with_acc!(x.dtype(), reduce(x, out, dim));
    Ok(())
}

fn check(dim: usize, x: &View, others: &[(&str, &View)]) -> Result<()> {
    check_dim(x, dim)?;
    for (what, view) in others {
        check_dims(what, view, x.dims())?;
        check_dtype(what, view, x.dtype())?;
    }
    Ok(())
}

fn forward<A: Buffered>(kind: Kind, x: &View, out: &View, dim: usize) {
    let (x, out) = (Rows::along(x, dim), Rows::along(out, dim));
    parallel_for(x.count, x.grain(), &|range| {
        A::with_buffers(|Buffers { a, b, .. }| {
            for row in range {
                // SAFETY: rows are in range and float (checked); each row of the output is written by one thread.
                unsafe {
                    let x = x.read(row, a);
                    out.write(row, b, |y| match kind {
                        Kind::Plain => rowmath::softmax(x, y),
                        Kind::Log => rowmath::log_softmax(x, y),
                    });
                }
            }
        });
    });
}

fn backward<A: Buffered>(kind: Kind, dy: &View, y: &View, dx: &View, dim: usize) {
    let (dy, y, dx) = (Rows::along(dy, dim), Rows::along(y, dim), Rows::along(dx, dim));
    parallel_for(y.count, y.grain(), &|range| {
        A::with_buffers(|Buffers { a, b, c, .. }| {
            for row in range {
                // SAFETY: rows are in range and float (checked); each row of the output is written by one thread.
                unsafe {
                    let (dy, y) = (dy.read(row, a), y.read(row, b));
                    dx.write(row, c, |dx| match kind {
                        Kind::Plain => rowmath::softmax_grad(dy, y, dx),
                        Kind::Log => rowmath::log_softmax_grad(dy, y, dx),
                    });
                }
            }
        });
    });
}

fn reduce<A: Buffered>(x: &View, out: &View, dim: usize) {
    let (x, out) = (Rows::along(x, dim), Rows::singles(out));
    parallel_for(x.count, x.grain(), &|range| {
        A::with_buffers(|buffers| {
            for row in range {
                // SAFETY: rows are in range and float (checked); each number of the output is written by one thread.
                unsafe { out.set::<A>(row, rowmath::logsumexp(x.read(row, &mut buffers.a))) };
            }
        });
    });
}

#[cfg(test)]
mod tests;
