//! Kernels of layer norm and rms norm.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx};
use oflow_kernels::cpu::norm::{Norm, NormGrads};
use oflow_kernels::cuda;

/// Dims, eps and the affine part of a call.
fn settings<'a>(cx: &'a KernelCx<'_>, weight: usize, bias: Option<usize>) -> Result<Norm<'a>> {
    Ok(Norm {
        dims: cx.int("axes")? as usize,
        eps: cx.scalar("eps").map_or(0.0, |s| s.to_f64()),
        weight: cx.opt_input(weight),
        bias: bias.and_then(|b| cx.opt_input(b)),
    })
}

/// Scratch memory of the gradients on a GPU; x is input 1.
fn gradient_scratch(c: &InferCtx<'_>) -> Result<usize> {
    let x = c.input(1)?;
    // The op's check has found that x has as many dims.
    let lead = x.shape.len() - c.int("axes")? as usize;
    let count = |dims: &[usize]| dims.iter().product();
    Ok(cuda::norm::workspace(count(&x.shape[..lead]), count(&x.shape[lead..]), x.dtype))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("layer_norm", |on, cx| {
            let n = settings(cx, 1, Some(2))?;
            run!(on, norm::layer_norm(cx.input(0)?, &n, cx.output(0), cx.output(1), cx.output(2)))
        }),
        both("layer_norm_grad", |on, cx| {
            let n = settings(cx, 4, None)?;
            let grads = NormGrads { dx: Some(cx.output(0)), dweight: Some(cx.output(1)), dbias: Some(cx.output(2)) };
            let (dy, x, mean, rstd) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
            run!(on, norm::layer_norm_grad(dy, x, mean, rstd, &n, &grads; cx.workspace))
        })
        .scratch(|c, _| gradient_scratch(c)),
        both("rms_norm", |on, cx| {
            let n = settings(cx, 1, None)?;
            run!(on, norm::rms_norm(cx.input(0)?, &n, cx.output(0), cx.output(1)))
        }),
        both("rms_norm_grad", |on, cx| {
            let n = settings(cx, 3, None)?;
            let grads = NormGrads { dx: Some(cx.output(0)), dweight: Some(cx.output(1)), dbias: None };
            run!(on, norm::rms_norm_grad(cx.input(0)?, cx.input(1)?, cx.input(2)?, &n, &grads; cx.workspace))
        })
        .scratch(|c, _| gradient_scratch(c)),
    ]
}
