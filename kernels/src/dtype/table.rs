//! The built-in dtypes: a row a dtype, with all that is known about it. Code elsewhere asks for a fact ([`Builtin::facts`]) or runs
//! over the type of an element ([`Builtin::visit`]) instead of matching.

use super::{DTypeKind, F8E4M3FN, F8E5M2};
use crate::{DType, Scalar};
use half::{bf16, f16};
use num_complex::Complex;
use std::fmt;

/// A Rust type that can be an element of a tensor.
pub trait Element: Copy + Send + Sync + 'static + fmt::Debug + PartialEq {
    /// The dtype whose memory layout this type has.
    const DTYPE: DType;
    /// Converts with C's `as` meaning (floats truncate and saturate, bool is `!= 0`).
    fn from_scalar(s: Scalar) -> Self;
    /// Widens to a scalar without loss.
    fn to_scalar(self) -> Scalar;
}

/// Code that runs over the type of an element ([`Builtin::visit`]).
pub trait Visitor {
    /// Type of the result.
    type Out;
    /// Called with the type of the dtype's elements.
    fn visit<T: Element>(self) -> Self::Out;
}

/// The numbers that a dtype has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limits {
    /// 0 and 1.
    Bools,
    /// All integers from the first to the second.
    Integers(i64, i64),
    /// Numbers with fractions, up to this finite one; of complex numbers their parts.
    Largest(f64),
}

/// Facts about a built-in dtype besides its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Short name, such as `f32`.
    pub name: &'static str,
    /// Bool, int, float or complex; opaque for 8-bit floats.
    pub kind: DTypeKind,
    /// The numbers that it has.
    pub limits: Limits,
    /// Name in PyTorch, NumPy and oflow's Python module.
    pub python: &'static str,
    /// Name in the safetensors format; c128 is stored as its parts.
    pub safetensors: &'static str,
    /// Kind and bytes in NumPy's array interface (`f4`), if NumPy has the dtype.
    pub array: Option<&'static str>,
    /// Code and bits in DLPack.
    pub dlpack: (u8, u8),
}

macro_rules! builtin {
    ($(
        $(#[$doc:meta])*
        $name:ident: $t:ty {
            $text:literal, $kind:ident, $limits:expr;
            python $python:literal, safetensors $safetensors:literal, array $array:expr, dlpack $dlpack:expr;
            from |$s:ident| $from:expr, to |$x:ident| $to:expr;
        }
    )*) => {
        /// The dtypes that oflow brings; most code takes a [`DType`]. The numbers are those of fingerprints and of shared libraries
        /// (`op-abi`): new ones are appended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Builtin { $($(#[$doc])* $name,)* }

        impl Builtin {
            /// All of them, in declared order.
            pub const ALL: [Builtin; [$($text),*].len()] = [$(Builtin::$name),*];

            /// Returns the bytes of one element.
            pub const fn size(self) -> usize {
                match self { $(Builtin::$name => size_of::<$t>(),)* }
            }

            /// Returns the kind: bool, int, float or complex; opaque for the 8-bit floats.
            #[inline]
            pub const fn kind(self) -> DTypeKind {
                match self { $(Builtin::$name => DTypeKind::$kind,)* }
            }

            /// Returns the row of the table.
            pub const fn facts(self) -> &'static Facts {
                match self { $(Builtin::$name => const { &Facts {
                    name: $text,
                    kind: DTypeKind::$kind,
                    limits: $limits,
                    python: $python,
                    safetensors: $safetensors,
                    array: $array,
                    dlpack: $dlpack,
                } },)* }
            }

            /// Calls the visitor with the type of the elements.
            #[inline]
            pub fn visit<V: Visitor>(self, v: V) -> V::Out {
                match self { $(Builtin::$name => v.visit::<$t>(),)* }
            }
        }

        impl DType {
            $($(#[$doc])* #[allow(non_upper_case_globals)] pub const $name: DType = Builtin::$name.dtype();)*
        }

        $(impl Element for $t {
            const DTYPE: DType = DType::$name;
            fn from_scalar($s: Scalar) -> Self { $from }
            fn to_scalar(self) -> Scalar { let $x = self; $to }
        })*
    };
}

/// DLPack's codes of kinds.
const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;
const FLOAT8_E4M3FN: u8 = 10;
const FLOAT8_E5M2: u8 = 12;

builtin! {
    /// One byte, 0 or 1.
    Bool: bool {
        "bool", Bool, Limits::Bools;
        python "bool", safetensors "BOOL", array Some("b1"), dlpack (BOOL, 8);
        from |s| s.to_bool(), to |x| Scalar::Bool(x);
    }
    /// Unsigned 8-bit integer.
    U8: u8 {
        "u8", Int, Limits::Integers(0, u8::MAX as i64);
        python "uint8", safetensors "U8", array Some("u1"), dlpack (UINT, 8);
        from |s| s.to_i64() as u8, to |x| Scalar::Int(x as i64);
    }
    /// Signed 8-bit integer.
    I8: i8 {
        "i8", Int, Limits::Integers(i8::MIN as i64, i8::MAX as i64);
        python "int8", safetensors "I8", array Some("i1"), dlpack (INT, 8);
        from |s| s.to_i64() as i8, to |x| Scalar::Int(x as i64);
    }
    /// Signed 32-bit integer.
    I32: i32 {
        "i32", Int, Limits::Integers(i32::MIN as i64, i32::MAX as i64);
        python "int32", safetensors "I32", array Some("i4"), dlpack (INT, 32);
        from |s| s.to_i64() as i32, to |x| Scalar::Int(x as i64);
    }
    /// Signed 64-bit integer.
    I64: i64 {
        "i64", Int, Limits::Integers(i64::MIN, i64::MAX);
        python "int64", safetensors "I64", array Some("i8"), dlpack (INT, 64);
        from |s| s.to_i64(), to |x| Scalar::Int(x);
    }
    /// IEEE half precision.
    F16: f16 {
        "f16", Float, Limits::Largest(f16::MAX.to_f64_const());
        python "float16", safetensors "F16", array Some("f2"), dlpack (FLOAT, 16);
        from |s| f16::from_f64(s.to_f64()), to |x| Scalar::Float(x.to_f64());
    }
    /// bfloat16: f32's exponent with 8 bits of significand.
    BF16: bf16 {
        "bf16", Float, Limits::Largest(bf16::MAX.to_f64_const());
        python "bfloat16", safetensors "BF16", array None, dlpack (BFLOAT, 16);
        from |s| bf16::from_f64(s.to_f64()), to |x| Scalar::Float(x.to_f64());
    }
    /// IEEE single precision.
    F32: f32 {
        "f32", Float, Limits::Largest(f32::MAX as f64);
        python "float32", safetensors "F32", array Some("f4"), dlpack (FLOAT, 32);
        from |s| s.to_f64() as f32, to |x| Scalar::Float(x as f64);
    }
    /// IEEE double precision.
    F64: f64 {
        "f64", Float, Limits::Largest(f64::MAX);
        python "float64", safetensors "F64", array Some("f8"), dlpack (FLOAT, 64);
        from |s| s.to_f64(), to |x| Scalar::Float(x);
    }
    /// Signed 16-bit integer.
    I16: i16 {
        "i16", Int, Limits::Integers(i16::MIN as i64, i16::MAX as i64);
        python "int16", safetensors "I16", array Some("i2"), dlpack (INT, 16);
        from |s| s.to_i64() as i16, to |x| Scalar::Int(x as i64);
    }
    /// Unsigned 16-bit integer.
    U16: u16 {
        "u16", Int, Limits::Integers(0, u16::MAX as i64);
        python "uint16", safetensors "U16", array Some("u2"), dlpack (UINT, 16);
        from |s| s.to_i64() as u16, to |x| Scalar::Int(x as i64);
    }
    /// Unsigned 32-bit integer.
    U32: u32 {
        "u32", Int, Limits::Integers(0, u32::MAX as i64);
        python "uint32", safetensors "U32", array Some("u4"), dlpack (UINT, 32);
        from |s| s.to_i64() as u32, to |x| Scalar::Int(x as i64);
    }
    /// 8-bit float with 4 bits of exponent and 3 of fraction, without infinities: the largest number is 448, and casts saturate. It is
    /// stored and cast, not computed with.
    F8E4M3FN: F8E4M3FN {
        "f8_e4m3fn", Opaque, Limits::Largest(448.0);
        python "float8_e4m3fn", safetensors "F8_E4M3", array None, dlpack (FLOAT8_E4M3FN, 8);
        from |s| F8E4M3FN::from_f32(s.to_f64() as f32), to |x| Scalar::Float(x.to_f32() as f64);
    }
    /// 8-bit float with 5 bits of exponent and 2 of fraction: the upper byte of an f16. It is stored and cast, not computed with.
    F8E5M2: F8E5M2 {
        "f8_e5m2", Opaque, Limits::Largest(57344.0);
        python "float8_e5m2", safetensors "F8_E5M2", array None, dlpack (FLOAT8_E5M2, 8);
        from |s| F8E5M2::from_f32(s.to_f64() as f32), to |x| Scalar::Float(x.to_f32() as f64);
    }
    /// Complex number: real and imaginary part, each an f32.
    C64: Complex<f32> {
        "c64", Complex, Limits::Largest(f32::MAX as f64);
        python "complex64", safetensors "C64", array Some("c8"), dlpack (COMPLEX, 64);
        from |s| complex(s, |x| x as f32), to |z| Scalar::Complex(z.re as f64, z.im as f64);
    }
    /// Complex number: real and imaginary part, each an f64.
    C128: Complex<f64> {
        "c128", Complex, Limits::Largest(f64::MAX);
        python "complex128", safetensors "F64", array Some("c16"), dlpack (COMPLEX, 128);
        from |s| complex(s, |x| x), to |z| Scalar::Complex(z.re, z.im);
    }
}

fn complex<T>(s: Scalar, part: impl Fn(f64) -> T) -> Complex<T> {
    let (re, im) = s.to_complex();
    Complex { re: part(re), im: part(im) }
}

/// The bytes of an element in the memory of this machine.
struct Encode(Scalar);

impl Visitor for Encode {
    type Out = [u8; 16];
    fn visit<T: Element>(self) -> [u8; 16] {
        let (element, mut bytes) = (T::from_scalar(self.0), [0; 16]);
        // SAFETY: the types of the table have no padding and 16 bytes at most; an array of bytes holds any of them.
        unsafe { bytes.as_mut_ptr().cast::<T>().write_unaligned(element) };
        bytes
    }
}

struct Decode<'a>(&'a [u8]);

impl Visitor for Decode<'_> {
    type Out = Option<Scalar>;
    fn visit<T: Element>(self) -> Option<Scalar> {
        let bytes = self.0;
        if bytes.len() != size_of::<T>() {
            return None;
        }
        if T::DTYPE == DType::Bool {
            return Some(Scalar::Bool(bytes[0] != 0));
        }
        // SAFETY: as many bytes as an element has; but for bool, all bits are values of the table's types.
        Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }.to_scalar())
    }
}

/// A scalar as an element has it.
struct Rounded(Scalar);

impl Visitor for Rounded {
    type Out = Scalar;
    fn visit<T: Element>(self) -> Scalar {
        T::from_scalar(self.0).to_scalar()
    }
}

impl Builtin {
    /// Returns the short name, such as `f32`.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the number in the bytes of one element; none where there are more or fewer bytes than an element has.
    pub fn decode(self, bytes: &[u8]) -> Option<Scalar> {
        self.visit(Decode(bytes))
    }

    /// Returns the bytes of the element that has this number ([`Scalar::in_dtype`]), in the order of the machine; those behind the
    /// element are 0.
    pub fn encode(self, value: Scalar) -> [u8; 16] {
        self.visit(Encode(value))
    }

    /// Returns the number as an element has it.
    pub(crate) fn rounded(self, value: Scalar) -> Scalar {
        self.visit(Rounded(value))
    }
}
