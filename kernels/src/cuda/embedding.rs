//! Rows of a table by index, and their gradient, with the same bits on every run and as on the CPU.

use super::index::{check_ids, contiguous, index_dtype};
use super::pointwise::columns;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::embedding::check_lookup;
use crate::{KernelError, Result, Scalar, View};

pub(super) static EMBEDDING: Source = Source::file("embedding", include_str!("../../cuda/embedding.cu")).forms(&[
    "I={i32,i64} GRAD=0 OF_BYTES={2,16}",
    "I=i64 GRAD=1 T={f32,f64} OF_V=1",
    "I=i64 GRAD=1 T=f32 OF_V=4",
    "I=i64 GRAD=1 T=bf16 OF_V=8",
]);

fn fits(table: &View, ids: &View, rows: &View) -> Result<()> {
    check_lookup(table, ids, rows)?;
    contiguous(&[table, ids, rows])
}

/// Copies the rows of `weight` with the numbers `ids` to `out`. `weight` has the rows from `first_row` on; for ids of other rows
/// `out` is zero. An id outside `0..logical` is reported.
pub fn embedding(q: &Queue, weight: &View, ids: &View, out: &View, first_row: i64, logical: usize) -> Result<()> {
    fits(weight, ids, out)?;
    if out.is_empty() {
        return check_ids(q, ids, logical);
    }
    let row = weight.dims()[1] * weight.dtype().size();
    let mut unit = 16;
    while !row.is_multiple_of(unit) || [weight, out].iter().any(|t| !(t.ptr() as usize).is_multiple_of(unit)) {
        unit /= 2;
    }
    const FLIGHT: u32 = 4;
    let (launch, tiles) = columns(row / unit, ids.len(), FLIGHT)?;
    let defines = [index_dtype(ids)?, Define::int("GRAD", 0), Define::int("OF_BYTES", unit as i64)];
    let f = q.function(&EMBEDDING, "embedding", &defines)?;
    let args = Args::new()
        .value(ids.len() as u64)
        .value((row / unit) as u64)
        .value(tiles)
        .value(u64::from(FLIGHT))
        .value(first_row)
        .value(weight.dims()[0] as i64)
        .value(logical as i64)
        .view(out)
        .view(weight)
        .view(ids);
    q.launch(f, launch, q.fault_args(args).packed())
}

/// Returns the bytes of scratch memory of [`embedding_grad`], for the lists of ids by row of the table.
pub fn embedding_grad_workspace(rows: usize, ids: usize) -> usize {
    (2 * rows + ids) * 4
}

/// The gradient of [`embedding`]: each row of `dweight` becomes the sum of the rows of `dy` with its id, added in the order of
/// the ids (f16 and bf16 in f32, rounded once). `dweight` has the rows from `first_row` on; an id outside `0..logical` is reported.
pub fn embedding_grad(
    q: &Queue,
    dy: &View,
    ids: &View,
    dweight: &View,
    first_row: i64,
    logical: usize,
    scratch: &View,
) -> Result<()> {
    fits(dweight, ids, dy)?;
    if dweight.is_empty() {
        return check_ids(q, ids, logical);
    }
    if ids.is_empty() {
        return super::fill::fill(q, dweight, Scalar::Int(0));
    }
    let (rows, width, lines) = (dweight.dims()[0], dweight.dims()[1], ids.len());
    if scratch.len() < embedding_grad_workspace(rows, lines) {
        return Err(KernelError::new(format!("{} bytes of scratch are too few", scratch.len())));
    }
    if lines >= 1 << 31 || rows >= 1 << 31 {
        return Err(KernelError::new(format!("{lines} indices into {rows} rows are too many")));
    }
    if !dweight.dtype().is_float() {
        return Err(KernelError::new(format!("the gradient of an embedding is of floats, not {}", dweight.dtype())));
    }
    let size = dweight.dtype().size();
    let mut v = 16 / size;
    while !width.is_multiple_of(v) || [dy, dweight].iter().any(|t| !(t.ptr() as usize).is_multiple_of(v * size)) {
        v /= 2;
    }
    let defines =
        [index_dtype(ids)?, Define::int("GRAD", 1), Define::dtype("T", dweight.dtype()), Define::int("OF_V", v as i64)];
    let (link, sum) = (q.function(&EMBEDDING, "link", &defines)?, q.function(&EMBEDDING, "sum", &defines)?);
    let (head, count) = (scratch.ptr(), scratch.ptr().wrapping_add(rows * 4));
    let next = count.wrapping_add(rows * 4);
    // SAFETY: the scratch memory, whose size was checked; it lives until the stream has done its work.
    unsafe { q.stream().set_zero(head, rows * 8)? };
    let args = Args::new()
        .view(ids)
        .value(lines as u32)
        .value(first_row)
        .value(rows as i64)
        .value(logical as i64)
        .ptr(head)
        .ptr(count)
        .ptr(next);
    q.launch(link, Launch::new(q.blocks(lines, 256, 4), 256), q.fault_args(args))?;
    let threads = (width / v).next_multiple_of(32).min(256);
    let tiles = (width / v).div_ceil(threads);
    let args = Args::new()
        .view(dweight)
        .view(dy)
        .view(ids)
        .value(lines as u32)
        .value(width as i64)
        .value(first_row)
        .ptr(head)
        .ptr(count)
        .ptr(next);
    q.launch(sum, Launch::grid((rows as u32, tiles as u32, 1), threads as u32), args)
}
