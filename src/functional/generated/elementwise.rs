//! Elementwise: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{Operand, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

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

    /// |x|.
    ///
    /// ```text
    /// abs(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn abs(&self) -> Result<Tensor> {
        invoke1(op!("abs"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
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

    /// x².
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

    /// The error function.
    ///
    /// ```text
    /// erf(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn erf(&self) -> Result<Tensor> {
        invoke1(op!("erf"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
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
    pub fn add<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn sub<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn mul<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn div<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn pow<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
            Operand::Tensor(b) => invoke1(op!("pow"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("pow_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The larger element of each pair; NaN if either is NaN.
    ///
    /// ```text
    /// maximum(Tensor a, Tensor b) -> Tensor
    /// maximum(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn maximum<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
            Operand::Tensor(b) => invoke1(op!("maximum"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("maximum_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The smaller element of each pair; NaN if either is NaN.
    ///
    /// ```text
    /// minimum(Tensor a, Tensor b) -> Tensor
    /// minimum(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn minimum<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
            Operand::Tensor(b) => invoke1(op!("minimum"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("minimum_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The remainder of a / b with the sign of a.
    ///
    /// ```text
    /// fmod(Tensor a, Tensor b) -> Tensor
    /// fmod(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn fmod<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
            Operand::Tensor(b) => invoke1(op!("fmod"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("fmod_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// The remainder of a / b with the sign of b.
    ///
    /// ```text
    /// remainder(Tensor a, Tensor b) -> Tensor
    /// remainder(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn remainder<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
            Operand::Tensor(b) => invoke1(op!("remainder"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("remainder_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }
    }

    /// a / b rounded down.
    ///
    /// ```text
    /// floor_divide(Tensor a, Tensor b) -> Tensor
    /// floor_divide(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast.
    #[track_caller]
    pub fn floor_divide<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
            Operand::Tensor(b) => invoke1(op!("floor_divide"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => invoke1(op!("floor_divide_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
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
    pub fn eq<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn ne<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn lt<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn le<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn gt<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
    pub fn ge<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let site = CallSite::here();
        match b.into() {
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
}
