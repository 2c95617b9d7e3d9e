//! Kernels of softmax and log-softmax. Tensors without dims are taken as lines.

use super::{On, Row, both, run};
use crate::ops::KernelCx;

pub(super) fn rows() -> Vec<Row> {
    let line = KernelCx::line;
    vec![
        both("softmax", move |on, cx| {
            let (x, y) = (line(cx.input(0)?), line(cx.output(0)));
            run!(on, softmax::softmax(&x, &y, cx.dim("dim", 0)?))
        }),
        both("softmax_grad", move |on, cx| {
            let (dy, y, dx) = (line(cx.input(0)?), line(cx.input(1)?), line(cx.output(0)));
            run!(on, softmax::softmax_grad(&dy, &y, &dx, cx.dim("dim", 0)?))
        }),
        both("log_softmax", move |on, cx| {
            let (x, y) = (line(cx.input(0)?), line(cx.output(0)));
            run!(on, softmax::log_softmax(&x, &y, cx.dim("dim", 0)?))
        }),
        both("log_softmax_grad", move |on, cx| {
            let (dy, y, dx) = (line(cx.input(0)?), line(cx.input(1)?), line(cx.output(0)));
            run!(on, softmax::log_softmax_grad(&dy, &y, &dx, cx.dim("dim", 0)?))
        }),
    ]
}
