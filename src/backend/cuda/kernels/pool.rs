//! Kernels of pooling.

use super::{OpKernel, kernel};
use crate::backend::cpu::pool::{divisor, sliding, sliding_back};
use oflow_kernels::cuda::pool;

pub(super) fn kernels() -> Vec<OpKernel> {
    let max = |op: &'static str| {
        kernel(op, |q, cx| {
            let (windows, place) = sliding(cx)?;
            Ok(pool::max(q, cx.input(0)?, &windows, &place, cx.output(0))?)
        })
    };
    let index = |op: &'static str| {
        kernel(op, |q, cx| {
            let (windows, place) = sliding(cx)?;
            Ok(pool::max_index(q, cx.input(0)?, &windows, &place, cx.output(0))?)
        })
    };
    let avg = |op: &'static str| {
        kernel(op, |q, cx| {
            let (windows, place) = sliding(cx)?;
            Ok(pool::avg(q, cx.input(0)?, &windows, divisor(cx)?, &place, cx.output(0))?)
        })
    };
    let gradient = |op: &'static str| {
        kernel(op, |q, cx| {
            let (windows, place) = sliding_back(cx)?;
            Ok(pool::avg_grad(q, cx.input(0)?, &windows, divisor(cx)?, &place, cx.output(0))?)
        })
    };
    vec![
        max("max_pool"),
        max("adaptive_max_pool"),
        index("max_pool_index"),
        index("adaptive_max_pool_index"),
        avg("avg_pool"),
        avg("adaptive_avg_pool"),
        gradient("avg_pool_grad"),
        gradient("adaptive_avg_pool_grad"),
    ]
}
