//! Kernels of matrix products.

use super::{OpKernel, kernel};
use crate::backend::cpu::matmul::{operands, run_rows, weight_transposed};
use oflow_kernels::View;
use oflow_kernels::cuda::{Epilogue, matmul};

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("matmul", |q, cx| {
            let (a, b) = operands(cx)?;
            Ok(matmul::matmul(q, &a, &b, cx.output(0))?)
        }),
        kernel("matmul_rows", |q, cx| {
            let product = |a: &View, b: &View, add| matmul::matmul_into(q, a, b, cx.output(0), add);
            Ok(run_rows(cx.input(0)?, cx.input(1)?, &product)?)
        }),
        kernel("linear", |q, cx| {
            let (x, w, bias) = (cx.input(0)?, weight_transposed(cx.input(1)?)?, cx.input(2)?);
            Ok(matmul::matmul_with(q, x, &w, cx.output(0), Epilogue::Bias, Some(bias))?)
        }),
    ]
}
