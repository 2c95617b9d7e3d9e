//! Initial values of parameters. On a global target random values come from the global generator, so they do not depend on placement
//! or SBP; make parameters in the same order on every rank.

use crate::error::{CallSite, Result};
use crate::functional::{IntoTarget, create, full, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

/// Makes a parameter with the op `rand` or `randn`. Runtime attributes: the op's two floats (bounds, or mean and standard deviation),
/// seed and ordinal.
fn drawn(
    op: Result<&'static crate::ops::Op>,
    (a, b): (f64, f64),
    shape: &[usize],
    target: impl IntoTarget,
    site: CallSite,
) -> Result<Tensor> {
    let t = target.into_target();
    let attrs = smallvec![AttrValue::from(shape), t.dtype_or(DType::F32).into()];
    let [seed, ordinal] = t.drawn().map_err(|e| e.at(site))?;
    let runtime = smallvec![Scalar::Float(a), Scalar::Float(b), seed, ordinal];
    create(op, attrs, runtime, t.target(), site)?.requires_grad_(true)
}

/// Returns a parameter with elements uniform in [-bound, bound).
#[track_caller]
pub fn uniform(shape: impl AsRef<[usize]>, bound: f64, target: impl IntoTarget) -> Result<Tensor> {
    drawn(op!("rand"), (-bound, bound), shape.as_ref(), target, CallSite::here())
}

/// Returns a parameter with normally distributed elements of mean 0 and standard deviation `std`.
#[track_caller]
pub fn normal(shape: impl AsRef<[usize]>, std: f64, target: impl IntoTarget) -> Result<Tensor> {
    drawn(op!("randn"), (0.0, std), shape.as_ref(), target, CallSite::here())
}

/// Returns a parameter with all elements `value`.
#[track_caller]
pub fn constant(shape: impl AsRef<[usize]>, value: f64, target: impl IntoTarget) -> Result<Tensor> {
    full(shape, value, target)?.requires_grad_(true)
}

/// Returns the dotted name of a part of a module: `name.part`, or `part` if `name` is empty (the outermost module).
pub fn dotted(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_string() } else { format!("{name}.{part}") }
}
