//! The functions an expression can apply: one table with name and meaning.

use crate::vmath::Real;

macro_rules! unary_ops {
    ($($name:ident $text:literal $doc:literal |$x:ident| $eval:expr;)*) => {
        /// A function of one value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnaryOp { $(#[doc = $doc] $name,)* }

        impl UnaryOp {
            /// Every function, in declared order.
            pub const ALL: &[UnaryOp] = &[$(UnaryOp::$name),*];
            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(UnaryOp::$name => $text,)* }
            }
            /// The value in f64.
            pub fn eval(self, x: f64) -> f64 {
                match self { $(UnaryOp::$name => { let $x = x; $eval })* }
            }
        }
    };
}

unary_ops! {
    Neg "neg" "`-x`" |x| -x;
    Abs "abs" "Absolute value." |x| x.abs();
    Exp "exp" "e to the x." |x| Real::exp(x);
    Log "log" "Natural logarithm." |x| Real::log(x);
    Log1p "log1p" "`log(1 + x)`, exact near zero." |x| Real::log1p(x);
    Expm1 "expm1" "`exp(x) - 1`, exact near zero." |x| Real::expm1(x);
    Sqrt "sqrt" "Square root." |x| x.sqrt();
    Rsqrt "rsqrt" "`1 / sqrt(x)`" |x| 1.0 / x.sqrt();
    Reciprocal "reciprocal" "`1 / x`" |x| 1.0 / x;
    Square "square" "`x * x`" |x| x * x;
    Sin "sin" "Sine." |x| Real::sin(x);
    Cos "cos" "Cosine." |x| Real::cos(x);
    Tanh "tanh" "Hyperbolic tangent." |x| Real::tanh(x);
    Sigmoid "sigmoid" "`1 / (1 + exp(-x))`" |x| Real::sigmoid(x);
    Erf "erf" "The error function." |x| Real::erf(x);
    Erfc "erfc" "`1 - erf(x)`, exact for large x." |x| Real::erfc(x);
    NormalCdf "normcdf" "The normal distribution function: `0.5 * (1 + erf(x / sqrt(2)))`." |x| Real::normal_cdf(x);
    Exp2 "exp2" "2 to the x." |x| Real::exp2(x);
    Log2 "log2" "Logarithm to base 2." |x| Real::log2(x);
    Log10 "log10" "Logarithm to base 10." |x| Real::log10(x);
    Tan "tan" "Tangent." |x| Real::tan(x);
    Asin "asin" "Inverse sine." |x| Real::asin(x);
    Acos "acos" "Inverse cosine." |x| Real::acos(x);
    Atan "atan" "Inverse tangent." |x| Real::atan(x);
    Sinh "sinh" "Hyperbolic sine." |x| Real::sinh(x);
    Cosh "cosh" "Hyperbolic cosine." |x| Real::cosh(x);
    Asinh "asinh" "Inverse hyperbolic sine." |x| Real::asinh(x);
    Acosh "acosh" "Inverse hyperbolic cosine." |x| Real::acosh(x);
    Atanh "atanh" "Inverse hyperbolic tangent." |x| Real::atanh(x);
    Floor "floor" "Largest integer not above." |x| x.floor();
    Ceil "ceil" "Smallest integer not below." |x| x.ceil();
    Round "round" "Nearest integer, ties to even." |x| x.round_ties_even();
    Trunc "trunc" "The integer part." |x| x.trunc();
    Sign "sign" "-1, 0 or 1; 0 for NaN." |x| (x > 0.0) as u8 as f64 - (x < 0.0) as u8 as f64;
    Relu "relu" "`max(x, 0)`" |x| x.max_nan(0.0);
    Not "not" "1 for zero, else 0." |x| (x == 0.0) as u8 as f64;
    IsNan "isnan" "1 for NaN, else 0." |x| x.is_nan() as u8 as f64;
    IsInf "isinf" "1 for an infinity, else 0." |x| x.is_infinite() as u8 as f64;
    BitNot "bitnot" "Every bit of an integer turned." |x| !(x as i64) as f64;
    Conj "conj" "The complex conjugate; a real number itself." |x| x;
    Re "re" "The real part; a real number itself." |x| x;
    Im "im" "The imaginary part; 0 of a real number." |_x| 0.0;
}

impl UnaryOp {
    /// True where the function means nothing for integers (the operand must be converted to a float first).
    pub fn needs_float(self) -> bool {
        use UnaryOp::*;
        match self {
            Exp | Log | Log1p | Expm1 | Sqrt | Rsqrt | Reciprocal | Sin | Cos | Tanh | Sigmoid | Erf => true,
            Erfc | NormalCdf | Exp2 | Log2 | Log10 | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh => {
                true
            }
            Neg | Abs | Square | Floor | Ceil | Round | Trunc | Sign | Relu | Not | IsNan | IsInf | BitNot => false,
            Conj | Re | Im => false,
        }
    }
    /// True where the function means nothing for floats: it works on bits.
    pub fn needs_int(self) -> bool {
        self == UnaryOp::BitNot
    }
    /// False where the function means nothing for complex numbers: it orders or rounds them, or has no complex form here.
    pub fn has_complex(self) -> bool {
        use UnaryOp::*;
        !matches!(self, Erf | Erfc | NormalCdf | Floor | Ceil | Round | Trunc | Relu | BitNot)
    }
}

macro_rules! binary_ops {
    ($($name:ident $text:literal $doc:literal |$a:ident, $b:ident| $eval:expr;)*) => {
        /// A function of two values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BinaryOp { $(#[doc = $doc] $name,)* }

        impl BinaryOp {
            /// Every function, in declared order.
            pub const ALL: &[BinaryOp] = &[$(BinaryOp::$name),*];
            /// The operator or the function's name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(BinaryOp::$name => $text,)* }
            }
            /// The value in f64.
            pub fn eval(self, a: f64, b: f64) -> f64 {
                match self { $(BinaryOp::$name => { let ($a, $b) = (a, b); $eval })* }
            }
        }
    };
}

binary_ops! {
    Add "+" "Sum." |a, b| a + b;
    Sub "-" "Difference." |a, b| a - b;
    Mul "*" "Product." |a, b| a * b;
    Div "/" "Quotient; of integers, truncated towards zero." |a, b| a / b;
    Pow "pow" "`a` to the power `b`." |a, b| a.powf(b);
    Max "max" "The larger; NaN if either is." |a, b| a.max_nan(b);
    Min "min" "The smaller; NaN if either is." |a, b| a.min_nan(b);
    Eq "==" "1 where equal, else 0." |a, b| (a == b) as u8 as f64;
    Ne "!=" "1 where not equal, else 0." |a, b| (a != b) as u8 as f64;
    Lt "<" "1 where less, else 0." |a, b| (a < b) as u8 as f64;
    Le "<=" "1 where less or equal, else 0." |a, b| (a <= b) as u8 as f64;
    Gt ">" "1 where greater, else 0." |a, b| (a > b) as u8 as f64;
    Ge ">=" "1 where greater or equal, else 0." |a, b| (a >= b) as u8 as f64;
    And "and" "1 where neither is zero, else 0." |a, b| (a != 0.0 && b != 0.0) as u8 as f64;
    Or "or" "1 where one is not zero, else 0." |a, b| (a != 0.0 || b != 0.0) as u8 as f64;
    Xor "xor" "1 where exactly one is not zero, else 0." |a, b| ((a != 0.0) != (b != 0.0)) as u8 as f64;
    Fmod "fmod" "Remainder with the sign of `a` (C)." |a, b| a % b;
    Remainder "remainder" "Remainder with the sign of `b` (Python)." |a, b| remainder(a, b);
    FloorDiv "floordiv" "Quotient rounded down (Python)." |a, b| floor_div(a, b);
    Atan2 "atan2" "The angle of the point (b, a), in -pi to pi (C)." |a, b| Real::atan2(a, b);
    Hypot "hypot" "The length of the vector (a, b), also where the squares overflow." |a, b| Real::hypot(a, b);
    LogAddExp "logaddexp" "log(exp(a) + exp(b)), also where the powers overflow." |a, b| Real::logaddexp(a, b);
    Complex "complex" "a + i b." |a, b| if b == 0.0 { a } else { f64::NAN };
    BitAnd "bitand" "Integers: bits that both have." |a, b| (a as i64 & b as i64) as f64;
    BitOr "bitor" "Integers: bits that one of both has." |a, b| (a as i64 | b as i64) as f64;
    BitXor "bitxor" "Integers: bits in which both differ." |a, b| (a as i64 ^ b as i64) as f64;
    Shl "shl" "Integers: `a` shifted left by `b` bits; 0 where `b` is negative." |a, b| shl(a as i64, b as i64) as f64;
    Shr "shr" "Integers: `a` shifted right by `b` bits, with its sign; all bits where `b` is negative." |a, b| shr(a as i64, b as i64) as f64;
}

impl BinaryOp {
    /// How tightly the infix operator binds; `None` for functions.
    pub(super) fn precedence(self) -> Option<u8> {
        use BinaryOp::*;
        match self {
            Eq | Ne | Lt | Le | Gt | Ge => Some(1),
            Add | Sub => Some(2),
            Mul | Div => Some(3),
            Pow | Max | Min | And | Or | Xor | Fmod | Remainder | FloorDiv => None,
            Atan2 | Hypot | LogAddExp | Complex | BitAnd | BitOr | BitXor | Shl | Shr => None,
        }
    }
    /// True where integers have no value for `b == 0`.
    pub fn divides(self) -> bool {
        use BinaryOp::*;
        matches!(self, Div | Fmod | Remainder | FloorDiv)
    }
    /// True where the function means nothing for integers.
    pub fn needs_float(self) -> bool {
        matches!(self, BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::LogAddExp)
    }
    /// True where the function means nothing for floats: it works on bits.
    pub fn needs_int(self) -> bool {
        use BinaryOp::*;
        matches!(self, BitAnd | BitOr | BitXor | Shl | Shr)
    }
    /// True where the value is complex, whatever the operands are.
    pub fn makes_complex(self) -> bool {
        self == BinaryOp::Complex
    }
    /// False where the function means nothing for complex numbers. Comparisons of order take real parts: derivatives ask them.
    pub fn has_complex(self) -> bool {
        use BinaryOp::*;
        !self.needs_int() && !matches!(self, Max | Min | Fmod | Remainder | FloorDiv | Atan2 | Hypot | LogAddExp)
    }
    /// True for comparisons and logic, whose value is 0 or 1.
    pub fn is_predicate(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | And | Or | Xor)
    }
}

/// PyTorch's `a << b`: 0 where no bit is left or `b` is negative.
#[inline(always)]
pub(crate) fn shl(a: i64, b: i64) -> i64 {
    if (0..64).contains(&b) { a << b } else { 0 }
}

/// PyTorch's `a >> b`: the sign where no bit is left or `b` is negative.
#[inline(always)]
pub(crate) fn shr(a: i64, b: i64) -> i64 {
    a >> if (0..64).contains(&b) { b } else { 63 }
}

/// Python's `a // b`: exact where the rounded quotient `a / b` is a whole number by chance.
#[inline(always)]
pub(crate) fn floor_div<T: Real>(a: T, b: T) -> T {
    let r = a.fmod(b);
    let q = (a - r) / b;
    let q = if r != T::ZERO && ((r < T::ZERO) != (b < T::ZERO)) { q - T::ONE } else { q };
    let down = q.floor();
    let down = if q - down > T::from_f64(0.5) { down + T::ONE } else { down };
    let whole = if q != T::ZERO { down } else { T::ZERO.copysign(a / b) };
    if b == T::ZERO { a / b } else { whole }
}

/// Python's `a % b`.
#[inline(always)]
pub(crate) fn remainder<T: Real>(a: T, b: T) -> T {
    let r = a.fmod(b);
    if r != T::ZERO && ((r < T::ZERO) != (b < T::ZERO)) { r + b } else { r }
}
