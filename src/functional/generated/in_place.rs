//! In place: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::context::Generator;
use crate::error::{CallSite, Result};
use crate::functional::{IntLike, Operand, RightOperand, op};
use crate::functional::inplace::write_over;
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

impl Tensor {
    /// `neg` in place: the result is written over the first argument.
    ///
    /// ```text
    /// neg_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn neg_(&self) -> Result<&Tensor> {
        write_over(op!("neg"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sgn` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sgn_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sgn_(&self) -> Result<&Tensor> {
        write_over(op!("sgn"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `conj` in place: the result is written over the first argument.
    ///
    /// ```text
    /// conj_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn conj_(&self) -> Result<&Tensor> {
        write_over(op!("conj"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sign` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sign_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sign_(&self) -> Result<&Tensor> {
        write_over(op!("sign"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `square` in place: the result is written over the first argument.
    ///
    /// ```text
    /// square_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn square_(&self) -> Result<&Tensor> {
        write_over(op!("square"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `floor` in place: the result is written over the first argument.
    ///
    /// ```text
    /// floor_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn floor_(&self) -> Result<&Tensor> {
        write_over(op!("floor"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `ceil` in place: the result is written over the first argument.
    ///
    /// ```text
    /// ceil_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn ceil_(&self) -> Result<&Tensor> {
        write_over(op!("ceil"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `round` in place: the result is written over the first argument.
    ///
    /// ```text
    /// round_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn round_(&self) -> Result<&Tensor> {
        write_over(op!("round"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `trunc` in place: the result is written over the first argument.
    ///
    /// ```text
    /// trunc_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn trunc_(&self) -> Result<&Tensor> {
        write_over(op!("trunc"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `frac` in place: the result is written over the first argument.
    ///
    /// ```text
    /// frac_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn frac_(&self) -> Result<&Tensor> {
        write_over(op!("frac"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `exp` in place: the result is written over the first argument.
    ///
    /// ```text
    /// exp_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn exp_(&self) -> Result<&Tensor> {
        write_over(op!("exp"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `expm1` in place: the result is written over the first argument.
    ///
    /// ```text
    /// expm1_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn expm1_(&self) -> Result<&Tensor> {
        write_over(op!("expm1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `log` in place: the result is written over the first argument.
    ///
    /// ```text
    /// log_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn log_(&self) -> Result<&Tensor> {
        write_over(op!("log"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `log1p` in place: the result is written over the first argument.
    ///
    /// ```text
    /// log1p_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn log1p_(&self) -> Result<&Tensor> {
        write_over(op!("log1p"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sqrt` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sqrt_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sqrt_(&self) -> Result<&Tensor> {
        write_over(op!("sqrt"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `rsqrt` in place: the result is written over the first argument.
    ///
    /// ```text
    /// rsqrt_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn rsqrt_(&self) -> Result<&Tensor> {
        write_over(op!("rsqrt"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `reciprocal` in place: the result is written over the first argument.
    ///
    /// ```text
    /// reciprocal_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn reciprocal_(&self) -> Result<&Tensor> {
        write_over(op!("reciprocal"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sin` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sin_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sin_(&self) -> Result<&Tensor> {
        write_over(op!("sin"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `cos` in place: the result is written over the first argument.
    ///
    /// ```text
    /// cos_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn cos_(&self) -> Result<&Tensor> {
        write_over(op!("cos"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `tan` in place: the result is written over the first argument.
    ///
    /// ```text
    /// tan_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn tan_(&self) -> Result<&Tensor> {
        write_over(op!("tan"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `asin` in place: the result is written over the first argument.
    ///
    /// ```text
    /// asin_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn asin_(&self) -> Result<&Tensor> {
        write_over(op!("asin"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `acos` in place: the result is written over the first argument.
    ///
    /// ```text
    /// acos_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn acos_(&self) -> Result<&Tensor> {
        write_over(op!("acos"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `atan` in place: the result is written over the first argument.
    ///
    /// ```text
    /// atan_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn atan_(&self) -> Result<&Tensor> {
        write_over(op!("atan"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sinh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sinh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sinh_(&self) -> Result<&Tensor> {
        write_over(op!("sinh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `cosh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// cosh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn cosh_(&self) -> Result<&Tensor> {
        write_over(op!("cosh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `asinh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// asinh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn asinh_(&self) -> Result<&Tensor> {
        write_over(op!("asinh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `acosh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// acosh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn acosh_(&self) -> Result<&Tensor> {
        write_over(op!("acosh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `atanh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// atanh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn atanh_(&self) -> Result<&Tensor> {
        write_over(op!("atanh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `exp2` in place: the result is written over the first argument.
    ///
    /// ```text
    /// exp2_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn exp2_(&self) -> Result<&Tensor> {
        write_over(op!("exp2"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `log2` in place: the result is written over the first argument.
    ///
    /// ```text
    /// log2_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn log2_(&self) -> Result<&Tensor> {
        write_over(op!("log2"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `log10` in place: the result is written over the first argument.
    ///
    /// ```text
    /// log10_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn log10_(&self) -> Result<&Tensor> {
        write_over(op!("log10"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `erf` in place: the result is written over the first argument.
    ///
    /// ```text
    /// erf_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn erf_(&self) -> Result<&Tensor> {
        write_over(op!("erf"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `erfc` in place: the result is written over the first argument.
    ///
    /// ```text
    /// erfc_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn erfc_(&self) -> Result<&Tensor> {
        write_over(op!("erfc"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `deg2rad` in place: the result is written over the first argument.
    ///
    /// ```text
    /// deg2rad_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn deg2rad_(&self) -> Result<&Tensor> {
        write_over(op!("deg2rad"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `rad2deg` in place: the result is written over the first argument.
    ///
    /// ```text
    /// rad2deg_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn rad2deg_(&self) -> Result<&Tensor> {
        write_over(op!("rad2deg"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sinc` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sinc_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sinc_(&self) -> Result<&Tensor> {
        write_over(op!("sinc"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `bitwise_not` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bitwise_not_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of integer, or the result has another shape or dtype.
    #[track_caller]
    pub fn bitwise_not_(&self) -> Result<&Tensor> {
        write_over(op!("bitwise_not"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `relu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// relu_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn relu_(&self) -> Result<&Tensor> {
        write_over(op!("relu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `sigmoid` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sigmoid_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn sigmoid_(&self) -> Result<&Tensor> {
        write_over(op!("sigmoid"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `tanh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// tanh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn tanh_(&self) -> Result<&Tensor> {
        write_over(op!("tanh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `gelu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// gelu_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn gelu_(&self) -> Result<&Tensor> {
        write_over(op!("gelu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `gelu_tanh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// gelu_tanh_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn gelu_tanh_(&self) -> Result<&Tensor> {
        write_over(op!("gelu_tanh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `quick_gelu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// quick_gelu_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn quick_gelu_(&self) -> Result<&Tensor> {
        write_over(op!("quick_gelu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `silu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// silu_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float or complex, or the result has another shape or dtype.
    #[track_caller]
    pub fn silu_(&self) -> Result<&Tensor> {
        write_over(op!("silu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `mish` in place: the result is written over the first argument.
    ///
    /// ```text
    /// mish_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn mish_(&self) -> Result<&Tensor> {
        write_over(op!("mish"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `leaky_relu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// leaky_relu_(Tensor x, Float alpha=0.01) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn leaky_relu_(&self, alpha: f64) -> Result<&Tensor> {
        write_over(op!("leaky_relu"), &[Some(self)], smallvec![], smallvec![alpha.into()], CallSite::here())?;
        Ok(self)
    }

    /// `elu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// elu_(Tensor x, Float alpha=1.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn elu_(&self, alpha: f64) -> Result<&Tensor> {
        write_over(op!("elu"), &[Some(self)], smallvec![], smallvec![alpha.into()], CallSite::here())?;
        Ok(self)
    }

    /// `softplus` in place: the result is written over the first argument.
    ///
    /// ```text
    /// softplus_(Tensor x, *, Float beta=1.0, Float threshold=20.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn softplus_(&self) -> Result<&Tensor> {
        write_over(op!("softplus"), &[Some(self)], smallvec![], smallvec![(1.0).into(), (20.0).into()], CallSite::here())?;
        Ok(self)
    }

    /// [`Tensor::softplus_`](crate::Tensor::softplus_) with its options.
    #[track_caller]
    pub fn softplus_with_(&self, options: &crate::functional::SoftplusOptions) -> Result<&Tensor> {
        write_over(op!("softplus"), &[Some(self)], smallvec![], smallvec![options.beta.into(), options.threshold.into()], CallSite::here())?;
        Ok(self)
    }

    /// `log_sigmoid` in place: the result is written over the first argument.
    ///
    /// ```text
    /// log_sigmoid_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn log_sigmoid_(&self) -> Result<&Tensor> {
        write_over(op!("log_sigmoid"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `softsign` in place: the result is written over the first argument.
    ///
    /// ```text
    /// softsign_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn softsign_(&self) -> Result<&Tensor> {
        write_over(op!("softsign"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `selu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// selu_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn selu_(&self) -> Result<&Tensor> {
        write_over(op!("selu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `hardtanh` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hardtanh_(Tensor x, Float lo=-1.0, Float hi=1.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn hardtanh_(&self, lo: f64, hi: f64) -> Result<&Tensor> {
        write_over(op!("hardtanh"), &[Some(self)], smallvec![], smallvec![lo.into(), hi.into()], CallSite::here())?;
        Ok(self)
    }

    /// `hardsigmoid` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hardsigmoid_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn hardsigmoid_(&self) -> Result<&Tensor> {
        write_over(op!("hardsigmoid"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `hardshrink` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hardshrink_(Tensor x, Float lambd=0.5) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn hardshrink_(&self, lambd: f64) -> Result<&Tensor> {
        write_over(op!("hardshrink"), &[Some(self)], smallvec![], smallvec![lambd.into()], CallSite::here())?;
        Ok(self)
    }

    /// `softshrink` in place: the result is written over the first argument.
    ///
    /// ```text
    /// softshrink_(Tensor x, Float lambd=0.5) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn softshrink_(&self, lambd: f64) -> Result<&Tensor> {
        write_over(op!("softshrink"), &[Some(self)], smallvec![], smallvec![lambd.into()], CallSite::here())?;
        Ok(self)
    }

    /// `relu6` in place: the result is written over the first argument.
    ///
    /// ```text
    /// relu6_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn relu6_(&self) -> Result<&Tensor> {
        write_over(op!("relu6"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `celu` in place: the result is written over the first argument.
    ///
    /// ```text
    /// celu_(Tensor x, Float alpha=1.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn celu_(&self, alpha: f64) -> Result<&Tensor> {
        write_over(op!("celu"), &[Some(self)], smallvec![], smallvec![alpha.into()], CallSite::here())?;
        Ok(self)
    }

    /// `tanhshrink` in place: the result is written over the first argument.
    ///
    /// ```text
    /// tanhshrink_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn tanhshrink_(&self) -> Result<&Tensor> {
        write_over(op!("tanhshrink"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `hardswish` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hardswish_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float, or the result has another shape or dtype.
    #[track_caller]
    pub fn hardswish_(&self) -> Result<&Tensor> {
        write_over(op!("hardswish"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `threshold` in place: the result is written over the first argument.
    ///
    /// ```text
    /// threshold_(Tensor x, Scalar threshold, Scalar value) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn threshold_(&self, threshold: impl Into<Scalar>, value: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("threshold"), &[Some(self)], smallvec![], smallvec![threshold.into(), value.into()], CallSite::here())?;
        Ok(self)
    }

    /// `add` in place: the result is written over the first argument.
    ///
    /// ```text
    /// add_(Tensor a, Tensor b) -> Tensor
    /// add_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn add_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("add"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("add_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `sub` in place: the result is written over the first argument.
    ///
    /// ```text
    /// sub_(Tensor a, Tensor b) -> Tensor
    /// sub_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn sub_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("sub"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("sub_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `mul` in place: the result is written over the first argument.
    ///
    /// ```text
    /// mul_(Tensor a, Tensor b) -> Tensor
    /// mul_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn mul_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("mul"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("mul_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `div` in place: the result is written over the first argument.
    ///
    /// ```text
    /// div_(Tensor a, Tensor b) -> Tensor
    /// div_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn div_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("div"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("div_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `pow` in place: the result is written over the first argument.
    ///
    /// ```text
    /// pow_(Tensor a, Tensor b) -> Tensor
    /// pow_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn pow_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("pow"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("pow_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `maximum` in place: the result is written over the first argument.
    ///
    /// ```text
    /// maximum_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn maximum_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("maximum"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `minimum` in place: the result is written over the first argument.
    ///
    /// ```text
    /// minimum_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn minimum_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("minimum"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `fmod` in place: the result is written over the first argument.
    ///
    /// ```text
    /// fmod_(Tensor a, Tensor b) -> Tensor
    /// fmod_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn fmod_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("fmod"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("fmod_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `remainder` in place: the result is written over the first argument.
    ///
    /// ```text
    /// remainder_(Tensor a, Tensor b) -> Tensor
    /// remainder_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn remainder_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("remainder"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("remainder_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `floor_divide` in place: the result is written over the first argument.
    ///
    /// ```text
    /// floor_divide_(Tensor a, Tensor b) -> Tensor
    /// floor_divide_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn floor_divide_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("floor_divide"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("floor_divide_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `atan2` in place: the result is written over the first argument.
    ///
    /// ```text
    /// atan2_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn atan2_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("atan2"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `hypot` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hypot_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float, or `b` is not a tensor of float, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn hypot_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("hypot"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `logaddexp` in place: the result is written over the first argument.
    ///
    /// ```text
    /// logaddexp_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float, or `b` is not a tensor of float, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn logaddexp_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("logaddexp"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `logaddexp2` in place: the result is written over the first argument.
    ///
    /// ```text
    /// logaddexp2_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float, or `b` is not a tensor of float, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn logaddexp2_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("logaddexp2"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `fmax` in place: the result is written over the first argument.
    ///
    /// ```text
    /// fmax_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn fmax_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("fmax"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `fmin` in place: the result is written over the first argument.
    ///
    /// ```text
    /// fmin_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn fmin_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("fmin"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `copysign` in place: the result is written over the first argument.
    ///
    /// ```text
    /// copysign_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn copysign_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("copysign"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `ldexp` in place: the result is written over the first argument.
    ///
    /// ```text
    /// ldexp_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn ldexp_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("ldexp"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `xlogy` in place: the result is written over the first argument.
    ///
    /// ```text
    /// xlogy_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn xlogy_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("xlogy"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `heaviside` in place: the result is written over the first argument.
    ///
    /// ```text
    /// heaviside_(Tensor x, Tensor values) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn heaviside_(&self, values: &Tensor) -> Result<&Tensor> {
        write_over(op!("heaviside"), &[Some(self), Some(values)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `bitwise_and` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bitwise_and_(Tensor a, Tensor b) -> Tensor
    /// bitwise_and_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of int or bool, or `b` is not a tensor of int or bool, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn bitwise_and_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("bitwise_and"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("bitwise_and_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `bitwise_or` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bitwise_or_(Tensor a, Tensor b) -> Tensor
    /// bitwise_or_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of int or bool, or `b` is not a tensor of int or bool, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn bitwise_or_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("bitwise_or"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("bitwise_or_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `bitwise_xor` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bitwise_xor_(Tensor a, Tensor b) -> Tensor
    /// bitwise_xor_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of int or bool, or `b` is not a tensor of int or bool, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn bitwise_xor_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("bitwise_xor"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("bitwise_xor_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `bitwise_left_shift` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bitwise_left_shift_(Tensor a, Tensor b) -> Tensor
    /// bitwise_left_shift_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn bitwise_left_shift_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("bitwise_left_shift"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("bitwise_left_shift_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `bitwise_right_shift` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bitwise_right_shift_(Tensor a, Tensor b) -> Tensor
    /// bitwise_right_shift_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn bitwise_right_shift_<'a>(&self, b: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let b = b.into();
        match b.operand() {
            Operand::Tensor(b) => write_over(op!("bitwise_right_shift"), &[Some(self), Some(b)], smallvec![], smallvec![], site),
            Operand::Scalar(s) => write_over(op!("bitwise_right_shift_scalar"), &[Some(self)], smallvec![], smallvec![s], site),
        }?;
        Ok(self)
    }

    /// `lerp` in place: the result is written over the first argument.
    ///
    /// ```text
    /// lerp_(Tensor a, Tensor b, Tensor weight) -> Tensor
    /// lerp_(Tensor a, Tensor b, Scalar weight) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of float or complex, or `b` is not a tensor of float or complex, or `weight` is not a tensor of float or complex, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn lerp_<'a>(&self, b: &Tensor, weight: impl Into<RightOperand<'a>>) -> Result<&Tensor> {
        let site = CallSite::here();
        let weight = weight.into();
        match weight.operand() {
            Operand::Tensor(weight) => write_over(op!("lerp"), &[Some(self), Some(b), Some(weight)], smallvec![], smallvec![], site),
            Operand::Scalar(weight) => write_over(op!("lerp_scalar"), &[Some(self), Some(b)], smallvec![], smallvec![weight], site),
        }?;
        Ok(self)
    }

    /// `addcmul` in place: the result is written over the first argument.
    ///
    /// ```text
    /// addcmul_(Tensor x, Tensor a, Tensor b, *, Scalar value=1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn addcmul_(&self, a: &Tensor, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("addcmul"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![Scalar::Int(1)], CallSite::here())?;
        Ok(self)
    }

    /// [`Tensor::addcmul_`](crate::Tensor::addcmul_) with its options.
    #[track_caller]
    pub fn addcmul_with_(
        &self,
        a: &Tensor,
        b: &Tensor,
        options: &crate::functional::AddcmulOptions,
    ) -> Result<&Tensor> {
        write_over(op!("addcmul"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![options.value], CallSite::here())?;
        Ok(self)
    }

    /// `addcdiv` in place: the result is written over the first argument.
    ///
    /// ```text
    /// addcdiv_(Tensor x, Tensor a, Tensor b, *, Scalar value=1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float or complex, or `a` is not a tensor of float or complex, or `b` is not a tensor of float or complex, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn addcdiv_(&self, a: &Tensor, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("addcdiv"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![Scalar::Int(1)], CallSite::here())?;
        Ok(self)
    }

    /// [`Tensor::addcdiv_`](crate::Tensor::addcdiv_) with its options.
    #[track_caller]
    pub fn addcdiv_with_(
        &self,
        a: &Tensor,
        b: &Tensor,
        options: &crate::functional::AddcdivOptions,
    ) -> Result<&Tensor> {
        write_over(op!("addcdiv"), &[Some(self), Some(a), Some(b)], smallvec![], smallvec![options.value], CallSite::here())?;
        Ok(self)
    }

    /// `rsub` in place: the result is written over the first argument.
    ///
    /// ```text
    /// rsub_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn rsub_(&self, s: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("rsub_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], CallSite::here())?;
        Ok(self)
    }

    /// `rdiv` in place: the result is written over the first argument.
    ///
    /// ```text
    /// rdiv_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn rdiv_(&self, s: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("rdiv_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], CallSite::here())?;
        Ok(self)
    }

    /// `rpow` in place: the result is written over the first argument.
    ///
    /// ```text
    /// rpow_(Tensor x, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn rpow_(&self, s: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("rpow_scalar"), &[Some(self)], smallvec![], smallvec![s.into()], CallSite::here())?;
        Ok(self)
    }

    /// `clamp_min` in place: the result is written over the first argument.
    ///
    /// ```text
    /// clamp_min_(Tensor x, Scalar min) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn clamp_min_(&self, min: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("clamp_min"), &[Some(self)], smallvec![], smallvec![min.into()], CallSite::here())?;
        Ok(self)
    }

    /// `clamp_max` in place: the result is written over the first argument.
    ///
    /// ```text
    /// clamp_max_(Tensor x, Scalar max) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn clamp_max_(&self, max: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("clamp_max"), &[Some(self)], smallvec![], smallvec![max.into()], CallSite::here())?;
        Ok(self)
    }

    /// `clamp` in place: the result is written over the first argument.
    ///
    /// ```text
    /// clamp_(Tensor x, Scalar lo, Scalar hi) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn clamp_(&self, lo: impl Into<Scalar>, hi: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("clamp"), &[Some(self)], smallvec![], smallvec![lo.into(), hi.into()], CallSite::here())?;
        Ok(self)
    }

    /// `masked_fill` in place: the result is written over the first argument.
    ///
    /// ```text
    /// masked_fill_(Tensor x, Tensor mask, Scalar s) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn masked_fill_(&self, mask: &Tensor, s: impl Into<Scalar>) -> Result<&Tensor> {
        write_over(op!("masked_fill"), &[Some(self), Some(mask)], smallvec![], smallvec![s.into()], CallSite::here())?;
        Ok(self)
    }

    /// `lgamma` in place: the result is written over the first argument.
    ///
    /// ```text
    /// lgamma_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn lgamma_(&self) -> Result<&Tensor> {
        write_over(op!("lgamma"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `digamma` in place: the result is written over the first argument.
    ///
    /// ```text
    /// digamma_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn digamma_(&self) -> Result<&Tensor> {
        write_over(op!("digamma"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `polygamma` in place: the result is written over the first argument.
    ///
    /// ```text
    /// polygamma_(Tensor x, Int n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn polygamma_(&self, n: impl IntLike) -> Result<&Tensor> {
        write_over(op!("polygamma"), &[Some(self)], smallvec![], smallvec![n.int().into()], CallSite::here())?;
        Ok(self)
    }

    /// `zeta` in place: the result is written over the first argument.
    ///
    /// ```text
    /// zeta_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn zeta_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("zeta"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `igamma` in place: the result is written over the first argument.
    ///
    /// ```text
    /// igamma_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn igamma_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("igamma"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `igammac` in place: the result is written over the first argument.
    ///
    /// ```text
    /// igammac_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn igammac_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("igammac"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `erfinv` in place: the result is written over the first argument.
    ///
    /// ```text
    /// erfinv_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn erfinv_(&self) -> Result<&Tensor> {
        write_over(op!("erfinv"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `erfcx` in place: the result is written over the first argument.
    ///
    /// ```text
    /// erfcx_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn erfcx_(&self) -> Result<&Tensor> {
        write_over(op!("erfcx"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `ndtr` in place: the result is written over the first argument.
    ///
    /// ```text
    /// ndtr_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn ndtr_(&self) -> Result<&Tensor> {
        write_over(op!("ndtr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `ndtri` in place: the result is written over the first argument.
    ///
    /// ```text
    /// ndtri_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn ndtri_(&self) -> Result<&Tensor> {
        write_over(op!("ndtri"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `log_ndtr` in place: the result is written over the first argument.
    ///
    /// ```text
    /// log_ndtr_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn log_ndtr_(&self) -> Result<&Tensor> {
        write_over(op!("log_ndtr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `entr` in place: the result is written over the first argument.
    ///
    /// ```text
    /// entr_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn entr_(&self) -> Result<&Tensor> {
        write_over(op!("entr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `xlog1py` in place: the result is written over the first argument.
    ///
    /// ```text
    /// xlog1py_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn xlog1py_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("xlog1py"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `i0` in place: the result is written over the first argument.
    ///
    /// ```text
    /// i0_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn i0_(&self) -> Result<&Tensor> {
        write_over(op!("i0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `i0e` in place: the result is written over the first argument.
    ///
    /// ```text
    /// i0e_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn i0e_(&self) -> Result<&Tensor> {
        write_over(op!("i0e"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `i1` in place: the result is written over the first argument.
    ///
    /// ```text
    /// i1_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn i1_(&self) -> Result<&Tensor> {
        write_over(op!("i1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `i1e` in place: the result is written over the first argument.
    ///
    /// ```text
    /// i1e_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn i1e_(&self) -> Result<&Tensor> {
        write_over(op!("i1e"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `bessel_j0` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bessel_j0_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn bessel_j0_(&self) -> Result<&Tensor> {
        write_over(op!("bessel_j0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `bessel_j1` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bessel_j1_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn bessel_j1_(&self) -> Result<&Tensor> {
        write_over(op!("bessel_j1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `bessel_y0` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bessel_y0_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn bessel_y0_(&self) -> Result<&Tensor> {
        write_over(op!("bessel_y0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `bessel_y1` in place: the result is written over the first argument.
    ///
    /// ```text
    /// bessel_y1_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn bessel_y1_(&self) -> Result<&Tensor> {
        write_over(op!("bessel_y1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `modified_bessel_k0` in place: the result is written over the first argument.
    ///
    /// ```text
    /// modified_bessel_k0_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn modified_bessel_k0_(&self) -> Result<&Tensor> {
        write_over(op!("modified_bessel_k0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `modified_bessel_k1` in place: the result is written over the first argument.
    ///
    /// ```text
    /// modified_bessel_k1_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn modified_bessel_k1_(&self) -> Result<&Tensor> {
        write_over(op!("modified_bessel_k1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `scaled_modified_bessel_k0` in place: the result is written over the first argument.
    ///
    /// ```text
    /// scaled_modified_bessel_k0_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn scaled_modified_bessel_k0_(&self) -> Result<&Tensor> {
        write_over(op!("scaled_modified_bessel_k0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `scaled_modified_bessel_k1` in place: the result is written over the first argument.
    ///
    /// ```text
    /// scaled_modified_bessel_k1_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn scaled_modified_bessel_k1_(&self) -> Result<&Tensor> {
        write_over(op!("scaled_modified_bessel_k1"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `spherical_bessel_j0` in place: the result is written over the first argument.
    ///
    /// ```text
    /// spherical_bessel_j0_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn spherical_bessel_j0_(&self) -> Result<&Tensor> {
        write_over(op!("spherical_bessel_j0"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `airy_ai` in place: the result is written over the first argument.
    ///
    /// ```text
    /// airy_ai_(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the result has another shape or dtype.
    #[track_caller]
    pub fn airy_ai_(&self) -> Result<&Tensor> {
        write_over(op!("airy_ai"), &[Some(self)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `chebyshev_polynomial_t` in place: the result is written over the first argument.
    ///
    /// ```text
    /// chebyshev_polynomial_t_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn chebyshev_polynomial_t_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("chebyshev_polynomial_t"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `shifted_chebyshev_polynomial_t` in place: the result is written over the first argument.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_t_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_t_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("shifted_chebyshev_polynomial_t"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `chebyshev_polynomial_u` in place: the result is written over the first argument.
    ///
    /// ```text
    /// chebyshev_polynomial_u_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn chebyshev_polynomial_u_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("chebyshev_polynomial_u"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `shifted_chebyshev_polynomial_u` in place: the result is written over the first argument.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_u_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_u_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("shifted_chebyshev_polynomial_u"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `chebyshev_polynomial_v` in place: the result is written over the first argument.
    ///
    /// ```text
    /// chebyshev_polynomial_v_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn chebyshev_polynomial_v_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("chebyshev_polynomial_v"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `shifted_chebyshev_polynomial_v` in place: the result is written over the first argument.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_v_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_v_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("shifted_chebyshev_polynomial_v"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `chebyshev_polynomial_w` in place: the result is written over the first argument.
    ///
    /// ```text
    /// chebyshev_polynomial_w_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn chebyshev_polynomial_w_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("chebyshev_polynomial_w"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `shifted_chebyshev_polynomial_w` in place: the result is written over the first argument.
    ///
    /// ```text
    /// shifted_chebyshev_polynomial_w_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn shifted_chebyshev_polynomial_w_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("shifted_chebyshev_polynomial_w"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `hermite_polynomial_h` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hermite_polynomial_h_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn hermite_polynomial_h_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("hermite_polynomial_h"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `hermite_polynomial_he` in place: the result is written over the first argument.
    ///
    /// ```text
    /// hermite_polynomial_he_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn hermite_polynomial_he_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("hermite_polynomial_he"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `laguerre_polynomial_l` in place: the result is written over the first argument.
    ///
    /// ```text
    /// laguerre_polynomial_l_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn laguerre_polynomial_l_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("laguerre_polynomial_l"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `legendre_polynomial_p` in place: the result is written over the first argument.
    ///
    /// ```text
    /// legendre_polynomial_p_(Tensor x, Tensor n) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn legendre_polynomial_p_(&self, n: &Tensor) -> Result<&Tensor> {
        write_over(op!("legendre_polynomial_p"), &[Some(self), Some(n)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `gcd` in place: the result is written over the first argument.
    ///
    /// ```text
    /// gcd_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn gcd_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("gcd"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// `lcm` in place: the result is written over the first argument.
    ///
    /// ```text
    /// lcm_(Tensor a, Tensor b) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `a` is not a tensor of integer, or `b` is not a tensor of integer, or the shapes do not broadcast, or the result has another shape or dtype.
    #[track_caller]
    pub fn lcm_(&self, b: &Tensor) -> Result<&Tensor> {
        write_over(op!("lcm"), &[Some(self), Some(b)], smallvec![], smallvec![], CallSite::here())?;
        Ok(self)
    }

    /// x becomes zero everywhere, in place.
    ///
    /// ```text
    /// zero_(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn zero_(&self) -> Result<&Tensor> {
        super::super::inplace::zero_(self, CallSite::here())?;
        Ok(self)
    }

    /// x becomes `value` everywhere, in place.
    ///
    /// ```text
    /// fill_(Tensor x, Scalar value) -> Tensor
    /// ```
    #[track_caller]
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<&Tensor> {
        super::super::inplace::fill_(self, value.into(), CallSite::here())?;
        Ok(self)
    }

    /// x becomes a copy of `other` in place, converted to x's dtype; it broadcasts to x's shape. The gradient of the new value goes
    /// to `other`, what x was before gets none.
    ///
    /// ```text
    /// copy_(Tensor x, Tensor other) -> Tensor
    /// ```
    ///
    /// # Errors
    /// When `other` does not broadcast to x's shape, or x is a leaf that requires a gradient outside `no_grad`.
    #[track_caller]
    pub fn copy_(&self, other: &Tensor) -> Result<&Tensor> {
        super::super::inplace::copy_(self, other, CallSite::here())?;
        Ok(self)
    }

    /// x becomes normal numbers with this mean and standard deviation, in place. They do not depend on placement or SBP.
    ///
    /// ```text
    /// normal_(Tensor x, Float mean=0.0, Float std=1.0, Generator? generator) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If x is no tensor of floats or the standard deviation is negative; when x is a leaf that requires a gradient, outside `no_grad`. The
    /// same holds for the functions below.
    #[track_caller]
    pub fn normal_(&self, mean: f64, std: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::normal_(self, mean, std, generator, CallSite::here())?;
        Ok(self)
    }

    /// x becomes uniform numbers from `lo` to below `hi`, in place.
    ///
    /// ```text
    /// uniform_(Tensor x, Float lo=0.0, Float hi=1.0, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn uniform_(&self, lo: f64, hi: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::uniform_(self, lo, hi, generator, CallSite::here())?;
        Ok(self)
    }

    /// x becomes numbers of the exponential distribution with this rate, in place.
    ///
    /// ```text
    /// exponential_(Tensor x, Float rate=1.0, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn exponential_(&self, rate: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::exponential_(self, rate, generator, CallSite::here())?;
        Ok(self)
    }

    /// x becomes numbers of a Cauchy distribution, in place.
    ///
    /// ```text
    /// cauchy_(Tensor x, Float median=0.0, Float sigma=1.0, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn cauchy_(&self, median: f64, sigma: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::cauchy_(self, median, sigma, generator, CallSite::here())?;
        Ok(self)
    }

    /// x becomes numbers whose logarithms are normal with this mean and standard deviation, in place.
    ///
    /// ```text
    /// log_normal_(Tensor x, Float mean=1.0, Float std=2.0, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn log_normal_(&self, mean: f64, std: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::log_normal_(self, mean, std, generator, CallSite::here())?;
        Ok(self)
    }

    /// x becomes numbers of trials until the first success, of the probability `p` each, in place: 1, 2, …
    ///
    /// ```text
    /// geometric_(Tensor x, Float p, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn geometric_(&self, p: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::geometric_(self, p, generator, CallSite::here())?;
        Ok(self)
    }

    /// x becomes 1 with probability `p` and 0 otherwise, in place.
    ///
    /// ```text
    /// bernoulli_(Tensor x, Float p=0.5, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn bernoulli_(&self, p: f64, generator: Option<&Generator>) -> Result<&Tensor> {
        super::super::random::bernoulli_(self, p, generator, CallSite::here())?;
        Ok(self)
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("zero_(Tensor x) -> Tensor", |b| {
        super::super::inplace::zero_(b.given(0)?, b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("fill_(Tensor x, Scalar value) -> Tensor", |b| {
        super::super::inplace::fill_(b.given(0)?, b.scalar(1)?, b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("copy_(Tensor x, Tensor other) -> Tensor", |b| {
        super::super::inplace::copy_(b.given(0)?, b.given(1)?, b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("normal_(Tensor x, Float mean=0.0, Float std=1.0, Generator? generator) -> Tensor", |b| {
        super::super::random::normal_(b.given(0)?, b.float(1)?, b.float(2)?, b.generator(3), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("uniform_(Tensor x, Float lo=0.0, Float hi=1.0, Generator? generator) -> Tensor", |b| {
        super::super::random::uniform_(b.given(0)?, b.float(1)?, b.float(2)?, b.generator(3), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("exponential_(Tensor x, Float rate=1.0, Generator? generator) -> Tensor", |b| {
        super::super::random::exponential_(b.given(0)?, b.float(1)?, b.generator(2), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("cauchy_(Tensor x, Float median=0.0, Float sigma=1.0, Generator? generator) -> Tensor", |b| {
        super::super::random::cauchy_(b.given(0)?, b.float(1)?, b.float(2)?, b.generator(3), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("log_normal_(Tensor x, Float mean=1.0, Float std=2.0, Generator? generator) -> Tensor", |b| {
        super::super::random::log_normal_(b.given(0)?, b.float(1)?, b.float(2)?, b.generator(3), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("geometric_(Tensor x, Float p, Generator? generator) -> Tensor", |b| {
        super::super::random::geometric_(b.given(0)?, b.float(1)?, b.generator(2), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
    ("bernoulli_(Tensor x, Float p=0.5, Generator? generator) -> Tensor", |b| {
        super::super::random::bernoulli_(b.given(0)?, b.float(1)?, b.generator(2), b.site)?;
        Ok(vec![b.given(0)?.clone()])
    }),
];
