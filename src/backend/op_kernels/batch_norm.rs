//! Kernels of batch norm.

use super::{On, Row, both, run};

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("batch_norm_train", |on, cx| {
            let (x, eps) = (cx.input(0)?, cx.scalar("eps")?.to_f64());
            let (y, mean, var) = (cx.output(0), cx.output(1), cx.output(2));
            run!(on, batch_norm::batch_norm(x, cx.opt_input(1), cx.opt_input(2), eps, y, mean, var))
        }),
        both("batch_norm_grad", |on, cx| {
            let (statistics, eps) = ([cx.input(2)?, cx.input(3)?], cx.scalar("eps")?.to_f64());
            let outputs = [cx.output(0), cx.output(1), cx.output(2)];
            run!(on, batch_norm::batch_norm_grad(cx.input(0)?, cx.input(1)?, statistics, cx.opt_input(4), eps, outputs))
        }),
    ]
}
