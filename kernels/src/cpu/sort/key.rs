//! Elements as unsigned integers in their order: equal elements have equal keys, NaN is the greatest.

use crate::cpu::lane::{Bf16Lane, BoolLane, F16Lane, Lane};

/// A key, and the key together with the position of its element: pairs are ordered by key, then by position, so no two are equal.
pub(super) trait Word: Copy + Ord + Default + Send + Sync + std::ops::Not<Output = Self> + 'static {
    /// A key and a position.
    type Pair: Copy + Ord + Default + Send + Sync;
    /// The greatest position that fits a pair.
    const LONGEST: usize;
    /// A pair.
    fn at(self, position: usize) -> Self::Pair;
    /// The key of a pair.
    fn key(pair: Self::Pair) -> Self;
    /// The position of a pair.
    fn position(pair: Self::Pair) -> usize;
    /// Byte `i` of the key of a pair, the lowest first.
    fn byte(pair: Self::Pair, i: usize) -> usize;
}

impl Word for u32 {
    type Pair = u64;
    const LONGEST: usize = u32::MAX as usize;
    #[inline(always)]
    fn at(self, position: usize) -> u64 {
        u64::from(self) << 32 | position as u64
    }
    #[inline(always)]
    fn key(pair: u64) -> u32 {
        (pair >> 32) as u32
    }
    #[inline(always)]
    fn position(pair: u64) -> usize {
        pair as u32 as usize
    }
    #[inline(always)]
    fn byte(pair: u64, i: usize) -> usize {
        (pair >> (32 + 8 * i) & 0xff) as usize
    }
}

impl Word for u64 {
    type Pair = u128;
    const LONGEST: usize = usize::MAX;
    #[inline(always)]
    fn at(self, position: usize) -> u128 {
        u128::from(self) << 64 | position as u128
    }
    #[inline(always)]
    fn key(pair: u128) -> u64 {
        (pair >> 64) as u64
    }
    #[inline(always)]
    fn position(pair: u128) -> usize {
        pair as u64 as usize
    }
    #[inline(always)]
    fn byte(pair: u128, i: usize) -> usize {
        (pair >> (64 + 8 * i) & 0xff) as usize
    }
}

/// Elements that have keys of type W.
pub(super) trait Ordered<W>: Lane {
    /// The key.
    fn key(self) -> W;
}

macro_rules! ordered {
    ($($t:ty, $word:ty: |$x:ident| $key:expr;)*) => {$(
        impl Ordered<$word> for $t {
            #[inline(always)]
            fn key(self) -> $word {
                let $x = self;
                $key
            }
        }
    )*};
}

/// The bits of a half whose sign has its usual place: negative ones in reverse, above them the others.
#[inline(always)]
fn half(bits: u16, infinity: u16) -> u32 {
    let size = bits & 0x7fff;
    let signed = if size == 0 { 0 } else { bits };
    let key = signed ^ ((signed as i16 >> 15) as u16 | 0x8000);
    u32::from(if size > infinity { u16::MAX } else { key })
}

ordered! {
    BoolLane, u32: |x| u32::from(x.0 != 0);
    u8, u32: |x| u32::from(x);
    i8, u32: |x| u32::from(x as u8 ^ 0x80);
    i32, u32: |x| x as u32 ^ 1 << 31;
    F16Lane, u32: |x| half(x.0, 0x7c00);
    Bf16Lane, u32: |x| half(x.0, 0x7f80);
    f32, u32: |x| {
        // The sum of -0 and 0 is 0.
        let bits = (x + 0.0).to_bits();
        let key = bits ^ ((bits as i32 >> 31) as u32 | 1 << 31);
        if x.is_nan() { u32::MAX } else { key }
    };
    i64, u64: |x| x as u64 ^ 1 << 63;
    f64, u64: |x| {
        let bits = (x + 0.0).to_bits();
        let key = bits ^ ((bits as i64 >> 63) as u64 | 1 << 63);
        if x.is_nan() { u64::MAX } else { key }
    };
    // Lines that are too long for a short key with a position.
    BoolLane, u64: |x| u64::from(Ordered::<u32>::key(x));
    u8, u64: |x| u64::from(Ordered::<u32>::key(x));
    i8, u64: |x| u64::from(Ordered::<u32>::key(x));
    i32, u64: |x| u64::from(Ordered::<u32>::key(x));
    F16Lane, u64: |x| u64::from(Ordered::<u32>::key(x));
    Bf16Lane, u64: |x| u64::from(Ordered::<u32>::key(x));
    f32, u64: |x| u64::from(Ordered::<u32>::key(x));
}

/// Evaluates an expression with `$T` bound to the element type of a built-in dtype and `$W` to the type of keys of lines of `$n`
/// elements.
macro_rules! with_keys {
    ($dtype:expr, $n:expr, $T:ident, $W:ident => $body:expr) => {{
        macro_rules! short {
            ($t:ty) => {{
                type $T = $t;
                if $n <= <u32 as Word>::LONGEST {
                    type $W = u32;
                    $body
                } else {
                    type $W = u64;
                    $body
                }
            }};
        }
        macro_rules! long {
            ($t:ty) => {{
                type $T = $t;
                type $W = u64;
                $body
            }};
        }
        match $dtype {
            $crate::cpu::lane::Native::Bool => short!($crate::cpu::lane::BoolLane),
            $crate::cpu::lane::Native::U8 => short!(u8),
            $crate::cpu::lane::Native::I8 => short!(i8),
            $crate::cpu::lane::Native::I32 => short!(i32),
            $crate::cpu::lane::Native::F16 => short!($crate::cpu::lane::F16Lane),
            $crate::cpu::lane::Native::BF16 => short!($crate::cpu::lane::Bf16Lane),
            $crate::cpu::lane::Native::F32 => short!(f32),
            $crate::cpu::lane::Native::I64 => long!(i64),
            $crate::cpu::lane::Native::F64 => long!(f64),
        }
    }};
}
pub(super) use with_keys;
