//! Linearity and monotony of an expression. The analysis is sound, not complete: a property that it does not find may hold.
//! Arithmetic is that of real numbers on finite values without overflow. A function that is NaN on part of the line (`log`,
//! `sqrt`, division) is monotone only if its argument is proved to be inside its domain. Functions that turn NaN into a number
//! (comparisons, logic) have no property.

use super::{BinaryOp, Expr, UnaryOp, unary_functions};
use crate::ReduceOp;
use BinaryOp::*;
use UnaryOp::*;

/// Monotony of a value in one input, the others fixed (not strict: floor is increasing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Monotony {
    /// The value does not depend on the input.
    Constant,
    /// The value is non-decreasing.
    Increasing,
    /// The value is non-increasing.
    Decreasing,
    /// Neither is known.
    Unknown,
}

impl Monotony {
    fn flip(self) -> Self {
        match self {
            Monotony::Increasing => Monotony::Decreasing,
            Monotony::Decreasing => Monotony::Increasing,
            m => m,
        }
    }
    /// Of a sum of both.
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Monotony::Constant, m) | (m, Monotony::Constant) => m,
            (a, b) if a == b => a,
            _ => Monotony::Unknown,
        }
    }
    /// Of a product with a factor in `range`.
    fn scaled(self, range: Range) -> Self {
        match self {
            Monotony::Constant => self,
            m if range.low >= 0.0 => m,
            m if range.high <= 0.0 => m.flip(),
            _ => Monotony::Unknown,
        }
    }
}

/// Bounds of a value over all inputs and scalars.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

const ANY: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY };

impl Range {
    fn new(low: f64, high: f64) -> Range {
        // A NaN bound knows nothing.
        Range {
            low: if low.is_nan() { f64::NEG_INFINITY } else { low },
            high: if high.is_nan() { f64::INFINITY } else { high },
        }
    }
    fn map(self, f: impl Fn(f64) -> f64) -> Range {
        Range::new(f(self.low), f(self.high))
    }
    fn neg(self) -> Range {
        Range::new(-self.high, -self.low)
    }
    fn abs(self) -> Range {
        let high = self.high.max(-self.low);
        if self.low >= 0.0 {
            self
        } else if self.high <= 0.0 {
            self.neg()
        } else {
            Range::new(0.0, high)
        }
    }
    fn product(self, other: Range) -> Range {
        let mut r = Range { low: f64::INFINITY, high: f64::NEG_INFINITY };
        for a in [self.low, self.high] {
            for b in [other.low, other.high] {
                // An unbounded end times zero is zero: the end is never reached.
                let p = if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
                r = Range { low: r.low.min(p), high: r.high.max(p) };
            }
        }
        r
    }
    fn excludes_zero(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
    /// Of a function that rises everywhere.
    fn rising(self, op: UnaryOp) -> Range {
        self.map(|x| op.eval(x))
    }
    /// Of a function that falls everywhere.
    fn falling(self, op: UnaryOp) -> Range {
        Range::new(op.eval(self.high), op.eval(self.low))
    }
    /// Monotony of an even function that rises on both sides of zero, for an argument within this range.
    fn away_from_zero(self) -> Monotony {
        match self.low >= 0.0 {
            true => Monotony::Increasing,
            false => claim(self.high <= 0.0, Monotony::Decreasing),
        }
    }
}

fn range(e: &Expr) -> Range {
    match e {
        Expr::Input(_) | Expr::Output | Expr::Scalar(_) => ANY,
        Expr::Const(c) => Range::new(*c, *c),
        Expr::Unary(op, a) => unary_range(*op, range(a)),
        Expr::Binary(op, a, b) => {
            let (x, y) = (range(a), range(b));
            match op {
                Add => Range::new(x.low + y.low, x.high + y.high),
                Sub => Range::new(x.low - y.high, x.high - y.low),
                // x * x is not two independent values.
                Mul if a == b => x.abs().map(|v| v * v),
                Mul => x.product(y),
                Div if y.excludes_zero() => x.product(Range::new(1.0 / y.high, 1.0 / y.low)),
                Max => Range::new(x.low.max(y.low), x.high.max(y.high)),
                Min => Range::new(x.low.min(y.low), x.high.min(y.high)),
                op if op.is_predicate() => Range::new(0.0, 1.0),
                _ => ANY,
            }
        }
        Expr::Select(_, a, b) => {
            let (x, y) = (range(a), range(b));
            Range::new(x.low.min(y.low), x.high.max(y.high))
        }
    }
}

macro_rules! unary_properties {
    ($($name:ident $text:literal $doc:literal {
            $(real |$x:ident| $real:expr $(, near $near:expr)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident| $int:expr;)?
            $(complex |$z:ident| $complex:expr;)?
            $(range |$r:ident| $range:expr;)?
            $(monotony |$m:ident| $monotony:expr;)?
            slope |$sx:ident, $sy:ident, $dx:ident| $slope:expr;
        })*) => {
        /// Bounds of the value of a function, given where its argument lies.
        fn unary_range(op: UnaryOp, argument: Range) -> Range {
            match op {
                $($(UnaryOp::$name => { let $r = argument; $range })?)*
                _ => ANY,
            }
        }

        /// How a function of one value follows its argument, given where the argument lies.
        fn unary_monotony(op: UnaryOp, argument: Range) -> Monotony {
            use Monotony::{Decreasing, Increasing, Unknown};
            match op {
                $($(UnaryOp::$name => { let $m = argument; $monotony })?)*
                _ => Unknown,
            }
        }
    };
}
unary_functions!(unary_properties);

/// The monotony where it holds.
fn claim(holds: bool, m: Monotony) -> Monotony {
    if holds { m } else { Monotony::Unknown }
}

/// Degree of an expression in a set of inputs.
#[derive(Clone, Copy, PartialEq)]
enum Degree {
    Zero,
    Independent,
    Linear,
    Other,
}

impl Expr {
    /// Returns whether the value is jointly linear and homogeneous in the inputs `subset`, all other inputs and scalars fixed:
    /// `f(Σ x) = Σ f(x)`. So `a + b` is in `{a, b}` but not in `{a}`; `a * b` in `{a}` and in `{b}` but not in `{a, b}`.
    pub fn linear_in(&self, subset: &[usize]) -> bool {
        matches!(degree(self, subset), Degree::Linear | Degree::Zero)
    }

    /// Returns the monotony of the value in input `input`, with the other inputs and the scalars (of unknown sign) fixed.
    pub fn monotony(&self, input: usize) -> Monotony {
        if self.uses_output() {
            return Monotony::Unknown;
        }
        monotony(self, input)
    }

    /// For `inputs` that are partial values of the reduction `op`, with the other inputs whole: returns the reduction of which
    /// the results are partial values, or `None` if there is none. So `max(a, b)` passes `Max` in both, `-a` turns `Max` into
    /// `Min`, and a linear expression passes `Sum`.
    pub fn partial_passes(&self, inputs: &[usize], op: ReduceOp) -> Option<ReduceOp> {
        match op {
            _ if inputs.is_empty() || self.uses_output() => None,
            ReduceOp::Sum => self.linear_in(inputs).then_some(ReduceOp::Sum),
            ReduceOp::Max | ReduceOp::Min => partial(self, inputs, op),
        }
    }
}

fn degree(e: &Expr, subset: &[usize]) -> Degree {
    use Degree::*;
    let go = |e: &Expr| degree(e, subset);
    let sum = |a, b| match (a, b) {
        (Zero, d) | (d, Zero) => d,
        (Linear, Linear) => Linear,
        (Independent, Independent) => Independent,
        _ => Other,
    };
    let independent = |all: bool| if all { Independent } else { Other };
    let fixed = |d| matches!(d, Zero | Independent);
    match e {
        Expr::Input(i) if subset.contains(i) => Linear,
        Expr::Const(0.0) => Zero,
        Expr::Input(_) | Expr::Scalar(_) | Expr::Const(_) => Independent,
        Expr::Output => Other,
        // Parts of sums are sums of parts.
        Expr::Unary(Neg | Conj | Re | Im, a) => go(a),
        Expr::Unary(_, a) => independent(fixed(go(a))),
        Expr::Binary(Add | Sub | BinaryOp::Complex, a, b) => sum(go(a), go(b)),
        Expr::Binary(BinaryOp::Mul, a, b) => match (go(a), go(b)) {
            (Linear, d) | (d, Linear) if fixed(d) => Linear,
            (Zero, d) | (d, Zero) if fixed(d) => Zero,
            (a, b) => independent(fixed(a) && fixed(b)),
        },
        // A shift to the left is a product, and both wrap alike.
        Expr::Binary(Div | Shl, a, b) => match (go(a), go(b)) {
            (n @ (Linear | Zero), d) if fixed(d) => n,
            (a, b) => independent(fixed(a) && fixed(b)),
        },
        Expr::Binary(_, a, b) => independent(fixed(go(a)) && fixed(go(b))),
        Expr::Select(c, a, b) if fixed(go(c)) => sum(go(a), go(b)),
        Expr::Select(..) => Other,
    }
}

fn monotony(e: &Expr, input: usize) -> Monotony {
    use Monotony::{Constant, Increasing, Unknown};
    if !e.uses_input(input) {
        return Constant;
    }
    let go = |e: &Expr| monotony(e, input);
    match e {
        Expr::Input(_) => Increasing,
        Expr::Output | Expr::Scalar(_) | Expr::Const(_) => Constant,
        Expr::Unary(op, a) => match unary_monotony(*op, range(a)) {
            Monotony::Increasing => go(a),
            Monotony::Decreasing => go(a).flip(),
            m => m,
        },
        Expr::Binary(op, a, b) => match op {
            Add | Max | Min | LogAddExp => go(a).join(go(b)),
            Sub => go(a).join(go(b).flip()),
            Mul => go(a).scaled(range(b)).join(go(b).scaled(range(a))),
            // The difference of two quotients is that of the numerators over b, plus a times that of 1/b.
            Div if range(b).excludes_zero() => go(a).scaled(range(b)).join(go(b).flip().scaled(range(a))),
            _ => Unknown,
        },
        Expr::Select(c, a, b) if !c.uses_input(input) => go(a).join(go(b)),
        Expr::Select(..) => Unknown,
    }
}

fn partial(e: &Expr, inputs: &[usize], op: ReduceOp) -> Option<ReduceOp> {
    let swapped = |op| if op == ReduceOp::Max { ReduceOp::Min } else { ReduceOp::Max };
    let mut used = inputs.iter().copied().filter(|i| e.uses_input(*i));
    match (used.next(), used.next()) {
        // A whole value is its own maximum and minimum.
        (None, _) => Some(op),
        (Some(one), None) => match monotony(e, one) {
            Monotony::Increasing | Monotony::Constant => Some(op),
            Monotony::Decreasing => Some(swapped(op)),
            Monotony::Unknown => None,
        },
        _ => match e {
            Expr::Unary(f, a) => {
                let inner = partial(a, inputs, op)?;
                match unary_monotony(*f, range(a)) {
                    Monotony::Increasing => Some(inner),
                    Monotony::Decreasing => Some(swapped(inner)),
                    _ => None,
                }
            }
            Expr::Binary(f @ (Max | Min), a, b) => {
                let want = if *f == Max { ReduceOp::Max } else { ReduceOp::Min };
                let passes = |e: &Expr| {
                    let whole = inputs.iter().all(|i| !e.uses_input(*i));
                    whole || partial(e, inputs, op) == Some(want)
                };
                (passes(a) && passes(b)).then_some(want)
            }
            // One of two values, the same one on all ranks.
            Expr::Select(c, a, b) if inputs.iter().all(|i| !c.uses_input(*i)) => {
                let mut used = [a, b].into_iter().filter(|e| inputs.iter().any(|i| e.uses_input(*i)));
                let kind = partial(used.next()?, inputs, op)?;
                used.all(|e| partial(e, inputs, op) == Some(kind)).then_some(kind)
            }
            _ => None,
        },
    }
}
