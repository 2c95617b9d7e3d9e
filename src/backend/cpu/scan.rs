//! Kernels of what runs along a dim besides sums.

use super::{OpKernel, kernel};
use crate::ops::KernelCx;
use oflow_kernels::cpu::scan;

pub(super) fn kernels() -> Vec<OpKernel> {
    let extreme = |op: &'static str, least: bool| {
        kernel(op, move |cx| {
            let (x, values, at) =
                (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)), KernelCx::line(cx.output(1)));
            Ok(scan::cumulative_extreme(&x, &values, &at, cx.dim("dim", 0)?, least)?)
        })
    };
    vec![
        kernel("cumprod", |cx| {
            let (x, out) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)));
            Ok(scan::cumprod(&x, &out, cx.dim("dim", 0)?)?)
        }),
        extreme("cummax", false),
        extreme("cummin", true),
        kernel("logcumsumexp", |cx| {
            let (x, out) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)));
            Ok(scan::logcumsumexp(&x, &out, cx.dim("dim", 0)?)?)
        }),
        kernel("linear_scan", |cx| {
            let (a, b, out) =
                (KernelCx::line(cx.input(0)?), KernelCx::line(cx.input(1)?), KernelCx::line(cx.output(0)));
            Ok(scan::linear_scan(&a, &b, &out, cx.dim("dim", 0)?, cx.bool("reverse")?)?)
        }),
    ]
}
