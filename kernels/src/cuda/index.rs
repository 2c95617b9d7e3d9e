//! Kernels about positions: ranges, triangles, lookups. See [`crate::cpu::index`] for what each means; a value out of range
//! is reported to the queue's fault slot, where the CPU's kernel returns an error.

use super::pointwise::columns;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::strided::broadcast_strides;
use crate::{DType, KernelError, Result, Scalar, View};

pub(super) static INDEX: Source =
    Source::file("index", include_str!("../../cuda/index.cu")).forms(&["T={f32,bf16,i64} I=i64", "T=f32 I=i32"]);
pub(super) static TRIANGLE: Source = Source::file("triangle", include_str!("../../cuda/triangle.cu"))
    .forms(&["OF_BYTES=2 OF_V={1,8} LOWER={0,1}", "OF_BYTES=4 OF_V=4 LOWER=1"]);

/// `of_shape` of the prelude.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Shape {
    rank: i32,
    pad: i32,
    size: [i64; 8],
}

/// `of_strides` of the prelude.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Steps(pub(super) [i64; 8]);

pub(super) fn shape(dims: &[usize]) -> Result<Shape> {
    if dims.len() > 8 {
        return Err(KernelError::new(format!("{} dims; 8 are the most here", dims.len())));
    }
    let mut size = [1; 8];
    dims.iter().zip(&mut size).for_each(|(d, s)| *s = *d as i64);
    Ok(Shape { rank: dims.len() as i32, pad: 0, size })
}

pub(super) fn steps(strides: &[isize]) -> Steps {
    let mut at = [0; 8];
    strides.iter().zip(&mut at).for_each(|(d, s)| *s = *d as i64);
    Steps(at)
}

pub(super) fn index_dtype(ids: &View) -> Result<Define> {
    crate::cpu::index::index_dtype(ids)?;
    Ok(Define::dtype("I", ids.dtype()))
}

pub(super) fn contiguous(views: &[&View]) -> Result<()> {
    match views.iter().all(|v| v.is_contiguous()) {
        true => Ok(()),
        false => Err(KernelError::new("this CUDA kernel needs contiguous memory")),
    }
}

/// Blocks of 256 threads, one element a thread up to a full GPU.
fn each(q: &Queue, n: usize) -> Launch {
    Launch::new(q.blocks(n, 256, 4), 256)
}

/// `start + step * first`, `start + step * (first + 1)`, … along the only dim of `out`.
pub fn arange(q: &Queue, out: &View, start: Scalar, step: Scalar, first: i64) -> Result<()> {
    if out.rank() != 1 {
        return Err(KernelError::new(format!("arange into {:?}", out.dims())));
    }
    contiguous(&[out])?;
    let integer = !matches!((start, step), (Scalar::Float(_), _) | (_, Scalar::Float(_)));
    let f = q.function(&INDEX, "arange", &[Define::dtype("T", out.dtype()), Define::dtype("I", DType::I64)])?;
    let args = Args::new()
        .view(out)
        .value(out.len() as u64)
        .value(start.to_f64())
        .value(step.to_f64())
        .value(start.to_i64())
        .value(step.to_i64())
        .value(first)
        .value(i32::from(integer));
    q.launch(f, each(q, out.len()), args)
}

/// The lower triangle of the last two dims. `out` may be `x`.
pub fn tril(q: &Queue, x: &View, out: &View, diagonal: i64, row_offset: i64, col_offset: i64) -> Result<()> {
    triangle(q, x, out, true, [diagonal, row_offset, col_offset])
}

/// The upper triangle; see [`tril`].
pub fn triu(q: &Queue, x: &View, out: &View, diagonal: i64, row_offset: i64, col_offset: i64) -> Result<()> {
    triangle(q, x, out, false, [diagonal, row_offset, col_offset])
}

fn triangle(q: &Queue, x: &View, out: &View, lower: bool, [diagonal, row, column]: [i64; 3]) -> Result<()> {
    let rank = x.rank();
    if rank < 2 || x.dims() != out.dims() || x.dtype() != out.dtype() {
        return Err(KernelError::new(format!(
            "triangle from {} {:?} to {} {:?}",
            x.dtype(),
            x.dims(),
            out.dtype(),
            out.dims()
        )));
    }
    contiguous(&[x, out])?;
    if out.is_empty() {
        return Ok(());
    }
    let (rows, width, bytes) = (x.dims()[rank - 2], x.dims()[rank - 1], x.dtype().size());
    let mut v = 16 / bytes;
    while !width.is_multiple_of(v) || [x, out].iter().any(|t| !(t.ptr() as usize).is_multiple_of(v * bytes)) {
        v /= 2;
    }
    // Far beyond every tensor, and far from where additions wrap.
    let far = 1i64 << 60;
    let edge = diagonal.clamp(-far, far).saturating_add(row).saturating_sub(column).clamp(-far, far);
    const REPEAT: u32 = 4;
    let lines = out.len() / width;
    let (launch, tiles) = columns(width / v, lines, REPEAT)?;
    let defines =
        [Define::int("OF_BYTES", bytes as i64), Define::int("OF_V", v as i64), Define::int("LOWER", i64::from(lower))];
    let f = q.function(&TRIANGLE, "triangle", &defines)?;
    let step = launch.block.1 as usize % rows;
    let words = [
        lines as u64,
        (width / v) as u64,
        tiles,
        u64::from(REPEAT),
        rows as u64,
        step as u64,
        edge as u64,
        out.ptr() as u64,
        x.ptr() as u64,
    ];
    q.launch(f, launch, Args::new().words(&words))
}

/// `out[.., c] = 1` where the id is `first + c`, else 0. Ids must be in `0..logical`.
pub fn one_hot(q: &Queue, ids: &View, out: &View, first: i64, logical: usize) -> Result<()> {
    let lead = ids.rank();
    if out.rank() != lead + 1 || out.dims()[..lead] != *ids.dims() {
        return Err(KernelError::new(format!("one_hot of {:?} into {:?}", ids.dims(), out.dims())));
    }
    contiguous(&[ids, out])?;
    let f = q.function(&INDEX, "one_hot", &[Define::dtype("T", out.dtype()), index_dtype(ids)?])?;
    super::fill::fill(q, out, Scalar::Int(0))?;
    let args = Args::new()
        .view(out)
        .view(ids)
        .value(ids.len() as u64)
        .value(out.dims()[lead] as u64)
        .value(first)
        .value(logical as i64);
    q.launch(f, each(q, ids.len()), q.fault_args(args))
}

/// Reports an index outside `0..logical`: for calls that make nothing of their indices, which kernels then do not see.
///
/// # Errors
/// If the indices are not i64 or i32, or not contiguous.
pub fn check_ids(q: &Queue, ids: &View, logical: usize) -> Result<()> {
    contiguous(&[ids])?;
    if ids.is_empty() {
        return Ok(());
    }
    let f = q.function(&INDEX, "check_ids", &[Define::dtype("T", DType::I64), index_dtype(ids)?])?;
    let args = Args::new().view(ids).value(ids.len() as u64).value(logical as i64);
    q.launch(f, each(q, ids.len()), q.fault_args(args))
}

/// Writes to `out` (i64, x's dims) the index along `dim` plus `index_offset` where `x` equals `m` (which broadcasts; NaN
/// equals NaN), elsewhere the largest i64.
pub fn match_index(q: &Queue, x: &View, m: &View, out: &View, dim: usize, index_offset: i64) -> Result<()> {
    if x.dims() != out.dims() || out.dtype() != DType::I64 || m.dtype() != x.dtype() || dim >= x.rank() {
        return Err(KernelError::new(format!("match_index of {:?} along {dim} into {:?}", x.dims(), out.dims())));
    }
    contiguous(&[x, out])?;
    if out.is_empty() {
        return Ok(());
    }
    let repeated = broadcast_strides(m, x.dims())?;
    let f = q.function(&INDEX, "match_index", &[Define::dtype("T", x.dtype()), Define::dtype("I", DType::I64)])?;
    let args = Args::new()
        .value(shape(x.dims())?)
        .value(steps(&repeated))
        .view(out)
        .view(x)
        .view(m)
        .value(x.len() as u64)
        .value(x.dims()[dim + 1..].iter().product::<usize>() as u64)
        .value(x.dims()[dim] as u64)
        .value(index_offset);
    q.launch(f, each(q, out.len()), args)
}
