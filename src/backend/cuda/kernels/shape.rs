//! Kernels that move elements: copies between views of the input and of the output.

use super::{OpKernel, kernel};
use crate::backend::cpu::shape::{
    as_input, corner, cut_views, diagonal_views, expanded, parts, permuted, rolled_views, uncut_views,
};
use oflow_kernels::Scalar;
use oflow_kernels::cuda::copy::copy;
use oflow_kernels::cuda::fill::fill;
use oflow_kernels::cuda::index;

pub(super) fn kernels() -> Vec<OpKernel> {
    let triangle = |lower: bool| {
        kernel(if lower { "tril" } else { "triu" }, move |q, cx| {
            let (row, col) = corner(cx);
            let cut = if lower { index::tril } else { index::triu };
            Ok(cut(q, cx.input(0)?, cx.output(0), cx.int("diagonal")?, row, col)?)
        })
    };
    vec![
        kernel("permute", |q, cx| Ok(copy(q, &permuted(cx)?, cx.output(0))?)),
        kernel("expand", |q, cx| Ok(copy(q, &expanded(cx)?, cx.output(0))?)),
        kernel("reshape", |q, cx| Ok(copy(q, cx.input(0)?, &as_input(cx)?)?)),
        kernel("slice", |q, cx| {
            let (from, to) = cut_views(cx)?;
            if to.len() < cx.output(0).len() {
                fill(q, cx.output(0), Scalar::Int(0))?;
            }
            Ok(copy(q, &from, &to)?)
        }),
        kernel("slice_grad", |q, cx| {
            fill(q, cx.output(0), Scalar::Int(0))?;
            let (from, to) = uncut_views(cx)?;
            Ok(copy(q, &from, &to)?)
        }),
        kernel("diagonal", |q, cx| {
            let (from, to) = diagonal_views(cx)?;
            if to.len() < cx.output(0).len() {
                fill(q, cx.output(0), Scalar::Int(0))?;
            }
            Ok(copy(q, &from, &to)?)
        }),
        kernel("roll_along", |q, cx| Ok(rolled_views(cx, [0, 0])?.iter().try_for_each(|(x, to)| copy(q, x, to))?)),
        kernel("roll_windows", |q, cx| Ok(rolled_views(cx, [0, 1])?.iter().try_for_each(|(x, to)| copy(q, x, to))?)),
        kernel("concat", |q, cx| Ok(parts(cx)?.try_for_each(|(x, to)| copy(q, x, &to))?)),
        triangle(true),
        triangle(false),
    ]
}
