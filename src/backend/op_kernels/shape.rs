//! Kernels that move elements: copies between views of the input and of the output.

use super::{On, Row, both, run};
use crate::error::{Error, Result};
use crate::ops::roll::{sources, towards_end};
use crate::ops::{Diagonal, KernelCx};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{Dims, Scalar, Strides, View};

/// The input with its dims in the order of the output.
fn permuted(cx: &KernelCx<'_>) -> Result<View> {
    let x = cx.input(0)?;
    let order = cx.ints("dims")?.iter().map(|d| d.rem_euclid(x.rank().max(1) as i64) as usize);
    let (d, s): (Dims, Strides) = order.map(|d| (x.dims()[d], x.strides()[d])).unzip();
    // SAFETY: the same elements in another order.
    Ok(unsafe { x.restride(0, d, s) })
}

/// The input, repeated to the output's dims.
fn expanded(cx: &KernelCx<'_>) -> Result<View> {
    let (x, out) = (cx.input(0)?, cx.output(0));
    let lead = out.rank() - x.rank();
    let strides: Strides = (0..out.rank())
        .map(|d| if d < lead || (x.dims()[d - lead] == 1 && out.dims()[d] != 1) { 0 } else { x.strides()[d - lead] })
        .collect();
    // SAFETY: repeats elements of x.
    Ok(unsafe { x.restride(0, out.dims().into(), strides) })
}

/// Indices `k` of `0..count` whose element `start + k step` lies in `lo..hi`.
fn inside(start: usize, step: usize, count: usize, lo: usize, hi: usize) -> std::ops::Range<usize> {
    let first = lo.saturating_sub(start).div_ceil(step).min(count);
    let last = hi.saturating_sub(start).div_ceil(step).min(count);
    first..last.max(first)
}

/// Index of the first element of a range of steps. Without elements the steps may lead beyond every index.
fn first_of(mine: &std::ops::Range<usize>, start: usize, step: usize) -> usize {
    start.saturating_add(mine.start.saturating_mul(step))
}

/// Every `step`-th element of a dim, `count` of them, from `start`.
pub(super) fn strided(v: &View, dim: usize, start: usize, step: usize, count: usize) -> View {
    let (mut d, mut s): (Dims, Strides) = (v.dims().into(), v.strides().into());
    let offset = if count == 0 { 0 } else { start as isize * s[dim] };
    d[dim] = count;
    // Between fewer than two elements there is no step, and it may be any number.
    if count > 1 {
        s[dim] *= step as isize;
    }
    // SAFETY: `start + (count - 1) step` is inside the dim, by the callers' ranges.
    unsafe { v.restride(offset, d, s) }
}

/// Elements of this rank's shard that a slice takes, and where they go.
fn cut_views(cx: &KernelCx<'_>) -> Result<(View, View)> {
    let (x, out, b) = (cx.input(0)?, cx.output(0), cx.input_box(0)?);
    let dim = cx.dim("dim", 0)?;
    let (start, step) = (cx.int("start")? as usize, cx.int("step")? as usize);
    let (lo, hi) = (b.offset[dim], b.offset[dim] + b.size[dim]);
    let mine = inside(start, step, out.dims()[dim], lo, hi);
    let from = strided(x, dim, first_of(&mine, start, step).saturating_sub(lo), step, mine.len());
    Ok((from, strided(out, dim, mine.start, 1, mine.len())))
}

/// Elements of dy that the gradient of a slice takes, and where in the output's shard they go.
fn uncut_views(cx: &KernelCx<'_>) -> Result<(View, View)> {
    let (dy, out, b) = (cx.input(0)?, cx.output(0), cx.output_box(0));
    let dim = cx.dim("dim", 0)?;
    let (start, step) = (cx.int("start")? as usize, cx.int("step")? as usize);
    let (lo, hi) = (b.offset[dim], b.offset[dim] + b.size[dim]);
    let mine = inside(start, step, dy.dims()[dim], lo, hi);
    let to = strided(out, dim, first_of(&mine, start, step).saturating_sub(lo), step, mine.len());
    Ok((strided(dy, dim, mine.start, 1, mine.len()), to))
}

/// Elements of this rank's shard that a diagonal takes, and where they go.
fn diagonal_views(cx: &KernelCx<'_>) -> Result<(View, View)> {
    let (x, out, b) = (cx.input(0)?, cx.output(0), cx.input_box(0)?);
    let given = [cx.int("dim1")?, cx.int("dim2")?];
    let k = Diagonal::of(&b.logical, cx.int("offset")?, given).ok_or_else(|| Error::argument("no two dims"))?;
    let here = |i: usize| {
        let d = k.dims[i];
        inside(k.first[i], 1, k.len, b.offset[d], b.offset[d] + b.size[d])
    };
    let (rows, columns) = (here(0), here(1));
    let start = rows.start.max(columns.start);
    let mine = start..rows.end.min(columns.end).max(start);
    let at = |i: usize| (k.first[i] + mine.start).saturating_sub(b.offset[k.dims[i]]) as isize * x.strides()[k.dims[i]];
    let offset = if mine.is_empty() || x.is_empty() { 0 } else { at(0) + at(1) };
    let others = (0..x.rank()).filter(|d| !k.dims.contains(d));
    let (mut dims, mut strides): (Dims, Strides) = others.map(|d| (x.dims()[d], x.strides()[d])).unzip();
    dims.push(mine.len());
    strides.push(k.dims.iter().map(|d| x.strides()[*d]).sum());
    // SAFETY: elements of x, by the range that lies here in both dims.
    let from = unsafe { x.restride(offset, dims, strides) };
    Ok((from, strided(out, out.rank() - 1, mine.start, 1, mine.len())))
}

/// The logical row and column of the first element that lies here.
fn corner(cx: &KernelCx<'_>) -> (i64, i64) {
    let at = &cx.output_box(0).offset;
    (at[at.len() - 2] as i64, at[at.len() - 1] as i64)
}

/// The output, which is contiguous, seen under the input's dims: into that it is a plain copy.
fn as_input(cx: &KernelCx<'_>) -> Result<View> {
    let dims = cx.input(0)?.dims();
    // SAFETY: as many elements in the same contiguous memory.
    Ok(unsafe { cx.output(0).restride(0, dims.into(), contiguous_strides(dims)) })
}

/// Each input of `concat` with its part of the output.
fn parts<'a>(cx: &'a KernelCx<'_>) -> Result<impl Iterator<Item = (&'a View, View)>> {
    let (d, mut at) = (cx.dim("dim", 0)?, 0);
    Ok(cx.inputs.iter().flatten().map(move |x| {
        let n = x.dims()[d];
        at += n;
        (x, strided(cx.output(0), d, at - n, 1, n))
    }))
}

/// Elements of this rank's shard that a roll takes, the wrapped and the other ones, and where they go. `wrapped` and
/// `others` are the inputs that they are read from.
fn rolled_views(cx: &KernelCx<'_>, [wrapped, others]: [usize; 2]) -> Result<[(View, View); 2]> {
    let (out, b, dim) = (cx.output(0), cx.output_box(0), cx.dim("dim", 0)?);
    let (part, n) = (b.offset[dim]..b.offset[dim] + b.size[dim], b.logical[dim]);
    let [first, rest] = sources(part, towards_end(cx.int("shift")?, n), n);
    let (k, m) = (first.len(), rest.len());
    let taken = |i: usize, r: std::ops::Range<usize>| -> Result<View> {
        Ok(strided(cx.input(i)?, dim, r.start.saturating_sub(cx.input_box(i)?.offset[dim]), 1, r.len()))
    };
    Ok([(taken(wrapped, first)?, strided(out, dim, 0, 1, k)), (taken(others, rest)?, strided(out, dim, k, 1, m))])
}

pub(super) fn rows() -> Vec<Row> {
    let rolled = |on: On<'_>, cx: &KernelCx<'_>, from| -> Result<()> {
        rolled_views(cx, from)?.iter().try_for_each(|(x, to)| run!(on, copy::copy(x, to)))
    };
    let triangle = |lower: bool| {
        both(if lower { "tril" } else { "triu" }, move |on, cx| {
            let (row, col) = corner(cx);
            let (x, out, diagonal) = (cx.input(0)?, cx.output(0), cx.int("diagonal")?);
            match lower {
                true => run!(on, index::tril(x, out, diagonal, row, col)),
                false => run!(on, index::triu(x, out, diagonal, row, col)),
            }
        })
    };
    vec![
        both("permute", |on, cx| run!(on, copy::copy(&permuted(cx)?, cx.output(0)))),
        both("expand", |on, cx| run!(on, copy::copy(&expanded(cx)?, cx.output(0)))),
        both("reshape", |on, cx| run!(on, copy::copy(cx.input(0)?, &as_input(cx)?))),
        both("slice", |on, cx| {
            let (from, to) = cut_views(cx)?;
            if to.len() < cx.output(0).len() {
                run!(on, copy::fill(cx.output(0), Scalar::Int(0)))?;
            }
            run!(on, copy::copy(&from, &to))
        }),
        both("slice_grad", |on, cx| {
            run!(on, copy::fill(cx.output(0), Scalar::Int(0)))?;
            let (from, to) = uncut_views(cx)?;
            run!(on, copy::copy(&from, &to))
        }),
        both("diagonal", |on, cx| {
            let (from, to) = diagonal_views(cx)?;
            if to.len() < cx.output(0).len() {
                run!(on, copy::fill(cx.output(0), Scalar::Int(0)))?;
            }
            run!(on, copy::copy(&from, &to))
        }),
        both("roll_along", move |on, cx| rolled(on, cx, [0, 0])),
        both("roll_windows", move |on, cx| rolled(on, cx, [0, 1])),
        both("concat", |on, cx| parts(cx)?.try_for_each(|(x, to)| run!(on, copy::copy(x, &to)))),
        triangle(true),
        triangle(false),
    ]
}
