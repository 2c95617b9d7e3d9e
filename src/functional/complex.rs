//! Complex numbers: their parts, and real tensors as complex ones.

use super::shape::transpose;
use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Complex numbers";
    /// The complex numbers with these absolute values and angles, in radians.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (r, angle) = (ones([1], Device::Cpu)?, full([1], std::f64::consts::FRAC_PI_2, Device::Cpu)?);
    /// let z = r.polar(&angle)?;
    /// assert!((z.imag()?.item()? - 1.0).abs() < 1e-6 && z.real()?.item()?.abs() < 1e-6);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "polar(Tensor abs, Tensor angle) -> Tensor" = polar;
    /// The angles of complex numbers, in radians from -π to π; of real ones 0, or π where x is negative.
    "angle(Tensor x) -> Tensor" = angle;
    /// The conjugate transpose: the last two dims exchanged, of the conjugates.
    "adjoint(Tensor x) -> Tensor" = adjoint;
    /// True where the imaginary part is 0, everywhere for real numbers.
    "isreal(Tensor x) -> Tensor" = isreal;
}

by_name! {
    VALUES, "Complex numbers", Value;
    /// Whether the dtype is complex.
    "is_complex(Tensor x) -> Bool" = |b| Ok(b.given(0)?.dtype().is_complex().into());
}

fn unary(name: Result<&'static crate::ops::Op>, x: &Tensor, site: CallSite) -> Result<Tensor> {
    invoke1(name, &[Some(x)], smallvec![], smallvec![], site)
}

fn parts(x: &Tensor, site: CallSite) -> Result<(Tensor, Tensor)> {
    Ok((unary(op!("real"), x, site)?, unary(op!("imag"), x, site)?))
}

fn pair(re: &Tensor, im: &Tensor, site: CallSite) -> Result<Tensor> {
    invoke1(op!("complex"), &[Some(re), Some(im)], smallvec![], smallvec![], site)
}

pub(super) fn polar(abs: &Tensor, angle: &Tensor, site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let part = |of: &Tensor| invoke1(op!("mul"), &[Some(abs), Some(of)], smallvec![], smallvec![], site);
    let (re, im) = (part(&unary(op!("cos"), angle, site)?)?, part(&unary(op!("sin"), angle, site)?)?);
    drop(inner);
    pair(&re, &im, site)
}

/// False where x is a number, true where it is NaN.
fn not_a_number(x: &Tensor, site: CallSite) -> Result<Tensor> {
    unary(op!("isnan"), x, site)
}

pub(super) fn angle(x: &Tensor, site: CallSite) -> Result<Tensor> {
    if x.dtype().is_complex() {
        let inner = inner_calls();
        let (re, im) = parts(x, site)?;
        drop(inner);
        return invoke1(op!("atan2"), &[Some(&im), Some(&re)], smallvec![], smallvec![], site);
    }
    let inner = inner_calls();
    let real = if x.dtype().is_float() { x.clone() } else { x.cast_at(DType::F32, site)? };
    let (negative, nan) = (real.lt(0.0)?, not_a_number(&real, site)?);
    // 0 or pi: the slope is zero everywhere, also at NaN, and zeros have no sign.
    let y = real.masked_fill(&negative.logical_not()?, 0.0)?.masked_fill(&negative, std::f64::consts::PI)?;
    drop(inner);
    let fill = smallvec![f64::NAN.into()];
    invoke1(op!("masked_fill"), &[Some(&y), Some(&nan)], smallvec![], fill, site)
}

pub(super) fn adjoint(x: &Tensor, site: CallSite) -> Result<Tensor> {
    if x.ndim() < 2 {
        return Err(Error::shape("a matrix has at least 2 dims")
            .in_call(|| format!("adjoint({})", x.short()))
            .at(site));
    }
    let inner = inner_calls();
    let turned = transpose(x, -2, -1, site)?;
    drop(inner);
    unary(op!("conj"), &turned, site)
}

pub(super) fn isreal(x: &Tensor, site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    // Of real numbers something that is never below 0, NaN or not.
    let (of, test) = match x.dtype().is_complex() {
        true => (unary(op!("imag"), x, site)?, op!("eq_scalar")),
        false => (not_a_number(x, site)?, op!("ge_scalar")),
    };
    drop(inner);
    invoke1(test, &[Some(&of)], smallvec![], smallvec![Scalar::Int(0)], site)
}
