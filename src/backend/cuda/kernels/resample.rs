//! Kernels of padding and resampling.

use super::{OpKernel, kernel};
use crate::backend::cpu::resample::{lines, padded};
use oflow_kernels::cuda::copy::copy;
use oflow_kernels::cuda::fill::fill;
use oflow_kernels::cuda::resample;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("pad_constant", |q, cx| {
            let (from, to, parts) = padded(cx)?;
            let value = cx.scalar("value")?;
            parts.iter().try_for_each(|part| fill(q, part, value))?;
            Ok(copy(q, &from, &to)?)
        }),
        kernel("resample", |q, cx| Ok(resample::resample(q, cx.input(0)?, &lines(cx, false)?, cx.output(0))?)),
        kernel("resample_grad", |q, cx| Ok(resample::resample_grad(q, cx.input(0)?, &lines(cx, true)?, cx.output(0))?)),
    ]
}
