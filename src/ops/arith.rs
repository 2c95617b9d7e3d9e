//! Arithmetic in declarations: defaults of attributes (`scale: float = 1 / 8`) and sizes of outputs (`(n + 2 * pad - k) // stride + 1`).
//!
//! `+ - * / // %`, parentheses, `min(a, b)` and `max(a, b)`, over numbers and names. Integers stay integers, and what an `i64` cannot
//! hold is an error: nothing wraps. `/` of two integers is an integer where it is exact and a float elsewhere; `//` and `%` round
//! down, as Python's do.

use crate::error::{Error, Result};
use oflow_kernels::Scalar;

/// Deeper nesting and longer texts are refused: they may come from a file.
const DEEPEST: usize = 64;
const LONGEST: usize = 1024;

/// An expression over numbers and names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arith {
    Number(Scalar),
    Name(String),
    Two(Box<Arith>, Op, Box<Arith>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Min,
    Max,
}

impl Arith {
    /// Reads an expression.
    ///
    /// # Errors
    /// The text is none; the message quotes it.
    pub(super) fn parse(text: &str) -> Result<Arith> {
        if text.len() > LONGEST {
            return Err(Error::parse(format!("arithmetic of {} bytes: at most {LONGEST} are read", text.len())));
        }
        let mut reader = Reader { rest: text.trim_start(), depth: 0 };
        let found = reader.sum().and_then(|e| match reader.rest {
            "" => Ok(e),
            rest => Err(format!("'{rest}' is too much")),
        });
        found.map_err(|why| {
            Error::parse(format!("'{}' is not arithmetic: {why}", text.trim()))
                .help("write + - * / // %, parentheses, min(a, b) and max(a, b) over numbers and names")
        })
    }

    /// The value, where `name` knows the numbers that names stand for.
    ///
    /// # Errors
    /// Those of `name`; a division by zero; an integer beyond 64 bits.
    pub(super) fn value(&self, name: &impl Fn(&str) -> Result<Scalar>) -> Result<Scalar> {
        match self {
            Arith::Number(n) => Ok(*n),
            Arith::Name(n) => name(n),
            Arith::Two(a, op, b) => op.apply(a.value(name)?, b.value(name)?),
        }
    }

    /// The value of an expression without names.
    ///
    /// # Errors
    /// As [`Arith::value`]; also if there is a name in it.
    pub(super) fn constant(&self) -> Result<Scalar> {
        self.value(&|n| Err(Error::parse(format!("'{n}' is not a number"))))
    }

    /// Calls `f` with each name in it.
    pub(super) fn names(&self, f: &mut impl FnMut(&str)) {
        match self {
            Arith::Number(_) => {}
            Arith::Name(n) => f(n),
            Arith::Two(a, _, b) => {
                a.names(f);
                b.names(f);
            }
        }
    }
}

impl Op {
    fn apply(self, a: Scalar, b: Scalar) -> Result<Scalar> {
        let zero = || Error::argument(format!("{} {} 0 has no value", text(a), self.word()));
        if let (Scalar::Int(x), Scalar::Int(y)) = (a, b) {
            let whole = match self {
                Op::Add => x.checked_add(y),
                Op::Sub => x.checked_sub(y),
                Op::Mul => x.checked_mul(y),
                Op::Min => Some(x.min(y)),
                Op::Max => Some(x.max(y)),
                Op::Div | Op::FloorDiv | Op::Mod if y == 0 => return Err(zero()),
                Op::Div if x.checked_rem(y) == Some(0) => x.checked_div(y),
                Op::Div => return Ok(Scalar::Float(x as f64 / y as f64)),
                // Rounded down whatever the signs are.
                Op::FloorDiv => x.checked_div(y).map(|q| if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q }),
                Op::Mod => x.checked_rem(y).map(|r| if r != 0 && (r < 0) != (y < 0) { r + y } else { r }),
            };
            let beyond = || Error::argument(format!("{x} {} {y} is beyond 64 bits", self.word()));
            return whole.map(Scalar::Int).ok_or_else(beyond);
        }
        let (x, y) = (a.to_f64(), b.to_f64());
        Ok(Scalar::Float(match self {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x * y,
            Op::Min => x.min(y),
            Op::Max => x.max(y),
            Op::Div | Op::FloorDiv | Op::Mod if y == 0.0 => return Err(zero()),
            Op::Div => x / y,
            Op::FloorDiv => (x / y).floor(),
            Op::Mod => x - y * (x / y).floor(),
        }))
    }

    fn word(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::FloorDiv => "//",
            Op::Mod => "%",
            Op::Min => "min",
            Op::Max => "max",
        }
    }
}

fn text(s: Scalar) -> String {
    match s {
        Scalar::Bool(b) => b.to_string(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Float(x) => x.to_string(),
        s @ Scalar::Complex(..) => s.to_string(),
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn chars(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn sum(&mut self) -> Result<Arith, String> {
        let mut left = self.product()?;
        loop {
            let op = match () {
                () if self.take("+") => Op::Add,
                () if self.take("-") => Op::Sub,
                () => return Ok(left),
            };
            left = Arith::Two(left.into(), op, self.product()?.into());
        }
    }

    fn product(&mut self) -> Result<Arith, String> {
        let mut left = self.factor()?;
        loop {
            let op = match () {
                () if self.take("*") => Op::Mul,
                () if self.take("//") => Op::FloorDiv,
                () if self.take("/") => Op::Div,
                () if self.take("%") => Op::Mod,
                () => return Ok(left),
            };
            left = Arith::Two(left.into(), op, self.factor()?.into());
        }
    }

    fn factor(&mut self) -> Result<Arith, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} deep"));
        }
        let found = self.atom();
        self.depth -= 1;
        found
    }

    fn atom(&mut self) -> Result<Arith, String> {
        match self.rest.chars().next() {
            Some('-') => {
                self.take("-");
                // The least integer has no positive one to negate.
                if let Some(n) = self.digits("-") {
                    return n;
                }
                Ok(Arith::Two(Arith::Number(Scalar::Int(0)).into(), Op::Sub, self.factor()?.into()))
            }
            Some('+') => {
                self.take("+");
                self.factor()
            }
            Some('(') => {
                self.take("(");
                let inner = self.sum()?;
                if self.take(")") { Ok(inner) } else { Err("a parenthesis is not closed".into()) }
            }
            Some(c) if c.is_alphabetic() || c == '_' => {
                let name = self.chars(|c| c.is_alphanumeric() || c == '_');
                match (name, self.rest.starts_with('(')) {
                    ("min", true) => self.pair(Op::Min),
                    ("max", true) => self.pair(Op::Max),
                    (_, true) => Err(format!("unknown function '{name}'")),
                    (_, false) => Ok(Arith::Name(name.to_string())),
                }
            }
            Some(_) => {
                self.digits("").unwrap_or_else(|| Err(format!("a number or a name is missing at '{}'", self.rest)))
            }
            None => Err("a number or a name is missing at the end".into()),
        }
    }

    fn pair(&mut self, op: Op) -> Result<Arith, String> {
        self.take("(");
        let a = self.sum()?;
        if !self.take(",") {
            return Err(format!("{} takes two numbers", op.word()));
        }
        let b = self.sum()?;
        if self.take(")") { Ok(Arith::Two(a.into(), op, b.into())) } else { Err("a parenthesis is not closed".into()) }
    }

    /// A number; none where no digit stands next.
    fn digits(&mut self, sign: &str) -> Option<Result<Arith, String>> {
        if !self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        // An exponent has a sign of its own.
        let mut last = ' ';
        let end = self.rest.find(|c: char| {
            let belongs =
                c.is_ascii_alphanumeric() || c == '.' || c == '_' || ("+-".contains(c) && "eE".contains(last));
            last = c;
            !belongs
        });
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        let word = format!("{sign}{word}");
        let number = word.parse().map(Scalar::Int).or_else(|_| match word.parse::<f64>() {
            // An integer of too many digits would lose some.
            Ok(x) if word.contains(['.', 'e', 'E']) => Ok(Scalar::Float(x)),
            _ => Err(format!("'{word}' is not a number")),
        });
        Some(number.map(Arith::Number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let value = |text: &str| Arith::parse(text).and_then(|a| a.constant());
        for (text, want) in [
            ("1 + 2 * 3", Scalar::Int(7)),
            ("(1 + 2) * 3", Scalar::Int(9)),
            ("-7 // 2", Scalar::Int(-4)),
            ("7 // -2", Scalar::Int(-4)),
            ("-7 % 2", Scalar::Int(1)),
            ("7 % -2", Scalar::Int(-1)),
            ("8 / 2", Scalar::Int(4)),
            ("1 / 8", Scalar::Float(0.125)),
            ("1e-5", Scalar::Float(1e-5)),
            ("2 - -3", Scalar::Int(5)),
            ("-9223372036854775808", Scalar::Int(i64::MIN)),
            ("min(3, 2) + max(1.5, 1)", Scalar::Float(3.5)),
            ("10 - 4 - 3", Scalar::Int(3)),
        ] {
            assert_eq!(value(text).unwrap(), want, "{text}");
        }
        for bad in [
            "",
            "1 +",
            "(1",
            "1)",
            "1 / 0",
            "1 % 0",
            "1.0 / 0",
            "9223372036854775807 + 1",
            "-9223372036854775808 // -1",
            "9223372036854775808",
            "sin(1)",
            "min(1)",
            "a",
            "1 2",
            "1__x",
            "$",
            "--",
        ] {
            assert!(value(bad).is_err(), "{bad}");
        }
        assert!(value(&"(".repeat(1000)).unwrap_err().message().contains("nested"));
        assert!(value(&"-".repeat(1000)).unwrap_err().message().contains("nested"));
        assert!(value(&"1+".repeat(100_000)).unwrap_err().message().contains("bytes"));
    }

    #[test]
    fn names_stand_for_numbers() {
        let size = Arith::parse("(n + 2 * pad - k) // stride + 1").unwrap();
        let known = |name: &str| {
            let all = [("n", 9), ("pad", 1), ("k", 3), ("stride", 2)];
            let found = all.iter().find(|(n, _)| *n == name).map(|(_, v)| Scalar::Int(*v));
            found.ok_or_else(|| Error::argument(name.to_string()))
        };
        assert_eq!(size.value(&known).unwrap(), Scalar::Int(5));
        let mut names = vec![];
        size.names(&mut |n| names.push(n.to_string()));
        assert_eq!(names, ["n", "pad", "k", "stride"]);
    }
}
