//! Softmax, its logarithm, logsumexp, and their gradients, along one dim.

use super::acc::with_acc;
use super::rows::{Buffered, Buffers, Rows, check_dim, check_dims, check_dtype};
use super::{bundle, rowmath};
use crate::parallel::parallel_for;
use crate::{Dims, Result, View};

/// The two functions that share a loop.
#[derive(Clone, Copy)]
enum SoftmaxKind {
    Plain,
    Log,
}

/// `out = exp(x) / sum(exp(x))` along `dim`. A row of minus infinities gives NaN, as in PyTorch.
///
/// # Errors
/// If dims or dtypes differ, the dtype is not a float, or there is no such dim.
pub fn softmax(x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[("the output", out)])?;
    with_acc!(x.dtype(), forward(SoftmaxKind::Plain, x, out, dim));
    Ok(())
}

/// `out = x - logsumexp(x)` along `dim`.
///
/// # Errors
/// Those of [`softmax`].
pub fn log_softmax(x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[("the output", out)])?;
    with_acc!(x.dtype(), forward(SoftmaxKind::Log, x, out, dim));
    Ok(())
}

/// Gradient of [`softmax`] from its result: `dx = y * (dy - sum(dy * y))`.
///
/// # Errors
/// Those of [`softmax`].
pub fn softmax_grad(dy: &View, y: &View, dx: &View, dim: usize) -> Result<()> {
    check(dim, y, &[("dy", dy), ("dx", dx)])?;
    with_acc!(y.dtype(), backward(SoftmaxKind::Plain, dy, y, dx, dim));
    Ok(())
}

/// Gradient of [`log_softmax`] from its result: `dx = dy - exp(y) * sum(dy)`.
///
/// # Errors
/// Those of [`softmax`].
pub fn log_softmax_grad(dy: &View, y: &View, dx: &View, dim: usize) -> Result<()> {
    check(dim, y, &[("dy", dy), ("dx", dx)])?;
    with_acc!(y.dtype(), backward(SoftmaxKind::Log, dy, y, dx, dim));
    Ok(())
}

/// `out = log(sum(exp(x)))` along `dim`, which `out` does not have. An empty row gives minus infinity.
///
/// # Errors
/// Those of [`softmax`].
pub fn logsumexp(x: &View, out: &View, dim: usize) -> Result<()> {
    check(dim, x, &[])?;
    let mut dims = Dims::from(x.dims());
    dims.remove(dim);
    check_dims("the output", out, &dims)?;
    check_dtype("the output", out, x.dtype())?;
    with_acc!(x.dtype(), reduce(x, out, dim));
    Ok(())
}

pub(crate) fn check(dim: usize, x: &View, others: &[(&str, &View)]) -> Result<()> {
    check_dim(x, dim)?;
    for (what, view) in others {
        check_dims(what, view, x.dims())?;
        check_dtype(what, view, x.dtype())?;
    }
    Ok(())
}

fn forward<A: Buffered>(kind: SoftmaxKind, x: &View, out: &View, dim: usize) {
    let (x, out) = (Rows::along(x, dim), Rows::along(out, dim));
    if bundle::worthwhile(&[&x, &out]) {
        return each_bundle::<A>(&x, &|first, count, Buffers { a, bundles: [bundle, _], .. }| {
            // SAFETY: rows are in range and float (checked); each row of the output is written by one thread.
            unsafe {
                let values = bundle::read(&x, first, count, bundle, a);
                match kind {
                    SoftmaxKind::Plain => bundle::softmax(values),
                    SoftmaxKind::Log => bundle::log_softmax(values),
                }
                bundle::write(&out, first, count, values, a);
            }
        });
    }
    each_row::<A>(&x, &|row, Buffers { a, b, .. }| {
        // SAFETY: as above.
        unsafe {
            let x = x.read(row, a);
            out.write(row, b, |y| match kind {
                SoftmaxKind::Plain => rowmath::softmax(x, y),
                SoftmaxKind::Log => rowmath::log_softmax(x, y),
            });
        }
    });
}

fn backward<A: Buffered>(kind: SoftmaxKind, dy: &View, y: &View, dx: &View, dim: usize) {
    let (dy, y, dx) = (Rows::along(dy, dim), Rows::along(y, dim), Rows::along(dx, dim));
    if bundle::worthwhile(&[&y, &dy, &dx]) {
        return each_bundle::<A>(&y, &|first, count, Buffers { a, bundles: [bundle, other], .. }| {
            // SAFETY: rows are in range and float (checked); each row of the output is written by one thread.
            unsafe {
                let values = bundle::read(&dy, first, count, bundle, a);
                let y = bundle::read(&y, first, count, other, a);
                match kind {
                    SoftmaxKind::Plain => bundle::softmax_grad(values, y),
                    SoftmaxKind::Log => bundle::log_softmax_grad(values, y),
                }
                bundle::write(&dx, first, count, values, a);
            }
        });
    }
    each_row::<A>(&y, &|row, Buffers { a, b, c, .. }| {
        // SAFETY: as above.
        unsafe {
            let (dy, y) = (dy.read(row, a), y.read(row, b));
            dx.write(row, c, |dx| match kind {
                SoftmaxKind::Plain => rowmath::softmax_grad(dy, y, dx),
                SoftmaxKind::Log => rowmath::log_softmax_grad(dy, y, dx),
            });
        }
    });
}

fn reduce<A: Buffered>(x: &View, out: &View, dim: usize) {
    let (x, out) = (Rows::along(x, dim), Rows::singles(out));
    if bundle::worthwhile(&[&x]) {
        return each_bundle::<A>(&x, &|first, count, Buffers { a, bundles: [bundle, _], .. }| {
            // SAFETY: rows are in range and float (checked); each number of the output is written by one thread.
            unsafe {
                let results = bundle::logsumexp(bundle::read(&x, first, count, bundle, a));
                (0..count).for_each(|l| out.set(first + l, results[l]));
            }
        });
    }
    each_row::<A>(&x, &|row, buffers| {
        // SAFETY: as above.
        unsafe { out.set::<A>(row, rowmath::logsumexp(x.read(row, &mut buffers.a))) };
    });
}

/// Calls `f` for each row with this thread's buffers.
fn each_row<A: Buffered>(rows: &Rows, f: &(dyn Fn(usize, &mut Buffers<A>) + Sync)) {
    parallel_for(rows.count, rows.grain(), &|range| A::with_buffers(|buffers| range.for_each(|row| f(row, buffers))));
}

/// Calls `f` for each bundle of rows (its first row and how many it has) with this thread's buffers.
fn each_bundle<A: Buffered>(rows: &Rows, f: &(dyn Fn(usize, usize, &mut Buffers<A>) + Sync)) {
    parallel_for(rows.count, rows.grain().next_multiple_of(bundle::LANES), &|range| {
        A::with_buffers(|buffers| {
            let end = range.end;
            range.step_by(bundle::LANES).for_each(|first| f(first, bundle::LANES.min(end - first), buffers));
        });
    });
}
