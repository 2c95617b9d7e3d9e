//! Kernels of softmax and log-softmax.

use super::{OpKernel, kernel};
use crate::ops::KernelCx;
use oflow_kernels::cpu::softmax::{log_softmax, log_softmax_grad, softmax, softmax_grad};
use oflow_kernels::{Result, View};

/// The kernel of a function from input to output along a dim.
fn of_one(op: &'static str, run: fn(&View, &View, usize) -> Result<()>) -> OpKernel {
    kernel(op, move |cx| {
        let (x, y) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)));
        Ok(run(&x, &y, cx.dim("dim", 0)?)?)
    })
}

/// The kernel of a gradient: dy and y to dx.
fn of_two(op: &'static str, run: fn(&View, &View, &View, usize) -> Result<()>) -> OpKernel {
    kernel(op, move |cx| {
        let (dy, y) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.input(1)?));
        Ok(run(&dy, &y, &KernelCx::line(cx.output(0)), cx.dim("dim", 0)?)?)
    })
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        of_one("softmax", softmax),
        of_two("softmax_grad", softmax_grad),
        of_one("log_softmax", log_softmax),
        of_two("log_softmax_grad", log_softmax_grad),
    ]
}
