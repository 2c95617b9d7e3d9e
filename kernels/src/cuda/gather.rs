//! Elements chosen by an index for each of them along a dim; see [`crate::cpu::gather`]. An index out of range is reported to the queue's
//! fault slot.

use super::copy::copy;
use super::fill::fill;
use super::index::{index_dtype, shape, steps};
use super::select::moved;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::copy::scalar_words;
use crate::cpu::gather::{check, check_contiguous};
use crate::cpu::take::around;
use crate::{DType, Result, Scalar, View};

pub(super) static GATHER: Source = Source::file("gather", include_str!("../../cuda/gather.cu")).forms(&[
    "GATHER=1 M={u8,f16,i32,i64} I=i64",
    "GATHER=1 M=i32 I=i32",
    "GATHER=0 WHOLE=0 T={f32,f64,i32,i64} I=i64",
    "GATHER=0 WHOLE=1 T=bf16 I={i32,i64}",
]);

/// Blocks of 256 threads, one element or line a thread up to a full GPU.
fn each(q: &Queue, n: usize) -> Launch {
    Launch::new(q.blocks(n, 256, 4), 256)
}

/// Sizes along the dim and after it, the first logical index that lies here, and the size of the whole dim.
fn sizes(args: Args, table: &View, ids: &View, dim: usize, first: i64, logical: usize) -> Args {
    args.value(ids.dims()[dim] as u64)
        .value(table.dims()[dim] as u64)
        .value(around(table.dims(), dim).1 as u64)
        .value(first)
        .value(logical as i64)
}

/// See [`gather`](crate::cpu::gather::gather). `logical` is the size of the whole dim.
///
/// # Errors
/// If the tensors do not fit.
pub fn gather(q: &Queue, x: &View, ids: &View, out: &View, dim: usize, first: i64, logical: usize) -> Result<()> {
    check(x, ids, Some(out), dim)?;
    if out.is_empty() {
        return Ok(());
    }
    let f = q.function(&GATHER, "gather", &[Define::int("GATHER", 1), moved(x.dtype())?, index_dtype(ids)?])?;
    let mut still = steps(x.strides());
    still.0[dim] = 0;
    let args = Args::new()
        .value(shape(out.dims())?)
        .value(steps(out.strides()))
        .value(steps(ids.strides()))
        .value(still)
        .view(out)
        .view(ids)
        .view(x)
        .value(out.len() as u64)
        .value(x.dims()[dim] as u64)
        .value(x.strides()[dim] as i64)
        .value(first)
        .value(logical as i64);
    q.launch(f, each(q, out.len()), q.fault_args(args))
}

/// See [`gather_last`](crate::cpu::gather::gather_last). `logical` is the size of the whole dim, `marks` a byte for each element of x.
///
/// # Errors
/// If the tensors do not fit.
#[allow(clippy::too_many_arguments)]
pub fn gather_last(
    q: &Queue,
    x: &View,
    ids: &View,
    out: &View,
    dim: usize,
    first: i64,
    logical: usize,
    marks: &View,
) -> Result<()> {
    check_contiguous(x, ids, Some(out), dim)?;
    if out.is_empty() {
        return Ok(());
    }
    fill(q, marks, Scalar::Int(0))?;
    let f = q.function(&GATHER, "gather_last", &[Define::int("GATHER", 1), moved(x.dtype())?, index_dtype(ids)?])?;
    let lines = ids.len() / ids.dims()[dim];
    let args = Args::new().view(out).view(x).view(ids).view(marks).value(lines as u64);
    q.launch(f, each(q, lines), q.fault_args(sizes(args, x, ids, dim, first, logical)))
}

/// See [`scatter_fill`](crate::cpu::gather::scatter_fill). `logical` is the size of the whole dim.
///
/// # Errors
/// If the tensors do not fit; for a registered dtype.
#[allow(clippy::too_many_arguments)]
pub fn scatter_fill(
    q: &Queue,
    x: &View,
    ids: &View,
    value: Scalar,
    out: &View,
    dim: usize,
    first: i64,
    logical: usize,
) -> Result<()> {
    check_contiguous(out, ids, None, dim)?;
    let (bits, more) = scalar_words(out.dtype().cast()?, value);
    copy(q, x, out)?;
    if ids.is_empty() {
        return Ok(());
    }
    let f = q.function(&GATHER, "scatter_fill", &[Define::int("GATHER", 1), moved(out.dtype())?, index_dtype(ids)?])?;
    let args = Args::new().view(out).view(ids).value(bits).value(more).value(ids.len() as u64);
    q.launch(f, each(q, ids.len()), q.fault_args(sizes(args, out, ids, dim, first, logical)))
}

/// See [`scatter`](crate::cpu::gather::scatter). `logical` is the size of the whole dim.
///
/// # Errors
/// If the tensors do not fit.
#[allow(clippy::too_many_arguments)]
pub fn scatter(
    q: &Queue,
    x: &View,
    ids: &View,
    src: &View,
    out: &View,
    dim: usize,
    first: i64,
    logical: usize,
) -> Result<()> {
    check_contiguous(out, ids, Some(src), dim)?;
    copy(q, x, out)?;
    if src.is_empty() {
        return Ok(());
    }
    let f = q.function(&GATHER, "scatter", &[Define::int("GATHER", 1), moved(out.dtype())?, index_dtype(ids)?])?;
    let lines = ids.len() / ids.dims()[dim];
    let args = Args::new().view(out).view(src).view(ids).value(lines as u64);
    q.launch(f, each(q, lines), q.fault_args(sizes(args, out, ids, dim, first, logical)))
}

/// How much scratch memory [`scatter_sum`] needs: sums of halves are made in f32.
pub fn scatter_sum_workspace(dtype: DType, elements: usize) -> usize {
    if dtype.is_half() { elements * 4 } else { 0 }
}

/// See [`scatter_sum`](crate::cpu::gather::scatter_sum). `logical` is the size of the whole dim.
///
/// # Errors
/// If the tensors do not fit.
#[allow(clippy::too_many_arguments)]
pub fn scatter_sum(
    q: &Queue,
    values: &View,
    ids: &View,
    out: &View,
    dim: usize,
    first: i64,
    logical: usize,
    scratch: &View,
) -> Result<()> {
    check_contiguous(out, ids, Some(values), dim)?;
    fill(q, out, Scalar::Int(0))?;
    let whole = out.dtype().is_half();
    if whole {
        fill(q, scratch, Scalar::Int(0))?;
    }
    if out.is_empty() {
        return super::index::check_ids(q, ids, logical);
    }
    if values.is_empty() {
        return Ok(());
    }
    let defines = [
        Define::int("GATHER", 0),
        Define::int("WHOLE", i64::from(whole)),
        Define::dtype("T", out.dtype()),
        index_dtype(ids)?,
    ];
    let f = q.function(&GATHER, "scatter_sum", &defines)?;
    let lines = ids.len() / ids.dims()[dim];
    let args = Args::new().view(out).view(scratch).view(values).view(ids).value(lines as u64);
    q.launch(f, each(q, lines), q.fault_args(sizes(args, out, ids, dim, first, logical)))
}
