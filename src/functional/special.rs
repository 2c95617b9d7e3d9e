//! Special functions that are several ops.

use super::shape::in_method;
use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Elementwise";
    /// The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(x - i / 2)` for i below p, and a constant.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = full([1], 3.0, Device::Cpu)?;
    /// assert!((x.mvlgamma(1)?.item()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "mvlgamma(Tensor x, Int p) -> Tensor" = mvlgamma;
    /// Mantissas, from 1/2 to 1, and exponents, i32: x is the mantissa times 2 to the power of the exponent.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let parts = from_vec(vec![6.0f32, -0.25], [2], Device::Cpu)?.frexp()?;
    /// assert_eq!((parts[0].to_vec::<f32>()?, parts[1].to_vec::<i32>()?), (vec![0.75, -0.5], vec![3, -1]));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "frexp(Tensor x) -> (Tensor mantissa, Tensor exponent)" = frexp;
    /// x to the power of the exponents, computed in f64, or in c128 where one of both is complex.
    "float_power(Tensor x, Tensor exponent) -> Tensor" = float_power;
    /// The number next to a towards b, of those that the dtype has.
    "nextafter(Tensor a, Tensor b) -> Tensor" = nextafter;
}

by_name! {
    NUMBERS, "Elementwise", ByName;
    /// x to the power of a number, computed in f64, or in c128 where one of both is complex.
    "float_power(Tensor x, Scalar exponent) -> Tensor" = |b| b.site.run(|| {
        Ok(vec![doubled(b.given(0)?, b.scalar(1)?.kind())?.pow(b.scalar(1)?)?])
    });
    /// A number to the power of the exponents, computed in f64, or in c128 where one of both is complex.
    "float_power(Scalar x, Tensor exponent) -> Tensor" = |b| b.site.run(|| {
        let exponent = doubled(b.given(1)?, b.scalar(0)?.kind())?;
        Ok(vec![invoke1(op!("rpow_scalar"), &[Some(&exponent)], smallvec![], smallvec![b.scalar(0)?], b.site)?])
    });
}

/// The tensor in the dtype that `float_power` computes in, together with something of another kind.
fn doubled(x: &Tensor, with: DTypeKind) -> Result<Tensor> {
    let inner = inner_calls();
    let complex = x.dtype().is_complex() || with == DTypeKind::Complex;
    let y = x.cast(if complex { DType::C128 } else { DType::F64 });
    drop(inner);
    y
}

pub(super) fn float_power(x: &Tensor, exponent: &Tensor, site: CallSite) -> Result<Tensor> {
    site.run(|| doubled(x, exponent.dtype().kind())?.pow(&doubled(exponent, x.dtype().kind())?))
}

pub(super) fn nextafter(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    let half = |digits: f64, least: f64, most: f64| {
        let numbers = smallvec![digits.into(), least.into(), most.into()];
        invoke1(op!("next_half"), &[Some(a), Some(b)], smallvec![], numbers, site)
    };
    match a.dtype() {
        DType::BF16 if b.dtype() == DType::BF16 => half(8.0, -133.0, 3.3895313892515355e38),
        DType::F16 if b.dtype() == DType::F16 => half(11.0, -24.0, 65504.0),
        _ => invoke1(op!("nextafter"), &[Some(a), Some(b)], smallvec![], smallvec![], site),
    }
}

pub(super) fn mvlgamma(x: &Tensor, p: i64, site: CallSite) -> Result<Tensor> {
    // It is a sum of as many terms.
    if !(1..=1 << 16).contains(&p) {
        return Err(in_method("mvlgamma", x, site)(Error::argument(format!(
            "expected a dimension p from 1 to 65536, got {p}"
        ))));
    }
    let _scope = site.scope();
    let inner = inner_calls();
    let lgamma = |x: &Tensor| invoke1(op!("lgamma"), &[Some(x)], smallvec![], smallvec![], site);
    let mut sum = lgamma(x)?;
    for i in 1..p {
        sum = sum.add(&lgamma(&x.sub(0.5 * i as f64)?)?)?;
    }
    drop(inner);
    sum.add(0.25 * (p * (p - 1)) as f64 * std::f64::consts::PI.ln())
}

pub(super) fn frexp(x: &Tensor, site: CallSite) -> Result<Vec<Tensor>> {
    let part = |op| invoke1(op, &[Some(x)], smallvec![], smallvec![], site);
    Ok(vec![part(op!("frexp_mantissa"))?, part(op!("frexp_exponent"))?])
}
