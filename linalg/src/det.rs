//! Determinants, by the LU decomposition.

use crate::batch::{Field, Source, Wrong, batch_of, by_rows, each, with_field, zeros};
use crate::lu::Lu;
use crate::rules::{DOMAIN, FIELDS, Words, cubes, dtypes_of, matrices, real_of, split_batch, square};
use crate::svd::Vectors;
use oflow::kernels::Dims;
use oflow::ops::{DTypeRule, Grad, InferCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

fn without_matrix(c: &InferCtx<'_>) -> Result<Dims> {
    Ok(matrices(c, 0)?.0.into())
}

pub(crate) fn det() -> Result<OpDef> {
    Ok(OpDef::new(&format!("det(A: {FIELDS}[2..]) -> y"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The determinant of each matrix of a batch `[.., n, n]`.\n\nThat of a singular matrix is 0 and has a gradient: the \
             cofactors, which are exact where the inverse is not there. Its second derivative needs the inverse.",
        )
        .check(square)
        .shape1(without_matrix)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_field!(cx, det_kernel))
        .cuda(crate::cuda::det)
        .grad(Grad::rule_saving(&[0], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let a = g.input(0)?;
            let cofactors = g.call("linalg.cofactor", &[a], &[])?;
            let mut w = Words(g);
            let cofactors = w.conj(cofactors)?;
            let dy = w.unsqueeze(dy, -1)?;
            let dy = w.unsqueeze(dy, -1)?;
            let da = w.mul(dy, cofactors)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]", "f64[2, 3, 3]", "f64[1, 1]", "f64[2, 0, 0]", "f64[4, 3, 2, 2]", "c128[3, 3]"]))
}

fn det_kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[n, n, n],
        || Lu::<T>::new(n, n, 0),
        |lu, i, [det]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            det[0] = lu.determinant();
            Ok(())
        },
    )
}

pub(crate) fn cofactor() -> Result<OpDef> {
    Ok(OpDef::new(&format!("cofactor(A: {FIELDS}[2..]) -> y"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The matrices of cofactors, which are the gradients of the determinants.\n\nElement `[i, j]` is the determinant without row \
             i and column j, with the sign of `(-1)^(i + j)`. Singular matrices have them too. The gradient needs the inverse.",
        )
        .by_name_only()
        .check(square)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 4))
        .cpu(|cx| with_field!(cx, cofactor_kernel))
        .cuda(crate::cuda::cofactor)
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // C = det(A) A⁻ᵀ, so the gradient of <G, C> is <G, C> A⁻ᵀ - A⁻ᵀ Gᵀ C, of complex numbers with the conjugates of A and C.
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let (a, c) = (g.input(0)?, g.output(0)?);
            let inverse = g.call("linalg.inv", &[a], &[])?;
            let mut w = Words(g);
            let (inverse, c) = (w.conj(inverse)?, w.conj(c)?);
            let product = w.mul(dy, c)?;
            let total = w.total(product)?;
            let it = w.t(inverse)?;
            let first = w.mul(total, it)?;
            let second = w.atbt(inverse, dy)?;
            let second = w.ab(second, c)?;
            let da = w.sub(first, second)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]", "f64[1, 1]", "f64[2, 2]", "c128[3, 3]"]))
}

fn cofactor_kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[4, n, n, n],
        || Ok((Lu::<T>::new(n, n, 0)?, zeros(n * n)?)),
        |(lu, inverse), i, [part]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            let (least, most) =
                lu.diagonal().fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), x| (l.min(x.size()), m.max(x.size())));
            // Far from singular, the inverse is as good and much cheaper.
            let near = if T::DTYPE == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }.sqrt();
            if least > near * most || !lu.finite {
                let det = lu.determinant();
                lu.invert(inverse);
                // By columns, so this transposes: C = det A⁻ᵀ.
                part.iter_mut().zip(inverse).for_each(|(y, x)| *y = det * *x);
            } else {
                let c = cofactors_by_svd(&a, i)?;
                by_rows(n, part, |r, col| c[col * n + r]);
            }
            Ok(())
        },
    )
}

/// The cofactors of any finite matrix, from A = U S Vᴴ: the conjugates of conj(det(U Vᴴ)) U diag(the products of the other singular
/// values) Vᴴ.
fn cofactors_by_svd<T: Field>(a: &Source<'_, T>, index: usize) -> Result<Vec<T>, Wrong> {
    let n = a.rows();
    let (mut vectors, mut s) = (Vectors::new(a, false)?, zeros::<T>(n)?);
    vectors.decompose(a, index, &mut s)?;
    let (u, v) = (&vectors.u, &vectors.v);
    let mut lu = Lu::<T>::new(n, n, 0)?;
    let mut of = |q: &[T]| {
        lu.both.clear();
        lu.both.extend_from_slice(q);
        lu.decompose();
        lu.determinant().direction()
    };
    let turn = of(u) * of(v).conjugate();
    let others = |k: usize| s.iter().enumerate().filter(|(j, _)| *j != k).fold(T::one(), |p, (_, s)| p * *s);
    let mut c = zeros(n * n)?;
    for k in 0..n {
        let by = turn * others(k);
        for col in 0..n {
            for r in 0..n {
                c[col * n + r] += by * (u[k * n + r].conjugate() * v[k * n + col]);
            }
        }
    }
    Ok(c)
}

pub(crate) fn slogdet() -> Result<OpDef> {
    Ok(OpDef::new(&format!("slogdet(A: {FIELDS}[2..]) -> (sign, logabsdet)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The sign and the logarithm of the absolute value of each determinant, where the determinant itself may not be \
             representable.\n\nA singular matrix gives 0 and -inf; its gradient is an error.",
        )
        .check(square)
        .shapes(|c| without_matrix(c).map(|s| smallvec![s.clone(), s]))
        .dtype(dtypes_of(|d| [d, real_of(d)]))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_field!(cx, slogdet_kernel))
        .cuda(crate::cuda::det)
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // The slope of a real sign is 0 everywhere. A complex one turns by the imaginary part of tr(A⁻¹ dA).
            let (turn, mut dy) = (g.grad(0), g.grad(1));
            let (a, sign) = (g.input(0)?, g.output(0)?);
            let mut w = Words(g);
            if let Some(turn) = turn.filter(|_| w.is_complex(sign)) {
                let sign = w.conj(sign)?;
                let turn = w.mul(turn, sign)?;
                let turn = w.0.call("imag", &[turn], &[])?;
                let log = dy.map_or_else(|| w.0.call("zeros_like", &[turn], &[]), Ok)?;
                dy = Some(w.0.call("complex", &[log, turn], &[])?);
            }
            let Some(dy) = dy else { return Ok(()) };
            let inverse = w.0.call("linalg.inv", &[a], &[])?;
            let dy = w.unsqueeze(dy, -1)?;
            let dy = w.unsqueeze(dy, -1)?;
            let it = w.h(inverse)?;
            let da = w.mul(dy, it)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[1, 1]", "f64[2, 2, 2]", "f64[2, 0, 0]", "c128[3, 3]"]))
}

fn slogdet_kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[n, n, n],
        || Lu::<T>::new(n, n, 0),
        |lu, i, [sign, log]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            let of = |x: T| if x.size().is_nan() { x } else { x.direction() };
            (sign[0], log[0]) = match lu.null() {
                Some(_) => (T::zero(), T::real(f64::NEG_INFINITY)),
                None => (
                    lu.diagonal().fold(lu.sign(), |p, x| p * of(x)),
                    T::real(lu.diagonal().fold(0.0, |l, x| l + x.size().ln())),
                ),
            };
            Ok(())
        },
    )
}
