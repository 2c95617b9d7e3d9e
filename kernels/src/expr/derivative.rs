//! Symbolic differentiation.

use super::{BinaryOp, Expr, UnaryOp, simplify};
use BinaryOp::*;
use UnaryOp::*;

impl Expr {
    /// Returns the partial derivative by input `input`, simplified. At kinks it is PyTorch's: `relu'(0) = abs'(0) = 0`, and `max`
    /// and `min` divide it equally between equal operands. Step functions have derivative 0.
    ///
    /// If the derivative contains the whole expression (`exp`, `sigmoid`, `tanh`, …), it is written as [`Expr::Output`], so the
    /// input need not be saved. In an expression that uses the output itself, substitute it first ([`Expr::substitute`]): the
    /// output counts as independent of the input here.
    pub fn derivative(&self, input: usize) -> Expr {
        let whole = self.simplify();
        let d = diff(&whole, input);
        if matches!(whole, Expr::Input(_) | Expr::Scalar(_) | Expr::Const(_) | Expr::Output) {
            return d;
        }
        replace(&d, &whole)
    }
}

/// `e` with every occurrence of `whole` replaced by the output. From the top down, so that the largest match wins.
fn replace(e: &Expr, whole: &Expr) -> Expr {
    if e == whole {
        return Expr::Output;
    }
    match e {
        Expr::Unary(op, a) => Expr::unary(*op, replace(a, whole)),
        Expr::Binary(op, a, b) => Expr::binary(*op, replace(a, whole), replace(b, whole)),
        Expr::Select(c, a, b) => Expr::select(replace(c, whole), replace(a, whole), replace(b, whole)),
        leaf => leaf.clone(),
    }
}

fn constant(c: f64) -> Expr {
    Expr::Const(c)
}
fn un(op: UnaryOp, a: Expr) -> Expr {
    simplify::node(Expr::unary(op, a))
}
fn bin(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    simplify::node(Expr::binary(op, a, b))
}
fn select(c: Expr, a: Expr, b: Expr) -> Expr {
    simplify::node(Expr::select(c, a, b))
}
fn is_zero(e: &Expr) -> bool {
    *e == Expr::Const(0.0)
}
/// A product with a derivative: a derivative that is zero by structure wins over any factor.
fn times(factor: Expr, d: Expr) -> Expr {
    if is_zero(&d) { d } else { bin(Mul, factor, d) }
}

fn diff(e: &Expr, input: usize) -> Expr {
    if !e.uses_input(input) {
        return constant(0.0);
    }
    match e {
        Expr::Input(_) => constant(1.0),
        Expr::Output | Expr::Scalar(_) | Expr::Const(_) => constant(0.0),
        Expr::Unary(op, a) => diff_unary(*op, a, diff(a, input)),
        Expr::Binary(op, a, b) => diff_binary(*op, a, b, diff(a, input), diff(b, input)),
        Expr::Select(c, a, b) => select((**c).clone(), diff(a, input), diff(b, input)),
    }
}

/// `(1 - a) (1 + a)`, which keeps its digits near one.
fn one_minus_square(a: Expr) -> Expr {
    bin(Mul, bin(Sub, constant(1.0), a.clone()), bin(Add, constant(1.0), a))
}

fn diff_unary(op: UnaryOp, a: &Expr, da: Expr) -> Expr {
    let a = || a.clone();
    let this = || un(op, a());
    match op {
        Neg => un(Neg, da),
        Abs => times(un(Sign, a()), da),
        Exp => times(this(), da),
        Log => bin(Div, da, a()),
        Log1p => bin(Div, da, bin(Add, constant(1.0), a())),
        Expm1 => times(bin(Add, this(), constant(1.0)), da),
        Sqrt => times(bin(Div, constant(0.5), this()), da),
        Rsqrt => times(bin(Mul, constant(-0.5), bin(Mul, this(), un(Square, this()))), da),
        Reciprocal => times(un(Neg, un(Square, this())), da),
        Square => times(bin(Mul, constant(2.0), a()), da),
        Sin => times(un(Cos, a()), da),
        Cos => times(un(Neg, un(Sin, a())), da),
        Tanh => times(bin(Sub, constant(1.0), un(Square, this())), da),
        Sigmoid => times(bin(Mul, this(), bin(Sub, constant(1.0), this())), da),
        Erf => {
            let bell = un(Exp, un(Neg, un(Square, a())));
            times(bin(Mul, constant(std::f64::consts::FRAC_2_SQRT_PI), bell), da)
        }
        Erfc => {
            let bell = un(Exp, un(Neg, un(Square, a())));
            times(bin(Mul, constant(-std::f64::consts::FRAC_2_SQRT_PI), bell), da)
        }
        Exp2 => times(bin(Mul, constant(std::f64::consts::LN_2), this()), da),
        Log2 => bin(Div, da, bin(Mul, constant(std::f64::consts::LN_2), a())),
        Log10 => bin(Div, da, bin(Mul, constant(std::f64::consts::LN_10), a())),
        Tan => times(bin(Add, constant(1.0), un(Square, this())), da),
        Asin => times(un(Rsqrt, one_minus_square(a())), da),
        Acos => times(un(Neg, un(Rsqrt, one_minus_square(a()))), da),
        Atan => bin(Div, da, bin(Add, constant(1.0), un(Square, a()))),
        Sinh => times(un(Cosh, a()), da),
        Cosh => times(un(Sinh, a()), da),
        Asinh => times(un(Rsqrt, bin(Add, constant(1.0), un(Square, a()))), da),
        Acosh => {
            let product = bin(Mul, bin(Sub, a(), constant(1.0)), bin(Add, a(), constant(1.0)));
            times(un(Rsqrt, product), da)
        }
        Atanh => bin(Div, da, one_minus_square(a())),
        // Asked this way round, NaN lets the gradient pass, as in PyTorch.
        Relu => select(bin(Le, a(), constant(0.0)), constant(0.0), da),
        Floor | Ceil | Round | Trunc | Sign | Not | IsNan | IsInf | BitNot => constant(0.0),
    }
}

fn diff_binary(op: BinaryOp, a: &Expr, b: &Expr, da: Expr, db: Expr) -> Expr {
    let (a, b) = (|| a.clone(), || b.clone());
    match op {
        Add => bin(Add, da, db),
        Sub => bin(Sub, da, db),
        Mul => bin(Add, times(b(), da), times(a(), db)),
        Div => bin(Div, bin(Sub, da, times(bin(Div, a(), b()), db)), b()),
        Pow => {
            let by_a = if is_zero(&da) {
                da
            } else {
                let slope = bin(Mul, b(), bin(Pow, a(), bin(Sub, b(), constant(1.0))));
                times(select(bin(Eq, b(), constant(0.0)), constant(0.0), slope), da)
            };
            let by_b = if is_zero(&db) {
                db
            } else {
                let slope = bin(Mul, bin(Pow, a(), b()), un(Log, a()));
                let flat = bin(And, bin(Eq, a(), constant(0.0)), bin(Ge, b(), constant(0.0)));
                times(select(flat, constant(0.0), slope), db)
            };
            bin(Add, by_a, by_b)
        }
        Max | Min => {
            // Asked this way round, NaN lets both gradients pass, as in PyTorch.
            let (a_loses, b_loses) = if op == Max { (Lt, Gt) } else { (Gt, Lt) };
            let share = |loses, d: Expr| {
                let half = times(constant(0.5), d.clone());
                select(bin(loses, a(), b()), constant(0.0), select(bin(Eq, a(), b()), half, d))
            };
            bin(Add, share(a_loses, da), share(b_loses, db))
        }
        Fmod => bin(Sub, da, times(un(Trunc, bin(Div, a(), b())), db)),
        Remainder => bin(Sub, da, times(bin(FloorDiv, a(), b()), db)),
        Atan2 => {
            let square = bin(Add, un(Square, a()), un(Square, b()));
            let by_a = times(bin(Div, b(), square.clone()), da);
            bin(Sub, by_a, times(bin(Div, a(), square), db))
        }
        Hypot => bin(Div, bin(Add, times(a(), da), times(b(), db)), bin(Hypot, a(), b())),
        LogAddExp => {
            let share = |x: Expr| un(Exp, bin(Sub, x, bin(LogAddExp, a(), b())));
            bin(Add, times(share(a()), da), times(share(b()), db))
        }
        Eq | Ne | Lt | Le | Gt | Ge | And | Or | Xor | FloorDiv => constant(0.0),
        BitAnd | BitOr | BitXor | Shl | Shr => constant(0.0),
    }
}
