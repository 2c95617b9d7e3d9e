//! Kernels of cross entropy.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::loss::Classes;

/// Range of classes in this shard, their total number, and the smoothing of targets (`nll_pick` smooths none).
fn classes(cx: &KernelCx<'_>) -> Result<Classes> {
    let b = cx.input_box(0)?;
    let last = b.logical.len() - 1;
    let ignore = Some(cx.int("ignore_index")?);
    let smoothing = if cx.op.sig.attr("label_smoothing").is_some() { cx.float("label_smoothing")? } else { 0.0 };
    Ok(Classes { count: b.logical[last] as i64, first: b.offset[last] as i64, ignore, smoothing })
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("cross_entropy", |on, cx| {
            let c = classes(cx)?;
            run!(on, loss::cross_entropy(cx.input(0)?, cx.input(1)?, cx.output(0), cx.output(1), &c))
        }),
        both("nll_pick", |on, cx| run!(on, loss::nll_pick(cx.input(0)?, cx.input(1)?, cx.output(0), &classes(cx)?))),
        both("cross_entropy_grad", |on, cx| {
            let c = classes(cx)?;
            let (x, t, lse, d) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
            run!(on, loss::cross_entropy_grad(x, t, lse, d, cx.output(0), &c))
        }),
    ]
}
