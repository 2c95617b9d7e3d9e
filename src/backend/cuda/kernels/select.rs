//! Kernels of results whose length depends on values.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::select::first_element;
use oflow_kernels::cuda::select;

/// Gives a kernel the scratch memory of what is tested: that input.
fn counted(k: OpKernel, tested: usize) -> OpKernel {
    with_scratch(k, move |c, _| Ok(select::workspace(c.input(tested)?.len())))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    let nonzero = kernel("nonzero", |q, cx| {
        Ok(select::nonzero(q, cx.input(0)?, cx.output(0), &cx.input_box(0)?.offset, cx.workspace)?)
    });
    let masked_select = kernel("masked_select", |q, cx| {
        Ok(select::masked_select(q, cx.input(0)?, cx.input(1)?, cx.output(0), cx.workspace)?)
    });
    let masked_spread = kernel("masked_spread", |q, cx| {
        let (values, mask) = (cx.input(0)?, cx.input(1)?);
        Ok(select::masked_spread(q, values, mask, cx.output(0), first_element(cx), cx.workspace)?)
    });
    vec![counted(nonzero, 0), counted(masked_select, 1), counted(masked_spread, 1)]
}
