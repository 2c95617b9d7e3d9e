//! Combining contributions that lie as raw bytes, as communication delivers them: any alignment, any dtype.

use super::lane::{Lane, Native, with_float, with_reduced};
use super::reduce::Reduce;
use crate::vmath::Real;
use crate::{Builtin, DType, DTypeKind, KernelError, ReduceOp, Result};
use multiversion::multiversion;

impl From<ReduceOp> for Reduce {
    fn from(op: ReduceOp) -> Reduce {
        match op {
            ReduceOp::Sum => Reduce::Sum,
            ReduceOp::Max => Reduce::Max,
            ReduceOp::Min => Reduce::Min,
        }
    }
}

/// `dst = dst op src`, elementwise.
///
/// # Errors
/// Where the lengths differ or are not whole elements, or the dtype is registered or an 8-bit float.
pub fn accumulate(dst: &mut [u8], src: &[u8], dtype: DType, op: ReduceOp) -> Result<()> {
    reduce_in_place(dst, 0, &[src], dtype, op)
}

/// As [`reduce_slices`] of `others` with `dst` itself between them, at position `at`.
///
/// # Errors
/// Where the lengths differ or are not whole elements, or the dtype is registered or an 8-bit float.
///
/// # Panics
/// Where `at` is beyond the others.
pub fn reduce_in_place(dst: &mut [u8], at: usize, others: &[&[u8]], dtype: DType, op: ReduceOp) -> Result<()> {
    let dtype = check(dst, others, dtype, op)?;
    let mut pointers: smallvec::SmallVec<[*const u8; 16]> = others.iter().map(|s| s.as_ptr()).collect();
    let p = dst.as_mut_ptr();
    pointers.insert(at, p);
    // SAFETY: the lengths are checked; blocks are read before they are written, so `dst` may be a source.
    unsafe { combine(op, dtype, p, dst.len(), &pointers) };
    Ok(())
}

/// `dst = srcs[0] op srcs[1] op …`, elementwise and in this order; without sources, the identity. Halves are combined in
/// f32 and rounded once.
///
/// # Errors
/// Where the lengths differ or are not whole elements, or the dtype is registered or an 8-bit float.
pub fn reduce_slices(dst: &mut [u8], srcs: &[&[u8]], dtype: DType, op: ReduceOp) -> Result<()> {
    let known = check(dst, srcs, dtype, op)?;
    if srcs.is_empty() {
        return fill_identity(dst, dtype, op);
    }
    let pointers: smallvec::SmallVec<[*const u8; 16]> = srcs.iter().map(|s| s.as_ptr()).collect();
    // SAFETY: the lengths are checked and the borrows keep `dst` apart from the sources.
    unsafe { combine(op, known, dst.as_mut_ptr(), dst.len(), &pointers) };
    Ok(())
}

/// Sets every element to the op's neutral element: 0, the dtype's lowest or its highest value.
///
/// # Errors
/// Where the length is not whole elements, or the dtype is registered or an 8-bit float.
pub fn fill_identity(dst: &mut [u8], dtype: DType, op: ReduceOp) -> Result<()> {
    let dtype = check(dst, &[], dtype, op)?;
    let one = dtype.encode(Reduce::from(op).identity(dtype));
    // Doubles what is there already, at the speed of copies: element by element it was a tenth of it.
    let mut done = dtype.size().min(dst.len());
    dst[..done].copy_from_slice(&one[..done]);
    while done < dst.len() {
        let more = done.min(dst.len() - done).min(FILL_BLOCK);
        dst.copy_within(..more, done);
        done += more;
    }
    Ok(())
}

/// Copied again and again, so it stays in the first cache; a multiple of every element's size.
const FILL_BLOCK: usize = 16 << 10;

/// The dtype of the numbers that are combined: of complex ones the parts.
fn check(dst: &[u8], srcs: &[&[u8]], dtype: DType, op: ReduceOp) -> Result<Builtin> {
    if let Some(src) = srcs.iter().find(|s| s.len() != dst.len()) {
        return Err(KernelError::new(format!("combining {} bytes into {}", src.len(), dst.len())));
    }
    if !dst.len().is_multiple_of(dtype.size()) {
        return Err(KernelError::new(format!("{} bytes are not whole elements of {dtype}", dst.len())));
    }
    if dtype.kind() == DTypeKind::Opaque {
        return Err(KernelError::new(format!("elements of {dtype} cannot be combined")));
    }
    match dtype.is_complex() && dtype.reduces(op) {
        true => dtype.part().computed(),
        false => dtype.computed(),
    }
}

/// Elements read from all sources before they are written.
const WIDTH: usize = 64;

/// # Safety
/// `len` bytes, whole elements of `dtype`, are readable from each source (there is one) and writable at `dst`, which may
/// be one of the sources but does not overlap them otherwise.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn combine(op: ReduceOp, dtype: Builtin, dst: *mut u8, len: usize, srcs: &[*const u8]) {
    let n = len / dtype.size();
    let native = Native::of(dtype);
    // SAFETY: by the contract of this function, for every arm.
    unsafe {
        match dtype {
            Builtin::F64 => match op {
                ReduceOp::Sum => fold(dst.cast(), n, srcs, |a: f64, b| a + b, |x: f64| x, |x| x),
                ReduceOp::Max => fold(dst.cast(), n, srcs, f64::max_nan, |x: f64| x, |x| x),
                ReduceOp::Min => fold(dst.cast(), n, srcs, f64::min_nan, |x: f64| x, |x| x),
            },
            d if d.is_float() => with_float!(native, T => match op {
                ReduceOp::Sum => fold::<T, f32>(dst.cast(), n, srcs, |a, b| a + b, Lane::to_f32, Lane::from_f32),
                ReduceOp::Max => fold::<T, f32>(dst.cast(), n, srcs, f32::max_nan, Lane::to_f32, Lane::from_f32),
                ReduceOp::Min => fold::<T, f32>(dst.cast(), n, srcs, f32::min_nan, Lane::to_f32, Lane::from_f32),
            }),
            _ => with_reduced!(dtype, T => match op {
                ReduceOp::Sum => fold::<T, i64>(dst.cast(), n, srcs, i64::wrapping_add, Lane::to_i64, Lane::from_i64),
                ReduceOp::Max => fold::<T, i64>(dst.cast(), n, srcs, |a, b| a.max(b), Lane::to_i64, Lane::from_i64),
                ReduceOp::Min => fold::<T, i64>(dst.cast(), n, srcs, |a, b| a.min(b), Lane::to_i64, Lane::from_i64),
            }),
        }
    }
}

/// # Safety
/// As [`combine`], in elements.
#[inline(always)]
unsafe fn fold<T: Lane, P: Copy + Default>(
    dst: *mut T,
    n: usize,
    srcs: &[*const u8],
    apply: impl Fn(P, P) -> P,
    load: impl Fn(T) -> P,
    store: impl Fn(P) -> T,
) {
    let blocks = n / WIDTH;
    for k in 0..blocks {
        // SAFETY: the block lies inside all; reads and writes ask for no alignment.
        unsafe {
            let read = |p: &*const u8| p.cast::<[T; WIDTH]>().wrapping_add(k).read_unaligned();
            let mut total = [P::default(); WIDTH];
            let first = read(&srcs[0]);
            for i in 0..WIDTH {
                total[i] = load(first[i]);
            }
            for src in &srcs[1..] {
                let x = read(src);
                for i in 0..WIDTH {
                    total[i] = apply(total[i], load(x[i]));
                }
            }
            let mut out = [T::default(); WIDTH];
            for i in 0..WIDTH {
                out[i] = store(total[i]);
            }
            dst.cast::<[T; WIDTH]>().wrapping_add(k).write_unaligned(out);
        }
    }
    for i in blocks * WIDTH..n {
        // SAFETY: `i < n`.
        unsafe {
            let read = |p: &*const u8| load(p.cast::<T>().wrapping_add(i).read_unaligned());
            let total = srcs[1..].iter().fold(read(&srcs[0]), |a, p| apply(a, read(p)));
            dst.wrapping_add(i).write_unaligned(store(total));
        }
    }
}
