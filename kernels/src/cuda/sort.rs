//! Order along a dim; see [`crate::cpu::sort`]. Lines are sorted whole, whatever is wanted of them.

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::sort::{Nth, check};
use crate::cpu::take::around;
use crate::{DType, KernelError, Result, View};

pub(super) static SORT: Source = Source::file("sort", include_str!("../../cuda/sort.cu"))
    .forms(&["T={b8,u8,i8,i32,f16,bf16,f32} WIDE=0", "T={i64,f64,f32} WIDE=1"]);

/// Pairs that a block sorts in shared memory.
const TILE: usize = 2048;

/// How many places a line of `n` elements has.
fn room(n: usize) -> usize {
    n.next_power_of_two().max(2)
}

/// Whether keys and positions take 64 bits each.
fn wide(dtype: DType, n: usize) -> bool {
    dtype.size() == 8 || n > u32::MAX as usize
}

/// Returns the bytes of scratch memory of the functions here for a tensor of these dims.
pub fn workspace(dtype: DType, dims: &[usize], dim: usize) -> usize {
    let n = dims.get(dim).copied().unwrap_or(1);
    let lines = dims.iter().product::<usize>() / n.max(1);
    lines * room(n) * if wide(dtype, n) { 16 } else { 8 }
}

/// See [`sort`](crate::cpu::sort::sort).
///
/// # Errors
/// If the tensors do not fit or are not contiguous.
pub fn sort(
    q: &Queue,
    x: &View,
    values: &View,
    indices: &View,
    dim: usize,
    descending: bool,
    scratch: Option<&View>,
) -> Result<()> {
    let count = values.dims().get(dim).copied().unwrap_or(0);
    check(x, values, indices, dim, count)?;
    Lines::new(q, [x, values, indices], dim, scratch)?.ordered(0, count, descending, false)
}

/// See [`nth`](crate::cpu::sort::nth).
///
/// # Errors
/// If the tensors do not fit or are not contiguous, or lines have no such place.
pub fn nth(
    q: &Queue,
    x: &View,
    values: &View,
    indices: &View,
    dim: usize,
    which: Nth,
    scratch: Option<&View>,
) -> Result<()> {
    check(x, values, indices, dim, 1)?;
    let (n, nan) = (x.dims()[dim], which == Nth::Median && x.dtype().is_float());
    let place = which.place(n);
    if place >= n {
        return Err(KernelError::new(format!("lines of {n} elements have no place {place}")));
    }
    Lines::new(q, [x, values, indices], dim, scratch)?.ordered(place, 1, false, nan)
}

/// The lines of a call.
struct Lines<'a> {
    q: &'a Queue<'a>,
    views: [&'a View; 3],
    dim: usize,
    pairs: Option<&'a View>,
}

impl<'a> Lines<'a> {
    fn new(q: &'a Queue<'a>, views: [&'a View; 3], dim: usize, scratch: Option<&'a View>) -> Result<Lines<'a>> {
        let bytes = workspace(views[0].dtype(), views[0].dims(), dim);
        match scratch.is_some_and(|s| s.len() >= bytes) || views[1].is_empty() {
            true => Ok(Lines { q, views, dim, pairs: scratch }),
            false => Err(KernelError::new("lines are sorted in scratch memory, which is missing")),
        }
    }

    fn launch(&self, entry: &str, threads: usize, args: Args) -> Result<()> {
        let x = self.views[0];
        let defines =
            [Define::dtype("T", x.dtype()), Define::int("WIDE", i64::from(wide(x.dtype(), x.dims()[self.dim])))];
        let f = self.q.function(&SORT, entry, &defines)?;
        self.q.launch(f, Launch::new(self.q.blocks(threads, 256, 4), 256), args)
    }

    /// Sorts the lines and stores `count` elements from `first` on.
    fn ordered(&self, first: usize, count: usize, descending: bool, nan: bool) -> Result<()> {
        let [x, values, indices] = self.views;
        let Some(pairs) = self.pairs.filter(|_| !values.is_empty()) else { return Ok(()) };
        let n = x.dims()[self.dim];
        let (outer, inner) = around(x.dims(), self.dim);
        let (lines, room) = (outer * inner, room(n));
        let total = lines * room;
        let sizes = |args: Args| args.value(lines as u64).value(n as u64).value(inner as u64).value(room as u64);
        self.launch("sort_load", total, sizes(Args::new().view(x).view(pairs)).value(i32::from(descending)))?;
        let tiles = |from: usize, to: usize| -> Result<()> {
            let args = Args::new().view(pairs).value(total as u64).value(room as u64);
            let defines = [Define::dtype("T", x.dtype()), Define::int("WIDE", i64::from(wide(x.dtype(), n)))];
            let f = self.q.function(&SORT, "sort_tiles", &defines)?;
            let launch = Launch::new(total.div_ceil(TILE) as u32, 256);
            self.q.launch(f, launch, args.value(from as u64).value(to as u64))
        };
        tiles(2, room.min(TILE))?;
        let mut size = 2 * TILE;
        while size <= room {
            let mut step = size / 2;
            while step >= TILE {
                let args = Args::new().view(pairs).value(total as u64).value(room as u64);
                self.launch("sort_far", total / 2, args.value(size as u64).value(step as u64))?;
                step /= 2;
            }
            tiles(size, size)?;
            size *= 2;
        }
        let args = sizes(Args::new().view(x).view(pairs).view(values).view(indices));
        let args = args.value(first as u64).value(count as u64).value(i32::from(nan));
        self.launch("sort_store", lines * count, args)
    }
}
