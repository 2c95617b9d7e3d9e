//! Kernels of attention and of the positions in it.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::attention::{self, Attention, Qkv};
use oflow_kernels::cpu::rotary;

/// Scale and mask of a call.
pub(in crate::backend) fn settings(cx: &KernelCx<'_>) -> Result<Attention> {
    Ok(Attention { scale: cx.scalar("scale")?.to_f64(), causal: cx.bool("causal")? })
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("rotary_embedding", |cx| {
            let interleaved = cx.bool("interleaved")?;
            Ok(rotary::rotary(cx.input(0)?, cx.input(1)?, cx.input(2)?, interleaved, cx.output(0))?)
        }),
        kernel("attention", |cx| {
            let qkv = Qkv { q: cx.input(0)?, k: cx.input(1)?, v: cx.input(2)? };
            Ok(attention::attention(&qkv, cx.output(0), cx.output(1), &settings(cx)?)?)
        }),
        kernel("attention_grad", |cx| {
            let qkv = Qkv { q: cx.input(1)?, k: cx.input(2)?, v: cx.input(3)? };
            let grads = Qkv { q: cx.output(0), k: cx.output(1), v: cx.output(2) };
            let set = settings(cx)?;
            Ok(attention::attention_grad(cx.input(0)?, &qkv, cx.input(4)?, cx.input(5)?, &grads, &set)?)
        }),
    ]
}
