//! Transforms of all lines of a tensor along a dim. A line is copied into contiguous memory, transformed there, and written to the output.
//! Each is computed by one thread, so its bits do not depend on how many there are.

use crate::plans::{self, Real};
use oflow::kernels::parallel::parallel_for;
use oflow::kernels::{Element, View};
use oflow::prelude::*;
use rustfft::num_complex::Complex as Z;
use std::sync::{Mutex, PoisonError};

/// Lines of a view along a dim, numbered in row-major order of the other dims.
struct Lines<'a> {
    view: &'a View,
    dim: usize,
}

impl<'a> Lines<'a> {
    /// # Errors
    /// The elements have another type.
    fn new<E: Element>(view: &'a View, dim: usize) -> Result<Lines<'a>> {
        match view.dtype() == E::DTYPE && dim < view.rank() {
            true => Ok(Lines { view, dim }),
            false => Err(Error::dtype(format!("a kernel of {} was given {}", E::DTYPE, view.dtype()))),
        }
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

    fn read<E: Element>(&self, i: usize, into: &mut [E]) {
        let ((at, step), first) = (self.place(i), self.view.ptr() as *const E);
        for (k, x) in into.iter_mut().enumerate() {
            // SAFETY: an element of the view, of type E (checked in `new`), live while the kernel runs.
            *x = unsafe { first.offset(at + k as isize * step).read() };
        }
    }

    /// # Safety
    /// The view is an output of the call, and no other thread touches line `i`.
    unsafe fn write<E: Element>(&self, i: usize, from: &[E]) {
        let ((at, step), first) = (self.place(i), self.view.ptr() as *mut E);
        for (k, x) in from.iter().enumerate() {
            // SAFETY: an element of the view, of type E (checked in `new`), live while the kernel runs, exclusive by the contract.
            unsafe { first.offset(at + k as isize * step).write(*x) };
        }
    }
}

/// Elements that one task transforms at least.
const GRAIN: usize = 1 << 14;

/// Zeros, or an error where there is no memory: a view of few numbers may have lines longer than the memory.
fn zeros<T: Clone + Default>(n: usize) -> Result<Vec<T>> {
    let mut v: Vec<T> = vec![];
    v.try_reserve_exact(n).map_err(|_| {
        Error::memory(format!("out of memory: one line needs {} bytes", n.saturating_mul(size_of::<T>())))
    })?;
    v.resize(n, T::default());
    Ok(v)
}

/// Calls `f(workspace, line)` for every line, on the threads of the rank. The first error is returned.
fn each<W>(
    count: usize,
    len: usize,
    make: impl Fn() -> Result<W> + Sync,
    f: impl Fn(&mut W, usize) -> Result<()> + Sync,
) -> Result<()> {
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    parallel_for(count, (GRAIN / len.max(1)).max(1), &|range| {
        let run = || {
            let mut w = make()?;
            range.clone().try_for_each(|i| f(&mut w, i))
        };
        if let Err(e) = run() {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// `y[k] = Σ x[j] exp(∓2πi jk / n)`; the sign is + if `inverse`.
pub(crate) fn complex<T: Real>(x: &View, y: &View, dim: usize, inverse: bool) -> Result<()>
where
    Z<T>: Element,
{
    let (from, to) = (Lines::new::<Z<T>>(x, dim)?, Lines::new::<Z<T>>(y, dim)?);
    let n = from.len();
    if n == 0 || to.count() == 0 {
        return Ok(());
    }
    let plan = plans::complex::<T>(n, inverse);
    let make = || Ok((zeros::<Z<T>>(n)?, zeros::<Z<T>>(plan.get_inplace_scratch_len())?));
    each(to.count(), n, make, |(line, scratch), i| {
        from.read(i, line);
        plan.process_with_scratch(line, scratch);
        // SAFETY: the output of the call; each line has one task.
        unsafe { to.write(i, line) };
        Ok(())
    })
}

/// The first n/2 + 1 of `y[k] = Σ x[j] exp(-2πi jk / n)`, for real x.
pub(crate) fn from_real<T: Real>(x: &View, y: &View, dim: usize) -> Result<()>
where
    Z<T>: Element,
{
    let (from, to) = (Lines::new::<T>(x, dim)?, Lines::new::<Z<T>>(y, dim)?);
    let n = from.len();
    if n == 0 || to.count() == 0 {
        return Ok(());
    }
    let plan = plans::from_real::<T>(n);
    let make = || Ok((zeros::<T>(n)?, zeros::<Z<T>>(n / 2 + 1)?, zeros::<Z<T>>(plan.get_scratch_len())?));
    each(to.count(), n, make, |(line, made, scratch), i| {
        from.read(i, line);
        plan.process_with_scratch(line, made, scratch).map_err(|e| Error::argument(e.to_string()))?;
        // SAFETY: the output of the call; each line has one task.
        unsafe { to.write(i, made) };
        Ok(())
    })
}

/// `x[j] = Σ y[k] exp(2πi jk / n)` over all n, of which y has the first n/2 + 1 and the others are conjugates of these. The imaginary
/// parts of numbers that are their own conjugates are not read.
pub(crate) fn to_real<T: Real>(y: &View, x: &View, dim: usize) -> Result<()>
where
    Z<T>: Element,
{
    let (from, to) = (Lines::new::<Z<T>>(y, dim)?, Lines::new::<T>(x, dim)?);
    let n = to.len();
    if n == 0 || to.count() == 0 {
        return Ok(());
    }
    if from.len() != n / 2 + 1 {
        return Err(Error::shape(format!("{} numbers are not the half of a transform of {n}", from.len())));
    }
    let plan = plans::to_real::<T>(n);
    let make = || Ok((zeros::<Z<T>>(n / 2 + 1)?, zeros::<T>(n)?, zeros::<Z<T>>(plan.get_scratch_len())?));
    each(to.count(), n, make, |(line, made, scratch), i| {
        from.read(i, line);
        line[0].im = T::zero();
        if n.is_multiple_of(2) {
            line[n / 2].im = T::zero();
        }
        plan.process_with_scratch(line, made, scratch).map_err(|e| Error::argument(e.to_string()))?;
        // SAFETY: the output of the call; each line has one task.
        unsafe { to.write(i, made) };
        Ok(())
    })
}
