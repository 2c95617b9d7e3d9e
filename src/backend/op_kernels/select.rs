//! Kernels of results whose length depends on values.

use super::{On, Row, both, on_cpu_alone, run};
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, TensorType};
use oflow_kernels::{Scalar, cpu, cuda};

/// The element of the mask at which the shard of a result begins, whose first dim alone is split.
fn first_element(cx: &KernelCx<'_>) -> usize {
    let b = cx.output_box(0);
    b.offset.first().map_or(0, |row| row * b.logical[1..].iter().product::<usize>())
}

/// Scratch memory of a GPU's kernel, for the elements of the input that is tested.
fn scratch(tested: usize) -> impl Fn(&InferCtx<'_>, &[TensorType]) -> Result<usize> {
    move |c, _| Ok(cuda::select::workspace(c.input(tested)?.len()))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("nonzero", |on, cx| {
            let first = &cx.input_box(0)?.offset;
            run!(on, select::nonzero(cx.input(0)?, cx.output(0), first; cx.workspace))
        })
        .scratch(scratch(0)),
        both(
            "masked_select",
            |on, cx| run!(on, select::masked_select(cx.input(0)?, cx.input(1)?, cx.output(0); cx.workspace)),
        )
        .scratch(scratch(1)),
        both("masked_spread", |on, cx| {
            let (values, mask, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
            run!(on, select::masked_spread(values, mask, out, first_element(cx); cx.workspace))
        })
        .scratch(scratch(1)),
        on_cpu_alone("unique", |cx| {
            let n = cpu::select::unique(cx.input(0)?, cx.output(0))? as i64;
            Ok(cpu::copy::fill(cx.output(1), Scalar::Int(n))?)
        }),
    ]
}
