//! Layer norm and rms norm over the trailing dims, with gradients.

use super::acc::{Acc, acc_dtype, with_acc};
use super::rowmath;
use super::rows::{Buffered, Buffers, Rows, check_dims, check_dtype, check_float};
use crate::parallel::parallel_for;
use crate::{KernelError, Result, View};

/// Tensor that is normalised, with its weight and bias.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a> {
    /// How many trailing dims are normalised together.
    pub dims: usize,
    /// Added to the variance (or mean square) under the root.
    pub eps: f64,
    /// Factors, with the dims that are normalised.
    pub weight: Option<&'a View>,
    /// Summands, with the dims that are normalised.
    pub bias: Option<&'a View>,
}

/// The gradients that are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct NormGrads<'a> {
    /// Of the input.
    pub dx: Option<&'a View>,
    /// Of the weight: summed over the leading dims in a fixed order.
    pub dweight: Option<&'a View>,
    /// Of the bias: summed over the leading dims in a fixed order.
    pub dbias: Option<&'a View>,
}

/// `y = (x - mean) * rstd * weight + bias`, with `mean` and `rstd = 1 / sqrt(variance + eps)` over the trailing dims.
/// `mean` and `rstd` have the leading dims and are f32 for halves, else of `x`'s dtype.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn layer_norm(x: &View, norm: &Norm, y: &View, mean: &View, rstd: &View) -> Result<()> {
    check(x, norm, &[("y", y)], &[("mean", mean), ("rstd", rstd)])?;
    with_acc!(x.dtype(), forward(x, norm, y, Some(mean), rstd));
    Ok(())
}

/// Gradients of [`layer_norm`] from its input and the statistics it left. `norm.bias` and `norm.eps` are not read.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn layer_norm_grad(dy: &View, x: &View, mean: &View, rstd: &View, norm: &Norm, grads: &NormGrads) -> Result<()> {
    check(x, norm, &[("dy", dy)], &[("mean", mean), ("rstd", rstd)])?;
    check_grads(x, norm, grads)?;
    with_acc!(x.dtype(), backward(dy, x, Some(mean), rstd, norm, grads));
    Ok(())
}

/// `y = x * rstd * weight + bias`, with `rstd = 1 / sqrt(mean(x²) + eps)` over the trailing dims.
/// `rstd` has the leading dims and is f32 for halves, else of `x`'s dtype.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn rms_norm(x: &View, norm: &Norm, y: &View, rstd: &View) -> Result<()> {
    check(x, norm, &[("y", y)], &[("rstd", rstd)])?;
    with_acc!(x.dtype(), forward(x, norm, y, None, rstd));
    Ok(())
}

/// Gradients of [`rms_norm`] from its input and the statistic it left. `norm.bias` and `norm.eps` are not read.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn rms_norm_grad(dy: &View, x: &View, rstd: &View, norm: &Norm, grads: &NormGrads) -> Result<()> {
    check(x, norm, &[("dy", dy)], &[("rstd", rstd)])?;
    check_grads(x, norm, grads)?;
    with_acc!(x.dtype(), backward(dy, x, None, rstd, norm, grads));
    Ok(())
}

pub(crate) fn check(x: &View, norm: &Norm, same: &[(&str, &View)], statistics: &[(&str, &View)]) -> Result<()> {
    if norm.dims == 0 || norm.dims > x.rank() {
        return Err(KernelError::new(format!(
            "cannot normalise over the last {} dims of {:?}; between 1 and {} are possible",
            norm.dims,
            x.dims(),
            x.rank()
        )));
    }
    let (leading, trailing) = x.dims().split_at(x.rank() - norm.dims);
    for (what, view) in same {
        check_dims(what, view, x.dims())?;
        check_dtype(what, view, x.dtype())?;
    }
    for (what, view) in statistics {
        check_dims(what, view, leading)?;
        check_dtype(what, view, acc_dtype(x.dtype())?)?;
    }
    for (what, view) in [("the weight", norm.weight), ("the bias", norm.bias)] {
        if let Some(view) = view {
            check_dims(what, view, trailing)?;
            check_float(what, view)?;
        }
    }
    Ok(())
}

pub(crate) fn check_grads(x: &View, norm: &Norm, grads: &NormGrads) -> Result<()> {
    if let Some(dx) = grads.dx {
        check_dims("dx", dx, x.dims())?;
        check_dtype("dx", dx, x.dtype())?;
    }
    for (what, view) in [("dweight", grads.dweight), ("dbias", grads.dbias)] {
        if let Some(view) = view {
            check_dims(what, view, &x.dims()[x.rank() - norm.dims..])?;
            check_float(what, view)?;
        }
    }
    Ok(())
}

/// All elements of a parameter in the type computed in; empty where there is none.
fn parameter<A: Acc>(view: Option<&View>) -> Vec<A> {
    let mut values = Vec::new();
    if let Some(view) = view {
        let mut buffer = Vec::new();
        // SAFETY: the only row of the view, which is a float view that is only read.
        values.extend_from_slice(unsafe { Rows::trailing(view, view.rank()).read::<A>(0, &mut buffer) });
    }
    values
}

fn forward<A: Buffered>(x: &View, norm: &Norm, y: &View, mean: Option<&View>, rstd: &View) {
    let (weight, bias) = (parameter::<A>(norm.weight), parameter::<A>(norm.bias));
    let (x, y) = (Rows::trailing(x, norm.dims), Rows::trailing(y, norm.dims));
    let (means, rstds) = (mean.map(Rows::singles), Rows::singles(rstd));
    let eps = A::from_f64(norm.eps);
    parallel_for(x.count, x.grain(), &|range| {
        A::with_buffers(|Buffers { a, b, .. }| {
            for row in range {
                // SAFETY: rows are in range and float (checked); each row and number is written by one thread.
                unsafe {
                    let x = x.read(row, a);
                    let (mean, variance) = match &means {
                        Some(means) => {
                            let (mean, variance) = rowmath::moments(x);
                            means.set(row, mean);
                            (mean, variance)
                        }
                        None => (A::ZERO, rowmath::squares(x) / A::from_f64(x.len() as f64)),
                    };
                    let rstd = A::ONE / (variance + eps).sqrt();
                    rstds.set(row, rstd);
                    y.write(row, b, |y| rowmath::normalize(x, mean, rstd, &weight, &bias, y));
                }
            }
        });
    });
}

/// How many partial sums over rows there are at most. Fixed, because it decides the order of summation.
const PARTS: usize = 32;

fn backward<A: Buffered>(dy: &View, x: &View, mean: Option<&View>, rstd: &View, norm: &Norm, grads: &NormGrads) {
    let weight = parameter::<A>(norm.weight);
    let rows = |view| Rows::trailing(view, norm.dims);
    let (dy, x, dx) = (rows(dy), rows(x), grads.dx.map(rows));
    let (means, rstds) = (mean.map(Rows::singles), Rows::singles(rstd));
    let part_rows = x.count.div_ceil(PARTS).max(x.grain());
    let parts = x.count.div_ceil(part_rows);
    let sums_of = |wanted: Option<&View>| vec![A::ZERO; if wanted.is_some() { parts * x.len } else { 0 }];
    let (mut dweights, mut dbiases) = (sums_of(grads.dweight), sums_of(grads.dbias));
    {
        let shared = |sums: &mut Vec<A>| {
            let dims = [if sums.is_empty() { 0 } else { parts }, if sums.is_empty() { 0 } else { x.len }];
            // SAFETY: the vector outlives the view (this block), and rows are written by one thread each.
            Rows::trailing(&unsafe { View::from_mut(sums, &dims) }, 1)
        };
        let (dweights, dbiases) = (shared(&mut dweights), shared(&mut dbiases));
        parallel_for(x.count, part_rows, &|range| {
            let part = range.start / part_rows;
            A::with_buffers(|Buffers { a, b, c, .. }| {
                let (mut dw, mut db) = (vec![A::ZERO; dweights.len], vec![A::ZERO; dbiases.len]);
                for row in range {
                    // SAFETY: rows are in range and float (checked); each row of the output is written by one thread.
                    unsafe {
                        let (dy, x) = (dy.read(row, a), x.read(row, b));
                        let mean = means.as_ref().map_or(A::ZERO, |means| means.get(row));
                        let rstd = rstds.get(row);
                        rowmath::add_norm_sums(dy, x, mean, rstd, &mut dw, &mut db);
                        if let Some(dx) = &dx {
                            let centered = means.is_some();
                            dx.write(row, c, |dx| {
                                rowmath::normalize_grad(dy, x, mean, rstd, &weight, centered, dx);
                            });
                        }
                    }
                }
                for (sums, part_sums) in [(&dweights, &dw), (&dbiases, &db)] {
                    if sums.count > 0 {
                        // SAFETY: one thread writes part `part`.
                        unsafe { sums.write(part, c, |to: &mut [A]| to.copy_from_slice(part_sums)) };
                    }
                }
            });
        });
    }
    for (view, sums) in [(grads.dweight, &dweights), (grads.dbias, &dbiases)] {
        if let Some(view) = view {
            add_parts(view, sums, x.len);
        }
    }
}

/// Writes the sum of the parts, added in order.
fn add_parts<A: Acc>(view: &View, sums: &[A], len: usize) {
    if len == 0 {
        return;
    }
    let mut total = vec![A::ZERO; len];
    for part in sums.chunks_exact(len) {
        total.iter_mut().zip(part).for_each(|(t, p)| *t = *t + *p);
    }
    // SAFETY: the only row of a float output (checked), written here alone.
    unsafe {
        Rows::trailing(view, view.rank()).write(0, &mut Vec::new(), |to: &mut [A]| to.copy_from_slice(&total));
    }
}
