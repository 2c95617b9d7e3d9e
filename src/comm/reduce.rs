//! Elementwise reduction of several byte buffers in their order.

use super::{DType, ReduceOp};
use half::{bf16, f16};

/// `dst[i] = srcs[0][i] op srcs[1][i] op …`, in that order. f16 and bf16 accumulate in f32 and round once; integers wrap;
/// NaN propagates through max and min; on bool max is *or* and min *and*.
pub(super) fn reduce_slices(dst: &mut [u8], srcs: &[&[u8]], dtype: DType, op: ReduceOp) {
    use DType::*;
    match dtype {
        Bool | U8 => fold::<u8, 1>(dst, srcs, op),
        I8 => fold::<i8, 1>(dst, srcs, op),
        I32 => fold::<i32, 4>(dst, srcs, op),
        I64 => fold::<i64, 8>(dst, srcs, op),
        F16 => fold::<f16, 2>(dst, srcs, op),
        BF16 => fold::<bf16, 2>(dst, srcs, op),
        F32 => fold::<f32, 4>(dst, srcs, op),
        F64 => fold::<f64, 8>(dst, srcs, op),
        other => unreachable!("reduction of {other}"),
    }
}

/// An element of `N` bytes that is accumulated as `Acc`.
trait Reducible<const N: usize> {
    type Acc: Copy;
    fn load(bytes: [u8; N]) -> Self::Acc;
    fn store(acc: Self::Acc) -> [u8; N];
    fn sum(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn max(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn min(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

macro_rules! integers {
    ($($t:ty, $n:literal;)*) => {$(
        impl Reducible<$n> for $t {
            type Acc = $t;
            fn load(bytes: [u8; $n]) -> $t { <$t>::from_ne_bytes(bytes) }
            fn store(acc: $t) -> [u8; $n] { acc.to_ne_bytes() }
            fn sum(a: $t, b: $t) -> $t { a.wrapping_add(b) }
            fn max(a: $t, b: $t) -> $t { Ord::max(a, b) }
            fn min(a: $t, b: $t) -> $t { Ord::min(a, b) }
        }
    )*};
}

macro_rules! floats {
    ($($t:ty, $acc:ty, $n:literal, |$x:ident| $widen:expr, |$y:ident| $narrow:expr;)*) => {$(
        impl Reducible<$n> for $t {
            type Acc = $acc;
            fn load(bytes: [u8; $n]) -> $acc { let $x = <$t>::from_ne_bytes(bytes); $widen }
            fn store($y: $acc) -> [u8; $n] { ($narrow).to_ne_bytes() }
            fn sum(a: $acc, b: $acc) -> $acc { a + b }
            fn max(a: $acc, b: $acc) -> $acc { if a > b || a.is_nan() { a } else { b } }
            fn min(a: $acc, b: $acc) -> $acc { if a < b || a.is_nan() { a } else { b } }
        }
    )*};
}

integers! { u8, 1; i8, 1; i32, 4; i64, 8; }
floats! {
    f16, f32, 2, |x| x.to_f32(), |y| f16::from_f32(y);
    bf16, f32, 2, |x| x.to_f32(), |y| bf16::from_f32(y);
    f32, f32, 4, |x| x, |y| y;
    f64, f64, 8, |x| x, |y| y;
}

fn fold<T: Reducible<N>, const N: usize>(dst: &mut [u8], srcs: &[&[u8]], op: ReduceOp) {
    match op {
        ReduceOp::Sum => fold_with::<T, N>(dst, srcs, T::sum),
        ReduceOp::Max => fold_with::<T, N>(dst, srcs, T::max),
        ReduceOp::Min => fold_with::<T, N>(dst, srcs, T::min),
    }
}

/// Blocks of elements stay in registers and the first-level cache while the sources are added in order.
fn fold_with<T: Reducible<N>, const N: usize>(dst: &mut [u8], srcs: &[&[u8]], f: impl Fn(T::Acc, T::Acc) -> T::Acc) {
    const BLOCK: usize = 256;
    let Some((first, rest)) = srcs.split_first() else {
        return;
    };
    let mut acc = [T::load([0; N]); BLOCK];
    let (dst, _) = dst.as_chunks_mut::<N>();
    let (first, _) = first.as_chunks::<N>();
    for start in (0..dst.len()).step_by(BLOCK) {
        let end = dst.len().min(start + BLOCK);
        for (a, x) in acc.iter_mut().zip(&first[start..end]) {
            *a = T::load(*x);
        }
        for src in rest {
            let (src, _) = src.as_chunks::<N>();
            for (a, x) in acc.iter_mut().zip(&src[start..end]) {
                *a = f(*a, T::load(*x));
            }
        }
        for (d, a) in dst[start..end].iter_mut().zip(&acc) {
            *d = T::store(*a);
        }
    }
}
