//! Kernels of softmax and log-softmax.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::View;

/// The inputs, the output and the dim of a call, as lines where they have no dims.
fn ends<const INPUTS: usize>(cx: &KernelCx<'_>) -> Result<([View; INPUTS], View, usize)> {
    let mut inputs = std::array::from_fn(|_| KernelCx::line(cx.output(0)));
    for (i, line) in inputs.iter_mut().enumerate() {
        *line = KernelCx::line(cx.input(i)?);
    }
    Ok((inputs, KernelCx::line(cx.output(0)), cx.dim("dim", 0)?))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("softmax", |on, cx| {
            let ([x], y, dim) = ends(cx)?;
            run!(on, softmax::softmax(&x, &y, dim))
        }),
        both("softmax_grad", |on, cx| {
            let ([dy, y], dx, dim) = ends(cx)?;
            run!(on, softmax::softmax_grad(&dy, &y, &dx, dim))
        }),
        both("log_softmax", |on, cx| {
            let ([x], y, dim) = ends(cx)?;
            run!(on, softmax::log_softmax(&x, &y, dim))
        }),
        both("log_softmax_grad", |on, cx| {
            let ([dy, y], dx, dim) = ends(cx)?;
            run!(on, softmax::log_softmax_grad(&dy, &y, &dx, dim))
        }),
    ]
}
