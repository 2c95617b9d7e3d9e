//! The Cholesky decomposition.

use crate::batch::{Real, Scratch, Source, batch_of, by_rows, each, with_real};
use crate::rules::{DOMAIN, Triangular, Words, cubes, split_batch, square};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::{MatMut, Par};
use num_traits::Float;
use oflow::ops::{DTypeRule, Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;

pub(crate) fn cholesky() -> Result<OpDef> {
    Ok(OpDef::new("cholesky(A: f32|f64[2..]; upper: bool = false) -> L")?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("cholesky(Tensor A, *, Bool upper=false) -> Tensor")
        .doc(
            "The lower triangular L with `A = L Lᵀ`, for symmetric positive definite matrices; with `upper` its transpose.\n\nOnly the \
             lower triangle of A is read, with `upper` the upper one. The gradient is symmetric. A matrix that is not positive definite \
             is an error that names it.",
        )
        .check(square)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_real!(cx, kernel))
        .grad(Grad::rule_saving(&[], &[0], gradient))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[3, 3]~; upper=true", "f64[1, 1]~", "f64[2, 0, 0]"]))
}

fn kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
    let upper = cx.bool("upper")?;
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?.transposed(upper);
    let n = a.rows();
    let make = || Ok((a.room()?, Scratch::new(cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default()))?));
    each(cx, batch, &[n, n, n], make, |(l, scratch), i, [part]| {
        a.read(i, l);
        let made = cholesky_in_place(
            MatMut::from_column_major_slice_mut(l, n, n),
            Default::default(),
            Par::Seq,
            scratch.stack(),
            Default::default(),
        );
        // faer compares pivots with zero, which a NaN passes.
        let not_positive = |x: &T| Float::is_nan(*x) || *x <= T::zero();
        let wrong = match made {
            Err(LltError::NonPositivePivot { index }) => Some(index),
            Ok(_) => l.iter().step_by(n + 1).position(not_positive),
        };
        if let Some(k) = wrong {
            return Err(
                format!("is not positive definite: its leading minor of order {} is not positive", k + 1).into()
            );
        }
        let lower = |r: usize, c: usize| if r >= c { l[c * n + r] } else { T::zero() };
        match upper {
            false => by_rows(n, part, lower),
            true => by_rows(n, part, |r, c| lower(c, r)),
        }
        Ok(())
    })
}

/// With Φ(X) the lower triangle of X with half its diagonal, dA = L⁻ᵀ Φ(Lᵀ dL) L⁻¹, made symmetric.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dl) = g.grad(0) else { return Ok(()) };
    let upper = g.bool("upper")?;
    let l = g.output(0)?;
    let mut w = Words(g);
    let inner = if upper { w.abt(l, dl)? } else { w.atb(l, dl)? };
    let low = w.tril(inner, 0)?;
    let strict = w.tril(inner, -1)?;
    let other = w.t(strict)?;
    let both = w.add(low, other)?;
    let half = w.times(both, 0.5)?;
    // L⁻ᵀ X, then X L⁻¹; of an upper factor U = Lᵀ these are U⁻¹ X and X U⁻ᵀ.
    let how = |left: bool| Triangular { upper, left, unitriangular: false, transpose: upper != left };
    let x = w.triangular(l, half, how(true))?;
    let da = w.triangular(l, x, how(false))?;
    w.0.set(0, da)
}
