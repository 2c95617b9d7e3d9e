//! When a kernel applies, as text: `y: f32|f64 and not exact and (mode in (up, down) or k <= 8)`.
//!
//! ```text
//! x: f32|f64          the element type of an input or output
//! x.size >= 1024      the number of elements of an input (of the shard)
//! exact               a bool attribute is true
//! k <= 8, k == 3      an integer attribute: == != < <= > >=
//! k in (1, 3)
//! mode == up          a text attribute: == != in; quotes where the text is no word
//! not, and, or, ( )   `not` binds closest, then `and`
//! ```

use super::attr::AttrKind;
use super::def::OpDef;
use super::kernel::KernelPred;
use crate::error::{Error, Result};
use oflow_kernels::DType;

/// Deeper nesting and longer texts are refused: they may come from a file.
const DEEPEST: usize = 64;
const LONGEST: usize = 4096;

impl KernelPred {
    /// Reads a condition over the inputs, outputs and plan attributes of an op.
    ///
    /// ```
    /// use oflow::ops::{KernelPred, OpDef};
    /// let op = OpDef::new("blur(x: float; k: int = 3, mode: str = \"up\") -> y")?;
    /// let pred = KernelPred::parse("x: f32|f64 and not (k > 8 or mode == down)", &op)?;
    /// let e = KernelPred::parse("size <= 8", &op).unwrap_err().to_string();
    /// assert!(e.contains("'size' is neither an input, an output nor an attribute of blur"), "{e}");
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text is no condition; the message quotes it and says what is wrong.
    pub fn parse(text: &str, op: &OpDef) -> Result<KernelPred> {
        let bad = |why: String| {
            Error::parse(format!("'{}' is not a condition of a kernel: {why}", text.trim())).help(
                "write `x: f32|f64` (an input or output), `flag`, `k <= 8`, `k in (1, 3)`, `mode == up`, `x.size >= 1024`, joined by and, \
                 or, not and parentheses",
            )
        };
        if text.len() > LONGEST {
            return Err(Error::parse(format!("a condition of {} bytes: at most {LONGEST} are read", text.len())));
        }
        let mut reader = Reader { words: words(text).map_err(bad)?, at: 0, depth: 0, op };
        let found = reader.any_of().map_err(bad)?;
        match reader.peek() {
            None => Ok(found),
            Some(more) => Err(bad(format!("'{more}' is too much"))),
        }
    }
}

/// Result of reading a condition; the error is the text for the message.
type Read<T> = std::result::Result<T, String>;

/// Words, numbers, quoted texts (with their quotes) and signs.
fn words(text: &str) -> Read<Vec<&str>> {
    let mut found = vec![];
    let mut rest = text.trim_start();
    let is_word = |c: char| c.is_alphanumeric() || "_.-".contains(c);
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => rest[1..].find('"').ok_or("a text has no end")? + 2,
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if ["==", "!=", "<=", ">="].iter().any(|s| rest.starts_with(s)) => 2,
            c if "<>:|(),".contains(c) => 1,
            c => return Err(format!("'{c}' has no meaning here")),
        };
        found.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    Ok(found)
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    depth: usize,
    op: &'a OpDef,
}

/// Predicate that holds where all of `preds` do.
fn all(mut preds: Vec<KernelPred>) -> KernelPred {
    if preds.len() == 1 { preds.remove(0) } else { KernelPred::All(preds) }
}

fn any(mut preds: Vec<KernelPred>) -> KernelPred {
    if preds.len() == 1 { preds.remove(0) } else { KernelPred::AnyOf(preds) }
}

fn not(pred: KernelPred) -> KernelPred {
    KernelPred::Not(Box::new(pred))
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(word);
        self.at += usize::from(there);
        there
    }

    fn next(&mut self, wanted: &str) -> Read<&'a str> {
        let found = self.peek().ok_or_else(|| format!("{wanted} is missing at its end"))?;
        self.at += 1;
        Ok(found)
    }

    fn any_of(&mut self) -> Read<KernelPred> {
        let mut preds = vec![self.all_of()?];
        while self.take("or") {
            preds.push(self.all_of()?);
        }
        Ok(any(preds))
    }

    fn all_of(&mut self) -> Read<KernelPred> {
        let mut preds = vec![self.one()?];
        while self.take("and") {
            preds.push(self.one()?);
        }
        Ok(all(preds))
    }

    fn one(&mut self) -> Read<KernelPred> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST}"));
        }
        let found = if self.take("not") {
            self.one().map(not)
        } else if self.take("(") {
            let inner = self.any_of()?;
            match self.take(")") {
                true => Ok(inner),
                false => Err("a ')' is missing".into()),
            }
        } else {
            self.statement()
        };
        self.depth -= 1;
        found
    }

    fn statement(&mut self) -> Read<KernelPred> {
        let (op, name) = (self.op, self.next("a name")?);
        if let Some(input) = name.strip_suffix(".size") {
            let input = self.input(input)?.ok_or_else(|| format!("{} has no input '{input}'", op.sig.name))?;
            return self.compared(name, &|least, most| match (least, most) {
                (None, None) => KernelPred::Any,
                (Some(n), None) => at_least(input, n),
                (None, Some(n)) => not(at_least(input, n.saturating_add(1))),
                (Some(a), Some(b)) => all(vec![at_least(input, a), not(at_least(input, b.saturating_add(1)))]),
            });
        }
        if self.take(":") {
            return self.dtypes(name);
        }
        let Some(attr) = op.sig.attr(name).map(|i| &op.sig.attrs[i]) else {
            return Err(if op.sig.runtime_attr(name).is_some() {
                format!("'{name}' is a runtime attribute, and a kernel is chosen when a call is planned")
            } else if op.sig.input(name).is_some() || op.sig.outputs.iter().any(|o| o == name) {
                format!("'{name}' is a tensor: say its element type, as in `{name}: f32`")
            } else {
                format!("'{name}' is neither an input, an output nor an attribute of {}", op.sig.name)
            });
        };
        match attr.kind {
            AttrKind::Bool => Ok(KernelPred::AttrIs(name.into(), true)),
            AttrKind::Int => self.compared(name, &|least, most| {
                KernelPred::IntIn(name.into(), least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX))
            }),
            AttrKind::Str => {
                let sign = self.next("==, != or in")?;
                let texts = self.values(sign, &|word| Ok(word.trim_matches('"').to_string()))?;
                let found = KernelPred::StrIn(name.into(), texts);
                Ok(if sign == "!=" { not(found) } else { found })
            }
            kind => Err(format!(
                "'{name}' is an attribute of type {}; conditions are of bools, integers and texts",
                kind.name()
            )),
        }
    }

    /// The place of an input that stands for one tensor; none if there is no such input.
    fn input(&self, name: &str) -> Read<Option<usize>> {
        let at = self.op.sig.input(name);
        match at {
            Some(i) if self.op.sig.inputs[i].variadic => Err(format!("the input '{name}' stands for several tensors")),
            at => Ok(at),
        }
    }

    fn dtypes(&mut self, name: &str) -> Read<KernelPred> {
        let (op, input) = (self.op, self.input(name)?);
        let output = op.sig.outputs.iter().position(|o| o == name);
        let mut preds = vec![];
        loop {
            let word = self.next("an element type")?;
            let dtype: DType = word.parse().map_err(|_| format!("'{word}' is not an element type"))?;
            preds.push(match (input, output) {
                (Some(i), _) => KernelPred::InputDType(i, dtype),
                (None, Some(_)) if op.sig.outputs_vary() => {
                    return Err(format!("the outputs of {} depend on the call: say it of an input", op.sig.name));
                }
                (None, Some(o)) => KernelPred::OutputDType(o, dtype),
                (None, None) => return Err(format!("'{name}' is neither an input nor an output of {}", op.sig.name)),
            });
            if !self.take("|") {
                return Ok(any(preds));
            }
        }
    }

    /// Reads the values behind `==`, `!=` and `in`.
    fn values<T>(&mut self, sign: &str, read: &dyn Fn(&str) -> Read<T>) -> Read<Vec<T>> {
        match sign {
            "==" | "!=" => Ok(vec![read(self.next("a value")?)?]),
            "in" if self.take("(") => {
                let mut found = vec![read(self.next("a value")?)?];
                while self.take(",") {
                    found.push(read(self.next("a value")?)?);
                }
                match self.take(")") {
                    true => Ok(found),
                    false => Err("a ')' is missing".into()),
                }
            }
            "in" => Err("behind 'in' stands a list: (a, b)".into()),
            other => Err(format!("'{other}' compares no texts")),
        }
    }

    /// A comparison of an integer; `range` makes the predicate that it lies between two numbers, both included.
    fn compared(&mut self, name: &str, range: &dyn Fn(Option<i64>, Option<i64>) -> KernelPred) -> Read<KernelPred> {
        let number = |word: &str| word.parse::<i64>().map_err(|_| format!("'{word}' is not an integer"));
        let sign = self.next(&format!("a comparison of '{name}'"))?;
        if matches!(sign, "<" | "<=" | ">" | ">=") {
            let n = number(self.next("a number")?)?;
            let beyond = || format!("no integer is {sign} {n}");
            return Ok(match sign {
                "<" => range(None, Some(n.checked_sub(1).ok_or_else(beyond)?)),
                "<=" => range(None, Some(n)),
                ">" => range(Some(n.checked_add(1).ok_or_else(beyond)?), None),
                _ => range(Some(n), None),
            });
        }
        if !matches!(sign, "==" | "!=" | "in") {
            return Err(format!("'{name}' is an integer: compare it (== != < <= > >= in)"));
        }
        let found = any(self.values(sign, &number)?.into_iter().map(|n| range(Some(n), Some(n))).collect());
        Ok(if sign == "!=" { not(found) } else { found })
    }
}

fn at_least(input: usize, n: i64) -> KernelPred {
    KernelPred::MinElements(input, usize::try_from(n).unwrap_or(0))
}
