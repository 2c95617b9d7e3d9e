//! Elementwise methods.

use super::{invoke1, op};
use crate::error::{CallSite, Result};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

/// The right side of a binary function: a tensor or a number.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number.
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
    /// -x.
    neg;
    /// Absolute value.
    abs;
    /// -1, 0 or 1.
    sign;
    /// x².
    square;
    /// Largest integer not above.
    floor;
    /// Smallest integer not below.
    ceil;
    /// Nearest integer, ties to even.
    round;
    /// eˣ.
    exp;
    /// eˣ - 1, exact near zero.
    expm1;
    /// Natural logarithm.
    log;
    /// log(1 + x), exact near zero.
    log1p;
    /// Square root.
    sqrt;
    /// 1 / √x.
    rsqrt;
    /// 1 / x.
    reciprocal;
    /// Sine.
    sin;
    /// Cosine.
    cos;
    /// The error function.
    erf;
    /// True where zero.
    logical_not;
    /// True where NaN.
    isnan;
    /// True where infinite.
    isinf;
    /// max(x, 0).
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![-1.0f32, 2.0], [2], Device::Cpu)?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    relu;
    /// 1 / (1 + e⁻ˣ).
    sigmoid;
    /// Hyperbolic tangent.
    tanh;
    /// x Φ(x), exactly (by erf).
    gelu;
    /// GELU by the tanh approximation.
    gelu_tanh;
    /// GELU by a sigmoid.
    quick_gelu;
    /// x σ(x).
    silu;
    /// x tanh(softplus(x)).
    mish;
    /// log σ(x).
    log_sigmoid;
    /// x / (1 + |x|).
    softsign;
    /// Self-normalising ELU.
    selu;
    /// Piecewise linear sigmoid.
    hardsigmoid;
    /// x hardsigmoid(x).
    hardswish;
    /// The same values in new memory, with the gradient passing through.
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
    /// Sum with a tensor (broadcasting) or a number.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2, 1], Device::Cpu)?;
    /// let y = arange(3, Device::Cpu)?;
    /// assert_eq!(x.add(&y)?.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    add;
    /// Difference.
    sub;
    /// Product.
    mul;
    /// Quotient; of integers, a float.
    div;
    /// Power.
    pow;
    /// The larger; NaN if either is.
    maximum;
    /// The smaller; NaN if either is.
    minimum;
    /// Remainder with the sign of the left.
    fmod;
    /// Remainder with the sign of the right.
    remainder;
    /// Quotient rounded down.
    floor_divide;
    /// True where equal.
    eq;
    /// True where not equal.
    ne;
    /// True where less.
    lt;
    /// True where less or equal.
    le;
    /// True where greater.
    gt;
    /// True where greater or equal.
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
    /// True where neither is zero.
    logical_and;
    /// True where one is not zero.
    logical_or;
    /// True where exactly one is not zero.
    logical_xor;
}

impl Tensor {
    /// Another element type; the tensor itself where it has that type (as PyTorch's `to`). The gradient is cast back.
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
    /// `s - x`.
    #[track_caller]
    pub fn rsub(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("rsub_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], site)
    }
    /// `s / x`.
    #[track_caller]
    pub fn rdiv(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("rdiv_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], site)
    }
    /// `s` to the power x.
    #[track_caller]
    pub fn rpow(&self, s: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("rpow_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], site)
    }
    /// x within bounds.
    #[track_caller]
    pub fn clamp(&self, lo: impl Into<Scalar>, hi: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("clamp"), &[Some(self)], smallvec![], smallvec![lo.into(), hi.into()], site)
    }
    /// x, or alpha x where x is negative.
    #[track_caller]
    pub fn leaky_relu(&self, alpha: f64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("leaky_relu"), &[Some(self)], smallvec![], smallvec![alpha.into()], site)
    }
    /// x, or alpha (eˣ - 1) where x is negative.
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("elu"), &[Some(self)], smallvec![], smallvec![alpha.into()], site)
    }
    /// log(1 + eˣ), linear above 20.
    #[track_caller]
    pub fn softplus(&self) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("softplus"), &[Some(self)], smallvec![], smallvec![1.0.into(), 20.0.into()], site)
    }
    /// `value` where the mask is true, else x.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("masked_fill"), &[Some(self), Some(mask)], smallvec![], smallvec![value.into()], site)
    }
}
