//! Element types, their sizes, names and PyTorch's promotion lattice.

use half::{bf16, f16};
use std::fmt;
use std::str::FromStr;

use crate::{KernelError, ReduceOp, Scalar};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE half precision.
    F16,
    /// bfloat16: f32's exponent with 8 bits of significand.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

/// The coarse kind of a dtype or scalar; promotion compares kinds first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTypeKind {
    /// Booleans.
    Bool,
    /// Integers.
    Int,
    /// Floating point.
    Float,
}

impl DType {
    /// Every dtype, in declared order.
    pub const ALL: [DType; 9] =
        [DType::Bool, DType::U8, DType::I8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

    /// Returns the bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// Returns the short name, such as `f32`, which [`FromStr`] accepts.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Returns the kind: bool, int or float.
    pub const fn kind(self) -> DTypeKind {
        match self {
            DType::Bool => DTypeKind::Bool,
            DType::U8 | DType::I8 | DType::I32 | DType::I64 => DTypeKind::Int,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => DTypeKind::Float,
        }
    }

    /// Whether this is f16, bf16, f32 or f64.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// Returns the smallest and the largest integer of an integer dtype.
    pub const fn integers(self) -> Option<(i64, i64)> {
        match self {
            DType::U8 => Some((0, u8::MAX as i64)),
            DType::I8 => Some((i8::MIN as i64, i8::MAX as i64)),
            DType::I32 => Some((i32::MIN as i64, i32::MAX as i64)),
            DType::I64 => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// Whether this is f16 or bf16, which kernels accumulate in f32.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }
    /// Bytes of an element of a partial result of a reduction: sums of halves are accumulated in f32.
    pub const fn partial_size(self, op: ReduceOp) -> usize {
        match op {
            ReduceOp::Sum if self.is_half() => DType::F32.size(),
            _ => self.size(),
        }
    }

    /// The dtype both operands are converted to, by PyTorch's lattice (`torch.promote_types`).
    ///
    /// ```
    /// use oflow_kernels::DType;
    /// assert_eq!(DType::F16.promote(DType::BF16), DType::F32);
    /// assert_eq!(DType::U8.promote(DType::I8), DType::I32); // PyTorch: i16, which oflow does not have yet
    /// assert_eq!(DType::I64.promote(DType::F16), DType::F16);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        match (self.kind(), other.kind()) {
            (a, b) if a > b => self,
            (a, b) if a < b => other,
            _ => match (self, other) {
                (U8, I8) | (I8, U8) => I32,
                (F16, BF16) | (BF16, F16) => F32,
                (a, b) => {
                    if a.size() >= b.size() {
                        a
                    } else {
                        b
                    }
                }
            },
        }
    }

    /// The dtype of `tensor op scalar`: the scalar counts only when its kind is above the tensor's (PyTorch's rule for
    /// Python scalars); then a float scalar gives the default float f32 and an int scalar i64.
    pub fn promote_scalar(self, scalar: DTypeKind) -> DType {
        if scalar <= self.kind() {
            self
        } else {
            match scalar {
                DTypeKind::Float => DType::F32,
                DTypeKind::Int => DType::I64,
                DTypeKind::Bool => DType::Bool,
            }
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = KernelError;
    fn from_str(s: &str) -> Result<Self, KernelError> {
        DType::ALL.into_iter().find(|d| d.name() == s).ok_or_else(|| {
            let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
            KernelError::new(format!("unknown dtype '{s}'; known: {}", names.join(", ")))
        })
    }
}

/// A Rust type that can be an element of a tensor.
pub trait Element: Copy + Send + Sync + 'static + fmt::Debug + PartialEq + PartialOrd {
    /// The dtype whose memory layout this type has.
    const DTYPE: DType;
    /// Converts with C's `as` meaning (floats truncate and saturate, bool is `!= 0`).
    fn from_scalar(s: Scalar) -> Self;
    /// Widens to a scalar without loss.
    fn to_scalar(self) -> Scalar;
}

macro_rules! element {
    ($($t:ty, $d:ident, |$s:ident| $from:expr, |$x:ident| $to:expr;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            fn from_scalar($s: Scalar) -> Self { $from }
            fn to_scalar(self) -> Scalar { let $x = self; $to }
        }
    )*};
}

element! {
    bool, Bool, |s| s.to_bool(), |x| Scalar::Bool(x);
    u8, U8, |s| s.to_i64() as u8, |x| Scalar::Int(x as i64);
    i8, I8, |s| s.to_i64() as i8, |x| Scalar::Int(x as i64);
    i32, I32, |s| s.to_i64() as i32, |x| Scalar::Int(x as i64);
    i64, I64, |s| s.to_i64(), |x| Scalar::Int(x);
    f16, F16, |s| f16::from_f64(s.to_f64()), |x| Scalar::Float(x.to_f64());
    bf16, BF16, |s| bf16::from_f64(s.to_f64()), |x| Scalar::Float(x.to_f64());
    f32, F32, |s| s.to_f64() as f32, |x| Scalar::Float(x as f64);
    f64, F64, |s| s.to_f64(), |x| Scalar::Float(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} {b}");
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for d in DType::ALL {
            assert_eq!(d.name().parse::<DType>().unwrap(), d);
        }
        assert!("f8".parse::<DType>().unwrap_err().0.contains("known: bool"));
    }
}
