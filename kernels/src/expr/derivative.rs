//! Symbolic differentiation.

use super::{BinaryOp, Expr, UnaryOp, binary_functions, simplify, unary_functions};
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

/// Derivatives of a complex function by an input z and by its conjugate (W. Wirtinger), as if the two were independent. A function
/// that complex numbers differentiate, such as `exp`, has none by the conjugate; `abs`, `re` or `conj` have.
#[derive(Clone, Debug, PartialEq)]
pub struct Wirtinger {
    /// Derivative by z.
    pub by_input: Expr,
    /// By the conjugate of z.
    pub by_conjugate: Expr,
}

impl Expr {
    /// Returns the derivatives by input `input` of complex numbers, simplified. As in [`Expr::derivative`], the whole expression in
    /// them is [`Expr::Output`].
    ///
    /// ```
    /// use oflow_kernels::expr::Expr;
    /// let d = Expr::parse("z * conj(z)", &["z"], &[]).unwrap().wirtinger(0);
    /// assert_eq!(d.by_input.to_string(), "conj(x0)");
    /// assert_eq!(d.by_conjugate.to_string(), "x0");
    /// ```
    pub fn wirtinger(&self, input: usize) -> Wirtinger {
        let whole = self.simplify();
        let [by_input, by_conjugate] = both(&whole, input);
        if matches!(whole, Expr::Input(_) | Expr::Scalar(_) | Expr::Const(_) | Expr::Output) {
            return Wirtinger { by_input, by_conjugate };
        }
        Wirtinger { by_input: replace(&by_input, &whole), by_conjugate: replace(&by_conjugate, &whole) }
    }

    /// Whether complex numbers differentiate it as [`Expr::derivative`] says: no part of it takes numbers apart.
    pub fn is_holomorphic(&self) -> bool {
        !self.any(&|e| matches!(e, Expr::Unary(Abs | Sign | Conj | Re | Im, _)))
    }
}

/// The derivatives by the input and by its conjugate.
fn both(e: &Expr, input: usize) -> [Expr; 2] {
    if !e.uses_input(input) {
        return [constant(0.0), constant(0.0)];
    }
    let half = |e: Expr| times(constant(0.5), e);
    match e {
        Expr::Input(_) => [constant(1.0), constant(0.0)],
        Expr::Output | Expr::Scalar(_) | Expr::Const(_) => [constant(0.0), constant(0.0)],
        Expr::Unary(op, a) => {
            let [d, bar] = both(a, input);
            // Of the conjugate of `a`.
            let [d_conj, bar_conj] = [un(Conj, bar.clone()), un(Conj, d.clone())];
            match op {
                Conj => [d_conj, bar_conj],
                Re => [half(bin(Add, d, d_conj)), half(bin(Add, bar, bar_conj))],
                Im => {
                    // (a - conj(a)) / 2i
                    let part = |d, of_conj| {
                        let difference = bin(Sub, d, of_conj);
                        let by = Expr::binary(BinaryOp::Complex, constant(0.0), constant(-0.5));
                        if is_zero(&difference) { difference } else { bin(Mul, by, difference) }
                    };
                    [part(d, d_conj), part(bar, bar_conj)]
                }
                Abs => abs_both(a, [d, bar], [d_conj, bar_conj]),
                Sign => {
                    // (da - sgn(a) d|a|) / |a|
                    let of_abs = abs_both(a, [d.clone(), bar.clone()], [d_conj, bar_conj]);
                    let size = un(Abs, (**a).clone());
                    let part = |d, of_abs| {
                        let numerator = bin(Sub, d, times(un(Sign, (**a).clone()), of_abs));
                        let zero = bin(Eq, size.clone(), constant(0.0));
                        select(zero, constant(0.0), bin(Div, numerator, size.clone()))
                    };
                    let [of_d, of_bar] = of_abs;
                    [part(d, of_d), part(bar, of_bar)]
                }
                Acosh => {
                    // sqrt(a - 1) sqrt(a + 1) has the branch of acosh, sqrt(a² - 1) has not.
                    let root = |op| un(Rsqrt, bin(op, (**a).clone(), constant(1.0)));
                    [d, bar].map(|d| times(bin(Mul, root(Sub), root(Add)), d))
                }
                op => [diff_unary(*op, a, d), diff_unary(*op, a, bar)],
            }
        }
        Expr::Binary(op, a, b) => {
            let ([da, a_bar], [db, b_bar]) = (both(a, input), both(b, input));
            [diff_binary(*op, a, b, da, db), diff_binary(*op, a, b, a_bar, b_bar)]
        }
        Expr::Select(c, a, b) => {
            let ([da, a_bar], [db, b_bar]) = (both(a, input), both(b, input));
            [select((**c).clone(), da, db), select((**c).clone(), a_bar, b_bar)]
        }
    }
}

/// Of `|a|`: half of `conj(s) da + s d(conj(a))`, where s is `a / |a|`.
fn abs_both(a: &Expr, [d, bar]: [Expr; 2], [d_conj, bar_conj]: [Expr; 2]) -> [Expr; 2] {
    let s = || un(Sign, a.clone());
    let part = |d: Expr, of_conj: Expr| times(constant(0.5), bin(Add, times(un(Conj, s()), d), times(s(), of_conj)));
    [part(d, d_conj), part(bar, bar_conj)]
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

/// `exp(-a²)`.
fn bell(a: Expr) -> Expr {
    un(Exp, un(Neg, un(Square, a)))
}

/// NaN for an argument that depends on the input: the slope of a function that has none here.
fn unknown(d: Expr) -> Expr {
    times(constant(f64::NAN), d)
}

/// A slope that has the limit 1/2 at zero.
fn half_at_zero(x: Expr, slope: Expr) -> Expr {
    select(bin(Eq, x, constant(0.0)), constant(0.5), slope)
}

/// The density of the gamma distribution: `x^(a - 1) exp(-x) / gamma(a)`.
fn gamma_density(a: Expr, x: Expr) -> Expr {
    let power = bin(Mul, bin(Sub, a.clone(), constant(1.0)), un(Log, x.clone()));
    un(Exp, bin(Sub, bin(Sub, power, x), un(Lgamma, a)))
}

macro_rules! unary_slopes {
    ($($name:ident $text:literal $doc:literal {
            $(real |$x:ident| $real:expr $(, near $near:expr)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident| $int:expr;)?
            $(complex |$z:ident| $complex:expr;)?
            $(range |$r:ident| $range:expr;)?
            $(monotony |$m:ident| $monotony:expr;)?
            slope |$sx:ident, $sy:ident, $dx:ident| $slope:expr;
        })*) => {
        fn diff_unary(op: UnaryOp, argument: &Expr, d: Expr) -> Expr {
            match op {
                $(UnaryOp::$name => {
                    let ($sx, $sy, $dx) = (|| argument.clone(), || un(op, argument.clone()), d);
                    let _ = (&$sx, &$sy, &$dx);
                    $slope
                })*
            }
        }
    };
}
unary_functions!(unary_slopes);

macro_rules! binary_slopes {
    ($($name:ident $text:literal $doc:literal {
            $(real |$a:ident, $b:ident| $real:expr $(, single $one:path)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident, $j:ident| $int:expr;)?
            $(complex |$y:ident, $z:ident| $complex:expr;)?
            slope |$sa:ident, $sb:ident, $da:ident, $db:ident| $slope:expr;
        })*) => {
        fn diff_binary(op: BinaryOp, left: &Expr, right: &Expr, d_left: Expr, d_right: Expr) -> Expr {
            match op {
                $(BinaryOp::$name => {
                    let ($sa, $sb, $da, $db) = (|| left.clone(), || right.clone(), d_left, d_right);
                    let _ = (&$sa, &$sb, &$da, &$db);
                    $slope
                })*
            }
        }
    };
}
binary_functions!(binary_slopes);

fn slope_of_pow(a: Expr, b: Expr, da: Expr, db: Expr) -> Expr {
    let (a, b) = (|| a.clone(), || b.clone());
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

/// Of the larger or the smaller of two values.
fn slope_of_choice(op: BinaryOp, a: Expr, b: Expr, da: Expr, db: Expr) -> Expr {
    let (a, b) = (|| a.clone(), || b.clone());
    // Asked this way round, NaN lets both gradients pass, as in PyTorch.
    let (a_loses, b_loses) = if op == Max { (Lt, Gt) } else { (Gt, Lt) };
    let share = |loses, d: Expr| {
        let half = times(constant(0.5), d.clone());
        select(bin(loses, a(), b()), constant(0.0), select(bin(Eq, a(), b()), half, d))
    };
    bin(Add, share(a_loses, da), share(b_loses, db))
}
