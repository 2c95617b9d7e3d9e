//! Kernels of attention and of the positions in it.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use crate::placement::shard_range;
use oflow_kernels::cpu::attention::{Attention, Qkv};
use oflow_kernels::cuda;
use oflow_kernels::{Dims, View};
use std::ops::Range;

/// Scale and mask of a call whose queries are input `q`, before the keys. Queries and keys may be parts of their sequences.
fn settings(cx: &KernelCx<'_>, q: usize) -> Result<Attention> {
    let (first, first_key) = (cx.input_box(q)?.offset[2], cx.input_box(q + 1)?.offset[2]);
    let offset = first as i64 - first_key as i64;
    Ok(Attention { scale: cx.scalar("scale")?.to_f64(), causal: cx.bool("causal")?, offset })
}

/// Steps `range` of a `[B, H, T, D]` view.
fn steps(v: &View, range: &Range<usize>) -> Result<View> {
    let (mut offset, mut size) = (Dims::from_elem(0, v.rank()), Dims::from_slice(v.dims()));
    (offset[2], size[2]) = (range.start, range.len());
    Ok(v.sub_box(&offset, &size)?)
}

/// Element `i` of dim 0.
fn nth(v: &View, i: usize) -> Result<View> {
    let (mut offset, mut size) = (Dims::from_elem(0, v.rank()), Dims::from_slice(v.dims()));
    (offset[0], size[0]) = (i, 1);
    let v = v.sub_box(&offset, &size)?;
    // SAFETY: the same elements, without a dim of one.
    Ok(unsafe { v.restride(0, v.dims()[1..].into(), v.strides()[1..].into()) })
}

/// Gives attention of each part of the keys that is computed here: its inputs, its part of `out` and of `lse`.
fn each_part(cx: &KernelCx<'_>, run: impl Fn(&Qkv<'_>, &View, &View, &Attention) -> Result<()>) -> Result<()> {
    let (at, own) = (cx.output_box(0), cx.input_box(1)?);
    let whole = settings(cx, 0)?;
    for i in 0..at.size[0] {
        let part = shard_range(own.logical[2], at.logical[0], at.offset[0] + i);
        // An empty part may stand anywhere.
        let start = if part.is_empty() { 0 } else { part.start - own.offset[2] };
        let here = start..start + part.len();
        let (k, v) = (steps(cx.input(1)?, &here)?, steps(cx.input(2)?, &here)?);
        let set = Attention { offset: whole.offset - start as i64, ..whole };
        run(&Qkv { q: cx.input(0)?, k: &k, v: &v }, &nth(cx.output(0), i)?, &nth(cx.output(1), i)?, &set)?;
    }
    Ok(())
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("rotary_embedding", |on, cx| {
            let interleaved = cx.bool("interleaved")?;
            run!(on, rotary::rotary(cx.input(0)?, cx.input(1)?, cx.input(2)?, interleaved, cx.output(0)))
        }),
        both("attention", |on, cx| {
            let qkv = Qkv { q: cx.input(0)?, k: cx.input(1)?, v: cx.input(2)? };
            run!(on, attention::attention(&qkv, cx.output(0), cx.output(1), &settings(cx, 0)?))
        }),
        both("attention_parts", |on, cx| {
            each_part(cx, |qkv, out, lse, set| run!(on, attention::attention(qkv, out, lse, set)))
        }),
        both("attention_grad", |on, cx| {
            let qkv = Qkv { q: cx.input(1)?, k: cx.input(2)?, v: cx.input(3)? };
            let grads = Qkv { q: cx.output(0), k: cx.output(1), v: cx.output(2) };
            let set = settings(cx, 1)?;
            let (dout, out, lse) = (cx.input(0)?, cx.input(4)?, cx.input(5)?);
            run!(on, attention::attention_grad(dout, &qkv, out, lse, &grads, &set; cx.workspace()))
        })
        .scratch(|c, _| {
            let q = c.input(1)?;
            Ok(cuda::attention::attention_grad_workspace(&q.shape, q.dtype))
        }),
    ]
}
