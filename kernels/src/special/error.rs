//! Functions around the error function: `erfcx`, and the inverse functions of `erf` and of the normal distribution function.

use super::{chebyshev, exp_square, horner};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// `sqrt(pi / 2)`
const SQRT_HALF_PI: f64 = 1.2533141373155003;

/// `(1 + 2x) erfcx(x)` in `(x - 3.75) / (x + 3.75)` (Shepherd and Laframboise 1981).
const ERFCX: [f64; 27] = [
    1.1775789345674018,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    4.907758365258086e-4,
    -6.916973302501207e-5,
    4.13902798607301e-6,
    7.74038306619849e-7,
    -2.1886401049234397e-7,
    1.076499946567091e-8,
    4.521959811218287e-9,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777347e-13,
    -9.65469674843344e-13,
    3.25254814814874e-14,
    3.3478119482868056e-14,
    -1.864562880419313e-15,
    -1.2507950530688648e-15,
    7.418235256624044e-17,
    5.068148904796111e-17,
    -2.2370566594359995e-18,
    -2.187342944303018e-18,
];

/// `exp(x²) erfc(x)`.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        // exp(x²) overflows below -26.7.
        return 2.0 * exp_square(x.max(-27.0), 1.0) - erfcx(-x);
    }
    // At infinity the quotient is 1 and the value 0.
    let t = if x == f64::INFINITY { 1.0 } else { (x - 3.75) / (x + 3.75) };
    chebyshev(t, &ERFCX) / (1.0 + 2.0 * x)
}

/// P. Acklam's rational approximation of the inverse normal distribution function, with a relative error of 1e-9: what the steps of
/// [`middle`] and [`tail`] begin with. In the middle by `p - 1/2`, in a tail by `sqrt(-2 log(p))`.
const MIDDLE: ([f64; 6], [f64; 6]) = (
    [
        2.506628277459239,
        -30.66479806614716,
        138.357751867269,
        -275.9285104469687,
        220.9460984245205,
        -39.69683028665376,
    ],
    [1.0, -13.28068155288572, 66.80131188771972, -155.6989798598866, 161.5858368580409, -54.47609879822406],
);
const TAIL: ([f64; 6], [f64; 5]) = (
    [
        2.938163982698783,
        4.374664141464968,
        -2.549732539343734,
        -2.400758277161838,
        -0.3223964580411365,
        -0.007784894002430293,
    ],
    [1.0, 3.754408661907416, 2.445134137142996, 0.3224671290700398, 0.007784695709041462],
);
const TAIL_FROM: f64 = 0.02425;

fn start(p: f64) -> f64 {
    if p < TAIL_FROM {
        let q = (-2.0 * p.ln()).sqrt();
        return horner(q, &TAIL.0) / horner(q, &TAIL.1);
    }
    let q = p - 0.5;
    q * horner(q * q, &MIDDLE.0) / horner(q * q, &MIDDLE.1)
}

/// The inverse error function of `y` in `-1/2..=1/2`: one step of Newton's method with the curvature (Halley).
fn middle(y: f64) -> f64 {
    let x = start(0.5 + 0.5 * y) * FRAC_1_SQRT_2;
    let by = (libm::erf(x) - y) / (FRAC_2_SQRT_PI * (-x * x).exp());
    x - by / (1.0 + x * by)
}

/// The inverse normal distribution function of `p` in `0..=1/4`: the same, of the relative error, since `p` may be tiny.
fn tail(p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    let x = start(p);
    let below = -x * FRAC_1_SQRT_2;
    let by = SQRT_HALF_PI * erfcx(below) * (1.0 - p / (0.5 * libm::erfc(below)));
    x - by / (1.0 + 0.5 * x * by)
}

/// The number whose error function is `y`: infinite at -1 and 1, NaN beyond.
pub(crate) fn erfinv(y: f64) -> f64 {
    let a = y.abs();
    let x = match a {
        _ if a <= 0.5 => middle(a),
        _ if a <= 1.0 => -tail(0.5 * (1.0 - a)) * FRAC_1_SQRT_2,
        _ => f64::NAN,
    };
    x.copysign(y)
}

/// The inverse of the normal distribution function: infinite at 0 and 1, NaN beyond.
pub(crate) fn ndtri(p: f64) -> f64 {
    match p {
        _ if (0.0..=0.25).contains(&p) => tail(p),
        // These differences are exact.
        _ if (0.25..=0.75).contains(&p) => SQRT_2 * erfinv(2.0 * (p - 0.5)),
        _ if (0.75..=1.0).contains(&p) => -tail(1.0 - p),
        _ => f64::NAN,
    }
}
