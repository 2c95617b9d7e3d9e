//! Copying with conversion of dtype and layout, and filling.

use super::lane::{Lane, cast, with_bits, with_lane};
use super::strided::Walk;
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, DType, Element, KernelError, Result, Scalar, View};
use multiversion::multiversion;

/// Copies `src` to `dst` (same dims), converting between built-in dtypes as [`Lane`] says. Elements of one dtype keep their
/// bits, whatever it is.
///
/// # Errors
/// Where the dims differ, or the dtypes differ and one is registered.
pub fn copy(src: &View, dst: &View) -> Result<()> {
    if src.dims() != dst.dims() {
        return Err(KernelError::new(format!("copy from dims {:?} to {:?}", src.dims(), dst.dims())));
    }
    if dst.is_empty() {
        return Ok(());
    }
    let walk = Walk::new(dst.dims(), &[dst.strides(), src.strides()], true);
    let rank = walk.dims.len();
    if rank >= 2 && walk.inner_stride(1) != 1 && src.dtype() == dst.dtype() {
        // A dim in which the source is contiguous: together with the innermost one it is a transpose.
        if let Some(d) = (0..rank - 1).find(|d| walk.strides[1][*d] == 1) {
            transpose(&walk, d, src, dst);
            return Ok(());
        }
    }
    let converted = match src.dtype() == dst.dtype() {
        true => None,
        false => Some((src.dtype().computed()?, dst.dtype().computed()?)),
    };
    let (src_size, dst_size) = (src.dtype().size() as isize, dst.dtype().size() as isize);
    for_segments(&walk, &|row, at, n| {
        let at = at as isize;
        let from = walk.row_offset(1, row) + at * walk.inner_stride(1);
        let to = walk.row_offset(0, row) + at * walk.inner_stride(0);
        let from = src.ptr().wrapping_offset(from * src_size);
        let to = dst.ptr().wrapping_offset(to * dst_size);
        // SAFETY: the walk visits elements of both views only, which their contracts make valid; segments do not overlap.
        unsafe {
            match converted {
                None => move_run(src.dtype(), from, walk.inner_stride(1), to, walk.inner_stride(0), n),
                Some((s, d)) => convert_run(from, s, walk.inner_stride(1), to, d, walk.inner_stride(0), n),
            }
        };
    });
    Ok(())
}

/// Sets every element.
///
/// # Errors
/// For a registered dtype.
pub fn fill(dst: &View, value: Scalar) -> Result<()> {
    if dst.is_empty() {
        return Ok(());
    }
    let walk = Walk::new(dst.dims(), &[dst.strides()], true);
    let bytes = scalar_bytes(dst.dtype().computed()?, value);
    for_segments(&walk, &|row, at, n| {
        let stride = walk.inner_stride(0);
        let first = walk.row_offset(0, row) + at as isize * stride;
        // SAFETY: the walk visits elements of the output view only, each in one segment; `bytes` holds one element.
        unsafe {
            with_bits!(dst.dtype(), T => {
                let element = bytes.as_ptr().cast::<T>().read_unaligned();
                fill_run(dst.ptr().cast::<T>().wrapping_offset(first), stride, n, element)
            });
        }
    });
    Ok(())
}

/// The element that holds a scalar, in the first bytes.
pub(crate) fn scalar_bytes(dtype: Builtin, value: Scalar) -> [u8; 8] {
    let mut bytes = [0u8; 8];
    match dtype {
        Builtin::Bool => bytes[0] = value.to_bool() as u8,
        Builtin::U8 => bytes[0] = u8::from_scalar(value),
        Builtin::I8 => bytes[0] = i8::from_scalar(value) as u8,
        Builtin::I32 => bytes[..4].copy_from_slice(&i32::from_scalar(value).to_ne_bytes()),
        Builtin::I64 => bytes = value.to_i64().to_ne_bytes(),
        Builtin::F16 => bytes[..2].copy_from_slice(&half::f16::from_scalar(value).to_ne_bytes()),
        Builtin::BF16 => bytes[..2].copy_from_slice(&half::bf16::from_scalar(value).to_ne_bytes()),
        Builtin::F32 => bytes[..4].copy_from_slice(&f32::from_scalar(value).to_ne_bytes()),
        Builtin::F64 => bytes = value.to_f64().to_ne_bytes(),
    }
    bytes
}

/// Calls `f(row, first, n)` on runs inside the innermost rows of a walk, in parallel where there is enough.
pub(super) fn for_segments(walk: &Walk, f: &(dyn Fn(usize, usize, usize) + Sync)) {
    let inner = walk.inner();
    parallel_for(walk.rows() * inner, GRAIN, &|range| {
        let mut at = range.start;
        while at < range.end {
            let (row, first) = (at / inner, at % inner);
            let n = (inner - first).min(range.end - at);
            f(row, first, n);
            at += n;
        }
    });
}

/// # Safety
/// `n` elements from `dst` with `stride` may be written.
pub(super) unsafe fn fill_run<T: Copy>(dst: *mut T, stride: isize, n: usize, value: T) {
    for i in 0..n {
        // SAFETY: by the contract of this function.
        unsafe { dst.wrapping_offset(i as isize * stride).write(value) };
    }
}

/// Copies `n` elements of any dtype from `src` to `dst`, bit by bit; strides are in elements.
///
/// # Safety
/// The elements are valid for reading and writing and either do not overlap or are the same.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub(super) unsafe fn move_run(
    dtype: DType,
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
    n: usize,
) {
    if src_stride == 1 && dst_stride == 1 {
        // SAFETY: by the contract of this function; `copy` allows overlap.
        unsafe { std::ptr::copy(src, dst, n * dtype.size()) };
        return;
    }
    with_bits!(dtype, T => {
        let (from, to) = (src.cast::<T>(), dst.cast::<T>());
        // SAFETY: by the contract of this function, for every arm.
        unsafe {
            if src_stride == 0 {
                fill_run(to, dst_stride, n, from.read());
            } else {
                for i in 0..n as isize {
                    to.wrapping_offset(i * dst_stride).write(from.wrapping_offset(i * src_stride).read());
                }
            }
        }
    });
}

/// Converts `n` elements from `src` to `dst`; strides are in elements.
///
/// # Safety
/// The elements are valid for reading and writing under their dtypes and either do not overlap or are the same.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub(super) unsafe fn convert_run(
    src: *const u8,
    src_dtype: Builtin,
    src_stride: isize,
    dst: *mut u8,
    dst_dtype: Builtin,
    dst_stride: isize,
    n: usize,
) {
    if src_dtype == dst_dtype && src_stride == 1 && dst_stride == 1 {
        // SAFETY: by the contract of this function; `copy` allows overlap.
        unsafe { std::ptr::copy(src, dst, n * src_dtype.size()) };
        return;
    }
    with_lane!(src_dtype, S => with_lane!(dst_dtype, D => {
        // SAFETY: by the contract of this function.
        unsafe { convert_lanes::<S, D>(src.cast(), src_stride, dst.cast(), dst_stride, n) }
    }));
}

/// # Safety
/// As [`convert_run`].
#[inline(always)]
unsafe fn convert_lanes<S: Lane, D: Lane>(src: *const S, src_stride: isize, dst: *mut D, dst_stride: isize, n: usize) {
    if src_stride == 1 && dst_stride == 1 {
        for i in 0..n {
            // SAFETY: by the contract of `convert_run`.
            unsafe { dst.add(i).write(cast(src.add(i).read())) };
        }
    } else if src_stride == 0 {
        // SAFETY: by the contract of `convert_run`.
        unsafe { fill_run(dst, dst_stride, n, cast::<S, D>(src.read())) };
    } else {
        for i in 0..n as isize {
            let (from, to) = (src.wrapping_offset(i * src_stride), dst.wrapping_offset(i * dst_stride));
            // SAFETY: by the contract of `convert_run`.
            unsafe { to.write(cast(from.read())) };
        }
    }
}

/// Side of the square blocks in which a transpose goes: two of them fit the first-level cache for any dtype.
const BLOCK: usize = 32;

/// Copies a walk in which the source is contiguous in dim `d` and not in the innermost, in square blocks of the two.
fn transpose(walk: &Walk, d: usize, src: &View, dst: &View) {
    let rank = walk.dims.len();
    let (rows, columns) = (walk.dims[d], walk.inner());
    let mut rest = walk.clone();
    // The walk over the other dims: the last two are taken by the blocks.
    rest.dims[rank - 1] = 1;
    rest.dims[d] = 1;
    let (row_blocks, column_blocks) = (rows.div_ceil(BLOCK), columns.div_ceil(BLOCK));
    let planes: usize = rest.dims.iter().product();
    let tasks = planes * row_blocks * column_blocks;
    parallel_for(tasks, GRAIN / (BLOCK * BLOCK), &|range| {
        for task in range {
            let (plane, block) = (task / (row_blocks * column_blocks), task % (row_blocks * column_blocks));
            let (r, c) = (block / column_blocks * BLOCK, block % column_blocks * BLOCK);
            let size = [BLOCK.min(rows - r), BLOCK.min(columns - c)];
            let start = |k: usize| {
                let s = &walk.strides[k];
                rest.row_offset(k, plane) + r as isize * s[d] + c as isize * s[rank - 1]
            };
            let strides = |k: usize| [walk.strides[k][d], walk.strides[k][rank - 1]];
            let bytes = src.dtype().size() as isize;
            let from = src.ptr().wrapping_offset(start(1) * bytes);
            let to = dst.ptr().wrapping_offset(start(0) * bytes);
            // SAFETY: the block lies inside both views, whose elements are of this size; blocks do not overlap.
            unsafe {
                with_bits!(src.dtype(), T => copy_block::<T>(from.cast(), to.cast(), size, strides(1), strides(0)));
            }
        }
    });
}

/// Goes through a buffer, so that both sides are touched in runs: the rows of a large power of two share a cache set.
///
/// # Safety
/// All elements of the block are valid for reading and writing; it is at most [`BLOCK`] on each side.
unsafe fn copy_block<T: Copy + Default>(
    src: *const T,
    dst: *mut T,
    size: [usize; 2],
    from: [isize; 2],
    to: [isize; 2],
) {
    let mut buffer = [[T::default(); BLOCK]; BLOCK];
    for (c, line) in buffer[..size[1]].iter_mut().enumerate() {
        let s = src.wrapping_offset(c as isize * from[1]);
        for (r, x) in line[..size[0]].iter_mut().enumerate() {
            // SAFETY: by the contract of this function.
            *x = unsafe { s.wrapping_offset(r as isize * from[0]).read() };
        }
    }
    for r in 0..size[0] {
        let d = dst.wrapping_offset(r as isize * to[0]);
        for (c, line) in buffer[..size[1]].iter().enumerate() {
            // SAFETY: by the contract of this function.
            unsafe { d.wrapping_offset(c as isize * to[1]).write(line[r]) };
        }
    }
}

#[cfg(test)]
mod tests;
