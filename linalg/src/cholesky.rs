//! The Cholesky decomposition.

use crate::batch::{Field, Scratch, Source, batch_of, by_rows, each, real_diagonal, with_field};
use crate::rules::{DOMAIN, FIELDS, Triangular, Words, cubes, dtypes_of, matrices, split_batch, square};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::{MatMut, Par};
use oflow::ops::{DTypeRule, Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

pub(crate) fn cholesky() -> Result<OpDef> {
    Ok(OpDef::new(&format!("cholesky(A: {FIELDS}[2..]; upper: bool = false) -> L"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("cholesky(Tensor A, *, Bool upper=false) -> Tensor")
        .doc(
            "The lower triangular L with `A = L Lᴴ`, for Hermitian positive definite matrices; with `upper` the Lᴴ.\n\nOnly the \
             lower triangle of A is read, with `upper` the upper one. The gradient of real matrices is symmetric. A matrix that is not positive definite \
             is an error that names it.",
        )
        .check(square)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_field!(cx, kernel))
        .cuda(crate::cuda::cholesky)
        .grad(Grad::rule_saving(&[], &[0], gradient))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[3, 3]~; upper=true", "f64[1, 1]~", "f64[2, 0, 0]"]))
}

pub(crate) fn cholesky_with_info() -> Result<OpDef> {
    Ok(OpDef::new(&format!("cholesky_decomposition(A: {FIELDS}[2..]; upper: bool = false) -> (L, info: no_grad)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "`cholesky` that refuses no matrix: `info` is 0, or the order of the first leading minor that is not positive, and L of \
             no meaning.",
        )
        .by_name_only()
        .check(square)
        .shapes(|c| {
            let (batch, ..) = matrices(c, 0)?;
            Ok(smallvec![c.shape(0)?.into(), batch.into()])
        })
        .dtype(dtypes_of(|d| [d, DType::I32]))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_field!(cx, kernel_with_info))
        .cuda(crate::cuda::cholesky)
        .grad(Grad::rule_saving(&[], &[0], gradient))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~; upper=true", "f64[2, 0, 0]"]))
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    decompose::<T, 1>(cx)
}

fn kernel_with_info<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    decompose::<T, 2>(cx)
}

/// With an output for `info` no matrix is refused.
fn decompose<T: Field, const N: usize>(cx: &KernelCx<'_>) -> Result<()> {
    let upper = cx.bool("upper")?;
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?.transposed(upper);
    let n = a.rows();
    let make = || Ok((a.room()?, Scratch::new(cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default()))?));
    each(cx, batch, &[n, n, n], make, |(l, scratch), i, mut parts: [&mut [T]; N]| {
        a.read(i, l);
        real_diagonal(n, l);
        let made = cholesky_in_place(
            MatMut::from_column_major_slice_mut(l, n, n),
            Default::default(),
            Par::Seq,
            scratch.stack(),
            Default::default(),
        );
        // faer compares pivots with zero, which a NaN passes.
        let not_positive = |x: &T| x.parts().0.is_nan() || x.parts().0 <= 0.0;
        let wrong = match made {
            Err(LltError::NonPositivePivot { index }) => Some(index),
            Ok(_) => l.iter().step_by(n + 1).position(not_positive),
        };
        let order = wrong.map_or(0, |k| k + 1);
        match parts.get_mut(1) {
            Some(info) => info[0] = T::real(order as f64),
            None if order > 0 => {
                return Err(
                    format!("is not positive definite: its leading minor of order {order} is not positive").into()
                );
            }
            None => {}
        }
        let Some(part) = parts.first_mut() else { return Ok(()) };
        let lower = |r: usize, c: usize| if r >= c { l[c * n + r] } else { T::zero() };
        match upper {
            false => by_rows(n, part, lower),
            true => by_rows(n, part, |r, c| lower(c, r)),
        }
        Ok(())
    })
}

/// With Φ(X) the lower triangle of X with half its diagonal, dA = L⁻ᴴ Φ(Lᴴ dL) L⁻¹, made Hermitian but for the imaginary parts of the
/// diagonal of Lᴴ dL, which stay as in PyTorch.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dl) = g.grad(0) else { return Ok(()) };
    let upper = g.bool("upper")?;
    let l = g.output(0)?;
    let mut w = Words(g);
    let inner = if upper { w.abh(l, dl)? } else { w.ahb(l, dl)? };
    let low = w.tril(inner, 0)?;
    let strict = w.tril(inner, -1)?;
    let other = w.h(strict)?;
    let both = w.add(low, other)?;
    let half = w.times(both, 0.5)?;
    // L⁻ᴴ X, then X L⁻¹; of an upper factor U = Lᴴ these are U⁻¹ X and X U⁻ᴴ.
    let how = |left: bool| Triangular { upper, left, unitriangular: false, transpose: upper != left };
    let conjugate = w.conj(l)?;
    let (first, second) = if upper { (l, conjugate) } else { (conjugate, l) };
    let x = w.triangular(first, half, how(true))?;
    let da = w.triangular(second, x, how(false))?;
    w.0.set(0, da)
}
