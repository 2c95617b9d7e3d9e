//! Kernels of pooling.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::{AttrValue, KernelCx};
use oflow_kernels::pool::{Divisor, PoolGeometry, Windows};

/// The windows of a call, and where the image and the result here lie in the whole.
fn sliding(cx: &KernelCx<'_>) -> Result<(Windows, PoolGeometry)> {
    Ok((windows(cx)?, PoolGeometry::of(cx.input_box(0)?, cx.output_box(0), cx.ints("size")?.len())?))
}

/// The same of a gradient, whose output is the image.
fn sliding_back(cx: &KernelCx<'_>) -> Result<(Windows, PoolGeometry)> {
    Ok((windows(cx)?, PoolGeometry::of(cx.output_box(0), cx.input_box(0)?, cx.ints("size")?.len())?))
}

fn windows(cx: &KernelCx<'_>) -> Result<Windows> {
    if cx.op.sig.attr("kernel").is_none() {
        return Ok(Windows::Adaptive);
    }
    let kernel = cx.ints("kernel")?;
    let ones = vec![1; kernel.len()];
    let dilation = if cx.op.sig.attr("dilation").is_some() { cx.ints("dilation")? } else { &ones };
    Ok(Windows::sliding(kernel, cx.ints("stride")?, cx.ints("padding")?, dilation)?)
}

/// By what an average is divided.
fn divisor(cx: &KernelCx<'_>) -> Result<Divisor> {
    if cx.op.sig.attr("divisor").is_none() {
        return Ok(Divisor::Inside);
    }
    Ok(match cx.attr("divisor")? {
        AttrValue::Int(n) => Divisor::Fixed(*n),
        _ if cx.bool("count_padding")? => Divisor::WithPadding,
        _ => Divisor::Inside,
    })
}

pub(super) fn rows() -> Vec<Row> {
    let max = |op: &'static str| {
        both(op, |on, cx| {
            let (windows, place) = sliding(cx)?;
            run!(on, pool::max(cx.input(0)?, &windows, &place, cx.output(0)))
        })
    };
    let index = |op: &'static str| {
        both(op, |on, cx| {
            let (windows, place) = sliding(cx)?;
            run!(on, pool::max_index(cx.input(0)?, &windows, &place, cx.output(0)))
        })
    };
    let avg = |op: &'static str| {
        both(op, |on, cx| {
            let (windows, place) = sliding(cx)?;
            run!(on, pool::avg(cx.input(0)?, &windows, divisor(cx)?, &place, cx.output(0)))
        })
    };
    let gradient = |op: &'static str| {
        both(op, |on, cx| {
            let (windows, place) = sliding_back(cx)?;
            run!(on, pool::avg_grad(cx.input(0)?, &windows, divisor(cx)?, &place, cx.output(0)))
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
