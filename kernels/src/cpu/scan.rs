//! Scans along a dim: products, extremes and their places, logarithms of sums of exponentials, linear recurrences. All
//! tensors are contiguous. Floats are accumulated in f64, integers in i64; running sums are in [`super::reduce`].

use super::lane::{Lane, Native, native, with_float, with_integer, with_lane};
use super::take::around;
use crate::parallel::{GRAIN, parallel_for};
use crate::vmath;
use crate::{Builtin, DType, KernelError, Result, View};
use multiversion::multiversion;

/// Lines along a dim: `outer` blocks of `n` rows of `inner` elements.
#[derive(Clone, Copy)]
struct Along {
    outer: usize,
    n: usize,
    inner: usize,
    reverse: bool,
}

/// Lines whose elements are neighbours that are worked on side by side: each waits for its own operations only.
const TOGETHER: usize = 4;
/// Neighbouring columns that are worked on side by side.
const COLUMNS: usize = 32;

impl Along {
    /// For views of the same dims.
    fn of(what: &str, views: &[&View], dim: usize, reverse: bool) -> Result<Along> {
        let dims = views[0].dims();
        if dim >= dims.len() || !views.iter().all(|v| v.dims() == dims && v.is_contiguous()) {
            let all: Vec<_> = views.iter().map(|v| v.dims()).collect();
            return Err(KernelError::new(format!("{what} along {dim} of {all:?}: they differ or are not contiguous")));
        }
        let (outer, inner) = around(dims, dim);
        Ok(Along { outer, n: dims[dim], inner, reverse })
    }

    /// Runs `step(state, place, i)` for all elements of each line in order, from `start` on. The element is number `i` of those of its
    /// line; `place` counts elements of the tensor.
    fn each<A: Copy + Sync>(&self, start: A, step: impl Fn(&mut A, usize, usize) + Copy + Sync) {
        let Along { outer, n, inner, reverse } = *self;
        if n == 0 {
            return;
        }
        // Elements from one to the next, and how many a line's first element lies behind its lowest.
        let (stride, start_at) = if reverse { (inner.wrapping_neg(), (n - 1) * inner) } else { (inner, 0) };
        if inner == 1 {
            parallel_for(outer, (GRAIN / n).max(1), &|lines| {
                // A copy: what a step writes could be what the closure holds, for all that the compiler knows.
                let own = step;
                let together = lines.len() / TOGETHER * TOGETHER;
                for line in (lines.start..lines.start + together).step_by(TOGETHER) {
                    let mut states = [start; TOGETHER];
                    let mut places: [usize; TOGETHER] = std::array::from_fn(|l| (line + l) * n + start_at);
                    for i in 0..n {
                        for (state, place) in states.iter_mut().zip(&mut places) {
                            own(state, *place, i);
                            *place = place.wrapping_add(stride);
                        }
                    }
                }
                for line in lines.start + together..lines.end {
                    let (mut state, mut place) = (start, line * n + start_at);
                    for i in 0..n {
                        own(&mut state, place, i);
                        place = place.wrapping_add(stride);
                    }
                }
            });
            return;
        }
        let parts = inner.div_ceil(COLUMNS);
        parallel_for(outer * parts, (GRAIN / (n * COLUMNS)).max(1), &|tasks| {
            let own = step;
            for task in tasks {
                let (block, first) = (task / parts, task % parts * COLUMNS);
                let columns = COLUMNS.min(inner - first);
                let mut states = [start; COLUMNS];
                let mut place = block * n * inner + first + start_at;
                for i in 0..n {
                    for (c, state) in states[..columns].iter_mut().enumerate() {
                        own(state, place + c, i);
                    }
                    place = place.wrapping_add(stride);
                }
            }
        });
    }
}

/// An element of a view that other tasks may use, by its place in row-major order.
#[derive(Clone, Copy)]
struct At<T>(*mut T);

// SAFETY: made from a `View`, which promises that worker threads may use the memory.
unsafe impl<T> Send for At<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for At<T> {}

impl<T: Copy> At<T> {
    fn of(v: &View) -> At<T> {
        At(v.ptr().cast())
    }
    /// # Safety
    /// `place` is below the number of elements, and nobody writes the element meanwhile.
    #[inline(always)]
    unsafe fn get(&self, place: usize) -> T {
        // SAFETY: by the contract of this function.
        unsafe { self.0.wrapping_add(place).read() }
    }
    /// # Safety
    /// `place` is below the number of elements, and nobody else uses the element meanwhile.
    #[inline(always)]
    unsafe fn set(&self, place: usize, value: T) {
        // SAFETY: by the contract of this function.
        unsafe { self.0.wrapping_add(place).write(value) }
    }
}

fn typed(what: &str, v: &View, dtype: DType) -> Result<()> {
    match v.dtype() == dtype {
        true => Ok(()),
        false => Err(KernelError::new(format!("{what}: {} is not {dtype}", v.dtype()))),
    }
}

/// The dtype of running sums and products: that of a float, i64 for bools and integers.
///
/// # Errors
/// Where `out` has another.
pub(super) fn running_dtype(what: &str, x: &View, out: &View) -> Result<Native> {
    let from = native(x.dtype())?;
    let to = if from.is_float() { from } else { Native::I64 };
    match native(out.dtype())? == to {
        true => Ok(from),
        false => Err(KernelError::new(format!("{what} of {} is {}, not {}", x.dtype(), to.dtype(), out.dtype()))),
    }
}

/// Running products along `dim`, of a float in its dtype, of bools and integers in i64. Integers wrap.
///
/// # Errors
/// Where dims or the output's dtype differ, or a tensor is not contiguous.
pub fn cumprod(x: &View, out: &View, dim: usize) -> Result<()> {
    let along = Along::of("cumprod", &[out, x], dim, false)?;
    let dtype = running_dtype("cumprod", x, out)?;
    // SAFETY (both): `each` gives places of the tensors, each to one task.
    if dtype.is_float() {
        with_float!(dtype, T => {
            let (x, out) = (At::<T>::of(x), At::<T>::of(out));
            along.each(1f64, move |p, at, _| unsafe {
                *p *= x.get(at).to_f64();
                out.set(at, T::from_f64(*p));
            });
        });
    } else {
        with_integer!(dtype, T => {
            let (x, out) = (At::<T>::of(x), At::<i64>::of(out));
            along.each(1i64, move |p, at, _| unsafe {
                *p = p.wrapping_mul(x.get(at).to_i64());
                out.set(at, *p);
            });
        });
    }
    Ok(())
}

/// The largest element so far along `dim`, or with `least` the smallest, and its place in the line: of equal ones the last. From a NaN on
/// the result is NaN, each with its own place.
///
/// # Errors
/// Where dims differ, a tensor is not contiguous, or the places are not i64.
pub fn cumulative_extreme(x: &View, values: &View, indices: &View, dim: usize, least: bool) -> Result<()> {
    let along = Along::of("running extremes", &[values, x, indices], dim, false)?;
    typed("running extremes", values, x.dtype())?;
    typed("places of running extremes", indices, DType::I64)?;
    let to = At::<i64>::of(indices);
    let dtype = native(x.dtype())?;
    if along.inner == 1 && along.n > 0 {
        let (size, from, out) = (x.dtype().size(), At::<u8>::of(x), At::<u8>::of(values));
        parallel_for(along.outer, (GRAIN / along.n).max(1), &|lines| {
            let (from, out, to) = (from, out, to);
            for line in lines {
                let first = line * along.n;
                // SAFETY: the line lies in all tensors, and no other task writes it.
                unsafe {
                    let (from, out) = (from.0.wrapping_add(first * size), out.0.wrapping_add(first * size));
                    extreme_line(dtype, from, out, to.0.wrapping_add(first), along.n, least);
                }
            }
        });
        return Ok(());
    }
    with_lane!(dtype, T => {
        let (x, out) = (At::<T>::of(x), At::<T>::of(values));
        along.each((T::default(), 0), move |(best, at), place, i| {
            // SAFETY: `each` gives places of the tensors, each to one task.
            let new = unsafe { x.get(place) };
            if i == 0 || takes(new, *best, least) {
                (*best, *at) = (new, i as i64);
            }
            // SAFETY: as above.
            unsafe {
                out.set(place, *best);
                to.set(place, *at);
            }
        });
    });
    Ok(())
}

/// Whether a new element takes the place of the extreme so far: a NaN does.
#[inline(always)]
fn takes<T: Lane>(new: T, best: T, least: bool) -> bool {
    #[inline(always)]
    fn of<P: PartialOrd + Copy>(new: P, best: P, least: bool) -> bool {
        #[allow(clippy::eq_op)]
        let nan = new != new;
        nan | if least { new <= best } else { new >= best }
    }
    match T::DTYPE {
        Builtin::F64 => of(new.to_f64(), best.to_f64(), least),
        d if d.is_float() => of(new.to_f32(), best.to_f32(), least),
        _ => of(new.to_i64(), best.to_i64(), least),
    }
}

/// Elements of a line that are looked at together: in most of these none takes the place of the extreme before them.
const BLOCK: usize = 16;

/// The extremes along one line of neighbours, as of [`cumulative_extreme`].
///
/// # Safety
/// `n` elements of the dtype are readable from `x` on and writable from `out` on, and as many places from `to` on.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn extreme_line(dtype: Native, x: *const u8, out: *mut u8, to: *mut i64, n: usize, least: bool) {
    // SAFETY: by the contract of this function.
    unsafe {
        with_lane!(dtype, T => match least {
            true => extremes::<T>(x.cast(), out.cast(), to, n, true),
            false => extremes::<T>(x.cast(), out.cast(), to, n, false),
        })
    }
}

/// # Safety
/// As [`extreme_line`], with a line of one element at least.
#[inline(always)]
unsafe fn extremes<T: Lane>(x: *const T, out: *mut T, to: *mut i64, n: usize, least: bool) {
    // SAFETY: all places are below `n`; reads and writes of blocks ask for no alignment.
    unsafe {
        let (mut best, mut at) = (x.read(), 0);
        for first in (0..n).step_by(BLOCK) {
            let len = BLOCK.min(n - first);
            if len == BLOCK {
                let block = x.add(first).cast::<[T; BLOCK]>().read_unaligned();
                let mut taken = [0u32; BLOCK];
                for i in 0..BLOCK {
                    taken[i] = takes(block[i], best, least) as u32;
                }
                let mut any = 0;
                for t in taken {
                    any |= t;
                }
                if any == 0 {
                    out.add(first).cast::<[T; BLOCK]>().write_unaligned([best; BLOCK]);
                    to.add(first).cast::<[i64; BLOCK]>().write_unaligned([at; BLOCK]);
                    continue;
                }
            }
            for i in first..first + len {
                let new = x.add(i).read();
                if takes(new, best, least) {
                    (best, at) = (new, i as i64);
                }
                out.add(i).write(best);
                to.add(i).write(at);
            }
        }
    }
}

/// Adds the exponential of a number to a sum under the largest one so far, and gives the logarithm of all.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn add_exponential(top: &mut f64, sum: &mut f64, new: f64) -> f64 {
    let e = vmath::Real::exp(-(*top - new).abs());
    let rises = new > *top || new.is_nan();
    let under = if rises { *sum * e + 1.0 } else { *sum + e };
    *top = if rises { new } else { *top };
    // Where the largest is infinite it is the result.
    *sum = if top.is_finite() { under } else { f64::from(u8::from(*top > 0.0)) };
    if top.is_finite() { *top + vmath::Real::log(*sum) } else { *top }
}

/// The logarithm of the running sum of exponentials along `dim`.
///
/// # Errors
/// Where dims or dtypes differ, a tensor is not contiguous, or it is of no float dtype.
pub fn logcumsumexp(x: &View, out: &View, dim: usize) -> Result<()> {
    let along = Along::of("logcumsumexp", &[out, x], dim, false)?;
    typed("logcumsumexp", out, x.dtype())?;
    let dtype = floats(native(x.dtype())?)?;
    with_float!(dtype, T => {
        let (x, out) = (At::<T>::of(x), At::<T>::of(out));
        // The largest element and the sum of exponentials under it.
        along.each((f64::NEG_INFINITY, 0f64), move |(top, sum), at, _| {
            // SAFETY: `each` gives places of the tensors, each to one task.
            let new = unsafe { x.get(at) }.to_f64();
            let y = add_exponential(top, sum, new);
            // SAFETY: as above.
            unsafe { out.set(at, T::from_f64(y)) };
        });
    });
    Ok(())
}

/// `r[i] = b[i] + a[i] r[i - 1]` along `dim`, with `reverse` from its end. What stands before the first element is nothing, also where
/// `a` is infinite.
///
/// # Errors
/// Where dims or dtypes differ, a tensor is not contiguous, or it is of no float dtype.
pub fn linear_scan(a: &View, b: &View, out: &View, dim: usize, reverse: bool) -> Result<()> {
    let along = Along::of("linear_scan", &[out, a, b], dim, reverse)?;
    typed("linear_scan", a, out.dtype())?;
    typed("linear_scan", b, out.dtype())?;
    let dtype = floats(native(out.dtype())?)?;
    with_float!(dtype, T => {
        let (a, b, out) = (At::<T>::of(a), At::<T>::of(b), At::<T>::of(out));
        // SAFETY: `each` gives places of the tensors, each to one task.
        along.each(0f64, move |r, at, i| unsafe {
            let own = b.get(at).to_f64();
            *r = if i == 0 { own } else { own + a.get(at).to_f64() * *r };
            out.set(at, T::from_f64(*r));
        });
    });
    Ok(())
}

fn floats(dtype: Native) -> Result<Native> {
    match dtype.is_float() {
        true => Ok(dtype),
        false => Err(KernelError::new(format!("{} is not a float dtype", dtype.dtype()))),
    }
}
