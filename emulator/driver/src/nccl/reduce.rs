//! Element types and reductions. Halves are rounded after each step, as rings that carry halves do.

use half::{bf16, f16};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Type {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    BF16,
}

impl Type {
    pub fn of(code: i32) -> Option<Type> {
        use Type::*;
        [I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16].get(usize::try_from(code).ok()?).copied()
    }
    pub fn size(self) -> usize {
        match self {
            Type::I8 | Type::U8 => 1,
            Type::F16 | Type::BF16 => 2,
            Type::I32 | Type::U32 | Type::F32 => 4,
            Type::I64 | Type::U64 | Type::F64 => 8,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    Sum,
    Prod,
    Max,
    Min,
    Avg,
}

impl Op {
    pub fn of(code: i32) -> Option<Op> {
        [Op::Sum, Op::Prod, Op::Max, Op::Min, Op::Avg].get(usize::try_from(code).ok()?).copied()
    }
}

macro_rules! reduce_as {
    ($type:ty, $sums:expr, $op:expr, $add:expr, $mul:expr, $max:expr, $min:expr, $div:expr) => {{
        let parts: Vec<Vec<$type>> = $sums.iter().map(|bytes| cast::<$type>(bytes)).collect();
        let mut sum = parts[0].clone();
        for part in &parts[1..] {
            for (a, &b) in sum.iter_mut().zip(part) {
                *a = match $op {
                    Op::Sum | Op::Avg => $add(*a, b),
                    Op::Prod => $mul(*a, b),
                    Op::Max => $max(*a, b),
                    Op::Min => $min(*a, b),
                };
            }
        }
        if $op == Op::Avg {
            sum.iter_mut().for_each(|a| *a = $div(*a, parts.len()));
        }
        // SAFETY: numbers without padding, read as bytes.
        unsafe { std::slice::from_raw_parts(sum.as_ptr().cast::<u8>(), size_of_val(&sum[..])) }.to_vec()
    }};
}

fn cast<T: Copy>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len() / size_of::<T>();
    // SAFETY: any bits are a number; read unaligned, within the slice.
    (0..count).map(|at| unsafe { bytes.as_ptr().cast::<T>().add(at).read_unaligned() }).collect()
}

macro_rules! integers {
    ($type:ty, $parts:expr, $op:expr) => {
        reduce_as!(
            $type,
            $parts,
            $op,
            <$type>::wrapping_add,
            <$type>::wrapping_mul,
            <$type>::max,
            <$type>::min,
            |a: $type, n: usize| a / n as $type
        )
    };
}
macro_rules! floats {
    ($type:ty, $parts:expr, $op:expr) => {
        reduce_as!(
            $type,
            $parts,
            $op,
            |a: $type, b| a + b,
            |a: $type, b| a * b,
            <$type>::max,
            <$type>::min,
            |a: $type, n: usize| a / n as $type
        )
    };
}
macro_rules! halves {
    ($type:ty, $parts:expr, $op:expr) => {
        reduce_as!(
            $type,
            $parts,
            $op,
            |a: $type, b: $type| <$type>::from_f32(a.to_f32() + b.to_f32()),
            |a: $type, b: $type| <$type>::from_f32(a.to_f32() * b.to_f32()),
            |a: $type, b: $type| <$type>::from_f32(a.to_f32().max(b.to_f32())),
            |a: $type, b: $type| <$type>::from_f32(a.to_f32().min(b.to_f32())),
            |a: $type, n: usize| <$type>::from_f32(a.to_f32() / n as f32)
        )
    };
}

/// The reduction of equally long parts, in rank order.
pub fn reduce(dtype: Type, op: Op, parts: &[Vec<u8>]) -> Vec<u8> {
    match dtype {
        Type::I8 => integers!(i8, parts, op),
        Type::U8 => integers!(u8, parts, op),
        Type::I32 => integers!(i32, parts, op),
        Type::U32 => integers!(u32, parts, op),
        Type::I64 => integers!(i64, parts, op),
        Type::U64 => integers!(u64, parts, op),
        Type::F16 => halves!(f16, parts, op),
        Type::BF16 => halves!(bf16, parts, op),
        Type::F32 => floats!(f32, parts, op),
        Type::F64 => floats!(f64, parts, op),
    }
}
