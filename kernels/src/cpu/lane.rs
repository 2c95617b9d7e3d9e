//! One element in memory and its ways to and from the types kernels compute in.

use crate::{Builtin, DType, F8E4M3FN, F8E5M2, KernelError, Result};

/// The dtypes that the CPU's kernels are compiled for. Elements of the others are cast to one of them ([`Native::of`]), computed
/// with, and cast back: compiled for each dtype, the kernels would take half as long again to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Elements of [`Builtin::Bool`], one byte each.
    Bool,
    /// Elements of [`Builtin::U8`], a native integer.
    U8,
    /// Elements of [`Builtin::I8`], a native integer.
    I8,
    /// Elements of [`Builtin::I32`], a native integer.
    I32,
    /// Elements of [`Builtin::I64`], a native integer.
    I64,
    /// Elements of [`Builtin::F16`], computed in f32.
    F16,
    /// Elements of [`Builtin::BF16`], computed in f32.
    BF16,
    /// Elements of [`Builtin::F32`], a native float.
    F32,
    /// Elements of [`Builtin::F64`], a native float.
    F64,
}

impl Native {
    /// All of them.
    pub const ALL: [Native; 9] = [
        Native::Bool,
        Native::U8,
        Native::I8,
        Native::I32,
        Native::I64,
        Native::F16,
        Native::BF16,
        Native::F32,
        Native::F64,
    ];

    /// The dtype whose numbers include those of `dtype`: itself where kernels are compiled for it. Of a complex dtype it is that of
    /// the parts.
    pub const fn of(dtype: Builtin) -> Native {
        match dtype {
            Builtin::Bool => Native::Bool,
            Builtin::U8 => Native::U8,
            Builtin::I8 => Native::I8,
            Builtin::I32 | Builtin::I16 | Builtin::U16 => Native::I32,
            Builtin::I64 | Builtin::U32 => Native::I64,
            Builtin::F16 => Native::F16,
            Builtin::BF16 => Native::BF16,
            Builtin::F32 | Builtin::F8E4M3FN | Builtin::F8E5M2 | Builtin::C64 => Native::F32,
            Builtin::F64 | Builtin::C128 => Native::F64,
        }
    }

    /// As a [`Builtin`].
    pub const fn builtin(self) -> Builtin {
        match self {
            Native::Bool => Builtin::Bool,
            Native::U8 => Builtin::U8,
            Native::I8 => Builtin::I8,
            Native::I32 => Builtin::I32,
            Native::I64 => Builtin::I64,
            Native::F16 => Builtin::F16,
            Native::BF16 => Builtin::BF16,
            Native::F32 => Builtin::F32,
            Native::F64 => Builtin::F64,
        }
    }

    /// As a [`DType`].
    pub const fn dtype(self) -> DType {
        self.builtin().dtype()
    }

    /// Whether this is f16, bf16, f32 or f64.
    pub const fn is_float(self) -> bool {
        self.builtin().is_float()
    }
}

impl Builtin {
    /// The same dtype where the CPU's kernels are compiled for it.
    pub const fn native(self) -> Option<Native> {
        let wide = Native::of(self);
        if wide.builtin() as u8 == self as u8 { Some(wide) } else { None }
    }
}

/// The dtype of a tensor given to a kernel that is compiled for its elements.
///
/// # Errors
/// No kernel is.
pub fn native(dtype: DType) -> Result<Native> {
    let b = dtype.computed()?;
    b.native().ok_or_else(|| {
        KernelError::new(format!("this kernel computes with {dtype} as with {}: cast it", Native::of(b).dtype()))
    })
}

/// An element as it lies in memory. Conversions have Rust's `as` meaning (floats truncate towards zero and saturate,
/// integers wrap), bool is `!= 0`, and halves go through f32, rounding to nearest even.
pub trait Lane: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The dtype with this layout.
    const DTYPE: Builtin;
    /// Converts to f32, rounding where needed.
    fn to_f32(self) -> f32;
    /// Converts to f64, rounding where needed.
    fn to_f64(self) -> f64;
    /// Converts to i64, as `as` does.
    fn to_i64(self) -> i64;
    /// Converts from f32, as `as` does.
    fn from_f32(x: f32) -> Self;
    /// Converts from f64, as `as` does.
    fn from_f64(x: f64) -> Self;
    /// Converts from i64, as `as` does.
    fn from_i64(x: i64) -> Self;
}

/// A bool: one byte, 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct BoolLane(pub u8);

/// The bits of an f16.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct F16Lane(pub u16);

/// The bits of a bf16.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct Bf16Lane(pub u16);

macro_rules! plain {
    ($($t:ident $d:ident),*) => {$(
        impl Lane for $t {
            const DTYPE: Builtin = Builtin::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn from_f32(x: f32) -> Self { x as $t }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x as $t }
            #[inline(always)]
            fn from_i64(x: i64) -> Self { x as $t }
        }
    )*};
}
plain!(u8 U8, i8 I8, i16 I16, u16 U16, i32 I32, u32 U32, i64 I64, f32 F32, f64 F64);

impl Lane for BoolLane {
    const DTYPE: Builtin = Builtin::Bool;
    #[inline(always)]
    fn to_f32(self) -> f32 {
        (self.0 != 0) as u8 as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        (self.0 != 0) as u8 as f64
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        (self.0 != 0) as i64
    }
    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        BoolLane((x != 0.0) as u8)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        BoolLane((x != 0.0) as u8)
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Self {
        BoolLane((x != 0) as u8)
    }
}

macro_rules! half_lane {
    ($t:ident $d:ident $widen:ident $narrow:ident) => {
        impl Lane for $t {
            const DTYPE: Builtin = Builtin::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $widen(self.0)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $widen(self.0) as f64
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                $widen(self.0) as i64
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                $t($narrow(x))
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                $t($narrow(x as f32))
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                $t($narrow(x as f32))
            }
        }
    };
}
half_lane!(F16Lane F16 f16_to_f32 f32_to_f16);
half_lane!(Bf16Lane BF16 bf16_to_f32 f32_to_bf16);

/// bf16 bits to f32, exact.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits((h as u32) << 16)
}

/// f32 to bf16 bits, to nearest even; NaN stays NaN.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let u = x.to_bits();
    let rounded = u.wrapping_add(0x7fff + ((u >> 16) & 1)) >> 16;
    (if x.is_nan() { (u >> 16) | 0x40 } else { rounded }) as u16
}

/// f16 bits to f32, exact. Branch-free: the exponent is rebased by a multiplication, which also normalises denormals.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    let magnitude = ((h & 0x7fff) as u32) << 13;
    let rebase = f32::from_bits((254 - 15) << 23);
    let finite = (f32::from_bits(magnitude) * rebase).to_bits();
    // Infinity and NaN: all exponent bits.
    let bits = if magnitude >= 0x7c00 << 13 { magnitude | 0xff << 23 } else { finite };
    f32::from_bits(bits | ((h & 0x8000) as u32) << 16)
}

/// f32 to f16 bits, to nearest even; NaN stays NaN. Branch-free.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16) & 0x8000;
    let u = x.to_bits() & 0x7fff_ffff;
    let special = if u > 0x7f80_0000 { 0x7e00 | ((u >> 13) & 0x3ff) } else { 0x7c00 };
    // Below the smallest normal f16: adding 1/2 makes the addition round at the right bit.
    let denormal = (f32::from_bits(u) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let normal = u.wrapping_sub(112 << 23).wrapping_add(0xfff + ((u >> 13) & 1)) >> 13;
    let small = if u < 113 << 23 { denormal } else { normal };
    (sign | if u >= 143 << 23 { special } else { small }) as u16
}

/// Any element type to any other.
#[inline(always)]
pub fn cast<S: Lane, D: Lane>(x: S) -> D {
    let (s, d) = (S::DTYPE, D::DTYPE);
    if matches!(s, Builtin::F64) || matches!(d, Builtin::F64) {
        D::from_f64(x.to_f64())
    } else if s.is_float() || d.is_float() {
        D::from_f32(x.to_f32())
    } else {
        D::from_i64(x.to_i64())
    }
}

macro_rules! f8_lane {
    ($($t:ident)*) => {$(
        impl Lane for $t {
            const DTYPE: Builtin = Builtin::$t;
            #[inline(always)]
            fn to_f32(self) -> f32 { $t::to_f32(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { $t::to_f32(self) as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { $t::to_f32(self) as i64 }
            #[inline(always)]
            fn from_f32(x: f32) -> Self { $t::from_f32(x) }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { $t::from_f32(x as f32) }
            #[inline(always)]
            fn from_i64(x: i64) -> Self { $t::from_f32(x as f32) }
        }
    )*};
}
f8_lane!(F8E4M3FN F8E5M2);

/// The arms of [`with_lane`], [`with_float`] and [`with_integer`]: for each dtype its lane, and what holds for the other dtypes, if any.
macro_rules! lane_arms {
    ($dtype:expr, $T:ident => $body:expr; $($name:ident: $lane:ty),+ $(; $other:ident => $none:expr)?) => {
        match $dtype {
            $($crate::cpu::lane::Native::$name => {
                type $T = $lane;
                $body
            })+
            $($other => $none,)?
        }
    };
}
pub(crate) use lane_arms;

/// Evaluates an expression with `$T` bound to the [`Lane`] of a [`Native`] dtype.
macro_rules! with_lane {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::cpu::lane::lane_arms!($dtype, $T => $body;
            Bool: $crate::cpu::lane::BoolLane, U8: u8, I8: i8, I32: i32, I64: i64,
            F16: $crate::cpu::lane::F16Lane, BF16: $crate::cpu::lane::Bf16Lane, F32: f32, F64: f64)
    };
}
pub(crate) use with_lane;

/// As [`with_lane`] for a float dtype: what computes with floats alone is not compiled for integers.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::cpu::lane::lane_arms!($dtype, $T => $body;
            F16: $crate::cpu::lane::F16Lane, BF16: $crate::cpu::lane::Bf16Lane, F32: f32, F64: f64;
            d => unreachable!("{d:?} is not a float dtype"))
    };
}
pub(crate) use with_float;

/// As [`with_lane`] for bool or an integer dtype.
macro_rules! with_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::cpu::lane::lane_arms!($dtype, $T => $body;
            Bool: $crate::cpu::lane::BoolLane, U8: u8, I8: i8, I32: i32, I64: i64;
            d => unreachable!("{d:?} is not an integer dtype"))
    };
}
pub(crate) use with_integer;

/// Evaluates an expression with `$T` bound to the [`Lane`] of a dtype that is not native and `$W` to that of its [`Native`] one;
/// nothing happens for a native or a complex dtype.
macro_rules! with_narrow {
    ($dtype:expr, $T:ident, $W:ident => $body:expr) => {
        with_narrow!(@arms $dtype, $T, $W => $body;
            I16: i16 => i32,
            U16: u16 => i32,
            U32: u32 => i64,
            F8E4M3FN: $crate::F8E4M3FN => f32,
            F8E5M2: $crate::F8E5M2 => f32,
        )
    };
    (@arms $dtype:expr, $T:ident, $W:ident => $body:expr; $($name:ident: $t:ty => $wide:ty,)*) => {
        match $dtype {
            $($crate::Builtin::$name => {
                type $T = $t;
                type $W = $wide;
                $body
            })*
            _ => {}
        }
    };
}
pub(crate) use with_narrow;

/// As [`with_integer`] for every integer dtype, for the one kernel that is compiled for all of them: members of a collective add up
/// elements in place.
macro_rules! with_reduced {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::Builtin::I16 => {
                type $T = i16;
                $body
            }
            $crate::Builtin::U16 => {
                type $T = u16;
                $body
            }
            $crate::Builtin::U32 => {
                type $T = u32;
                $body
            }
            d => $crate::cpu::lane::with_integer!($crate::cpu::lane::Native::of(d), $T => $body),
        }
    };
}
pub(crate) use with_reduced;

/// Evaluates an expression with `$T` bound to the unsigned integer that has the bytes of an element, for kernels that only move.
macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            16 => {
                type $T = [u64; 2];
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}
pub(crate) use with_bits;

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn halves_widen_like_the_half_crate() {
        for h in 0..=u16::MAX {
            let (a, b) = (f16_to_f32(h), f16::from_bits(h).to_f32());
            assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{h:x}");
            let (a, b) = (bf16_to_f32(h), bf16::from_bits(h).to_f32());
            assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{h:x}");
        }
    }

    #[test]
    fn halves_round_like_the_half_crate() {
        let specials =
            [0x7f80_0000, 0x7fc0_0000, 0x7f80_0001, 0x477f_efff, 0x477f_f000, 0x3300_0000, 0x3300_0001, 0x387f_f000];
        for u in (0..u32::MAX / 2011).map(|i| i * 2011).chain(specials) {
            let x = f32::from_bits(u);
            let (a, b) = (f16::from_bits(f32_to_f16(x)), f16::from_f32(x));
            assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{u:x} {a} {b}");
            let (a, b) = (bf16::from_bits(f32_to_bf16(x)), bf16::from_f32(x));
            assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{u:x} {a} {b}");
        }
    }

    #[test]
    fn casts() {
        assert_eq!(cast::<f32, u8>(300.7), 255);
        assert_eq!(cast::<i64, u8>(300), 44);
        assert_eq!(cast::<f32, i32>(f32::NAN), 0);
        assert_eq!(cast::<f64, BoolLane>(-0.25), BoolLane(1));
        assert_eq!(cast::<i64, f64>(1 << 53), 9007199254740992.0);
        assert_eq!(cast::<BoolLane, i64>(BoolLane(1)), 1);
    }
}
