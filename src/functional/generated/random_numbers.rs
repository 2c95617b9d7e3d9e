//! Random numbers: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::context::Generator;
use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntoTarget, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

/// Options of [`Tensor::dropout_with`](crate::Tensor::dropout_with).
#[derive(Clone, Debug, Default)]
pub struct DropoutOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`functional::rand_with`](crate::functional::rand_with).
#[derive(Clone, Debug)]
pub struct RandOptions {
    /// `Float lo=0.0`. `0.0` by default.
    pub lo: f64,
    /// `Float hi=1.0`. `1.0` by default.
    pub hi: f64,
}

impl Default for RandOptions {
    fn default() -> RandOptions {
        RandOptions {
            lo: 0.0,
            hi: 1.0,
        }
    }
}

/// Options of [`functional::randn_with`](crate::functional::randn_with).
#[derive(Clone, Debug)]
pub struct RandnOptions {
    /// `Float mean=0.0`. `0.0` by default.
    pub mean: f64,
    /// `Float std=1.0`. `1.0` by default.
    pub std: f64,
}

impl Default for RandnOptions {
    fn default() -> RandnOptions {
        RandnOptions {
            mean: 0.0,
            std: 1.0,
        }
    }
}

/// Options of [`Tensor::multinomial_with`](crate::Tensor::multinomial_with).
#[derive(Clone, Debug, Default)]
pub struct MultinomialOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`functional::normal_of_with`](crate::functional::normal_of_with).
#[derive(Clone, Debug, Default)]
pub struct NormalOfOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`Tensor::gumbel_softmax_with`](crate::Tensor::gumbel_softmax_with).
#[derive(Clone, Debug, Default)]
pub struct GumbelSoftmaxOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`Tensor::feature_dropout_with`](crate::Tensor::feature_dropout_with).
#[derive(Clone, Debug, Default)]
pub struct FeatureDropoutOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`Tensor::alpha_dropout_with`](crate::Tensor::alpha_dropout_with).
#[derive(Clone, Debug, Default)]
pub struct AlphaDropoutOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`Tensor::feature_alpha_dropout_with`](crate::Tensor::feature_alpha_dropout_with).
#[derive(Clone, Debug, Default)]
pub struct FeatureAlphaDropoutOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// Options of [`Tensor::rrelu_with`](crate::Tensor::rrelu_with).
#[derive(Clone, Debug, Default)]
pub struct RreluOptions {
    /// `Generator? generator`. Not given by default.
    pub generator: Option<Generator>,
}

/// 1 with probability p, else 0.
///
/// ```text
/// bernoulli(Shape shape, Float p, Target target, *, DataType dtype=f32, Generator? generator) -> Tensor
/// ```
#[track_caller]
pub fn bernoulli(shape: impl AsRef<[usize]>, p: f64, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    let site = CallSite::here();
    let [seed, ordinal] = target.drawn().map_err(|e| e.at(site))?;
    super::super::create(op!("bernoulli"), smallvec![AttrValue::from(shape.as_ref()), target.dtype_or(DType::F32).into()], smallvec![p.into(), seed, ordinal], target.target(), site)
}

/// Integers in [lo, hi).
///
/// ```text
/// randint(Int lo, Int hi, Shape shape, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor
/// ```
#[track_caller]
pub fn randint(
    lo: impl IntLike,
    hi: impl IntLike,
    shape: impl AsRef<[usize]>,
    target: impl IntoTarget,
) -> Result<Tensor> {
    let target = target.into_target();
    let site = CallSite::here();
    let [seed, ordinal] = target.drawn().map_err(|e| e.at(site))?;
    super::super::create(op!("randint"), smallvec![AttrValue::from(shape.as_ref()), target.dtype_or(DType::I64).into()], smallvec![lo.int().into(), hi.int().into(), seed, ordinal], target.target(), site)
}

/// Uniform numbers in [lo, hi); f32 unless the target says otherwise. Of complex numbers both parts are.
///
/// ```text
/// rand(Shape shape, Target target, *, Float lo=0.0, Float hi=1.0, DataType dtype=f32, Generator? generator) -> Tensor
/// ```
#[track_caller]
pub fn rand(shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::random::rand(shape.as_ref(), &target, 0.0, 1.0, CallSite::here())
}

/// [`functional::rand`](crate::functional::rand) with its options.
#[track_caller]
pub fn rand_with(
    shape: impl AsRef<[usize]>,
    target: impl IntoTarget,
    options: &crate::functional::RandOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::random::rand(shape.as_ref(), &target, options.lo, options.hi, CallSite::here())
}

/// Normal numbers with this mean and standard deviation; f32 unless the target says otherwise. Complex numbers have half of the variance
/// in each part.
///
/// ```text
/// randn(Shape shape, Target target, *, Float mean=0.0, Float std=1.0, DataType dtype=f32, Generator? generator) -> Tensor
/// ```
#[track_caller]
pub fn randn(shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::random::randn(shape.as_ref(), &target, 0.0, 1.0, CallSite::here())
}

/// [`functional::randn`](crate::functional::randn) with its options.
#[track_caller]
pub fn randn_with(
    shape: impl AsRef<[usize]>,
    target: impl IntoTarget,
    options: &crate::functional::RandnOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::random::randn(shape.as_ref(), &target, options.mean, options.std, CallSite::here())
}

/// The numbers from 0 to n - 1 in a random order, which does not depend on placement or SBP; i64 unless the target says otherwise.
///
/// ```text
/// randperm(Int n, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor
/// ```
///
/// ```
/// use oflow::prelude::*;
/// assert_eq!(randperm(4, Device::Cpu)?.msort()?.to_vec::<i64>()?, [0, 1, 2, 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn randperm(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::random::randperm(n.int(), &target, CallSite::here())
}

/// Normal numbers with this mean and standard deviation; f32 unless the target says otherwise.
///
/// ```text
/// normal(Float mean, Float std, Shape shape, Target target, *, DataType dtype=f32, Generator? generator) -> Tensor
/// ```
#[track_caller]
pub fn normal(mean: f64, std: f64, shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::random::normal(mean, std, shape.as_ref(), &target, CallSite::here())
}

/// Normal numbers, each with a mean and a standard deviation of its own. Shapes broadcast; there is a gradient of both.
///
/// ```text
/// normal(Tensor mean, Tensor std, *, Generator? generator) -> Tensor
/// ```
#[track_caller]
pub fn normal_of(mean: &Tensor, std: &Tensor) -> Result<Tensor> {
    super::super::random::normal_of(mean, std, None, CallSite::here())
}

/// [`functional::normal_of`](crate::functional::normal_of) with its options.
#[track_caller]
pub fn normal_of_with(
    mean: &Tensor,
    std: &Tensor,
    options: &crate::functional::NormalOfOptions,
) -> Result<Tensor> {
    super::super::random::normal_of(mean, std, options.generator.as_ref(), CallSite::here())
}

impl Tensor {
    /// Zeros with probability p, and the other elements times 1 / (1 - p). The mask depends on the seed and the logical position, not on placement or SBP. The result is always a new tensor; with p = 0 `nn::Dropout` returns its input instead.
    ///
    /// ```text
    /// dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If p is not within 0 and 1.
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Result<Tensor> {
        let site = CallSite::here();
        let [seed, ordinal] = super::super::draw::drawn(None).map_err(|e| e.at(site))?;
        invoke1(op!("dropout"), &[Some(self)], smallvec![], smallvec![p.into(), seed, ordinal], site)
    }

    /// [`Tensor::dropout`](crate::Tensor::dropout) with its options.
    #[track_caller]
    pub fn dropout_with(&self, p: f64, options: &crate::functional::DropoutOptions) -> Result<Tensor> {
        let site = CallSite::here();
        let [seed, ordinal] = super::super::draw::drawn(options.generator.as_ref()).map_err(|e| e.at(site))?;
        invoke1(op!("dropout"), &[Some(self)], smallvec![], smallvec![p.into(), seed, ordinal], site)
    }

    /// `num_samples` indices of each row of weights, each drawn with a probability in proportion to its weight; without `replacement` no
    /// index comes twice, and indices without weight come last. Weights are not negative and have a finite sum; they need not add up to
    /// one. The indices do not depend on placement or SBP.
    ///
    /// ```text
    /// multinomial(Tensor probs, Int num_samples, Bool replacement=false, *, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn multinomial(&self, num_samples: impl IntLike, replacement: bool) -> Result<Tensor> {
        super::super::random::multinomial(self, num_samples.int(), replacement, None, CallSite::here())
    }

    /// [`Tensor::multinomial`](crate::Tensor::multinomial) with its options.
    #[track_caller]
    pub fn multinomial_with(
        &self,
        num_samples: impl IntLike,
        replacement: bool,
        options: &crate::functional::MultinomialOptions,
    ) -> Result<Tensor> {
        super::super::random::multinomial(self, num_samples.int(), replacement, options.generator.as_ref(), CallSite::here())
    }

    /// Random choices among the categories along `dim`, with a gradient: the softmax of (logits + Gumbel noise) / `tau`. With `hard` the
    /// result is one-hot, and the gradient is that of the softmax (Jang et al., 2017).
    ///
    /// ```text
    /// gumbel_softmax(Tensor logits, Float tau=1.0, Bool hard=false, Int dim=-1, *, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn gumbel_softmax(&self, tau: f64, hard: bool, dim: impl IntLike) -> Result<Tensor> {
        super::super::random::gumbel_softmax(self, tau, hard, dim.int(), None, CallSite::here())
    }

    /// [`Tensor::gumbel_softmax`](crate::Tensor::gumbel_softmax) with its options.
    #[track_caller]
    pub fn gumbel_softmax_with(
        &self,
        tau: f64,
        hard: bool,
        dim: impl IntLike,
        options: &crate::functional::GumbelSoftmaxOptions,
    ) -> Result<Tensor> {
        super::super::random::gumbel_softmax(self, tau, hard, dim.int(), options.generator.as_ref(), CallSite::here())
    }

    /// Dropout of whole channels of `[batch, channels, …]`: each channel of each sample becomes 0 with probability `p`, the others are
    /// divided by 1 - p. What is dropped does not depend on placement or SBP.
    ///
    /// ```text
    /// feature_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn feature_dropout(&self, p: f64) -> Result<Tensor> {
        super::super::drops::feature_dropout(self, p, None, CallSite::here())
    }

    /// [`Tensor::feature_dropout`](crate::Tensor::feature_dropout) with its options.
    #[track_caller]
    pub fn feature_dropout_with(
        &self,
        p: f64,
        options: &crate::functional::FeatureDropoutOptions,
    ) -> Result<Tensor> {
        super::super::drops::feature_dropout(self, p, options.generator.as_ref(), CallSite::here())
    }

    /// Elements become the negative limit of SELU with probability `p`; then all are scaled and shifted, so that mean 0 and variance 1 stay
    /// (Klambauer et al., 2017). With p = 1 all are 0.
    ///
    /// ```text
    /// alpha_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn alpha_dropout(&self, p: f64) -> Result<Tensor> {
        super::super::drops::alpha_dropout(self, p, None, CallSite::here())
    }

    /// [`Tensor::alpha_dropout`](crate::Tensor::alpha_dropout) with its options.
    #[track_caller]
    pub fn alpha_dropout_with(&self, p: f64, options: &crate::functional::AlphaDropoutOptions) -> Result<Tensor> {
        super::super::drops::alpha_dropout(self, p, options.generator.as_ref(), CallSite::here())
    }

    /// `alpha_dropout` of whole channels of `[batch, channels, …]`.
    ///
    /// ```text
    /// feature_alpha_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn feature_alpha_dropout(&self, p: f64) -> Result<Tensor> {
        super::super::drops::feature_alpha_dropout(self, p, None, CallSite::here())
    }

    /// [`Tensor::feature_alpha_dropout`](crate::Tensor::feature_alpha_dropout) with its options.
    #[track_caller]
    pub fn feature_alpha_dropout_with(
        &self,
        p: f64,
        options: &crate::functional::FeatureAlphaDropoutOptions,
    ) -> Result<Tensor> {
        super::super::drops::feature_alpha_dropout(self, p, options.generator.as_ref(), CallSite::here())
    }

    /// x, or a slope times x where x is not above 0: with `training` each element has a random slope from `lower` to `upper`, else all have
    /// their mean.
    ///
    /// ```text
    /// rrelu(Tensor x, Float lower=0.125, Float upper=0.3333333333333333, Bool training=false, *, Generator? generator) -> Tensor
    /// ```
    #[track_caller]
    pub fn rrelu(&self, lower: f64, upper: f64, training: bool) -> Result<Tensor> {
        super::super::drops::rrelu(self, lower, upper, training, None, CallSite::here())
    }

    /// [`Tensor::rrelu`](crate::Tensor::rrelu) with its options.
    #[track_caller]
    pub fn rrelu_with(
        &self,
        lower: f64,
        upper: f64,
        training: bool,
        options: &crate::functional::RreluOptions,
    ) -> Result<Tensor> {
        super::super::drops::rrelu(self, lower, upper, training, options.generator.as_ref(), CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("rand(Shape shape, Target target, *, Float lo=0.0, Float hi=1.0, DataType dtype=f32, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::rand(&b.shape(0)?, &b.drawing_target_of(1, Some(4), 5)?, b.float(2)?, b.float(3)?, b.site)?])),
    ("randn(Shape shape, Target target, *, Float mean=0.0, Float std=1.0, DataType dtype=f32, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::randn(&b.shape(0)?, &b.drawing_target_of(1, Some(4), 5)?, b.float(2)?, b.float(3)?, b.site)?])),
    ("randperm(Int n, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::randperm(b.int(0)?, &b.drawing_target_of(1, Some(2), 3)?, b.site)?])),
    ("multinomial(Tensor probs, Int num_samples, Bool replacement=false, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::multinomial(b.given(0)?, b.int(1)?, b.bool(2)?, b.generator(3), b.site)?])),
    ("normal(Float mean, Float std, Shape shape, Target target, *, DataType dtype=f32, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::normal(b.float(0)?, b.float(1)?, &b.shape(2)?, &b.drawing_target_of(3, Some(4), 5)?, b.site)?])),
    ("normal(Tensor mean, Tensor std, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::normal_of(b.given(0)?, b.given(1)?, b.generator(2), b.site)?])),
    ("gumbel_softmax(Tensor logits, Float tau=1.0, Bool hard=false, Int dim=-1, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::random::gumbel_softmax(b.given(0)?, b.float(1)?, b.bool(2)?, b.int(3)?, b.generator(4), b.site)?])),
    ("feature_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::drops::feature_dropout(b.given(0)?, b.float(1)?, b.generator(2), b.site)?])),
    ("alpha_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::drops::alpha_dropout(b.given(0)?, b.float(1)?, b.generator(2), b.site)?])),
    ("feature_alpha_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::drops::feature_alpha_dropout(b.given(0)?, b.float(1)?, b.generator(2), b.site)?])),
    ("rrelu(Tensor x, Float lower=0.125, Float upper=0.3333333333333333, Bool training=false, *, Generator? generator) -> Tensor", |b| Ok(vec![super::super::drops::rrelu(b.given(0)?, b.float(1)?, b.float(2)?, b.bool(3)?, b.generator(4), b.site)?])),
];
