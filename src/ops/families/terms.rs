//! Helpers of gradient rules that are written in Rust: products, sums of the contributions that exist.

use crate::error::Result;
use crate::ops::{GradCtx, Value};
use oflow_kernels::Scalar;

pub(super) fn product(g: &mut dyn GradCtx, a: Value, b: Value) -> Result<Value> {
    g.call("mul", &[a, b], &[])
}

pub(super) fn times(g: &mut dyn GradCtx, v: Value, s: f64) -> Result<Value> {
    g.call("mul_scalar", &[v], &[("s", Scalar::Float(s).into())])
}

/// The sum of what there is.
pub(super) fn total(g: &mut dyn GradCtx, parts: impl IntoIterator<Item = Option<Value>>) -> Result<Option<Value>> {
    let mut sum = None;
    for v in parts.into_iter().flatten() {
        sum = Some(match sum {
            None => v,
            Some(s) => g.call("add", &[s, v], &[])?,
        });
    }
    Ok(sum)
}

/// The gradient of input `i` is the sum of what there is, spread over the input's dims where it has fewer elements.
pub(super) fn set_total(g: &mut dyn GradCtx, i: usize, parts: impl IntoIterator<Item = Option<Value>>) -> Result<()> {
    let Some(sum) = total(g, parts)? else { return Ok(()) };
    let shape = g.input_shape(i);
    let sum = match g.shape(sum) == shape {
        true => sum,
        false => g.call("expand", &[sum], &[("shape", shape.as_slice().into())])?,
    };
    g.set(i, sum)
}
