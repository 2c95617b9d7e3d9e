//! Smaller expressions with the same values.

use super::{BinaryOp, Expr, UnaryOp};

/// Integers up to here are exact in f64, so folding them agrees with integer arithmetic.
const EXACT: f64 = 9007199254740992.0;

impl Expr {
    /// Folds constants and removes neutral elements. Values stay the same, also for NaN and infinities (so `x * 0` is
    /// kept), except for the sign of a zero and the rounding where constants are folded (in f64).
    pub fn simplify(&self) -> Expr {
        self.rebuild(&mut node)
    }
}

fn is(e: &Expr, value: f64) -> bool {
    matches!(e, Expr::Const(c) if *c == value)
}

/// Simplifies a node whose children are simple.
pub(super) fn node(e: Expr) -> Expr {
    match e {
        Expr::Unary(op, a) => unary(op, *a),
        Expr::Binary(op, a, b) => binary(op, *a, *b),
        Expr::Select(c, a, b) => match *c {
            Expr::Const(c) => {
                if c != 0.0 {
                    *a
                } else {
                    *b
                }
            }
            _ if a == b => *a,
            c => Expr::select(c, *a, *b),
        },
        leaf => leaf,
    }
}

fn unary(op: UnaryOp, a: Expr) -> Expr {
    match (op, a) {
        (op, Expr::Const(c)) => Expr::Const(op.eval(c)),
        (UnaryOp::Neg, Expr::Unary(UnaryOp::Neg, a)) | (UnaryOp::Conj, Expr::Unary(UnaryOp::Conj, a)) => *a,
        (UnaryOp::Conj, a @ Expr::Unary(UnaryOp::Abs | UnaryOp::Re | UnaryOp::Im, _)) => a,
        (op, a) => Expr::unary(op, a),
    }
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    use BinaryOp::*;
    // What a + i b is, a constant cannot say.
    if let (Expr::Const(x), Expr::Const(y)) = (&a, &b)
        && op != Complex
    {
        let value = op.eval(*x, *y);
        let integers = x.fract() == 0.0 && y.fract() == 0.0;
        // As integers these would truncate, wrap or divide by zero instead.
        let differs = integers && (value.fract() != 0.0 || value.abs() > EXACT || !value.is_finite());
        if !differs {
            return Expr::Const(value);
        }
    }
    match op {
        Add if is(&a, 0.0) => b,
        Add | Sub if is(&b, 0.0) => a,
        Sub if is(&a, 0.0) => unary(UnaryOp::Neg, b),
        Mul if is(&a, 1.0) => b,
        Mul | Div | Pow if is(&b, 1.0) => a,
        Mul if is(&a, -1.0) => unary(UnaryOp::Neg, b),
        Mul | Div if is(&b, -1.0) => unary(UnaryOp::Neg, a),
        Pow if is(&b, 2.0) => Expr::unary(UnaryOp::Square, a),
        Pow if is(&b, 0.0) => Expr::Const(1.0),
        // Constants gather on the left: 2 * (3 * x) becomes 6 * x.
        Mul if matches!(b, Expr::Const(_)) && !matches!(a, Expr::Const(_)) => binary(Mul, b, a),
        Mul => match (a, b) {
            (Expr::Const(x), Expr::Binary(Mul, y, rest)) if matches!(*y, Expr::Const(_)) => {
                binary(Mul, binary(Mul, Expr::Const(x), *y), *rest)
            }
            (a, b) => Expr::binary(Mul, a, b),
        },
        _ => Expr::binary(op, a, b),
    }
}
