//! Products and the functions of neural nets that are several ops.

use super::{invoke, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{Call, first};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

functions! {
    PRODUCTS, "Products";
    /// The matrix product of `[..., m, k]` and `[..., k, n]`, of shape `[..., m, n]`. Leading dims broadcast; a vector is a matrix of one row
    /// or one column, as in PyTorch. Matrices may be transposed first.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let a = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// let v = from_vec(vec![1.0f32, 1.0], [2], Device::Cpu)?;
    /// assert_eq!(a.matmul(&v)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "matmul(Tensor a, Tensor b, *, Bool transpose_a=false, Bool transpose_b=false) -> Tensor" = matmul;
    /// a bᵀ for `[..., m, k]` and `[..., n, k]`, of shape `[..., m, n]`.
    "matmul_t(Tensor a, Tensor b) -> Tensor" = matmul_t;
    /// x weightᵀ + bias for an input `[..., in]`, a weight `[out, in]` and a bias `[out]`, of shape `[..., out]`. Autocast casts all three.
    "linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor" = linear;
}

functions! {
    NETWORKS, "Networks";
    /// The last dims with mean 0 and variance 1, times `weight`, plus `bias`. The number of dims is that of `weight`, 1 without one,
    /// unless `axes` says otherwise. `eps` is added to the variance.
    "layer_norm(Tensor x, Tensor? weight, Tensor? bias, Float eps=1e-5, *, Int? axes) -> Tensor" = layer_norm;
    /// x divided by the root mean square over the last dims, times `weight`. The number of dims is that of `weight`, 1 without one,
    /// unless `axes` says otherwise. `eps` is added to the mean square; it is the distance from 1 to the next number of x's dtype,
    /// for halves of f32, unless given.
    "rms_norm(Tensor x, Tensor? weight, Float? eps, *, Int? axes) -> Tensor" = rms_norm;
    /// softmax(scale q kᵀ) v for queries, keys and values of shape `[B, H, T, D]`. With `causal`, query i attends to keys 0..=i only.
    /// `scale` is 1 / √D unless given. Memory is linear in T; a derivative of second order takes memory quadratic in T.
    "attention(Tensor q, Tensor k, Tensor v, Bool causal=false, *, Float? scale, Int gather_limit=268435456) -> Tensor" = attention;
}

/// The product of two tensors of at least 2 dims.
fn product(a: &Tensor, b: &Tensor, turned: [bool; 2], site: CallSite) -> Result<Tensor> {
    let op = op!("matmul")?;
    first(Call::new(op, &[Some(a), Some(b)]).attrs(turned).at(site).run()?, op, site)
}

pub(super) fn matmul(a: &Tensor, b: &Tensor, transpose_a: bool, transpose_b: bool, site: CallSite) -> Result<Tensor> {
    if a.ndim() >= 2 && b.ndim() >= 2 {
        product(a, b, [transpose_a, transpose_b], site)
    } else {
        with_vector(a, b, [transpose_a, transpose_b], site)
    }
}

pub(super) fn matmul_t(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    matmul(a, b, false, true, site)
}

/// A product in which one of the two is a vector: as a matrix of one row or one column, which the result does not have. A vector
/// has no transpose.
fn with_vector(a: &Tensor, b: &Tensor, turned: [bool; 2], site: CallSite) -> Result<Tensor> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return Err(Error::shape("a matrix product needs at least 1 dim")
            .in_call(|| format!("matmul({}, {})", a.short(), b.short()))
            .at(site));
    }
    let inner = inner_calls();
    let mut shape: Vec<usize> = vec![];
    let left = match a.ndim() {
        1 => a.reshape_at(&[1, a.shape()[0]], site)?,
        _ => a.clone(),
    };
    let right = match b.ndim() {
        1 if turned[1] => b.reshape_at(&[1, b.shape()[0]], site)?,
        1 => b.reshape_at(&[b.shape()[0], 1], site)?,
        _ => b.clone(),
    };
    let y = product(&left, &right, [turned[0] && a.ndim() > 1, turned[1]], site)?;
    shape.extend(y.shape());
    if b.ndim() == 1 {
        shape.pop();
    }
    if a.ndim() == 1 {
        let row = shape.len() - if b.ndim() == 1 { 1 } else { 2 };
        shape.remove(row);
    }
    drop(inner);
    Ok(y.reshape_at(&shape, site)?.into_result())
}

pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, site: CallSite) -> Result<Tensor> {
    let Some(bias) = bias else { return matmul_t(x, weight, site) };
    if !(x.dtype().is_float() || x.dtype().is_complex()) {
        // The op with a bias computes with floats.
        let inner = inner_calls();
        let y = matmul_t(x, weight, site)?;
        drop(inner);
        return invoke1(op!("add"), &[Some(&y), Some(bias)], smallvec![], smallvec![], site);
    }
    // A vector is a matrix of one row; bias and weight are vectors and matrices, whatever x is.
    if x.ndim() == 1 {
        let inner = inner_calls();
        let row = x.reshape_at(&[1, x.shape()[0]], site)?;
        let y = invoke1(op!("linear"), &[Some(&row), Some(weight), Some(bias)], smallvec![], smallvec![], site)?;
        drop(inner);
        let n = y.numel();
        return Ok(y.reshape_at(&[n], site)?.into_result());
    }
    invoke1(op!("linear"), &[Some(x), Some(weight), Some(bias)], smallvec![], smallvec![], site)
}

/// How many dims are normalised.
fn axes_of(like: Option<&Tensor>, axes: Option<i64>) -> i64 {
    axes.unwrap_or_else(|| like.map_or(1, |w| w.ndim().max(1) as i64))
}

pub(super) fn layer_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    axes: Option<i64>,
    site: CallSite,
) -> Result<Tensor> {
    let attrs = smallvec![axes_of(weight.or(bias), axes).into()];
    Ok(invoke(op!("layer_norm"), &[Some(x), weight, bias], attrs, smallvec![eps.into()], site)?.swap_remove(0))
}

/// The distance from 1 to the next number of the dtype that a norm computes in: f32 for halves.
fn epsilon(dtype: DType) -> f64 {
    if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

pub(super) fn rms_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    eps: Option<f64>,
    axes: Option<i64>,
    site: CallSite,
) -> Result<Tensor> {
    let attrs = smallvec![axes_of(weight, axes).into()];
    let eps = eps.unwrap_or_else(|| epsilon(x.dtype()));
    Ok(invoke(op!("rms_norm"), &[Some(x), weight], attrs, smallvec![eps.into()], site)?.swap_remove(0))
}

pub(super) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    causal: bool,
    scale: Option<f64>,
    gather_limit: i64,
    site: CallSite,
) -> Result<Tensor> {
    let d = q.shape().last().copied().unwrap_or(1).max(1);
    let scale = scale.unwrap_or(1.0 / (d as f64).sqrt());
    let (attrs, runtime) = (smallvec![causal.into(), gather_limit.into()], smallvec![scale.into()]);
    Ok(invoke(op!("attention"), &[Some(q), Some(k), Some(v)], attrs, runtime, site)?.swap_remove(0))
}
