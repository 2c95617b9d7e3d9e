//! The text that declares an op's inputs, attributes and outputs.
//!
//! ```text
//! layer_norm(x: float, weight?: float, bias?: float; axes: int = 1, eps: runtime float = 1e-5) -> (y, mean, rstd)
//! concat(xs...; dim: int = 0) -> y
//! sgd_many((param!: float, grad: float)...; lr: runtime float) -> ()
//! rows(x: f32|f64[2], index: no_grad int[1]; counts: bool = false) -> (y, n?(counts): no_grad)
//! pieces(x: any[1..]; n: int) -> parts...(n)
//! ```
//! Inputs before the semicolon (`?` optional, `...` variadic and last, `?...` any number or none, `!` mutated in place;
//! inputs in brackets with `...` repeat together). After the colon stand the dtypes that the input accepts, and in brackets its
//! number of dims ([`constraint`](super::constraint) has the grammar). The classes are `float`, `int`, `num` (integers and floats),
//! `bool`; without one every built-in dtype; `any` those that programs register too. A registered dtype is in no other class,
//! whatever it is stored as, because no kernel of these classes computes with it. Before the dtypes may stand `no_grad`: the input
//! never gets a gradient, as an index; and `host`: the kernel reads its elements in host memory, on whatever device it runs.
//! Attributes stand after the semicolon (`?` optional, `runtime` marks those that do not
//! take part in the plan).
//! An output may be one that not every call makes: `y?(flag)` is made where the bool attribute is true, the optional attribute given
//! or the optional input given; `ys...(n)` stands for as many as the integer attribute says, as the list attribute has members
//! or as the variadic input has tensors; `ys...` for as many as the shape rule gives. `: no_grad` marks an output that has no gradient.

use super::attr::{AttrKind, AttrValue, Attrs};
use super::constraint::{DTypeClass, DTypeSet, RankSet};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::fmt;

/// Declaration of one input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDef {
    /// Name, for messages and call by keyword.
    pub name: SmolStr,
    /// Element types that the input accepts.
    pub dtypes: DTypeSet,
    /// Accepted numbers of dims.
    pub ranks: RankSet,
    /// May be absent.
    pub optional: bool,
    /// Stands for any number of tensors; last, alone or with others that repeat together.
    pub variadic: bool,
    /// Is changed in place; never boxed.
    pub mutable: bool,
    /// Never gets a gradient.
    pub no_grad: bool,
    /// The kernel reads it in host memory, on whatever device it runs.
    pub host: bool,
}

/// When an output is made, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputCount {
    /// Always one output.
    #[default]
    One,
    /// Where that bool attribute is true, that optional attribute or that optional input is given.
    If(SmolStr),
    /// As many as that integer attribute says, as that list attribute or that variadic input has members.
    Each(SmolStr),
    /// As many as the shape rule gives.
    ByShapes,
}

/// Properties of an output besides its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputDef {
    /// When it is made.
    pub count: OutputCount,
    /// Has no gradient.
    pub no_grad: bool,
}

/// Declaration of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttrDef {
    /// Name of the attribute.
    pub name: SmolStr,
    /// Type of the attribute.
    pub kind: AttrKind,
    /// Value when not given ([`AttrValue::Absent`] for an optional one); without one the attribute is required.
    pub default: Option<AttrValue>,
    /// Not part of the plan.
    pub runtime: bool,
}

impl AttrDef {
    /// Converts a value to the attribute's type where that is lossless.
    ///
    /// # Errors
    /// The value has another type.
    pub fn accept(&self, v: AttrValue) -> Result<AttrValue> {
        match v {
            AttrValue::Absent if self.default == Some(AttrValue::Absent) => Ok(v),
            v => self.kind.accept(&self.name, v),
        }
    }

    /// Whether a value is one of this attribute without a conversion.
    pub fn holds(&self, v: &AttrValue) -> bool {
        self.kind.holds(v) || (*v == AttrValue::Absent && self.default == Some(AttrValue::Absent))
    }
}

/// The parsed declaration text.
#[derive(Clone, Debug, PartialEq)]
pub struct OpSignature {
    /// Name of the op.
    pub name: SmolStr,
    /// Inputs in order.
    pub inputs: Vec<InputDef>,
    /// Plan attributes in order.
    pub attrs: Vec<AttrDef>,
    /// Runtime attributes in order.
    pub runtime: Vec<AttrDef>,
    /// Names of the outputs, in declared order.
    pub outputs: Vec<SmolStr>,
    /// Properties of the outputs, in the order of their names.
    pub output_defs: Vec<OutputDef>,
}

impl OpSignature {
    /// Reads the declaration text (grammar at the top of this file).
    pub fn parse(text: &str) -> Result<OpSignature> {
        let bad = |why: &str| Error::parse(format!("op declaration '{text}': {why}"));
        let arrow = text.find("->").ok_or_else(|| bad("missing '->'"))?;
        let open = text[..arrow].find('(').ok_or_else(|| bad("missing '('"))?;
        let close = text[open..arrow].rfind(')').ok_or_else(|| bad("missing ')'"))? + open;
        let name = SmolStr::new(text[..open].trim());
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)) {
            return Err(bad("the name must be letters, digits, '_' and '.'"));
        }
        let body = &text[open + 1..close];
        let (ins, ats) = body.split_once(';').unwrap_or((body, ""));
        let (inputs, attrs, runtime, outputs, output_defs) = (vec![], vec![], vec![], vec![], vec![]);
        let mut sig = OpSignature { name, inputs, attrs, runtime, outputs, output_defs };
        let group = |p: &'_ str| p.strip_prefix('(').and_then(|p| p.strip_suffix(")...")).map(str::to_string);
        let parts: Vec<(String, bool)> = split_outside(ins, ',')
            .flat_map(|p| match group(p) {
                Some(inner) => split_outside(&inner, ',').map(|p| (p.to_string(), true)).collect::<Vec<_>>(),
                None => vec![(p.to_string(), false)],
            })
            .collect();
        for (part, grouped) in &parts {
            let (n, accepts) = part.split_once(':').map_or((part.as_str(), ""), |(n, c)| (n.trim(), c.trim()));
            let mut n = n.trim();
            let (mut optional, mut variadic, mut mutable) = (false, *grouped, false);
            loop {
                if let Some(r) = n.strip_suffix("...") {
                    (n, variadic) = (r, true);
                } else if let Some(r) = n.strip_suffix('?') {
                    (n, optional) = (r, true);
                } else if let Some(r) = n.strip_suffix('!') {
                    (n, mutable) = (r, true);
                } else {
                    break;
                }
            }
            let (marks, accepts) = words(accepts, &["no_grad", "host"]);
            let (dtypes, ranks) = accepted(accepts).map_err(|e| bad(e.message()))?;
            if sig.inputs.last().is_some_and(|i| i.variadic && !grouped) {
                return Err(bad("a variadic input must be the last"));
            }
            // Ops live as long as the process, and most have one input or two.
            sig.inputs.reserve_exact(1);
            let [no_grad, host] = marks;
            if host && mutable {
                return Err(bad(&format!("input '{n}' is written in place, so it cannot be read in host memory")));
            }
            sig.inputs.push(InputDef { name: n.into(), dtypes, ranks, optional, variadic, mutable, no_grad, host });
        }
        for part in split_outside(ats, ',') {
            let (n, rest) = part.split_once(':').ok_or_else(|| bad(&format!("attribute '{part}' has no type")))?;
            let (kind, default) = rest.split_once('=').map_or((rest, None), |(k, d)| (k, Some(d)));
            let kind = kind.trim();
            let (runtime, kind) = kind.strip_prefix("runtime ").map_or((false, kind), |k| (true, k.trim()));
            let kind = AttrKind::parse(kind)?;
            let (n, optional) = n.trim().strip_suffix('?').map_or((n, false), |n| (n, true));
            let default = match (default, optional) {
                (Some(_), true) => return Err(bad(&format!("attribute '{part}' is optional and has a default"))),
                (Some(d), false) => Some(kind.parse_value(d)?),
                (None, true) => Some(AttrValue::Absent),
                (None, false) => None,
            };
            if runtime && !matches!(kind, AttrKind::Scalar | AttrKind::Float | AttrKind::Int | AttrKind::Bool) {
                return Err(bad("a runtime attribute must be a number"));
            }
            let def = AttrDef { name: n.trim().into(), kind, default, runtime };
            let list = if runtime { &mut sig.runtime } else { &mut sig.attrs };
            list.reserve_exact(1);
            list.push(def);
        }
        let outs = text[arrow + 2..].trim();
        let outs = outs.strip_prefix('(').and_then(|o| o.strip_suffix(')')).unwrap_or(outs);
        for part in split_outside(outs, ',') {
            let (name, def) = sig.output(part).map_err(|e| bad(e.message()))?;
            sig.outputs.reserve_exact(1);
            sig.outputs.push(name);
            sig.output_defs.push(def);
        }
        sig.check_outputs().map_err(|e| bad(e.message()))?;
        Ok(sig)
    }

    /// Reads one output: `y`, `mask: no_grad`, `n?(counts)`, `ys...(xs)`.
    fn output(&self, text: &str) -> Result<(SmolStr, OutputDef)> {
        let bad = |why: &str| Error::parse(format!("output '{text}' {why}"));
        let (name, marks) = text.split_once(':').map_or((text, ""), |(n, m)| (n.trim(), m.trim()));
        let ([no_grad], rest) = words(marks, &["no_grad"]);
        if !rest.is_empty() {
            return Err(bad("may be marked `no_grad` and nothing else"));
        }
        let (name, source) = match name.strip_suffix(')').and_then(|n| n.split_once('(')) {
            Some((name, source)) => (name.trim(), Some(source.trim())),
            None => (name, None),
        };
        let (name, count) = match (name.strip_suffix("..."), name.strip_suffix('?'), source) {
            (Some(n), _, Some(s)) => (n, OutputCount::Each(s.into())),
            (Some(n), _, None) => (n, OutputCount::ByShapes),
            (None, Some(n), Some(s)) => (n, OutputCount::If(s.into())),
            (None, Some(_), None) => {
                return Err(bad("does not say when it is made: name an attribute or input, as in y?(flag)"));
            }
            (None, None, None) => (name, OutputCount::One),
            (None, None, Some(_)) => return Err(bad("is neither optional (`?`) nor several (`...`)")),
        };
        let attr = |s: &str| self.attr(s).map(|i| &self.attrs[i]);
        let optional = |a: &AttrDef| a.kind == AttrKind::Bool || a.default == Some(AttrValue::Absent);
        let input = |s: &str| self.input(s).map(|i| &self.inputs[i]);
        let counts =
            |a: &AttrDef| matches!(a.kind, AttrKind::Int | AttrKind::Ints | AttrKind::Floats) || a.kind.is_list();
        match &count {
            OutputCount::If(s) if !attr(s).is_some_and(optional) && !input(s).is_some_and(|i| i.optional) => {
                Err(bad(&format!(
                    "is made where '{s}' says, which is neither a bool or optional attribute nor an optional input"
                )))
            }
            OutputCount::Each(s) if !attr(s).is_some_and(counts) && !input(s).is_some_and(|i| i.variadic) => {
                Err(bad(&format!(
                    "is made as often as '{s}' says, which is neither an integer or list attribute nor a variadic input"
                )))
            }
            _ => Ok((SmolStr::new(name.trim()), OutputDef { count, no_grad })),
        }
    }

    /// Outputs that are always made come first, and what stands for several comes last, so that positions tell them apart.
    fn check_outputs(&self) -> Result<()> {
        let kind = |d: &OutputDef| match d.count {
            OutputCount::One => 0,
            OutputCount::If(_) => 1,
            OutputCount::Each(_) | OutputCount::ByShapes => 2,
        };
        let several = self.output_defs.iter().filter(|d| kind(d) == 2).count();
        if self.output_defs.is_sorted_by_key(kind) && several <= 1 {
            return Ok(());
        }
        Err(Error::parse(
            "outputs that are always made come first, then optional ones (`?`), then one that stands for several (`...`)",
        ))
    }

    /// Whether the number of outputs depends on the call.
    pub fn outputs_vary(&self) -> bool {
        self.output_defs.iter().any(|d| d.count != OutputCount::One)
    }

    /// The outputs that a call makes, each by its place in the declaration; `given`: whether the i-th tensor of the call is there.
    /// None where the shape rule alone knows.
    pub fn outputs_made(&self, attrs: &Attrs, given: &[bool]) -> Option<SmallVec<[usize; 2]>> {
        let mut made = SmallVec::new();
        let attr = |s: &str| self.attr(s).and_then(|i| attrs.get(i));
        for (o, d) in self.output_defs.iter().enumerate() {
            let count = match &d.count {
                OutputCount::One => 1,
                OutputCount::ByShapes => return None,
                OutputCount::If(s) => usize::from(match (attr(s), self.input(s)) {
                    (Some(AttrValue::Bool(b)), _) => *b,
                    (Some(v), _) => *v != AttrValue::Absent,
                    (None, Some(i)) => given.get(i).copied().unwrap_or(false),
                    (None, None) => false,
                }),
                OutputCount::Each(s) => match (attr(s), self.input(s)) {
                    (Some(AttrValue::Int(n)), _) => usize::try_from(*n).unwrap_or(0),
                    (Some(AttrValue::Ints(v)), _) => v.len(),
                    (Some(AttrValue::Floats(v)), _) => v.len(),
                    (Some(AttrValue::List(v)), _) => v.len(),
                    (None, Some(i)) => given.len().saturating_sub(i).div_ceil(self.repeating().max(1)),
                    _ => 0,
                },
            };
            made.extend(std::iter::repeat_n(o, count));
        }
        Some(made)
    }

    /// How many of the last inputs repeat together: one for `xs...`, more for a bracket, none else.
    pub fn repeating(&self) -> usize {
        self.inputs.iter().filter(|i| i.variadic).count()
    }
    /// The declaration of the `i`-th tensor of a call.
    pub fn input_def(&self, i: usize) -> Option<&InputDef> {
        match (self.inputs.len(), self.repeating()) {
            (n, r) if r > 0 && i >= n => self.inputs.get(n - r + (i - n) % r),
            _ => self.inputs.get(i),
        }
    }
    /// Whether the `i`-th tensor of a call is changed in place.
    pub fn mutates(&self, i: usize) -> bool {
        self.input_def(i).is_some_and(|d| d.mutable)
    }

    /// Position of a plan attribute.
    pub fn attr(&self, name: &str) -> Option<usize> {
        self.attrs.iter().position(|a| a.name == name)
    }
    /// Position of a runtime attribute.
    pub fn runtime_attr(&self, name: &str) -> Option<usize> {
        self.runtime.iter().position(|a| a.name == name)
    }
    /// Position of an input.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|i| i.name == name)
    }
}

/// Takes marking words off the front of a text; tells which there were.
fn words<'a, const N: usize>(text: &'a str, known: &[&str; N]) -> ([bool; N], &'a str) {
    let (mut found, mut rest) = ([false; N], text.trim());
    loop {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match known.iter().position(|k| *k == word) {
            Some(i) => (found[i], rest) = (true, after.trim_start()),
            None => return (found, rest),
        }
    }
}

/// Reads `f32|f64[1..=3]`: dtypes, then numbers of dims. Either may be left out.
fn accepted(text: &str) -> Result<(DTypeSet, RankSet)> {
    let (dtypes, ranks) = match text.split_once('[') {
        Some((d, r)) => {
            let inner = r
                .trim_end()
                .strip_suffix(']')
                .ok_or_else(|| Error::parse(format!("'{text}' has no ']' at its end")))?;
            (d.trim(), RankSet::parse(inner)?)
        }
        None => (text.trim(), RankSet::default()),
    };
    let dtypes = if dtypes.is_empty() { DTypeClass::Real.into() } else { DTypeSet::parse(dtypes)? };
    Ok((dtypes, ranks))
}

/// Splits at separators that stand outside brackets and quotes; parts that are empty are left out.
pub(crate) fn split_outside(s: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut depth, mut quoted, mut start, mut parts) = (0, false, 0, vec![]);
    for (i, c) in s.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '(' if !quoted => depth += 1,
            ']' | ')' if !quoted => depth -= 1,
            c if c == at && depth == 0 && !quoted => {
                parts.push(&s[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&s[start..]);
    parts.into_iter().map(str::trim).filter(|p| !p.is_empty())
}

impl fmt::Display for OpSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let (last, group) = (self.inputs.len(), self.repeating());
        for (i, x) in self.inputs.iter().enumerate() {
            let sep = if i > 0 { ", " } else { "" };
            let open = if group > 1 && i + group == last { "(" } else { "" };
            let (m, o, v) = (
                if x.mutable { "!" } else { "" },
                if x.optional { "?" } else { "" },
                if x.variadic && group == 1 { "..." } else { "" },
            );
            write!(f, "{sep}{open}{}{m}{o}{v}", x.name)?;
            let plain = x.dtypes.class() == Some(DTypeClass::Real);
            let dtypes = if plain { String::new() } else { x.dtypes.to_string() };
            let marks = [if x.no_grad { "no_grad" } else { "" }, if x.host { "host" } else { "" }];
            let all = [marks[0], marks[1], &format!("{dtypes}{}", x.ranks)];
            let all: Vec<&str> = all.into_iter().filter(|t| !t.is_empty()).collect();
            if !all.is_empty() {
                write!(f, ": {}", all.join(" "))?;
            }
        }
        if group > 1 {
            write!(f, ")...")?;
        }
        for (i, a) in self.attrs.iter().chain(&self.runtime).enumerate() {
            let sep = if i > 0 { ", " } else { "; " };
            let rt = if a.runtime { "runtime " } else { "" };
            let absent = a.default == Some(AttrValue::Absent);
            write!(f, "{sep}{}{}: {rt}{}", a.name, if absent { "?" } else { "" }, a.kind.name())?;
            if let Some(d) = a.default.as_ref().filter(|_| !absent) {
                write!(f, " = {d}")?;
            }
        }
        let output = |(name, d): (&SmolStr, &OutputDef)| {
            let count = match &d.count {
                OutputCount::One => String::new(),
                OutputCount::If(s) => format!("?({s})"),
                OutputCount::Each(s) => format!("...({s})"),
                OutputCount::ByShapes => "...".to_string(),
            };
            format!("{name}{count}{}", if d.no_grad { ": no_grad" } else { "" })
        };
        let outputs: Vec<String> = self.outputs.iter().zip(&self.output_defs).map(output).collect();
        match outputs.as_slice() {
            [one] => write!(f, ") -> {one}"),
            many => write!(f, ") -> ({})", many.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for t in [
            "layer_norm(x: float, weight?: float, bias?: float; axes: int = 1, eps: runtime float = 1e-5) -> (y, mean, rstd)",
            "concat(xs...: any; dim: int = 0) -> y",
            "full(; shape: shape, dtype: dtype = f32, value: runtime scalar) -> y",
            "assign(x!, y) -> ()",
            "scale_many(s: float, xs!...: float) -> ()",
            "step((param!: float, grad: float, m!)...; lr: runtime float) -> ()",
            "rows(x: f32|f64[2], index: no_grad int[1]; counts: bool = false) -> (y, n?(counts): no_grad)",
            "pieces(x: any[1..]; n: int) -> parts...(n)",
            "each(xs...: float[0|2]) -> (total, ys...(xs))",
            "some(x: [1..=3], shape: no_grad host i64[1]) -> ys...",
            "box(xs?...; to: placement, sbp: sbp = [S(0), B], grad_sbp?: sbp) -> ys",
        ] {
            assert_eq!(OpSignature::parse(t).unwrap().to_string(), t);
        }
        let step = OpSignature::parse("step(s, (p!, g)...) -> ()").unwrap();
        let mutates: Vec<bool> = (0..7).map(|i| step.mutates(i)).collect();
        assert_eq!(mutates, [false, true, false, true, false, true, false]);
        for bad in [
            "f x -> y",
            "f) -> (y",
            "f) x( -> y",
            ")(->",
            "->",
            "f(x: imaginary) -> y",
            "f(xs..., y) -> z",
            "f((a, b)..., y) -> z",
            "f(x; a) -> y",
            "f(x; s: runtime ints) -> y",
            "f(x; s?: int = 1) -> y",
            "f(x: float[1..2]) -> y",
            "f(x: float[2) -> y",
            "f(x: f32|imaginary) -> y",
            "f(x!: host float) -> y",
            "f(x) -> y?",
            "f(x) -> y?(x)",
            "f(x; n: str) -> y...(n)",
            "f(x; b: bool) -> (y?(b), z)",
            "f(x) -> y: float",
        ] {
            assert!(OpSignature::parse(bad).is_err(), "{bad}");
        }
    }
}
