//! Complex numbers: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{invoke1, op};
use crate::tensor::Tensor;
use smallvec::smallvec;

impl Tensor {
    /// Complex numbers as real ones: a last dim of 2 has the real and the imaginary part. It is a copy.
    ///
    /// ```text
    /// view_as_real(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of complex.
    #[track_caller]
    pub fn view_as_real(&self) -> Result<Tensor> {
        invoke1(op!("view_as_real"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// Real numbers, of which a last dim of 2 has the real and the imaginary part, as complex ones without that dim. It is a copy.
    ///
    /// ```text
    /// view_as_complex(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of f32 or f64.
    #[track_caller]
    pub fn view_as_complex(&self) -> Result<Tensor> {
        invoke1(op!("view_as_complex"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The complex numbers with these absolute values and angles, in radians.
    ///
    /// ```text
    /// polar(Tensor abs, Tensor angle) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (r, angle) = (ones([1], Device::Cpu)?, full([1], std::f64::consts::FRAC_PI_2, Device::Cpu)?);
    /// let z = r.polar(&angle)?;
    /// assert!((z.imag()?.item()? - 1.0).abs() < 1e-6 && z.real()?.item()?.abs() < 1e-6);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn polar(&self, angle: &Tensor) -> Result<Tensor> {
        super::super::complex::polar(self, angle, CallSite::here())
    }

    /// The angles of complex numbers, in radians from -π to π; of real ones 0, or π where x is negative.
    ///
    /// ```text
    /// angle(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn angle(&self) -> Result<Tensor> {
        super::super::complex::angle(self, CallSite::here())
    }

    /// The conjugate transpose: the last two dims exchanged, of the conjugates.
    ///
    /// ```text
    /// adjoint(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn adjoint(&self) -> Result<Tensor> {
        super::super::complex::adjoint(self, CallSite::here())
    }

    /// True where the imaginary part is 0, everywhere for real numbers.
    ///
    /// ```text
    /// isreal(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn isreal(&self) -> Result<Tensor> {
        super::super::complex::isreal(self, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("polar(Tensor abs, Tensor angle) -> Tensor", |b| Ok(vec![super::super::complex::polar(b.given(0)?, b.given(1)?, b.site)?])),
    ("angle(Tensor x) -> Tensor", |b| Ok(vec![super::super::complex::angle(b.given(0)?, b.site)?])),
    ("adjoint(Tensor x) -> Tensor", |b| Ok(vec![super::super::complex::adjoint(b.given(0)?, b.site)?])),
    ("isreal(Tensor x) -> Tensor", |b| Ok(vec![super::super::complex::isreal(b.given(0)?, b.site)?])),
];
