//! Elementwise reduction of byte buffers, as an exchange needs it at the receiver. Safe code for any alignment.

use half::{bf16, f16};
use oflow_kernels::{DType, ReduceOp};
use smallvec::{SmallVec, smallvec};

/// Calls `$f::<T>` with the element type of a dtype and how it is read and written.
macro_rules! with_element {
    ($dtype:expr, $f:ident($($arg:expr),*)) => {
        match $dtype {
            DType::Bool | DType::U8 => $f::<u8>($($arg),*),
            DType::I8 => $f::<i8>($($arg),*),
            DType::I32 => $f::<i32>($($arg),*),
            DType::I64 => $f::<i64>($($arg),*),
            DType::F16 => $f::<f16>($($arg),*),
            DType::BF16 => $f::<bf16>($($arg),*),
            DType::F32 => $f::<f32>($($arg),*),
            DType::F64 => $f::<f64>($($arg),*),
            other => unreachable!("{other} has no reduction here"),
        }
    };
}

trait Number: Copy {
    /// What sums are kept in.
    type Wide: Copy + PartialOrd;
    const SIZE: usize;
    fn read(b: &[u8]) -> Self::Wide;
    fn write(w: Self::Wide, out: &mut [u8]);
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn least() -> Self::Wide;
    fn greatest() -> Self::Wide;
    fn zero() -> Self::Wide;
}

macro_rules! number {
    ($($t:ty as $w:ty, |$a:ident, $b:ident| $add:expr, $least:expr, $greatest:expr, |$x:ident| $widen:expr, |$y:ident| $narrow:expr;)*) => {$(
        impl Number for $t {
            type Wide = $w;
            const SIZE: usize = size_of::<$t>();
            fn read(b: &[u8]) -> $w {
                let mut raw = [0; size_of::<$t>()];
                raw.copy_from_slice(b);
                let $x = <$t>::from_ne_bytes(raw);
                $widen
            }
            fn write($y: $w, out: &mut [u8]) {
                out.copy_from_slice(&<$t>::to_ne_bytes($narrow));
            }
            fn add($a: $w, $b: $w) -> $w { $add }
            fn least() -> $w { $least }
            fn greatest() -> $w { $greatest }
            fn zero() -> $w { Default::default() }
        }
    )*};
}

number! {
    u8 as u8, |a, b| a.wrapping_add(b), u8::MIN, u8::MAX, |x| x, |y| y;
    i8 as i8, |a, b| a.wrapping_add(b), i8::MIN, i8::MAX, |x| x, |y| y;
    i32 as i32, |a, b| a.wrapping_add(b), i32::MIN, i32::MAX, |x| x, |y| y;
    i64 as i64, |a, b| a.wrapping_add(b), i64::MIN, i64::MAX, |x| x, |y| y;
    f16 as f32, |a, b| a + b, f32::NEG_INFINITY, f32::INFINITY, |x| x.to_f32(), |y| f16::from_f32(y);
    bf16 as f32, |a, b| a + b, f32::NEG_INFINITY, f32::INFINITY, |x| x.to_f32(), |y| bf16::from_f32(y);
    f32 as f32, |a, b| a + b, f32::NEG_INFINITY, f32::INFINITY, |x| x, |y| y;
    f64 as f64, |a, b| a + b, f64::NEG_INFINITY, f64::INFINITY, |x| x, |y| y;
}

fn combine<T: Number>(op: ReduceOp, a: T::Wide, b: T::Wide) -> T::Wide {
    // A NaN does not equal itself and wins over everything.
    #[allow(clippy::eq_op)]
    let nan = |x: T::Wide| x != x;
    match op {
        ReduceOp::Sum => T::add(a, b),
        _ if nan(a) => a,
        _ if nan(b) => b,
        ReduceOp::Max if b > a => b,
        ReduceOp::Min if b < a => b,
        _ => a,
    }
}

fn reduce_as<T: Number>(out: &mut [u8], parts: &[&[u8]], op: ReduceOp) {
    for (i, o) in out.chunks_exact_mut(T::SIZE).enumerate() {
        let mut values = parts.iter().map(|p| T::read(&p[i * T::SIZE..(i + 1) * T::SIZE]));
        let first = values.next().unwrap_or_else(T::zero);
        T::write(values.fold(first, |a, b| combine::<T>(op, a, b)), o);
    }
}

/// `out` becomes the reduction of the parts in their order. Integers wrap, NaN wins in max and min, halves are summed in
/// f32 and rounded once, on bool max is or and min is and.
///
/// # Panics
/// When a part is shorter than `out`.
pub fn reduce_into(out: &mut [u8], parts: &[&[u8]], dtype: DType, op: ReduceOp) {
    with_element!(dtype, reduce_as(out, parts, op))
}

fn identity_as<T: Number>(op: ReduceOp) -> Identity {
    let mut out = Identity::from_elem(0, T::SIZE);
    let value = match op {
        ReduceOp::Sum => T::zero(),
        ReduceOp::Max => T::least(),
        ReduceOp::Min => T::greatest(),
    };
    T::write(value, &mut out);
    out
}

/// The bytes of one element.
type Identity = SmallVec<[u8; 8]>;

/// The bytes of the element that a reduction leaves unchanged.
pub fn identity(dtype: DType, op: ReduceOp) -> Identity {
    match dtype {
        // Or and and: false and true.
        DType::Bool => smallvec![u8::from(op == ReduceOp::Min)],
        _ => with_element!(dtype, identity_as(op)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_change_nothing_and_nan_wins() {
        for dtype in DType::ALL {
            for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
                if dtype == DType::Bool && op == ReduceOp::Sum {
                    continue;
                }
                // 1 in the integers and bool; some positive number in the floats.
                let one = [1u8, 0, 0, 0, 0, 0, 0, 0];
                let (one, none) = (&one[..dtype.size()], identity(dtype, op));
                let mut out = vec![9; dtype.size()];
                reduce_into(&mut out, &[&none, one, &none], dtype, op);
                assert_eq!(out, one, "{dtype} {op}");
            }
        }
        let (nan, one) = (f32::NAN.to_ne_bytes(), 1f32.to_ne_bytes());
        for parts in [[&nan[..], &one], [&one, &nan]] {
            let mut out = [0; 4];
            reduce_into(&mut out, &parts, DType::F32, ReduceOp::Max);
            assert!(f32::from_ne_bytes(out).is_nan());
        }
    }
}
