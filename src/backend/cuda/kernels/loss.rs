//! Kernels of cross entropy.

use super::{OpKernel, kernel};
use crate::backend::cpu::loss::classes;
use oflow_kernels::cuda::loss;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("cross_entropy", |q, cx| {
            let (x, t, c) = (cx.input(0)?, cx.input(1)?, classes(cx)?);
            Ok(loss::cross_entropy(q, x, t, cx.output(0), cx.output(1), &c)?)
        }),
        kernel("nll_pick", |q, cx| Ok(loss::nll_pick(q, cx.input(0)?, cx.input(1)?, cx.output(0), &classes(cx)?)?)),
        kernel("cross_entropy_grad", |q, cx| {
            let c = classes(cx)?;
            let (x, t, lse, d) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
            Ok(loss::cross_entropy_grad(q, x, t, lse, d, cx.output(0), &c)?)
        }),
    ]
}
