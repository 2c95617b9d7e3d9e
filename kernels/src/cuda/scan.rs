//! Running sums along a dim.

use super::rows::blocks;
use super::{Args, Define, Function, Launch, Queue, Source};
use crate::{KernelError, Result, View};

pub(super) static SCAN: Source = Source::file("scan", include_str!("../../cuda/scan.cu"))
    .forms(&["T={f32,f64,bf16} O=f32 ROW={32,256} REVERSE={0,1}", "T={b8,u8,i64} O=i64 ROW={32,256} REVERSE=0"]);

/// Blocks that keep a GPU busy. A constant, so that the bits do not depend on the GPU.
const BLOCKS: usize = 1024;
/// Lines up to this length are summed by a thread each, like those whose elements are apart.
const SHORT: usize = 16;

/// Lines, their length, the distance of their elements.
fn layout(dims: &[usize], dim: usize) -> (usize, usize, usize) {
    let n = dims[dim];
    (dims.iter().product::<usize>() / n.max(1), n, dims[dim + 1..].iter().product())
}

/// Into how many pieces each line is cut, and how many elements each has.
fn pieces(lines: usize, n: usize, rows: bool) -> (usize, usize) {
    let (units, least) = if rows { (lines, 8192) } else { (lines.div_ceil(256), 64) };
    let wanted = BLOCKS.div_ceil(units.max(1)).min(n.div_ceil(least)).clamp(1, 256);
    let piece = n.div_ceil(wanted).max(1);
    (n.div_ceil(piece), piece)
}

/// Returns the bytes of scratch memory of [`cumsum`] for a tensor of these dims.
pub fn workspace(dims: &[usize], dim: usize) -> usize {
    if dims.is_empty() || dims.contains(&0) {
        return 0;
    }
    let (lines, n, inner) = layout(dims, dim);
    match pieces(lines, n, inner == 1 && n > SHORT).0 {
        1 => 0,
        pieces => pieces * lines * 8,
    }
}

/// Computes running sums along `dim` of contiguous tensors, with `reverse` from its end. Floats are accumulated in f64, integers
/// in i64. `scratch` has [`workspace`] bytes.
///
/// # Errors
/// If the dims differ, there is no such dim, or the scratch memory is too small.
pub fn cumsum(q: &Queue, x: &View, out: &View, dim: usize, reverse: bool, scratch: Option<&View>) -> Result<()> {
    let fits = x.dims() == out.dims() && dim < x.rank() && x.is_contiguous() && out.is_contiguous();
    if !fits {
        return Err(KernelError::new(format!("cumsum of {:?} along {dim} into {:?}", x.dims(), out.dims())));
    }
    if out.is_empty() {
        return Ok(());
    }
    let (lines, n, inner) = layout(x.dims(), dim);
    let rows = inner == 1 && n > SHORT;
    let (pieces, piece) = pieces(lines, n, rows);
    let sums = match (pieces, scratch) {
        (1, _) => None,
        (_, Some(s)) if s.len() >= pieces * lines * 8 => Some(s),
        _ => return Err(KernelError::new("running sums in pieces need their scratch memory")),
    };
    let row = if n <= 512 { 32 } else { 256 };
    let function = |entry: &str| -> Result<Function> {
        let defines = [
            Define::dtype("T", x.dtype()),
            Define::dtype("O", out.dtype()),
            Define::int("ROW", row as i64),
            Define::int("REVERSE", i64::from(reverse)),
        ];
        q.function(&SCAN, entry, &defines)
    };
    let launch = |only_sums: bool| -> Result<()> {
        let args = Args::new().view(x).view(out).opt_view(sums).value(lines as u64).value(n as u64);
        // The last piece's sum is of no use.
        let count = (pieces - usize::from(only_sums)) as u32;
        let only_sums = i32::from(only_sums);
        if rows {
            let grid = Launch::grid((blocks(lines as u64, 256 / row), count, 1), 256);
            q.launch(function("scan_rows")?, grid, args.value(piece as u64).value(only_sums))
        } else {
            let grid = Launch::grid((blocks(lines as u64, 256), count, 1), 256);
            q.launch(function("scan_columns")?, grid, args.value(inner as u64).value(piece as u64).value(only_sums))
        }
    };
    if sums.is_some() {
        launch(true)?;
    }
    launch(false)
}
