//! Kernels of cross entropy.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::loss::{self, Classes};

/// Range of classes in this shard, their total number, and the smoothing of targets (`nll_pick` smooths none).
pub(in crate::backend) fn classes(cx: &KernelCx<'_>) -> Result<Classes> {
    let b = cx.input_box(0)?;
    let last = b.logical.len() - 1;
    let ignore = Some(cx.int("ignore_index")?);
    let smoothing = if cx.op.sig.attr("label_smoothing").is_some() { cx.float("label_smoothing")? } else { 0.0 };
    Ok(Classes { count: b.logical[last] as i64, first: b.offset[last] as i64, ignore, smoothing })
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("cross_entropy", |cx| {
            let c = classes(cx)?;
            Ok(loss::cross_entropy(cx.input(0)?, cx.input(1)?, cx.output(0), cx.output(1), &c)?)
        }),
        kernel("nll_pick", |cx| Ok(loss::nll_pick(cx.input(0)?, cx.input(1)?, cx.output(0), &classes(cx)?)?)),
        kernel("cross_entropy_grad", |cx| {
            let c = classes(cx)?;
            let (x, t, lse, d) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
            Ok(loss::cross_entropy_grad(x, t, lse, d, cx.output(0), &c)?)
        }),
    ]
}
