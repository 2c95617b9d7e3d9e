//! Functions of 64-bit integers: they wrap and never panic. The CPU's loops report a divisor that is 0 before they divide.

/// Quotient towards zero; 0 for a zero divisor.
#[inline(always)]
pub(crate) fn div(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

/// Remainder with the sign of the dividend; 0 for a zero divisor.
#[inline(always)]
pub(crate) fn fmod(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

/// Python's `a % b`; 0 for a zero divisor.
#[inline]
pub(crate) fn remainder(a: i64, b: i64) -> i64 {
    let r = fmod(a, b);
    if r != 0 && ((r < 0) != (b < 0)) { r + b } else { r }
}

/// Python's `a // b`; 0 for a zero divisor.
#[inline]
pub(crate) fn floor_div(a: i64, b: i64) -> i64 {
    div(a, b).wrapping_sub((fmod(a, b) != 0 && (a < 0) != (b < 0)) as i64)
}

/// Wrapping power; a negative exponent gives the quotient 1 / a^b towards zero.
#[inline]
pub(crate) fn pow(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 => 1 - 2 * (b & 1),
            _ => 0,
        };
    }
    let (mut result, mut base, mut b) = (1i64, a, b);
    while b != 0 {
        if b & 1 != 0 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        b >>= 1;
    }
    result
}

/// PyTorch's `a << b`: 0 where no bit is left or `b` is negative.
#[inline(always)]
pub(crate) fn shl(a: i64, b: i64) -> i64 {
    if (0..64).contains(&b) { a << b } else { 0 }
}

/// PyTorch's `a >> b`: the sign where no bit is left or `b` is negative.
#[inline(always)]
pub(crate) fn shr(a: i64, b: i64) -> i64 {
    a >> if (0..64).contains(&b) { b } else { 63 }
}

/// The greatest common divisor by Euclid's algorithm; the remainder's sign does not matter. It wraps for the smallest integer.
#[inline]
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

/// The least common multiple, which wraps.
#[inline]
pub(crate) fn lcm(a: i64, b: i64) -> i64 {
    div(a, gcd(a, b)).wrapping_mul(b).wrapping_abs()
}
