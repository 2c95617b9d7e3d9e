//! Scalar expressions: what an elementwise op computes for one element, as plain data.
//!
//! From one [`Expr`] come the CPU kernel ([`crate::cpu::elementwise`]), the CUDA source ([`Expr::cuda_source`]), the
//! gradient ([`Expr::derivative`]), fusion ([`Chain`]) and the proof which partial values may pass through
//! ([`Expr::linear_in`], [`Expr::monotony`], [`Expr::partial_passes`]). Nothing here computes on tensors.
//!
//! ```
//! use oflow_kernels::expr::Expr;
//! let leaky = Expr::parse("select(x >= 0, x, alpha * x)", &["x"], &["alpha"]).unwrap();
//! assert_eq!(leaky.eval(&[-2.0], f64::NAN, &[0.5]), -1.0);
//! assert_eq!(leaky.derivative(0).named(&["x"], &["alpha"]), "select(x >= 0, 1, alpha)");
//! ```

mod analysis;
mod chain;
pub(crate) mod cuda;
mod derivative;
mod display;
mod functions;
pub(crate) mod integers;
mod numbers;
mod ops;
mod parse;
mod simplify;

pub use analysis::Monotony;
pub use chain::{Chain, Link};
pub use derivative::Wirtinger;
pub(crate) use functions::{binary_functions, unary_functions};
pub(crate) use numbers::Entries;
pub use ops::{BinaryOp, UnaryOp};
pub(crate) use ops::{floor_div, floor_div_of, remainder, remainder_of, truth};

use crate::{Builtin, DType, DTypeKind, Result};

/// An expression over the elements of an op's inputs at one index.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// The element of input number `.0`.
    Input(usize),
    /// The element of the op's own output; appears in derivatives.
    Output,
    /// Runtime scalar number `.0` (a learning rate, the number in `x + 3`).
    Scalar(usize),
    /// A constant number.
    Const(f64),
    /// A function of one value.
    Unary(UnaryOp, Box<Expr>),
    /// A function of two values.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// The second where the first is not zero, else the third.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// The arithmetic an elementwise kernel computes in: that of its compute dtype, to which operands are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Single precision, for f32 and the halves.
    F32,
    /// Computed in double precision.
    F64,
    /// 64-bit integers, wrapping: for integers and bool.
    I64,
    /// Complex numbers of two f32.
    C64,
    /// Complex numbers of two f64.
    C128,
}

impl Class {
    /// The arithmetic of an op that computes in this dtype.
    pub fn of(compute: Builtin) -> Class {
        match (compute.kind(), compute.part()) {
            (_, Some(Builtin::F64)) => Class::C128,
            (_, Some(_)) => Class::C64,
            (DTypeKind::Bool | DTypeKind::Int, _) => Class::I64,
            _ if compute == Builtin::F64 => Class::F64,
            _ => Class::F32,
        }
    }

    /// The dtype whose elements the arithmetic computes with.
    pub fn dtype(self) -> Builtin {
        match self {
            Class::F32 => Builtin::F32,
            Class::F64 => Builtin::F64,
            Class::I64 => Builtin::I64,
            Class::C64 => Builtin::C64,
            Class::C128 => Builtin::C128,
        }
    }

    /// Whether it computes with complex numbers.
    pub fn is_complex(self) -> bool {
        matches!(self, Class::C64 | Class::C128)
    }
}

/// The dtype to which these inputs and this output promote: what an expression computes in where nothing else is said. Of dtypes
/// that do not promote it is one that has the numbers of both: i64 for u16 or u32 with another integer, f32 for an 8-bit float.
///
/// # Errors
/// Where one of several is a registered dtype.
pub fn common_dtype(inputs: &[DType], out: DType) -> Result<DType> {
    let wide = |d: DType| match d {
        d if d.is_small_float() => DType::F32,
        d if d.kind() == DTypeKind::Int => DType::I64,
        d => d,
    };
    inputs.iter().try_fold(out, |d, i| match (d, *i) {
        // A bool is a number of every integer dtype.
        (DType::Bool, i) if i.kind() == DTypeKind::Int => Ok(i),
        (d, DType::Bool) if d.kind() == DTypeKind::Int => Ok(d),
        (d, i) => d.promote(i).or_else(|_| wide(d).promote(wide(i))),
    })
}

impl Expr {
    /// The expression `op(a)`.
    pub fn unary(op: UnaryOp, a: Expr) -> Expr {
        Expr::Unary(op, Box::new(a))
    }
    /// `op(a, b)`.
    pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }
    /// `select(c, a, b)`.
    pub fn select(c: Expr, a: Expr, b: Expr) -> Expr {
        Expr::Select(Box::new(c), Box::new(a), Box::new(b))
    }

    /// The direct subexpressions.
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let (a, b, c) = match self {
            Expr::Input(_) | Expr::Output | Expr::Scalar(_) | Expr::Const(_) => (None, None, None),
            Expr::Unary(_, a) => (Some(a), None, None),
            Expr::Binary(_, a, b) => (Some(a), Some(b), None),
            Expr::Select(a, b, c) => (Some(a), Some(b), Some(c)),
        };
        [a, b, c].into_iter().flatten().map(|e| &**e)
    }

    /// Rebuilds the expression from the leaves up: `f` is given each node with its children already rebuilt.
    pub(crate) fn rebuild(&self, f: &mut impl FnMut(Expr) -> Expr) -> Expr {
        let node = match self {
            Expr::Unary(op, a) => Expr::unary(*op, a.rebuild(f)),
            Expr::Binary(op, a, b) => Expr::binary(*op, a.rebuild(f), b.rebuild(f)),
            Expr::Select(c, a, b) => Expr::select(c.rebuild(f), a.rebuild(f), b.rebuild(f)),
            leaf => leaf.clone(),
        };
        f(node)
    }

    /// True when some node satisfies `f`.
    pub fn any(&self, f: &impl Fn(&Expr) -> bool) -> bool {
        f(self) || self.children().any(|c| c.any(f))
    }

    /// True when input `i` appears.
    pub fn uses_input(&self, i: usize) -> bool {
        self.any(&|e| *e == Expr::Input(i))
    }
    /// True when complex numbers may be made of real ones.
    pub fn makes_complex(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Binary(op, ..) if op.makes_complex()))
    }
    /// Returns whether this is a function of integers that has no value where its second operand, `divisor`, is 0: a kernel
    /// then reports the 0. `guarded` says that the result is one arm of a selection: there the author of the expression may
    /// have excluded the 0, and the kernels, which compute both arms, give 0.
    pub(crate) fn checks_divisor(class: Class, op: BinaryOp, divisor: &Expr, guarded: bool) -> bool {
        class == Class::I64 && !guarded && op.divides() && !matches!(divisor, Expr::Const(c) if *c != 0.0)
    }
    /// True when the op's own output appears.
    pub fn uses_output(&self) -> bool {
        self.any(&|e| *e == Expr::Output)
    }
    /// The runtime scalars that appear, ascending, each once.
    pub fn scalars_used(&self) -> Vec<usize> {
        fn collect(e: &Expr, found: &mut Vec<usize>) {
            if let Expr::Scalar(i) = e {
                found.push(*i);
            }
            e.children().for_each(|c| collect(c, found));
        }
        let mut found = Vec::new();
        collect(self, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// True when every value is 0 or 1.
    pub fn is_truth(&self) -> bool {
        match self {
            Expr::Unary(op, _) => matches!(op, UnaryOp::Not | UnaryOp::IsNan | UnaryOp::IsInf),
            Expr::Binary(op, ..) => op.is_predicate(),
            Expr::Select(_, a, b) => a.is_truth() && b.is_truth(),
            Expr::Const(c) => *c == 0.0 || *c == 1.0,
            Expr::Input(_) | Expr::Output | Expr::Scalar(_) => false,
        }
    }

    /// True when it has the same value of truth values in every arithmetic.
    pub fn is_logic(&self) -> bool {
        let logic = |e: &Expr| match e {
            Expr::Input(_) | Expr::Select(..) => true,
            Expr::Unary(op, _) => *op == UnaryOp::Not,
            Expr::Binary(op, ..) => op.is_predicate(),
            Expr::Const(c) => *c == 0.0 || *c == 1.0,
            Expr::Output | Expr::Scalar(_) => false,
        };
        !self.any(&|e| !logic(e))
    }

    /// The value, computed in f64: the meaning that every kernel made from the expression must agree with.
    /// Inputs and scalars beyond the slices are NaN.
    pub fn eval(&self, inputs: &[f64], output: f64, scalars: &[f64]) -> f64 {
        let go = |e: &Expr| e.eval(inputs, output, scalars);
        match self {
            Expr::Input(i) => inputs.get(*i).copied().unwrap_or(f64::NAN),
            Expr::Output => output,
            Expr::Scalar(i) => scalars.get(*i).copied().unwrap_or(f64::NAN),
            Expr::Const(c) => *c,
            Expr::Unary(op, a) => op.eval(go(a)),
            Expr::Binary(op, a, b) => op.eval(go(a), go(b)),
            Expr::Select(c, a, b) => {
                if go(c) != 0.0 {
                    go(a)
                } else {
                    go(b)
                }
            }
        }
    }

    /// Puts expressions in the place of inputs, scalars and the output: composes two ops into one, or renumbers.
    /// Inputs and scalars beyond the slices, and the output where `output` is `None`, stay as they are.
    ///
    /// ```
    /// use oflow_kernels::expr::Expr;
    /// let double = Expr::parse("x + x", &["x"], &[]).unwrap();
    /// let product = Expr::parse("x * y", &["x", "y"], &[]).unwrap();
    /// assert_eq!(double.substitute(&[product], &[], None).to_string(), "x0 * x1 + x0 * x1");
    /// ```
    pub fn substitute(&self, inputs: &[Expr], scalars: &[Expr], output: Option<&Expr>) -> Expr {
        self.rebuild(&mut |e| match e {
            Expr::Input(i) if i < inputs.len() => inputs[i].clone(),
            Expr::Scalar(i) if i < scalars.len() => scalars[i].clone(),
            Expr::Output => output.cloned().unwrap_or(e),
            _ => e,
        })
    }
}
