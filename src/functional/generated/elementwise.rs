//! Elementwise: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, Operand, RightOperand, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

/// Options of [`Tensor::addcmul_with`](crate::Tensor::addcmul_with).
#[derive(Clone, Debug)]
pub struct AddcmulOptions {
    /// `Scalar value=1`. `Scalar::Int(1)` by default.
    pub value: Scalar,
}

impl Default for AddcmulOptions {
    fn default() -> AddcmulOptions {
        AddcmulOptions {
            value: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::addcdiv_with`](crate::Tensor::addcdiv_with).
#[derive(Clone, Debug)]
pub struct AddcdivOptions {
    /// `Scalar value=1`. `Scalar::Int(1)` by default.
    pub value: Scalar,
}

impl Default for AddcdivOptions {
    fn default() -> AddcdivOptions {
        AddcdivOptions {
            value: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::isin_with`](crate::Tensor::isin_with).
#[derive(Clone, Debug, Default)]
pub struct IsinOptions {
    /// `Bool invert=false`. `false` by default.
    pub invert: bool,
}

/// a where cond is true, else b. The three shapes broadcast.
///
/// ```text
/// where(Tensor cond, Tensor a, Tensor b) -> Tensor
/// ```
///
/// # Errors
/// If the shapes do not broadcast.
#[track_caller]
pub fn where_(cond: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    invoke1(op!("where"), &[Some(cond), Some(a), Some(b)], smallvec![], smallvec![], CallSite::here())
}

impl Tensor {
    /// A copy in new memory. The gradient passes through.
    ///
    /// ```text
    /// copy(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        invoke1(op!("copy"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// -x.
    ///
    /// ```text
    /// neg(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn neg(&self) -> Result<Tensor> {
        invoke1(op!("neg"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// |x|; of complex numbers a real number.
    ///
    /// ```text
    /// abs(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn abs(&self) -> Result<Tensor> {
        invoke1(op!("abs"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x / |x|, and 0 of 0: -1, 0 or 1 for real numbers.
    ///
    /// ```text
    /// sgn(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sgn(&self) -> Result<Tensor> {
        invoke1(op!("sgn"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The complex conjugate; of real numbers x itself.
    ///
    /// ```text
    /// conj(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn conj(&self) -> Result<Tensor> {
        invoke1(op!("conj"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The real part; of real numbers x itself.
    ///
    /// ```text
    /// real(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn real(&self) -> Result<Tensor> {
        invoke1(op!("real"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The imaginary part of complex numbers.
    ///
    /// ```text
    /// imag(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of complex.
    #[track_caller]
    pub fn imag(&self) -> Result<Tensor> {
        invoke1(op!("imag"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The complex numbers re + i im, c64 of f32 and c128 of f64.
    ///
    /// ```text
    /// complex(Tensor re, Tensor im) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `re` is not a tensor of f32 or f64, or `im` is not a tensor of f32 or f64, or the shapes do not broadcast.
    #[track_caller]
    pub fn complex(&self, im: &Tensor) -> Result<Tensor> {
        invoke1(op!("complex"), &[Some(self), Some(im)], smallvec![], smallvec![], CallSite::here())
    }

    /// -1, 0 or 1, in the dtype of x.
    ///
    /// ```text
    /// sign(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sign(&self) -> Result<Tensor> {
        invoke1(op!("sign"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x²; of bools integers.
    ///
    /// ```text
    /// square(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn square(&self) -> Result<Tensor> {
        invoke1(op!("square"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The largest integer not above x.
    ///
    /// ```text
    /// floor(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn floor(&self) -> Result<Tensor> {
        invoke1(op!("floor"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The smallest integer not below x.
    ///
    /// ```text
    /// ceil(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn ceil(&self) -> Result<Tensor> {
        invoke1(op!("ceil"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The nearest integer, ties to even.
    ///
    /// ```text
    /// round(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn round(&self) -> Result<Tensor> {
        invoke1(op!("round"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The integer part: x rounded towards zero.
    ///
    /// ```text
    /// trunc(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn trunc(&self) -> Result<Tensor> {
        invoke1(op!("trunc"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// What x has behind the point, with the sign of x.
    ///
    /// ```text
    /// frac(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn frac(&self) -> Result<Tensor> {
        invoke1(op!("frac"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// eˣ.
    ///
    /// ```text
    /// exp(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn exp(&self) -> Result<Tensor> {
        invoke1(op!("exp"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// eˣ - 1, accurate near zero.
    ///
    /// ```text
    /// expm1(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn expm1(&self) -> Result<Tensor> {
        invoke1(op!("expm1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The natural logarithm.
    ///
    /// ```text
    /// log(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn log(&self) -> Result<Tensor> {
        invoke1(op!("log"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// log(1 + x), accurate near zero.
    ///
    /// ```text
    /// log1p(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn log1p(&self) -> Result<Tensor> {
        invoke1(op!("log1p"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The square root; NaN below zero.
    ///
    /// ```text
    /// sqrt(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sqrt(&self) -> Result<Tensor> {
        invoke1(op!("sqrt"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// 1 / √x.
    ///
    /// ```text
    /// rsqrt(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn rsqrt(&self) -> Result<Tensor> {
        invoke1(op!("rsqrt"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// 1 / x.
    ///
    /// ```text
    /// reciprocal(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn reciprocal(&self) -> Result<Tensor> {
        invoke1(op!("reciprocal"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The sine, of radians.
    ///
    /// ```text
    /// sin(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sin(&self) -> Result<Tensor> {
        invoke1(op!("sin"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The cosine, of radians.
    ///
    /// ```text
    /// cos(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn cos(&self) -> Result<Tensor> {
        invoke1(op!("cos"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The tangent, of radians.
    ///
    /// ```text
    /// tan(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn tan(&self) -> Result<Tensor> {
        invoke1(op!("tan"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse sine, in radians from -π/2 to π/2; NaN outside -1 to 1.
    ///
    /// ```text
    /// asin(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn asin(&self) -> Result<Tensor> {
        invoke1(op!("asin"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse cosine, in radians from 0 to π; NaN outside -1 to 1.
    ///
    /// ```text
    /// acos(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn acos(&self) -> Result<Tensor> {
        invoke1(op!("acos"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse tangent, in radians from -π/2 to π/2.
    ///
    /// ```text
    /// atan(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn atan(&self) -> Result<Tensor> {
        invoke1(op!("atan"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The hyperbolic sine.
    ///
    /// ```text
    /// sinh(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sinh(&self) -> Result<Tensor> {
        invoke1(op!("sinh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The hyperbolic cosine.
    ///
    /// ```text
    /// cosh(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn cosh(&self) -> Result<Tensor> {
        invoke1(op!("cosh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse hyperbolic sine.
    ///
    /// ```text
    /// asinh(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn asinh(&self) -> Result<Tensor> {
        invoke1(op!("asinh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse hyperbolic cosine; NaN below 1.
    ///
    /// ```text
    /// acosh(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn acosh(&self) -> Result<Tensor> {
        invoke1(op!("acosh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse hyperbolic tangent; NaN outside -1 to 1.
    ///
    /// ```text
    /// atanh(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn atanh(&self) -> Result<Tensor> {
        invoke1(op!("atanh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// 2ˣ.
    ///
    /// ```text
    /// exp2(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn exp2(&self) -> Result<Tensor> {
        invoke1(op!("exp2"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The logarithm to base 2.
    ///
    /// ```text
    /// log2(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn log2(&self) -> Result<Tensor> {
        invoke1(op!("log2"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The logarithm to base 10.
    ///
    /// ```text
    /// log10(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn log10(&self) -> Result<Tensor> {
        invoke1(op!("log10"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The error function.
    ///
    /// ```text
    /// erf(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn erf(&self) -> Result<Tensor> {
        invoke1(op!("erf"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// 1 - erf(x), exact where erf(x) is nearly 1.
    ///
    /// ```text
    /// erfc(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn erfc(&self) -> Result<Tensor> {
        invoke1(op!("erfc"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// Degrees in radians.
    ///
    /// ```text
    /// deg2rad(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn deg2rad(&self) -> Result<Tensor> {
        invoke1(op!("deg2rad"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// Radians in degrees.
    ///
    /// ```text
    /// rad2deg(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn rad2deg(&self) -> Result<Tensor> {
        invoke1(op!("rad2deg"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// sin(πx) / (πx), and 1 of 0.
    ///
    /// ```text
    /// sinc(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sinc(&self) -> Result<Tensor> {
        invoke1(op!("sinc"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where x is zero.
    ///
    /// ```text
    /// logical_not(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn logical_not(&self) -> Result<Tensor> {
        invoke1(op!("logical_not"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where x is NaN.
    ///
    /// ```text
    /// isnan(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn isnan(&self) -> Result<Tensor> {
        invoke1(op!("isnan"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where x is infinite.
    ///
    /// ```text
    /// isinf(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn isinf(&self) -> Result<Tensor> {
        invoke1(op!("isinf"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where x is neither infinite nor NaN.
    ///
    /// ```text
    /// isfinite(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn isfinite(&self) -> Result<Tensor> {
        invoke1(op!("isfinite"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where x is inf.
    ///
    /// ```text
    /// isposinf(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn isposinf(&self) -> Result<Tensor> {
        invoke1(op!("isposinf"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where x is -inf.
    ///
    /// ```text
    /// isneginf(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn isneginf(&self) -> Result<Tensor> {
        invoke1(op!("isneginf"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// Every bit of an integer turned: -x - 1 of signed ones. A bool is one bit.
    ///
    /// ```text
    /// bitwise_not(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of integer.
    #[track_caller]
    pub fn bitwise_not(&self) -> Result<Tensor> {
        invoke1(op!("bitwise_not"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// a + b.
    ///
    /// ```text
    /// add(Tensor a, Tensor b) -> Tensor
    /// add(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2, 1], Device::Cpu)?;
    /// let y = arange(3, Device::Cpu)?;
    /// assert_eq!(x.add(&y)?.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn add<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("add"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("add_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a - b.
    ///
    /// ```text
    /// sub(Tensor a, Tensor b) -> Tensor
    /// sub(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn sub<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("sub"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("sub_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a b, element by element.
    ///
    /// ```text
    /// mul(Tensor a, Tensor b) -> Tensor
    /// mul(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn mul<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("mul"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("mul_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a / b; of integers, a float.
    ///
    /// ```text
    /// div(Tensor a, Tensor b) -> Tensor
    /// div(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn div<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("div"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("div_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a to the power b.
    ///
    /// ```text
    /// pow(Tensor a, Tensor b) -> Tensor
    /// pow(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn pow<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("pow"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("pow_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The larger element of each pair; NaN if either is NaN.
    ///
    /// ```text
    /// maximum(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn maximum(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("maximum"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The smaller element of each pair; NaN if either is NaN.
    ///
    /// ```text
    /// minimum(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn minimum(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("minimum"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The remainder of a / b with the sign of a. Integers divided by 0 are an error.
    ///
    /// ```text
    /// fmod(Tensor a, Tensor b) -> Tensor
    /// fmod(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn fmod<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("fmod"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("fmod_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The remainder of a / b with the sign of b. Integers divided by 0 are an error.
    ///
    /// ```text
    /// remainder(Tensor a, Tensor b) -> Tensor
    /// remainder(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn remainder<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("remainder"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("remainder_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a / b rounded down. Integers divided by 0 are an error.
    ///
    /// ```text
    /// floor_divide(Tensor a, Tensor b) -> Tensor
    /// floor_divide(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn floor_divide<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("floor_divide"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("floor_divide_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The angle of the point (b, a) seen from the origin, in radians from -π to π.
    ///
    /// ```text
    /// atan2(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn atan2(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("atan2"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// √(a² + b²), also where the squares overflow.
    ///
    /// ```text
    /// hypot(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float, or `b` is not a tensor of float, or the shapes do not broadcast.
    #[track_caller]
    pub fn hypot(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("hypot"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// log(eᵃ + eᵇ), also where the powers overflow.
    ///
    /// ```text
    /// logaddexp(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float, or `b` is not a tensor of float, or the shapes do not broadcast.
    #[track_caller]
    pub fn logaddexp(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("logaddexp"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// log2(2ᵃ + 2ᵇ), also where the powers overflow.
    ///
    /// ```text
    /// logaddexp2(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float, or `b` is not a tensor of float, or the shapes do not broadcast.
    #[track_caller]
    pub fn logaddexp2(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("logaddexp2"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The larger element of each pair, or the one that is not NaN.
    ///
    /// ```text
    /// fmax(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn fmax(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("fmax"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The smaller element of each pair, or the one that is not NaN.
    ///
    /// ```text
    /// fmin(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn fmin(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("fmin"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// |a| with the sign of b, also where b is zero.
    ///
    /// ```text
    /// copysign(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn copysign(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("copysign"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// a times 2 to the power b.
    ///
    /// ```text
    /// ldexp(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn ldexp(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("ldexp"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// a log(b), and 0 where a is zero.
    ///
    /// ```text
    /// xlogy(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn xlogy(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("xlogy"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// 0 where x is below zero, 1 where it is above, and the element of `values` where it is zero.
    ///
    /// ```text
    /// heaviside(Tensor x, Tensor values) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn heaviside(&self, values: &Tensor) -> Result<Tensor> {
        invoke1(op!("heaviside"), &[Some(self), Some(values)], smallvec![], smallvec![], CallSite::here())
    }

    /// The bits that both have.
    ///
    /// ```text
    /// bitwise_and(Tensor a, Tensor b) -> Tensor
    /// bitwise_and(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of int or bool, or `b` is not a tensor of int or bool, or the shapes do not broadcast.
    #[track_caller]
    pub fn bitwise_and<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("bitwise_and"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("bitwise_and_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The bits that at least one has.
    ///
    /// ```text
    /// bitwise_or(Tensor a, Tensor b) -> Tensor
    /// bitwise_or(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of int or bool, or `b` is not a tensor of int or bool, or the shapes do not broadcast.
    #[track_caller]
    pub fn bitwise_or<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("bitwise_or"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("bitwise_or_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The bits that exactly one has.
    ///
    /// ```text
    /// bitwise_xor(Tensor a, Tensor b) -> Tensor
    /// bitwise_xor(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of int or bool, or `b` is not a tensor of int or bool, or the shapes do not broadcast.
    #[track_caller]
    pub fn bitwise_xor<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("bitwise_xor"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("bitwise_xor_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a shifted left by b bits; 0 where b is negative or no bit is left.
    ///
    /// ```text
    /// bitwise_left_shift(Tensor a, Tensor b) -> Tensor
    /// bitwise_left_shift(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast.
    #[track_caller]
    pub fn bitwise_left_shift<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("bitwise_left_shift"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("bitwise_left_shift_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a shifted right by b bits, with its sign; the sign alone where b is negative or no bit is left.
    ///
    /// ```text
    /// bitwise_right_shift(Tensor a, Tensor b) -> Tensor
    /// bitwise_right_shift(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast.
    #[track_caller]
    pub fn bitwise_right_shift<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("bitwise_right_shift"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("bitwise_right_shift_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where a == b.
    ///
    /// ```text
    /// eq(Tensor a, Tensor b) -> Tensor
    /// eq(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn eq<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("eq"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("eq_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where a != b.
    ///
    /// ```text
    /// ne(Tensor a, Tensor b) -> Tensor
    /// ne(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn ne<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("ne"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("ne_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where a < b.
    ///
    /// ```text
    /// lt(Tensor a, Tensor b) -> Tensor
    /// lt(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn lt<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("lt"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("lt_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where a <= b.
    ///
    /// ```text
    /// le(Tensor a, Tensor b) -> Tensor
    /// le(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn le<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("le"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("le_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where a > b.
    ///
    /// ```text
    /// gt(Tensor a, Tensor b) -> Tensor
    /// gt(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn gt<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("gt"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("gt_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where a >= b.
    ///
    /// ```text
    /// ge(Tensor a, Tensor b) -> Tensor
    /// ge(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn ge<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => invoke1(op!("ge"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("ge_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// True where both elements are nonzero.
    ///
    /// ```text
    /// logical_and(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn logical_and(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("logical_and"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where at least one element is nonzero.
    ///
    /// ```text
    /// logical_or(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn logical_or(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("logical_or"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// True where exactly one element is nonzero.
    ///
    /// ```text
    /// logical_xor(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn logical_xor(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("logical_xor"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// a + weight (b - a): a where the weight is 0, b where it is 1.
    ///
    /// ```text
    /// lerp(Tensor a, Tensor b, Tensor weight) -> Tensor
    /// lerp(Tensor a, Tensor b, Scalar weight) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float or complex, or `b` is not a tensor of float or complex, or `weight` is not a tensor of float or complex, or the shapes do not broadcast.
    #[track_caller]
    pub fn lerp<'a>(&self, b: &Tensor, weight: impl Into<RightOperand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        let weight = weight.into();
        match weight.operand() {
            Operand::Tensor(weight) => invoke1(op!("lerp"), &[Some(self), Some(b), Some(weight)], smallvec![], smallvec![], site),
            Operand::Scalar(weight) => invoke1(op!("lerp_scalar"), &[Some(self), Some(b)], smallvec![], smallvec![weight], site),
        }
    }

    /// x + value a b.
    ///
    /// ```text
    /// addcmul(Tensor x, Tensor a, Tensor b, *, Scalar value=1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn addcmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("addcmul"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![Scalar::Int(1)], CallSite::here())
    }

    /// [`Tensor::addcmul`](crate::Tensor::addcmul) with its options.
    #[track_caller]
    pub fn addcmul_with(
        &self,
        a: &Tensor,
        b: &Tensor,
        options: &crate::functional::AddcmulOptions,
    ) -> Result<Tensor> {
        invoke1(op!("addcmul"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![options.value], CallSite::here())
    }

    /// x + value a / b.
    ///
    /// ```text
    /// addcdiv(Tensor x, Tensor a, Tensor b, *, Scalar value=1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float or complex, or `a` is not a tensor of float or complex, or `b` is not a tensor of float or complex, or the shapes do not broadcast.
    #[track_caller]
    pub fn addcdiv(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("addcdiv"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![Scalar::Int(1)], CallSite::here())
    }

    /// [`Tensor::addcdiv`](crate::Tensor::addcdiv) with its options.
    #[track_caller]
    pub fn addcdiv_with(
        &self,
        a: &Tensor,
        b: &Tensor,
        options: &crate::functional::AddcdivOptions,
    ) -> Result<Tensor> {
        invoke1(op!("addcdiv"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![options.value], CallSite::here())
    }

    /// s - x.
    ///
    /// ```text
    /// rsub(Tensor x, Scalar s) -> Tensor
    /// ```
    #[track_caller]
    pub fn rsub(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("rsub_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], CallSite::here())
    }

    /// s / x.
    ///
    /// ```text
    /// rdiv(Tensor x, Scalar s) -> Tensor
    /// ```
    #[track_caller]
    pub fn rdiv(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("rdiv_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], CallSite::here())
    }

    /// s to the power x.
    ///
    /// ```text
    /// rpow(Tensor x, Scalar s) -> Tensor
    /// ```
    #[track_caller]
    pub fn rpow(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("rpow_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], CallSite::here())
    }

    /// x, but not below min.
    ///
    /// ```text
    /// clamp_min(Tensor x, Scalar min) -> Tensor
    /// ```
    #[track_caller]
    pub fn clamp_min(&self, min: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("clamp_min"), &[Some(self)], smallvec![], smallvec![min.into()], CallSite::here())
    }

    /// x, but not above max.
    ///
    /// ```text
    /// clamp_max(Tensor x, Scalar max) -> Tensor
    /// ```
    #[track_caller]
    pub fn clamp_max(&self, max: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("clamp_max"), &[Some(self)], smallvec![], smallvec![max.into()], CallSite::here())
    }

    /// x, but not below lo and not above hi.
    ///
    /// ```text
    /// clamp(Tensor x, Scalar lo, Scalar hi) -> Tensor
    /// ```
    #[track_caller]
    pub fn clamp(&self, lo: impl Into<Scalar>, hi: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("clamp"), &[Some(self)], smallvec![], smallvec![lo.into(), hi.into()], CallSite::here())
    }

    /// s where the mask is true, else x. Shapes broadcast.
    ///
    /// ```text
    /// masked_fill(Tensor x, Tensor mask, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, s: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("masked_fill"), &[Some(self), Some(mask)], smallvec![], smallvec![s.into()], CallSite::here())
    }

    /// The logarithm of |Γ(x)|: inf at 0 and at negative integers.
    ///
    /// ```text
    /// lgamma(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn lgamma(&self) -> Result<Tensor> {
        invoke1(op!("lgamma"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The derivative of `lgamma`: NaN at negative integers.
    ///
    /// ```text
    /// digamma(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn digamma(&self) -> Result<Tensor> {
        invoke1(op!("digamma"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The derivative of order n of `digamma`.
    ///
    /// ```text
    /// polygamma(Tensor x, Int n) -> Tensor
    /// ```
    #[track_caller]
    pub fn polygamma(&self, n: impl IntLike) -> Result<Tensor> {
        invoke1(op!("polygamma"), &[Some(self)], smallvec![], smallvec![n.int().into()], CallSite::here())
    }

    /// The zeta function of Hurwitz: the sum of (b + k)⁻ᵃ over all k from 0. It has a gradient by b only.
    ///
    /// ```text
    /// zeta(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn zeta(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("zeta"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The regularized lower incomplete gamma function P(a, b). It has a gradient by b only.
    ///
    /// ```text
    /// igamma(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn igamma(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("igamma"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The regularized upper incomplete gamma function Q(a, b) = 1 - P(a, b). It has a gradient by b only.
    ///
    /// ```text
    /// igammac(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn igammac(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("igammac"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse of `erf`: infinite at -1 and 1, NaN beyond.
    ///
    /// ```text
    /// erfinv(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn erfinv(&self) -> Result<Tensor> {
        invoke1(op!("erfinv"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// exp(x²) erfc(x), also where the factors overflow and vanish.
    ///
    /// ```text
    /// erfcx(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn erfcx(&self) -> Result<Tensor> {
        invoke1(op!("erfcx"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The normal distribution function: the area under the bell curve left of x.
    ///
    /// ```text
    /// ndtr(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn ndtr(&self) -> Result<Tensor> {
        invoke1(op!("ndtr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The inverse of `ndtr`: infinite at 0 and 1, NaN beyond.
    ///
    /// ```text
    /// ndtri(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn ndtri(&self) -> Result<Tensor> {
        invoke1(op!("ndtri"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The logarithm of `ndtr`, also where that vanishes.
    ///
    /// ```text
    /// log_ndtr(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn log_ndtr(&self) -> Result<Tensor> {
        invoke1(op!("log_ndtr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// -x log(x), the entropy: 0 of 0 and -inf below.
    ///
    /// ```text
    /// entr(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn entr(&self) -> Result<Tensor> {
        invoke1(op!("entr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// a log(1 + b), and 0 where a is zero.
    ///
    /// ```text
    /// xlog1py(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn xlog1py(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("xlog1py"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The modified Bessel function of the first kind of order 0.
    ///
    /// ```text
    /// i0(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn i0(&self) -> Result<Tensor> {
        invoke1(op!("i0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// exp(-|x|) times `i0`.
    ///
    /// ```text
    /// i0e(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn i0e(&self) -> Result<Tensor> {
        invoke1(op!("i0e"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The modified Bessel function of the first kind of order 1.
    ///
    /// ```text
    /// i1(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn i1(&self) -> Result<Tensor> {
        invoke1(op!("i1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// exp(-|x|) times `i1`.
    ///
    /// ```text
    /// i1e(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn i1e(&self) -> Result<Tensor> {
        invoke1(op!("i1e"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Bessel function of the first kind of order 0.
    ///
    /// ```text
    /// bessel_j0(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn bessel_j0(&self) -> Result<Tensor> {
        invoke1(op!("bessel_j0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Bessel function of the first kind of order 1.
    ///
    /// ```text
    /// bessel_j1(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn bessel_j1(&self) -> Result<Tensor> {
        invoke1(op!("bessel_j1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Bessel function of the second kind of order 0; NaN below 0.
    ///
    /// ```text
    /// bessel_y0(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn bessel_y0(&self) -> Result<Tensor> {
        invoke1(op!("bessel_y0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Bessel function of the second kind of order 1; NaN below 0.
    ///
    /// ```text
    /// bessel_y1(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn bessel_y1(&self) -> Result<Tensor> {
        invoke1(op!("bessel_y1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The modified Bessel function of the second kind of order 0; NaN below 0.
    ///
    /// ```text
    /// modified_bessel_k0(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn modified_bessel_k0(&self) -> Result<Tensor> {
        invoke1(op!("modified_bessel_k0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The modified Bessel function of the second kind of order 1; NaN below 0.
    ///
    /// ```text
    /// modified_bessel_k1(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn modified_bessel_k1(&self) -> Result<Tensor> {
        invoke1(op!("modified_bessel_k1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// eˣ times `modified_bessel_k0`.
    ///
    /// ```text
    /// scaled_modified_bessel_k0(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn scaled_modified_bessel_k0(&self) -> Result<Tensor> {
        invoke1(op!("scaled_modified_bessel_k0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// eˣ times `modified_bessel_k1`.
    ///
    /// ```text
    /// scaled_modified_bessel_k1(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn scaled_modified_bessel_k1(&self) -> Result<Tensor> {
        invoke1(op!("scaled_modified_bessel_k1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The spherical Bessel function of the first kind of order 0: sin(x) / x, and 1 of 0.
    ///
    /// ```text
    /// spherical_bessel_j0(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn spherical_bessel_j0(&self) -> Result<Tensor> {
        invoke1(op!("spherical_bessel_j0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Airy function Ai. It has no gradient.
    ///
    /// ```text
    /// airy_ai(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn airy_ai(&self) -> Result<Tensor> {
        invoke1(op!("airy_ai"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the first kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn chebyshev_polynomial_t(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("chebyshev_polynomial_t"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the first kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_t(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("shifted_chebyshev_polynomial_t"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the second kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn chebyshev_polynomial_u(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("chebyshev_polynomial_u"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the second kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_u(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("shifted_chebyshev_polynomial_u"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the third kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn chebyshev_polynomial_v(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("chebyshev_polynomial_v"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the third kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_v(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("shifted_chebyshev_polynomial_v"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the fourth kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn chebyshev_polynomial_w(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("chebyshev_polynomial_w"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Chebyshev polynomial of the fourth kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_w(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("shifted_chebyshev_polynomial_w"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Hermite polynomial of physicists of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// hermite_polynomial_h(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn hermite_polynomial_h(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("hermite_polynomial_h"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Hermite polynomial of probability theory of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// hermite_polynomial_he(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn hermite_polynomial_he(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("hermite_polynomial_he"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Laguerre polynomial of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn laguerre_polynomial_l(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("laguerre_polynomial_l"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The Legendre polynomial of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.
    ///
    /// ```text
    /// legendre_polynomial_p(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn legendre_polynomial_p(&self, n: &Tensor) -> Result<Tensor> {
        invoke1(op!("legendre_polynomial_p"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())
    }

    /// The greatest common divisor; 0 of two zeros.
    ///
    /// ```text
    /// gcd(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast.
    #[track_caller]
    pub fn gcd(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("gcd"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// The least common multiple; 0 where one is 0.
    ///
    /// ```text
    /// lcm(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast.
    #[track_caller]
    pub fn lcm(&self, b: &Tensor) -> Result<Tensor> {
        invoke1(op!("lcm"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())
    }

    /// x with other numbers in the place of NaN, inf and -inf: `nan`, and the largest and the smallest finite number of the dtype unless
    /// they are given.
    ///
    /// ```text
    /// nan_to_num(Tensor x, Float nan=0.0, Float? posinf, Float? neginf) -> Tensor
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<Tensor> {
        super::super::differences::nan_to_num(self, nan, posinf, neginf, CallSite::here())
    }

    /// log(x / (1 - x)), the inverse of `sigmoid`. With `eps` x is brought into `eps` to 1 - `eps` first; else what is outside of 0 to 1 gives
    /// NaN.
    ///
    /// ```text
    /// logit(Tensor x, Float? eps) -> Tensor
    /// ```
    #[track_caller]
    pub fn logit(&self, eps: Option<f64>) -> Result<Tensor> {
        super::super::differences::logit(self, eps, CallSite::here())
    }

    /// True where x is below zero, or a zero with a minus sign.
    ///
    /// ```text
    /// signbit(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn signbit(&self) -> Result<Tensor> {
        super::super::differences::signbit(self, CallSite::here())
    }

    /// True where |x - y| is at most `atol` + `rtol` |y|, or both are equal, or with `equal_nan` both NaN.
    ///
    /// ```text
    /// isclose(Tensor x, Tensor y, Float rtol=1e-5, Float atol=1e-8, Bool equal_nan=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn isclose(&self, y: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<Tensor> {
        super::super::differences::isclose(self, y, rtol, atol, equal_nan, CallSite::here())
    }

    /// True where an element of x is among those of `values`, or with `invert` where it is not.
    ///
    /// ```text
    /// isin(Tensor x, Tensor values, *, Bool invert=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn isin(&self, values: &Tensor) -> Result<Tensor> {
        super::super::differences::isin(self, values, false, CallSite::here())
    }

    /// [`Tensor::isin`](crate::Tensor::isin) with its options.
    #[track_caller]
    pub fn isin_with(&self, values: &Tensor, options: &crate::functional::IsinOptions) -> Result<Tensor> {
        super::super::differences::isin(self, values, options.invert, CallSite::here())
    }

    /// The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(x - i / 2)` for i below p, and a constant.
    ///
    /// ```text
    /// mvlgamma(Tensor x, Int p) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = full([1], 3.0, Device::Cpu)?;
    /// assert!((x.mvlgamma(1)?.item()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn mvlgamma(&self, p: impl IntLike) -> Result<Tensor> {
        super::super::special::mvlgamma(self, p.int(), CallSite::here())
    }

    /// Mantissas, from 1/2 to 1, and exponents, i32: x is the mantissa times 2 to the power of the exponent.
    ///
    /// ```text
    /// frexp(Tensor x) -> (Tensor mantissa, Tensor exponent)
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let parts = from_vec(vec![6.0f32, -0.25], [2], Device::Cpu)?.frexp()?;
    /// assert_eq!((parts[0].to_vec::<f32>()?, parts[1].to_vec::<i32>()?), (vec![0.75, -0.5], vec![3, -1]));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn frexp(&self) -> Result<Vec<Tensor>> {
        super::super::special::frexp(self, CallSite::here())
    }

    /// x to the power of the exponents, computed in f64, or in c128 where one of both is complex.
    ///
    /// ```text
    /// float_power(Tensor x, Tensor exponent) -> Tensor
    /// ```
    #[track_caller]
    pub fn float_power(&self, exponent: &Tensor) -> Result<Tensor> {
        super::super::special::float_power(self, exponent, CallSite::here())
    }

    /// The number next to a towards b, of those that the dtype has.
    ///
    /// ```text
    /// nextafter(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn nextafter(&self, b: &Tensor) -> Result<Tensor> {
        super::super::special::nextafter(self, b, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("nan_to_num(Tensor x, Float nan=0.0, Float? posinf, Float? neginf) -> Tensor", |b| Ok(vec![super::super::differences::nan_to_num(b.given(0)?, b.float(1)?, b.float(2).ok(), b.float(3).ok(), b.site)?])),
    ("logit(Tensor x, Float? eps) -> Tensor", |b| Ok(vec![super::super::differences::logit(b.given(0)?, b.float(1).ok(), b.site)?])),
    ("signbit(Tensor x) -> Tensor", |b| Ok(vec![super::super::differences::signbit(b.given(0)?, b.site)?])),
    ("isclose(Tensor x, Tensor y, Float rtol=1e-5, Float atol=1e-8, Bool equal_nan=false) -> Tensor", |b| Ok(vec![super::super::differences::isclose(b.given(0)?, b.given(1)?, b.float(2)?, b.float(3)?, b.bool(4)?, b.site)?])),
    ("isin(Tensor x, Tensor values, *, Bool invert=false) -> Tensor", |b| Ok(vec![super::super::differences::isin(b.given(0)?, b.given(1)?, b.bool(2)?, b.site)?])),
    ("mvlgamma(Tensor x, Int p) -> Tensor", |b| Ok(vec![super::super::special::mvlgamma(b.given(0)?, b.int(1)?, b.site)?])),
    ("frexp(Tensor x) -> (Tensor mantissa, Tensor exponent)", |b| super::super::special::frexp(b.given(0)?, b.site)),
    ("float_power(Tensor x, Tensor exponent) -> Tensor", |b| Ok(vec![super::super::special::float_power(b.given(0)?, b.given(1)?, b.site)?])),
    ("nextafter(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::special::nextafter(b.given(0)?, b.given(1)?, b.site)?])),
];
