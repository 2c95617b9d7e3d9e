//! Reductions over dims, and cumulative sums.
//!
//! The order of additions is fixed by the dims and strides, never by the threads: runs are folded in blocks with a fixed
//! number of accumulators, and large reductions in fixed pieces that are joined in order. Sums of f32 and halves are f32
//! inside a block (4096 elements) and f64 beyond, so that the error does not grow with the length.
//!
//! A reduction over the last dims can also read a result that is not stored ([`fused`]): each block is computed before it is folded, in the
//! order in which it would be folded in memory, so the bits are the same.

mod computed;
mod fold;

use super::copy::fill;
use super::elementwise::Computed;
use super::lane::{Lane, Native, native, with_float, with_integer, with_lane};
use super::strided::Walk;
use crate::parallel::{GRAIN, parallel_for};
use crate::view::contiguous_strides;
use crate::{Builtin, DType, KernelError, Limits, Result, Scalar, Strides, View};
pub use computed::fused;
use fold::{ROWS, TILE, Total};
use std::ops::Range;

/// Operation of a reduction. NaN propagates through `Max` and `Min`; on bool they are *or* and *and*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Sum; of an empty set 0.
    Sum,
    /// Maximum; of an empty set the dtype's lowest value.
    Max,
    /// Minimum; of an empty set the dtype's highest value.
    Min,
    /// Product; of an empty set 1.
    Prod,
}

impl Reduce {
    /// Result of an empty reduction in a dtype, the neutral element.
    pub fn identity(self, dtype: Builtin) -> Scalar {
        let (low, high) = match dtype.facts().limits {
            Limits::Bools => (Scalar::Bool(false), Scalar::Bool(true)),
            Limits::Integers(low, high) => (Scalar::Int(low), Scalar::Int(high)),
            // 8-bit floats are not reduced, and complex numbers, which have no order, are summed only.
            Limits::Largest(_) => (Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY)),
        };
        match self {
            Reduce::Sum => Scalar::Int(0),
            Reduce::Prod => Scalar::Int(1),
            Reduce::Max => low,
            Reduce::Min => high,
        }
    }
}

/// Reduces `x` over `dims` into `out`, which has x's rank with size one in those dims. Integers and bool are computed in
/// i64, floats in floats; the result is converted to out's dtype (for the sum of integers and bool give i64).
///
/// # Errors
/// Where out's dims are others.
pub fn reduce(x: &View, out: &View, op: Reduce, dims: &[usize]) -> Result<()> {
    run(Source::Memory(x), out, op, dims, None)
}

/// The sum of `x` over `dims`, divided by `count` before it is rounded to `out`, which has x's rank with size one in those
/// dims and a float dtype. `count` is the number of elements of the whole tensor, of which `x` may be a part.
///
/// # Errors
/// Where out's dims are others, or its dtype is no float.
pub fn mean(x: &View, out: &View, dims: &[usize], count: usize) -> Result<()> {
    if !out.dtype().is_float() {
        return Err(KernelError::new(format!("a mean is a float, not {}", out.dtype())));
    }
    run(Source::Memory(x), out, Reduce::Sum, dims, Some(count as f64))
}

/// Where the elements are that are folded.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Elements of a tensor.
    Memory(&'a View),
    /// Elements that are computed when they are folded, those of an output side by side.
    Computed(&'a Computed<'a>),
}

impl Source<'_> {
    fn dims(&self) -> &[usize] {
        match self {
            Source::Memory(x) => x.dims(),
            Source::Computed(x) => x.dims(),
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Source::Memory(x) => x.dtype(),
            Source::Computed(x) => x.dtype().dtype(),
        }
    }

    /// Strides of the elements, or those that they would have in memory.
    fn strides(&self) -> Strides {
        match self {
            Source::Memory(x) => x.strides().into(),
            Source::Computed(x) => contiguous_strides(x.dims()),
        }
    }
}

fn run(x: Source<'_>, out: &View, op: Reduce, dims: &[usize], count: Option<f64>) -> Result<()> {
    let (from, strides) = (x.dims(), x.strides());
    let fits = from.len() == out.rank()
        && dims.iter().all(|d| *d < from.len())
        && (0..from.len()).all(|d| out.dims()[d] == if dims.contains(&d) { 1 } else { from[d] });
    if !fits {
        return Err(KernelError::new(format!("reducing {from:?} over {dims:?} does not give {:?}", out.dims())));
    }
    if out.is_empty() {
        return Ok(());
    }
    if from.contains(&0) {
        let empty = count.map(|n| Scalar::Float(0.0 / n));
        return fill(out, empty.unwrap_or(op.identity(out.dtype().computed()?)));
    }
    let dtypes = [native(x.dtype())?, native(out.dtype())?];
    let mut reduced_dims: crate::Dims = from.into();
    (0..from.len()).filter(|d| !dims.contains(d)).for_each(|d| reduced_dims[d] = 1);
    let job = Job {
        x,
        out,
        dtypes,
        op,
        count,
        kept: Walk::new(out.dims(), &[out.strides(), &strides], true),
        reduced: Walk::new(&reduced_dims, &[&strides], true),
    };
    if job.dtypes[0].is_float() { job.run::<f64>() } else { job.run::<i64>() }
}

/// Partial results of one reduction at most: 128 MiB. A tensor of fewer than 2^34 elements that all lie in memory needs fewer.
const MOST_PARTIALS: usize = 1 << 24;

/// Cuts the reduced elements of each output into pieces, so that few outputs of many elements still use all threads: elements
/// of a piece, and pieces. An expanded tensor may have any number of elements in little memory: beyond a number of partial
/// results the pieces grow. Depends on the sizes only, so the bits of a sum do not depend on the number of threads.
fn cut(count: usize, tile: usize, outputs: usize) -> (usize, usize) {
    let most = (MOST_PARTIALS / outputs.max(1)).max(1);
    let piece = (2 * GRAIN / tile).max(ROWS).max(count.div_ceil(most));
    (piece, count.div_ceil(piece))
}

struct Job<'a> {
    x: Source<'a>,
    out: &'a View,
    /// Of `x` and of `out`.
    dtypes: [Native; 2],
    op: Reduce,
    /// Number that sums are divided by.
    count: Option<f64>,
    /// Over the output's elements; operand 1 is x.
    kept: Walk,
    /// Over the elements of x that make one element of the output.
    reduced: Walk,
}

/// Lets tasks write to their own elements of one buffer.
struct Shared<T>(*mut T);
// SAFETY: tasks of one `parallel_for` write disjoint elements; `T` is plain data.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// Element `i` exists and no other task touches it.
    unsafe fn write(&self, i: usize, value: T) {
        // SAFETY: by the contract of this function.
        unsafe { self.0.add(i).write(value) }
    }
}

impl Job<'_> {
    fn run<T: Total>(&self) -> Result<()> {
        let count = self.reduced.rows() * self.reduced.inner();
        let inner = self.kept.inner();
        let side_by_side = self.kept.inner_stride(1) == 1 && inner > 1 && self.reduced.inner_stride(0) != 1;
        let columns = side_by_side && matches!(self.x, Source::Memory(_));
        let tile = if columns { TILE.min(inner) } else { 1 };
        let tiles = inner.div_ceil(tile);
        let outputs = self.kept.rows() * inner;
        let (piece, pieces) = cut(count, tile, outputs);
        let mut partial: Vec<T> = Vec::new();
        if pieces > 1 {
            let n = pieces * outputs;
            let refused = |_| KernelError::out_of_memory(format!("no memory for {n} partial results of a reduction"));
            partial.try_reserve_exact(n).map_err(refused)?;
            partial.resize(n, T::default());
        }
        let shared = Shared(partial.as_mut_ptr());
        let tasks = self.kept.rows() * tiles * pieces;
        let grain = (GRAIN / tile.saturating_mul(count.min(piece))).max(1);
        if !columns && pieces == 1 && self.reduced.rows() == 1 && count <= fold::BLOCK {
            parallel_for(outputs, grain, &|range| match self.x {
                Source::Memory(x) => self.fold_lines::<T>(x, range, count),
                Source::Computed(x) => self.compute_lines::<T>(x, range, count),
            });
            return Ok(());
        }
        parallel_for(tasks, grain, &|range| {
            for task in range {
                let (unit, piece_index) = (task / pieces, task % pieces);
                let (row, first) = (unit / tiles, unit % tiles * tile);
                let n = tile.min(inner - first);
                let elements = piece_index * piece..count.min((piece_index + 1) * piece);
                let emit = |totals: &[T]| {
                    if pieces == 1 {
                        return self.store(row, first, totals);
                    }
                    for (i, total) in totals.iter().enumerate() {
                        // SAFETY: one task per output and piece.
                        unsafe { shared.write((row * inner + first + i) * pieces + piece_index, *total) };
                    }
                };
                match self.x {
                    Source::Memory(x) if columns => {
                        let mut totals = [T::identity(self.op); TILE];
                        self.fold_columns(x, row, first, elements, &mut totals[..n]);
                        emit(&totals[..n]);
                    }
                    Source::Memory(x) => emit(&[self.fold_one(x, row, first, elements)]),
                    Source::Computed(x) => emit(&[self.compute_one(x, row, first, elements)]),
                }
            }
        });
        for (o, parts) in partial.chunks(pieces.max(1)).enumerate() {
            let total = parts.iter().fold(T::identity(self.op), |a, b| T::join(self.op, a, *b));
            self.store(o / inner, o % inner, &[total]);
        }
        Ok(())
    }

    /// The first element of an output, in elements.
    fn offset(&self, row: usize, column: usize) -> isize {
        self.kept.row_offset(1, row) + column as isize * self.kept.inner_stride(1)
    }

    fn source(&self, x: &View, row: usize, column: usize) -> *const u8 {
        x.ptr().wrapping_offset(self.offset(row, column) * x.dtype().size() as isize)
    }

    /// Writes neighbouring outputs.
    fn store<T: Total>(&self, row: usize, column: usize, totals: &[T]) {
        let step = self.kept.inner_stride(0);
        let offset = self.kept.row_offset(0, row) + column as isize * step;
        let to = self.out.ptr().wrapping_offset(offset * self.out.dtype().size() as isize);
        with_lane!(self.dtypes[1], D => {
            let (to, count) = (to.cast::<D>(), self.count);
            for (i, total) in totals.iter().enumerate() {
                // SAFETY: an element of the output, and no other task writes it.
                unsafe { to.wrapping_offset(i as isize * step).write(total.store(count)) };
            }
        });
    }

    /// Folds and writes outputs that are made of one run each, many in a call.
    fn fold_lines<T: Total>(&self, x: &View, outputs: Range<usize>, count: usize) {
        let inner = self.kept.inner();
        let step = self.kept.inner_stride(1) * x.dtype().size() as isize;
        let mut at = outputs.start;
        while at < outputs.end {
            let (row, first) = (at / inner, at % inner);
            let n = (inner - first).min(outputs.end - at).min(ROWS);
            let base = self.source(x, row, first);
            let starts: [*const u8; ROWS] = std::array::from_fn(|i| base.wrapping_offset(i as isize * step));
            let mut totals = [T::default(); ROWS];
            // SAFETY: the walks visit elements of x.
            unsafe {
                T::fold(self.op, self.dtypes[0], &starts[..n], self.reduced.inner_stride(0), count, &mut totals[..n]);
            }
            self.store(row, first, &totals[..n]);
            at += n;
        }
    }

    /// Folds the given reduced elements of one output.
    fn fold_one<T: Total>(&self, x: &View, row: usize, column: usize, elements: Range<usize>) -> T {
        let (base, size) = (self.source(x, row, column), x.dtype().size() as isize);
        let (inner, stride) = (self.reduced.inner(), self.reduced.inner_stride(0));
        let mut total = T::identity(self.op);
        let mut at = elements.start;
        while at < elements.end {
            let (r, first) = (at / inner, at % inner);
            let n = (inner - first).min(elements.end - at).min(fold::BLOCK);
            let offset = self.reduced.row_offset(0, r) + first as isize * stride;
            let start = base.wrapping_offset(offset * size);
            let mut part = [T::default()];
            // SAFETY: the walk visits elements of x.
            unsafe { T::fold(self.op, self.dtypes[0], &[start], stride, n, &mut part) };
            total = T::join(self.op, total, part[0]);
            at += n;
        }
        total
    }

    /// Folds the given reduced elements of neighbouring outputs, side by side.
    fn fold_columns<T: Total>(&self, x: &View, row: usize, column: usize, elements: Range<usize>, totals: &mut [T]) {
        let (base, size) = (self.source(x, row, column), x.dtype().size() as isize);
        let (inner, stride) = (self.reduced.inner(), self.reduced.inner_stride(0));
        let mut at = elements.start;
        while at < elements.end {
            let n = ROWS.min(elements.end - at);
            let mut rows = [base; ROWS];
            let mut i = 0;
            while i < n {
                // One division for a run, not for each of its elements.
                let (r, first) = ((at + i) / inner, (at + i) % inner);
                let run = (inner - first).min(n - i);
                let start = self.reduced.row_offset(0, r) + first as isize * stride;
                for (j, p) in rows[i..i + run].iter_mut().enumerate() {
                    *p = base.wrapping_offset((start + j as isize * stride) * size);
                }
                i += run;
            }
            // SAFETY: each row points at neighbouring elements of x, as many as there are totals.
            unsafe { T::fold_columns(self.op, self.dtypes[0], &rows[..n], totals) };
            at += n;
        }
    }
}

/// Running sums along `dim`, with `reverse` from its end, of a float in its dtype, of bools and integers in i64. Floats are accumulated
/// in f64.
///
/// # Errors
/// Where the dims or the output's dtype differ, or there is no such dim.
pub fn cumsum(x: &View, out: &View, dim: usize, reverse: bool) -> Result<()> {
    if x.dims() != out.dims() || dim >= x.rank() {
        return Err(KernelError::new(format!("cumsum of {:?} along {dim} into {:?}", x.dims(), out.dims())));
    }
    if out.is_empty() {
        return Ok(());
    }
    let dtype = super::scan::running_dtype("cumsum", x, out)?;
    let n = x.dims()[dim];
    let mut others: crate::Dims = x.dims().into();
    others[dim] = 1;
    let lines = Walk::new(&others, &[out.strides(), x.strides()], true);
    let inner = lines.inner();
    let steps = [x.strides()[dim], out.strides()[dim]];
    parallel_for(lines.rows() * inner, (GRAIN / n).max(1), &|range| {
        let starts = |line: usize| {
            let start = |k: usize| {
                let last = if reverse { steps[1 - k] * (n as isize - 1) } else { 0 };
                lines.row_offset(k, line / inner) + (line % inner) as isize * lines.inner_stride(k) + last
            };
            let from = x.ptr().wrapping_offset(start(1) * x.dtype().size() as isize);
            (from.cast_const(), out.ptr().wrapping_offset(start(0) * out.dtype().size() as isize))
        };
        let steps = if reverse { steps.map(|s| -s) } else { steps };
        let together = range.len() / TOGETHER * TOGETHER;
        for line in (range.start..range.start + together).step_by(TOGETHER) {
            // SAFETY: the lines lie in both views and no other task writes them.
            unsafe { running::<TOGETHER>(dtype, std::array::from_fn(|i| starts(line + i)), steps, n) }
        }
        for line in range.start + together..range.end {
            // SAFETY: as above.
            unsafe { running::<1>(dtype, [starts(line)], steps, n) }
        }
    });
    Ok(())
}

/// Lines that are summed side by side: each waits for its own additions only. More of a large power of two would share a
/// cache set.
const TOGETHER: usize = 4;

/// # Safety
/// `n` elements with the given steps are valid from each start: of `dtype` to read, of it or i64 to write.
unsafe fn running<const L: usize>(dtype: Native, starts: [(*const u8, *mut u8); L], steps: [isize; 2], n: usize) {
    // SAFETY: by the contract of this function.
    unsafe {
        if dtype.is_float() {
            with_float!(dtype, T => running_of(starts, steps, n, 0f64, |sum, x: T| sum + x.to_f64(), T::from_f64))
        } else {
            with_integer!(dtype, T => running_of(starts, steps, n, 0i64, |sum, x: T| sum.wrapping_add(x.to_i64()), |sum| sum))
        }
    }
}

/// # Safety
/// `n` elements with the given steps are valid from each start.
unsafe fn running_of<S: Copy, A: Copy, D, const L: usize>(
    starts: [(*const u8, *mut u8); L],
    steps: [isize; 2],
    n: usize,
    zero: A,
    add: impl Fn(A, S) -> A,
    give: impl Fn(A) -> D,
) {
    let mut sums = [zero; L];
    for i in 0..n as isize {
        for (sum, (from, to)) in sums.iter_mut().zip(&starts) {
            let (from, to) =
                (from.cast::<S>().wrapping_offset(i * steps[0]), to.cast::<D>().wrapping_offset(i * steps[1]));
            // SAFETY: by the contract of this function.
            unsafe {
                *sum = add(*sum, from.read());
                to.write(give(*sum));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The partial results of a tensor that is expanded to any number of elements take bounded memory.
    #[test]
    fn partial_results_are_bounded() {
        for tile in [1, TILE] {
            for bits in 0..62 {
                let outputs = 1usize << (bits % 20);
                let (piece, pieces) = cut(1 << bits, tile, outputs);
                assert!(pieces * outputs <= MOST_PARTIALS.max(outputs), "2^{bits} elements: {pieces} pieces");
                assert!(piece as u128 * pieces as u128 >= 1 << bits);
                // Tensors whose elements all lie in memory are cut as ever.
                if bits + bits % 20 < 34 {
                    assert_eq!(piece, (2 * GRAIN / tile).max(ROWS), "2^{bits} elements");
                }
            }
        }
    }
}
