//! Kernels of attention and of the positions in it.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::attention::{each_part, settings};
use oflow_kernels::cpu::attention::Qkv;
use oflow_kernels::cuda::{attention, rotary};

pub(super) fn kernels() -> Vec<OpKernel> {
    let grad = kernel("attention_grad", |q, cx| {
        let qkv = Qkv { q: cx.input(1)?, k: cx.input(2)?, v: cx.input(3)? };
        let grads = Qkv { q: cx.output(0), k: cx.output(1), v: cx.output(2) };
        let (dout, out, lse) = (cx.input(0)?, cx.input(4)?, cx.input(5)?);
        Ok(attention::attention_grad(q, dout, &qkv, out, lse, &grads, &settings(cx, 1)?, cx.workspace())?)
    });
    vec![
        kernel("rotary_embedding", |q, cx| {
            let interleaved = cx.bool("interleaved")?;
            Ok(rotary::rotary(q, cx.input(0)?, cx.input(1)?, cx.input(2)?, interleaved, cx.output(0))?)
        }),
        kernel("attention", |q, cx| {
            let qkv = Qkv { q: cx.input(0)?, k: cx.input(1)?, v: cx.input(2)? };
            Ok(attention::attention(q, &qkv, cx.output(0), cx.output(1), &settings(cx, 0)?)?)
        }),
        kernel("attention_parts", |q, cx| {
            each_part(cx, |qkv, out, lse, set| Ok(attention::attention(q, qkv, out, lse, set)?))
        }),
        with_scratch(grad, |c, _| {
            let q = c.input(1)?;
            Ok(attention::attention_grad_workspace(&q.shape, q.dtype))
        }),
    ]
}
