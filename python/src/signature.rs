//! Signatures as Python writes them: `sum(x: Tensor, dims: int | Sequence[int] = (), keepdim: bool = False) -> Tensor`.
//!
//! `cargo xtask codegen` compiles this file too, and writes the stubs with it: it uses the library only.

use oflow::DType;
use oflow::functional::{FnDef, FnParam, FnReturn};
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use std::borrow::Cow;

/// Names of NumPy and PyTorch for the built-in dtypes, in the order of `DType::BUILTIN`.
pub const DTYPE_NAMES: [&str; DType::BUILTIN.len()] = {
    let (mut names, mut i) = ([""; DType::BUILTIN.len()], 0);
    while i < names.len() {
        names[i] = DType::BUILTIN[i].storage().facts().python;
        i += 1;
    }
    names
};

/// The name of a dtype in Python.
pub fn dtype_name(d: DType) -> String {
    match DType::BUILTIN.iter().position(|b| *b == d) {
        Some(i) => format!("oflow.{}", DTYPE_NAMES[i]),
        None => d.to_string(),
    }
}

/// Whether a parameter is a list of integers.
pub fn is_int_list(p: &FnParam) -> bool {
    matches!(p.kind, ParamKind::Attr(AttrKind::Ints | AttrKind::Shape))
}

/// The type of an attribute.
fn attr(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Int => "int",
        AttrKind::Float => "float",
        AttrKind::Bool => "bool",
        AttrKind::Str => "str",
        AttrKind::Ints => "int | Sequence[int]",
        AttrKind::Floats => "float | Sequence[float]",
        AttrKind::Shape => "int | Sequence[int]",
        AttrKind::DType => "dtype",
        AttrKind::Scalar => "Number",
        AttrKind::Bytes => "bytes",
        AttrKind::Device => "device | str",
        AttrKind::Placement => "placement",
        AttrKind::NdSbp => "Sbp | str | Sequence[Sbp | str]",
        AttrKind::IntLists | AttrKind::Shapes => "Sequence[Sequence[int]]",
        AttrKind::Placements => "Sequence[placement]",
        AttrKind::NdSbps => "Sequence[Sbp | str | Sequence[Sbp | str]]",
        AttrKind::Bools => "Sequence[bool]",
        AttrKind::Strs => "Sequence[str]",
        AttrKind::DTypes => "Sequence[dtype]",
        AttrKind::Scalars => "Sequence[Number]",
        _ => "object",
    }
}

/// The type of a parameter.
fn kind(p: &FnParam) -> String {
    let one = match p.kind {
        ParamKind::Tensor => "Tensor",
        ParamKind::TensorTuple => "Sequence[Tensor]",
        ParamKind::Target => "device | str",
        ParamKind::TensorIndex => "Index",
        ParamKind::Generator => "Generator",
        ParamKind::Attr(k) => attr(k),
    };
    if p.optional { format!("{one} | None") } else { one.to_string() }
}

/// Text of a default in Python.
pub fn value(v: &AttrValue) -> String {
    match v {
        AttrValue::Bool(b) => if *b { "True" } else { "False" }.into(),
        AttrValue::Ints(v) => tuple(v.iter().map(i64::to_string)),
        AttrValue::Floats(v) => tuple(v.iter().map(|x| format!("{x:?}"))),
        AttrValue::List(v) => tuple(v.iter().map(value)),
        AttrValue::Float(x) if x.is_infinite() => format!("float('{x}')"),
        AttrValue::Float(x) => format!("{x:?}"),
        AttrValue::DType(d) => dtype_name(*d),
        AttrValue::Absent => "None".into(),
        other => other.to_string(),
    }
}

fn tuple(members: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = members.collect();
    if all.len() == 1 { format!("({},)", all[0]) } else { format!("({})", all.join(", ")) }
}

/// Text of the result's type in Python.
pub fn result(of: &FnReturn) -> String {
    match of {
        FnReturn::Void => "None".into(),
        FnReturn::Tensor => "Tensor".into(),
        FnReturn::TensorTuple => "tuple[Tensor, ...]".into(),
        FnReturn::Named(names) => tuple(names.iter().map(|n| format!("{n}: Tensor"))),
        FnReturn::Value(k) => match k {
            AttrKind::Shape | AttrKind::Ints => "tuple[int, ...]".into(),
            AttrKind::Scalar => "Number".into(),
            AttrKind::NdSbp => "tuple[Sbp, ...]".into(),
            AttrKind::Device => "device".into(),
            k => attr(*k).into(),
        },
    }
}

/// Words of Python that the table has as names of parameters.
const WORDS: [&str; 6] = ["from", "lambda", "in", "is", "with", "as"];

/// The name of a parameter in Python: a word of the language has `_` behind it.
pub fn name_of(p: &FnParam) -> Cow<'_, str> {
    if WORDS.contains(&p.name.as_str()) { format!("{}_", p.name).into() } else { p.name.as_str().into() }
}

/// A parameter as Python shows it.
#[derive(Clone)]
pub struct Parameter {
    /// Name of the parameter; `*` stands before those by name only.
    pub name: String,
    /// Type of the parameter, as Python writes it.
    pub of: String,
    /// Default value, as Python writes it.
    pub default: Option<String>,
}

/// Parameters that say where a new tensor lives, by name.
pub const PLACE: [(&str, &str, &str); 4] = [
    ("device", "device | str | None", "None"),
    ("placement", "placement | None", "None"),
    ("sbp", "Sbp | str | Sequence[Sbp | str] | None", "None"),
    ("requires_grad", "bool", "False"),
];

/// The parameters of a function.
pub fn parameters(def: &FnDef) -> Vec<Parameter> {
    let of = |name: &str, of: &str, default: Option<&str>| Parameter {
        name: name.into(),
        of: of.into(),
        default: default.map(Into::into),
    };
    let mut all: Vec<Parameter> = vec![];
    let (mut star, mut defaults) = (false, false);
    let params: Vec<&FnParam> = def.sig.params.iter().filter(|p| p.kind != ParamKind::Target).collect();
    for (i, p) in params.iter().enumerate() {
        // Python has no required parameter behind one with a default: it is shown as one by name.
        if (p.keyword_only || (p.is_required() && defaults)) && !star {
            star = true;
            all.push(of("*", "", None));
        }
        let required_later = params[i + 1..].iter().any(|p| !p.keyword_only && p.is_required());
        let default = match &p.default {
            Some(d) => Some(value(d)),
            None if p.optional && (star || !required_later) => Some("None".into()),
            None => None,
        };
        defaults |= default.is_some();
        all.push(of(&name_of(p), &kind(p), default.as_deref()));
    }
    if params.len() < def.sig.params.len() {
        if !star {
            all.push(of("*", "", None));
        }
        all.extend(PLACE.iter().map(|(name, kind, default)| of(name, kind, Some(default))));
    }
    all
}

/// A description without examples in Rust and without links.
pub fn plain(doc: &str) -> String {
    let mut in_code = false;
    let mut kept: Vec<&str> = vec![];
    for paragraph in doc.split("\n\n") {
        let fences = paragraph.matches("```").count();
        if !in_code && fences == 0 {
            kept.push(paragraph);
        }
        in_code ^= fences % 2 == 1;
    }
    kept.join("\n\n").replace("# Errors\n", "Raises an error: ").replace("[`", "`").replace("`]", "`")
}
