//! Creation: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntoTarget};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;

/// Options of [`functional::logspace_with`](crate::functional::logspace_with).
#[derive(Clone, Debug)]
pub struct LogspaceOptions {
    /// `Float base=10.0`. `10.0` by default.
    pub base: f64,
}

impl Default for LogspaceOptions {
    fn default() -> LogspaceOptions {
        LogspaceOptions {
            base: 10.0,
        }
    }
}

/// Options of [`functional::eye_with`](crate::functional::eye_with).
#[derive(Clone, Debug, Default)]
pub struct EyeOptions {
    /// `Int? m`. Not given by default.
    pub m: Option<i64>,
}

/// Options of [`functional::hann_window_with`](crate::functional::hann_window_with).
#[derive(Clone, Debug)]
pub struct HannWindowOptions {
    /// `Bool periodic=true`. `true` by default.
    pub periodic: bool,
}

impl Default for HannWindowOptions {
    fn default() -> HannWindowOptions {
        HannWindowOptions {
            periodic: true,
        }
    }
}

/// Options of [`functional::hamming_window_with`](crate::functional::hamming_window_with).
#[derive(Clone, Debug)]
pub struct HammingWindowOptions {
    /// `Bool periodic=true`. `true` by default.
    pub periodic: bool,
    /// `Float alpha=0.54`. `0.54` by default.
    pub alpha: f64,
    /// `Float beta=0.46`. `0.46` by default.
    pub beta: f64,
}

impl Default for HammingWindowOptions {
    fn default() -> HammingWindowOptions {
        HammingWindowOptions {
            periodic: true,
            alpha: 0.54,
            beta: 0.46,
        }
    }
}

/// Options of [`functional::blackman_window_with`](crate::functional::blackman_window_with).
#[derive(Clone, Debug)]
pub struct BlackmanWindowOptions {
    /// `Bool periodic=true`. `true` by default.
    pub periodic: bool,
}

impl Default for BlackmanWindowOptions {
    fn default() -> BlackmanWindowOptions {
        BlackmanWindowOptions {
            periodic: true,
        }
    }
}

/// Options of [`functional::bartlett_window_with`](crate::functional::bartlett_window_with).
#[derive(Clone, Debug)]
pub struct BartlettWindowOptions {
    /// `Bool periodic=true`. `true` by default.
    pub periodic: bool,
}

impl Default for BartlettWindowOptions {
    fn default() -> BartlettWindowOptions {
        BartlettWindowOptions {
            periodic: true,
        }
    }
}

/// Options of [`functional::kaiser_window_with`](crate::functional::kaiser_window_with).
#[derive(Clone, Debug)]
pub struct KaiserWindowOptions {
    /// `Bool periodic=true`. `true` by default.
    pub periodic: bool,
    /// `Float beta=12.0`. `12.0` by default.
    pub beta: f64,
}

impl Default for KaiserWindowOptions {
    fn default() -> KaiserWindowOptions {
        KaiserWindowOptions {
            periodic: true,
            beta: 12.0,
        }
    }
}

/// Every element is `value`; the dtype is that of the number's kind unless the target says otherwise.
///
/// ```text
/// full(Shape shape, Scalar value, Target target, *, DataType? dtype) -> Tensor
/// ```
#[track_caller]
pub fn full(shape: impl AsRef<[usize]>, value: impl Into<Scalar>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::full(shape.as_ref(), value.into(), &target, CallSite::here())
}

/// Zeros; f32 unless the target says otherwise.
///
/// ```text
/// zeros(Shape shape, Target target, *, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn zeros(shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::zeros(shape.as_ref(), &target, CallSite::here())
}

/// Ones; f32 unless the target says otherwise.
///
/// ```text
/// ones(Shape shape, Target target, *, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn ones(shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::ones(shape.as_ref(), &target, CallSite::here())
}

/// Memory whose contents nobody reads before writing them; zeros, so that no rank ever sees another's garbage.
///
/// ```text
/// empty(Shape shape, Target target, *, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn empty(shape: impl AsRef<[usize]>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::zeros(shape.as_ref(), &target, CallSite::here())
}

/// 0, 1, … below `end`; i64 unless the target says otherwise.
///
/// ```text
/// arange(Int end, Target target, *, DataType dtype=i64) -> Tensor
/// ```
#[track_caller]
pub fn arange(end: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::arange(end.int(), &target, CallSite::here())
}

/// start, start + step, … below `end`: of integers i64, else f32, unless the target says otherwise.
///
/// ```text
/// arange(Scalar start, Scalar end, Scalar step, Target target, *, DataType? dtype) -> Tensor
/// ```
///
/// # Errors
/// On a step of zero or one that leads away from `end`.
#[track_caller]
pub fn range(
    start: impl Into<Scalar>,
    end: impl Into<Scalar>,
    step: impl Into<Scalar>,
    target: impl IntoTarget,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::range(start.into(), end.into(), step.into(), &target, CallSite::here())
}

/// `steps` numbers from `start` to `end`, both included, in equal steps; f32 unless the target says otherwise.
///
/// ```text
/// linspace(Float start, Float end, Int steps, Target target, *, DataType dtype=f32) -> Tensor
/// ```
///
/// ```
/// use oflow::prelude::*;
/// assert_eq!(linspace(0.0, 1.0, 3, Device::Cpu)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn linspace(start: f64, end: f64, steps: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::linspace(start, end, steps.int(), &target, CallSite::here())
}

/// `steps` numbers from `base` to the power `start` to `base` to the power `end`, with exponents in equal steps; f32 unless the
/// target says otherwise.
///
/// ```text
/// logspace(Float start, Float end, Int steps, Target target, *, Float base=10.0, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn logspace(start: f64, end: f64, steps: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::logspace(start, end, steps.int(), &target, 10.0, CallSite::here())
}

/// [`functional::logspace`](crate::functional::logspace) with its options.
#[track_caller]
pub fn logspace_with(
    start: f64,
    end: f64,
    steps: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::LogspaceOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::logspace(start, end, steps.int(), &target, options.base, CallSite::here())
}

/// A matrix of `n` rows with ones on its diagonal; with `m` columns where given, else square. f32 unless the target says otherwise.
///
/// ```text
/// eye(Int n, Target target, *, Int? m, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn eye(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::eye(n.int(), &target, None, CallSite::here())
}

/// [`functional::eye`](crate::functional::eye) with its options.
#[track_caller]
pub fn eye_with(
    n: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::EyeOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::eye(n.int(), &target, options.m, CallSite::here())
}

/// A tensor without dims.
///
/// ```text
/// scalar_tensor(Scalar value, Target target, *, DataType? dtype) -> Tensor
/// ```
#[track_caller]
pub fn scalar_tensor(value: impl Into<Scalar>, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::create::scalar_tensor(value.into(), &target, CallSite::here())
}

/// Zeros of the same shape, dtype and layout.
///
/// ```text
/// zeros_like(Tensor x) -> Tensor
/// ```
#[track_caller]
pub fn zeros_like(x: &Tensor) -> Result<Tensor> {
    super::super::create::zeros_like(x, CallSite::here())
}

/// Ones of the same shape, dtype and layout.
///
/// ```text
/// ones_like(Tensor x) -> Tensor
/// ```
#[track_caller]
pub fn ones_like(x: &Tensor) -> Result<Tensor> {
    super::super::create::ones_like(x, CallSite::here())
}

/// Memory whose contents nobody reads before writing them (zeros), with the same shape, dtype and layout.
///
/// ```text
/// empty_like(Tensor x) -> Tensor
/// ```
#[track_caller]
pub fn empty_like(x: &Tensor) -> Result<Tensor> {
    super::super::create::zeros_like(x, CallSite::here())
}

/// Integers in [lo, hi), with the same shape, dtype and layout.
///
/// ```text
/// randint_like(Tensor x, Int lo, Int hi) -> Tensor
/// ```
#[track_caller]
pub fn randint_like(x: &Tensor, lo: impl IntLike, hi: impl IntLike) -> Result<Tensor> {
    super::super::create::randint_like(x, lo.int(), hi.int(), CallSite::here())
}

/// `value` everywhere, with the same shape, dtype and layout.
///
/// ```text
/// full_like(Tensor x, Scalar value) -> Tensor
/// ```
#[track_caller]
pub fn full_like(x: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
    super::super::create::full_like(x, value.into(), CallSite::here())
}

/// Uniform numbers in [0, 1), with the same shape, dtype and layout.
///
/// ```text
/// rand_like(Tensor x) -> Tensor
/// ```
#[track_caller]
pub fn rand_like(x: &Tensor) -> Result<Tensor> {
    super::super::random::rand_like(x, CallSite::here())
}

/// Normal numbers with mean 0 and standard deviation 1, with the same shape, dtype and layout.
///
/// ```text
/// randn_like(Tensor x) -> Tensor
/// ```
#[track_caller]
pub fn randn_like(x: &Tensor) -> Result<Tensor> {
    super::super::random::randn_like(x, CallSite::here())
}

/// The Hann window sin²(πk / n) of `n` numbers; f32 unless the target says otherwise. With `periodic` it is one number longer, and
/// the last is left out: what a Fourier transform wants. Else it is symmetric.
///
/// ```text
/// hann_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor
/// ```
///
/// ```
/// use oflow::prelude::*;
/// use oflow::functional::hann_window;
/// assert_eq!(hann_window(4, Device::Cpu)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn hann_window(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::hann_window(n.int(), &target, true, CallSite::here())
}

/// [`functional::hann_window`](crate::functional::hann_window) with its options.
#[track_caller]
pub fn hann_window_with(
    n: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::HannWindowOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::hann_window(n.int(), &target, options.periodic, CallSite::here())
}

/// The Hamming window `alpha` - `beta` cos(2πk / n).
///
/// ```text
/// hamming_window(Int n, Target target, *, Bool periodic=true, Float alpha=0.54, Float beta=0.46, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn hamming_window(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::hamming_window(n.int(), &target, true, 0.54, 0.46, CallSite::here())
}

/// [`functional::hamming_window`](crate::functional::hamming_window) with its options.
#[track_caller]
pub fn hamming_window_with(
    n: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::HammingWindowOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::hamming_window(n.int(), &target, options.periodic, options.alpha, options.beta, CallSite::here())
}

/// The Blackman window 0.42 - 0.5 cos(2πk / n) + 0.08 cos(4πk / n).
///
/// ```text
/// blackman_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn blackman_window(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::blackman_window(n.int(), &target, true, CallSite::here())
}

/// [`functional::blackman_window`](crate::functional::blackman_window) with its options.
#[track_caller]
pub fn blackman_window_with(
    n: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::BlackmanWindowOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::blackman_window(n.int(), &target, options.periodic, CallSite::here())
}

/// The Bartlett window, which rises and falls in straight lines.
///
/// ```text
/// bartlett_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn bartlett_window(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::bartlett_window(n.int(), &target, true, CallSite::here())
}

/// [`functional::bartlett_window`](crate::functional::bartlett_window) with its options.
#[track_caller]
pub fn bartlett_window_with(
    n: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::BartlettWindowOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::bartlett_window(n.int(), &target, options.periodic, CallSite::here())
}

/// The Kaiser window, of Bessel functions: the wider, the smaller `beta`.
///
/// ```text
/// kaiser_window(Int n, Target target, *, Bool periodic=true, Float beta=12.0, DataType dtype=f32) -> Tensor
/// ```
#[track_caller]
pub fn kaiser_window(n: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::kaiser_window(n.int(), &target, true, 12.0, CallSite::here())
}

/// [`functional::kaiser_window`](crate::functional::kaiser_window) with its options.
#[track_caller]
pub fn kaiser_window_with(
    n: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::KaiserWindowOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::signal::kaiser_window(n.int(), &target, options.periodic, options.beta, CallSite::here())
}


/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("full(Shape shape, Scalar value, Target target, *, DataType? dtype) -> Tensor", |b| Ok(vec![super::super::create::full(&b.shape(0)?, b.scalar(1)?, &b.target_of(2, Some(3))?, b.site)?])),
    ("zeros(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::zeros(&b.shape(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("ones(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::ones(&b.shape(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("empty(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::zeros(&b.shape(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("arange(Int end, Target target, *, DataType dtype=i64) -> Tensor", |b| Ok(vec![super::super::create::arange(b.int(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("arange(Scalar start, Scalar end, Scalar step, Target target, *, DataType? dtype) -> Tensor", |b| Ok(vec![super::super::create::range(b.scalar(0)?, b.scalar(1)?, b.scalar(2)?, &b.target_of(3, Some(4))?, b.site)?])),
    ("linspace(Float start, Float end, Int steps, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::linspace(b.float(0)?, b.float(1)?, b.int(2)?, &b.target_of(3, Some(4))?, b.site)?])),
    ("logspace(Float start, Float end, Int steps, Target target, *, Float base=10.0, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::logspace(b.float(0)?, b.float(1)?, b.int(2)?, &b.target_of(3, Some(5))?, b.float(4)?, b.site)?])),
    ("eye(Int n, Target target, *, Int? m, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::eye(b.int(0)?, &b.target_of(1, Some(3))?, b.int(2).ok(), b.site)?])),
    ("scalar_tensor(Scalar value, Target target, *, DataType? dtype) -> Tensor", |b| Ok(vec![super::super::create::scalar_tensor(b.scalar(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("zeros_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::create::zeros_like(b.given(0)?, b.site)?])),
    ("ones_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::create::ones_like(b.given(0)?, b.site)?])),
    ("empty_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::create::zeros_like(b.given(0)?, b.site)?])),
    ("randint_like(Tensor x, Int lo, Int hi) -> Tensor", |b| Ok(vec![super::super::create::randint_like(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("full_like(Tensor x, Scalar value) -> Tensor", |b| Ok(vec![super::super::create::full_like(b.given(0)?, b.scalar(1)?, b.site)?])),
    ("rand_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::random::rand_like(b.given(0)?, b.site)?])),
    ("randn_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::random::randn_like(b.given(0)?, b.site)?])),
    ("hann_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::signal::hann_window(b.int(0)?, &b.target_of(1, Some(3))?, b.bool(2)?, b.site)?])),
    ("hamming_window(Int n, Target target, *, Bool periodic=true, Float alpha=0.54, Float beta=0.46, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::signal::hamming_window(b.int(0)?, &b.target_of(1, Some(5))?, b.bool(2)?, b.float(3)?, b.float(4)?, b.site)?])),
    ("blackman_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::signal::blackman_window(b.int(0)?, &b.target_of(1, Some(3))?, b.bool(2)?, b.site)?])),
    ("bartlett_window(Int n, Target target, *, Bool periodic=true, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::signal::bartlett_window(b.int(0)?, &b.target_of(1, Some(3))?, b.bool(2)?, b.site)?])),
    ("kaiser_window(Int n, Target target, *, Bool periodic=true, Float beta=12.0, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::signal::kaiser_window(b.int(0)?, &b.target_of(1, Some(4))?, b.bool(2)?, b.float(3)?, b.site)?])),
];
