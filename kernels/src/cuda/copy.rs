//! Copying with conversion of dtype and layout.
//!
//! Contiguous memory is copied by the driver. Where both sides have runs along one dim, `pointwise.cuh` moves vectors along
//! it; where the source's runs are along another dim than the output's, tiles are turned in shared memory.

pub use super::fill::fill;

use super::elementwise::Program;
use super::pointwise::{Operand, Pointwise};
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::strided::Walk;
use crate::expr::Expr;
use crate::{Builtin, KernelError, Result, View};
use smallvec::SmallVec;
use std::sync::OnceLock;

const SOURCE: Source = Source::file("copy", include_str!("../../cuda/copy.cu"))
    .forms(&["OF_BYTES={1,2,4,8,16} OF_V=1 OF_U=4 OF_MODES={0,1} OF_OUTER=2 OF_STRIDED=1"]);
pub(super) static COPY: Source = SOURCE;
pub(super) static TRANSPOSE: Source =
    Source::file("transpose", include_str!("../../cuda/transpose.cu")).forms(&["OF_BYTES={1,2,4,8}"]);

const fn program(bytes: i64) -> Pointwise {
    Pointwise::new(SOURCE, Some(Define::int("OF_BYTES", bytes)), 1)
}
/// By the size of what is moved: 1, 2, 4, 8, 16 bytes.
static PROGRAMS: [Pointwise; 5] = [program(1), program(2), program(4), program(8), program(16)];

/// Dims shorter than that are no side of a tile: most of its threads would have nothing to do.
const LEAST_SIDE: usize = 16;
/// Dims besides the two of the tiles.
const MOST_PLANES: usize = 6;

/// Copies `src` to `dst` (same dims), converting between dtypes as the CPU does. `dst` may be the very window of `src`.
///
/// # Errors
/// Where the dims differ, or the dtypes differ and one is registered; what CUDA reports.
pub fn copy(q: &Queue, src: &View, dst: &View) -> Result<()> {
    if src.dims() != dst.dims() {
        return Err(KernelError::new(format!("copy from dims {:?} to {:?}", src.dims(), dst.dims())));
    }
    if dst.is_empty() {
        return Ok(());
    }
    if src.dtype() != dst.dtype() {
        return cast(src.dtype().cast()?, dst.dtype().cast()?)?.run(q, std::slice::from_ref(src), &[], dst);
    }
    let bytes = src.dtype().size();
    let contiguous = || {
        if src.ptr() == dst.ptr() {
            return Ok(());
        }
        // SAFETY: all elements of two views, which do not overlap unless they are the same; their memory lives until the
        // stream has done its work, by the contract of views.
        unsafe { q.stream().copy_on_device(dst.ptr(), src.ptr(), dst.len() * bytes) }
    };
    if src.is_contiguous() && dst.is_contiguous() {
        return contiguous();
    }
    let mut walk = Walk::new(dst.dims(), &[dst.strides(), src.strides()], true);
    if walk.dims.len() == 1 && walk.strides.iter().all(|s| s[0] == 1) {
        return contiguous();
    }
    if let Some(d) = turned(&walk, bytes) {
        return transpose(q, &walk, d, src, dst);
    }
    let size = bytes * widen(&mut walk, [dst.ptr(), src.ptr()], bytes);
    let operands = [dst, src].map(|v| Operand { at: v.ptr(), size });
    PROGRAMS[size.trailing_zeros() as usize].launch(q, &walk, &operands, &[])
}

/// Where both sides have runs along the inner dim, the walk over as many elements at once as 16 bytes, addresses and strides
/// allow; how many that is.
fn widen(walk: &mut Walk, addresses: [*mut u8; 2], bytes: usize) -> usize {
    let last = walk.dims.len() - 1;
    if walk.strides.iter().any(|s| s[last] != 1) {
        return 1;
    }
    let fits = |n: usize| {
        walk.inner().is_multiple_of(n)
            && addresses.iter().all(|a| (*a as usize).is_multiple_of(n * bytes))
            && walk.strides.iter().flat_map(|s| &s[..last]).all(|s| s % n as isize == 0)
    };
    let mut n = 16 / bytes;
    while !fits(n) {
        n /= 2;
    }
    walk.dims[last] /= n;
    walk.strides.iter_mut().flat_map(|s| &mut s[..last]).for_each(|s| *s /= n as isize);
    n
}

/// The program that converts.
fn cast(from: Builtin, to: Builtin) -> Result<&'static Program> {
    const COUNT: usize = Builtin::ALL.len();
    static CASTS: [[OnceLock<Result<Program>>; COUNT]; COUNT] = [const { [const { OnceLock::new() }; COUNT] }; COUNT];
    let program = CASTS[from as usize][to as usize]
        .get_or_init(|| Program::compile(&Expr::Input(0), &[from.dtype()], to.dtype()));
    program.as_ref().map_err(Clone::clone)
}

/// The side of a tile.
fn side(bytes: usize) -> usize {
    if bytes <= 2 { 64 } else { 32 }
}

/// The blocks of a transpose with its rows along dim `d`: one for each tile, with the tiles along both sides.
fn tiles(walk: &Walk, d: usize, bytes: usize) -> (usize, [usize; 2]) {
    let tiles = [walk.dims[d].div_ceil(side(bytes)), walk.inner().div_ceil(side(bytes))];
    (walk.rows() / walk.dims[d] * tiles[0] * tiles[1], tiles)
}

/// The dim along which the source has its runs, where the output has them along another and both are long enough for tiles.
fn turned(walk: &Walk, bytes: usize) -> Option<usize> {
    let last = walk.dims.len() - 1;
    let fits = last >= 1
        && last - 1 <= MOST_PLANES
        && walk.inner_stride(0) == 1
        && !matches!(walk.inner_stride(1), 0 | 1)
        && walk.inner() >= LEAST_SIDE;
    let d = (0..last).find(|d| walk.strides[1][*d] == 1 && walk.dims[*d] >= LEAST_SIDE)?;
    (fits && tiles(walk, d, bytes).0 <= i32::MAX as usize).then_some(d)
}

fn transpose(q: &Queue, walk: &Walk, d: usize, src: &View, dst: &View) -> Result<()> {
    let last = walk.dims.len() - 1;
    let bytes = src.dtype().size();
    let (rows, columns) = (walk.dims[d], walk.inner());
    let planes: SmallVec<[usize; 6]> = (0..last).filter(|o| *o != d).collect();
    let (blocks, tiles) = tiles(walk, d, bytes);
    let mut words: SmallVec<[u64; 48]> = smallvec::smallvec![
        rows as u64,
        columns as u64,
        tiles[0] as u64,
        tiles[1] as u64,
        walk.inner_stride(1) as u64,
        walk.strides[0][d] as u64,
        planes.len() as u64,
    ];
    let mut padded = |value: &dyn Fn(usize) -> u64| {
        words.extend((0..MOST_PLANES).map(|i| planes.get(i).map_or(0, |o| value(*o))));
    };
    padded(&|o| walk.dims[o] as u64);
    padded(&|o| walk.strides[1][o] as u64);
    padded(&|o| walk.strides[0][o] as u64);
    words.push(dst.ptr() as u64);
    words.push(src.ptr() as u64);
    let f = q.function(&TRANSPOSE, "transpose", &[Define::int("OF_BYTES", bytes as i64)])?;
    let launch = Launch { grid: (blocks as u32, 1, 1), block: (32, 8, 1), shared: 0 };
    q.launch(f, launch, Args::new().words(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_only_where_runs_differ() {
        let dim = |dims: &[usize], to: &[isize], from: &[isize]| turned(&Walk::new(dims, &[to, from], true), 4);
        assert_eq!(dim(&[64, 32], &[32, 1], &[1, 64]), Some(0));
        // [b, t, h, d] -> [b, h, t, d]: runs along d on both sides.
        assert_eq!(dim(&[2, 4, 64, 32], &[8192, 2048, 32, 1], &[8192, 32, 128, 1]), None);
        // [b, t, h, d] -> [b, h, d, t]: h and d are one dim.
        assert_eq!(dim(&[2, 4, 32, 64], &[8192, 2048, 64, 1], &[8192, 32, 1, 128]), Some(1));
        // Too thin, and repeated along the output's runs.
        assert_eq!(dim(&[3, 32], &[32, 1], &[1, 3]), None);
        assert_eq!(dim(&[64, 32], &[32, 1], &[1, 0]), None);
    }
}
