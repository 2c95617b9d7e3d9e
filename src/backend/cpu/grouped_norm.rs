//! Kernels of group norm.

use super::{OpKernel, kernel};
use oflow_kernels::cpu::grouped_norm;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("grouped_norm", |cx| {
            let (x, eps) = (cx.input(0)?, cx.scalar("eps")?.to_f64());
            let (y, mean, rstd) = (cx.output(0), cx.output(1), cx.output(2));
            Ok(grouped_norm::grouped_norm(x, cx.opt_input(1), cx.opt_input(2), eps, y, mean, rstd)?)
        }),
        kernel("grouped_norm_grad", |cx| {
            let (statistics, outputs) = ([cx.input(2)?, cx.input(3)?], [cx.output(0), cx.output(1), cx.output(2)]);
            Ok(grouped_norm::grouped_norm_grad(cx.input(0)?, cx.input(1)?, statistics, cx.opt_input(4), outputs)?)
        }),
    ]
}
