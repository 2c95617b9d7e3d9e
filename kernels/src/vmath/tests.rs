use super::*;

/// Distance in units of the last place of the expected value; equal infinities and two NaNs are zero apart.
fn ulps<T: Real>(got: T, want: f64, digits: i32, min_exp: i32) -> f64 {
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = T::from_f64(want).to_f64();
    if rounded.is_infinite() || got.to_f64().is_infinite() {
        return if rounded == got.to_f64() { 0.0 } else { f64::INFINITY };
    }
    let exponent = (want.abs().log2().floor() as i32).max(min_exp);
    (got.to_f64() - want).abs() / 2f64.powi(exponent) * 2f64.powi(digits - 1)
}

fn ulps32(got: f32, want: f64) -> f64 {
    ulps(got, want, 24, -126)
}

/// Every 9973rd f32, and the specials.
fn all_f32() -> impl Iterator<Item = f32> {
    let specials = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, -f32::INFINITY, f32::NAN, f32::MAX, f32::MIN, 1e-45, 1e-39];
    specials.into_iter().chain((0..=u32::MAX / 9973).map(|i| f32::from_bits(i * 9973)))
}

fn check32(name: &str, bound: f64, f: impl Fn(f32) -> f32, oracle: impl Fn(f64) -> f64, keep: impl Fn(f32) -> bool) {
    let (mut worst, mut at) = (0.0, 0.0);
    for x in all_f32().filter(|x| keep(*x)) {
        let d = ulps32(f(x), oracle(x as f64));
        if d > worst {
            (worst, at) = (d, x);
        }
    }
    assert!(worst <= bound, "{name}: {worst} ulp at {at:e}: {} not {}", f(at), oracle(at as f64));
}

#[test]
fn f32_functions_are_close_everywhere() {
    let any = |_: f32| true;
    check32("exp", 1.5, Real::exp, f64::exp, any);
    check32("expm1", 2.5, Real::expm1, f64::exp_m1, any);
    check32("log", 1.5, Real::log, f64::ln, any);
    check32("log1p", 2.5, Real::log1p, f64::ln_1p, any);
    check32("tanh", 3.0, Real::tanh, f64::tanh, any);
    check32("sin", 1.5, Real::sin, f64::sin, any);
    check32("cos", 1.5, Real::cos, f64::cos, any);
    check32("erf", 2.5, Real::erf, Real::erf, any);
    // Below, 1 + exp(-x) overflows and the true result is a denormal.
    check32("sigmoid", 2.5, Real::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), |x| x > -88.0 || x.is_nan());
    assert_eq!(Real::sigmoid(-f32::INFINITY), 0.0);
}

/// The standard library's own f64 functions are within one ulp, so the bounds are one wider than ours.
#[test]
fn f64_functions_are_close() {
    let points = (0..400_000).map(|i| {
        let mantissa = 1.0 + (i as f64 * 0.618_033_988_749_894_9).fract();
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        sign * mantissa * 2f64.powi((i * 7 % 76) - 64)
    });
    let specials =
        [0.0, f64::INFINITY, -f64::INFINITY, f64::NAN, 709.78, 709.79, -745.0, -746.0, 5e-324, 1e-310, 1e300];
    type Pair = (&'static str, f64, fn(f64) -> f64, fn(f64) -> f64);
    let functions: [Pair; 7] = [
        ("exp", 2.0, Real::exp, f64::exp),
        ("expm1", 3.0, Real::expm1, f64::exp_m1),
        ("log", 2.0, Real::log, f64::ln),
        ("log1p", 3.0, Real::log1p, f64::ln_1p),
        ("tanh", 4.0, Real::tanh, f64::tanh),
        ("sin", 2.5, Real::sin, f64::sin),
        ("cos", 2.5, Real::cos, f64::cos),
    ];
    for x in points.chain(specials) {
        for (name, bound, f, oracle) in functions {
            let d = ulps(f(x), oracle(x), 53, -1022);
            assert!(d <= bound, "{name}({x:e}): {} not {}, {d} ulp", f(x), oracle(x));
        }
    }
}

/// Values of erf computed with 40 digits.
#[test]
fn erf64_known_values() {
    let table = [
        (0.1, 0.1124629160182849),
        (0.5, 0.5204998778130465),
        (0.9, 0.796908212422832),
        (0.99, 0.8385080695553698),
        (1.0, 0.8427007929497149),
        (1.1, 0.8802050695740817),
        (1.7, 0.9837904585907746),
        (2.3, 0.9988568234026433),
        (3.0, 0.9999779095030014),
        (4.5, 0.999999999803384),
        (5.9, 0.9999999999999999),
    ];
    for (x, want) in table {
        assert!(ulps(Real::erf(x), want, 53, -1022) <= 2.0, "erf({x}) = {}", Real::erf(x));
        assert_eq!(Real::erf(-x), -Real::erf(x));
    }
    assert_eq!(Real::erf(f64::INFINITY), 1.0);
    assert!(Real::erf(f64::NAN).is_nan());
}

#[test]
fn nan_wins_in_max_and_min() {
    for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
        assert!(a.max_nan(b).is_nan() && a.min_nan(b).is_nan());
    }
    assert_eq!((1f32.max_nan(2.0), 1f32.min_nan(2.0)), (2.0, 1.0));
}

#[test]
fn signs_of_zero() {
    for f in [Real::expm1, Real::log1p, Real::tanh, Real::sin, Real::erf] as [fn(f32) -> f32; 5] {
        assert!(f(-0.0).is_sign_negative() && f(0.0).is_sign_positive());
    }
}
