//! The text that declares an op's inputs, attributes and outputs.
//!
//! ```text
//! layer_norm(x: float, weight?: float, bias?: float; axes: int = 1, eps: runtime float = 1e-5) -> (y, mean, rstd)
//! concat(xs...; dim: int = 0) -> y
//! sgd_many((param!: float, grad: float)...; lr: runtime float) -> ()
//! ```
//! Inputs before the semicolon (`?` optional, `...` variadic and last, `?...` any number or none, `!` mutated in place;
//! inputs in brackets with `...` repeat together). After the colon stands the class of dtypes that the input accepts: `float`,
//! `int`, `num` (integers and floats), `bool`; without one every built-in dtype; `any` those that programs register too. A
//! registered dtype is in no other class, whatever it is stored as, because no kernel of these classes computes with it.
//! Attributes stand after the semicolon (`?` optional, `runtime` marks those that do not
//! take part in the plan).

use super::attr::{AttrKind, AttrValue};
use crate::error::{Error, Result};
use oflow_kernels::{DType, DTypeKind};
use smol_str::SmolStr;
use std::fmt;

/// Which dtypes an input accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DTypeClass {
    /// Every built-in dtype: what an input accepts that names no class.
    Builtin,
    /// Every dtype, registered ones too: for ops that move elements and look at none, and for ops of registered dtypes.
    Any,
    /// f16, bf16, f32, f64.
    Float,
    /// Integers (not bool).
    Int,
    /// Integers and floats.
    Num,
    /// bool.
    Bool,
}

impl DTypeClass {
    const ALL: [DTypeClass; 6] =
        [DTypeClass::Builtin, DTypeClass::Any, DTypeClass::Float, DTypeClass::Int, DTypeClass::Num, DTypeClass::Bool];

    /// Whether the class has that dtype.
    pub fn contains(self, d: DType) -> bool {
        match self {
            DTypeClass::Builtin => d.is_builtin(),
            DTypeClass::Any => true,
            DTypeClass::Float => d.is_float(),
            DTypeClass::Int => d.kind() == DTypeKind::Int,
            DTypeClass::Num => matches!(d.kind(), DTypeKind::Int | DTypeKind::Float),
            DTypeClass::Bool => d == DType::Bool,
        }
    }
    /// The word used in declarations.
    pub fn name(self) -> &'static str {
        match self {
            DTypeClass::Builtin => "built-in",
            DTypeClass::Any => "any",
            DTypeClass::Float => "float",
            DTypeClass::Int => "int",
            DTypeClass::Num => "num",
            DTypeClass::Bool => "bool",
        }
    }
}

/// One input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDef {
    /// Name, for messages and call by keyword.
    pub name: SmolStr,
    /// Accepted dtypes.
    pub dtypes: DTypeClass,
    /// May be absent.
    pub optional: bool,
    /// Stands for any number of tensors; last, alone or with others that repeat together.
    pub variadic: bool,
    /// Is changed in place; never boxed.
    pub mutable: bool,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttrDef {
    /// Name.
    pub name: SmolStr,
    /// Type.
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
    /// Op name.
    pub name: SmolStr,
    /// Inputs in order.
    pub inputs: Vec<InputDef>,
    /// Plan attributes in order.
    pub attrs: Vec<AttrDef>,
    /// Runtime attributes in order.
    pub runtime: Vec<AttrDef>,
    /// Output names.
    pub outputs: Vec<SmolStr>,
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
        let mut sig = OpSignature { name, inputs: vec![], attrs: vec![], runtime: vec![], outputs: vec![] };
        let group = |p: &'_ str| p.strip_prefix('(').and_then(|p| p.strip_suffix(")...")).map(str::to_string);
        let parts: Vec<(String, bool)> = split_outside(ins, ',')
            .flat_map(|p| match group(p) {
                Some(inner) => split_outside(&inner, ',').map(|p| (p.to_string(), true)).collect::<Vec<_>>(),
                None => vec![(p.to_string(), false)],
            })
            .collect();
        for (part, grouped) in &parts {
            let (n, class) =
                part.split_once(':').map_or((part.as_str(), DTypeClass::Builtin.name()), |(n, c)| (n.trim(), c.trim()));
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
            let dtypes = DTypeClass::ALL
                .into_iter()
                .find(|c| c.name() == class)
                .ok_or_else(|| bad(&format!("unknown dtype class '{class}'")))?;
            if sig.inputs.last().is_some_and(|i| i.variadic && !grouped) {
                return Err(bad("a variadic input must be the last"));
            }
            // Ops live as long as the process, and most have one input or two.
            sig.inputs.reserve_exact(1);
            sig.inputs.push(InputDef { name: n.into(), dtypes, optional, variadic, mutable });
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
        sig.outputs = outs.split(',').map(str::trim).filter(|o| !o.is_empty()).map(SmolStr::new).collect();
        sig.outputs.shrink_to_fit();
        Ok(sig)
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
            if x.dtypes != DTypeClass::Builtin {
                write!(f, ": {}", x.dtypes.name())?;
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
        match self.outputs.as_slice() {
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
            "f(x: complex) -> y",
            "f(xs..., y) -> z",
            "f((a, b)..., y) -> z",
            "f(x; a) -> y",
            "f(x; s: runtime ints) -> y",
            "f(x; s?: int = 1) -> y",
        ] {
            assert!(OpSignature::parse(bad).is_err(), "{bad}");
        }
    }
}
