//! Eigenvalues of symmetric and Hermitian matrices.

use crate::batch::{Field, Scratch, Source, batch_of, by_rows, each, finite, real_diagonal, with_field, zeros};
use crate::rules::{DOMAIN, FIELDS, Words, cubes, dtypes_of, matrices, real_of, split_batch, square};
use crate::signs::phases;
use faer::linalg::evd::{ComputeEigenvectors, SelfAdjointEvdParams, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{Auto, MatMut, MatRef, Par, Spec};
use oflow::kernels::Dims;
use oflow::ops::{Grad, GradCtx, InferCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

/// Whether the upper triangle is read.
fn upper(triangle: &str) -> Result<bool> {
    match triangle {
        "L" | "l" => Ok(false),
        "U" | "u" => Ok(true),
        other => Err(Error::argument(format!("UPLO '{other}' is neither 'L' nor 'U'"))),
    }
}

fn check(c: &InferCtx<'_>) -> Result<()> {
    upper(c.str("UPLO")?)?;
    square(c)
}

fn values(c: &InferCtx<'_>) -> Result<Dims> {
    let (batch, n, _) = matrices(c, 0)?;
    Ok(batch.iter().chain(&[n]).copied().collect())
}

pub(crate) fn eigh() -> Result<OpDef> {
    Ok(OpDef::new(&format!("eigh(A: {FIELDS}[2..]; UPLO: str = \"L\") -> (L, Q)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("eigh(Tensor A, String UPLO=\"L\") -> (Tensor L, Tensor Q)")
        .doc(
            "The eigenvalues of Hermitian matrices, from the least on, and the eigenvectors as columns of Q: `A = Q diag(L) Qᴴ`.\n\nOnly the \
             lower triangle of A is read, or with `UPLO=\"U\"` the upper one. An eigenvector has a positive element where it is largest. \
             The gradient of the vectors needs distinct eigenvalues.",
        )
        .check(check)
        .shapes(|c| Ok(smallvec![values(c)?, c.shape(0)?.into()]))
        .dtype(dtypes_of(|d| [real_of(d), d]))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 9))
        .cpu(|cx| with_field!(cx, kernel))
        .cuda(crate::cuda::eigh)
        .grad(Grad::rule_saving(&[], &[0, 1], gradient))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[3, 3]~; UPLO=U", "f64[1, 1]", "f64[2, 0, 0]"]))
}

/// Tridiagonal matrices of so many columns are divided, which is faster and more exact than faer's QR iterations below 128.
const DIVIDED: usize = 32;

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    // The lower triangle of the transposed matrix, whose eigenvectors are the conjugates.
    let upper = upper(cx.str("UPLO")?)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?.transposed(upper);
    let n = a.rows();
    if n == 0 {
        return Ok(());
    }
    struct Work<T> {
        a: Vec<T>,
        q: Vec<T>,
        scratch: Scratch,
    }
    let yes = ComputeEigenvectors::Yes;
    let auto = <SelfAdjointEvdParams as Auto<T>>::auto();
    let params: Spec<_, T> = Spec::new(SelfAdjointEvdParams { recursion_threshold: DIVIDED, ..auto });
    let make = || {
        let need = self_adjoint_evd_scratch::<T>(n, yes, Par::Seq, params);
        Ok(Work { a: a.room()?, q: zeros(n * n)?, scratch: Scratch::new(need)? })
    };
    each(cx, batch, &[9, n, n, n], make, |w, i, [values, vectors]| {
        a.read(i, &mut w.a);
        real_diagonal(n, &mut w.a);
        if (0..n).any(|c| !finite(&w.a[c * n + c..(c + 1) * n])) {
            return Err("has an infinity or a NaN, so it has no eigenvalues".to_string().into());
        }
        self_adjoint_evd(
            MatRef::from_column_major_slice(&w.a, n, n),
            faer::diag::DiagMut::from_slice_mut(values),
            Some(MatMut::from_column_major_slice_mut(&mut w.q, n, n)),
            Par::Seq,
            w.scratch.stack(),
            params,
        )
        .map_err(|_| "has eigenvalues that did not converge".to_string())?;
        let phases = phases(&w.q, n, n);
        by_rows(n, vectors, |r, c| {
            let q = phases[c] * w.q[c * n + r];
            if upper { q.conjugate() } else { q }
        });
        Ok(())
    })
}

/// As PyTorch's: dA = Q (diag(dL) + skew(Qᴴ dQ) / 2E) Qᴴ with E the differences of the eigenvalues. Both quotients are Hermitian, and so
/// is dA, whichever triangle was read.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (dl, dq) = (g.grad(0), g.grad(1));
    let (l, q) = (g.output(0)?, g.output(1)?);
    let mut w = Words(g);
    // (Q diag(dL)) Qᴴ and (Q M) Qᴴ.
    let along = dl.map(|dl| w.unsqueeze(dl, -2)).transpose()?;
    let mut left = along.map(|dl| w.mul(q, dl)).transpose()?;
    if let Some(dq) = dq {
        let m = w.ahb(q, dq)?;
        // Vectors turn, so the symmetric part of m, which would change their lengths and angles, does not count.
        let m = w.skew(m)?;
        let gaps = w.gaps(l)?;
        let m = w.div(m, gaps)?;
        let m = w.times(m, 0.5)?;
        let m = w.ab(q, m)?;
        left = Some(w.sum_of(left, m)?);
    }
    let Some(left) = left else { return Ok(()) };
    let da = w.abh(left, q)?;
    w.0.set(0, da)
}
