//! Kernels of strided windows.

use super::{OpKernel, kernel};
use crate::backend::cpu::strided::{window, written};
use oflow_kernels::Scalar;
use oflow_kernels::cuda::copy::copy;
use oflow_kernels::cuda::fill::fill;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("strided_read", |q, cx| {
            let out = cx.output(0);
            Ok(copy(q, &window(cx, cx.input(0)?, out.dims())?, out)?)
        }),
        kernel("strided_put", |q, cx| {
            let (y, out) = (cx.input(0)?, cx.output(0));
            fill(q, out, Scalar::Int(0))?;
            Ok(copy(q, y, &window(cx, out, y.dims())?)?)
        }),
        kernel("strided_write", |q, cx| {
            copy(q, cx.input(0)?, cx.output(0))?;
            let to = written(cx)?;
            match cx.opt_input(1) {
                Some(y) => Ok(copy(q, y, &to)?),
                None => Ok(fill(q, &to, Scalar::Int(0))?),
            }
        }),
    ]
}
