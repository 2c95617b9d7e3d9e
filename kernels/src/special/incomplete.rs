//! The incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x) (8.2.4).
//!
//! Each is summed by the series or the continued fraction that converges there, and the other is the difference to 1 where that loses
//! nothing. Where both parameters are large and close, both take thousands of terms: there N. Temme's uniform expansion serves (8.12).

use super::horner;
use std::f64::consts::{PI, SQRT_2};

const MOST_TERMS: usize = 4000;

/// The lower one, P: the regularized integral from 0 to `x`. NaN for a negative argument.
pub(crate) fn igamma(a: f64, x: f64) -> f64 {
    both(a, x, f64::EPSILON).0
}

/// The upper one, Q.
pub(crate) fn igammac(a: f64, x: f64) -> f64 {
    both(a, x, f64::EPSILON).1
}

/// The relative error that is lost when a value is rounded to f32.
const COARSE: f64 = 1e-10;

/// P, for numbers of f32.
#[inline(never)]
pub(crate) fn igamma_of_single(a: f32, x: f32) -> (f32, bool) {
    (both(a as f64, x as f64, COARSE).0 as f32, true)
}

/// Q, for numbers of f32.
#[inline(never)]
pub(crate) fn igammac_of_single(a: f32, x: f32) -> (f32, bool) {
    (both(a as f64, x as f64, COARSE).1 as f32, true)
}

/// P and Q, with terms down to the part `epsilon` of the sum.
fn both(a: f64, x: f64, epsilon: f64) -> (f64, f64) {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 {
        return (f64::NAN, f64::NAN);
    }
    match (a == 0.0 || x == f64::INFINITY, x == 0.0 || a == f64::INFINITY) {
        (true, true) => return (f64::NAN, f64::NAN),
        (true, false) => return (1.0, 0.0),
        (false, true) => return (0.0, 1.0),
        (false, false) => (),
    }
    if a > 200.0 && (x - a).abs() < 0.3 * a {
        return uniform(a, x);
    }
    if x <= 1.1 {
        let q = near_zero(a, x, epsilon);
        if q < 0.5 {
            return (1.0 - q, q);
        }
    }
    if x <= 1.1 || x < a {
        let p = front(a, x, epsilon) / a * series(a, x, epsilon);
        return (p, 1.0 - p);
    }
    let q = front(a, x, epsilon) * fraction(a, x, epsilon);
    (1.0 - q, q)
}

/// `x^a exp(-x) / gamma(a)`.
fn front(a: f64, x: f64, epsilon: f64) -> f64 {
    if a < 10.0 && epsilon >= COARSE {
        // The logarithms leave enough digits.
        return (a * x.ln() - x - libm::lgamma(a)).exp();
    }
    if a < 10.0 {
        return if x > 800.0 { 0.0 } else { x.powf(a) * (-x).exp() / libm::tgamma(a) };
    }
    // By Stirling's series (5.11.1), in which the large logarithms have gone.
    (a / (2.0 * PI)).sqrt() * (a * exponent(a, x) - stirling(a)).exp()
}

/// `lgamma(a)` less its leading terms, for `a` from 10 on.
fn stirling(a: f64) -> f64 {
    let z = 1.0 / (a * a);
    horner(z, &[1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0])
        / a
}

/// `log(x / a) - (x - a) / a`, also where both are close.
fn exponent(a: f64, x: f64) -> f64 {
    let m = (x - a) / a;
    if m.abs() > 0.5 {
        return (x / a).ln() - m;
    }
    // log(1 + m) is 2 atanh(s), and 2 s is m - s m.
    let s = m / (2.0 + m);
    let z = s * s;
    let (mut sum, mut power) = (0.0, s * z);
    for n in 1..24 {
        sum += power / (2 * n + 1) as f64;
        power *= z;
    }
    2.0 * sum - s * m
}

/// The series of P (8.11.4), without the front and divided by its first term `1 / a`.
fn series(a: f64, x: f64, epsilon: f64) -> f64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, a);
    for _ in 0..MOST_TERMS {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term <= epsilon / 2.0 * sum {
            break;
        }
    }
    sum
}

/// The continued fraction of Q (8.9.2) by J. Steed's method, without the front: one division a step. From `x` = `a` on no denominator is zero.
fn fraction(a: f64, x: f64, epsilon: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let mut d = 1.0 / b;
    let (mut value, mut change) = (d, d);
    for n in 1..MOST_TERMS {
        let n = n as f64;
        let by = n * (a - n);
        b += 2.0;
        d = 1.0 / (by * d + b);
        change *= b * d - 1.0;
        value += change;
        if change.abs() <= epsilon * value.abs() {
            break;
        }
    }
    value
}

/// Q for `x` up to 1.1 by its own series, in which no digits cancel for small `a` (Gautschi 1979).
fn near_zero(a: f64, x: f64, epsilon: f64) -> f64 {
    let (mut sum, mut term) = (0.0, 1.0);
    for n in 1..64 {
        let n = n as f64;
        term *= -x / n;
        let next = term / (a + n);
        sum += next;
        if next.abs() <= epsilon / 2.0 * f64::abs(sum) {
            break;
        }
    }
    let log = a * x.ln() - log_gamma_of_next(a);
    -log.exp_m1() - log.exp() * a * sum
}

/// `lgamma(1 + a)` for `a` up to 2.2, with its digits near `a` = 0.
fn log_gamma_of_next(a: f64) -> f64 {
    if a > 0.25 {
        return libm::lgamma(1.0 + a);
    }
    // Taylor's series (5.7.3).
    a * horner(a, &GAMMA_OF_NEXT)
}

/// `-euler`, then `(-1)^k zeta(k) / k`.
const GAMMA_OF_NEXT: [f64; 25] = [
    -0.5772156649015329,
    0.8224670334241132,
    -0.40068563438653143,
    0.27058080842778454,
    -0.20738555102867398,
    0.1695571769974082,
    -0.1440498967688461,
    0.12550966952474304,
    -0.11133426586956469,
    0.1000994575127818,
    -0.09095401714582904,
    0.083353840546109,
    -0.0769325164113522,
    0.07143294629536133,
    -0.06666870588242046,
    0.06250095514121304,
    -0.058823978658684585,
    0.055555767627403614,
    -0.05263167937961666,
    0.05000004769810169,
    -0.047619070330142226,
    0.04545455629320467,
    -0.04347826605304026,
    0.04166666915034121,
    -0.040000001192140144,
];

/// Coefficients of the expansion: of `1 / a^k` a row, in it of the powers of η (8.12.10, 8.12.12).
const TEMME: &[&[f64]] = &[
    &[
        -0.3333333333333333,
        0.08333333333333333,
        -0.014814814814814815,
        1.1574074074074073e-3,
        3.527336860670194e-4,
        -1.787551440329218e-4,
        3.919263178522438e-5,
        -2.1854485106799924e-6,
        -1.85406221071516e-6,
        8.296711340953087e-7,
        -1.7665952736826078e-7,
        6.707853543401498e-9,
        1.0261809784240309e-8,
        -4.382036018453353e-9,
        9.14769958223679e-10,
    ],
    &[
        -0.001851851851851852,
        -0.003472222222222222,
        2.6455026455026454e-3,
        -9.902263374485596e-4,
        2.0576131687242798e-4,
        -4.018775720164609e-7,
        -1.8098550334489977e-5,
        7.64916091608111e-6,
        -1.6120900894563446e-6,
        4.647127802807434e-9,
        1.378633446915721e-7,
        -5.752545603517705e-8,
        1.1951628599778148e-8,
    ],
    &[
        0.004133597883597883,
        -2.6813271604938273e-3,
        7.716049382716049e-4,
        2.0093878600823047e-6,
        -1.0736653226365161e-4,
        5.2923448829120125e-5,
        -1.2760635188618728e-5,
        3.423578734096138e-8,
        1.3721957309062932e-6,
        -6.298992138380055e-7,
        1.4280614206064242e-7,
    ],
    &[
        6.494341563786008e-4,
        2.2947209362139917e-4,
        -4.691894943952557e-4,
        2.6772063206283885e-4,
        -7.561801671883977e-5,
        -2.396505113867297e-7,
        1.1082654115347302e-5,
        -5.6749528269915965e-6,
        1.4230900732435883e-6,
    ],
    &[
        -8.618882909167117e-4,
        7.840392217200666e-4,
        -2.990724803031902e-4,
        -1.4638452578843418e-6,
        6.641498215465122e-5,
        -3.968365047179435e-5,
        1.1375726970678419e-5,
    ],
    &[-3.3679855336635813e-4, -6.972813758365858e-5, 2.772753244959392e-4, -1.9932570516188847e-4],
];

/// Both by Temme's expansion in powers of `1 / a` (8.12.7).
fn uniform(a: f64, x: f64) -> (f64, f64) {
    let m = (x - a) / a;
    let half_square = -exponent(a, x);
    let eta = (2.0 * half_square).sqrt().copysign(m);
    let sum = TEMME.iter().rev().fold(0.0, |sum, row| sum / a + horner(eta, row));
    let rest = (-a * half_square).exp() / (2.0 * PI * a).sqrt() * sum;
    let z = eta * a.sqrt() / SQRT_2;
    (0.5 * libm::erfc(-z) - rest, 0.5 * libm::erfc(z) + rest)
}
