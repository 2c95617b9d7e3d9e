//! Element types: their sizes, names, kinds and PyTorch's promotion lattice.
//!
//! A [`DType`] is a small number, so a `match` over dtypes needs a `_` arm everywhere. oflow computes with the built-in dtypes
//! ([`Builtin`]); others are registered by programs ([`Registered`]) and are moved, stored and printed.

mod registered;

use half::{bf16, f16};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::{KernelError, ReduceOp, Result, Scalar};

pub use registered::Registered;

/// The type of a tensor's elements: a built-in one (`DType::F32` …) or one that the program registered ([`Registered`]).
///
/// The number inside belongs to this process: another rank may have registered its dtypes in another order. What goes to other
/// ranks or into files is the text ([`DType::name`]) or its hash ([`DType::fingerprint`]); order and hash of a dtype follow them.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
// The place in the list of all dtypes, and in the low bits the number of the built-in dtype that an element is stored as: size,
// kind and storage follow without a look at the registry.
pub struct DType(u32);

/// Bits of the number of the storage.
const STORAGE_BITS: u32 = 4;

/// The dtypes that oflow computes with. Kernels match over it, exhaustively; everything else takes a [`DType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Builtin {
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

/// The coarse kind of a dtype or scalar; promotion compares the kinds of numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTypeKind {
    /// Booleans.
    Bool,
    /// Integers.
    Int,
    /// Floating point.
    Float,
    /// A registered dtype: its elements are moved, not computed with.
    Opaque,
}

impl Builtin {
    /// All of them, in declared order.
    pub const ALL: [Builtin; 9] = [
        Builtin::Bool,
        Builtin::U8,
        Builtin::I8,
        Builtin::I32,
        Builtin::I64,
        Builtin::F16,
        Builtin::BF16,
        Builtin::F32,
        Builtin::F64,
    ];

    /// Returns the bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Builtin::Bool | Builtin::U8 | Builtin::I8 => 1,
            Builtin::F16 | Builtin::BF16 => 2,
            Builtin::I32 | Builtin::F32 => 4,
            Builtin::I64 | Builtin::F64 => 8,
        }
    }

    /// Returns the short name, such as `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            Builtin::Bool => "bool",
            Builtin::U8 => "u8",
            Builtin::I8 => "i8",
            Builtin::I32 => "i32",
            Builtin::I64 => "i64",
            Builtin::F16 => "f16",
            Builtin::BF16 => "bf16",
            Builtin::F32 => "f32",
            Builtin::F64 => "f64",
        }
    }

    /// Returns the kind: bool, int or float.
    #[inline]
    pub const fn kind(self) -> DTypeKind {
        match self {
            Builtin::Bool => DTypeKind::Bool,
            Builtin::U8 | Builtin::I8 | Builtin::I32 | Builtin::I64 => DTypeKind::Int,
            Builtin::F16 | Builtin::BF16 | Builtin::F32 | Builtin::F64 => DTypeKind::Float,
        }
    }

    /// Whether this is f16, bf16, f32 or f64.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// Whether this is f16 or bf16, which kernels accumulate in f32.
    #[inline]
    pub const fn is_half(self) -> bool {
        matches!(self, Builtin::F16 | Builtin::BF16)
    }

    /// Returns the number in the bytes of one element; none where there are more or fewer bytes than an element has.
    pub fn decode(self, bytes: &[u8]) -> Option<Scalar> {
        Some(match self {
            Builtin::Bool => Scalar::Bool(u8::from_ne_bytes(bytes.try_into().ok()?) != 0),
            Builtin::U8 => u8::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::I8 => i8::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::I32 => i32::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::I64 => i64::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::F16 => f16::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::BF16 => bf16::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::F32 => f32::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::F64 => f64::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
        })
    }

    /// As a [`DType`].
    pub const fn dtype(self) -> DType {
        DType((self as u32) << STORAGE_BITS | self as u32)
    }
}

impl DType {
    /// One byte, 0 or 1.
    #[allow(non_upper_case_globals)]
    pub const Bool: DType = Builtin::Bool.dtype();
    /// Unsigned 8-bit integer.
    pub const U8: DType = Builtin::U8.dtype();
    /// Signed 8-bit integer.
    pub const I8: DType = Builtin::I8.dtype();
    /// Signed 32-bit integer.
    pub const I32: DType = Builtin::I32.dtype();
    /// Signed 64-bit integer.
    pub const I64: DType = Builtin::I64.dtype();
    /// IEEE half precision.
    pub const F16: DType = Builtin::F16.dtype();
    /// bfloat16: f32's exponent with 8 bits of significand.
    pub const BF16: DType = Builtin::BF16.dtype();
    /// IEEE single precision.
    pub const F32: DType = Builtin::F32.dtype();
    /// IEEE double precision.
    pub const F64: DType = Builtin::F64.dtype();

    /// The built-in dtypes, in declared order. Registered ones are not listed.
    pub const BUILTIN: [DType; 9] =
        [DType::Bool, DType::U8, DType::I8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

    /// A number that is the same on every rank: the place of a built-in dtype in [`DType::BUILTIN`], a hash of the text of a
    /// registered one.
    pub fn fingerprint(self) -> u64 {
        match self.builtin() {
            Some(b) => b as u64,
            None => registered::entry(self).fingerprint(),
        }
    }

    /// The dtype with that fingerprint; none if this process has not registered it.
    pub fn of_fingerprint(fingerprint: u64) -> Option<DType> {
        let builtin = usize::try_from(fingerprint).ok().and_then(|i| DType::BUILTIN.get(i).copied());
        builtin.or_else(|| registered::of_fingerprint(fingerprint))
    }

    /// The place in the list of all dtypes of this process.
    const fn index(self) -> usize {
        (self.0 >> STORAGE_BITS) as usize
    }

    /// The built-in dtype that has the bytes of an element. Built-in dtypes are stored as themselves.
    pub const fn storage(self) -> Builtin {
        Builtin::ALL[(self.0 & ((1 << STORAGE_BITS) - 1)) as usize]
    }

    /// The built-in dtype that this is; none for a registered one.
    pub const fn builtin(self) -> Option<Builtin> {
        if self.index() < Builtin::ALL.len() { Some(self.storage()) } else { None }
    }

    /// The built-in dtype that this is, for a kernel that computes with the elements.
    ///
    /// # Errors
    /// For a registered dtype.
    pub fn computed(self) -> Result<Builtin> {
        self.builtin().ok_or_else(|| {
            KernelError::new(format!("{self} is a registered dtype, which is moved and not computed with"))
        })
    }

    /// Whether this is one of [`DType::BUILTIN`].
    pub const fn is_builtin(self) -> bool {
        self.builtin().is_some()
    }

    /// Returns the bytes of one element.
    pub const fn size(self) -> usize {
        self.storage().size()
    }

    /// Returns the text that [`FromStr`] accepts: a short name such as `f32`, of a registered dtype with its parameters:
    /// `qint8(scale=0.5, zero=3)`. Two dtypes are equal exactly if their texts are.
    pub fn name(self) -> &'static str {
        match self.builtin() {
            Some(b) => b.name(),
            None => registered::entry(self).text(),
        }
    }

    /// Returns the kind: bool, int or float; opaque for a registered dtype, whatever it is stored as.
    pub const fn kind(self) -> DTypeKind {
        match self.builtin() {
            Some(b) => b.kind(),
            None => DTypeKind::Opaque,
        }
    }

    /// Whether this is f16, bf16, f32 or f64.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// Returns the smallest and the largest integer of a built-in integer dtype.
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

    /// Whether elements can be reduced to one by `op`: bools have no sum, registered dtypes have no reduction. A tensor can
    /// be P(op) exactly if its dtype reduces.
    pub const fn reduces(self, op: ReduceOp) -> bool {
        match self.kind() {
            DTypeKind::Opaque => false,
            DTypeKind::Bool => !matches!(op, ReduceOp::Sum),
            DTypeKind::Int | DTypeKind::Float => true,
        }
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
    /// # Errors
    /// For a registered dtype with any other.
    ///
    /// ```
    /// use oflow_kernels::DType;
    /// assert_eq!(DType::F16.promote(DType::BF16)?, DType::F32);
    /// assert_eq!(DType::U8.promote(DType::I8)?, DType::I32); // PyTorch: i16, which oflow does not have yet
    /// assert_eq!(DType::I64.promote(DType::F16)?, DType::F16);
    /// # Ok::<(), oflow_kernels::KernelError>(())
    /// ```
    pub fn promote(self, other: DType) -> Result<DType> {
        if self == other {
            return Ok(self);
        }
        if !self.is_builtin() || !other.is_builtin() {
            return Err(KernelError::new(format!("{self} and {other} do not promote to a common dtype")));
        }
        Ok(match (self.kind(), other.kind()) {
            (a, b) if a > b => self,
            (a, b) if a < b => other,
            _ => match (self, other) {
                (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I32,
                (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
                (a, b) if a.size() >= b.size() => a,
                (_, b) => b,
            },
        })
    }

    /// The dtype of `tensor op scalar`: the scalar counts only when its kind is above the tensor's (PyTorch's rule for
    /// Python scalars); then a float scalar gives the default float f32 and an int scalar i64.
    pub fn promote_scalar(self, scalar: DTypeKind) -> DType {
        match scalar {
            DTypeKind::Float if self.kind() < scalar => DType::F32,
            DTypeKind::Int if self.kind() < scalar => DType::I64,
            _ => self,
        }
    }
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By the fingerprint: hashes of types are compared between ranks.
impl Hash for DType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

/// Built-in dtypes in declared order, then registered ones by their texts: the same order on every rank.
impl Ord for DType {
    fn cmp(&self, other: &DType) -> Ordering {
        match (self.builtin(), other.builtin()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.name().cmp(other.name()),
        }
    }
}

impl PartialOrd for DType {
    fn partial_cmp(&self, other: &DType) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for DType {
    type Err = KernelError;
    fn from_str(s: &str) -> Result<Self> {
        match DType::BUILTIN.into_iter().find(|d| d.name() == s) {
            Some(d) => Ok(d),
            None => registered::parse(s),
        }
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
        for a in DType::BUILTIN {
            assert_eq!(a.promote(a).unwrap(), a);
            for b in DType::BUILTIN {
                assert_eq!(a.promote(b).unwrap(), b.promote(a).unwrap(), "{a} {b}");
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for (d, b) in DType::BUILTIN.into_iter().zip(Builtin::ALL) {
            assert_eq!(d.name().parse::<DType>().unwrap(), d);
            assert_eq!(DType::of_fingerprint(d.fingerprint()), Some(d));
            assert_eq!((d.builtin(), d.storage(), d.size(), d.kind()), (Some(b), b, b.size(), b.kind()));
        }
        assert!("f8".parse::<DType>().unwrap_err().0.contains("known: bool"));
    }

    #[test]
    fn the_order_is_the_declared_one() {
        assert!(DType::BUILTIN.is_sorted());
        assert_eq!(std::mem::size_of::<DType>(), 4);
    }
}
