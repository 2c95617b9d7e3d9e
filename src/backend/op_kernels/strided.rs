//! Kernels of strided windows.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::{Dims, Scalar, Strides, View};

/// The window in memory that is contiguous.
fn window(cx: &KernelCx<'_>, of: &View, shape: &[usize]) -> Result<View> {
    let strides: Strides = cx.ints("strides")?.iter().map(|s| *s as isize).collect();
    // Without elements nothing is addressed, and the offset may be any number.
    let offset = if shape.contains(&0) { 0 } else { cx.int("offset")? as isize };
    // SAFETY: the op's check has found every element of the window inside the tensor, whose memory is contiguous.
    Ok(unsafe { of.restride(offset, shape.into(), strides) })
}

/// The window of the output of `strided_write`.
fn written(cx: &KernelCx<'_>) -> Result<View> {
    let shape: Dims = cx.ints("shape")?.iter().map(|n| *n as usize).collect();
    window(cx, cx.output(0), &shape)
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("strided_read", |on, cx| {
            let out = cx.output(0);
            run!(on, copy::copy(&window(cx, cx.input(0)?, out.dims())?, out))
        }),
        both("strided_put", |on, cx| {
            let (y, out) = (cx.input(0)?, cx.output(0));
            run!(on, copy::fill(out, Scalar::Int(0)))?;
            run!(on, copy::copy(y, &window(cx, out, y.dims())?))
        }),
        both("strided_write", |on, cx| {
            run!(on, copy::copy(cx.input(0)?, cx.output(0)))?;
            let to = written(cx)?;
            match cx.opt_input(1) {
                Some(y) => run!(on, copy::copy(y, &to)),
                None => run!(on, copy::fill(&to, Scalar::Int(0))),
            }
        }),
    ]
}
