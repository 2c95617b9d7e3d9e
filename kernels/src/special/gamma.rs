//! The logarithm of the gamma function, its derivatives, and the zeta function.

use std::f64::consts::PI;

/// `log(abs(gamma(x)))`: infinite at 0, at negative integers and at both infinities.
pub(crate) fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// `B(2k) / 2k`, the coefficients of the asymptotic series of digamma (5.11.2).
const DIGAMMA: [f64; 7] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];

/// The positive zero of digamma, in two parts.
const ZERO: [f64; 2] = [1.4616321449683622, 9.549995429965697e-17];

/// The derivative of `lgamma`: infinite at 0, with the sign that it has from there, and NaN at negative integers.
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        // Of a whole number and -inf.
        if x.fract() == 0.0 || x.is_infinite() {
            return f64::NAN;
        }
        // Reflection (5.5.4); the fraction has the same tangent and keeps its digits.
        return digamma(1.0 - x) - PI / (PI * x.fract()).tan();
    }
    if (x - ZERO[0]).abs() < 0.125 {
        return near_zero(x);
    }
    // Recurrence (5.5.2) until the series holds.
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    x.ln() - 0.5 / x - z * super::horner(z, &DIGAMMA) - below
}

/// By Taylor's series at the zero: its coefficients are the zeta function's values there (25.11.12).
fn near_zero(x: f64) -> f64 {
    let d = (x - ZERO[0]) - ZERO[1];
    let (mut sum, mut power) = (0.0, -1.0);
    for n in 1..24 {
        power *= -d;
        sum += power * TAYLOR[n - 1];
    }
    sum
}

/// `zeta(n + 1, x0)` for n = 1, 2, .. where x0 is the zero of digamma.
const TAYLOR: [f64; 23] = [
    0.9676722454476212,
    0.44276316898359214,
    0.258499760955651,
    0.16394270544240652,
    0.10782405069126237,
    0.07219956125645471,
    0.04880428816414311,
    0.03316112647484736,
    0.022597648232218104,
    0.01542476590494896,
    0.010538791616612175,
    0.007204534386356868,
    0.004926781395729853,
    0.003369801655439328,
    0.002305126326734928,
    1.5769367714301972e-3,
    1.0788252019162967e-3,
    7.380709389960052e-4,
    0.000504953265834602,
    3.454680251063077e-4,
    2.3635601564027053e-4,
    1.6170622091974803e-4,
    1.1063372768747412e-4,
];

/// `(2k)! / B(2k)`, of the Euler-Maclaurin formula for the zeta function (25.11.5).
const EULER: [f64; 12] = [
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1307674368000.0 / 691.0,
    74724249600.0,
    -1.067062284288e16 / 3617.0,
    5109094217170944000.0 / 43867.0,
    -8.028576626982912e20 / 174611.0,
    1.4101100039391804e22 / 77683.0,
    -1.6938241367317436e27 / 236364091.0,
];

/// The zeta function of Hurwitz, the sum of `(q + k)^-s` over all k from 0: infinite for `s` = 1 and at poles, NaN for smaller `s`, and
/// for a negative `q` with a fraction unless `s` is whole.
pub(crate) fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s.is_nan() || q.is_nan() || s < 1.0 {
        return f64::NAN;
    }
    if q > 0.0 {
        return zeta_of_positive(s, q);
    }
    if q.fract() == 0.0 {
        return f64::INFINITY;
    }
    if s.fract() != 0.0 || q.is_infinite() {
        return f64::NAN;
    }
    // The terms below zero are a difference of two sums above, since their powers are whole: no loop over them.
    // 1 - r, where r is the part above the floor, with the digits that r loses just below a whole number.
    let rest = -q.fract();
    let (r, negative) = (q - q.floor(), zeta_of_positive(s, rest) - zeta_of_positive(s, 1.0 - q));
    zeta_of_positive(s, r) + if s % 2.0 == 0.0 { negative } else { -negative }
}

/// As Cephes: at least nine terms, then the formula of Euler and Maclaurin.
fn zeta_of_positive(s: f64, q: f64) -> f64 {
    if q.is_infinite() {
        return 0.0;
    }
    let (mut sum, mut a, mut term) = (q.powf(-s), q, 0.0);
    let mut terms = 0;
    while terms < 9 || a <= 9.0 {
        terms += 1;
        a += 1.0;
        term = a.powf(-s);
        sum += term;
        if term <= f64::EPSILON / 2.0 * sum {
            return sum;
        }
    }
    sum += term * a / (s - 1.0) - 0.5 * term;
    let (mut factor, mut k) = (1.0, 0.0);
    for divisor in EULER {
        factor *= s + k;
        term /= a;
        let next = factor * term / divisor;
        sum += next;
        if (next / sum).abs() < f64::EPSILON / 2.0 {
            break;
        }
        k += 1.0;
        factor *= s + k;
        term /= a;
        k += 1.0;
    }
    sum
}

/// The derivative of order `n` of digamma (5.15.1); `n` is cut to a whole number, and below 0 the value is NaN.
pub(crate) fn polygamma(n: f64, x: f64) -> f64 {
    let n = n.trunc();
    if n.is_nan() || n < 0.0 {
        return f64::NAN;
    }
    if n == 0.0 {
        return digamma(x);
    }
    let size = libm::tgamma(n + 1.0) * zeta(n + 1.0, x);
    if n % 2.0 == 0.0 { -size } else { size }
}
