//! Reading the text form: precedence climbing over characters, no separate token list.

use super::{BinaryOp, Expr, UnaryOp};
use crate::{KernelError, Result};

/// Nesting beyond this is an error, so that text from outside cannot exhaust the stack.
const MAX_DEPTH: usize = 200;

impl Expr {
    /// Reads an expression: numbers, the given names, `out` (the op's own output), `inf`, `nan`, `pi`, the operators
    /// `+ - * /` and `== != < <= > >=` with the usual precedence, and functions by name ([`UnaryOp::name`],
    /// [`BinaryOp::name`], `select`).
    ///
    /// # Errors
    /// A sentence with the byte position where the text cannot be read.
    pub fn parse(text: &str, inputs: &[&str], scalars: &[&str]) -> Result<Expr> {
        let input = |name: &str| inputs.iter().position(|n| *n == name).map(Expr::Input);
        let scalar = |name: &str| scalars.iter().position(|n| *n == name).map(Expr::Scalar);
        let find = |name: &str| input(name).or_else(|| scalar(name));
        let known = || inputs.iter().chain(scalars).copied().collect::<Vec<_>>().join(", ");
        Self::parse_names(text, &Names { find: &find, known: &known })
    }

    /// As [`Expr::parse`], with names that code knows.
    pub(super) fn parse_names(text: &str, names: &Names<'_>) -> Result<Expr> {
        let mut p = Parser { text, at: 0, names, depth: 0 };
        let e = p.infix(0)?;
        p.skip_space();
        if p.at < text.len() { Err(p.expected("an operator or the end")) } else { Ok(e) }
    }
}

/// Names that stand for inputs and numbers.
pub(super) struct Names<'a> {
    /// The input or the number that a name stands for.
    pub(super) find: &'a dyn Fn(&str) -> Option<Expr>,
    /// The names, for an error.
    pub(super) known: &'a dyn Fn() -> String,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: &'a Names<'a>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn error(&self, at: usize, what: impl std::fmt::Display) -> KernelError {
        KernelError::new(format!("at {at} of \"{}\": {what}", self.text))
    }

    fn expected(&self, what: &str) -> KernelError {
        match self.rest().chars().next() {
            Some(c) => self.error(self.at, format_args!("expected {what}, found '{c}'")),
            None => self.error(self.at, format_args!("expected {what}, found the end")),
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("'{token}'"))) }
    }

    /// The infix operator here, if it binds at least as tightly as `min`. Longest match, so `<=` is not `<`.
    fn operator(&mut self, min: u8) -> Option<(BinaryOp, u8)> {
        self.skip_space();
        let rest = self.rest();
        let (op, level) = BinaryOp::ALL
            .iter()
            .filter_map(|op| Some((*op, op.precedence()?)))
            .filter(|(op, _)| rest.starts_with(op.name()))
            .max_by_key(|(op, _)| op.name().len())?;
        if level < min {
            return None;
        }
        self.at += op.name().len();
        Some((op, level))
    }

    fn infix(&mut self, min: u8) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(self.at, format_args!("nested deeper than {MAX_DEPTH}")));
        }
        let mut left = self.prefix()?;
        let mut ceiling = u8::MAX;
        loop {
            let before = self.at;
            let Some((op, level)) = self.operator(min) else { break };
            if level > ceiling {
                self.at = before;
                return Err(self.error(before, "comparisons do not chain; use parentheses or and(a, b)"));
            }
            if op.is_predicate() {
                if ceiling == level {
                    return Err(self.error(before, "comparisons do not chain; use parentheses or and(a, b)"));
                }
                ceiling = level;
            }
            left = Expr::binary(op, left, self.infix(level + 1)?);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Expr> {
        if !self.eat("-") {
            return self.atom();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(self.at, format_args!("nested deeper than {MAX_DEPTH}")));
        }
        let operand = self.prefix()?;
        self.depth -= 1;
        Ok(match operand {
            Expr::Const(c) => Expr::Const(-c),
            e => Expr::unary(UnaryOp::Neg, e),
        })
    }

    fn atom(&mut self) -> Result<Expr> {
        if self.eat("(") {
            let e = self.infix(0)?;
            self.expect(")")?;
            return Ok(e);
        }
        self.skip_space();
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name(),
            _ => Err(self.expected("a number, a name or '('")),
        }
    }

    fn number(&mut self) -> Result<Expr> {
        let bytes = self.rest().as_bytes();
        let digits = |mut i: usize| {
            while i < bytes.len() && bytes[i].is_ascii_digit() {
                i += 1;
            }
            i
        };
        let mut end = digits(0);
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let text = &self.rest()[..end];
        let value = text.parse().map_err(|_| self.error(self.at, format_args!("'{text}' is not a number")))?;
        self.at += end;
        Ok(Expr::Const(value))
    }

    fn name(&mut self) -> Result<Expr> {
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        self.at += end;
        if self.eat("(") {
            return self.call(name, start);
        }
        if let Some(found) = (self.names.find)(name) {
            return Ok(found);
        }
        match name {
            "out" => Ok(Expr::Output),
            "inf" => Ok(Expr::Const(f64::INFINITY)),
            "nan" => Ok(Expr::Const(f64::NAN)),
            "pi" => Ok(Expr::Const(std::f64::consts::PI)),
            _ => {
                let known = (self.names.known)();
                Err(self.error(start, format_args!("unknown name '{name}'; known: {known}, out")))
            }
        }
    }

    fn call(&mut self, name: &str, start: usize) -> Result<Expr> {
        let mut arguments = vec![self.infix(0)?];
        while self.eat(",") {
            arguments.push(self.infix(0)?);
        }
        self.expect(")")?;
        let unary = UnaryOp::ALL.iter().find(|op| op.name() == name);
        let binary = BinaryOp::ALL.iter().find(|op| op.precedence().is_none() && op.name() == name);
        let want = match (unary, binary, name) {
            (Some(_), _, _) => 1,
            (_, Some(_), _) => 2,
            (_, _, "select") => 3,
            _ => return Err(self.error(start, format_args!("unknown function '{name}'"))),
        };
        if arguments.len() != want {
            let given = arguments.len();
            return Err(self.error(start, format_args!("{name} takes {want} arguments, {given} given")));
        }
        let mut next = arguments.into_iter();
        let mut next = || next.next().expect("counted above");
        Ok(match (unary, binary) {
            (Some(op), _) => Expr::unary(*op, next()),
            (_, Some(op)) => Expr::binary(*op, next(), next()),
            _ => Expr::select(next(), next(), next()),
        })
    }
}
