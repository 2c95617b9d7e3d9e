//! Activations: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

/// Options of [`Tensor::softplus_with`](crate::Tensor::softplus_with).
#[derive(Clone, Debug)]
pub struct SoftplusOptions {
    /// `Float beta=1.0`. `1.0` by default.
    pub beta: f64,
    /// `Float threshold=20.0`. `20.0` by default.
    pub threshold: f64,
}

impl Default for SoftplusOptions {
    fn default() -> SoftplusOptions {
        SoftplusOptions {
            beta: 1.0,
            threshold: 20.0,
        }
    }
}

impl Tensor {
    /// max(x, 0).
    ///
    /// ```text
    /// relu(Tensor x) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![-1.0f32, 2.0], [2], Device::Cpu)?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn relu(&self) -> Result<Tensor> {
        invoke1(op!("relu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The sigmoid σ(x) = 1 / (1 + e⁻ˣ).
    ///
    /// ```text
    /// sigmoid(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn sigmoid(&self) -> Result<Tensor> {
        invoke1(op!("sigmoid"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The hyperbolic tangent.
    ///
    /// ```text
    /// tanh(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn tanh(&self) -> Result<Tensor> {
        invoke1(op!("tanh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x Φ(x), with the exact normal distribution function Φ (by erf).
    ///
    /// ```text
    /// gelu(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn gelu(&self) -> Result<Tensor> {
        invoke1(op!("gelu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// GELU by its tanh approximation.
    ///
    /// ```text
    /// gelu_tanh(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn gelu_tanh(&self) -> Result<Tensor> {
        invoke1(op!("gelu_tanh"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x σ(1.702 x), the sigmoid approximation of GELU.
    ///
    /// ```text
    /// quick_gelu(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn quick_gelu(&self) -> Result<Tensor> {
        invoke1(op!("quick_gelu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x σ(x).
    ///
    /// ```text
    /// silu(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float or complex.
    #[track_caller]
    pub fn silu(&self) -> Result<Tensor> {
        invoke1(op!("silu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x tanh(softplus(x)).
    ///
    /// ```text
    /// mish(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn mish(&self) -> Result<Tensor> {
        invoke1(op!("mish"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x, or alpha x where x is negative.
    ///
    /// ```text
    /// leaky_relu(Tensor x, Float alpha=0.01) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn leaky_relu(&self, alpha: f64) -> Result<Tensor> {
        invoke1(op!("leaky_relu"), &[Some(self)], smallvec![], smallvec![alpha.into()], CallSite::here())
    }

    /// x, or alpha (eˣ - 1) where x is negative.
    ///
    /// ```text
    /// elu(Tensor x, Float alpha=1.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        invoke1(op!("elu"), &[Some(self)], smallvec![], smallvec![alpha.into()], CallSite::here())
    }

    /// log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.
    ///
    /// ```text
    /// softplus(Tensor x, *, Float beta=1.0, Float threshold=20.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn softplus(&self) -> Result<Tensor> {
        invoke1(op!("softplus"), &[Some(self)], smallvec![], smallvec![(1.0).into(), (20.0).into()], CallSite::here())
    }

    /// [`Tensor::softplus`](crate::Tensor::softplus) with its options.
    #[track_caller]
    pub fn softplus_with(&self, options: &crate::functional::SoftplusOptions) -> Result<Tensor> {
        invoke1(op!("softplus"), &[Some(self)], smallvec![], smallvec![options.beta.into(), options.threshold.into()], CallSite::here())
    }

    /// log σ(x).
    ///
    /// ```text
    /// log_sigmoid(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn log_sigmoid(&self) -> Result<Tensor> {
        invoke1(op!("log_sigmoid"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x / (1 + |x|).
    ///
    /// ```text
    /// softsign(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn softsign(&self) -> Result<Tensor> {
        invoke1(op!("softsign"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// SELU (Klambauer et al., 2017): a scaled ELU that keeps mean 0 and variance 1.
    ///
    /// ```text
    /// selu(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn selu(&self) -> Result<Tensor> {
        invoke1(op!("selu"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x, but not below lo and not above hi.
    ///
    /// ```text
    /// hardtanh(Tensor x, Float lo=-1.0, Float hi=1.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn hardtanh(&self, lo: f64, hi: f64) -> Result<Tensor> {
        invoke1(op!("hardtanh"), &[Some(self)], smallvec![], smallvec![lo.into(), hi.into()], CallSite::here())
    }

    /// The piecewise linear sigmoid: x / 6 + 1/2, clamped to 0 and 1.
    ///
    /// ```text
    /// hardsigmoid(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn hardsigmoid(&self) -> Result<Tensor> {
        invoke1(op!("hardsigmoid"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x, or 0 where |x| is not above lambd.
    ///
    /// ```text
    /// hardshrink(Tensor x, Float lambd=0.5) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn hardshrink(&self, lambd: f64) -> Result<Tensor> {
        invoke1(op!("hardshrink"), &[Some(self)], smallvec![], smallvec![lambd.into()], CallSite::here())
    }

    /// x moved towards zero by lambd, or 0 where |x| is not above lambd.
    ///
    /// ```text
    /// softshrink(Tensor x, Float lambd=0.5) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn softshrink(&self, lambd: f64) -> Result<Tensor> {
        invoke1(op!("softshrink"), &[Some(self)], smallvec![], smallvec![lambd.into()], CallSite::here())
    }

    /// x, but not below 0 and not above 6.
    ///
    /// ```text
    /// relu6(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn relu6(&self) -> Result<Tensor> {
        invoke1(op!("relu6"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x, or alpha (e^(x / alpha) - 1) where x is negative: an ELU whose slope has no step.
    ///
    /// ```text
    /// celu(Tensor x, Float alpha=1.0) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn celu(&self, alpha: f64) -> Result<Tensor> {
        invoke1(op!("celu"), &[Some(self)], smallvec![], smallvec![alpha.into()], CallSite::here())
    }

    /// x - tanh(x).
    ///
    /// ```text
    /// tanhshrink(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn tanhshrink(&self) -> Result<Tensor> {
        invoke1(op!("tanhshrink"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x hardsigmoid(x).
    ///
    /// ```text
    /// hardswish(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
    #[track_caller]
    pub fn hardswish(&self) -> Result<Tensor> {
        invoke1(op!("hardswish"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x, or `value` where x is not above `threshold`.
    ///
    /// ```text
    /// threshold(Tensor x, Scalar threshold, Scalar value) -> Tensor
    /// ```
    #[track_caller]
    pub fn threshold(&self, threshold: impl Into<Scalar>, value: impl Into<Scalar>) -> Result<Tensor> {
        invoke1(op!("threshold"), &[Some(self)], smallvec![], smallvec![threshold.into(), value.into()], CallSite::here())
    }

    /// x, or `weight` x where x is not above 0. The weight is one number, or one for each channel, dim 1 of x.
    ///
    /// ```text
    /// prelu(Tensor x, Tensor weight) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![-4.0f32, 2.0, -4.0, 2.0], [2, 2], Device::Cpu)?;
    /// let weight = from_vec(vec![0.25f32, 0.5], [2], Device::Cpu)?;
    /// assert_eq!(x.prelu(&weight)?.to_vec::<f32>()?, [-1.0, 2.0, -1.0, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// The weight is neither one number nor one for each channel.
    #[track_caller]
    pub fn prelu(&self, weight: &Tensor) -> Result<Tensor> {
        super::super::gates::prelu(self, weight, CallSite::here())
    }

    /// a sigmoid(b), where a and b are the halves of x along `dim`.
    ///
    /// ```text
    /// glu(Tensor x, Int dim=-1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// The dim has an odd size.
    #[track_caller]
    pub fn glu(&self, dim: impl IntLike) -> Result<Tensor> {
        super::super::gates::glu(self, dim.int(), CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("prelu(Tensor x, Tensor weight) -> Tensor", |b| Ok(vec![super::super::gates::prelu(b.given(0)?, b.given(1)?, b.site)?])),
    ("glu(Tensor x, Int dim=-1) -> Tensor", |b| Ok(vec![super::super::gates::glu(b.given(0)?, b.int(1)?, b.site)?])),
];
