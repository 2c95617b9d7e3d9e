//! Elementwise methods.

use super::{invoke1, op};
use crate::error::{CallSite, Result};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

/// The right operand of a binary function: a tensor, which broadcasts with the left one, or a number.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// A tensor of a shape that broadcasts with the left operand.
    Tensor(&'a Tensor),
    /// A number; of a weaker type than any tensor of its kind, as in PyTorch.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(t: &'a Tensor) -> Self {
        Operand::Tensor(t)
    }
}
macro_rules! operand {
    ($($t:ty),*) => {$(impl From<$t> for Operand<'_> { fn from(x: $t) -> Self { Operand::Scalar(x.into()) } })*};
}
operand!(f32, f64, i32, i64, bool, Scalar);

macro_rules! unary_methods {
    ($($(#[$m:meta])* $name:ident;)*) => {
        impl Tensor {$(
            $(#[$m])*
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                invoke1(op!(stringify!($name)), &[Some(self)], smallvec![], smallvec![], CallSite::here())
            }
        )*}
    };
}

unary_methods! {
    /// Returns -x for each element.
    neg;
    /// Returns |x| for each element.
    abs;
    /// Returns the sign of each element: -1, 0 or 1, in the dtype of the input.
    sign;
    /// Returns x² for each element.
    square;
    /// Rounds each element down to an integer.
    floor;
    /// Rounds each element up to an integer.
    ceil;
    /// Rounds each element to the nearest integer, ties to even.
    round;
    /// Returns eˣ for each element.
    exp;
    /// Returns eˣ - 1 for each element, accurate near zero.
    expm1;
    /// Returns the natural logarithm of each element.
    log;
    /// Returns log(1 + x) for each element, accurate near zero.
    log1p;
    /// Returns the square root of each element; NaN below zero.
    sqrt;
    /// Returns 1 / √x for each element.
    rsqrt;
    /// Returns 1 / x for each element.
    reciprocal;
    /// Returns the sine of each element, in radians.
    sin;
    /// Returns the cosine of each element, in radians.
    cos;
    /// Returns the error function of each element.
    erf;
    /// Returns a bool tensor: true where x is zero.
    logical_not;
    /// Returns a bool tensor: true where x is NaN.
    isnan;
    /// Returns a bool tensor: true where x is infinite.
    isinf;
    /// Returns max(x, 0) for each element.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![-1.0f32, 2.0], [2], Device::Cpu)?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    relu;
    /// Returns the sigmoid σ(x) = 1 / (1 + e⁻ˣ) for each element.
    sigmoid;
    /// Returns the hyperbolic tangent of each element.
    tanh;
    /// Returns x Φ(x) for each element, with the exact normal distribution function Φ (by erf).
    gelu;
    /// Returns GELU by its tanh approximation.
    gelu_tanh;
    /// Returns x σ(1.702 x), the sigmoid approximation of GELU.
    quick_gelu;
    /// Returns x σ(x) for each element.
    silu;
    /// Returns x tanh(softplus(x)) for each element.
    mish;
    /// Returns log σ(x) for each element.
    log_sigmoid;
    /// Returns x / (1 + |x|) for each element.
    softsign;
    /// Returns SELU (Klambauer et al., 2017): a scaled ELU that keeps mean 0 and variance 1.
    selu;
    /// Returns the piecewise linear sigmoid: x / 6 + 1/2, clamped to 0 and 1.
    hardsigmoid;
    /// Returns x hardsigmoid(x) for each element.
    hardswish;
    /// Returns a copy in new memory. The gradient passes through.
    copy;
}

macro_rules! binary_methods {
    ($($(#[$m:meta])* $name:ident;)*) => {
        impl Tensor {$(
            $(#[$m])*
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                let site = CallSite::here();
                match other.into() {
                    Operand::Tensor(t) => {
                        invoke1(op!(stringify!($name)), &[Some(self), Some(t)], smallvec![], smallvec![], site)
                    }
                    Operand::Scalar(s) => invoke1(
                        op!(concat!(stringify!($name), "_scalar")), &[Some(self)], smallvec![], smallvec![s], site,
                    ),
                }
            }
        )*}
    };
}

binary_methods! {
    /// Returns `self + other`. Shapes broadcast; types promote as in PyTorch. The same holds for all binary methods.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2, 1], Device::Cpu)?;
    /// let y = arange(3, Device::Cpu)?;
    /// assert_eq!(x.add(&y)?.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    add;
    /// Returns `self - other`.
    sub;
    /// Returns `self * other`, element by element.
    mul;
    /// Returns `self / other`; for integers the result is a float.
    div;
    /// Returns `self` to the power `other`.
    pow;
    /// Returns the larger element of each pair; NaN if either is NaN.
    maximum;
    /// Returns the smaller element of each pair; NaN if either is NaN.
    minimum;
    /// Returns the remainder of `self / other` with the sign of `self`.
    fmod;
    /// Returns the remainder of `self / other` with the sign of `other`.
    remainder;
    /// Returns `self / other` rounded down.
    floor_divide;
    /// Returns a bool tensor: true where `self == other`.
    eq;
    /// Returns a bool tensor: true where `self != other`.
    ne;
    /// Returns a bool tensor: true where `self < other`.
    lt;
    /// Returns a bool tensor: true where `self <= other`.
    le;
    /// Returns a bool tensor: true where `self > other`.
    gt;
    /// Returns a bool tensor: true where `self >= other`.
    ge;
}

macro_rules! logical_methods {
    ($($(#[$m:meta])* $name:ident;)*) => {
        impl Tensor {$(
            $(#[$m])*
            #[track_caller]
            pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                invoke1(
                    op!(stringify!($name)), &[Some(self), Some(other)], smallvec![], smallvec![], CallSite::here(),
                )
            }
        )*}
    };
}

logical_methods! {
    /// Returns a bool tensor: true where both elements are nonzero. Shapes broadcast.
    logical_and;
    /// Returns a bool tensor: true where at least one element is nonzero. Shapes broadcast.
    logical_or;
    /// Returns a bool tensor: true where exactly one element is nonzero. Shapes broadcast.
    logical_xor;
}

impl Tensor {
    /// Returns the values as another dtype; the tensor itself if it has that dtype, like PyTorch's `to`. The gradient is cast
    /// back to the dtype of the input.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        self.cast_at(dtype, CallSite::here())
    }
    pub(crate) fn cast_at(&self, dtype: DType, site: CallSite) -> Result<Tensor> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        invoke1(op!("cast"), &[Some(self)], smallvec![dtype.into()], smallvec![], site)
    }
    /// Returns `s - x` for each element.
    #[track_caller]
    pub fn rsub(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("rsub_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], site)
    }
    /// Returns `s / x` for each element.
    #[track_caller]
    pub fn rdiv(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("rdiv_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], site)
    }
    /// Returns `s` to the power x for each element.
    #[track_caller]
    pub fn rpow(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("rpow_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], site)
    }
    /// Returns each element clamped to `lo..=hi`.
    #[track_caller]
    pub fn clamp(&self, lo: impl Into<Scalar>, hi: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("clamp"), &[Some(self)], smallvec![], smallvec![lo.into(), hi.into()], site)
    }
    /// Returns x, or `alpha` x where x is negative.
    #[track_caller]
    pub fn leaky_relu(&self, alpha: f64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("leaky_relu"), &[Some(self)], smallvec![], smallvec![alpha.into()], site)
    }
    /// Returns x, or `alpha` (eˣ - 1) where x is negative.
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("elu"), &[Some(self)], smallvec![], smallvec![alpha.into()], site)
    }
    /// Returns log(1 + eˣ) for each element; x itself above 20.
    #[track_caller]
    pub fn softplus(&self) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("softplus"), &[Some(self)], smallvec![], smallvec![1.0.into(), 20.0.into()], site)
    }
    /// Returns `value` where the bool tensor `mask` is true, else x. Shapes broadcast.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("masked_fill"), &[Some(self), Some(mask)], smallvec![], smallvec![value.into()], site)
    }
}
