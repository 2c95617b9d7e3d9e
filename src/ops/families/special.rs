//! Special functions of real numbers: gamma, error and Bessel functions, orthogonal polynomials, parts of numbers.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, OpDef};
use oflow_kernels::{DType, Scalar};

/// A function into the floats: integers become f32.
fn float(name: &str, expr: &str, samples: &[&'static str], doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x) -> y"), expr)?.dtype(DTypeRule::PromoteFloat).doc(doc).samples(samples))
}

/// The same of two tensors.
fn floats(args: &str, expr: &str, samples: &[&'static str], doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{args} -> y"), expr)?.dtype(DTypeRule::PromoteFloat).doc(doc).samples(samples))
}

const ANY: &[&str] = &["f32[3, 5]", "bf16[4, 2]", "f64[3, 2]"];
const POSITIVE: &[&str] = &["f32[3, 5]+", "bf16[4, 2]+", "f64[3, 2]+"];
const INSIDE: &[&str] = &["f32[3, 5]@-0.9..0.9", "bf16[4, 2]@-0.9..0.9", "f64[3, 2]@-0.9..0.9"];
const SHARE: &[&str] = &["f32[3, 5]@0.05..0.95", "bf16[4, 2]@0.05..0.95", "f64[3, 2]@0.05..0.95"];
const BOTH_POSITIVE: &[&str] = &["f32[3, 5]+ f32[3, 5]+", "f32[2, 1, 3]+ f32[4, 1]+", "f64[3, 2]+ f64[2]+"];
const ABOVE_ONE: &[&str] = &["f32[3, 5]@1.5..4 f32[3, 5]+", "f64[2, 1, 3]@2..6 f64[4, 1]+"];
const DEGREES: &[&str] = &["f32[3, 5] f32[3, 5]@0..6", "f64[2, 1, 3] f64[4, 1]@0..9", "f64[3] i32[3]<8"];

/// An orthogonal polynomial. PyTorch has no gradients of these either.
fn polynomial(name: &str, function: &str, doc: &str) -> Result<OpDef> {
    let doc = format!("{doc} of degree n, cut to a whole number; 0 of a negative degree. It has no gradient.");
    Ok(floats(&format!("{name}(x, n)"), &format!("{function}(x, n)"), DEGREES, &doc)?.grad(Grad::Missing))
}

/// By b: `-a zeta(a + 1, b)`.
fn zeta_gradient() -> Grad {
    Grad::rule_saving(&[0, 1], &[], |g| {
        let (Some(dy), true) = (g.grad(0), g.needs(1)) else { return Ok(()) };
        let (a, b) = (g.input(0)?, g.input(1)?);
        let next = g.call("add_scalar", &[a], &[("s", Scalar::Int(1).into())])?;
        let slope = g.call("zeta", &[next, b], &[])?;
        let by_a = g.call("mul", &[slope, a], &[])?;
        let product = g.call("mul", &[dy, by_a], &[])?;
        let dx = g.call("neg", &[product], &[])?;
        g.set(1, dx)
    })
}

fn gamma() -> Vec<Result<OpDef>> {
    vec![
        float("lgamma", "lgamma(x)", POSITIVE, "The logarithm of |Γ(x)|: inf at 0 and at negative integers."),
        float("digamma", "digamma(x)", POSITIVE, "The derivative of `lgamma`: NaN at negative integers."),
        OpDef::elementwise("polygamma(x; n: runtime int) -> y", "polygamma(n, x)").and_then(|o| {
            Ok(o.derivative(0, "polygamma(n + 1, x)")?
                .dtype(DTypeRule::PromoteFloat)
                .function("polygamma(Int n, Tensor x) -> Tensor")
                .function("polygamma(Tensor x, Int n) -> Tensor")
                .values(|v| match v.runtime[0].to_i64() {
                    n if n >= 0 => Ok(()),
                    n => Err(Error::argument(format!("expected an order n of at least 0, got {n}"))
                        .help("order 0 is `digamma`, order 1 its derivative")),
                })
                .doc("The derivative of order n of `digamma`.")
                .samples(&["f32[3, 5]+; n=1", "bf16[4, 2]+; n=2", "f64[3, 2]+; n=0"]))
        }),
        floats(
            "zeta(a: no_grad, b)",
            "zeta(a, b)",
            ABOVE_ONE,
            "The zeta function of Hurwitz: the sum of (b + k)⁻ᵃ over all k from 0. It has a gradient by b only.",
        )
        .map(|o| o.grad(zeta_gradient())),
        floats(
            "igamma(a: no_grad, b)",
            "igamma(a, b)",
            BOTH_POSITIVE,
            "The regularized lower incomplete gamma function P(a, b). It has a gradient by b only.",
        )
        // Of an input without a gradient nobody asks.
        .and_then(|o| o.derivative(0, "0")),
        floats(
            "igammac(a: no_grad, b)",
            "igammac(a, b)",
            BOTH_POSITIVE,
            "The regularized upper incomplete gamma function Q(a, b) = 1 - P(a, b). It has a gradient by b only.",
        )
        .and_then(|o| o.derivative(0, "0")),
    ]
}

fn error() -> Vec<Result<OpDef>> {
    vec![
        float("erfinv", "erfinv(x)", INSIDE, "The inverse of `erf`: infinite at -1 and 1, NaN beyond.")
            .and_then(|o| o.derivative(0, "0.886226925452758 * exp(square(erfinv(x)))")),
        float("erfcx", "erfcx(x)", ANY, "exp(x²) erfc(x), also where the factors overflow and vanish."),
        float(
            "ndtr",
            "0.5 * erfc(x * -0.7071067811865476)",
            ANY,
            "The normal distribution function: the area under the bell curve left of x.",
        ),
        float("ndtri", "ndtri(x)", SHARE, "The inverse of `ndtr`: infinite at 0 and 1, NaN beyond."),
        float(
            "log_ndtr",
            "select(x < -1, log(0.5 * erfcx(x * -0.7071067811865476)) - 0.5 * x * x, log1p(-0.5 * erfc(x * 0.7071067811865476)))",
            ANY,
            "The logarithm of `ndtr`, also where that vanishes.",
        )
        .and_then(|o| o.derivative(0, "0.7978845608028654 / erfcx(x * -0.7071067811865476)")),
        float(
            "entr",
            "select(isnan(x), x, select(x > 0, -x * log(x), select(x == 0, 0, -inf)))",
            POSITIVE,
            "-x log(x), the entropy: 0 of 0 and -inf below.",
        )
        .and_then(|o| o.derivative(0, "-1 - log(x)")),
        floats(
            "xlog1py(a, b)",
            "select(isnan(b), b, select(a == 0, 0, a * log1p(b)))",
            BOTH_POSITIVE,
            "a log(1 + b), and 0 where a is zero.",
        )
        .and_then(|o| o.derivative(0, "select(and(a == 0, b <= -1), 0, log1p(b))"))
        .and_then(|o| o.derivative(1, "a / (b + 1)")),
    ]
}

fn bessel() -> Vec<Result<OpDef>> {
    vec![
        float("i0", "i0(x)", ANY, "The modified Bessel function of the first kind of order 0."),
        float("i0e", "i0e(x)", ANY, "exp(-|x|) times `i0`."),
        float("i1", "i1(x)", ANY, "The modified Bessel function of the first kind of order 1."),
        float("i1e", "i1e(x)", ANY, "exp(-|x|) times `i1`."),
        float("bessel_j0", "bessel_j0(x)", ANY, "The Bessel function of the first kind of order 0."),
        float("bessel_j1", "bessel_j1(x)", ANY, "The Bessel function of the first kind of order 1."),
        float("bessel_y0", "bessel_y0(x)", POSITIVE, "The Bessel function of the second kind of order 0; NaN below 0."),
        float("bessel_y1", "bessel_y1(x)", POSITIVE, "The Bessel function of the second kind of order 1; NaN below 0."),
        float(
            "modified_bessel_k0",
            "bessel_k0(x)",
            POSITIVE,
            "The modified Bessel function of the second kind of order 0; NaN below 0.",
        ),
        float(
            "modified_bessel_k1",
            "bessel_k1(x)",
            POSITIVE,
            "The modified Bessel function of the second kind of order 1; NaN below 0.",
        ),
        float("scaled_modified_bessel_k0", "bessel_k0e(x)", POSITIVE, "eˣ times `modified_bessel_k0`."),
        float("scaled_modified_bessel_k1", "bessel_k1e(x)", POSITIVE, "eˣ times `modified_bessel_k1`."),
        float(
            "spherical_bessel_j0",
            "spherical_j0(x)",
            ANY,
            "The spherical Bessel function of the first kind of order 0: sin(x) / x, and 1 of 0.",
        ),
        float("airy_ai", "airy_ai(x)", ANY, "The Airy function Ai. It has no gradient.").map(|o| o.grad(Grad::Missing)),
    ]
}

fn polynomials() -> Vec<Result<OpDef>> {
    let mut all = vec![];
    for (kind, ordinal) in [("t", "first"), ("u", "second"), ("v", "third"), ("w", "fourth")] {
        all.push(polynomial(
            &format!("chebyshev_polynomial_{kind}"),
            &format!("chebyshev_{kind}"),
            &format!("The Chebyshev polynomial of the {ordinal} kind"),
        ));
        all.push(polynomial(
            &format!("shifted_chebyshev_polynomial_{kind}"),
            &format!("shifted_chebyshev_{kind}"),
            &format!("The Chebyshev polynomial of the {ordinal} kind at 2x - 1"),
        ));
    }
    all.extend([
        polynomial("hermite_polynomial_h", "hermite_h", "The Hermite polynomial of physicists"),
        polynomial("hermite_polynomial_he", "hermite_he", "The Hermite polynomial of probability theory"),
        polynomial("laguerre_polynomial_l", "laguerre_l", "The Laguerre polynomial"),
        polynomial("legendre_polynomial_p", "legendre_p", "The Legendre polynomial"),
    ]);
    all
}

/// A function of two integers.
fn integers(name: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a: int, b: int) -> y"), &format!("{name}(a, b)"))?
        .grad(Grad::None)
        .doc(doc)
        .samples(&["i32[3, 5] i32[3, 5]", "i64[4, 3] u8[3]", "i8[2, 1] i8[3]"]))
}

/// The number next to another one among those of `digits` binary digits, of which the smallest is 2 to the power `least` and the largest
/// `most`: a step of the last digit, half of it from a power of two towards zero. Computed in f32, where the steps of halves are exact.
fn next_half() -> Result<OpDef> {
    let inwards = "and(abs(mantissa(a)) == 0.5, sign(b - a) != sign(a))";
    let step = format!("exp2(select(a == 0, least, max(exponent(a) - digits - {inwards}, least)))");
    let next = format!("select(isinf(a), sign(a) * most, a + sign(b - a) * {step})");
    let text = "next_half(a: float, b: float; digits: runtime float, least: runtime float, most: runtime float) -> y";
    Ok(OpDef::elementwise(text, &format!("select(or(isnan(a), isnan(b)), nan, select(a == b, b, {next}))"))?
        .derivative(0, "1")?
        .derivative(1, "0")?
        .by_name_only()
        .doc("`nextafter` of halves, which the numbers describe.")
        .samples(&["bf16[3, 5] bf16[3, 5]; digits=8, least=-133, most=3.3895313892515355e38"]))
}

/// Parts of numbers.
fn parts() -> Vec<Result<OpDef>> {
    vec![
        integers("gcd", "The greatest common divisor; 0 of two zeros."),
        integers("lcm", "The least common multiple; 0 where one is 0."),
        OpDef::elementwise("nextafter(a: f32|f64, b: f32|f64) -> y", "nextafter(a, b)").map(|o| {
            o.doc("The number next to a towards b, of those that the dtype has.")
                .samples(&["f32[3, 5] f32[3, 5]", "f64[2, 1, 3] f64[4, 1]"])
        }),
        next_half(),
        OpDef::elementwise("frexp_mantissa(x: float) -> y", "mantissa(x)")
            .map(|o| o.by_name_only().doc("The mantissa of x, from 1/2 to 1, as `frexp` returns it.").samples(ANY)),
        OpDef::elementwise("frexp_exponent(x: float) -> y", "exponent(x)").map(|o| {
            o.by_name_only()
                .dtype(DTypeRule::Fixed(vec![DType::I32]))
                .grad(Grad::None)
                .doc("The exponent of x, as `frexp` returns it.")
                .samples(ANY)
        }),
    ]
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    [gamma(), error(), bessel(), polynomials(), parts()].into_iter().flatten().collect()
}
