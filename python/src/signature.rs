//! Signatures as Python writes them: `sum(x: Tensor, dims: int | Sequence[int] = (), keepdim: bool = False) -> Tensor`.
//!
//! `cargo xtask codegen` compiles this file too, and writes the stubs with it: it uses the library only.

use oflow::DType;
use oflow::functional::{FnDef, FnParam, FnReturn};
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use std::borrow::Cow;

/// Names of NumPy and PyTorch for the built-in dtypes, in the order of `DType::BUILTIN`.
pub const DTYPE_NAMES: [&str; 9] =
    ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"];

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
        AttrKind::NdSbp => "Sbp | Sequence[Sbp] | str",
        AttrKind::IntLists | AttrKind::Shapes => "Sequence[Sequence[int]]",
        AttrKind::Placements => "Sequence[placement]",
        AttrKind::NdSbps => "Sequence[Sbp | Sequence[Sbp] | str]",
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

/// A default.
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

/// The result.
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

/// The parameters of an overload; `full` with types.
pub fn parameters(def: &FnDef, full: bool) -> String {
    let mut all: Vec<String> = vec![];
    let mut star = false;
    let mut defaults = false;
    let params: Vec<&FnParam> = def.sig.params.iter().filter(|p| p.kind != ParamKind::Target).collect();
    for (i, p) in params.iter().enumerate() {
        // Python has no required parameter behind one with a default: it is shown as one by name.
        if (p.keyword_only || (p.is_required() && defaults)) && !star {
            star = true;
            all.push("*".into());
        }
        let required_later = params[i + 1..].iter().any(|p| !p.keyword_only && p.is_required());
        let of = if full { format!(": {}", kind(p)) } else { String::new() };
        let default = match &p.default {
            Some(d) => Some(value(d)),
            None if p.optional && (star || !required_later) => Some("None".into()),
            None => None,
        };
        defaults |= default.is_some();
        // Names of types mean nothing to `inspect`.
        let default = default
            .map(|d| if !full && matches!(p.kind, ParamKind::Attr(AttrKind::DType)) { format!("'{d}'") } else { d });
        all.push(match default {
            Some(d) if full => format!("{}{of} = {d}", name_of(p)),
            Some(d) => format!("{}={d}", name_of(p)),
            None => format!("{}{of}", name_of(p)),
        });
    }
    if def.sig.params.iter().any(|p| p.kind == ParamKind::Target) {
        if !star {
            all.push("*".into());
        }
        all.push(match full {
            true => "device: device | str | None = None, placement: placement | None = None, sbp: Sbp | Sequence[Sbp] | str | None = None, requires_grad: bool = False".into(),
            false => "device=None, placement=None, sbp=None, requires_grad=False".to_string(),
        });
    }
    all.join(", ")
}

/// An overload as Python writes it.
pub fn python(name: &str, def: &FnDef) -> String {
    format!("{name}({}) -> {}", parameters(def, true), result(&def.sig.returns))
}

/// The text of `ml_doc`: the signature for `inspect`, where there is one overload, and the description.
pub fn doc(name: &str, overloads: &[&FnDef]) -> String {
    let mut text = match overloads {
        [one] => format!("{name}({})\n--\n\n", parameters(one, false)),
        _ => String::new(),
    };
    let mut said: Vec<&str> = vec![];
    for def in overloads {
        text += &format!("{}\n\n", python(name, def));
        if !said.contains(&def.doc.as_str()) {
            text += &format!("{}\n\n", plain(&def.doc));
            said.push(&def.doc);
        }
    }
    text.trim_end().to_string()
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
