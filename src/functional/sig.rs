//! Signatures of functions as text, OneFlow's grammar:
//!
//! ```text
//! leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor
//! ```
//! Parameters after `*` are given by name only. A type with `?` may be left out.

use crate::error::{Error, Result};
use crate::ops::{AttrKind, AttrValue};
use std::fmt;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor.
    Tensor,
    /// A list of tensors.
    TensorTuple,
    /// Where a new tensor lives: a device or (placement, sbp).
    Target,
    /// Anything an op's attribute can be.
    Attr(AttrKind),
}

const NAMES: &[(&str, ParamKind)] = &[
    ("Tensor", ParamKind::Tensor),
    ("TensorTuple", ParamKind::TensorTuple),
    ("Target", ParamKind::Target),
    ("Int", ParamKind::Attr(AttrKind::Int)),
    ("Float", ParamKind::Attr(AttrKind::Float)),
    ("Bool", ParamKind::Attr(AttrKind::Bool)),
    ("String", ParamKind::Attr(AttrKind::Str)),
    ("Scalar", ParamKind::Attr(AttrKind::Scalar)),
    ("IntList", ParamKind::Attr(AttrKind::Ints)),
    ("FloatList", ParamKind::Attr(AttrKind::Floats)),
    ("Shape", ParamKind::Attr(AttrKind::Shape)),
    ("DataType", ParamKind::Attr(AttrKind::DType)),
    ("Device", ParamKind::Attr(AttrKind::Device)),
    ("Placement", ParamKind::Attr(AttrKind::Placement)),
    ("Sbp", ParamKind::Attr(AttrKind::NdSbp)),
    ("IntLists", ParamKind::Attr(AttrKind::IntLists)),
    ("PlacementList", ParamKind::Attr(AttrKind::Placements)),
    ("SbpList", ParamKind::Attr(AttrKind::NdSbps)),
];

impl ParamKind {
    /// The word of the grammar.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, k)| *k == self).map_or("Bytes", |(n, _)| n)
    }
}

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct FnParam {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ParamKind,
    /// May be left out.
    pub optional: bool,
    /// Value when left out.
    pub default: Option<AttrValue>,
    /// By name only.
    pub keyword_only: bool,
}

/// A function's signature.
#[derive(Clone, Debug, PartialEq)]
pub struct FnSig {
    /// Function name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<FnParam>,
    /// Named results; empty for void.
    pub returns: Vec<String>,
}

impl FnSig {
    /// Reads the text.
    pub fn parse(text: &str) -> Result<FnSig> {
        let bad = |why: String| Error::parse(format!("function signature '{text}': {why}"));
        let (head, ret) = text.split_once("->").ok_or_else(|| bad("missing '->'".into()))?;
        let (name, rest) = head.split_once('(').ok_or_else(|| bad("missing '('".into()))?;
        let body = rest.trim_end().strip_suffix(')').ok_or_else(|| bad("missing ')'".into()))?;
        let mut params = vec![];
        let mut keyword_only = false;
        let (mut depth, mut part, mut parts) = (0, String::new(), vec![]);
        for c in body.chars() {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(std::mem::take(&mut part));
                    continue;
                }
                _ => {}
            }
            part.push(c);
        }
        parts.push(part);
        for p in parts.iter().map(|p| p.trim()).filter(|p| !p.is_empty()) {
            if p == "*" {
                keyword_only = true;
                continue;
            }
            let (ty, rest) = p.split_once(' ').ok_or_else(|| bad(format!("'{p}' needs a type and a name")))?;
            let (ty, optional) = ty.strip_suffix('?').map_or((ty, false), |t| (t, true));
            let kind = NAMES
                .iter()
                .find(|(n, _)| *n == ty)
                .map(|(_, k)| *k)
                .ok_or_else(|| bad(format!("unknown type '{ty}'")))?;
            let (pname, default) = rest.split_once('=').map_or((rest, None), |(n, d)| (n, Some(d)));
            let default = match (default, kind) {
                (None, _) => None,
                (Some(d), ParamKind::Attr(k)) => Some(k.parse_value(d)?),
                (Some(_), _) => return Err(bad(format!("'{}' cannot have a default", pname.trim()))),
            };
            params.push(FnParam { name: pname.trim().to_string(), kind, optional, default, keyword_only });
        }
        let ret = ret.trim();
        let returns = match ret {
            "Void" => vec![],
            _ => {
                let inner = ret.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(ret);
                inner.split(',').map(|r| r.trim().strip_prefix("Tensor ").unwrap_or(r.trim()).to_string()).collect()
            }
        };
        Ok(FnSig { name: name.trim().to_string(), params, returns })
    }
}

impl fmt::Display for FnSig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let mut star = false;
        for (i, p) in self.params.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            if p.keyword_only && !star {
                f.write_str("*, ")?;
                star = true;
            }
            write!(f, "{}{} {}", p.kind.name(), if p.optional { "?" } else { "" }, p.name)?;
            if let Some(d) = &p.default {
                write!(f, "={d}")?;
            }
        }
        match self.returns.as_slice() {
            [] => write!(f, ") -> Void"),
            [one] if one == "Tensor" => write!(f, ") -> Tensor"),
            many => write!(f, ") -> ({})", many.iter().map(|r| format!("Tensor {r}")).collect::<Vec<_>>().join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for t in [
            "leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor",
            "layer_norm(Tensor x, Tensor? weight, Tensor? bias, *, Int axes=1, Float eps=1e-5) -> (Tensor y, Tensor mean, Tensor rstd)",
            "sum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor",
            "assign(Tensor x, Tensor y) -> Void",
        ] {
            assert_eq!(FnSig::parse(t).unwrap().to_string(), t);
        }
        assert!(FnSig::parse("f(Tensr x) -> Tensor").is_err());
        assert!(FnSig::parse("f(Tensor x=1) -> Tensor").is_err());
    }
}
