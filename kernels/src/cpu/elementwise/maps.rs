//! Passes over blocks of elements with a function of one, two or three of them.
//!
//! A destination may be one of the sources (in place). Each such case is a loop of its own, because the vectoriser's own
//! check would send it down the scalar path.

use crate::cpu::lane::Lane;

/// Two sources, a destination and a length. Unary functions have `b == a`.
#[derive(Clone, Copy)]
pub(super) struct Block<T> {
    pub(super) a: *const T,
    pub(super) b: *const T,
    pub(super) dst: *mut T,
    pub(super) n: usize,
}

// Plain counted loops: the closures of iterator adapters are compiled as functions of their own, without the wider
// instructions of the caller (exp ran at a third of the speed).

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn map2<T: Copy>(x: Block<T>, f: impl Fn(T, T) -> T) {
    let Block { a, b, dst, n } = x;
    // SAFETY: `i < n` throughout.
    unsafe {
        match (a.cast_mut() == dst, b.cast_mut() == dst) {
            (true, true) => {
                for i in 0..n {
                    let v = dst.add(i).read();
                    dst.add(i).write(f(v, v));
                }
            }
            (true, false) => {
                for i in 0..n {
                    dst.add(i).write(f(dst.add(i).read(), b.add(i).read()));
                }
            }
            (false, true) => {
                for i in 0..n {
                    dst.add(i).write(f(a.add(i).read(), dst.add(i).read()));
                }
            }
            (false, false) => {
                for i in 0..n {
                    dst.add(i).write(f(a.add(i).read(), b.add(i).read()));
                }
            }
        }
    }
}

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn map1<T: Lane>(x: Block<T>, f: impl Fn(T) -> T) {
    let Block { a, dst, n, .. } = x;
    // SAFETY: `i < n` throughout.
    unsafe {
        if a.cast_mut() == dst {
            for i in 0..n {
                dst.add(i).write(f(dst.add(i).read()));
            }
        } else {
            for i in 0..n {
                dst.add(i).write(f(a.add(i).read()));
            }
        }
    }
}

/// [`map1`] with the function written into the loop.
macro_rules! written {
    ($x:expr, |$v:ident| $result:expr) => {{
        let Block { a, dst, n, .. } = $x;
        if a.cast_mut() == dst {
            for i in 0..n {
                let $v = dst.add(i).read();
                dst.add(i).write($result);
            }
        } else {
            for i in 0..n {
                let $v = a.add(i).read();
                dst.add(i).write($result);
            }
        }
    }};
}
pub(super) use written;

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn select<T: Lane>(condition: *const T, x: Block<T>, zero: T) {
    // By pointers, since the destination may be any of the three: the compiler checks for overlap before the loop.
    for i in 0..x.n {
        // SAFETY: `i < n`.
        unsafe {
            let (a, b) = (x.a.add(i).read(), x.b.add(i).read());
            x.dst.add(i).write(if condition.add(i).read() != zero { a } else { b });
        }
    }
}

/// Elements that are read from all sources before they are written: then it does not matter which of them the
/// destination is, and all loops are vectors.
pub(super) const WIDTH: usize = 64;

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn map3<T: Lane>(c: *const T, x: Block<T>, f: impl Fn(T, T, T) -> T) {
    let blocks = x.n / WIDTH;
    for block in 0..blocks {
        // SAFETY: the block lies inside all; reads and writes ask for no alignment.
        unsafe {
            let read = |p: *const T| p.cast::<[T; WIDTH]>().add(block).read_unaligned();
            let (a, b, c) = (read(x.a), read(x.b), read(c));
            let mut out = [T::default(); WIDTH];
            for i in 0..WIDTH {
                out[i] = f(a[i], b[i], c[i]);
            }
            x.dst.cast::<[T; WIDTH]>().add(block).write_unaligned(out);
        }
    }
    for i in blocks * WIDTH..x.n {
        // SAFETY: `i < n`.
        unsafe { x.dst.add(i).write(f(x.a.add(i).read(), x.b.add(i).read(), c.add(i).read())) };
    }
}
