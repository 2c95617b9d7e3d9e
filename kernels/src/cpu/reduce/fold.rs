//! The inner loops of reductions.

use super::Reduce;
use crate::cpu::lane::{Bf16Lane, F16Lane, Lane, Native, with_float, with_integer};
use multiversion::multiversion;

/// Elements that are folded in the narrow type before they join a total.
pub(super) const BLOCK: usize = 4096;
/// Accumulators of a contiguous run that are worked on as one vector, and vectors: enough to hide the latency of an addition.
const VECTOR: usize = 16;
const VECTORS: usize = 4;
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
    /// The larger, where neither is NaN.
    fn larger_number(self, other: Self) -> Self;
    /// The smaller, where neither is NaN.
    fn smaller_number(self, other: Self) -> Self;
    /// Whether a fold gives the same in any order.
    const ASSOCIATIVE: bool;
    /// Whether one of both is NaN.
    fn unordered(self, other: Self) -> bool;
    /// NaN where `nan` says so.
    fn or_nan(self, nan: bool) -> Self;
    fn load<S: Lane>(x: S) -> Self;
}

macro_rules! float_part {
    ($t:ident $load:ident) => {
        impl Foldable for $t {
            const ASSOCIATIVE: bool = false;
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
                // One instruction where `self` is NaN already, and whether `other` is one is known before `self` is.
                if other.is_nan() { other } else { self.larger_number(other) }
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                if other.is_nan() { other } else { self.smaller_number(other) }
            }
            #[inline(always)]
            fn larger_number(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
            #[inline(always)]
            fn smaller_number(self, other: Self) -> Self {
                if other < self { other } else { self }
            }
            #[inline(always)]
            fn unordered(self, other: Self) -> bool {
                self.is_nan() | other.is_nan()
            }
            #[inline(always)]
            fn or_nan(self, nan: bool) -> Self {
                if nan { $t::NAN } else { self }
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
    const ASSOCIATIVE: bool = true;
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
    fn larger_number(self, other: Self) -> Self {
        self.max(other)
    }
    #[inline(always)]
    fn smaller_number(self, other: Self) -> Self {
        self.min(other)
    }
    #[inline(always)]
    fn unordered(self, _: Self) -> bool {
        false
    }
    #[inline(always)]
    fn or_nan(self, _: bool) -> Self {
        self
    }
    #[inline(always)]
    fn load<S: Lane>(x: S) -> Self {
        x.to_i64()
    }
}

/// A float in memory.
trait FloatLane: Lane {
    /// The type in which short runs lose nothing that matters: f32, of f64 itself.
    type Part: Foldable + Into<f64>;
}

impl FloatLane for F16Lane {
    type Part = f32;
}
impl FloatLane for Bf16Lane {
    type Part = f32;
}
impl FloatLane for f32 {
    type Part = f32;
}
impl FloatLane for f64 {
    type Part = f64;
}

/// One way to fold, as a type so that the loops are compiled for it.
trait Fold {
    /// The type in which a block of floats is folded before it joins a total of f64.
    type Part<S: FloatLane>: Foldable + Into<f64>;
    fn identity<P: Foldable>() -> P;
    fn apply<P: Foldable>(a: P, b: P) -> P;
    /// [`Fold::apply`] of numbers other than NaN.
    fn apply_numbers<P: Foldable>(a: P, b: P) -> P;
    /// Whether [`Fold::apply_numbers`] can lose a NaN. Whoever calls it looks for NaN itself, two elements at a time.
    const LOSES_NAN: bool;
}

macro_rules! folds {
    ($($name:ident $identity:ident $apply:ident $numbers:ident $loses:literal $part:ty),*) => {$(
        struct $name;
        impl Fold for $name {
            type Part<S: FloatLane> = $part;
            #[inline(always)]
            fn identity<P: Foldable>() -> P { P::$identity() }
            #[inline(always)]
            fn apply<P: Foldable>(a: P, b: P) -> P { a.$apply(b) }
            #[inline(always)]
            fn apply_numbers<P: Foldable>(a: P, b: P) -> P { a.$numbers(b) }
            const LOSES_NAN: bool = $loses;
        }
    )*};
}
// Products of f32 overflow and lose digits too early.
folds!(
    Sum zero plus plus false S::Part,
    Prod one times times false f64,
    Max lowest larger larger_number true S::Part,
    Min highest smaller smaller_number true S::Part
);

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

/// Folds a run with accumulators side by side, G vectors of them. Arrays are made anew at each step and never indexed by a variable,
/// and what is left of them goes to memory: so they stay in registers.
#[inline(always)]
fn side_by_side<S: Lane, F: Fold, P: Foldable, const G: usize>(x: &[S]) -> [P; VECTOR] {
    let (vectors, rest) = x.as_chunks::<VECTOR>();
    let (blocks, vectors) = vectors.as_chunks::<G>();
    let step = |a: [P; VECTOR], x: &[S; VECTOR]| std::array::from_fn(|l| F::apply(a[l], P::load(x[l])));
    let quick = |a: [P; VECTOR], x: &[S; VECTOR]| std::array::from_fn(|l| F::apply_numbers(a[l], P::load(x[l])));
    let mut groups = [[F::identity::<P>(); VECTOR]; G];
    // All ones in the lanes that met a NaN.
    let mut nan = [0u32; VECTOR];
    for block in blocks {
        for g in 0..G {
            groups[g] = quick(groups[g], &block[g]);
        }
        if F::LOSES_NAN {
            for [a, b] in block.as_chunks::<2>().0 {
                nan =
                    std::array::from_fn(|l| if P::unordered(P::load(a[l]), P::load(b[l])) { u32::MAX } else { nan[l] });
            }
            if let [last] = block.as_chunks::<2>().1 {
                nan = std::array::from_fn(|l| {
                    if P::unordered(P::load(last[l]), P::load(last[l])) { u32::MAX } else { nan[l] }
                });
            }
        }
    }
    if F::LOSES_NAN {
        groups[0] = std::array::from_fn(|l| groups[0][l].or_nan(nan[l] != 0));
    }
    // `fold` of an iterator is compiled as a function of its own; a loop here would be compiled with the one above, to shorter vectors.
    let mut lanes = groups[0];
    if !vectors.is_empty() {
        lanes = vectors.iter().fold(lanes, step);
    }
    for group in &groups[1..] {
        lanes = std::array::from_fn(|l| F::apply(lanes[l], group[l]));
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = F::apply(*lane, P::load(*x));
    }
    lanes
}

/// Folds a run from each start.
///
/// # Safety
/// `n` elements with `stride` are readable from each start.
#[inline(always)]
unsafe fn runs<S: Lane, F: Fold, P: Foldable, T>(
    starts: &[*const u8],
    stride: isize,
    n: usize,
    totals: &mut [T],
    widen: impl Fn(P) -> T,
) {
    if stride != 1 || n < VECTOR {
        for (start, total) in starts.iter().zip(totals) {
            let mut part = F::identity::<P>();
            for i in 0..n as isize {
                // SAFETY: by the contract of this function.
                part = F::apply(part, P::load(unsafe { start.cast::<S>().wrapping_offset(i * stride).read() }));
            }
            *total = widen(part);
        }
        return;
    }
    if P::ASSOCIATIVE {
        // The compiler chooses the accumulators; those below it would take apart.
        for (start, total) in starts.iter().zip(totals) {
            // SAFETY: by the contract of this function, with stride one.
            let x = unsafe { std::slice::from_raw_parts(start.cast::<S>(), n) };
            let mut part = F::identity::<P>();
            for x in x {
                part = F::apply(part, P::load(*x));
            }
            *total = widen(part);
        }
        return;
    }
    for (start, total) in starts.iter().zip(totals) {
        // SAFETY: by the contract of this function, with stride one.
        let x = unsafe { std::slice::from_raw_parts(start.cast::<S>(), n) };
        let part = match n < VECTOR * VECTORS {
            true => side_by_side::<S, F, P, 1>(x),
            false => side_by_side::<S, F, P, VECTORS>(x),
        };
        let eight: [P; 8] = std::array::from_fn(|l| F::apply(part[l], part[l + 8]));
        let four: [P; 4] = std::array::from_fn(|l| F::apply(eight[l], eight[l + 4]));
        *total = widen(F::apply(F::apply(four[0], four[2]), F::apply(four[1], four[3])));
    }
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

/// # Safety
/// See [`Total::fold`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn fold_float(op: Reduce, dtype: Native, starts: &[*const u8], stride: isize, n: usize, totals: &mut [f64]) {
    // SAFETY: by the contract of this function.
    unsafe {
        with_fold!(op, F => with_float!(dtype, S => {
            runs::<S, F, <F as Fold>::Part<S>, f64>(starts, stride, n, totals, Into::into)
        }))
    }
}

/// # Safety
/// See [`Total::fold`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn fold_int(op: Reduce, dtype: Native, starts: &[*const u8], stride: isize, n: usize, totals: &mut [i64]) {
    // SAFETY: by the contract of this function.
    unsafe { with_fold!(op, F => with_integer!(dtype, S => runs::<S, F, i64, i64>(starts, stride, n, totals, |x| x))) }
}

/// # Safety
/// See [`Total::fold_columns`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn columns_float(op: Reduce, dtype: Native, rows: &[*const u8], totals: &mut [f64]) {
    // SAFETY: by the contract of this function.
    unsafe {
        with_fold!(op, F => with_float!(dtype, S => {
            columns::<S, F, <F as Fold>::Part<S>, f64>(rows, totals, Into::into)
        }))
    }
}

/// # Safety
/// See [`Total::fold_columns`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn columns_int(op: Reduce, dtype: Native, rows: &[*const u8], totals: &mut [i64]) {
    // SAFETY: by the contract of this function.
    unsafe { with_fold!(op, F => with_integer!(dtype, S => columns::<S, F, i64, i64>(rows, totals, |x| x))) }
}

/// The wide type in which blocks are joined: f64 for floats, i64 for the rest.
pub(super) trait Total: Copy + Default + Send + Sync {
    fn identity(op: Reduce) -> Self;
    fn join(op: Reduce, a: Self, b: Self) -> Self;
    /// As an element, of sums that are divided by a count their quotient.
    fn store<D: Lane>(self, count: Option<f64>) -> D;
    /// Folds from each start one run, at most [`BLOCK`] elements.
    ///
    /// # Safety
    /// `n` elements of `dtype` with `stride` are readable from each start.
    unsafe fn fold(op: Reduce, dtype: Native, starts: &[*const u8], stride: isize, n: usize, totals: &mut [Self]);
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
            unsafe fn fold(op: Reduce, dtype: Native, starts: &[*const u8], stride: isize, n: usize, totals: &mut [Self]) {
                // SAFETY: by the contract of this function.
                unsafe { $fold(op, dtype, starts, stride, n, totals) }
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
