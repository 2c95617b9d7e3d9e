//! Eigenvalues of general matrices.

use crate::batch::{Field, Scratch, Source, batch_of, by_rows, each, finite, zeros};
use crate::rules::{DOMAIN, FIELDS, Words, cubes, dtypes_of, matrices, split_batch, square};
use crate::signs::phases;
use faer::diag::DiagMut;
use faer::linalg::evd::{ComputeEigenvectors, evd_cplx, evd_real, evd_scratch};
use faer::{MatMut, MatRef, Par};
use oflow::kernels::{Complex, Dims};
use oflow::ops::{Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

pub(crate) fn eig() -> Result<OpDef> {
    Ok(OpDef::new(&format!("eig(A: {FIELDS}[2..]) -> (L, V)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)")
        .doc(
            "The eigenvalues of square matrices, which are complex, and the eigenvectors as columns of V: `A V = V diag(L)`.\n\nThe \
             eigenvalues come in any order. An eigenvector has the length 1 and a positive element where it is largest. The gradient \
             needs distinct eigenvalues, and a loss that does not depend on the phases of the vectors.",
        )
        .check(square)
        .shapes(|c| {
            let (batch, n, _) = matrices(c, 0)?;
            Ok(smallvec![batch.iter().chain(&[n]).copied().collect::<Dims>(), c.shape(0)?.into()])
        })
        .dtype(dtypes_of(|d| [d.complex(), d.complex()]))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 25))
        .cpu(kernel)
        .cuda(crate::cuda::eig)
        .grad(Grad::rule_saving(&[], &[0, 1], gradient))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[2, 0, 0]"]))
}

/// The eigenvalues and the vectors, by columns, of a matrix of real or of complex numbers.
trait Eigen: Field {
    fn eigen(
        a: MatRef<'_, Self>,
        work: &mut Work<Self>,
        values: &mut [Complex<f64>],
        vectors: &mut [Complex<f64>],
    ) -> bool;
}

/// Memory that stays from one matrix of a batch to the next.
struct Work<T> {
    re: Vec<T>,
    im: Vec<T>,
    vectors: Vec<T>,
    scratch: Scratch,
}

impl Eigen for f64 {
    fn eigen(a: MatRef<'_, f64>, w: &mut Work<f64>, values: &mut [Complex<f64>], vectors: &mut [Complex<f64>]) -> bool {
        let n = a.nrows();
        let found = evd_real(
            a,
            DiagMut::from_slice_mut(&mut w.re),
            DiagMut::from_slice_mut(&mut w.im),
            None,
            Some(MatMut::from_column_major_slice_mut(&mut w.vectors, n, n)),
            Par::Seq,
            w.scratch.stack(),
            Default::default(),
        );
        values.iter_mut().zip(w.re.iter().zip(&w.im)).for_each(|(y, (re, im))| *y = Complex::new(*re, *im));
        // The columns of a pair of conjugate values are the real and the imaginary parts of the vector of the first.
        let column = |c: usize| &w.vectors[c * n..(c + 1) * n];
        let mut c = 0;
        while c < n {
            let pair = w.im[c] != 0.0 && c + 1 < n;
            for r in 0..n {
                let z = Complex::new(column(c)[r], if pair { column(c + 1)[r] } else { 0.0 });
                vectors[c * n + r] = z;
                if pair {
                    vectors[(c + 1) * n + r] = z.conj();
                }
            }
            c += if pair { 2 } else { 1 };
        }
        found.is_ok()
    }
}

impl Eigen for Complex<f64> {
    fn eigen(a: MatRef<'_, Self>, w: &mut Work<Self>, values: &mut [Self], vectors: &mut [Self]) -> bool {
        let n = a.nrows();
        let vectors = MatMut::from_column_major_slice_mut(vectors, n, n);
        let values = DiagMut::from_slice_mut(values);
        evd_cplx(a, values, None, Some(vectors), Par::Seq, w.scratch.stack(), Default::default()).is_ok()
    }
}

fn kernel(cx: &KernelCx<'_>) -> Result<()> {
    match cx.input(0)?.dtype().is_complex() {
        false => of_field::<f64>(cx),
        true => of_field::<Complex<f64>>(cx),
    }
}

fn of_field<T: Eigen>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    let (yes, no) = (ComputeEigenvectors::Yes, ComputeEigenvectors::No);
    let make = || {
        let scratch = Scratch::new(evd_scratch::<T>(n, no, yes, Par::Seq, Default::default()))?;
        let work = Work { re: zeros(n)?, im: zeros(n)?, vectors: zeros(n * n)?, scratch };
        Ok((a.room()?, work, zeros::<Complex<f64>>(n * n)?))
    };
    each(cx, batch, &[25, n, n, n], make, |(m, work, found), i, [values, vectors]| {
        a.read(i, m);
        if !finite(m) {
            return Err("has an infinity or a NaN, so it has no eigenvalues".to_string().into());
        }
        if n > 0 && !T::eigen(MatRef::from_column_major_slice(m, n, n), work, values, found) {
            return Err("has eigenvalues that did not converge".to_string().into());
        }
        for column in found.chunks_exact_mut(n.max(1)) {
            let length = column.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
            column.iter_mut().for_each(|x| *x /= length);
        }
        let phases = phases(found, n, n);
        by_rows(n, vectors, |r, c| phases[c] * found[c * n + r]);
        Ok(())
    })
}

/// As PyTorch's: dA = V⁻ᴴ (diag(dL) + (Vᴴ dV - Vᴴ V diag(Re(Vᴴ dV))) / conj(E)) Vᴴ with E the differences of the eigenvalues, of the
/// quotient without its diagonal. The second product keeps the lengths of the vectors.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (dl, dv) = (g.grad(0), g.grad(1));
    let (l, v) = (g.output(0)?, g.output(1)?);
    let mut w = Words(g);
    let mut inner = None;
    if let Some(dv) = dv {
        let m = w.ahb(v, dv)?;
        let along = [("dim1", (-2i64).into()), ("dim2", (-1i64).into())];
        let lengths = w.0.call("diagonal", &[m], &along)?;
        let lengths = w.0.call("real", &[lengths], &[])?;
        let lengths = w.unsqueeze(lengths, -2)?;
        let kept = w.mul(v, lengths)?;
        let kept = w.ahb(v, kept)?;
        let m = w.sub(m, kept)?;
        let gaps = w.gaps(l)?;
        let gaps = w.conj(gaps)?;
        let m = w.div(m, gaps)?;
        let (below, above) = (w.tril(m, -1)?, w.triu(m, 1)?);
        inner = Some(w.add(below, above)?);
    }
    if let Some(dl) = dl {
        let m = w.diag(dl)?;
        inner = Some(w.sum_of(inner, m)?);
    }
    let Some(inner) = inner else { return Ok(()) };
    let right = w.abh(inner, v)?;
    let vh = w.h(v)?;
    let da = w.0.call("linalg.solve", &[vh, right], &[])?;
    let da = w.as_input(da, 0)?;
    w.0.set(0, da)
}
