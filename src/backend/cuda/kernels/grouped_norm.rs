//! Kernels of group norm.

use super::{OpKernel, kernel, with_scratch};
use oflow_kernels::cuda::grouped_norm;

pub(super) fn kernels() -> Vec<OpKernel> {
    let grad = kernel("grouped_norm_grad", |q, cx| {
        let (statistics, outputs) = ([cx.input(2)?, cx.input(3)?], [cx.output(0), cx.output(1), cx.output(2)]);
        let (dy, x, weight) = (cx.input(0)?, cx.input(1)?, cx.opt_input(4));
        Ok(grouped_norm::grouped_norm_grad(q, dy, x, statistics, weight, outputs, cx.workspace())?)
    });
    vec![
        kernel("grouped_norm", |q, cx| {
            let (x, eps) = (cx.input(0)?, cx.scalar("eps")?.to_f64());
            let (y, mean, rstd) = (cx.output(0), cx.output(1), cx.output(2));
            Ok(grouped_norm::grouped_norm(q, x, cx.opt_input(1), cx.opt_input(2), eps, y, mean, rstd)?)
        }),
        with_scratch(grad, |c, _| {
            let x = c.input(1)?;
            Ok(grouped_norm::grouped_norm_grad_workspace(x.dtype, x.shape[..3].iter().product())?)
        }),
    ]
}
