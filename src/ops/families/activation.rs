//! Activations: each is one scalar expression; kernel, signatures and gradient follow from it.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, OpDef};

/// `tanh` of the usual cubic, as PyTorch's `gelu(approximate="tanh")`.
const GELU_TANH: &str = "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))";
const GELU: &str = "x * normcdf(x)";

const HARDTANH: &str = "hardtanh(x: float; lo: runtime float = -1.0, hi: runtime float = 1.0) -> y";
const SOFTSHRINK: &str = "softshrink(x: float; lambd: runtime float = 0.5) -> y";
const CELU: &str = "celu(x: float; alpha: runtime float = 1.0) -> y";
const SOFTPLUS: &str = "softplus(x: float; beta: runtime float = 1.0, threshold: runtime float = 20.0) -> y";

const RELU: &str = "max(x, 0).

```
use oflow::prelude::*;
let x = from_vec(vec![-1.0f32, 2.0], [2], Device::Cpu)?;
assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
# Ok::<(), oflow::Error>(())
```";

// Integers become f32, as in PyTorch.
const SIGMOID: &str = "sigmoid(x: number) -> y";
const TANH: &str = "tanh(x: number) -> y";
const TANHSHRINK: &str = "tanhshrink(x: number) -> y";

/// `(declaration, expression, derivative or "", doc)`.
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("relu(x) -> y", "relu(x)", "select(out <= 0, 0, 1)", RELU),
    (SIGMOID, "sigmoid(x)", "out * (1 - out)", "The sigmoid σ(x) = 1 / (1 + e⁻ˣ)."),
    (TANH, "tanh(x)", "1 - out * out", "The hyperbolic tangent."),
    ("gelu(x: float) -> y", GELU, "", "x Φ(x), with the exact normal distribution function Φ (by erf)."),
    ("gelu_tanh(x: float) -> y", GELU_TANH, "", "GELU by its tanh approximation."),
    ("quick_gelu(x: float) -> y", "x * sigmoid(1.702 * x)", "", "x σ(1.702 x), the sigmoid approximation of GELU."),
    ("silu(x: float|complex) -> y", "x * sigmoid(x)", "", "x σ(x)."),
    ("mish(x: float) -> y", "x * tanh(select(x > 20, x, log1p(exp(x))))", "", "x tanh(softplus(x))."),
    (
        "leaky_relu(x: float; alpha: runtime float = 0.01) -> y",
        "select(x >= 0, x, alpha * x)",
        "select(x > 0, 1, alpha)",
        "x, or alpha x where x is negative.",
    ),
    (
        "elu(x: float; alpha: runtime float = 1.0) -> y",
        "select(x > 0, x, alpha * expm1(x))",
        "select(x <= 0, alpha * exp(x), 1)",
        "x, or alpha (eˣ - 1) where x is negative.",
    ),
    (
        SOFTPLUS,
        "select(x * beta > threshold, x, log1p(exp(x * beta)) / beta)",
        "select(x * beta > threshold, 1, sigmoid(x * beta))",
        "log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.",
    ),
    ("log_sigmoid(x: float) -> y", "min(x, 0) - log1p(exp(-abs(x)))", "sigmoid(-x)", "log σ(x)."),
    ("softsign(x: float) -> y", "x / (1 + abs(x))", "1 / square(1 + abs(x))", "x / (1 + |x|)."),
    (
        "selu(x: float) -> y",
        "1.0507009873554805 * select(x > 0, x, 1.6732632423543772 * expm1(x))",
        "1.0507009873554805 * select(x <= 0, 1.6732632423543772 * exp(x), 1)",
        "SELU (Klambauer et al., 2017): a scaled ELU that keeps mean 0 and variance 1.",
    ),
    (HARDTANH, "min(max(x, lo), hi)", "select(or(x <= lo, x >= hi), 0, 1)", "x, but not below lo and not above hi."),
    (
        "hardsigmoid(x: float) -> y",
        "min(max(x / 6 + 0.5, 0), 1)",
        "select(and(x > -3, x < 3), 0.16666666666666666, 0)",
        "The piecewise linear sigmoid: x / 6 + 1/2, clamped to 0 and 1.",
    ),
    (
        "hardshrink(x: float; lambd: runtime float = 0.5) -> y",
        "select(abs(x) > lambd, x, select(isnan(x), x, 0))",
        "select(abs(x) <= lambd, 0, 1)",
        "x, or 0 where |x| is not above lambd.",
    ),
    (
        SOFTSHRINK,
        "select(x > lambd, x - lambd, select(x < -lambd, x + lambd, x * 0))",
        "select(abs(x) <= lambd, 0, 1)",
        "x moved towards zero by lambd, or 0 where |x| is not above lambd.",
    ),
    ("relu6(x) -> y", "min(max(x, 0), 6)", "select(or(x <= 0, x >= 6), 0, 1)", "x, but not below 0 and not above 6."),
    (
        CELU,
        "select(x > 0, x, alpha * expm1(x / alpha))",
        "select(x <= 0, exp(x / alpha), 1)",
        "x, or alpha (e^(x / alpha) - 1) where x is negative: an ELU whose slope has no step.",
    ),
    (TANHSHRINK, "x - tanh(x)", "square(tanh(x))", "x - tanh(x)."),
    (
        "hardswish(x: float) -> y",
        "x * min(max(x / 6 + 0.5, 0), 1)",
        "select(x <= -3, 0, select(x < 3, x / 3 + 0.5, 1))",
        "x hardsigmoid(x).",
    ),
];

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let threshold = OpDef::elementwise(
        "threshold(x; threshold: runtime scalar, value: runtime scalar) -> y",
        "select(x <= threshold, value, x)",
    );
    let threshold = threshold.and_then(|op| op.derivative(0, "select(x <= threshold, 0, 1)")).map(|op| {
        op.doc("x, or `value` where x is not above `threshold`.")
            .samples(&["f32[3, 5]; threshold=0.1, value=0.6", "f64[4, 2]; threshold=-0.1, value=3.0"])
    });
    TABLE
        .iter()
        .map(|(text, expr, derivative, doc)| {
            let op = OpDef::elementwise(text, expr)?.doc(doc).samples(&["f32[3, 5]", "f64[4, 2]", "bf16[2, 3]"]);
            let op = match *text {
                SIGMOID | TANH | TANHSHRINK => op.dtype(DTypeRule::PromoteFloat),
                HARDTANH => op.values(|v| match (v.runtime[0].to_f64(), v.runtime[1].to_f64()) {
                    (lo, hi) if lo > hi => {
                        Err(Error::argument(format!("expected lo at most hi, not lo = {lo} and hi = {hi}")))
                    }
                    _ => Ok(()),
                }),
                SOFTSHRINK => op.values(|v| match v.runtime[0].to_f64() {
                    lambd if lambd >= 0.0 => Ok(()),
                    lambd => Err(Error::argument(format!("expected lambd of at least 0, not {lambd}"))),
                }),
                CELU => op.values(|v| match v.runtime[0].to_f64() {
                    0.0 => Err(Error::argument("expected alpha other than 0, by which x is divided")),
                    _ => Ok(()),
                }),
                SOFTPLUS => op.function("softplus(Tensor x, *, Float beta=1.0, Float threshold=20.0) -> Tensor"),
                _ => op,
            };
            if derivative.is_empty() { Ok(op) } else { op.derivative(0, derivative) }
        })
        .chain([threshold])
        .collect()
}
