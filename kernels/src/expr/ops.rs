//! The functions an expression can apply, as values: made of the rows of `functions.rs`.

use super::functions::{binary_functions, unary_functions};
use super::integers;
use crate::special;
use crate::vmath::Real;

/// `true`, whatever is named: of a part that a row has.
macro_rules! has {
    ($part:ident) => {
        true
    };
    ($part:path) => {
        true
    };
}

macro_rules! unary_ops {
    ($($name:ident $text:literal $doc:literal {
            $(real |$x:ident| $real:expr $(, near $near:expr)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident| $int:expr;)?
            $(complex |$z:ident| $complex:expr;)?
            $(range |$r:ident| $range:expr;)?
            $(monotony |$m:ident| $monotony:expr;)?
            slope |$sx:ident, $sy:ident, $dx:ident| $slope:expr;
        })*) => {
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
            fn has_real(self) -> bool {
                match self { $($(UnaryOp::$name => has!($x),)? $(UnaryOp::$name => has!($wide),)?)* _ => false }
            }
            /// The function of f64 that floats are computed by, if they have no loop of their own.
            pub(crate) fn wide(self) -> Option<fn(f64) -> f64> {
                match self { $($(UnaryOp::$name => Some($wide),)?)* _ => None }
            }
            fn has_int(self) -> bool {
                match self { $($(UnaryOp::$name => has!($i),)?)* _ => false }
            }
            /// False where the function means nothing for complex numbers: it orders or rounds them, or has no complex form here.
            pub fn has_complex(self) -> bool {
                match self { $($(UnaryOp::$name => has!($z),)?)* _ => false }
            }
        }

        /// The value of a real number; of an integer where the function is one of integers only.
        fn unary_value<T: Real>(op: UnaryOp, v: T) -> T {
            #[allow(unreachable_patterns)]
            match op {
                $($(UnaryOp::$name => { let $x = v; $real })?)*
                $($(UnaryOp::$name => T::from_f64($wide(v.to_f64())),)?)*
                $($(UnaryOp::$name => { let $i = v.to_f64() as i64; T::from_f64(($int) as f64) })?)*
            }
        }
    };
}

unary_functions!(unary_ops);

impl UnaryOp {
    /// The value in f64.
    pub fn eval(self, x: f64) -> f64 {
        unary_value(self, x)
    }
    /// True where the function means nothing for integers (the operand must be converted to a float first).
    pub fn needs_float(self) -> bool {
        !self.has_int()
    }
    /// True where the function means nothing for floats: it works on bits.
    pub fn needs_int(self) -> bool {
        !self.has_real()
    }
}

macro_rules! binary_ops {
    ($($name:ident $text:literal $doc:literal {
            $(real |$a:ident, $b:ident| $real:expr $(, single $one:path)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident, $j:ident| $int:expr;)?
            $(complex |$y:ident, $z:ident| $complex:expr;)?
            slope |$sa:ident, $sb:ident, $da:ident, $db:ident| $slope:expr;
        })*) => {
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
            fn has_real(self) -> bool {
                match self { $($(BinaryOp::$name => has!($a),)? $(BinaryOp::$name => has!($wide),)?)* _ => false }
            }
            /// The function of f64 that floats are computed by, if they have no loop of their own.
            pub(crate) fn wide(self) -> Option<fn(f64, f64) -> f64> {
                match self { $($(BinaryOp::$name => Some($wide),)?)* _ => None }
            }
            fn has_int(self) -> bool {
                match self { $($(BinaryOp::$name => has!($i),)?)* _ => false }
            }
            /// False where the function means nothing for complex numbers. Comparisons of order take real parts: derivatives ask them.
            pub fn has_complex(self) -> bool {
                match self { $($(BinaryOp::$name => has!($z),)?)* _ => false }
            }
        }

        /// The value of real numbers; of integers where the function is one of integers only.
        fn binary_value<T: Real>(op: BinaryOp, v: T, w: T) -> T {
            #[allow(unreachable_patterns)]
            match op {
                $($(BinaryOp::$name => { let ($a, $b) = (v, w); $real })?)*
                $($(BinaryOp::$name => T::from_f64($wide(v.to_f64(), w.to_f64())),)?)*
                $($(BinaryOp::$name => {
                    let ($i, $j) = (v.to_f64() as i64, w.to_f64() as i64);
                    T::from_f64(($int) as f64)
                })?)*
                // A complex number; a real one where the imaginary part is 0.
                BinaryOp::Complex => if w == T::ZERO { v } else { T::NAN },
            }
        }
    };
}

binary_functions!(binary_ops);

impl BinaryOp {
    /// The value in f64.
    pub fn eval(self, a: f64, b: f64) -> f64 {
        binary_value(self, a, b)
    }
    /// How tightly the infix operator binds; `None` for functions.
    pub(super) fn precedence(self) -> Option<u8> {
        use BinaryOp::*;
        match self {
            Eq | Ne | Lt | Le | Gt | Ge => Some(1),
            Add | Sub => Some(2),
            Mul | Div => Some(3),
            _ => None,
        }
    }
    /// True where integers have no value for `b == 0`.
    pub fn divides(self) -> bool {
        use BinaryOp::*;
        matches!(self, Div | Fmod | Remainder | FloorDiv)
    }
    /// True where the function means nothing for integers.
    pub fn needs_float(self) -> bool {
        self.has_real() && !self.has_int()
    }
    /// True where the function means nothing for floats: it works on bits.
    pub fn needs_int(self) -> bool {
        self.has_int() && !self.has_real()
    }
    /// True where the value is complex, whatever the operands are.
    pub fn makes_complex(self) -> bool {
        self == BinaryOp::Complex
    }
    /// True for comparisons and logic, whose value is 0 or 1.
    pub fn is_predicate(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | And | Or | Xor)
    }
}

/// 1 for true, 0 for false.
#[inline(always)]
pub(crate) fn truth<T: Real>(x: bool) -> T {
    if x { T::ONE } else { T::ZERO }
}

/// Python's `a // b`: exact where the rounded quotient `a / b` is a whole number by chance.
#[inline(always)]
pub(crate) fn floor_div<T: Real>(a: T, b: T) -> T {
    floor_div_of(a, b, a.fmod(b))
}

/// The same, of a remainder `r` with the sign of `a`.
#[inline(always)]
pub(crate) fn floor_div_of<T: Real>(a: T, b: T, r: T) -> T {
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
    remainder_of(b, a.fmod(b))
}

/// The same, of a remainder `r` with the sign of `a`.
#[inline(always)]
pub(crate) fn remainder_of<T: Real>(b: T, r: T) -> T {
    if r != T::ZERO && ((r < T::ZERO) != (b < T::ZERO)) { r + b } else { r }
}
