//! Copying with conversion of dtype and layout, and filling.

use super::lane::{Lane, Native, cast, with_bits, with_lane, with_narrow};
use super::strided::{Cursor, Walk};
use super::turn::{Blocks, turn};
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, DType, KernelError, Result, Scalar, View};
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
    if walk.inner_stride(0) == 1
        && src.dtype() == dst.dtype()
        && let Some(d) = walk.crossing(1)
    {
        transpose(&walk, d, src, dst);
        return Ok(());
    }
    let bytes = walk.inner() * dst.dtype().size();
    if src.dtype() == dst.dtype() && walk.inner_stride(0) == 1 && walk.inner_stride(1) == 1 && bytes <= SHORT_ROW {
        parallel_for(walk.rows(), GRAIN.div_ceil(walk.inner()), &|range| {
            // SAFETY: the walk visits elements of both views only, which their contracts make valid.
            unsafe { move_rows(walk.cursor(range.start), range.len(), bytes, src, dst) };
        });
        return Ok(());
    }
    let converted = match src.dtype() == dst.dtype() {
        true => None,
        false => Some((src.dtype().cast()?, dst.dtype().cast()?)),
    };
    let (src_size, dst_size) = (src.dtype().size() as isize, dst.dtype().size() as isize);
    for_segments(&walk, &|offsets, n| {
        let from = src.ptr().wrapping_offset(offsets[1] * src_size);
        let to = dst.ptr().wrapping_offset(offsets[0] * dst_size);
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
    let bytes = dst.dtype().cast()?.encode(value);
    for_segments(&walk, &|offsets, n| {
        // SAFETY: the walk visits elements of the output view only, each in one segment; `bytes` holds one element.
        unsafe {
            with_bits!(dst.dtype(), T => {
                let element = bytes.as_ptr().cast::<T>().read_unaligned();
                fill_run(dst.ptr().cast::<T>().wrapping_offset(offsets[0]), walk.inner_stride(0), n, element)
            });
        }
    });
    Ok(())
}

/// The element that holds a scalar, as two words of 8 bytes.
pub(crate) fn scalar_words(dtype: Builtin, value: Scalar) -> (u64, u64) {
    let bytes = dtype.encode(value);
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    (word(0), word(8))
}

/// Calls `f(offsets, n)` on runs inside the innermost rows of a walk, in parallel where there is enough: where each operand's
/// run starts, in elements, and its length.
pub(super) fn for_segments(walk: &Walk, f: &(dyn Fn(&[isize], usize) + Sync)) {
    let inner = walk.inner();
    parallel_for(walk.rows() * inner, GRAIN, &|range| {
        let mut cursor = walk.cursor(range.start / inner);
        // The first run may start inside its row, the last one may end there.
        let (mut left, first) = (range.len(), range.start % inner);
        let n = (inner - first).min(left);
        cursor.shift(first as isize);
        f(&cursor.offsets, n);
        cursor.shift(-(first as isize));
        left -= n;
        while left > 0 {
            let n = inner.min(left);
            cursor.next_row();
            f(&cursor.offsets, n);
            left -= n;
        }
    });
}

/// # Safety
/// `n` elements from `dst` with `stride` may be written.
#[inline(always)]
pub(super) unsafe fn fill_run<T: Copy>(dst: *mut T, stride: isize, n: usize, value: T) {
    if stride == 1 {
        // A loop of its own, which is vectors.
        for i in 0..n {
            // SAFETY: by the contract of this function.
            unsafe { dst.add(i).write(value) };
        }
        return;
    }
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
            } else if src_stride == -1 && dst_stride == 1 {
                for i in 0..n {
                    to.add(i).write(from.sub(i).read());
                }
            } else {
                for i in 0..n as isize {
                    to.wrapping_offset(i * dst_stride).write(from.wrapping_offset(i * src_stride).read());
                }
            }
        }
    });
}

/// Copies 1 to 63 bytes: the first and the last of a power of two, which may share some. A call for so few would cost more.
///
/// # Safety
/// The bytes are valid for reading and writing and either do not overlap or are the same.
#[inline(always)]
unsafe fn move_short(from: *const u8, to: *mut u8, n: usize) {
    macro_rules! ends {
        ($($bytes:literal)*) => {
            // SAFETY: both ends lie inside the bytes, and are read before they are written.
            unsafe {
                match n {
                    $($bytes.. => {
                        type Piece = [u8; $bytes];
                        let first = from.cast::<Piece>().read_unaligned();
                        let last = from.add(n - $bytes).cast::<Piece>().read_unaligned();
                        to.cast::<Piece>().write_unaligned(first);
                        to.add(n - $bytes).cast::<Piece>().write_unaligned(last);
                    })*
                    0 => {}
                }
            }
        };
    }
    ends!(32 16 8 4 2 1)
}

/// Up to how many bytes a row is moved without a call for it.
const SHORT_ROW: usize = 4096;

/// Copies rows of `bytes` bytes, the cursor's and those after it.
///
/// # Safety
/// The rows are valid for reading and writing and either do not overlap or are the same.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn move_rows(mut cursor: Cursor, rows: usize, bytes: usize, src: &View, dst: &View) {
    type Line = [u8; 64];
    let size = dst.dtype().size() as isize;
    let whole = bytes / size_of::<Line>() * size_of::<Line>();
    let mut left = rows;
    while left > 0 {
        // Rows one behind the other along the next dim.
        let (n, steps) = cursor.run(left);
        let mut from = src.ptr().wrapping_offset(cursor.offsets[1] * size).cast_const();
        let mut to = dst.ptr().wrapping_offset(cursor.offsets[0] * size);
        for _ in 0..n {
            // SAFETY: inside the row, by the contract of this function.
            unsafe {
                for at in (0..whole).step_by(size_of::<Line>()) {
                    to.add(at).cast::<Line>().write_unaligned(from.add(at).cast::<Line>().read_unaligned());
                }
                if whole < bytes {
                    move_short(from.add(whole), to.add(whole), bytes - whole);
                }
            }
            (from, to) = (from.wrapping_offset(steps[1] * size), to.wrapping_offset(steps[0] * size));
        }
        cursor.skip(n);
        left -= n;
    }
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
    if src_dtype.is_complex() || dst_dtype.is_complex() {
        // SAFETY: by the contract of this function.
        return unsafe { convert_complex((src, src_dtype, src_stride), (dst, dst_dtype, dst_stride), n) };
    }
    let (Some(s), Some(d)) = (src_dtype.native(), dst_dtype.native()) else {
        // SAFETY: by the contract of this function.
        return unsafe { convert_through((src, src_dtype, src_stride), (dst, dst_dtype, dst_stride), n) };
    };
    with_lane!(s, S => with_lane!(d, D => {
        // SAFETY: by the contract of this function.
        unsafe { convert_lanes::<S, D>(src.cast(), src_stride, dst.cast(), dst_stride, n) }
    }));
}

/// As [`convert_run`] where a dtype is complex: parts are converted each by itself. A real number has an imaginary part of 0, and a
/// complex number loses its imaginary part among real ones; it is true unless both parts are 0.
///
/// # Safety
/// As [`convert_run`].
unsafe fn convert_complex(src: (*const u8, Builtin, isize), dst: (*mut u8, Builtin, isize), n: usize) {
    let from = src.1.part().map_or((src.1, src.2), |part| (part, 2 * src.2));
    let to = dst.1.part().map_or((dst.1, dst.2), |part| (part, 2 * dst.2));
    let (src_im, dst_im) = (src.0.wrapping_add(from.0.size()), dst.0.wrapping_add(to.0.size()));
    // SAFETY: the parts of the elements lie two by two, by the contract of this function.
    unsafe {
        if dst.1 == Builtin::Bool {
            for i in 0..n as isize {
                let at = i * src.2 * src.1.size() as isize;
                let part = |p: *const u8| match from.0 {
                    Builtin::F32 => p.wrapping_offset(at).cast::<f32>().read() != 0.0,
                    _ => p.wrapping_offset(at).cast::<f64>().read() != 0.0,
                };
                dst.0.wrapping_offset(i * dst.2).write(u8::from(part(src.0) || part(src_im)));
            }
            return;
        }
        // The imaginary parts first: the elements may be converted in their own place.
        match (src.1.is_complex(), dst.1.is_complex()) {
            (_, false) => {}
            (true, true) => convert_run(src_im, from.0, from.1, dst_im, to.0, to.1, n),
            (false, true) => match to.0 {
                Builtin::F32 => fill_run(dst_im.cast::<f32>(), to.1, n, 0.0),
                _ => fill_run(dst_im.cast::<f64>(), to.1, n, 0.0),
            },
        }
        convert_run(src.0, from.0, from.1, dst.0, to.0, to.1, n);
    }
}

/// Elements that are converted through a dtype between at once.
const THROUGH: usize = 256;

/// As [`convert_run`] where a dtype is no [`Native`] one: its elements take the way through the native dtype that has all its
/// numbers, so that there is not a loop for each pair of dtypes.
///
/// # Safety
/// As [`convert_run`].
unsafe fn convert_through(src: (*const u8, Builtin, isize), dst: (*mut u8, Builtin, isize), n: usize) {
    let (wide_src, wide_dst) = (Native::of(src.1), Native::of(dst.1));
    // Eight bytes an element suffice for every dtype.
    let (mut given, mut made) = ([0u64; THROUGH], [0u64; THROUGH]);
    let mut at = 0;
    while at < n {
        let m = THROUGH.min(n - at);
        let from = src.0.wrapping_offset(at as isize * src.2 * src.1.size() as isize);
        let to = dst.0.wrapping_offset(at as isize * dst.2 * dst.1.size() as isize);
        // SAFETY: `m` elements fit each array, and lie in the runs from `at` on, by the contract of this function.
        unsafe {
            let from = match src.1.native() {
                Some(_) => (from, src.2),
                None => {
                    widen_run(from, src.1, src.2, given.as_mut_ptr().cast(), m);
                    (given.as_ptr().cast(), 1)
                }
            };
            match dst.1.native() {
                Some(_) => convert_run(from.0, wide_src.builtin(), from.1, to, dst.1, dst.2, m),
                None => {
                    let between: *mut u8 = made.as_mut_ptr().cast();
                    convert_run(from.0, wide_src.builtin(), from.1, between, wide_dst.builtin(), 1, m);
                    narrow_run(between, to, dst.1, dst.2, m, wide_src.is_float());
                }
            }
        }
        at += m;
    }
}

/// Converts `n` elements of a dtype that is not native to its [`Native`] one.
///
/// # Safety
/// As [`convert_run`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn widen_run(src: *const u8, dtype: Builtin, stride: isize, to: *mut u8, n: usize) {
    // SAFETY: by the contract of this function, for every arm; a native dtype does not come here.
    unsafe { with_narrow!(dtype, T, W => convert_lanes::<T, W>(src.cast(), stride, to.cast(), 1, n)) }
}

/// Converts `n` elements of the [`Native`] dtype of `dtype` to it, which is not native. Integers that were floats saturate, others
/// wrap.
///
/// # Safety
/// As [`convert_run`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn narrow_run(from: *mut u8, dst: *mut u8, dtype: Builtin, stride: isize, n: usize, saturate: bool) {
    /// # Safety
    /// As [`convert_run`].
    #[inline(always)]
    unsafe fn clamped<S: Lane + PartialOrd, D: Lane>(
        from: *mut S,
        dst: *mut D,
        stride: isize,
        n: usize,
        bounds: Option<[S; 2]>,
    ) {
        if let Some([low, high]) = bounds {
            for i in 0..n {
                // SAFETY: by the contract of this function.
                unsafe {
                    let x = from.add(i).read();
                    from.add(i).write(if x < low {
                        low
                    } else if x > high {
                        high
                    } else {
                        x
                    });
                }
            }
        }
        // SAFETY: by the contract of this function.
        unsafe { convert_lanes::<S, D>(from, 1, dst, stride, n) };
    }
    // SAFETY: by the contract of this function, for every arm; a native dtype does not come here.
    unsafe {
        let integers = dtype.dtype().integers().filter(|_| saturate);
        with_narrow!(dtype, T, W => {
            let bounds = integers.map(|(low, high)| [low, high].map(W::from_i64));
            clamped::<W, T>(from.cast(), dst.cast(), stride, n, bounds)
        })
    }
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

/// Copies a walk in which the source is contiguous in dim `d` and not in the innermost, in blocks of the two.
fn transpose(walk: &Walk, d: usize, src: &View, dst: &View) {
    let blocks = Blocks::new(walk, d, src.dtype().size());
    let bytes = src.dtype().size() as isize;
    parallel_for(blocks.count(), blocks.grain(), &|range| {
        for block in range {
            let (start, [rows, columns]) = blocks.block(walk, block);
            let from = src.ptr().wrapping_offset(start(1) * bytes);
            let to = dst.ptr().wrapping_offset(start(0) * bytes);
            let (from_step, to_step) = (walk.inner_stride(1), walk.strides[0][d]);
            // SAFETY: the block lies inside both views, whose elements are of this size; blocks do not overlap.
            unsafe {
                with_bits!(src.dtype(), T => turn::<T>(from.cast(), from_step, to.cast(), to_step, [columns, rows]));
            }
        }
    });
}
