//! Kernels of layer norm and rms norm.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::norm::{self, Norm, NormGrads};

/// Dims, eps and the affine part of a call.
pub(in crate::backend) fn settings<'a>(cx: &'a KernelCx<'_>, weight: usize, bias: Option<usize>) -> Result<Norm<'a>> {
    Ok(Norm {
        dims: cx.int("axes")? as usize,
        eps: cx.scalar("eps").map_or(0.0, |s| s.to_f64()),
        weight: cx.opt_input(weight),
        bias: bias.and_then(|b| cx.opt_input(b)),
    })
}

/// The gradients of a layer norm that a call writes.
pub(in crate::backend) fn layer_norm_grads<'a>(cx: &'a KernelCx<'_>) -> NormGrads<'a> {
    NormGrads { dx: Some(cx.output(0)), dweight: Some(cx.output(1)), dbias: Some(cx.output(2)) }
}

/// The gradients of an rms norm that a call writes.
pub(in crate::backend) fn rms_norm_grads<'a>(cx: &'a KernelCx<'_>) -> NormGrads<'a> {
    NormGrads { dx: Some(cx.output(0)), dweight: Some(cx.output(1)), dbias: None }
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("layer_norm", |cx| {
            let n = settings(cx, 1, Some(2))?;
            Ok(norm::layer_norm(cx.input(0)?, &n, cx.output(0), cx.output(1), cx.output(2))?)
        }),
        kernel("layer_norm_grad", |cx| {
            let (n, grads) = (settings(cx, 4, None)?, layer_norm_grads(cx));
            Ok(norm::layer_norm_grad(cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?, &n, &grads)?)
        }),
        kernel("rms_norm", |cx| {
            let n = settings(cx, 1, None)?;
            Ok(norm::rms_norm(cx.input(0)?, &n, cx.output(0), cx.output(1))?)
        }),
        kernel("rms_norm_grad", |cx| {
            let (n, grads) = (settings(cx, 3, None)?, rms_norm_grads(cx));
            Ok(norm::rms_norm_grad(cx.input(0)?, cx.input(1)?, cx.input(2)?, &n, &grads)?)
        }),
    ]
}
