//! The inner loops of reductions.

use super::Reduce;
use crate::cpu::lane::{Lane, Native, with_lane};
use crate::vmath::Real;
use multiversion::multiversion;

/// Elements that are folded in the narrow type before they join a total.
pub(super) const BLOCK: usize = 4096;
/// Accumulators of a contiguous run: enough to hide the latency of an addition.
const LANES: usize = 64;
/// Columns folded side by side.
pub(super) const TILE: usize = 256;
/// Rows that are folded in the narrow type before they join the totals of their columns.
pub(super) const ROWS: usize = 64;

/// A number that can be folded.
trait Foldable: Copy {
    fn zero() -> Self;
    fn one() -> Self;
    fn lowest() -> Self;
    fn highest() -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn load<S: Lane>(x: S) -> Self;
}

macro_rules! float_part {
    ($t:ident $load:ident) => {
        impl Foldable for $t {
            #[inline(always)]
            fn zero() -> Self {
                0.0
            }
            #[inline(always)]
            fn one() -> Self {
                1.0
            }
            #[inline(always)]
            fn lowest() -> Self {
                $t::NEG_INFINITY
            }
            #[inline(always)]
            fn highest() -> Self {
                $t::INFINITY
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max_nan(other)
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                self.min_nan(other)
            }
            #[inline(always)]
            fn load<S: Lane>(x: S) -> Self {
                x.$load()
            }
        }
    };
}
float_part!(f32 to_f32);
float_part!(f64 to_f64);

impl Foldable for i64 {
    #[inline(always)]
    fn zero() -> Self {
        0
    }
    #[inline(always)]
    fn one() -> Self {
        1
    }
    #[inline(always)]
    fn lowest() -> Self {
        i64::MIN
    }
    #[inline(always)]
    fn highest() -> Self {
        i64::MAX
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        self.min(other)
    }
    #[inline(always)]
    fn load<S: Lane>(x: S) -> Self {
        x.to_i64()
    }
}

/// One way to fold, as a type so that the loops are compiled for it.
trait Fold {
    fn identity<P: Foldable>() -> P;
    fn apply<P: Foldable>(a: P, b: P) -> P;
}

macro_rules! folds {
    ($($name:ident $identity:ident $apply:ident),*) => {$(
        struct $name;
        impl Fold for $name {
            #[inline(always)]
            fn identity<P: Foldable>() -> P { P::$identity() }
            #[inline(always)]
            fn apply<P: Foldable>(a: P, b: P) -> P { a.$apply(b) }
        }
    )*};
}
folds!(Sum zero plus, Prod one times, Max lowest larger, Min highest smaller);

macro_rules! with_fold {
    ($op:expr, $F:ident => $body:expr) => {
        match $op {
            Reduce::Sum => {
                type $F = Sum;
                $body
            }
            Reduce::Prod => {
                type $F = Prod;
                $body
            }
            Reduce::Max => {
                type $F = Max;
                $body
            }
            Reduce::Min => {
                type $F = Min;
                $body
            }
        }
    };
}

/// # Safety
/// `n` elements from `p` with `stride` are readable.
#[inline(always)]
unsafe fn run<S: Lane, F: Fold, P: Foldable>(p: *const S, stride: isize, n: usize) -> P {
    if stride != 1 || n < LANES {
        let mut total = F::identity::<P>();
        for i in 0..n as isize {
            // SAFETY: by the contract of this function.
            total = F::apply(total, P::load(unsafe { p.wrapping_offset(i * stride).read() }));
        }
        return total;
    }
    // SAFETY: by the contract of this function, with stride one.
    let x = unsafe { std::slice::from_raw_parts(p, n) };
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [F::identity::<P>(); LANES];
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = F::apply(lanes[i], P::load(block[i]));
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = F::apply(*lane, P::load(*x));
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = F::apply(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// # Safety
/// As many elements as there are totals are readable from each row.
#[inline(always)]
unsafe fn columns<S: Lane, F: Fold, P: Foldable, T: Foldable>(
    rows: &[*const u8],
    totals: &mut [T],
    widen: impl Fn(P) -> T,
) {
    let n = totals.len();
    let mut parts = [F::identity::<P>(); TILE];
    let parts = &mut parts[..n];
    for row in rows {
        // SAFETY: by the contract of this function.
        let x = unsafe { std::slice::from_raw_parts(row.cast::<S>(), n) };
        for (part, x) in parts.iter_mut().zip(x) {
            *part = F::apply(*part, P::load(*x));
        }
    }
    for (total, part) in totals.iter_mut().zip(parts) {
        *total = F::apply(*total, widen(*part));
    }
}

/// True where the narrow type is f32: products of f32 overflow and lose digits too early.
#[inline(always)]
fn narrow(op: Reduce, dtype: Native) -> bool {
    dtype != Native::F64 && op != Reduce::Prod
}

/// # Safety
/// See [`Total::fold`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn fold_float(op: Reduce, dtype: Native, p: *const u8, stride: isize, n: usize) -> f64 {
    // SAFETY: by the contract of this function.
    unsafe {
        with_fold!(op, F => with_lane!(dtype, S => {
            if narrow(op, dtype) { run::<S, F, f32>(p.cast(), stride, n) as f64 } else { run::<S, F, f64>(p.cast(), stride, n) }
        }))
    }
}

/// # Safety
/// See [`Total::fold`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn fold_int(op: Reduce, dtype: Native, p: *const u8, stride: isize, n: usize) -> i64 {
    // SAFETY: by the contract of this function.
    unsafe { with_fold!(op, F => with_lane!(dtype, S => run::<S, F, i64>(p.cast(), stride, n))) }
}

/// # Safety
/// See [`Total::fold_columns`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn columns_float(op: Reduce, dtype: Native, rows: &[*const u8], totals: &mut [f64]) {
    // SAFETY: by the contract of this function.
    unsafe {
        with_fold!(op, F => with_lane!(dtype, S => {
            if narrow(op, dtype) {
                columns::<S, F, f32, f64>(rows, totals, |x| x as f64)
            } else {
                columns::<S, F, f64, f64>(rows, totals, |x| x)
            }
        }))
    }
}

/// # Safety
/// See [`Total::fold_columns`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn columns_int(op: Reduce, dtype: Native, rows: &[*const u8], totals: &mut [i64]) {
    // SAFETY: by the contract of this function.
    unsafe { with_fold!(op, F => with_lane!(dtype, S => columns::<S, F, i64, i64>(rows, totals, |x| x))) }
}

/// The wide type in which blocks are joined: f64 for floats, i64 for the rest.
pub(super) trait Total: Copy + Default + Send + Sync {
    fn identity(op: Reduce) -> Self;
    fn join(op: Reduce, a: Self, b: Self) -> Self;
    /// As an element, of sums that are divided by a count their quotient.
    fn store<D: Lane>(self, count: Option<f64>) -> D;
    /// # Safety
    /// `n` elements of `dtype` from `p` with `stride` are readable.
    unsafe fn fold(op: Reduce, dtype: Native, p: *const u8, stride: isize, n: usize) -> Self;
    /// # Safety
    /// As many elements of `dtype` as there are totals (at most [`TILE`]) are readable from each row.
    unsafe fn fold_columns(op: Reduce, dtype: Native, rows: &[*const u8], totals: &mut [Self]);
}

macro_rules! total {
    ($t:ident $store:ident $fold:ident $columns:ident) => {
        impl Total for $t {
            fn identity(op: Reduce) -> Self {
                with_fold!(op, F => F::identity())
            }
            fn join(op: Reduce, a: Self, b: Self) -> Self {
                with_fold!(op, F => F::apply(a, b))
            }
            fn store<D: Lane>(self, count: Option<f64>) -> D {
                match count {
                    None => D::$store(self),
                    Some(n) => D::from_f64(self as f64 / n),
                }
            }
            unsafe fn fold(op: Reduce, dtype: Native, p: *const u8, stride: isize, n: usize) -> Self {
                // SAFETY: by the contract of this function.
                unsafe { $fold(op, dtype, p, stride, n) }
            }
            unsafe fn fold_columns(op: Reduce, dtype: Native, rows: &[*const u8], totals: &mut [Self]) {
                // SAFETY: by the contract of this function.
                unsafe { $columns(op, dtype, rows, totals) }
            }
        }
    };
}
total!(f64 from_f64 fold_float columns_float);
total!(i64 from_i64 fold_int columns_int);
