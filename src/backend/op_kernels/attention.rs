//! Kernels of attention and of the positions in it.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use crate::ops::Turn;
use crate::placement::{shard_range, shards_within};
use oflow_kernels::cpu::attention::{Attention, Qkv};
use oflow_kernels::cuda;
use oflow_kernels::{Dims, Scalar, ShardBox, View};
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

/// The turn of ring attention of a call whose queries are input `q`, before the keys.
fn turn(cx: &KernelCx<'_>, q: usize) -> Result<Turn> {
    let (queries, keys) = (cx.input_box(q)?.logical[2], cx.input_box(q + 1)?.logical[2]);
    Ok(Turn { parts: cx.size("parts")?, turn: cx.size("turn")?, queries, keys, causal: cx.bool("causal")? })
}

/// The part of a range that lies in a box along a dim, counted from the start of the box.
fn within(b: &ShardBox, dim: usize, range: &Range<usize>) -> Range<usize> {
    let (start, end) = (range.start.max(b.offset[dim]), range.end.min(b.offset[dim] + b.size[dim]));
    if start < end { start - b.offset[dim]..end - b.offset[dim] } else { 0..0 }
}

/// Mask and scale of part `i` of the queries and the keys that it meets in a turn, and the steps of both among those that are here.
fn met(cx: &KernelCx<'_>, q: usize, turn: &Turn, i: usize) -> Result<(Attention, Range<usize>, Range<usize>)> {
    let (queries, keys) = (cx.input_box(q)?, cx.input_box(q + 1)?);
    let (own, theirs) = (within(queries, 2, &turn.queries_of(i)), within(keys, 2, &turn.keys_of(i)));
    let start = |b: &ShardBox, r: &Range<usize>| (b.offset[2] + r.start) as i64;
    Ok((Attention { offset: start(queries, &own) - start(keys, &theirs), ..settings(cx, q)? }, own, theirs))
}

/// Forward of one turn of ring attention, part by part of the queries that are here.
fn ring_step(on: On<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let turn = turn(cx, 0)?;
    let here = cx.input_box(0)?;
    for i in shards_within(turn.queries, turn.parts, &(here.offset[2]..here.offset[2] + here.size[2])) {
        let (set, own, theirs) = met(cx, 0, &turn, i)?;
        let (q, k, v) = (steps(cx.input(0)?, &own)?, steps(cx.input(1)?, &theirs)?, steps(cx.input(2)?, &theirs)?);
        let (out, lse) = (steps(cx.output(0), &own)?, steps(cx.output(1), &own)?);
        run!(on, attention::attention(&Qkv { q: &q, k: &k, v: &v }, &out, &lse, &set))?;
    }
    Ok(())
}

/// Backward of one turn, piece by piece of the gradients of keys that are made here.
fn ring_step_grad(on: On<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let turn = turn(cx, 1)?;
    let pieces = cx.output_box(1);
    for at in 0..pieces.size[0] {
        let (set, own, theirs) = met(cx, 1, &turn, pieces.offset[0] + at)?;
        let [dk, dv] = [nth(cx.output(1), at)?, nth(cx.output(2), at)?];
        for d in [&dk, &dv] {
            run!(on, copy::fill(&steps(d, &(theirs.len()..d.dims()[2]))?, Scalar::Int(0)))?;
        }
        let given = |i: usize, range: &Range<usize>| steps(cx.input(i)?, range);
        let (q, k, v) = (given(1, &own)?, given(2, &theirs)?, given(3, &theirs)?);
        let (dout, out, lse) = (given(0, &own)?, given(4, &own)?, given(5, &own)?);
        let dq = steps(cx.output(0), &own)?;
        let (dk, dv) = (steps(&dk, &(0..theirs.len()))?, steps(&dv, &(0..theirs.len()))?);
        let (qkv, grads) = (Qkv { q: &q, k: &k, v: &v }, Qkv { q: &dq, k: &dk, v: &dv });
        run!(on, attention::attention_grad(&dout, &qkv, &out, &lse, &grads, &set; cx.workspace()))?;
    }
    Ok(())
}

/// Copies to each key here what the pieces of a turn give to it.
fn ring_return(on: On<'_>, cx: &KernelCx<'_>) -> Result<()> {
    let (pieces, keys) = (cx.input_box(0)?, cx.output_box(0));
    let (turn, queries) = (cx.size("turn")?, cx.size("queries")?);
    let turn = Turn { parts: pieces.logical[0], turn, queries, keys: keys.logical[2], causal: cx.bool("causal")? };
    for j in shards_within(turn.keys, turn.parts, &(keys.offset[2]..keys.offset[2] + keys.size[2])) {
        let (i, part) = (turn.meets(j), shard_range(turn.keys, turn.parts, j));
        let here = within(keys, 2, &part);
        let to = steps(cx.output(0), &here)?;
        if turn.keys_of(i).is_empty() {
            run!(on, copy::fill(&to, Scalar::Int(0)))?;
            continue;
        }
        let first = keys.offset[2] + here.start - part.start;
        let from = nth(cx.input(0)?, within(pieces, 0, &(i..i + 1)).start)?;
        run!(on, copy::copy(&steps(&from, &(first..first + here.len()))?, &to))?;
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
        both("ring_attention_step", ring_step),
        both("ring_attention_step_grad", ring_step_grad).scratch(|c, _| {
            let q = c.input(1)?;
            Ok(cuda::attention::attention_grad_workspace(&q.shape, q.dtype))
        }),
        both("ring_attention_return", ring_return),
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
