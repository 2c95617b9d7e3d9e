//! Kernels of layer norm and rms norm.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::norm::{layer_norm_grads, rms_norm_grads, settings};
use crate::error::Result;
use crate::ops::InferCtx;
use oflow_kernels::cuda::norm;

/// Scratch memory of the gradients; x is input 1.
fn scratch(c: &InferCtx<'_>) -> Result<usize> {
    let x = c.input(1)?;
    // The op's check has found that x has as many dims.
    let lead = x.shape.len() - c.int("axes")? as usize;
    let count = |dims: &[usize]| dims.iter().product();
    Ok(norm::workspace(count(&x.shape[..lead]), count(&x.shape[lead..]), x.dtype))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    let layer_grad = kernel("layer_norm_grad", |q, cx| {
        let (n, grads) = (settings(cx, 4, None)?, layer_norm_grads(cx));
        let (dy, x, mean, rstd) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
        Ok(norm::layer_norm_grad(q, dy, x, mean, rstd, &n, &grads, cx.workspace)?)
    });
    let rms_grad = kernel("rms_norm_grad", |q, cx| {
        let (n, grads) = (settings(cx, 3, None)?, rms_norm_grads(cx));
        let (dy, x, rstd) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
        Ok(norm::rms_norm_grad(q, dy, x, rstd, &n, &grads, cx.workspace)?)
    });
    vec![
        kernel("layer_norm", |q, cx| {
            let n = settings(cx, 1, Some(2))?;
            Ok(norm::layer_norm(q, cx.input(0)?, &n, cx.output(0), cx.output(1), cx.output(2))?)
        }),
        with_scratch(layer_grad, |c, _| scratch(c)),
        kernel("rms_norm", |q, cx| {
            let n = settings(cx, 1, None)?;
            Ok(norm::rms_norm(q, cx.input(0)?, &n, cx.output(0), cx.output(1))?)
        }),
        with_scratch(rms_grad, |c, _| scratch(c)),
    ]
}
