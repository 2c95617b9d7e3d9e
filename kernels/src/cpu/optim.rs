//! Optimiser steps in place, one pass over all state.

use multiversion::multiversion;

use super::acc::{Acc, with_acc};
use super::rowmath;
use super::rows::{Buffered, Buffers, Rows, check_dims, check_float};
use crate::parallel::parallel_for;
use crate::{Result, View};

/// Settings of [`adamw`].
#[derive(Clone, Copy, Debug)]
pub struct AdamW {
    /// Learning rate of this step.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Number of this step, from 1: the bias correction needs it.
    pub step: u64,
}

impl AdamW {
    /// The numbers of one step, the same for every element: what the parameter keeps, the first moment's decay and rest,
    /// the second's, the factor of the root, what is added to it, the length of the step.
    pub(crate) fn factors(&self) -> [f64; 8] {
        let AdamW { lr, beta1, beta2, eps, weight_decay, step } = *self;
        let correction1 = 1.0 - beta1.powf(step as f64);
        let correction2 = 1.0 - beta2.powf(step as f64);
        let root = 1.0 / correction2.sqrt();
        [1.0 - lr * weight_decay, beta1, 1.0 - beta1, beta2, 1.0 - beta2, root, eps, lr / correction1]
    }
}

/// Settings of [`sgd`].
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// Learning rate of this step.
    pub lr: f64,
    /// Decay of the momentum buffer.
    pub momentum: f64,
    /// Share of the gradient that the buffer does not take.
    pub dampening: f64,
    /// Weight decay, added to the gradient.
    pub weight_decay: f64,
    /// Looks ahead along the momentum.
    pub nesterov: bool,
    /// On the first step the buffer becomes the gradient itself.
    pub first_step: bool,
}

/// One step of AdamW with PyTorch's formula. Updates `param`, the first moment `m` and the second moment `v`. The views have
/// one shape; each may have its own float dtype, and the arithmetic is that of `param`'s (f32 for halves).
///
/// # Errors
/// If dims differ or a dtype is not a float.
pub fn adamw(param: &View, grad: &View, m: &View, v: &View, settings: &AdamW) -> Result<()> {
    check(param, &[("the gradient", grad), ("m", m), ("v", v)])?;
    with_acc!(param.dtype(), adamw_rows(param, grad, m, v, settings));
    Ok(())
}

/// One step of SGD with PyTorch's formula. Updates `param` and, if given, the momentum buffer. Shapes and dtypes as for
/// [`adamw`]. Without a buffer `settings.momentum` is not read.
///
/// # Errors
/// If dims differ or a dtype is not a float.
pub fn sgd(param: &View, grad: &View, momentum: Option<&View>, settings: &Sgd) -> Result<()> {
    check(param, &[("the gradient", grad)])?;
    if let Some(buffer) = momentum {
        check(param, &[("the momentum buffer", buffer)])?;
    }
    with_acc!(param.dtype(), sgd_rows(param, grad, momentum, settings));
    Ok(())
}

/// Multiplies all elements by `factor`; halves in f32.
///
/// # Errors
/// If the dtype is not a float.
pub fn scale(x: &View, factor: f64) -> Result<()> {
    check_float("the tensor", x)?;
    with_acc!(x.dtype(), scale_rows(x, factor));
    Ok(())
}

/// The sum of squares in f64, for gradient norms. The same bits whatever the number of threads.
///
/// # Errors
/// If the dtype is not a float.
pub fn sum_of_squares(x: &View) -> Result<f64> {
    check_float("the input", x)?;
    Ok(with_acc!(x.dtype(), squares(x)))
}

pub(crate) fn check(param: &View, others: &[(&str, &View)]) -> Result<()> {
    check_float("the parameter", param)?;
    for (what, view) in others {
        check_dims(what, view, param.dims())?;
        check_float(what, view)?;
    }
    Ok(())
}

/// Elements that are computed at a time: state of this size stays in the nearest caches.
const PIECE: usize = 4096;

/// Cuts views of one shape into rows of equal number and length: pieces of the flat memory where all are contiguous
/// (and a shorter last row), else the rows of the last dim.
pub(crate) fn cut<const N: usize>(views: [&View; N]) -> Vec<[Rows; N]> {
    let (rank, len) = (views[0].rank(), views[0].len());
    if len == 0 {
        return Vec::new();
    }
    if !views.iter().all(|v| v.is_contiguous()) {
        // A view of rank zero is contiguous, so there is a last dim.
        return vec![views.map(|v| Rows::along(v, rank - 1))];
    }
    let part = |offset: usize, rows: usize, columns: usize| {
        views.map(|view| {
            let dims = [rows, columns].as_slice().into();
            let strides = [columns as isize, 1].as_slice().into();
            // SAFETY: a range of the elements of a contiguous view.
            Rows::along(&unsafe { view.restride(offset as isize, dims, strides) }, 1)
        })
    };
    let (full, rest) = (len / PIECE, len % PIECE);
    let mut parts = Vec::new();
    if full > 0 {
        parts.push(part(0, full, PIECE));
    }
    if rest > 0 {
        parts.push(part(full * PIECE, 1, rest));
    }
    parts
}

fn adamw_rows<A: Buffered>(param: &View, grad: &View, m: &View, v: &View, settings: &AdamW) {
    let [decay, beta1, rest1, beta2, rest2, root, eps, step] = settings.factors().map(A::from_f64);
    let factors = AdamFactors { decay, beta1, rest1, beta2, rest2, root, eps, step };
    for [param, grad, m, v] in cut([param, grad, m, v]) {
        parallel_for(param.count, param.grain(), &|range| {
            A::with_buffers(|Buffers { a, b, c, d, .. }| {
                for row in range {
                    // SAFETY: rows are in range and float (checked); each row is updated by one thread.
                    unsafe {
                        let g = grad.read(row, a);
                        param.update(row, b, |p| {
                            m.update(row, c, |m| v.update(row, d, |v| adamw_loop(&factors, p, g, m, v)));
                        });
                    }
                }
            });
        });
    }
}

/// The numbers of one AdamW step, the same for every element.
struct AdamFactors<A> {
    decay: A,
    beta1: A,
    rest1: A,
    beta2: A,
    rest2: A,
    root: A,
    eps: A,
    step: A,
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn adamw_loop<A: Acc>(f: &AdamFactors<A>, p: &mut [A], g: &[A], m: &mut [A], v: &mut [A]) {
    let n = p.len();
    let (g, m, v) = (&g[..n], &mut m[..n], &mut v[..n]);
    for i in 0..n {
        let m1 = m[i] * f.beta1 + g[i] * f.rest1;
        let v1 = v[i] * f.beta2 + g[i] * g[i] * f.rest2;
        let denominator = v1.sqrt() * f.root + f.eps;
        p[i] = p[i] * f.decay - f.step * (m1 / denominator);
        m[i] = m1;
        v[i] = v1;
    }
}

fn sgd_rows<A: Buffered>(param: &View, grad: &View, momentum: Option<&View>, settings: &Sgd) {
    let Some(momentum) = momentum else {
        for [param, grad] in cut([param, grad]) {
            parallel_for(param.count, param.grain(), &|range| {
                A::with_buffers(|Buffers { a, b, .. }| {
                    for row in range {
                        // SAFETY: rows are in range and float (checked); each row is updated by one thread.
                        unsafe {
                            let g = grad.read(row, a);
                            param.update(row, b, |p| sgd_loop(settings, p, g, &mut []));
                        }
                    }
                });
            });
        }
        return;
    };
    for [param, grad, buffer] in cut([param, grad, momentum]) {
        parallel_for(param.count, param.grain(), &|range| {
            A::with_buffers(|Buffers { a, b, c, .. }| {
                for row in range {
                    // SAFETY: rows are in range and float (checked); each row is updated by one thread.
                    unsafe {
                        let g = grad.read(row, a);
                        param.update(row, b, |p| buffer.update(row, c, |v| sgd_loop(settings, p, g, v)));
                    }
                }
            });
        });
    }
}

/// `v` is empty where there is no momentum buffer.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn sgd_loop<A: Acc>(settings: &Sgd, p: &mut [A], g: &[A], v: &mut [A]) {
    let n = p.len();
    let g = &g[..n];
    let (lr, decay) = (A::from_f64(settings.lr), A::from_f64(settings.weight_decay));
    if v.is_empty() {
        for i in 0..n {
            p[i] = p[i] - lr * (g[i] + decay * p[i]);
        }
        return;
    }
    let v = &mut v[..n];
    let momentum = A::from_f64(settings.momentum);
    let (keep, take) = match settings.first_step {
        true => (A::ZERO, A::ONE),
        false => (momentum, A::from_f64(1.0 - settings.dampening)),
    };
    for i in 0..n {
        let d = g[i] + decay * p[i];
        // The first step must not read the buffer, which may hold anything.
        let old = if settings.first_step { A::ZERO } else { v[i] };
        let new = keep * old + take * d;
        v[i] = new;
        let along = if settings.nesterov { d + momentum * new } else { new };
        p[i] = p[i] - lr * along;
    }
}

fn scale_rows<A: Buffered>(x: &View, factor: f64) {
    for [x] in cut([x]) {
        parallel_for(x.count, x.grain(), &|range| {
            A::with_buffers(|buffers| {
                for row in range {
                    // SAFETY: rows are in range and float (checked); each row is updated by one thread.
                    unsafe { x.update(row, &mut buffers.a, |x| rowmath::scale(x, A::from_f64(factor))) };
                }
            });
        });
    }
}

fn squares<A: Buffered>(x: &View) -> f64 {
    let mut total = 0.0;
    for [x] in cut([x]) {
        let mut sums = vec![0.0f64; x.count];
        {
            // SAFETY: the vector outlives the view (this block); numbers are written by one thread each.
            let slots = Rows::singles(&unsafe { View::from_mut(&mut sums, &[x.count]) });
            parallel_for(x.count, x.grain(), &|range| {
                A::with_buffers(|buffers| {
                    for row in range {
                        // SAFETY: rows are in range and float (checked).
                        unsafe { slots.set(row, rowmath::squares_f64::<A>(x.read(row, &mut buffers.a))) };
                    }
                });
            });
        }
        total += sums.iter().sum::<f64>();
    }
    total
}
