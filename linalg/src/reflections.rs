//! Householder reflections, and the QR decomposition in LAPACK's form.

use crate::batch::{Field, Source, batch_of, by_rows, each, with_wide};
use crate::rules::{DOMAIN, FIELDS, cubes, dtypes_of, matrices, split_batch};
use oflow::kernels::Dims;
use oflow::ops::{KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

pub(crate) fn reflections() -> Result<OpDef> {
    Ok(OpDef::new(&format!("reflections(A: {FIELDS}[2..]) -> (QR, tau)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The QR decomposition of matrices `[.., m, n]` in LAPACK's form (geqrf): R and, below its diagonal, the vectors v of \
             reflections `I - tau v vᴴ` without their first element, which is 1.",
        )
        .by_name_only()
        .check(|c| matrices(c, 0).map(drop))
        .shapes(|c| {
            let (batch, rows, columns) = matrices(c, 0)?;
            let tau = batch.iter().chain(&[rows.min(columns)]).copied().collect::<Dims>();
            Ok(smallvec![c.shape(0)?.into(), tau])
        })
        .dtype(dtypes_of(|d| [d, d]))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 2))
        .cpu(|cx| with_wide!(cx, kernel))
        .cuda(crate::cuda::reflections)
        .samples(&["f32[3, 3]", "f64[2, 4, 3]", "f64[3, 4]", "c128[3, 3]", "f64[2, 0, 3]"]))
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let (m, n) = (a.rows(), a.columns());
    each(
        cx,
        batch,
        &[2, m, n, m.min(n)],
        || a.room(),
        |r, i, [both, tau]| {
            a.read(i, r);
            factorize(m, r, tau);
            by_rows(n, both, |row, col| r[col * m + row]);
            Ok(())
        },
    )
}

/// Puts R and, below its diagonal, the vectors of the reflections in the place of a matrix of m rows, by columns, and writes their
/// factors (LAPACK's geqr2).
pub(crate) fn factorize<T: Field>(m: usize, matrix: &mut [T], tau: &mut [T]) {
    for (k, tau) in tau.iter_mut().enumerate() {
        let (left, right) = matrix.split_at_mut((k + 1) * m);
        let column = &mut left[k * m + k..];
        *tau = reflect(column);
        right.chunks_exact_mut(m).for_each(|x| apply(&column[1..], tau.conjugate(), &mut x[k..]));
    }
}

/// Writes the first columns of the product of the reflections of [`factorize`], by columns.
pub(crate) fn multiply<T: Field>(m: usize, matrix: &[T], tau: &[T], q: &mut [T]) {
    q.fill(T::zero());
    q.iter_mut().step_by(m + 1).take(m).for_each(|x| *x = T::one());
    for (k, tau) in tau.iter().enumerate().rev() {
        let v = &matrix[k * m + k + 1..(k + 1) * m];
        q.chunks_exact_mut(m).for_each(|x| apply(v, *tau, &mut x[k..]));
    }
}

/// `x - tau v (vᴴ x)` for the v of 1 and these elements.
fn apply<T: Field>(v: &[T], tau: T, x: &mut [T]) {
    let Some((first, rest)) = x.split_first_mut() else { return };
    let by = tau * v.iter().zip(&*rest).fold(*first, |s, (v, x)| s + v.conjugate() * *x);
    *first -= by;
    rest.iter_mut().zip(v).for_each(|(x, v)| *x -= by * *v);
}

/// Makes `x` a multiple of the first unit vector by `I - tau v vᴴ`, whose adjoint it is that is applied: writes the multiple, which is
/// real, and the v after its 1, and returns tau (LAPACK's larfg).
fn reflect<T: Field>(x: &mut [T]) -> T {
    let Some((alpha, rest)) = x.split_first_mut() else { return T::zero() };
    let below = rest.iter().fold(0.0, |s: f64, x| s.hypot(x.size()));
    let (re, im) = alpha.parts();
    if below == 0.0 && im == 0.0 {
        return T::zero();
    }
    let beta = T::real(-alpha.size().hypot(below).copysign(re));
    let tau = (beta - *alpha) / beta;
    let by = *alpha - beta;
    rest.iter_mut().for_each(|x| *x /= by);
    *alpha = beta;
    tau
}
