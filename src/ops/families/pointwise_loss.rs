//! The losses of single elements: what the loss functions reduce. Each is one scalar expression.

use crate::error::Result;
use crate::ops::OpDef;

/// `(declaration, expression, derivatives or "" by input, doc, samples)`.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str, &'static [&'static str]);

const PAIR: &[&str] = &["f32[3, 5] f32[3, 5]", "f64[4, 3] f64[4, 3]", "bf16[4] bf16[4]"];
/// No element equals its target, where the absolute value has a kink.
const APART: &[&str] = &["f32[3, 5]@0..1 f32[3, 5]@2..3", "f64[4, 3]@2..3 f64[4, 3]@0..1", "bf16[4]@0..1 bf16[4]@2..3"];
const PROBABILITY: &[&str] = &["f32[3, 5]@0..1 f32[3, 5]@0..1", "f64[4, 3]@0..1 f64[4, 3]@0..1"];

const SMOOTH: &str = "select(abs(x - t) < beta, 0.5 * square(x - t) / beta, abs(x - t) - 0.5 * beta)";
const HUBER: &str = "select(abs(x - t) <= delta, 0.5 * square(x - t), delta * (abs(x - t) - 0.5 * delta))";
/// Logarithms stop at -100, so that a certain mistake has a finite loss.
const BCE: &str = "(t - 1) * max(log1p(-x), -100) - t * max(log(x), -100)";
const LOGITS: &str = "(1 - t) * x + (log1p(exp(-abs(x))) + max(-x, 0))";
const LOGITS_WEIGHTED: &str = "(1 - t) * x + (1 + (w - 1) * t) * (log1p(exp(-abs(x))) + max(-x, 0))";

const TABLE: &[Row] = &[
    ("mse_each(x: float, t: float) -> y", "square(x - t)", &[], "(x - t)².", PAIR),
    ("l1_each(x: float, t: float) -> y", "abs(x - t)", &[], "|x - t|.", APART),
    (
        "smooth_l1_each(x: float, t: float; beta: runtime float = 1.0) -> y",
        SMOOTH,
        &[
            "select(abs(x - t) < beta, (x - t) / beta, sign(x - t))",
            "select(abs(x - t) < beta, (t - x) / beta, sign(t - x))",
        ],
        "(x - t)² / (2 beta) where |x - t| is below beta, else |x - t| - beta / 2.",
        PAIR,
    ),
    (
        "huber_each(x: float, t: float; delta: runtime float = 1.0) -> y",
        HUBER,
        &["min(max(x - t, -delta), delta)", "min(max(t - x, -delta), delta)"],
        "(x - t)² / 2 where |x - t| is at most delta, else delta (|x - t| - delta / 2).",
        PAIR,
    ),
    (
        "bce_each(x: float, t: float) -> y",
        BCE,
        &["(x - t) / max((1 - x) * x, 0.000000000001)", "max(log1p(-x), -100) - max(log(x), -100)"],
        "The binary cross entropy of a probability x and a target t.",
        PROBABILITY,
    ),
    (
        "bce_logits_each(x: float, t: float) -> y",
        LOGITS,
        &["sigmoid(x) - t", "-x"],
        "The binary cross entropy of a logit x and a target t.",
        &["f32[3, 5] f32[3, 5]@0..1", "f64[4, 3] f64[4, 3]@0..1"],
    ),
    (
        "bce_logits_weighted_each(x: float, t: float, w: float) -> y",
        LOGITS_WEIGHTED,
        &[
            "(1 - t) - (1 + (w - 1) * t) * sigmoid(-x)",
            "-x + (w - 1) * (log1p(exp(-abs(x))) + max(-x, 0))",
            "t * (log1p(exp(-abs(x))) + max(-x, 0))",
        ],
        "The binary cross entropy of a logit x and a target t, with the weight w of positive targets.",
        &["f32[3, 5] f32[3, 5]@0..1 f32[5]+", "f64[4, 3] f64[4, 3]@0..1 f64[3]+"],
    ),
    (
        "kl_each(x: float, t: float) -> y",
        "select(t == 0, 0 * x, t * (log(t) - x))",
        &["-t", "select(t == 0, 0, log(t) + 1 - x)"],
        "t (log t - x), or 0 where t is 0; NaN where t is negative or NaN: the divergence of log-probabilities x from probabilities t.",
        &["f32[3, 5] f32[3, 5]+", "f64[4, 3] f64[4, 3]+"],
    ),
    (
        "kl_log_each(x: float, t: float) -> y",
        "exp(t) * (t - x)",
        &[],
        "eᵗ (t - x): the divergence of log-probabilities x from log-probabilities t.",
        PAIR,
    ),
    (
        "soft_margin_each(x: float, t: float) -> y",
        "max(-t * x, 0) + log1p(exp(-abs(t * x)))",
        &["-t * sigmoid(-t * x)", "-x * sigmoid(-t * x)"],
        "log(1 + e^(-t x)).",
        PAIR,
    ),
    (
        "hinge_each(x: float, t: float; margin: runtime float = 1.0) -> y",
        "select(t == 1, 0, max(margin - x, 0)) + select(t == -1, 0, x)",
        &["select(t == -1, 0, 1) - select(and(t != 1, margin - x > 0), 1, 0)", "0"],
        "x where t is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere.",
        PAIR,
    ),
    (
        "ranking_each(a: float, b: float, t: float; margin: runtime float = 0.0) -> y",
        "max(t * (b - a) + margin, 0)",
        &[
            "select(t * (b - a) + margin > 0, -t, 0)",
            "select(t * (b - a) + margin > 0, t, 0)",
            "select(t * (b - a) + margin > 0, b - a, 0)",
        ],
        "max(0, margin - t (a - b)).",
        &["f32[3, 5] f32[3, 5] f32[3, 5]", "f64[4, 3] f64[4, 3] f64[4, 3]"],
    ),
    (
        "root(x: float) -> y",
        "sqrt(x)",
        &["select(out == 0, 0, 0.5 / out)"],
        "√x, with the gradient 0 at 0: the root of a sum of squares.",
        &["f32[3, 5]+", "f64[4, 3]+", "bf16[4]+"],
    ),
];

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let row = |(text, expr, derivatives, doc, samples): &Row| {
        let mut op = OpDef::elementwise(text, expr)?;
        for (i, d) in derivatives.iter().enumerate() {
            op = op.derivative(i, d)?;
        }
        Ok(op.doc(doc).by_name_only().samples(samples))
    };
    TABLE.iter().map(row).collect()
}
