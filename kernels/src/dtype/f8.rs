//! 8-bit floats, by the bits and roundings of PyTorch (OCP 8-bit floating point specification; E4M3 saturates, as in PyTorch since 2.12,
//! E5M2 overflows to infinity).

use std::cmp::Ordering;

/// An element of [`DType::F8E4M3FN`](crate::DType::F8E4M3FN): sign, 4 bits of exponent (bias 7), 3 bits of fraction. There are no
/// infinities, and one pattern of each sign is NaN.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct F8E4M3FN(pub u8);

/// An element of [`DType::F8E5M2`](crate::DType::F8E5M2): sign, 5 bits of exponent (bias 15), 2 bits of fraction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

/// Rounds the magnitude of an f32 below the format's overflow, to nearest even, to a format with `FRACTION` bits of fraction
/// and that exponent bias.
#[inline(always)]
fn rounded<const FRACTION: u32, const BIAS: u32>(magnitude: u32) -> u8 {
    let shift = 23 - FRACTION;
    let rebase = 127 - BIAS;
    if magnitude < (rebase + 1) << 23 {
        // Below the smallest normal number: the addition rounds at the bit of the smallest denormal.
        let step = (rebase + 1 + shift) << 23;
        return (f32::from_bits(magnitude) + f32::from_bits(step)).to_bits().wrapping_sub(step) as u8;
    }
    let odd = (magnitude >> shift) & 1;
    (magnitude.wrapping_sub(rebase << 23).wrapping_add((1 << (shift - 1)) - 1 + odd) >> shift) as u8
}

impl F8E4M3FN {
    /// The largest number, 448.
    pub const MAX: F8E4M3FN = F8E4M3FN(0x7e);

    /// The nearest element, to even where two are as near. What is larger than the largest number, infinity too, becomes that number.
    #[inline(always)]
    pub fn from_f32(x: f32) -> F8E4M3FN {
        let (bits, sign) = (x.to_bits() & 0x7fff_ffff, (x.to_bits() >> 24) as u8 & 0x80);
        let magnitude = match bits {
            0x7f80_0001.. => 0x7f,
            // From 448 on.
            0x43e0_0000.. => 0x7e,
            _ => rounded::<3, 7>(bits),
        };
        F8E4M3FN(sign | magnitude)
    }

    /// The number, exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0 & 0x7f);
        // Rebasing by a multiplication normalises denormals too.
        let number = f32::from_bits(magnitude << 20) * f32::from_bits((254 - 7) << 23);
        let bits = if magnitude == 0x7f { 0x7ff0_0000 } else { number.to_bits() };
        f32::from_bits(bits | u32::from(self.0 & 0x80) << 24)
    }
}

impl F8E5M2 {
    /// The largest finite number, 57344.
    pub const MAX: F8E5M2 = F8E5M2(0x7b);

    /// The nearest element, to even where two are as near; from 61440 on infinity.
    #[inline(always)]
    pub fn from_f32(x: f32) -> F8E5M2 {
        let (bits, sign) = (x.to_bits() & 0x7fff_ffff, (x.to_bits() >> 24) as u8 & 0x80);
        let magnitude = match bits {
            0x7f80_0001.. => 0x7f,
            0x4780_0000.. => 0x7c,
            _ => rounded::<2, 15>(bits),
        };
        F8E5M2(sign | magnitude)
    }

    /// The number, exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        crate::cpu::lane::f16_to_f32(u16::from(self.0) << 8)
    }
}

macro_rules! compared {
    ($($t:ty)*) => {$(
        /// By the numbers: zeros are equal, NaN is not equal to itself.
        impl PartialEq for $t {
            fn eq(&self, other: &$t) -> bool {
                self.to_f32() == other.to_f32()
            }
        }
        impl PartialOrd for $t {
            fn partial_cmp(&self, other: &$t) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }
    )*};
}
compared!(F8E4M3FN F8E5M2);
