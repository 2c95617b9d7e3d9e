//! Element types: their sizes, names, kinds and PyTorch's promotion lattice.
//!
//! A [`DType`] is a small number, so a `match` over dtypes needs a `_` arm everywhere. oflow computes with the built-in dtypes
//! ([`Builtin`]) but for the 8-bit floats, which are stored and cast; others are registered ([`Registered`]) and are moved, stored and
//! printed: quantised integers, which every process has, and those of the program.

mod f8;
mod quantised;
mod registered;
mod table;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::{KernelError, ReduceOp, Result};

pub use f8::*;
pub use quantised::Quantization;
pub use registered::Registered;
pub use table::{Builtin, Element, Facts, Limits, Visitor};

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
const STORAGE_BITS: u32 = usize::BITS - (Builtin::ALL.len() - 1).leading_zeros();

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
    /// Returns the alignment of an element in the memory of the host: its size, of c128 that of a part.
    pub const fn align(self) -> usize {
        if matches!(self, Builtin::C128) { Builtin::F64.size() } else { self.size() }
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

    /// As a [`DType`].
    pub const fn dtype(self) -> DType {
        DType((self as u32) << STORAGE_BITS | self as u32)
    }
}

impl DType {
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
    pub const REAL: [DType; count_of_real()] = {
        let (mut real, mut n, mut i) = ([DType::Bool; count_of_real()], 0, 0);
        while i < Builtin::ALL.len() {
            if Builtin::ALL[i].dtype().is_real() {
                real[n] = Builtin::ALL[i].dtype();
                n += 1;
            }
            i += 1;
        }
        real
    };

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
        self.has_gradients() || self.is_small_float()
    }

    /// Whether this is an 8-bit float: stored and cast, not computed with.
    pub const fn is_small_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Opaque) && self.is_builtin()
    }

    /// Returns the smallest and the largest integer of a built-in integer dtype.
    pub const fn integers(self) -> Option<(i64, i64)> {
        match self.builtin() {
            Some(b) => match b.facts().limits {
                Limits::Integers(low, high) => Some((low, high)),
                _ => None,
            },
            None => None,
        }
    }

    /// Whether this is an integer dtype without negative numbers.
    pub const fn is_unsigned(self) -> bool {
        matches!(self.integers(), Some((0, _)))
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
                (a, b) if [a, b].iter().any(|d| d.is_unsigned() && d.size() > 1) => return Err(none()),
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

/// Length of [`DType::REAL`].
const fn count_of_real() -> usize {
    let (mut n, mut i) = (0, 0);
    while i < Builtin::ALL.len() {
        n += Builtin::ALL[i].dtype().is_real() as usize;
        i += 1;
    }
    n
}
