//! The text form of expressions, which [`Expr::parse`] reads.

use super::{BinaryOp, Expr, UnaryOp};
use std::fmt::{self, Write};

/// Inputs are `x0`, `x1`, …, scalars `s0`, `s1`, …; see [`Expr::named`] for other names.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f, &[], &[], 0)
    }
}

impl Expr {
    /// Returns the text with these names. Inputs and scalars beyond the slices are named as by `Display`.
    pub fn named(&self, inputs: &[&str], scalars: &[&str]) -> String {
        let mut text = String::new();
        write(self, &mut text, inputs, scalars, 0).expect("writing to a String does not fail");
        text
    }
}

const UNARY: u8 = 4;

/// Writes with parentheses where the expression binds less tightly than `min`.
fn write(e: &Expr, f: &mut impl Write, inputs: &[&str], scalars: &[&str], min: u8) -> fmt::Result {
    let mut sub = |f: &mut _, e: &Expr, min| write(e, f, inputs, scalars, min);
    match e {
        Expr::Input(i) => match inputs.get(*i) {
            Some(name) => f.write_str(name),
            None => write!(f, "x{i}"),
        },
        Expr::Scalar(i) => match scalars.get(*i) {
            Some(name) => f.write_str(name),
            None => write!(f, "s{i}"),
        },
        Expr::Output => f.write_str("out"),
        Expr::Const(c) if c.is_nan() => f.write_str("nan"),
        Expr::Const(c) => {
            let text = format!("{c:?}");
            f.write_str(text.strip_suffix(".0").unwrap_or(&text))
        }
        // A minus before a number would be read back as part of the number.
        Expr::Unary(UnaryOp::Neg, a) if !matches!(**a, Expr::Const(_)) => {
            f.write_char('-')?;
            sub(f, a, UNARY)
        }
        Expr::Unary(op, a) => {
            write!(f, "{}(", op.name())?;
            sub(f, a, 0)?;
            f.write_char(')')
        }
        Expr::Binary(op, a, b) => match op.precedence() {
            Some(level) => {
                if level < min {
                    f.write_char('(')?;
                }
                // Comparisons do not chain; the others associate to the left.
                sub(f, a, if op.is_predicate() { level + 1 } else { level })?;
                write!(f, " {} ", op.name())?;
                sub(f, b, level + 1)?;
                if level < min {
                    f.write_char(')')?;
                }
                Ok(())
            }
            None => call(f, op.name(), [a, b], &mut sub),
        },
        Expr::Select(c, a, b) => call(f, "select", [c, a, b], &mut sub),
    }
}

fn call<W: Write, const N: usize>(
    f: &mut W,
    name: &str,
    arguments: [&Expr; N],
    sub: &mut impl FnMut(&mut W, &Expr, u8) -> fmt::Result,
) -> fmt::Result {
    write!(f, "{name}(")?;
    for (i, a) in arguments.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        sub(f, a, 0)?;
    }
    f.write_char(')')
}

impl fmt::Display for BinaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UnaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
