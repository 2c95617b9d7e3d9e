//! Transforms of all lines of a tensor along a dim, times a factor. Lines that lie one after the other are read and written where they
//! are; complex ones that lie side by side are transformed together, one in each lane of vectors, where the CPU and the length allow it;
//! others are copied into contiguous memory, several at a time, and from there to the output. Each line is computed by one thread, and its
//! bits do not depend on the others: of lines along the last dim at all, of those along other dims as long as there are enough to fill
//! half a vector. Fewer, or lines of a dim behind which all others have one element, are transformed as those along the last dim are.

use crate::halves::{from_spectrum, to_spectrum};
use crate::plans::{self, Real};
use crate::vectors::{Columns, parts, parts_mut};
use oflow::kernels::cpu::strided::prefetch;
use oflow::kernels::parallel::parallel_for;
use oflow::kernels::{Element, View};
use oflow::prelude::*;
use rustfft::num_complex::Complex as Z;
use std::ops::{Mul, Range};
use std::sync::{Mutex, PoisonError};

/// Lines of a view along a dim, numbered in row-major order of the other dims.
struct Lines<'a> {
    view: &'a View,
    dim: usize,
    /// Whether they lie one after the other.
    dense: bool,
}

impl<'a> Lines<'a> {
    /// # Errors
    /// The elements have another type.
    fn new<E: Element>(view: &'a View, dim: usize) -> Result<Lines<'a>> {
        if view.dtype() != E::DTYPE || dim >= view.rank() {
            return Err(Error::dtype(format!("a kernel of {} was given {}", E::DTYPE, view.dtype())));
        }
        let dense = view.is_contiguous() && view.dims()[dim + 1..].iter().all(|n| *n == 1);
        Ok(Lines { view, dim, dense })
    }

    fn count(&self) -> usize {
        (0..self.view.rank()).filter(|d| *d != self.dim).map(|d| self.view.dims()[d]).product()
    }

    fn len(&self) -> usize {
        self.view.dims()[self.dim]
    }

    /// The offset of the first element of line `i`, and from one element to the next.
    fn place(&self, mut i: usize) -> (isize, isize) {
        let mut at = 0;
        for d in (0..self.view.rank()).rev().filter(|d| *d != self.dim) {
            let n = self.view.dims()[d];
            at += (i % n) as isize * self.view.strides()[d];
            i /= n;
        }
        (at, self.view.strides()[self.dim])
    }

    /// Calls `element(place in the view, index among the copied ones)` for all elements of some lines. Copies of two lines begin `pitch`
    /// apart, and those of two elements of a line are `stride` apart.
    #[inline(always)]
    fn visit<E>(&self, lines: Range<usize>, [pitch, stride]: [usize; 2], element: impl Fn(*mut E, usize)) {
        let (count, len, base) = (lines.len(), self.len(), self.view.ptr() as *mut E);
        let (first, step) = self.place(lines.start);
        // Elements of lines that lie side by side are visited in the order in which they lie. The next ones are too far for the CPU to
        // fetch them by itself.
        if step != 1 && lines.clone().enumerate().all(|(l, i)| self.place(i).0 == first + l as isize) {
            for k in 0..len {
                let row = base.wrapping_offset(first + k as isize * step);
                prefetch(row.wrapping_offset(ROWS_AHEAD * step), count, true);
                (0..count).for_each(|l| element(row.wrapping_add(l), l * pitch + k * stride));
            }
            return;
        }
        for (l, i) in lines.enumerate() {
            let line = base.wrapping_offset(self.place(i).0);
            match step {
                1 => (0..len).for_each(|k| element(line.wrapping_add(k), l * pitch + k * stride)),
                _ => (0..len).for_each(|k| element(line.wrapping_offset(k as isize * step), l * pitch + k * stride)),
            }
        }
    }

    /// An error of the program unless the copies of lines have room.
    fn check(&self, lines: &Range<usize>, [pitch, stride]: [usize; 2], room: usize) {
        let needed = (lines.len().max(1) - 1) * pitch + (self.len() - 1) * stride + 1;
        assert!(room >= needed && lines.end <= self.count(), "{lines:?} of {} need {needed}, not {room}", self.count());
    }

    fn read<E: Element>(&self, lines: Range<usize>, into: &mut [E], steps: [usize; 2]) {
        self.check(&lines, steps, into.len());
        let into = into.as_mut_ptr();
        // SAFETY: an element of the view, of type E (checked in `new`), live while the kernel runs, and one of the lines (checked above).
        self.visit(lines, steps, |from: *mut E, k| unsafe { into.add(k).write(from.read()) });
    }

    /// # Safety
    /// The view is an output of the call, and no other thread touches these lines.
    unsafe fn write<E: Element>(&self, lines: Range<usize>, from: &[E], steps: [usize; 2]) {
        self.check(&lines, steps, from.len());
        let from = from.as_ptr();
        // SAFETY: an element of the view, of type E (checked in `new`), live while the kernel runs, exclusive by the contract, and one
        // of the lines (checked above).
        self.visit(lines, steps, |to: *mut E, k| unsafe { to.write(from.add(k).read()) });
    }

    /// The elements of lines that lie one after the other.
    fn slice<E: Element>(&self, lines: Range<usize>) -> &'a [E] {
        assert!(self.dense && lines.end <= self.count());
        let first = self.view.ptr() as *const E;
        // SAFETY: elements of the view, of type E (checked in `new`), live while the kernel runs, which writes no input.
        unsafe { std::slice::from_raw_parts(first.add(lines.start * self.len()), lines.len() * self.len()) }
    }

    /// As [`slice`](Self::slice), to be written.
    ///
    /// # Safety
    /// The view is an output of the call, and no other thread touches these lines.
    unsafe fn slice_mut<E: Element>(&self, lines: Range<usize>) -> &'a mut [E] {
        assert!(self.dense && lines.end <= self.count());
        let first = self.view.ptr() as *mut E;
        // SAFETY: elements of the view, of type E (checked in `new`), live while the kernel runs, exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut(first.add(lines.start * self.len()), lines.len() * self.len()) }
    }
}

/// Elements that one task transforms at least.
const GRAIN: usize = 1 << 14;
/// Elements of the lines that are worked on together, which stay in the second-level cache.
const TOGETHER: usize = 1 << 14;
/// Lines that are copied together at least: elements of lines side by side share cache lines.
const SIDE_BY_SIDE: usize = 32;
/// Elements of the lines that are copied together at most, unless one line has more.
const MOST_COPIED: usize = 1 << 19;
/// How many elements of a line before it is needed an element is fetched, with those of the lines beside it.
const ROWS_AHEAD: isize = 12;
/// Elements between copied lines: those of lengths that are powers of two would share the places of a cache.
const GAP: usize = 8;

/// Lines of `len` elements that are worked on together.
fn together(len: usize, dense: bool) -> usize {
    match dense {
        true => (TOGETHER / len).max(1),
        false => (TOGETHER / len).max(SIDE_BY_SIDE.min(MOST_COPIED / len)).max(1),
    }
}

/// Multiplies by a factor.
fn scale<E: Copy + Mul<T, Output = E>, T: Real>(x: &mut [E], factor: T) {
    if factor != T::one() {
        x.iter_mut().for_each(|x| *x = *x * factor);
    }
}

/// Zeros, or an error where there is no memory: a view of few numbers may have lines longer than the memory.
fn zeros<T: Clone + Default>(n: usize) -> Result<Vec<T>> {
    let mut v: Vec<T> = vec![];
    v.try_reserve_exact(n).map_err(|_| {
        Error::memory(format!("out of memory: one line needs {} bytes", n.saturating_mul(size_of::<T>())))
    })?;
    v.resize(n, T::default());
    Ok(v)
}

/// Calls `f(workspace, lines)` for all lines, `together` at a time, on the threads of the rank. The first error is returned.
fn each<W>(
    (count, len, together): (usize, usize, usize),
    make: impl Fn() -> Result<W> + Sync,
    f: impl Fn(&mut W, Range<usize>) -> Result<()> + Sync,
) -> Result<()> {
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let grain = (GRAIN / len.saturating_mul(together).max(1)).max(1);
    parallel_for(count.div_ceil(together), grain, &|range| {
        let run = || {
            let mut w = make()?;
            range.clone().try_for_each(|i| f(&mut w, i * together..((i + 1) * together).min(count)))
        };
        if let Err(e) = run() {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// `y[k] = factor · Σ x[j] exp(∓2πi jk / n)`; the sign is + if `inverse`.
pub(crate) fn complex<T: Real>(x: &View, y: &View, dim: usize, inverse: bool, factor: f64) -> Result<()>
where
    Z<T>: Element,
{
    let (from, to) = (Lines::new::<Z<T>>(x, dim)?, Lines::new::<Z<T>>(y, dim)?);
    let (n, count) = (from.len(), to.count());
    if n == 0 || count == 0 {
        return Ok(());
    }
    let (plan, factor) = (plans::complex::<T>(n, inverse), real::<T>(factor));
    if let Some(columns) = plan.columns.as_ref().filter(|_| !to.dense && count >= T::LANES / 2) {
        return match side_by_side(&from, &to) {
            Some(width) if width >= T::LANES => transform_columns(columns, (&from, &to), width, factor),
            _ => transform_gathered(columns, (&from, &to), factor),
        };
    }
    let plan = &plan.fft;
    let lines = together(n, to.dense).min(count);
    let pitch = if to.dense { n } else { n + GAP };
    let scratch = plan.get_inplace_scratch_len().max(plan.get_immutable_scratch_len());
    let copied = if to.dense { 0 } else { lines * pitch };
    let make = || Ok((zeros::<Z<T>>(copied)?, zeros::<Z<T>>(scratch)?));
    each((count, n, lines), make, |(copies, scratch), lines| {
        let made = match to.dense {
            // SAFETY: the output of the call; each line has one task.
            true => unsafe { to.slice_mut::<Z<T>>(lines.clone()) },
            false => &mut copies[..lines.len() * pitch],
        };
        match (from.dense, to.dense) {
            (true, true) => plan.process_immutable_with_scratch(from.slice(lines.clone()), made, scratch),
            (true, false) => {
                for (x, y) in from.slice(lines.clone()).chunks_exact(n).zip(made.chunks_exact_mut(pitch)) {
                    plan.process_immutable_with_scratch(x, &mut y[..n], scratch);
                }
            }
            (false, _) => {
                from.read(lines.clone(), made, [pitch, 1]);
                made.chunks_exact_mut(pitch).for_each(|y| plan.process_with_scratch(&mut y[..n], scratch));
            }
        }
        scale(made, factor);
        if !to.dense {
            // SAFETY: as above.
            unsafe { to.write(lines, made, [pitch, 1]) };
        }
        Ok(())
    })
}

/// How many lines lie side by side in both views, each time.
fn side_by_side(from: &Lines<'_>, to: &Lines<'_>) -> Option<usize> {
    let inner = (0..to.view.rank()).rev().find(|d| *d != to.dim && to.view.dims()[*d] > 1)?;
    let steps = [from, to].map(|lines| lines.view.strides()[inner]);
    (steps == [1, 1]).then(|| to.view.dims()[inner])
}

/// Transforms lines of which `width` lie side by side each time.
fn transform_columns<T: Real>(
    plan: &Columns<T>,
    (from, to): (&Lines<'_>, &Lines<'_>),
    width: usize,
    factor: T,
) -> Result<()> {
    let across = width.div_ceil(T::LANES);
    let size = (to.count() / width * across, to.len() * T::LANES, 1);
    each(
        size,
        || Ok(plan.room()),
        |room, group| {
            let column = group.start % across * T::LANES;
            let lanes = T::LANES.min(width - column);
            let line = group.start / across * width + column;
            let ((x, step_x), (y, step_y)) = (from.place(line), to.place(line));
            let read = |k: usize| {
                let row = (from.view.ptr() as *const Z<T>).wrapping_offset(x + k as isize * step_x);
                prefetch(row.wrapping_offset(ROWS_AHEAD * step_x), lanes, true);
                // SAFETY: number k of lines that lie side by side, elements of the view, of type Z<T> (checked in `Lines::new`), live while
                // the kernel runs, which writes no input.
                parts(unsafe { std::slice::from_raw_parts(row, lanes) })
            };
            let write = |k: usize| {
                let row = (to.view.ptr() as *mut Z<T>).wrapping_offset(y + k as isize * step_y);
                prefetch(row.wrapping_offset(ROWS_AHEAD * step_y), lanes, true);
                // SAFETY: as above, of the output of the call; each line has one task.
                parts_mut(unsafe { std::slice::from_raw_parts_mut(row, lanes) })
            };
            plan.run(room, factor, read, write);
            Ok(())
        },
    )
}

/// Transforms lines that are copied so that they lie side by side.
fn transform_gathered<T: Real>(plan: &Columns<T>, (from, to): (&Lines<'_>, &Lines<'_>), factor: T) -> Result<()>
where
    Z<T>: Element,
{
    let (n, steps) = (to.len(), [1, T::LANES]);
    let make = || Ok((plan.room(), zeros::<Z<T>>(n * T::LANES)?, zeros::<Z<T>>(n * T::LANES)?));
    each((to.count(), n, T::LANES), make, |(room, given, made), lines| {
        from.read(lines.clone(), given, steps);
        let rows = made.as_mut_ptr();
        let read = |k: usize| parts(&given[k * T::LANES..][..T::LANES]);
        // SAFETY: a row of `made` for each number, which is asked for once.
        let write = |k: usize| parts_mut(unsafe { std::slice::from_raw_parts_mut(rows.add(k * T::LANES), T::LANES) });
        plan.run(room, factor, read, write);
        // SAFETY: the output of the call; each line has one task.
        unsafe { to.write(lines, made, steps) };
        Ok(())
    })
}

/// A factor in the type of a transform.
fn real<T: Real>(factor: f64) -> T {
    T::from_f64(factor).unwrap_or_else(T::one)
}

/// Real numbers as complex ones, each a pair of these.
fn pairs<T: Real>(x: &[T]) -> &[Z<T>] {
    // SAFETY: a complex number is its two parts, one after the other, and aligned as they are.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len() / 2) }
}

/// As [`pairs`], to be written.
fn pairs_mut<T: Real>(x: &mut [T]) -> &mut [Z<T>] {
    // SAFETY: as in `pairs`.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len() / 2) }
}

/// The first n/2 + 1 of `y[k] = factor · Σ x[j] exp(-2πi jk / n)`, for real x.
pub(crate) fn from_real<T: Real>(x: &View, y: &View, dim: usize, factor: f64) -> Result<()>
where
    Z<T>: Element,
{
    let (from, to) = (Lines::new::<T>(x, dim)?, Lines::new::<Z<T>>(y, dim)?);
    let (n, m, count) = (from.len(), to.len(), to.count());
    if n == 0 || count == 0 {
        return Ok(());
    }
    let (plan, factor, even) = (plans::real::<T>(n, false), real::<T>(factor), n.is_multiple_of(2));
    let lines = together(n, from.dense && to.dense).min(count);
    let (pitch, gap) = (n + GAP, if to.dense { m } else { m + GAP });
    let read = if from.dense { 0 } else { lines * pitch };
    let copied = if to.dense { 0 } else { lines * gap };
    let scratch = plan.fft.get_inplace_scratch_len().max(plan.fft.get_immutable_scratch_len());
    let whole = if even { 0 } else { n };
    let make = || Ok((zeros::<T>(read)?, zeros::<Z<T>>(copied)?, zeros::<Z<T>>(whole)?, zeros::<Z<T>>(scratch)?));
    each((count, n, lines), make, |(reals, copies, whole, scratch), lines| {
        let (given, step) = match from.dense {
            true => (from.slice::<T>(lines.clone()), n),
            false => {
                from.read(lines.clone(), reals, [pitch, 1]);
                (&reals[..lines.len() * pitch], pitch)
            }
        };
        let made = match to.dense {
            // SAFETY: the output of the call; each line has one task.
            true => unsafe { to.slice_mut::<Z<T>>(lines.clone()) },
            false => &mut copies[..lines.len() * gap],
        };
        for (x, y) in given.chunks_exact(step).zip(made.chunks_exact_mut(gap)) {
            if even {
                plan.fft.process_immutable_with_scratch(pairs(&x[..n]), &mut y[..n / 2], scratch);
                to_spectrum(&mut y[..m], &plan.roots, factor, T::all_of_spectrum);
            } else {
                whole.iter_mut().zip(x).for_each(|(z, x)| *z = Z { re: *x, im: T::zero() });
                plan.fft.process_with_scratch(whole, scratch);
                y[..m].iter_mut().zip(&*whole).for_each(|(y, z)| *y = *z * factor);
            }
        }
        if !to.dense {
            // SAFETY: as above.
            unsafe { to.write(lines, made, [gap, 1]) };
        }
        Ok(())
    })
}

/// `x[j] = factor · Σ y[k] exp(2πi jk / n)` over all n, of which y has the first n/2 + 1 and the others are conjugates of these. The
/// imaginary parts of numbers that are their own conjugates are not read.
pub(crate) fn to_real<T: Real>(y: &View, x: &View, dim: usize, factor: f64) -> Result<()>
where
    Z<T>: Element,
{
    let (from, to) = (Lines::new::<Z<T>>(y, dim)?, Lines::new::<T>(x, dim)?);
    let (m, n, count) = (from.len(), to.len(), to.count());
    if n == 0 || count == 0 {
        return Ok(());
    }
    if m != n / 2 + 1 {
        return Err(Error::shape(format!("{m} numbers are not the half of a transform of {n}")));
    }
    let (plan, factor, even) = (plans::real::<T>(n, true), real::<T>(factor), n.is_multiple_of(2));
    let lines = together(n, from.dense && to.dense).min(count);
    let (pitch, gap) = (m + GAP, if to.dense { n } else { n + GAP });
    let copied = if to.dense { 0 } else { lines * gap };
    let scratch = plan.fft.get_inplace_scratch_len().max(plan.fft.get_immutable_scratch_len());
    let whole = if even { 0 } else { n };
    let given = if from.dense { m } else { lines * pitch };
    let make = || Ok((zeros::<Z<T>>(given)?, zeros::<T>(copied)?, zeros::<Z<T>>(whole)?, zeros::<Z<T>>(scratch)?));
    each((count, n, lines), make, |(given, copies, whole, scratch), lines| {
        if !from.dense {
            from.read(lines.clone(), given, [pitch, 1]);
        }
        let made = match to.dense {
            // SAFETY: the output of the call; each line has one task.
            true => unsafe { to.slice_mut::<T>(lines.clone()) },
            false => &mut copies[..lines.len() * gap],
        };
        for (i, x) in lines.clone().zip(made.chunks_exact_mut(gap)) {
            let y = match from.dense {
                true => {
                    given[..m].copy_from_slice(from.slice(i..i + 1));
                    &mut given[..m]
                }
                false => &mut given[(i - lines.start) * pitch..][..m],
            };
            if even {
                from_spectrum(&mut y[..m], &plan.roots, factor, T::all_of_pairs);
                plan.fft.process_immutable_with_scratch(&y[..n / 2], pairs_mut(&mut x[..n]), scratch);
            } else {
                whole[0] = Z { re: y[0].re, im: T::zero() };
                for k in 1..m {
                    (whole[k], whole[n - k]) = (y[k], y[k].conj());
                }
                plan.fft.process_with_scratch(whole, scratch);
                x[..n].iter_mut().zip(&*whole).for_each(|(x, z)| *x = z.re * factor);
            }
        }
        if !to.dense {
            // SAFETY: as above.
            unsafe { to.write(lines, made, [gap, 1]) };
        }
        Ok(())
    })
}
