//! The functions of the expression language: a row a function, with all that is known about it. What a row does not say is
//! derived or does not hold.
//!
//! A row names the function (variant, text form, doc) and then gives, in this order:
//!
//! | part | meaning |
//! |---|---|
//! | `real \|x\| ..` | the value in f32 and f64, generic over `T:`[`Real`](crate::vmath::Real); the CPU's loop is made of it. Left out if floats have none |
//! | `, near ..` | the same without branches, for blocks of numbers up to [`Real::SIN_LIMIT`](crate::vmath::Real::SIN_LIMIT) only |
//! | `wide f` | instead of `real`: the value in f64, by a function of [`crate::special`]. f32 numbers are rounded once from it |
//! | `, single f` | behind one of the two: a function of f32, most of them in [`crate::single`], of which its loop is made instead |
//! | `int \|x\| ..` | the value in i64. Left out, integers are converted to a float first |
//! | `complex \|z\| ..` | the value in complex numbers, by the functions of [`crate::cmath`]. Left out, complex numbers are refused |
//! | `range \|a\| ..` | bounds of the value for an argument within `a`; any number if left out |
//! | `monotony \|a\| ..` | how the value follows an argument within `a`; unknown if left out |
//! | `slope \|x, y, dx\| ..` | the derivative as an expression: argument `x()`, value `y()`, derivative of the argument `dx`; of two arguments `\|a, b, da, db\|` |
//!
//! The parts are expanded where they are used, with the names in scope there: `cpu/elementwise/loops.rs`, `cmath.rs`, `analysis.rs`,
//! `derivative.rs` and `ops.rs`. The GPU's spelling of a function stands in `kernels/cuda/elementwise.cuh` as `of_` and the text form,
//! that of a `wide` one in `special.cuh`.

/// Calls the macro `$with` with the rows of all functions of one value.
macro_rules! unary_functions {
    ($with:ident) => { $with! {
        Neg "neg" "`-x`" {
            real |x| -x; int |x| x.wrapping_neg(); complex |z| c(-z.re, -z.im);
            range |a| a.neg(); monotony |_a| Decreasing;
            slope |x, y, dx| un(Neg, dx);
        }
        Abs "abs" "Absolute value." {
            real |x| x.abs(); int |x| x.wrapping_abs(); complex |z| real(z.re.hypot(z.im));
            range |a| a.abs(); monotony |a| a.away_from_zero();
            slope |x, y, dx| times(un(Sign, x()), dx);
        }
        Exp "exp" "e to the x." {
            real |x| x.exp(); complex |z| exp(z);
            range |a| a.rising(Exp); monotony |_a| Increasing;
            slope |x, y, dx| times(y(), dx);
        }
        Log "log" "Natural logarithm." {
            real |x| x.log(); complex |z| log(z);
            range |a| a.rising(Log); monotony |a| claim(a.low >= 0.0, Increasing);
            slope |x, y, dx| bin(Div, dx, x());
        }
        Log1p "log1p" "`log(1 + x)`, exact near zero." {
            real |x| x.log1p(); complex |z| log1p(z);
            range |a| a.rising(Log1p); monotony |a| claim(a.low >= -1.0, Increasing);
            slope |x, y, dx| bin(Div, dx, bin(Add, constant(1.0), x()));
        }
        Expm1 "expm1" "`exp(x) - 1`, exact near zero." {
            real |x| x.expm1(); complex |z| expm1(z);
            range |a| a.rising(Expm1); monotony |_a| Increasing;
            slope |x, y, dx| times(bin(Add, y(), constant(1.0)), dx);
        }
        Sqrt "sqrt" "Square root." {
            real |x| x.sqrt(); complex |z| sqrt(z);
            range |a| Range::new(a.low.max(0.0).sqrt(), a.high.sqrt()); monotony |a| claim(a.low >= 0.0, Increasing);
            slope |x, y, dx| times(bin(Div, constant(0.5), y()), dx);
        }
        Rsqrt "rsqrt" "`1 / sqrt(x)`" {
            real |x| T::ONE / x.sqrt(); complex |z| div(real(T::ONE), sqrt(z));
            range |_a| Range::new(0.0, f64::INFINITY); monotony |a| claim(a.low > 0.0, Decreasing);
            slope |x, y, dx| times(bin(Mul, constant(-0.5), bin(Mul, y(), un(Square, y()))), dx);
        }
        Reciprocal "reciprocal" "`1 / x`" {
            real |x| T::ONE / x; complex |z| div(real(T::ONE), z);
            range |a| if a.excludes_zero() { Range::new(1.0 / a.high, 1.0 / a.low) } else { ANY };
            monotony |a| claim(a.excludes_zero(), Decreasing);
            slope |x, y, dx| times(un(Neg, un(Square, y())), dx);
        }
        Square "square" "`x * x`" {
            real |x| x * x; int |x| x.wrapping_mul(x); complex |z| mul(z, z);
            range |a| a.abs().map(|x| x * x); monotony |a| a.away_from_zero();
            slope |x, y, dx| times(bin(Mul, constant(2.0), x()), dx);
        }
        Sin "sin" "Sine." {
            real |x| x.sin(), near x.sin_cos_fast().0; complex |z| turned_back(sinh(turned(z)));
            range |_a| Range::new(-1.0, 1.0);
            slope |x, y, dx| times(un(Cos, x()), dx);
        }
        Cos "cos" "Cosine." {
            real |x| x.cos(), near x.sin_cos_fast().1; complex |z| cosh(turned(z));
            range |_a| Range::new(-1.0, 1.0);
            slope |x, y, dx| times(un(Neg, un(Sin, x())), dx);
        }
        Tanh "tanh" "Hyperbolic tangent." {
            real |x| x.tanh(); complex |z| tanh(z);
            range |a| a.rising(Tanh); monotony |_a| Increasing;
            slope |x, y, dx| times(bin(Sub, constant(1.0), un(Square, y())), dx);
        }
        Sigmoid "sigmoid" "`1 / (1 + exp(-x))`" {
            real |x| x.sigmoid(); complex |z| div(real(T::ONE), add(real(T::ONE), exp(c(-z.re, -z.im))));
            range |a| a.rising(Sigmoid); monotony |_a| Increasing;
            slope |x, y, dx| times(bin(Mul, y(), bin(Sub, constant(1.0), y())), dx);
        }
        Erf "erf" "The error function." {
            real |x| x.erf();
            range |a| a.rising(Erf); monotony |_a| Increasing;
            slope |x, y, dx| times(bin(Mul, constant(std::f64::consts::FRAC_2_SQRT_PI), bell(x())), dx);
        }
        Erfc "erfc" "`1 - erf(x)`, exact for large x." {
            real |x| x.erfc();
            range |a| a.falling(Erfc); monotony |_a| Decreasing;
            slope |x, y, dx| times(bin(Mul, constant(-std::f64::consts::FRAC_2_SQRT_PI), bell(x())), dx);
        }
        NormalCdf "normcdf" "The normal distribution function: `0.5 * (1 + erf(x / sqrt(2)))`." {
            real |x| x.normal_cdf();
            range |a| a.rising(NormalCdf); monotony |_a| Increasing;
            slope |x, y, dx| {
                let bell = un(Exp, bin(Mul, constant(-0.5), un(Square, x())));
                // 1 / sqrt(2 pi)
                let top = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 * 0.5;
                times(bin(Mul, constant(top), bell), dx)
            };
        }
        Exp2 "exp2" "2 to the x." {
            real |x| x.exp2(); complex |z| exp(scaled(z, std::f64::consts::LN_2));
            range |a| a.rising(Exp2); monotony |_a| Increasing;
            slope |x, y, dx| times(bin(Mul, constant(std::f64::consts::LN_2), y()), dx);
        }
        Log2 "log2" "Logarithm to base 2." {
            real |x| x.log2(); complex |z| scaled(log(z), std::f64::consts::LOG2_E);
            range |a| a.rising(Log2); monotony |a| claim(a.low >= 0.0, Increasing);
            slope |x, y, dx| bin(Div, dx, bin(Mul, constant(std::f64::consts::LN_2), x()));
        }
        Log10 "log10" "Logarithm to base 10." {
            real |x| x.log10(); complex |z| scaled(log(z), std::f64::consts::LOG10_E);
            range |a| a.rising(Log10); monotony |a| claim(a.low >= 0.0, Increasing);
            slope |x, y, dx| bin(Div, dx, bin(Mul, constant(std::f64::consts::LN_10), x()));
        }
        Tan "tan" "Tangent." {
            real |x| x.tan(), near tangent(x.sin_cos_fast()); complex |z| turned_back(tanh(turned(z)));
            slope |x, y, dx| times(bin(Add, constant(1.0), un(Square, y())), dx);
        }
        Asin "asin" "Inverse sine." {
            real |x| x.asin(); complex |z| asin(z);
            range |_a| Range::new(-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_2);
            monotony |a| claim(a.low >= -1.0 && a.high <= 1.0, Increasing);
            slope |x, y, dx| times(un(Rsqrt, one_minus_square(x())), dx);
        }
        Acos "acos" "Inverse cosine." {
            real |x| x.acos(); complex |z| acos(z);
            range |_a| Range::new(0.0, std::f64::consts::PI);
            monotony |a| claim(a.low >= -1.0 && a.high <= 1.0, Decreasing);
            slope |x, y, dx| times(un(Neg, un(Rsqrt, one_minus_square(x()))), dx);
        }
        Atan "atan" "Inverse tangent." {
            real |x| x.atan(); complex |z| turned_back(atanh(turned(z)));
            range |a| a.rising(Atan); monotony |_a| Increasing;
            slope |x, y, dx| bin(Div, dx, bin(Add, constant(1.0), un(Square, x())));
        }
        Sinh "sinh" "Hyperbolic sine." {
            real |x| x.sinh(); complex |z| sinh(z);
            range |a| a.rising(Sinh); monotony |_a| Increasing;
            slope |x, y, dx| times(un(Cosh, x()), dx);
        }
        Cosh "cosh" "Hyperbolic cosine." {
            real |x| x.cosh(); complex |z| cosh(z);
            range |_a| Range::new(1.0, f64::INFINITY); monotony |a| a.away_from_zero();
            slope |x, y, dx| times(un(Sinh, x()), dx);
        }
        Asinh "asinh" "Inverse hyperbolic sine." {
            real |x| x.asinh(); complex |z| turned_back(asin(turned(z)));
            range |a| a.rising(Asinh); monotony |_a| Increasing;
            slope |x, y, dx| times(un(Rsqrt, bin(Add, constant(1.0), un(Square, x()))), dx);
        }
        Acosh "acosh" "Inverse hyperbolic cosine." {
            real |x| x.acosh(); complex |z| acosh(z);
            range |_a| Range::new(0.0, f64::INFINITY); monotony |a| claim(a.low >= 1.0, Increasing);
            slope |x, y, dx| {
                let product = bin(Mul, bin(Sub, x(), constant(1.0)), bin(Add, x(), constant(1.0)));
                times(un(Rsqrt, product), dx)
            };
        }
        Atanh "atanh" "Inverse hyperbolic tangent." {
            real |x| x.atanh(); complex |z| atanh(z);
            monotony |a| claim(a.low >= -1.0 && a.high <= 1.0, Increasing);
            slope |x, y, dx| bin(Div, dx, one_minus_square(x()));
        }
        Floor "floor" "Largest integer not above." {
            real |x| x.floor(); int |x| x;
            range |a| a.rising(Floor); monotony |_a| Increasing;
            slope |x, y, dx| constant(0.0);
        }
        Ceil "ceil" "Smallest integer not below." {
            real |x| x.ceil(); int |x| x;
            range |a| a.rising(Ceil); monotony |_a| Increasing;
            slope |x, y, dx| constant(0.0);
        }
        Round "round" "Nearest integer, ties to even." {
            real |x| x.round_even(); int |x| x;
            range |a| a.rising(Round); monotony |_a| Increasing;
            slope |x, y, dx| constant(0.0);
        }
        Trunc "trunc" "The integer part." {
            real |x| x.trunc(); int |x| x;
            range |a| a.rising(Trunc); monotony |_a| Increasing;
            slope |x, y, dx| constant(0.0);
        }
        Sign "sign" "-1, 0 or 1; 0 for NaN." {
            real |x| truth::<T>(x > T::ZERO) - truth::<T>(x < T::ZERO); int |x| x.signum(); complex |z| sgn(z);
            range |_a| Range::new(-1.0, 1.0); monotony |_a| Increasing;
            slope |x, y, dx| constant(0.0);
        }
        Relu "relu" "`max(x, 0)`" {
            real |x| x.max_nan(T::ZERO); int |x| x.max(0);
            range |a| a.rising(Relu); monotony |_a| Increasing;
            // Asked this way round, NaN lets the gradient pass, as in PyTorch.
            slope |x, y, dx| select(bin(Le, x(), constant(0.0)), constant(0.0), dx);
        }
        Not "not" "1 for zero, else 0." {
            real |x| truth::<T>(x == T::ZERO); int |x| (x == 0) as i64; complex |z| real(truth(!nonzero(z)));
            range |_a| Range::new(0.0, 1.0);
            slope |x, y, dx| constant(0.0);
        }
        IsNan "isnan" "1 for NaN, else 0." {
            real |x| truth::<T>(x.is_nan()); int |_x| 0; complex |z| real(truth(z.re.is_nan() || z.im.is_nan()));
            range |_a| Range::new(0.0, 1.0);
            slope |x, y, dx| constant(0.0);
        }
        IsInf "isinf" "1 for an infinity, else 0." {
            real |x| truth::<T>(x.abs() == T::INFINITY); int |_x| 0;
            complex |z| real(truth(z.re.abs() == T::INFINITY || z.im.abs() == T::INFINITY));
            range |_a| Range::new(0.0, 1.0);
            slope |x, y, dx| constant(0.0);
        }
        Lgamma "lgamma" "Logarithm of the absolute value of the gamma function." {
            wide special::lgamma, single single::lgamma;
            slope |x, y, dx| times(un(Digamma, x()), dx);
        }
        Digamma "digamma" "Derivative of `lgamma`." {
            wide special::digamma, single single::digamma;
            monotony |a| claim(a.low > 0.0, Increasing);
            slope |x, y, dx| times(bin(Polygamma, constant(1.0), x()), dx);
        }
        Erfcx "erfcx" "`exp(x²) erfc(x)`" {
            wide special::erfcx, single single::erfcx;
            range |_a| Range::new(0.0, f64::INFINITY); monotony |_a| Decreasing;
            slope |x, y, dx| {
                let by_square = bin(Mul, constant(2.0), bin(Mul, x(), y()));
                times(bin(Sub, by_square, constant(std::f64::consts::FRAC_2_SQRT_PI)), dx)
            };
        }
        Erfinv "erfinv" "Inverse of `erf`; NaN outside -1 to 1." {
            wide special::erfinv, single single::erfinv;
            monotony |a| claim(a.low >= -1.0 && a.high <= 1.0, Increasing);
            slope |x, y, dx| {
                let half_root_pi = 1.0 / std::f64::consts::FRAC_2_SQRT_PI;
                times(bin(Mul, constant(half_root_pi), un(Exp, un(Square, y()))), dx)
            };
        }
        Ndtri "ndtri" "Inverse of the normal distribution function; NaN outside 0 to 1." {
            wide special::ndtri, single single::ndtri;
            monotony |a| claim(a.low >= 0.0 && a.high <= 1.0, Increasing);
            slope |x, y, dx| {
                let bell = un(Exp, bin(Mul, constant(0.5), un(Square, y())));
                times(bin(Mul, constant((2.0 * std::f64::consts::PI).sqrt()), bell), dx)
            };
        }
        I0 "i0" "Modified Bessel function of the first kind of order 0." {
            wide special::i0, single single::i0;
            range |_a| Range::new(1.0, f64::INFINITY); monotony |a| a.away_from_zero();
            slope |x, y, dx| times(un(I1, x()), dx);
        }
        I0e "i0e" "`exp(-abs(x)) i0(x)`" {
            wide special::i0e, single single::i0e;
            range |_a| Range::new(0.0, 1.0);
            slope |x, y, dx| times(bin(Sub, un(I1e, x()), bin(Mul, un(Sign, x()), y())), dx);
        }
        I1 "i1" "Modified Bessel function of the first kind of order 1." {
            wide special::i1, single single::i1;
            monotony |_a| Increasing;
            slope |x, y, dx| times(half_at_zero(x(), bin(Sub, un(I0, x()), bin(Div, y(), x()))), dx);
        }
        I1e "i1e" "`exp(-abs(x)) i1(x)`" {
            wide special::i1e, single single::i1e;
            range |_a| Range::new(-1.0, 1.0);
            slope |x, y, dx| {
                let by = bin(Add, un(Sign, x()), un(Reciprocal, x()));
                times(half_at_zero(x(), bin(Sub, un(I0e, x()), bin(Mul, y(), by))), dx)
            };
        }
        BesselJ0 "bessel_j0" "Bessel function of the first kind of order 0." {
            wide special::bessel_j0, single single::bessel_j0;
            range |_a| Range::new(-1.0, 1.0);
            slope |x, y, dx| times(un(Neg, un(BesselJ1, x())), dx);
        }
        BesselJ1 "bessel_j1" "Bessel function of the first kind of order 1." {
            wide special::bessel_j1, single single::bessel_j1;
            range |_a| Range::new(-1.0, 1.0);
            slope |x, y, dx| times(half_at_zero(x(), bin(Sub, un(BesselJ0, x()), bin(Div, y(), x()))), dx);
        }
        BesselY0 "bessel_y0" "Bessel function of the second kind of order 0; NaN below 0." {
            wide special::bessel_y0, single single::bessel_y0;
            slope |x, y, dx| times(un(Neg, un(BesselY1, x())), dx);
        }
        BesselY1 "bessel_y1" "Bessel function of the second kind of order 1; NaN below 0." {
            wide special::bessel_y1, single single::bessel_y1;
            slope |x, y, dx| {
                // At zero the two terms are infinities of one sign, of which the second is larger.
                let slope = bin(Sub, un(BesselY0, x()), bin(Div, y(), x()));
                times(select(bin(Eq, x(), constant(0.0)), constant(f64::INFINITY), slope), dx)
            };
        }
        BesselK0 "bessel_k0" "Modified Bessel function of the second kind of order 0; NaN below 0." {
            wide special::bessel_k0, single single::bessel_k0;
            range |_a| Range::new(0.0, f64::INFINITY); monotony |a| claim(a.low >= 0.0, Decreasing);
            slope |x, y, dx| times(un(Neg, un(BesselK1, x())), dx);
        }
        BesselK1 "bessel_k1" "Modified Bessel function of the second kind of order 1; NaN below 0." {
            wide special::bessel_k1, single single::bessel_k1;
            range |_a| Range::new(0.0, f64::INFINITY); monotony |a| claim(a.low >= 0.0, Decreasing);
            slope |x, y, dx| times(un(Neg, bin(Add, un(BesselK0, x()), bin(Div, y(), x()))), dx);
        }
        BesselK0e "bessel_k0e" "`exp(x) bessel_k0(x)`" {
            wide special::bessel_k0e, single single::bessel_k0e;
            range |_a| Range::new(0.0, f64::INFINITY); monotony |a| claim(a.low >= 0.0, Decreasing);
            slope |x, y, dx| times(bin(Sub, y(), un(BesselK1e, x())), dx);
        }
        BesselK1e "bessel_k1e" "`exp(x) bessel_k1(x)`" {
            wide special::bessel_k1e, single single::bessel_k1e;
            range |_a| Range::new(0.0, f64::INFINITY); monotony |a| claim(a.low >= 0.0, Decreasing);
            slope |x, y, dx| times(bin(Sub, bin(Sub, y(), un(BesselK0e, x())), bin(Div, y(), x())), dx);
        }
        SphericalJ0 "spherical_j0" "`sin(x) / x`, and 1 of 0." {
            wide special::spherical_j0, single single::spherical_j0;
            range |_a| Range::new(-1.0, 1.0);
            slope |x, y, dx| {
                // Digits cancel near zero: there Taylor's series.
                let square = || un(Square, x());
                let inner = bin(Sub, constant(1.0 / 30.0), bin(Mul, constant(1.0 / 840.0), square()));
                let series = bin(Mul, x(), bin(Sub, bin(Mul, square(), inner), constant(1.0 / 3.0)));
                let near = bin(Lt, un(Abs, x()), constant(0.02));
                times(select(near, series, bin(Div, bin(Sub, un(Cos, x()), y()), x())), dx)
            };
        }
        AiryAi "airy_ai" "Airy function Ai. Its slope is not known here: NaN." {
            wide special::airy_ai;
            slope |x, y, dx| times(constant(f64::NAN), dx);
        }
        Mantissa "mantissa" "The mantissa, from 1/2 to 1, of a number as `mantissa 2^exponent` (C's `frexp`)." {
            wide special::mantissa;
            slope |x, y, dx| bin(Div, dx, un(Exp2, un(Exponent, x())));
        }
        Exponent "exponent" "The exponent of a number as `mantissa 2^exponent`; 0 for zero, infinity and NaN." {
            wide special::exponent;
            slope |x, y, dx| constant(0.0);
        }
        BitNot "bitnot" "Every bit of an integer turned." {
            int |x| !x;
            // -x - 1, or the largest integer less x: it does not wrap.
            monotony |_a| Decreasing;
            slope |x, y, dx| constant(0.0);
        }
        Conj "conj" "The complex conjugate; a real number itself." {
            real |x| x; int |x| x; complex |z| conj(z);
            range |a| a; monotony |_a| Increasing;
            slope |x, y, dx| dx;
        }
        Re "re" "The real part; a real number itself." {
            real |x| x; int |x| x; complex |z| real(z.re);
            range |a| a; monotony |_a| Increasing;
            slope |x, y, dx| dx;
        }
        Im "im" "The imaginary part; 0 of a real number." {
            real |_x| T::ZERO; int |_x| 0; complex |z| real(z.im);
            slope |x, y, dx| constant(0.0);
        }
    } };
}

/// Calls the macro `$with` with the rows of all functions of two values. Their ranges and monotony stand in `analysis.rs`, since they
/// depend on both arguments; without them nothing is known.
macro_rules! binary_functions {
    ($with:ident) => { $with! {
        Add "+" "Sum." {
            real |a, b| a + b; int |a, b| a.wrapping_add(b); complex |a, b| add(a, b);
            slope |a, b, da, db| bin(Add, da, db);
        }
        Sub "-" "Difference." {
            real |a, b| a - b; int |a, b| a.wrapping_sub(b); complex |a, b| sub(a, b);
            slope |a, b, da, db| bin(Sub, da, db);
        }
        Mul "*" "Product." {
            real |a, b| a * b; int |a, b| a.wrapping_mul(b); complex |a, b| mul(a, b);
            slope |a, b, da, db| bin(Add, times(b(), da), times(a(), db));
        }
        Div "/" "Quotient; of integers, truncated towards zero." {
            real |a, b| a / b; int |a, b| integers::div(a, b); complex |a, b| div(a, b);
            slope |a, b, da, db| bin(Div, bin(Sub, da, times(bin(Div, a(), b()), db)), b());
        }
        Pow "pow" "`a` to the power `b`." {
            real |a, b| a.powf(b); int |a, b| integers::pow(a, b); complex |a, b| pow(a, b);
            slope |a, b, da, db| slope_of_pow(a(), b(), da, db);
        }
        Max "max" "The larger; NaN if either is." {
            real |a, b| a.max_nan(b); int |a, b| a.max(b);
            slope |a, b, da, db| slope_of_choice(Max, a(), b(), da, db);
        }
        Min "min" "The smaller; NaN if either is." {
            real |a, b| a.min_nan(b); int |a, b| a.min(b);
            slope |a, b, da, db| slope_of_choice(Min, a(), b(), da, db);
        }
        Eq "==" "1 where equal, else 0." {
            real |a, b| truth::<T>(a == b); int |a, b| (a == b) as i64; complex |a, b| real(truth(a.re == b.re && a.im == b.im));
            slope |a, b, da, db| constant(0.0);
        }
        Ne "!=" "1 where not equal, else 0." {
            real |a, b| truth::<T>(a != b); int |a, b| (a != b) as i64; complex |a, b| real(truth(!(a.re == b.re && a.im == b.im)));
            slope |a, b, da, db| constant(0.0);
        }
        // Complex numbers have no order: derivatives ask for that of the real parts.
        Lt "<" "1 where less, else 0." {
            real |a, b| truth::<T>(a < b); int |a, b| (a < b) as i64; complex |a, b| real(truth(a.re < b.re));
            slope |a, b, da, db| constant(0.0);
        }
        Le "<=" "1 where less or equal, else 0." {
            real |a, b| truth::<T>(a <= b); int |a, b| (a <= b) as i64; complex |a, b| real(truth(a.re <= b.re));
            slope |a, b, da, db| constant(0.0);
        }
        Gt ">" "1 where greater, else 0." {
            real |a, b| truth::<T>(a > b); int |a, b| (a > b) as i64; complex |a, b| real(truth(a.re > b.re));
            slope |a, b, da, db| constant(0.0);
        }
        Ge ">=" "1 where greater or equal, else 0." {
            real |a, b| truth::<T>(a >= b); int |a, b| (a >= b) as i64; complex |a, b| real(truth(a.re >= b.re));
            slope |a, b, da, db| constant(0.0);
        }
        And "and" "1 where neither is zero, else 0." {
            real |a, b| truth::<T>((a != T::ZERO) & (b != T::ZERO)); int |a, b| ((a != 0) & (b != 0)) as i64;
            complex |a, b| real(truth(nonzero(a) && nonzero(b)));
            slope |a, b, da, db| constant(0.0);
        }
        Or "or" "1 where one is not zero, else 0." {
            real |a, b| truth::<T>((a != T::ZERO) | (b != T::ZERO)); int |a, b| ((a != 0) | (b != 0)) as i64;
            complex |a, b| real(truth(nonzero(a) || nonzero(b)));
            slope |a, b, da, db| constant(0.0);
        }
        Xor "xor" "1 where exactly one is not zero, else 0." {
            real |a, b| truth::<T>((a != T::ZERO) ^ (b != T::ZERO)); int |a, b| ((a != 0) ^ (b != 0)) as i64;
            complex |a, b| real(truth(nonzero(a) != nonzero(b)));
            slope |a, b, da, db| constant(0.0);
        }
        Fmod "fmod" "Remainder with the sign of `a` (C)." {
            real |a, b| a.fmod(b), single single::fmod; int |a, b| integers::fmod(a, b);
            slope |a, b, da, db| bin(Sub, da, times(un(Trunc, bin(Div, a(), b())), db));
        }
        Remainder "remainder" "Remainder with the sign of `b` (Python)." {
            real |a, b| remainder(a, b), single single::remainder; int |a, b| integers::remainder(a, b);
            slope |a, b, da, db| bin(Sub, da, times(bin(FloorDiv, a(), b()), db));
        }
        FloorDiv "floordiv" "Quotient rounded down (Python)." {
            real |a, b| floor_div(a, b), single single::floor_div; int |a, b| integers::floor_div(a, b);
            slope |a, b, da, db| constant(0.0);
        }
        Atan2 "atan2" "The angle of the point (b, a), in -pi to pi (C)." {
            real |a, b| a.atan2(b);
            slope |a, b, da, db| {
                let square = bin(Add, un(Square, a()), un(Square, b()));
                let by_a = times(bin(Div, b(), square.clone()), da);
                bin(Sub, by_a, times(bin(Div, a(), square), db))
            };
        }
        Hypot "hypot" "The length of the vector (a, b), also where the squares overflow." {
            real |a, b| a.hypot(b);
            slope |a, b, da, db| bin(Div, bin(Add, times(a(), da), times(b(), db)), bin(Hypot, a(), b()));
        }
        LogAddExp "logaddexp" "log(exp(a) + exp(b)), also where the powers overflow." {
            real |a, b| a.logaddexp(b);
            slope |a, b, da, db| {
                let share = |x: Expr| un(Exp, bin(Sub, x, bin(LogAddExp, a(), b())));
                bin(Add, times(share(a()), da), times(share(b()), db))
            };
        }
        Zeta "zeta" "Zeta function of Hurwitz: the sum of `(b + k)^-a` over all k from 0. Its slope by `a` is not known here: NaN." {
            wide special::zeta;
            slope |a, b, da, db| {
                let by_b = bin(Mul, a(), bin(Zeta, bin(Add, a(), constant(1.0)), b()));
                bin(Add, unknown(da), times(un(Neg, by_b), db))
            };
        }
        Polygamma "polygamma" "Derivative of order `a`, a whole number, of `digamma` at `b`." {
            wide special::polygamma, single single::polygamma;
            slope |a, b, da, db| {
                let next = bin(Polygamma, bin(Add, a(), constant(1.0)), b());
                bin(Add, unknown(da), times(next, db))
            };
        }
        Igamma "igamma" "Regularized lower incomplete gamma function P(a, b). Its slope by `a` is not known here: NaN." {
            wide special::igamma, single special::igamma_of_single;
            slope |a, b, da, db| bin(Add, unknown(da), times(gamma_density(a(), b()), db));
        }
        Igammac "igammac" "Regularized upper incomplete gamma function Q(a, b). Its slope by `a` is not known here: NaN." {
            wide special::igammac, single special::igammac_of_single;
            slope |a, b, da, db| bin(Sub, unknown(da), times(gamma_density(a(), b()), db));
        }
        Nextafter "nextafter" "The number next to `a` towards `b`." {
            real |a, b| a.next_after(b);
            slope |a, b, da, db| da;
        }
        Gcd "gcd" "Integers: the greatest common divisor, not negative; 0 of two zeros." {
            int |a, b| integers::gcd(a, b);
            slope |a, b, da, db| constant(0.0);
        }
        Lcm "lcm" "Integers: the least common multiple, not negative; 0 where one is 0." {
            int |a, b| integers::lcm(a, b);
            slope |a, b, da, db| constant(0.0);
        }
        ChebyshevT "chebyshev_t" "Chebyshev polynomial of the first kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::chebyshev_t;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ChebyshevU "chebyshev_u" "Chebyshev polynomial of the second kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::chebyshev_u;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ChebyshevV "chebyshev_v" "Chebyshev polynomial of the third kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::chebyshev_v;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ChebyshevW "chebyshev_w" "Chebyshev polynomial of the fourth kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::chebyshev_w;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ShiftedChebyshevT "shifted_chebyshev_t" "Shifted Chebyshev polynomial of the first kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::shifted_chebyshev_t;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ShiftedChebyshevU "shifted_chebyshev_u" "Shifted Chebyshev polynomial of the second kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::shifted_chebyshev_u;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ShiftedChebyshevV "shifted_chebyshev_v" "Shifted Chebyshev polynomial of the third kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::shifted_chebyshev_v;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        ShiftedChebyshevW "shifted_chebyshev_w" "Shifted Chebyshev polynomial of the fourth kind of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::shifted_chebyshev_w;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        HermiteH "hermite_h" "Hermite polynomial of physicists of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::hermite_h;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        HermiteHe "hermite_he" "Hermite polynomial of probability of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::hermite_he;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        LaguerreL "laguerre_l" "Laguerre polynomial of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::laguerre_l;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        LegendreP "legendre_p" "Legendre polynomial of degree `b`, a whole number, at `a`. Its slope is not known here: NaN." {
            wide special::legendre_p;
            slope |a, b, da, db| unknown(bin(Add, da, db));
        }
        Complex "complex" "a + i b." {
            complex |a, b| c(a.re - b.im, a.im + b.re);
            slope |a, b, da, db| bin(BinaryOp::Complex, da, db);
        }
        BitAnd "bitand" "Integers: bits that both have." {
            int |a, b| a & b;
            slope |a, b, da, db| constant(0.0);
        }
        BitOr "bitor" "Integers: bits that one of both has." {
            int |a, b| a | b;
            slope |a, b, da, db| constant(0.0);
        }
        BitXor "bitxor" "Integers: bits in which both differ." {
            int |a, b| a ^ b;
            slope |a, b, da, db| constant(0.0);
        }
        Shl "shl" "Integers: `a` shifted left by `b` bits; 0 where `b` is negative." {
            int |a, b| integers::shl(a, b);
            slope |a, b, da, db| constant(0.0);
        }
        Shr "shr" "Integers: `a` shifted right by `b` bits, with its sign; all bits where `b` is negative." {
            int |a, b| integers::shr(a, b);
            slope |a, b, da, db| constant(0.0);
        }
    } };
}

pub(crate) use {binary_functions, unary_functions};
