//! Elements chosen by index along a dim; see [`crate::cpu::take`]. An index out of range is reported to the queue's fault slot.

use super::fill::fill;
use super::index::index_dtype;
use super::select::moved;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::take::{around, check_ids, check_last, check_take};
use crate::{DType, Result, Scalar, View};

pub(super) static TAKE: Source =
    Source::file("take", include_str!("../../cuda/take.cu")).forms(&["M={u8,f16,i32,i64} I=i64", "M=i32 I=i32"]);

/// Blocks of 256 threads, one element a thread up to a full GPU.
fn each(q: &Queue, n: usize) -> Launch {
    Launch::new(q.blocks(n, 256, 4), 256)
}

/// The macros of the file: what is moved, and the indices.
fn defines(ids: &View, moves: DType) -> Result<[Define; 2]> {
    Ok([moved(moves)?, index_dtype(ids)?])
}

/// See [`index_select`](crate::cpu::take::index_select). `logical` is the size of the whole dim.
///
/// # Errors
/// If the tensors do not fit.
pub fn index_select(q: &Queue, x: &View, ids: &View, out: &View, dim: usize, first: i64, logical: usize) -> Result<()> {
    check_take(x, ids, out, dim)?;
    if out.is_empty() {
        return super::index::check_ids(q, ids, logical);
    }
    let f = q.function(&TAKE, "index_select", &defines(ids, x.dtype())?)?;
    let args = Args::new()
        .view(out)
        .view(x)
        .view(ids)
        .value(out.len() as u64)
        .value(ids.len() as u64)
        .value(around(x.dims(), dim).1 as u64)
        .value(first)
        .value(x.dims()[dim] as i64)
        .value(logical as i64);
    q.launch(f, each(q, out.len()), q.fault_args(args))
}

/// See [`wrap_index`](crate::cpu::take::wrap_index).
///
/// # Errors
/// If the tensors do not fit.
pub fn wrap_index(q: &Queue, ids: &View, out: &View, size: usize) -> Result<()> {
    check_ids(ids, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let f = q.function(&TAKE, "wrap_index", &defines(ids, DType::I64)?)?;
    let args = Args::new().view(out).view(ids).value(ids.len() as u64).value(size as i64);
    q.launch(f, each(q, out.len()), q.fault_args(args))
}

/// See [`last_index`](crate::cpu::take::last_index). `logical` is the number of rows of the whole list, which an index must be below.
///
/// # Errors
/// If the tensors do not fit.
pub fn last_index(q: &Queue, ids: &View, out: &View, first: i64, base: i64, logical: usize) -> Result<()> {
    check_last(ids, out)?;
    super::index::check_ids(q, ids, logical)?;
    fill(q, out, Scalar::Int(-1))?;
    if ids.is_empty() || out.is_empty() {
        return Ok(());
    }
    let f = q.function(&TAKE, "last_index", &defines(ids, DType::I64)?)?;
    let args = Args::new().view(out).view(ids).value(ids.len() as u64).value(out.len() as i64).value(first).value(base);
    q.launch(f, each(q, ids.len()), args)
}
