//! The numbers of a vector of 512 bits, and what is done with them.

use oflow::kernels::Element;
use pulp::bytemuck::{Pod, cast, cast_slice, cast_slice_mut};
use pulp::x86::V4;
use pulp::{Simd, f32x16, f64x8};
use rustfft::FftNum;
use rustfft::num_complex::Complex as Z;

/// f32 and f64.
pub(crate) trait Lane: FftNum + Element + Default + Pod {
    /// A vector of [`LANES`](Self::LANES) numbers.
    type V: Pod + Sync + Send;
    const LANES: usize;

    fn splat(s: V4, x: Self) -> Self::V;
    fn plus(s: V4, a: Self::V, b: Self::V) -> Self::V;
    fn minus(s: V4, a: Self::V, b: Self::V) -> Self::V;
    fn times(s: V4, a: Self::V, b: Self::V) -> Self::V;
    /// `a b + c`, rounded once.
    fn fma(s: V4, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `c - a b`, rounded once.
    fn fnma(s: V4, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The numbers of even and those of odd places of two vectors that lie one after the other.
    fn split(s: V4, x: [Self::V; 2]) -> [Self::V; 2];
    /// Two vectors whose numbers take turns: the inverse of [`split`](Self::split).
    fn join(s: V4, x: [Self::V; 2]) -> [Self::V; 2];
    /// A vector's numbers in the opposite order.
    fn reversed(s: V4, x: Self::V) -> Self::V;
    /// A vector read from the first numbers of a slice.
    fn load(x: &[Self]) -> Self::V;
    /// Two vectors written to the first numbers of a slice.
    fn store(v: [Self::V; 2], to: &mut [Self]);
    /// The numbers of vectors.
    fn numbers(v: &[Self::V]) -> &[Self] {
        cast_slice(v)
    }
    /// As [`numbers`](Self::numbers), to be written.
    fn numbers_mut(v: &mut [Self::V]) -> &mut [Self] {
        cast_slice_mut(v)
    }
    /// Vector k of the transposed square of [`LANES`](Self::LANES) vectors is given to `to(k, vector)`. Each round joins row i with row
    /// i + LANES / 2: that turns the digits of a place (row, then column) left by one.
    fn turned(s: V4, rows: impl Fn(usize) -> Self::V, to: impl FnMut(usize, Self::V));
}

/// Where the numbers of the results of `split` and of `join` lie in two vectors.
macro_rules! places {
    ($index:ty, $lanes:literal) => {{
        let mut all = [[0; $lanes]; 4];
        let mut i = 0;
        while i < $lanes {
            let place = (i / 2 + i % 2 * $lanes) as $index;
            (all[0][i], all[1][i]) = (2 * i as $index, 2 * i as $index + 1);
            (all[2][i], all[3][i]) = (place, place + $lanes / 2);
            i += 1;
        }
        all
    }};
}

macro_rules! lane {
    ($t:ty, $v:ty, $index:ty, $lanes:literal, rounds $rounds:tt, [$($k:literal)*],
     $splat:ident $add:ident $sub:ident $mul:ident $fma:ident $fnma:ident $permute:ident) => {
        impl Lane for $t {
            type V = $v;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(s: V4, x: $t) -> $v {
                s.$splat(x)
            }
            #[inline(always)]
            fn plus(s: V4, a: $v, b: $v) -> $v {
                s.$add(a, b)
            }
            #[inline(always)]
            fn minus(s: V4, a: $v, b: $v) -> $v {
                s.$sub(a, b)
            }
            #[inline(always)]
            fn times(s: V4, a: $v, b: $v) -> $v {
                s.$mul(a, b)
            }
            #[inline(always)]
            fn fma(s: V4, a: $v, b: $v, c: $v) -> $v {
                s.$fma(a, b, c)
            }
            #[inline(always)]
            fn fnma(s: V4, a: $v, b: $v, c: $v) -> $v {
                s.$fnma(a, b, c)
            }
            #[inline(always)]
            fn split(s: V4, [a, b]: [$v; 2]) -> [$v; 2] {
                const PLACES: [[$index; $lanes]; 4] = places!($index, $lanes);
                [
                    cast(s.avx512f.$permute(cast(a), cast(PLACES[0]), cast(b))),
                    cast(s.avx512f.$permute(cast(a), cast(PLACES[1]), cast(b))),
                ]
            }
            #[inline(always)]
            fn join(s: V4, [a, b]: [$v; 2]) -> [$v; 2] {
                const PLACES: [[$index; $lanes]; 4] = places!($index, $lanes);
                [
                    cast(s.avx512f.$permute(cast(a), cast(PLACES[2]), cast(b))),
                    cast(s.avx512f.$permute(cast(a), cast(PLACES[3]), cast(b))),
                ]
            }
            #[inline(always)]
            fn reversed(s: V4, x: $v) -> $v {
                const PLACES: [$index; $lanes] = [$($lanes - 1 - $k),*];
                cast(s.avx512f.$permute(cast(x), cast(PLACES), cast(x)))
            }
            #[inline(always)]
            fn load(x: &[$t]) -> $v {
                let mut v = [0.0; $lanes];
                v.copy_from_slice(&x[..$lanes]);
                cast(v)
            }
            #[inline(always)]
            fn store(v: [$v; 2], to: &mut [$t]) {
                let (first, second) = to[..2 * $lanes].split_at_mut($lanes);
                first.copy_from_slice(&cast::<_, [$t; $lanes]>(v[0]));
                second.copy_from_slice(&cast::<_, [$t; $lanes]>(v[1]));
            }
            #[inline(always)]
            fn turned(s: V4, rows: impl Fn(usize) -> $v, mut to: impl FnMut(usize, $v)) {
                // Written out, so that the vectors stay in registers: arrays that loops fill are kept in memory.
                let rows: [$v; $lanes] = [$(rows($k)),*];
                lane!(@round $rounds s rows [$($k)*] $lanes);
                $(to($k, rows[$k]);)*
            }
        }
    };
    (@round [$($round:tt)*] $s:ident $rows:ident $all:tt $lanes:literal) => {
        $(lane!(@once $round $s $rows $all $lanes);)*
    };
    (@once $round:tt $s:ident $rows:ident [$($k:literal)*] $lanes:literal) => {
        let $rows: [_; $lanes] = [$(Self::join($s, [$rows[$k / 2], $rows[$k / 2 + $lanes / 2]])[$k % 2]),*];
    };
}
lane!(f32, f32x16, u32, 16, rounds [1 2 3 4], [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15],
    splat_f32x16 add_f32s sub_f32s mul_f32s mul_add_f32x16 negate_mul_add_f32x16 _mm512_permutex2var_ps);
lane!(f64, f64x8, u64, 8, rounds [1 2 3], [0 1 2 3 4 5 6 7],
    splat_f64x8 add_f64s sub_f64s mul_f64s mul_add_f64x8 negate_mul_add_f64x8 _mm512_permutex2var_pd);

/// Proof that this CPU has the instructions.
pub(crate) fn instructions() -> Option<V4> {
    V4::try_new()
}

/// Complex numbers as their parts, one after the other.
pub(crate) fn parts<T: Lane>(z: &[Z<T>]) -> &[T] {
    // SAFETY: a complex number is its two parts, one after the other, and aligned as they are.
    unsafe { std::slice::from_raw_parts(z.as_ptr().cast(), 2 * z.len()) }
}

/// As [`parts`], to be written.
pub(crate) fn parts_mut<T: Lane>(z: &mut [Z<T>]) -> &mut [T] {
    // SAFETY: as in `parts`.
    unsafe { std::slice::from_raw_parts_mut(z.as_mut_ptr().cast(), 2 * z.len()) }
}
