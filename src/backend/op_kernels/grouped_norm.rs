//! Kernels of group norm.

use super::{On, Row, both, run};
use oflow_kernels::cuda;

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("grouped_norm", |on, cx| {
            let (x, eps) = (cx.input(0)?, cx.scalar("eps")?.to_f64());
            let (y, mean, rstd) = (cx.output(0), cx.output(1), cx.output(2));
            run!(on, grouped_norm::grouped_norm(x, cx.opt_input(1), cx.opt_input(2), eps, y, mean, rstd))
        }),
        both("grouped_norm_grad", |on, cx| {
            let (statistics, outputs) = ([cx.input(2)?, cx.input(3)?], [cx.output(0), cx.output(1), cx.output(2)]);
            let (dy, x, weight) = (cx.input(0)?, cx.input(1)?, cx.opt_input(4));
            run!(on, grouped_norm::grouped_norm_grad(dy, x, statistics, weight, outputs; cx.workspace()))
        })
        .scratch(|c, _| {
            let x = c.input(1)?;
            Ok(cuda::grouped_norm::grouped_norm_grad_workspace(x.dtype, x.shape[..3].iter().product())?)
        }),
    ]
}
