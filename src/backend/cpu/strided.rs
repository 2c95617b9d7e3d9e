//! Kernels of strided windows.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::copy::{copy, fill};
use oflow_kernels::{Dims, Scalar, Strides, View};

/// The window in memory that is contiguous.
pub(in crate::backend) fn window(cx: &KernelCx<'_>, of: &View, shape: &[usize]) -> Result<View> {
    let strides: Strides = cx.ints("strides")?.iter().map(|s| *s as isize).collect();
    // Without elements nothing is addressed, and the offset may be any number.
    let offset = if shape.contains(&0) { 0 } else { cx.int("offset")? as isize };
    // SAFETY: the op's check has found every element of the window inside the tensor, whose memory is contiguous.
    Ok(unsafe { of.restride(offset, shape.into(), strides) })
}

/// The window of the output of `strided_write`.
pub(in crate::backend) fn written(cx: &KernelCx<'_>) -> Result<View> {
    let shape: Dims = cx.ints("shape")?.iter().map(|n| *n as usize).collect();
    window(cx, cx.output(0), &shape)
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("strided_read", |cx| {
            let out = cx.output(0);
            Ok(copy(&window(cx, cx.input(0)?, out.dims())?, out)?)
        }),
        kernel("strided_put", |cx| {
            let (y, out) = (cx.input(0)?, cx.output(0));
            fill(out, Scalar::Int(0))?;
            Ok(copy(y, &window(cx, out, y.dims())?)?)
        }),
        kernel("strided_write", |cx| {
            copy(cx.input(0)?, cx.output(0))?;
            let to = written(cx)?;
            match cx.opt_input(1) {
                Some(y) => Ok(copy(y, &to)?),
                None => Ok(fill(&to, Scalar::Int(0))?),
            }
        }),
    ]
}
