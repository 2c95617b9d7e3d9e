use oflow_kernels::vmath::*;

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
    check32("erfc", 6.0, Real::erfc, Real::erfc, any);
    check32("exp2", 1.5, Real::exp2, f64::exp2, any);
    check32("log2", 2.0, Real::log2, f64::log2, any);
    check32("log10", 2.0, Real::log10, f64::log10, any);
    check32("tan", 3.5, Real::tan, f64::tan, any);
    check32("asin", 2.5, Real::asin, f64::asin, any);
    check32("acos", 2.5, Real::acos, f64::acos, any);
    check32("atan", 2.5, Real::atan, f64::atan, any);
    check32("sinh", 4.0, Real::sinh, f64::sinh, any);
    check32("cosh", 4.0, Real::cosh, f64::cosh, any);
    check32("asinh", 3.5, Real::asinh, f64::asinh, any);
    check32("acosh", 3.5, Real::acosh, f64::acosh, any);
    check32("atanh", 3.5, Real::atanh, f64::atanh, any);
    // Below, 1 + exp(-x) overflows and the true result is a denormal.
    check32("sigmoid", 2.5, Real::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), |x| x > -88.0 || x.is_nan());
    assert_eq!(Real::sigmoid(-f32::INFINITY), 0.0);
}

/// The library's loses digits near 1.
fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    match x {
        x if x < 1.0 => f64::NAN,
        x if x < 2.0 => (t + (t * (x + 1.0)).sqrt()).ln_1p(),
        x => f64::acosh(x),
    }
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
    let functions: [Pair; 19] = [
        ("exp2", 2.0, Real::exp2, f64::exp2),
        ("log2", 3.0, Real::log2, f64::log2),
        ("log10", 3.0, Real::log10, f64::log10),
        ("tan", 4.0, Real::tan, f64::tan),
        ("asin", 3.0, Real::asin, f64::asin),
        ("acos", 3.0, Real::acos, f64::acos),
        ("atan", 3.0, Real::atan, f64::atan),
        ("sinh", 4.5, Real::sinh, f64::sinh),
        ("cosh", 4.5, Real::cosh, f64::cosh),
        ("asinh", 6.0, Real::asinh, f64::asinh),
        ("acosh", 6.0, Real::acosh, acosh),
        // The library's loses digits near -1.
        ("atanh", 6.0, Real::atanh, |x| f64::atanh(x.abs()).copysign(x)),
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

/// Values of erfc computed with 40 digits.
#[test]
fn erfc64_known_values() {
    let table = [
        (-5.0, 1.9999999999984626),
        (-0.3, 1.3286267594591274),
        (0.1, 0.887537083981715),
        (0.49, 0.4883317388114769),
        (0.5, 0.4795001221869535),
        (0.9, 0.20309178757716786),
        (1.7, 0.01620954140922544),
        (4.5, 1.9661604415428876e-10),
        (10.0, 2.088487583762545e-45),
        (19.3, 4.953762402955995e-164),
        (26.5, 2.2109076642637343e-307),
    ];
    for (x, want) in table {
        assert!(ulps(Real::erfc(x), want, 53, -1022) <= 16.0, "erfc({x}) = {}", Real::erfc(x));
    }
    assert_eq!((Real::erfc(f64::INFINITY), Real::erfc(-f64::INFINITY)), (0.0, 2.0));
    assert!(Real::erfc(f64::NAN).is_nan());
}

/// Lengths of vectors and sums of powers, also where squares and powers overflow.
#[test]
fn hypot_and_logaddexp_on_their_edges() {
    let ends =
        [0.0, -0.0, 1.0, -1.0, 3e-30, -3.7e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5, -0.3, 700.0, -90.0];
    for a in ends {
        for b in ends {
            let (have, want) = (Real::hypot(a, b), f64::hypot(a, b));
            assert!(
                ulps(have, want, 53, -1022) <= 3.0 && have.is_sign_positive() | have.is_nan(),
                "hypot({a}, {b}): {have}"
            );
            let (have, want) = (Real::hypot(a as f32, b as f32), f64::hypot(f64::from(a as f32), f64::from(b as f32)));
            assert!(ulps32(have, want) <= 3.0, "hypot({a}, {b}): {have} not {want}");
            let want = match a == b {
                true => a + std::f64::consts::LN_2,
                false => {
                    f64::max(a, b)
                        + (-(a - b).abs()).exp().ln_1p()
                        + 0.0 * if a.is_nan() || b.is_nan() { f64::NAN } else { 0.0 }
                }
            };
            let have = Real::logaddexp(a, b);
            assert!(
                have == want || (have - want).abs() <= 1e-14 * want.abs() || have.is_nan() & want.is_nan(),
                "{a} {b}: {have}"
            );
        }
    }
}

/// The angle is C's, in all quarters and on their edges.
#[test]
fn atan2_is_cs() {
    let ends = [0.0, -0.0, 1.0, -1.0, 1e-300, -3.7e200, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5, -0.3];
    for y in ends {
        for x in ends {
            let (have, want) = (Real::atan2(y, x), f64::atan2(y, x));
            assert!(ulps(have, want, 53, -1022) <= 3.0, "atan2({y}, {x}): {have} not {want}");
            assert!(want != 0.0 || have.is_sign_negative() == want.is_sign_negative(), "atan2({y}, {x}): {have}");
            let (have, want) = (Real::atan2(y as f32, x as f32), f64::atan2(f64::from(y as f32), f64::from(x as f32)));
            assert!(ulps32(have, want) <= 3.0, "atan2({y}, {x}): {have} not {want}");
        }
    }
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
    let odd: [fn(f32) -> f32; 11] = [
        Real::expm1,
        Real::log1p,
        Real::tanh,
        Real::sin,
        Real::erf,
        Real::tan,
        Real::asin,
        Real::atan,
        Real::sinh,
        Real::asinh,
        Real::atanh,
    ];
    for f in odd {
        assert!(f(-0.0).is_sign_negative() && f(0.0).is_sign_positive());
    }
}
