//! The pseudo-inverse.

use crate::batch::{Field, Source, batch_of, by_rows, each, finite, with_wide, zeros};
use crate::qr::Factors;
use crate::rules::{DOMAIN, FIELDS, Words, cubes, matrices, split_batch, square};
use crate::svd::Vectors;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::{MatMut, MatRef, Par};
use oflow::kernels::Dims;
use oflow::ops::{DTypeRule, Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

pub(crate) fn pinv() -> Result<OpDef> {
    Ok(OpDef::new(&format!("pseudo_inverse(A: {FIELDS}[2..]; atol: float = 0.0, rtol: float = 0.0, hermitian: bool = false) -> y"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The pseudo-inverse (Moore and Penrose) `[.., n, m]` of each matrix of a batch `[.., m, n]`; singular values that are not \
             above `atol` and `rtol` times the largest count as zero. With `hermitian` the matrices are Hermitian, and only their lower triangles are \
             read.\n\nThe gradient is that where the rank does not change (Golub and \
             Pereyra, 1973).",
        )
        .check(|c| match c.bool("hermitian")? {
            true => square(c),
            false => matrices(c, 0).map(drop),
        })
        .shapes(|c| {
            let (batch, rows, columns) = matrices(c, 0)?;
            Ok(smallvec![batch.iter().chain(&[columns, rows]).copied().collect::<Dims>()])
        })
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 16))
        .cpu(|cx| with_wide!(cx, kernel))
        .cuda(crate::cuda::pinv)
        .grad(Grad::rule_saving(&[0], &[0], gradient))
        .samples(&[
            "f32[3, 3]~",
            "f64[2, 3, 3]~",
            "f64[4, 2]",
            "c128[2, 3]",
            "f64[2, 4]; rtol=0.001",
            "f64[2, 3, 3]~; hermitian=true",
            "f64[3, 2, 4]",
            "f64[1, 1]",
            "f64[2, 3, 0]",
        ]))
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let hermitian = cx.bool("hermitian")?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?.mirrored(hermitian);
    let (rows, columns) = (a.rows(), a.columns());
    let (wide, long, k) = (rows < columns, rows.max(columns), rows.min(columns));
    // Of no fewer rows than columns.
    let tall = Source::<T>::new(cx.input(0)?, batch, false)?.mirrored(hermitian).transposed(wide);
    let (atol, rtol) = (cx.float("atol")?, cx.float("rtol")?);
    let make = || Ok((Factors::<T>::new(long, k, k)?, None));
    each(cx, batch, &[6, rows, columns, k], make, |(full, vectors), i, [y]| {
        tall.read(i, &mut full.a);
        if solve(full, long, k, atol, rtol) {
            match wide {
                false => y.copy_from_slice(&full.q),
                true => by_rows(rows, y, |c, r| full.q[r * columns + c]),
            }
            return Ok(());
        }
        let (w, s) = match vectors {
            Some(made) => made,
            None => vectors.insert((Vectors::new(&a, false)?, zeros::<T>(k)?)),
        };
        w.decompose(&a, i, s)?;
        let least = atol.max(rtol * s.first().map_or(0.0, |s| s.size()));
        y.fill(T::zero());
        // y = V diag(1/s) Uᴴ, a pair of vectors after the other.
        for (c, s) in s.iter().enumerate().filter(|(_, s)| s.size() > least) {
            let (u, v) = (&w.u[c * rows..][..rows], &w.v[c * columns..][..columns]);
            for (row, v) in y.chunks_exact_mut(rows.max(1)).zip(v) {
                let factor = *v / *s;
                row.iter_mut().zip(u).for_each(|(y, u)| *y += factor * u.conjugate());
            }
        }
        Ok(())
    })
}

/// Computes the pseudo-inverse of the matrix of `w`, of no fewer rows than columns, by rows in the place of Q, and says whether it holds: where
/// no singular value counts as zero it is `R⁻¹ Qᴴ`, which needs none of them.
fn solve<T: Field>(w: &mut Factors<T>, rows: usize, columns: usize, atol: f64, rtol: f64) -> bool {
    if columns == 0 || !finite(&w.a) {
        return false;
    }
    let greatest = norm(&w.a);
    w.decompose();
    w.q.iter_mut().for_each(|q| *q = q.conjugate());
    let r = MatRef::from_column_major_slice(&w.a, rows, columns).get(..columns, ..);
    solve_upper_triangular_in_place(r, MatMut::from_row_major_slice_mut(&mut w.q, columns, rows), Par::Seq);
    // The norm of the pseudo-inverse is at least the inverse of the least singular value, that of the matrix at least the greatest one. Values
    // as small as the rounding errors of the factors are left to the singular value decomposition.
    let least = 1.0 / norm(&w.q);
    least.is_finite() && least > atol && least > (rtol.max(rows as f64 * f64::EPSILON)) * greatest
}

/// The root of the sum of squares.
fn norm<T: Field>(x: &[T]) -> f64 {
    x.iter().map(|x| x.size()).fold(0.0, |sum, x| sum + x * x).sqrt()
}

/// With P the pseudo-inverse and G its gradient: dA = -Pᴴ G Pᴴ + (I - A P) Gᴴ P Pᴴ + Pᴴ P Gᴴ (I - P A).
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (a, p) = (g.input(0)?, g.output(0)?);
    let mut w = Words(g);
    let right = w.abh(dy, p)?;
    let first = w.ahb(p, right)?;
    // Gᴴ P Pᴴ and what of it A maps on.
    let gtp = w.ahb(dy, p)?;
    let down = w.abh(gtp, p)?;
    let inside = w.ab(p, down)?;
    let inside = w.ab(a, inside)?;
    let down = w.sub(down, inside)?;
    // Pᴴ P Gᴴ likewise.
    let pgt = w.abh(p, dy)?;
    let along = w.ahb(p, pgt)?;
    let inside = w.ab(along, p)?;
    let inside = w.ab(inside, a)?;
    let along = w.sub(along, inside)?;
    let da = w.add(down, along)?;
    let da = w.sub(da, first)?;
    w.0.set(0, da)
}
