//! Constants of [`vmath`](super). The polynomials interpolate at Chebyshev nodes (computed with 50 digits) or are the
//! Taylor series where that is short enough; the range-reduction constants are the leading bits of pi/2 and ln 2.

/// Adding and subtracting this rounds a f64 to an integer, ties to even; the integer is then in the low bits.
pub const MAGIC64: f64 = 6755399441055744.0;
const MAGIC32: f32 = 12582912.0;
/// pi/2, the first 33 bits.
pub const PIO2_1: f64 = 1.5707963267341256;
/// pi/2, the next 33 bits.
pub const PIO2_2: f64 = 6.077100506303966e-11;
/// pi/2, the rest.
pub const PIO2_3: f64 = 2.0222662487959506e-21;

pub mod k32 {
    use super::MAGIC32;
    /// Below, `exp` is zero.
    pub const EXP_LOW: f32 = -104.5;
    /// Above, `exp` is infinite.
    pub const EXP_HIGH: f32 = 89.0;
    pub const EXPM1_LOW: f32 = -20.0;
    pub const DENORMAL_SCALE: f32 = 16777216.0;
    pub const DENORMAL_SHIFT: f32 = 24.0;
    pub const SQRT_HALF_BITS: i32 = 0x3f35_04f3;
    pub const LN2_HI: f32 = 0.692_871_1;
    pub const LN2_LO: f32 = 0.000_276_086_82;
    pub const LOG10_2_HI: f32 = 0.301_025_4;
    pub const LOG10_2_LO: f32 = 4.605_039e-6;
    /// Rest of pi/2 that rounding to f32 leaves out.
    pub const PIO2_LO: f32 = -4.371_139e-8;
    /// Below, `exp2` is zero.
    pub const EXP2_LOW: f32 = -151.0;
    /// Above, `exp2` is infinite.
    pub const EXP2_HIGH: f32 = 129.0;
    /// From here on erf is one.
    pub const ERF_ONE: f32 = 4.0;

    /// `x = n ln 2 + r`.
    #[inline(always)]
    pub fn reduce_exp(x: f32) -> (i32, f32) {
        let shifted = x * std::f32::consts::LOG2_E + MAGIC32;
        let n = shifted - MAGIC32;
        let r = (x - n * LN2_HI) - n * LN2_LO;
        ((shifted.to_bits() as i32).wrapping_sub(MAGIC32.to_bits() as i32), r)
    }
    /// `2^x = 2^n e^r`.
    #[inline(always)]
    pub fn reduce_exp2(x: f32) -> (i32, f32) {
        let shifted = x + MAGIC32;
        let r = (x - (shifted - MAGIC32)) * std::f32::consts::LN_2;
        ((shifted.to_bits() as i32).wrapping_sub(MAGIC32.to_bits() as i32), r)
    }
    /// 2 to the power n, for n in -126..=127.
    #[inline(always)]
    pub fn pow2(n: i32) -> f32 {
        f32::from_bits((n.wrapping_add(127) as u32) << 23)
    }
    #[inline(always)]
    pub fn exponent_to_float(e: i32) -> f32 {
        e as f32
    }

    /// `(exp(r) - 1 - r) / r^2` on abs(r) <= ln(2) / 2.
    pub const EXPM1_R2: [f32; 6] = [0.5, 0.16666667, 0.041666456, 0.0083333105, 0.0013934541, 0.0001989198];

    /// `(2 atanh(s) - 2 s) / s^3` in s^2.
    pub const ATANH: [f32; 5] = [0.6666667, 0.4, 0.2857143, 0.22222222, 0.18181819];

    /// `(sin(r) - r) / r^3` in r^2.
    pub const SIN: [f32; 4] = [-0.16666667, 0.008333334, -0.0001984127, 2.7557319e-06];

    /// `(cos(r) - 1 + r^2/2) / r^4` in r^2.
    pub const COS: [f32; 4] = [0.041666668, -0.0013888889, 2.4801588e-05, -2.755732e-07];

    /// `(atan(t) - t) / t^3` in t^2, for abs(t) <= sqrt(2) - 1.
    pub const ATAN: [f32; 5] = [-0.333_333_3, 0.1999954, -0.1426395, 0.10743668, -0.06451719];

    /// `(asin(t) - t) / t^3` in t^2, for abs(t) <= 1/2.
    pub const ASIN: [f32; 6] = [0.16666666, 0.07500095, 0.044599395, 0.03110077, 0.017148687, 0.033691835];

    /// `erf(x) / x` in x^2, for abs(x) <= 1.
    pub const ERF_SMALL: [f32; 8] = [
        std::f32::consts::FRAC_2_SQRT_PI,
        -0.37612638,
        0.11283782,
        -0.02686543,
        0.0052210316,
        -0.00084840803,
        0.00011265959,
        -9.667045e-06,
    ];

    /// `(x + 2) exp(x^2) erfc(x)` in (x - 2) / (x + 2), for x in 0.5..=10.2.
    pub const ERFC: [f32; 9] = [
        1.0215827,
        -0.6871607,
        0.2794712,
        -0.03644153,
        -0.02149582,
        0.0064704223,
        0.0030076248,
        -0.00080224586,
        -0.0004784794,
    ];
    /// `erfc(x)^(1/4)` in x - 1.5, for x in 1..=4: the least absolute error of its fourth power.
    pub const ERFC_ROOT: [f32; 8] =
        [0.42907518, -0.376_383_8, 0.069335155, 0.032938898, -0.012540245, -0.0015317914, 0.0013161445, -0.00017503458];
}

pub mod k64 {
    use super::MAGIC64;
    /// Below, `exp` is zero.
    pub const EXP_LOW: f64 = -746.0;
    /// Above, `exp` is infinite.
    pub const EXP_HIGH: f64 = 710.0;
    pub const EXPM1_LOW: f64 = -40.0;
    pub const DENORMAL_SCALE: f64 = 18014398509481984.0;
    pub const DENORMAL_SHIFT: f64 = 54.0;
    pub const SQRT_HALF_BITS: i64 = 0x3fe6_a09e_667f_3bcd;
    pub const LN2_HI: f64 = 0.6931471803691238;
    pub const LN2_LO: f64 = 1.9082149292705877e-10;
    pub const LOG10_2_HI: f64 = 0.30102999566361177;
    pub const LOG10_2_LO: f64 = 3.694239077158931e-13;
    /// Rest of pi/2 that rounding to f64 leaves out.
    pub const PIO2_LO: f64 = 6.123233995736766e-17;
    /// Below, `exp2` is zero.
    pub const EXP2_LOW: f64 = -1076.0;
    /// Above, `exp2` is infinite.
    pub const EXP2_HIGH: f64 = 1025.0;
    /// From here on erf is one.
    pub const ERF_ONE: f64 = 6.0;

    /// `x = n ln 2 + r`.
    #[inline(always)]
    pub fn reduce_exp(x: f64) -> (i64, f64) {
        let shifted = x * std::f64::consts::LOG2_E + MAGIC64;
        let n = shifted - MAGIC64;
        let r = (x - n * LN2_HI) - n * LN2_LO;
        ((shifted.to_bits() as i64).wrapping_sub(MAGIC64.to_bits() as i64), r)
    }
    /// `2^x = 2^n e^r`.
    #[inline(always)]
    pub fn reduce_exp2(x: f64) -> (i64, f64) {
        let shifted = x + MAGIC64;
        let r = (x - (shifted - MAGIC64)) * std::f64::consts::LN_2;
        ((shifted.to_bits() as i64).wrapping_sub(MAGIC64.to_bits() as i64), r)
    }
    /// 2 to the power n, for n in -1022..=1023.
    #[inline(always)]
    pub fn pow2(n: i64) -> f64 {
        f64::from_bits((n.wrapping_add(1023) as u64) << 52)
    }
    /// By bits, because before AVX-512 there is no vector instruction for it.
    #[inline(always)]
    pub fn exponent_to_float(e: i64) -> f64 {
        f64::from_bits((e as u64).wrapping_add(MAGIC64.to_bits())) - MAGIC64
    }

    /// `(exp(r) - 1 - r) / r^2` on abs(r) <= ln(2) / 2.
    pub const EXPM1_R2: [f64; 12] = [
        0.5,
        0.16666666666666666,
        0.041666666666666664,
        0.008333333333333333,
        0.001388888888888889,
        0.0001984126984126984,
        2.48015873015873e-05,
        2.7557319223985893e-06,
        2.755731922398589e-07,
        2.505210838544172e-08,
        2.08767569878681e-09,
        1.6059043836821613e-10,
    ];

    /// `(2 atanh(s) - 2 s) / s^3` in s^2.
    pub const ATANH: [f64; 10] = [
        0.6666666666666666,
        0.4,
        0.2857142857142857,
        0.2222222222222222,
        0.18181818181818182,
        0.15384615384615385,
        0.13333333333333333,
        0.11764705882352941,
        0.10526315789473684,
        0.09523809523809523,
    ];

    /// `(sin(r) - r) / r^3` in r^2.
    pub const SIN: [f64; 8] = [
        -0.16666666666666666,
        0.008333333333333333,
        -0.0001984126984126984,
        2.7557319223985893e-06,
        -2.505210838544172e-08,
        1.6059043836821613e-10,
        -7.647163731819816e-13,
        2.8114572543455206e-15,
    ];

    /// `(cos(r) - 1 + r^2/2) / r^4` in r^2.
    pub const COS: [f64; 8] = [
        0.041666666666666664,
        -0.001388888888888889,
        2.48015873015873e-05,
        -2.755731922398589e-07,
        2.08767569878681e-09,
        -1.1470745597729725e-11,
        4.779477332387385e-14,
        -1.5619206968586225e-16,
    ];

    /// `(atan(t) - t) / t^3` in t^2, for abs(t) <= sqrt(2) - 1.
    pub const ATAN: [f64; 13] = [
        -0.3333333333333333,
        0.19999999999999993,
        -0.14285714285711515,
        0.11111111110754406,
        -0.0909090906699066,
        0.07692306735321475,
        -0.06666642004996545,
        0.05881925033877732,
        -0.052580394289794816,
        0.04719381457895137,
        -0.04104381417807643,
        0.03063443323901452,
        -0.013916943217800841,
    ];

    /// `(asin(t) - t) / t^3` in t^2, for abs(t) <= 1/2.
    pub const ASIN: [f64; 14] = [
        0.16666666666666666,
        0.07500000000000118,
        0.04464285714255172,
        0.030381944475548442,
        0.02237215744272046,
        0.01735281656310595,
        0.013963779590463264,
        0.011566464825440114,
        0.009621799004518995,
        0.009319814583697355,
        0.003043893553526437,
        0.0195569803120686,
        -0.01924525711649446,
        0.029614311863487102,
    ];

    /// `exp(x^2) erfc(x)` in (x - 2) / (x + 2), for x in 0.5..=28.
    pub const ERFC: [f64; 22] = [
        0.25539567631050575,
        -0.4271858474139582,
        0.241658194242464,
        -0.07897858101575875,
        0.003732892404544692,
        0.006997461740363265,
        -0.0008471432587109228,
        -0.0009819770494515188,
        4.3555753325560934e-05,
        0.0001743614017757735,
        2.7523678346396345e-05,
        -2.758108044037685e-05,
        -1.395419451706578e-05,
        1.3931222023380774e-06,
        3.721957856168928e-06,
        1.2078113529440737e-06,
        -3.5006403547110604e-07,
        -5.596916044165837e-07,
        -2.1387551234643513e-07,
        1.6738171652176614e-07,
        1.050676622858942e-07,
        -5.322868065823206e-08,
    ];

    /// `erf(x) / x` in x^2, for abs(x) <= 1.
    pub const ERF_SMALL: [f64; 14] = [
        std::f64::consts::FRAC_2_SQRT_PI,
        -0.37612638903183754,
        0.1128379167095512,
        -0.02686617064512984,
        0.0052239776254232985,
        -0.000854832702193483,
        0.00012055332902888736,
        -1.4925647567519332e-05,
        1.6462045441468418e-06,
        -1.6364642158167616e-07,
        1.4792401209404813e-08,
        -1.216456005728345e-09,
        8.709045129053106e-11,
        -4.230945824295338e-12,
    ];

    /// `exp(x^2) erfc(x)` in (x - 2.5) / (x + 2.5), for x in 1..=6.
    pub const ERFCX: [f64; 15] = [
        0.2108063640611436,
        -0.37173673394897294,
        0.2517131932174488,
        -0.12503305237891782,
        0.03992253907546523,
        -0.003993701160123029,
        -0.0026423659518134547,
        0.0008759152875774328,
        0.0002283799633257643,
        -0.00012887483134837842,
        -3.4175718896856294e-05,
        1.8596747731144528e-05,
        7.499735050763299e-06,
        -2.2328516517555215e-06,
        -1.587633893127344e-06,
    ];
}
