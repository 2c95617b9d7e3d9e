//! Element types: their sizes, names, kinds and PyTorch's promotion lattice.
//!
//! A [`DType`] is a small number, so a `match` over dtypes needs a `_` arm everywhere. oflow computes with the built-in dtypes
//! ([`Builtin`]) but for the 8-bit floats, which are stored and cast; others are registered ([`Registered`]) and are moved, stored and
//! printed: quantised integers, which every process has, and those of the program.

mod f8;
mod quantised;
mod registered;

use half::{bf16, f16};
use num_complex::Complex;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::{KernelError, ReduceOp, Result, Scalar};

pub use f8::{F8E4M3FN, F8E5M2};
pub use quantised::Quantization;
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

/// The dtypes that oflow brings. What depends on the bytes of an element matches over it, exhaustively; everything else takes a
/// [`DType`]. The numbers are those of fingerprints: new ones are appended.
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
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// 8-bit float with 4 bits of exponent and 3 of fraction, without infinities: the largest number is 448.
    F8E4M3FN,
    /// 8-bit float with 5 bits of exponent and 2 of fraction: the upper byte of an f16.
    F8E5M2,
    /// Complex number: real and imaginary part, each an f32.
    C64,
    /// Complex number: real and imaginary part, each an f64.
    C128,
}

/// The coarse kind of a dtype or scalar; promotion compares the kinds of numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTypeKind {
    /// The kind of `bool`.
    Bool,
    /// Integers with and without sign.
    Int,
    /// Floating point numbers of all widths.
    Float,
    /// Complex numbers of all widths.
    Complex,
    /// 8-bit floats and registered dtypes: their elements are moved, not computed with.
    Opaque,
}

impl Builtin {
    /// All of them, in declared order.
    pub const ALL: [Builtin; 16] = [
        Builtin::Bool,
        Builtin::U8,
        Builtin::I8,
        Builtin::I32,
        Builtin::I64,
        Builtin::F16,
        Builtin::BF16,
        Builtin::F32,
        Builtin::F64,
        Builtin::I16,
        Builtin::U16,
        Builtin::U32,
        Builtin::F8E4M3FN,
        Builtin::F8E5M2,
        Builtin::C64,
        Builtin::C128,
    ];

    /// Returns the bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Builtin::Bool | Builtin::U8 | Builtin::I8 | Builtin::F8E4M3FN | Builtin::F8E5M2 => 1,
            Builtin::F16 | Builtin::BF16 | Builtin::I16 | Builtin::U16 => 2,
            Builtin::I32 | Builtin::U32 | Builtin::F32 => 4,
            Builtin::I64 | Builtin::F64 | Builtin::C64 => 8,
            Builtin::C128 => 16,
        }
    }

    /// Returns the alignment of an element in the memory of the host: its size, of c128 that of a part.
    pub const fn align(self) -> usize {
        if matches!(self, Builtin::C128) { Builtin::F64.size() } else { self.size() }
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
            Builtin::I16 => "i16",
            Builtin::U16 => "u16",
            Builtin::U32 => "u32",
            Builtin::F8E4M3FN => "f8_e4m3fn",
            Builtin::F8E5M2 => "f8_e5m2",
            Builtin::C64 => "c64",
            Builtin::C128 => "c128",
        }
    }

    /// Returns the kind: bool, int, float or complex; opaque for the 8-bit floats.
    #[inline]
    pub const fn kind(self) -> DTypeKind {
        match self {
            Builtin::Bool => DTypeKind::Bool,
            Builtin::U8 | Builtin::I8 | Builtin::I16 | Builtin::U16 => DTypeKind::Int,
            Builtin::I32 | Builtin::U32 | Builtin::I64 => DTypeKind::Int,
            Builtin::F8E4M3FN | Builtin::F8E5M2 => DTypeKind::Opaque,
            Builtin::F16 | Builtin::BF16 | Builtin::F32 | Builtin::F64 => DTypeKind::Float,
            Builtin::C64 | Builtin::C128 => DTypeKind::Complex,
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

    /// Whether this is c64 or c128.
    #[inline]
    pub const fn is_complex(self) -> bool {
        self.part().is_some()
    }

    /// The dtype of the two parts of a complex number; none for the others.
    #[inline]
    pub const fn part(self) -> Option<Builtin> {
        match self {
            Builtin::C64 => Some(Builtin::F32),
            Builtin::C128 => Some(Builtin::F64),
            _ => None,
        }
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
            Builtin::I16 => i16::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::U16 => u16::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::U32 => u32::from_ne_bytes(bytes.try_into().ok()?).to_scalar(),
            Builtin::F8E4M3FN => F8E4M3FN(u8::from_ne_bytes(bytes.try_into().ok()?)).to_scalar(),
            Builtin::F8E5M2 => F8E5M2(u8::from_ne_bytes(bytes.try_into().ok()?)).to_scalar(),
            Builtin::C64 | Builtin::C128 => {
                let part = self.part()?;
                let (re, im) = bytes.split_at_checked(part.size())?;
                Scalar::Complex(part.decode(re)?.to_f64(), part.decode(im)?.to_f64())
            }
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
    /// Signed 16-bit integer.
    pub const I16: DType = Builtin::I16.dtype();
    /// Unsigned 16-bit integer.
    pub const U16: DType = Builtin::U16.dtype();
    /// Unsigned 32-bit integer.
    pub const U32: DType = Builtin::U32.dtype();
    /// 8-bit float with 4 bits of exponent and 3 of fraction, without infinities; casts saturate. It is stored and cast, not computed with.
    pub const F8E4M3FN: DType = Builtin::F8E4M3FN.dtype();
    /// 8-bit float with 5 bits of exponent and 2 of fraction: stored and cast, not computed with.
    pub const F8E5M2: DType = Builtin::F8E5M2.dtype();
    /// Complex number: real and imaginary part, each an f32.
    pub const C64: DType = Builtin::C64.dtype();
    /// Complex number: real and imaginary part, each an f64.
    pub const C128: DType = Builtin::C128.dtype();

    /// The built-in dtypes, in declared order. Registered ones are not listed.
    pub const BUILTIN: [DType; Builtin::ALL.len()] = {
        let mut all = [DType::Bool; Builtin::ALL.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = Builtin::ALL[i].dtype();
            i += 1;
        }
        all
    };

    /// Dtypes of [`DType::BUILTIN`] that all kernels compute with: real numbers and bool.
    pub const REAL: [DType; 12] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::I16,
        DType::U16,
        DType::U32,
    ];

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
    /// For a complex or registered dtype and an 8-bit float.
    pub fn computed(self) -> Result<Builtin> {
        match self.builtin() {
            Some(b) if self.is_real() => Ok(b),
            Some(b) if b.is_complex() => {
                Err(KernelError::new(format!("this kernel computes with real numbers, not with {self}")))
            }
            Some(_) => Err(KernelError::new(format!("{self} is stored and cast, not computed with"))),
            None => {
                Err(KernelError::new(format!("{self} is a registered dtype, which is moved and not computed with")))
            }
        }
    }

    /// The built-in dtype that this is, for a kernel that casts.
    ///
    /// # Errors
    /// For a registered dtype.
    pub fn cast(self) -> Result<Builtin> {
        self.builtin().ok_or_else(|| {
            KernelError::new(format!("{self} is a registered dtype, which is moved and not computed with"))
        })
    }

    /// Whether this is one of [`DType::REAL`].
    pub const fn is_real(self) -> bool {
        matches!(self.kind(), DTypeKind::Bool | DTypeKind::Int | DTypeKind::Float)
    }

    /// Whether this is one of [`DType::BUILTIN`].
    pub const fn is_builtin(self) -> bool {
        self.builtin().is_some()
    }

    /// Returns the bytes of one element.
    pub const fn size(self) -> usize {
        self.storage().size()
    }

    /// Returns the alignment of an element in the memory of the host: its size, of c128 that of a part.
    pub const fn align(self) -> usize {
        self.storage().align()
    }

    /// Returns the text that [`FromStr`] accepts: a short name such as `f32`, of a registered dtype with its parameters:
    /// `qint8(scale=0.5, zero=3)`. Two dtypes are equal exactly if their texts are.
    pub fn name(self) -> &'static str {
        match self.builtin() {
            Some(b) => b.name(),
            None => registered::entry(self).text(),
        }
    }

    /// Returns the kind: bool, int, float or complex; opaque for an 8-bit float and for a registered dtype, whatever it is stored as.
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

    /// Whether this is c64 or c128.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), DTypeKind::Complex)
    }

    /// The dtype of real and imaginary part of a complex number; of the others themselves.
    ///
    /// ```
    /// use oflow_kernels::DType;
    /// assert_eq!((DType::C128.part(), DType::F16.part()), (DType::F64, DType::F16));
    /// ```
    pub const fn part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            d => d,
        }
    }

    /// The complex numbers that have these parts: c128 for f64, c64 for the other real numbers; complex ones themselves.
    pub const fn complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// Whether a tensor of this dtype has gradients: floats and complex numbers.
    pub const fn has_gradients(self) -> bool {
        matches!(self.kind(), DTypeKind::Float | DTypeKind::Complex)
    }

    /// Whether gradients pass an element of this dtype: floats, complex numbers, and 8-bit floats between the two casts around them.
    pub const fn passes_gradients(self) -> bool {
        self.has_gradients() || matches!(self, DType::F8E4M3FN | DType::F8E5M2)
    }

    /// Returns the smallest and the largest integer of a built-in integer dtype.
    pub const fn integers(self) -> Option<(i64, i64)> {
        match self {
            DType::U8 => Some((0, u8::MAX as i64)),
            DType::I8 => Some((i8::MIN as i64, i8::MAX as i64)),
            DType::I32 => Some((i32::MIN as i64, i32::MAX as i64)),
            DType::I64 => Some((i64::MIN, i64::MAX)),
            DType::I16 => Some((i16::MIN as i64, i16::MAX as i64)),
            DType::U16 => Some((0, u16::MAX as i64)),
            DType::U32 => Some((0, u32::MAX as i64)),
            _ => None,
        }
    }

    /// Whether this is an integer dtype without negative numbers.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32)
    }

    /// Whether this is f16 or bf16, which kernels accumulate in f32.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// Whether elements can be reduced to one by `op`: bools have no sum, complex numbers have nothing else, 8-bit floats and
    /// registered dtypes have no reduction. A tensor can
    /// be P(op) exactly if its dtype reduces.
    pub const fn reduces(self, op: ReduceOp) -> bool {
        match self.kind() {
            DTypeKind::Opaque => false,
            DTypeKind::Bool => !matches!(op, ReduceOp::Sum),
            DTypeKind::Complex => matches!(op, ReduceOp::Sum),
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
    /// For an 8-bit float or a registered dtype with any other, and for u16 or u32 with another integer.
    ///
    /// ```
    /// use oflow_kernels::DType;
    /// assert_eq!(DType::F16.promote(DType::BF16)?, DType::F32);
    /// assert_eq!(DType::U8.promote(DType::I8)?, DType::I16);
    /// assert_eq!(DType::I64.promote(DType::F16)?, DType::F16);
    /// # Ok::<(), oflow_kernels::KernelError>(())
    /// ```
    pub fn promote(self, other: DType) -> Result<DType> {
        if self == other {
            return Ok(self);
        }
        let none = || KernelError::new(format!("{self} and {other} do not promote to a common dtype"));
        if self.is_complex() != other.is_complex() && (self.is_real() || other.is_real()) {
            let (complex, real) = if self.is_complex() { (self, other) } else { (other, self) };
            return Ok(if real == DType::F64 { DType::C128 } else { complex });
        }
        if self.is_complex() && other.is_complex() {
            return Ok(DType::C128);
        }
        if !self.is_real() || !other.is_real() {
            return Err(none());
        }
        Ok(match (self.kind(), other.kind()) {
            (a, b) if a > b => self,
            (a, b) if a < b => other,
            _ => match (self, other) {
                // PyTorch has u16 and u32 with themselves, bool and floats only.
                (DType::U16 | DType::U32, _) | (_, DType::U16 | DType::U32) => return Err(none()),
                (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
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
            DTypeKind::Complex if self.kind() < scalar => self.complex(),
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
pub trait Element: Copy + Send + Sync + 'static + fmt::Debug + PartialEq {
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
    i16, I16, |s| s.to_i64() as i16, |x| Scalar::Int(x as i64);
    u16, U16, |s| s.to_i64() as u16, |x| Scalar::Int(x as i64);
    u32, U32, |s| s.to_i64() as u32, |x| Scalar::Int(x as i64);
    F8E4M3FN, F8E4M3FN, |s| F8E4M3FN::from_f32(s.to_f64() as f32), |x| Scalar::Float(x.to_f32() as f64);
    F8E5M2, F8E5M2, |s| F8E5M2::from_f32(s.to_f64() as f32), |x| Scalar::Float(x.to_f32() as f64);
}

macro_rules! complex_element {
    ($($t:ty, $d:ident, $part:ty;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            fn from_scalar(s: Scalar) -> Self {
                let (re, im) = s.to_complex();
                Complex { re: re as $part, im: im as $part }
            }
            fn to_scalar(self) -> Scalar {
                Scalar::Complex(self.re as f64, self.im as f64)
            }
        }
    )*};
}

complex_element! {
    Complex<f32>, C64, f32;
    Complex<f64>, C128, f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for a in DType::BUILTIN {
            assert_eq!(a.promote(a).unwrap(), a);
            for b in DType::BUILTIN {
                assert_eq!(a.promote(b).ok(), b.promote(a).ok(), "{a} {b}");
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
