//! Reductions over dims, and the positions of extremes.
//!
//! What is reduced is walked by the threads of a warp or block where it lies closer together than outputs do, else outputs
//! are taken side by side. Few outputs of many elements are cut into pieces, whose results lie in scratch memory until a
//! second kernel joins them. How things are cut depends on shapes, strides and alignment only, so the bits do too.

use super::rows::{Shape, blocks, strides};
use super::{Args, Define, Function, Launch, Queue, Source};
use crate::cpu::reduce::Reduce;
use crate::cpu::strided::Walk;
use crate::{DType, Dims, KernelError, Result, Scalar, View};

pub(super) static REDUCE: Source = Source::file("reduce", include_str!("../../cuda/reduce.cu")).forms(&[
    "T=f32 O=f32 TRUTH=0 OP={0,1,3} VEC={1,4} ROW={32,256} WIDE={0,1}",
    "T=bf16 O=bf16 TRUTH=0 OP={0,2} VEC={1,4,8} ROW={32,256} WIDE=0",
    "T={u8,i32,i64,b8} O=i64 TRUTH=0 OP={0,3} VEC=2 ROW=256 WIDE=0",
    "T={f32,bf16,b8} O=b8 TRUTH=1 OP={1,2} VEC=1 ROW=256 WIDE=0",
    "T={f32,bf16,b8} O=i64 TRUTH=1 OP=0 VEC={1,4} ROW=256 WIDE=0",
    "T=i64 O=i64 TRUTH=1 OP=0 VEC={1,2} ROW=256 WIDE=0",
    "T={f32,f64,bf16,i64} O=i64 TRUTH=0 OP={4,5} VEC=2 ROW=256 WIDE=0",
]);

/// `of_reduce`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    outputs: u64,
    count: u64,
    piece: u64,
    kept: Shape,
    reduced: Shape,
    kept_x: [i64; 8],
    kept_out: [i64; 8],
    reduced_x: [i64; 8],
    divisor: f64,
}

/// `OP` of the positions of extremes.
const LARGEST_AT: i64 = 4;
const SMALLEST_AT: i64 = 5;

fn code(op: Reduce) -> i64 {
    match op {
        Reduce::Sum => 0,
        Reduce::Max => 1,
        Reduce::Min => 2,
        Reduce::Prod => 3,
    }
}

/// Blocks that keep a GPU busy. A constant, so that the bits do not depend on the GPU.
const BLOCKS: usize = 1024;
/// Elements of an output below which a warp or a part of it is enough.
const SHORT: usize = 1024;
/// Outputs beside each other that a block takes at least.
const TILE: usize = 128;

/// Into how many pieces the `count` elements of each of `outputs` outputs are cut, and how many elements each has.
fn pieces(outputs: usize, count: usize, columns: bool) -> (usize, usize) {
    let (units, least) = if columns { (outputs.div_ceil(TILE), 128) } else { (outputs, 8192) };
    if outputs == 0 || count == 0 || (!columns && count <= SHORT) {
        return (1, count);
    }
    let wanted = BLOCKS.div_ceil(units.max(1)).min(count.div_ceil(least)).max(1);
    // A multiple of every number of elements that are loaded at once.
    let piece = count.div_ceil(wanted).next_multiple_of(16);
    (count.div_ceil(piece), piece)
}

/// Bytes of scratch memory for `outputs` outputs of `count` elements each, however the input lies.
pub fn workspace(outputs: usize, count: usize) -> usize {
    let most = [true, false].map(|columns| pieces(outputs, count, columns).0);
    let most = most[0].max(most[1]);
    if most > 1 { most * outputs * 16 } else { 0 }
}

/// Reduces `x` over `dims` into `out`, which has x's rank with size one in those dims. Sums, extremes and products of
/// integers and bools are computed in i64, of floats in f32 (products in f64) or f64; the result is converted to out's dtype.
/// With `truth`, an element counts as whether it is not zero: the largest is then *any*, the smallest *all*.
///
/// `scratch` has as many bytes as [`workspace`] says.
///
/// # Errors
/// Where out's dims are others, or the scratch memory is too small.
pub fn reduce(
    q: &Queue,
    x: &View,
    out: &View,
    op: Reduce,
    truth: bool,
    dims: &[usize],
    scratch: Option<&View>,
) -> Result<()> {
    check(x, out, dims)?;
    if out.is_empty() {
        return Ok(());
    }
    if x.is_empty() {
        return super::fill::fill(q, &packed(out), op.identity(out.dtype().computed()?));
    }
    run(q, x, out, code(op), truth, dims, 1.0, scratch)
}

/// The sum of `x` over `dims`, divided by `count` before it is rounded to `out`, which has x's rank with size one in those
/// dims and a float dtype. `count` is the number of elements of the whole tensor, of which `x` may be a part. `scratch` as
/// for [`reduce`].
///
/// # Errors
/// As [`reduce`]; where out's dtype is no float.
pub fn mean(q: &Queue, x: &View, out: &View, dims: &[usize], count: usize, scratch: Option<&View>) -> Result<()> {
    check(x, out, dims)?;
    if !out.dtype().is_float() {
        return Err(KernelError::new(format!("a mean is a float, not {}", out.dtype())));
    }
    if out.is_empty() {
        return Ok(());
    }
    if x.is_empty() {
        return super::fill::fill(q, &packed(out), Scalar::Float(0.0 / count as f64));
    }
    run(q, x, out, code(Reduce::Sum), false, dims, count as f64, scratch)
}

/// Writes to `out` (i64, size one in `dim`) the index along `dim` of the largest (`max`) or smallest element. The first of
/// equals; NaN counts as beyond everything, as in PyTorch. `scratch` as for [`reduce`].
///
/// # Errors
/// Where out's dtype or dims are others, or the dim is empty while the output is not.
pub fn argreduce(q: &Queue, x: &View, out: &View, dim: usize, max: bool, scratch: Option<&View>) -> Result<()> {
    check(x, out, &[dim])?;
    if out.dtype() != DType::I64 {
        return Err(KernelError::new(format!("argmax or argmin into {}", out.dtype())));
    }
    if out.is_empty() {
        return Ok(());
    }
    if x.is_empty() {
        return Err(KernelError::new("argmax or argmin along an empty dim has no value"));
    }
    run(q, x, out, if max { LARGEST_AT } else { SMALLEST_AT }, false, &[dim], 1.0, scratch)
}

fn check(x: &View, out: &View, dims: &[usize]) -> Result<()> {
    let fits = x.rank() == out.rank()
        && dims.iter().all(|d| *d < x.rank())
        && (0..x.rank()).all(|d| out.dims()[d] == if dims.contains(&d) { 1 } else { x.dims()[d] });
    match fits {
        true => Ok(()),
        false => Err(KernelError::new(format!("reducing {:?} over {dims:?} does not give {:?}", x.dims(), out.dims()))),
    }
}

/// The view without dims of size one: outputs of reductions are contiguous but for those.
fn packed(out: &View) -> View {
    let dims: Dims = out.dims().iter().copied().filter(|d| *d != 1).collect();
    let strides = (0..out.rank()).filter(|d| out.dims()[*d] != 1).map(|d| out.strides()[d]).collect();
    // SAFETY: the same elements.
    unsafe { out.restride(0, dims, strides) }
}

/// The most of 16 bytes' elements, halved until the dim of neighbours, all other strides and the address are multiples.
fn width(x: &View, most: usize, dims: &[usize], inner: usize, all: &[&[isize]]) -> usize {
    let fits = |w: usize| {
        let multiple = |s: &isize| s.unsigned_abs().is_multiple_of(w);
        dims[inner].is_multiple_of(w)
            && (x.ptr() as usize).is_multiple_of(w * x.dtype().size())
            && all[0].iter().enumerate().all(|(d, s)| d == inner || multiple(s))
            && all[1].iter().all(multiple)
    };
    std::iter::successors(Some(most), |w| Some(w / 2)).find(|w| *w <= 1 || fits(*w)).unwrap_or(1).max(1)
}

#[allow(clippy::too_many_arguments)]
fn run(
    q: &Queue,
    x: &View,
    out: &View,
    op: i64,
    truth: bool,
    dims: &[usize],
    divisor: f64,
    scratch: Option<&View>,
) -> Result<()> {
    let mut reduced_dims: Dims = x.dims().into();
    (0..x.rank()).filter(|d| !dims.contains(d)).for_each(|d| reduced_dims[d] = 1);
    // Both in the order of the input's memory, which is read once and more than is written.
    let kept = Walk::new(out.dims(), &[x.strides(), out.strides()], true);
    let reduced = Walk::new(&reduced_dims, &[x.strides()], true);
    let (outputs, count) = (out.len(), x.len() / out.len());
    let (kept_inner, reduced_inner) = (kept.dims.len() - 1, reduced.dims.len() - 1);
    let (side, along) = (kept.inner_stride(0).unsigned_abs(), reduced.inner_stride(0).unsigned_abs());
    // With few outputs side by side most lanes would have nothing to do.
    let columns = kept.inner() >= 16 && side < along;
    let size = x.dtype().size();
    let vec = match columns {
        true if side == 1 => {
            width(x, (16 / size).min(4), &kept.dims, kept_inner, &[&kept.strides[0], &reduced.strides[0]])
        }
        false if reduced.inner_stride(0) == 1 => {
            width(x, 16 / size, &reduced.dims, reduced_inner, &[&reduced.strides[0], &kept.strides[0]])
        }
        _ => 1,
    };
    let vec = if columns && kept.inner_stride(0) < 0 { 1 } else { vec };
    let row = if count <= SHORT { count.div_ceil(vec).next_power_of_two().min(32) } else { 256 };
    let (pieces, piece) = pieces(outputs, count, columns);
    let parts = match (pieces, scratch) {
        (1, _) => None,
        (_, Some(s)) if s.len() >= pieces * outputs * 16 => Some(s),
        _ => return Err(KernelError::new("a reduction in pieces needs its scratch memory")),
    };
    let job = Job {
        outputs: outputs as u64,
        count: count as u64,
        piece: piece as u64,
        kept: Shape::new(&kept.dims)?,
        reduced: Shape::new(&reduced.dims)?,
        kept_x: strides(&kept.strides[0]),
        kept_out: strides(&kept.strides[1]),
        reduced_x: strides(&reduced.strides[0]),
        divisor,
    };
    let wide = outputs.max(count) >= 1 << 31;
    let function = |entry: &str| -> Result<Function> {
        let defines = [
            Define::dtype("T", x.dtype()),
            Define::dtype("O", out.dtype()),
            Define::int("TRUTH", i64::from(truth)),
            Define::int("OP", op),
            Define::int("VEC", vec as i64),
            Define::int("ROW", if columns { 32 } else { row as i64 }),
            Define::int("WIDE", i64::from(wide)),
        ];
        q.function(&REDUCE, entry, &defines)
    };
    let args = Args::new().view(x).view(out).opt_view(parts);
    if columns {
        // Warps of a block that share their outputs' elements: no more than have work.
        let warps = (piece.min(count).div_ceil(8)).next_power_of_two().min(8);
        let grid = blocks(job.outputs, (8 / warps * 32 * vec) as u64);
        let launch = Launch::grid((grid, pieces as u32, 1), 256);
        q.launch_with(function("reduce_columns")?, launch, args.value(warps as i32), &job)?;
    } else {
        let grid = blocks(job.outputs, (256 / row) as u64);
        q.launch_with(function("reduce_rows")?, Launch::grid((grid, pieces as u32, 1), 256), args, &job)?;
    }
    if parts.is_some() {
        let lanes = outputs.next_power_of_two().min(32);
        let args = Args::new().view(out).opt_view(parts).value(pieces as u32).value(lanes as i32);
        let launch = Launch::new(blocks(job.outputs, lanes as u64), 256);
        q.launch_with(function("reduce_finish")?, launch, args, &job)?;
    }
    Ok(())
}
