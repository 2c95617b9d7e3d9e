//! Creation: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntoTarget};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;

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

/// `value` everywhere, with the same shape, dtype and layout.
///
/// ```text
/// full_like(Tensor x, Scalar value) -> Tensor
/// ```
#[track_caller]
pub fn full_like(x: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
    super::super::create::full_like(x, value.into(), CallSite::here())
}


/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("full(Shape shape, Scalar value, Target target, *, DataType? dtype) -> Tensor", |b| Ok(vec![super::super::create::full(&b.shape(0)?, b.scalar(1)?, &b.target_of(2, Some(3))?, b.site)?])),
    ("zeros(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::zeros(&b.shape(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("ones(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::ones(&b.shape(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("empty(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", |b| Ok(vec![super::super::create::zeros(&b.shape(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("arange(Int end, Target target, *, DataType dtype=i64) -> Tensor", |b| Ok(vec![super::super::create::arange(b.int(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("arange(Scalar start, Scalar end, Scalar step, Target target, *, DataType? dtype) -> Tensor", |b| Ok(vec![super::super::create::range(b.scalar(0)?, b.scalar(1)?, b.scalar(2)?, &b.target_of(3, Some(4))?, b.site)?])),
    ("scalar_tensor(Scalar value, Target target, *, DataType? dtype) -> Tensor", |b| Ok(vec![super::super::create::scalar_tensor(b.scalar(0)?, &b.target_of(1, Some(2))?, b.site)?])),
    ("zeros_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::create::zeros_like(b.given(0)?, b.site)?])),
    ("ones_like(Tensor x) -> Tensor", |b| Ok(vec![super::super::create::ones_like(b.given(0)?, b.site)?])),
    ("full_like(Tensor x, Scalar value) -> Tensor", |b| Ok(vec![super::super::create::full_like(b.given(0)?, b.scalar(1)?, b.site)?])),
];
