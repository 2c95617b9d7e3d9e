//! Bessel functions of orders 0 and 1, and the modified ones.

use super::polynomial;
use crate::vmath::Real;
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI};

/// `exp(-x) I0(x)` of 0 to 8.
const I0_NEAR: [f64; 20] = [
    0.20700192113298854,
    -0.1130043268544693,
    0.09451564672892827,
    -0.08904344770455307,
    0.08734281771702368,
    -0.08496317214579,
    0.07928284334431146,
    -0.06954385402504584,
    0.05672795589861263,
    -0.04296881129335962,
    0.030358703692477982,
    -0.019745851414068618,
    0.011557353661066808,
    -0.006651419484491594,
    0.004166015653562654,
    -0.0020044758245779414,
    0.0004143919060489856,
    -0.00022722968338111303,
    0.00034824109057890804,
    -0.00013152060630607088,
];

/// `exp(-x) sqrt(x) I0(x)` from 8 on, in `16 / x - 1`.
const I0_FAR: [f64; 8] = [
    0.4021765094053054,
    0.0033605520313900634,
    0.000136217407834547,
    1.1141542189580863e-05,
    1.4754756356201013e-06,
    3.0383309086686276e-07,
    1.0910232941075882e-07,
    3.3635802235185296e-08,
];

/// `exp(-x) I1(x) / x` of 0 to 8.
const I1_NEAR: [f64; 20] = [
    0.04468770986450251,
    -0.061124338025990106,
    0.06805760212960305,
    -0.06848260694070092,
    0.06376733064622675,
    -0.05528001503648954,
    0.0446755031610766,
    -0.03367166370472805,
    0.023680016667049938,
    -0.015569320920202672,
    0.009606095385955372,
    -0.005541908244896256,
    0.0029563628396675574,
    -0.001522471036028631,
    0.000812047943412777,
    -0.0003636452040028463,
    9.375809886867844e-05,
    -4.317720058003002e-05,
    4.7479082033953785e-05,
    -1.694785151624946e-05,
];

/// `exp(-x) sqrt(x) I1(x)` from 8 on, in `16 / x - 1`.
const I1_FAR: [f64; 8] = [
    0.3893984590744713,
    -0.009749577241315432,
    -0.00021923738535629923,
    -1.5037047143805947e-05,
    -1.8250069387125121e-06,
    -3.5481954165334105e-07,
    -1.2318419674047784e-07,
    -3.7856024793316294e-08,
];

/// `I0(x)` of 0 to 2, in `x² / 2 - 1`.
const I0_SMALL: [f64; 7] = [
    1.5660829297563506,
    0.6358617281918727,
    0.07358986836133115,
    0.0039285648192054524,
    0.00011982068359394859,
    2.3581518403733327e-06,
    3.2366718312360185e-08,
];

/// `I1(x) / x`, the same.
const I1_SMALL: [f64; 7] = [
    0.6358617281560686,
    0.14717973672432907,
    0.011785695316925773,
    0.00047928272548623417,
    1.1787894816684295e-05,
    1.9420919945135071e-07,
    2.2915190601010533e-09,
];

/// `K0(x) + log(x / 2) I0(x)` of 0 to 2, in `x² / 2 - 1`.
const K0_NEAR: [f64; 7] = [
    -0.30362077291575545,
    0.34049732108582653,
    0.07177701034300148,
    0.0050533920636324,
    0.00018280555350815847,
    4.055665724242694e-06,
    6.094316092988099e-08,
];

/// `exp(x) sqrt(x) K0(x)` from 2 on, in `4 / x - 1`.
const K0_FAR: [f64; 12] = [
    1.2185953384969628,
    -0.03107146181744885,
    0.0030328929896016243,
    -0.0004797695908271675,
    9.954699741673e-05,
    -2.472907402830204e-05,
    7.058262613141843e-06,
    -2.216473674571241e-06,
    6.410188560625321e-07,
    -2.2312275443749348e-07,
    1.8257888642646634e-07,
    -7.686174163082869e-08,
];

/// `x (K1(x) - log(x / 2) I1(x))` of 0 to 2, in `x² / 2 - 1`.
const K1_NEAR: [f64; 7] = [
    0.8850882877295894,
    -0.33224095622832095,
    -0.24383852887707702,
    -0.02785422731577669,
    -0.001383168771948761,
    -3.8934498226216296e-05,
    -7.082627077496909e-07,
];

/// `exp(x) sqrt(x) K1(x)` from 2 on, in `4 / x - 1`.
const K1_FAR: [f64; 12] = [
    1.36315189039023,
    0.10334973774537291,
    -0.005566731236064947,
    0.000735724764474843,
    -0.0001395746364815623,
    3.2836866922166936e-05,
    -9.025657352607762e-06,
    2.7589309952508143e-06,
    -7.895308388984549e-07,
    2.7065248742457926e-07,
    -2.1388610661022742e-07,
    8.913255649538525e-08,
];

/// The squares of the first two zeros of J0, and of those of J1 beside 0, each in two parts.
const J0_ZEROS: [[f64; 2]; 2] =
    [[5.783185962946784, 4.123247343506204e-16], [30.471262343662087, -2.366534485750659e-16]];
const J1_ZEROS: [[f64; 2]; 2] =
    [[14.681970642123893, -9.858177825793294e-17], [49.2184563216946, 5.086354069436341e-16]];

/// `J0(x)` over the factors of the two zeros, of 0 to 8, in `x² / 32 - 1`.
const J0_NEAR: [f64; 13] = [
    0.0011434937743762545,
    -0.0021197942894796524,
    0.001563643164593165,
    -0.0006415390646417214,
    0.00016977200714001403,
    -3.157342539336169e-05,
    4.3669323243558085e-06,
    -4.6771283255535413e-07,
    3.998839443141658e-08,
    -2.7948122577318608e-09,
    1.627632671125727e-10,
    -8.06404153479144e-12,
    3.405352301814927e-13,
];

/// `J1(x) / x`, the same.
const J1_NEAR: [f64; 13] = [
    0.00019498936985895625,
    -0.0002697522746716356,
    0.00015860016799369868,
    -5.4080032390889806e-05,
    1.2242173653016658e-05,
    -1.989093515636274e-06,
    2.442522260668067e-07,
    -2.352192349888975e-08,
    1.8268547983228736e-09,
    -1.1696773666288912e-10,
    6.2846858437364846e-12,
    -2.8882395452870847e-13,
    1.1381512676912006e-14,
];

/// `Y0(x) - 2/pi log(x / 2) J0(x)` of 0 to 8, in `x² / 32 - 1`.
const Y0_NEAR: [f64; 16] = [
    -0.3620273432371452,
    -0.4179207423206952,
    1.360945659965543,
    -0.2124599944206596,
    -0.6193407826302778,
    0.44824604463563333,
    -0.1545367965235697,
    0.03380285696398703,
    -0.0052350276689755,
    0.0006104345644020021,
    -5.581830851725728e-05,
    4.122054319450062e-06,
    -2.51436472719399e-07,
    1.2898090169155057e-08,
    -5.674562050217625e-10,
    2.1435468615998184e-11,
];

/// `(Y1(x) - 2/pi log(x / 2) J1(x) + 2/pi / x) / x`, the same.
const Y1_NEAR: [f64; 16] = [
    0.04510266206869483,
    -0.20760857842830602,
    0.09022750636730927,
    0.12052035426888161,
    -0.12641995056569705,
    0.05439011630794635,
    -0.014131923394262674,
    0.0025271340466825557,
    -0.0003337225700557422,
    3.406363375379881e-05,
    -2.7765056994287677e-06,
    1.8524201757414394e-07,
    -1.0315248361331402e-08,
    4.87102633859335e-10,
    -1.9850545830630388e-11,
    6.991420949733099e-13,
];

/// The even part of Hankel's expansion (10.17.3) from 8 on, in `128 / x² - 1`, of order 0.
const P0: [f64; 9] = [
    0.9994572757882519,
    -0.000536367319169134,
    6.137416068847814e-06,
    -2.0527506332119517e-07,
    1.2803910475871568e-08,
    -1.210054503816268e-09,
    1.5448054015199963e-10,
    -2.7542897398730253e-11,
    5.451667226871769e-12,
];

/// The odd one, multiplied by x.
const Q0: [f64; 9] = [
    -0.12444091103610815,
    0.0005466519276546195,
    -1.1817110580124132e-05,
    5.685010693959448e-07,
    -4.5350801563822564e-08,
    5.13249160956469e-09,
    -7.538443325979402e-10,
    1.538651603175602e-10,
    -3.3539367772153797e-11,
];

/// Of order 1.
const P1: [f64; 9] = [
    1.0009070262780821,
    0.0008988049416233495,
    -7.959694686379608e-06,
    2.4536828827535476e-07,
    -1.4708672583645436e-08,
    1.3580846947856033e-09,
    -1.7074833184117887e-10,
    3.006802397643271e-11,
    -5.903375328721361e-12,
];

/// The odd one, multiplied by x.
const Q1: [f64; 9] = [
    0.3742149922195918,
    -0.0007697167054502784,
    1.4569614723298097e-05,
    -6.633610182469619e-07,
    5.136220570570436e-08,
    -5.706154427726617e-09,
    8.275623982965198e-10,
    -1.670803844901018e-10,
    3.616454403411779e-11,
];

/// `exp(-a) I(a)`, near zero over what is a factor there.
#[inline(always)]
fn scaled_i(a: f64, by: f64, near: &[f64; 20], far: &[f64; 8]) -> f64 {
    let close = a <= 8.0;
    let r = 1.0 / a.sqrt();
    let (near, far) = (polynomial(0.25 * a - 1.0, near) * by, polynomial(16.0 * r * r - 1.0, far) * r);
    if close { near } else { far }
}

/// Beyond, I0 and I1 overflow in f32.
#[inline(always)]
fn limited(a: f64) -> f64 {
    if a > 200.0 { 200.0 } else { a }
}

#[inline(always)]
pub(crate) fn i0e(x: f32) -> (f32, bool) {
    (scaled_i(x.abs() as f64, 1.0, &I0_NEAR, &I0_FAR) as f32, true)
}

#[inline(always)]
pub(crate) fn i0(x: f32) -> (f32, bool) {
    let a = limited(x.abs() as f64);
    ((scaled_i(a, 1.0, &I0_NEAR, &I0_FAR) * Real::exp(a)) as f32, true)
}

#[inline(always)]
pub(crate) fn i1e(x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let y = scaled_i(a, a, &I1_NEAR, &I1_FAR) as f32;
    (if x < 0.0 { -y } else { y }, true)
}

#[inline(always)]
pub(crate) fn i1(x: f32) -> (f32, bool) {
    let a = limited(x.abs() as f64);
    let y = (scaled_i(a, a, &I1_NEAR, &I1_FAR) * Real::exp(a)) as f32;
    (if x < 0.0 { -y } else { y }, true)
}

/// K0, or K1 if `by` is x, times `exp(x)` if `scaled`; NaN below 0.
#[inline(always)]
fn k(x: f64, scaled: bool, by: Option<f64>, tables: (&[f64; 7], &[f64; 7], &[f64; 12])) -> f64 {
    let (rest, small, far) = tables;
    // NaN takes the second way.
    let close = x <= 2.0;
    let t = 0.5 * x * x - 1.0;
    let (log, small, rest) = (Real::log(0.5 * x), polynomial(t, small), polynomial(t, rest));
    let near = match by {
        None => rest - log * small,
        Some(x) => rest / x + log * (small * x),
    };
    let y = if close { near } else { polynomial(4.0 / x - 1.0, far) / x.sqrt() };
    let power = if scaled { if close { x } else { 0.0 } } else { if close { 0.0 } else { -x } };
    y * Real::exp(power)
}

#[inline(always)]
fn k0_by(x: f32, scaled: bool) -> f32 {
    k(x as f64, scaled, None, (&K0_NEAR, &I0_SMALL, &K0_FAR)) as f32
}

#[inline(always)]
fn k1_by(x: f32, scaled: bool) -> f32 {
    let y = k(x as f64, scaled, Some(x as f64), (&K1_NEAR, &I1_SMALL, &K1_FAR)) as f32;
    if x == 0.0 { f32::INFINITY } else { y }
}

#[inline(always)]
pub(crate) fn bessel_k0(x: f32) -> (f32, bool) {
    (k0_by(x, false), true)
}

#[inline(always)]
pub(crate) fn bessel_k0e(x: f32) -> (f32, bool) {
    (k0_by(x, true), true)
}

#[inline(always)]
pub(crate) fn bessel_k1(x: f32) -> (f32, bool) {
    (k1_by(x, false), true)
}

#[inline(always)]
pub(crate) fn bessel_k1e(x: f32) -> (f32, bool) {
    (k1_by(x, true), true)
}

/// J0, or J1 over x, of 0 to 8, by the square.
#[inline(always)]
fn j_near(square: f64, zeros: &[[f64; 2]; 2], c: &[f64; 13]) -> f64 {
    let factor = |z: [f64; 2]| (square - z[0]) - z[1];
    factor(zeros[0]) * factor(zeros[1]) * polynomial(square * (1.0 / 32.0) - 1.0, c)
}

/// Hankel's two sums from 8 on over `sqrt(pi a)`, and sine and cosine: J0 is `(p (c + s) - q (s - c))`, the others alike.
#[inline(always)]
fn hankel(a: f64, p: &[f64; 9], q: &[f64; 9]) -> ([f64; 2], [f64; 2]) {
    let r = 1.0 / a;
    let t = 128.0 * (r * r) - 1.0;
    let size = (FRAC_1_PI * r).sqrt();
    let (s, c) = a.sin_cos_fast();
    ([size * polynomial(t, p), size * (r * polynomial(t, q))], [s + c, s - c])
}

/// Up to where sine and cosine have their fast form.
#[inline(always)]
fn within(x: f32) -> bool {
    x.abs() <= f32::SIN_LIMIT
}

#[inline(always)]
pub(crate) fn bessel_j0(x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let ([p, q], [sum, difference]) = hankel(a, &P0, &Q0);
    let far = p * sum - q * difference;
    ((if a <= 8.0 { j_near(a * a, &J0_ZEROS, &J0_NEAR) } else { far }) as f32, within(x))
}

#[inline(always)]
pub(crate) fn bessel_j1(x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let ([p, q], [sum, difference]) = hankel(a, &P1, &Q1);
    let far = p * difference + q * sum;
    let y = if a <= 8.0 { a * j_near(a * a, &J1_ZEROS, &J1_NEAR) } else { far } as f32;
    (if x.is_sign_negative() { -y } else { y }, within(x))
}

/// The logarithm is NaN below 0.
#[inline(always)]
pub(crate) fn bessel_y0(x: f32) -> (f32, bool) {
    let a = x as f64;
    let ([p, q], [sum, difference]) = hankel(a, &P0, &Q0);
    let square = a * a;
    let rest = polynomial(square * (1.0 / 32.0) - 1.0, &Y0_NEAR);
    let near = FRAC_2_PI * Real::log(0.5 * a) * j_near(square, &J0_ZEROS, &J0_NEAR) + rest;
    ((if a <= 8.0 { near } else { p * difference + q * sum }) as f32, within(x))
}

#[inline(always)]
pub(crate) fn bessel_y1(x: f32) -> (f32, bool) {
    let a = x as f64;
    let ([p, q], [sum, difference]) = hankel(a, &P1, &Q1);
    let square = a * a;
    let rest = polynomial(square * (1.0 / 32.0) - 1.0, &Y1_NEAR);
    let near = a * (FRAC_2_PI * Real::log(0.5 * a) * j_near(square, &J1_ZEROS, &J1_NEAR) + rest) - FRAC_2_PI / a;
    let y = if a <= 8.0 { near } else { q * difference - p * sum };
    (if x == 0.0 { f32::NEG_INFINITY } else { y as f32 }, within(x))
}

/// `sin(x) / x`.
#[inline(always)]
pub(crate) fn spherical_j0(x: f32) -> (f32, bool) {
    (if x == 0.0 { 1.0 } else { x.sin_cos_fast().0 / x }, within(x))
}
