//! Numbers that a call gives to an expression: what they mean in its arithmetic.

use super::{BinaryOp, Chain, Class, Expr};
use crate::{Builtin, Scalar};

/// How a number given by the user enters the arithmetic, so that it means what an element of the compute dtype means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// As it is, rounded to the arithmetic's type.
    Arithmetic,
    /// As an element of that dtype: integers wrap; what a half is compared with is rounded to a half.
    Element(Builtin),
    /// A bound: beyond the dtype's integers it is the nearest of them.
    Bound(Builtin),
}

/// How each number of an expression enters its arithmetic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(Vec<Entry>);

impl Entries {
    /// For a chain that computes in `compute`.
    pub(crate) fn of(chain: &Chain, compute: Builtin) -> Entries {
        let count = chain.scalars_used().last().map_or(0, |i| i + 1);
        let entry = |i: usize| {
            let meets = |f: &dyn Fn(BinaryOp) -> bool| {
                let this = |e: &Expr| *e == Expr::Scalar(i);
                let met = |e: &Expr| matches!(e, Expr::Binary(op, a, b) if f(*op) && (this(a) || this(b)));
                chain.links().iter().any(|l| l.expr.any(&met))
            };
            if compute.is_half() {
                let steps = |op: BinaryOp| op.is_predicate() || matches!(op, BinaryOp::Fmod | BinaryOp::Remainder);
                if meets(&steps) { Entry::Element(compute) } else { Entry::Arithmetic }
            } else if compute.is_float() || compute.is_complex() {
                Entry::Arithmetic
            } else if meets(&|op| matches!(op, BinaryOp::Max | BinaryOp::Min)) {
                Entry::Bound(compute)
            } else {
                Entry::Element(compute)
            }
        };
        Entries((0..count).map(entry).collect())
    }

    /// How many numbers the expression takes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Number `i` as it enters the arithmetic.
    pub(crate) fn enter(&self, i: usize, s: Scalar) -> Scalar {
        match self.0[i] {
            Entry::Arithmetic => s,
            Entry::Element(d) => s.in_dtype(d),
            Entry::Bound(d) => s.saturated(d.dtype()),
        }
    }
}

impl Expr {
    /// The expression with numbers in the place of its scalars, as they enter the arithmetic of `compute`; `None` where a constant does not
    /// say one of them: NaN, complex numbers, large integers.
    pub fn with_numbers(&self, compute: Builtin, numbers: &[Scalar]) -> Option<Expr> {
        let (class, entries) = (Class::of(compute), Entries::of(&Chain::of(self.clone(), 0), compute));
        let constant = |i: usize| {
            let s = entries.enter(i, *numbers.get(i)?);
            let value = match class {
                Class::F32 => f64::from(s.to_f64() as f32),
                Class::F64 => s.to_f64(),
                Class::I64 => Some(s.to_i64()).filter(|i| i.unsigned_abs() < 1 << 53)? as f64,
                Class::C64 | Class::C128 => return None,
            };
            (!value.is_nan() && !matches!(s, Scalar::Complex(..))).then_some(Expr::Const(value))
        };
        let numbers: Vec<Expr> = (0..entries.len()).map(constant).collect::<Option<_>>()?;
        Some(self.substitute(&[], &numbers, None))
    }
}
