//! Signatures of functions as text, OneFlow's grammar:
//!
//! ```text
//! leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor
//! unflatten(Tensor x, IntList[2] sizes) -> Tensor
//! top(Tensor x, Int k) -> (Tensor values, Tensor indices)
//! ```
//! Parameters after `*` are given by name only. A type with `?` may be left out. Where a list has a length, one value may stand for
//! as many equal ones. A function returns a tensor, named tensors, a `TensorTuple` of any number, `Void`, or a value of any other type
//! but `Target`.

use super::attr::{AttrKind, AttrValue};
use super::def::{DTypeRule, OpDef};
use super::registry::BUILTIN;
use super::signature::{OutputCount, split_outside};
use crate::error::{Error, Result};
use oflow_kernels::expr::Expr;
use std::fmt;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor, local or global.
    Tensor,
    /// A list of tensors.
    TensorTuple,
    /// Where a new tensor lives: a device or (placement, sbp).
    Target,
    /// An index into a tensor: integers, slices, tensors and the like.
    TensorIndex,
    /// Where random numbers come from.
    Generator,
    /// Anything an op's attribute can be.
    Attr(AttrKind),
}

const NAMES: &[(&str, ParamKind)] = &[
    ("Tensor", ParamKind::Tensor),
    ("TensorTuple", ParamKind::TensorTuple),
    ("Target", ParamKind::Target),
    ("TensorIndex", ParamKind::TensorIndex),
    ("Generator", ParamKind::Generator),
    ("Int", ParamKind::Attr(AttrKind::Int)),
    ("Float", ParamKind::Attr(AttrKind::Float)),
    ("Bool", ParamKind::Attr(AttrKind::Bool)),
    ("String", ParamKind::Attr(AttrKind::Str)),
    ("Scalar", ParamKind::Attr(AttrKind::Scalar)),
    ("IntList", ParamKind::Attr(AttrKind::Ints)),
    ("FloatList", ParamKind::Attr(AttrKind::Floats)),
    ("BoolList", ParamKind::Attr(AttrKind::Bools)),
    ("StringList", ParamKind::Attr(AttrKind::Strs)),
    ("ScalarList", ParamKind::Attr(AttrKind::Scalars)),
    ("Shape", ParamKind::Attr(AttrKind::Shape)),
    ("ShapeList", ParamKind::Attr(AttrKind::Shapes)),
    ("DataType", ParamKind::Attr(AttrKind::DType)),
    ("DataTypeList", ParamKind::Attr(AttrKind::DTypes)),
    ("Device", ParamKind::Attr(AttrKind::Device)),
    ("Placement", ParamKind::Attr(AttrKind::Placement)),
    ("Sbp", ParamKind::Attr(AttrKind::NdSbp)),
    ("IntLists", ParamKind::Attr(AttrKind::IntLists)),
    ("PlacementList", ParamKind::Attr(AttrKind::Placements)),
    ("SbpList", ParamKind::Attr(AttrKind::NdSbps)),
];

/// Other words for types: integers have 64 bits here, and floats are doubles.
const ALSO: &[(&str, &str)] = &[
    ("Int32", "Int"),
    ("Int64", "Int"),
    ("Double", "Float"),
    ("Int32List", "IntList"),
    ("Int64List", "IntList"),
    ("DoubleList", "FloatList"),
];

impl ParamKind {
    /// The word of the grammar.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, k)| *k == self).map_or("Bytes", |(n, _)| n)
    }

    fn parse(word: &str) -> Option<ParamKind> {
        let word = ALSO.iter().find(|(other, _)| *other == word).map_or(word, |(_, word)| word);
        NAMES.iter().find(|(n, _)| *n == word).map(|(_, k)| *k)
    }

    /// Whether every argument that fits `other` fits this type too.
    fn takes_all_of(self, other: ParamKind) -> bool {
        use AttrKind as A;
        let (ParamKind::Attr(mine), ParamKind::Attr(theirs)) = (self, other) else { return self == other };
        mine == theirs
            || match mine {
                A::Scalar => matches!(theirs, A::Int | A::Float | A::Bool),
                A::Float => matches!(theirs, A::Int | A::Scalar),
                A::Ints => matches!(theirs, A::Int | A::Shape),
                A::Floats => matches!(theirs, A::Ints | A::Shape),
                A::Scalars => matches!(theirs, A::Ints | A::Floats | A::Shape),
                _ => false,
            }
    }
}

/// One parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FnParam {
    /// Name of the parameter.
    pub name: String,
    /// Type of the parameter.
    pub kind: ParamKind,
    /// Of a list: how many members it has; one value stands for as many.
    pub len: Option<usize>,
    /// May be left out.
    pub optional: bool,
    /// Value when left out.
    pub default: Option<AttrValue>,
    /// By name only.
    pub keyword_only: bool,
}

impl FnParam {
    /// A parameter that must be given.
    pub fn new(name: &str, kind: ParamKind) -> FnParam {
        FnParam { name: name.into(), kind, len: None, optional: false, default: None, keyword_only: false }
    }

    /// Returns whether it must be given: it is not optional and has no default.
    pub fn is_required(&self) -> bool {
        !self.optional && self.default.is_none()
    }

    /// A value given for the parameter, as the function gets it.
    ///
    /// # Errors
    /// It has another type, or another number of members.
    pub fn accept(&self, kind: AttrKind, value: AttrValue) -> Result<AttrValue> {
        if self.len.is_none() && kind.holds(&value) && kind != AttrKind::Shape {
            return Ok(value);
        }
        let wide = self.len.and_then(|n| repeated(kind, &value, n)).unwrap_or(value);
        let value = kind.accept(&self.name, wide)?;
        match (self.len, members(&value)) {
            (Some(n), Some(m)) if n != m => {
                Err(Error::argument(format!("'{}' must have {n} members, not {m}", self.name)))
            }
            _ => Ok(value),
        }
    }
}

/// How many members a list has.
fn members(v: &AttrValue) -> Option<usize> {
    match v {
        AttrValue::Ints(v) => Some(v.len()),
        AttrValue::Floats(v) => Some(v.len()),
        AttrValue::List(v) => Some(v.len()),
        _ => None,
    }
}

/// A list of `n` times one value, for kinds of lists that may have that member.
fn repeated(kind: AttrKind, one: &AttrValue, n: usize) -> Option<AttrValue> {
    match (kind, one) {
        (AttrKind::Ints | AttrKind::Shape, AttrValue::Int(i)) => Some(vec![*i; n].into()),
        (AttrKind::Floats, AttrValue::Int(_) | AttrValue::Float(_)) => {
            one.to_scalar().map(|s| vec![s.to_f64(); n].into())
        }
        (AttrKind::Bools, AttrValue::Bool(_))
        | (AttrKind::Strs, AttrValue::Str(_))
        | (AttrKind::DTypes, AttrValue::DType(_)) => Some(vec![one.clone(); n].into()),
        (AttrKind::Scalars, one) => one.to_scalar().map(|s| vec![s; n].into()),
        _ => None,
    }
}

/// Type of a function's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FnReturn {
    /// No result, as of a function that only acts.
    Void,
    /// One new tensor.
    Tensor,
    /// Tensors by name.
    Named(Vec<String>),
    /// Any number of tensors.
    TensorTuple,
    /// A value that is no tensor: a number, a text, a shape and the like.
    Value(AttrKind),
}

/// A function's signature.
#[derive(Clone, Debug, PartialEq)]
pub struct FnSig {
    /// Name of the function.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<FnParam>,
    /// Type of the result.
    pub returns: FnReturn,
}

impl FnSig {
    /// Reads the text.
    ///
    /// # Errors
    /// When the text is not one of the grammar, when two parameters have one name, or one that must be given follows one that may be
    /// left out.
    pub fn parse(text: &str) -> Result<FnSig> {
        let bad = |why: String| Error::parse(format!("function signature '{text}': {why}"));
        let (head, ret) = text.rsplit_once("->").ok_or_else(|| bad("missing '->'".into()))?;
        let (name, rest) = head.split_once('(').ok_or_else(|| bad("missing '('".into()))?;
        let body = rest.trim_end().strip_suffix(')').ok_or_else(|| bad("missing ')'".into()))?;
        let name = name.trim();
        if !is_name(name) {
            return Err(bad(format!("'{name}' is not a name")));
        }
        let mut params: Vec<FnParam> = vec![];
        let mut keyword_only = false;
        for p in split_outside(body, ',') {
            if p == "*" {
                if std::mem::replace(&mut keyword_only, true) {
                    return Err(bad("'*' stands twice".into()));
                }
                continue;
            }
            let param = parameter(p, keyword_only).map_err(|e| bad(e.message().to_string()))?;
            if params.iter().any(|q| q.name == param.name) {
                return Err(bad(format!("two parameters are named '{}'", param.name)));
            }
            if let Some(q) = params.iter().find(|q| !q.is_required() && !keyword_only && param.is_required()) {
                return Err(bad(format!(
                    "'{}' must be given, but follows '{}', which may be left out",
                    param.name, q.name
                )));
            }
            params.push(param);
        }
        if keyword_only && !params.iter().any(|p| p.keyword_only) {
            return Err(bad("no parameter follows '*'".into()));
        }
        let returns =
            returned(ret.trim()).ok_or_else(|| bad(format!("'{}' is not what a function returns", ret.trim())))?;
        Ok(FnSig { name: name.to_string(), params, returns })
    }

    /// Whether this overload, tried before `later`, leaves no call by position to it: whatever may be given to `later` by
    /// position, with its keyword-only parameters by name, fits this one too.
    pub(crate) fn hides(&self, later: &FnSig) -> bool {
        let positional = |sig: &FnSig| sig.params.iter().filter(|p| !p.keyword_only).count();
        let required = |sig: &FnSig| sig.params.iter().filter(|p| !p.keyword_only && p.is_required()).count();
        let fits = |mine: &FnParam, theirs: &FnParam| {
            mine.kind.takes_all_of(theirs.kind)
                && (mine.len.is_none() || mine.len == theirs.len)
                && (!mine.is_required() || theirs.is_required())
        };
        let by_position = |n: usize| {
            let (mine, theirs) = (&self.params[..n.min(self.params.len())], &later.params[..n]);
            n <= positional(self) && required(self) <= n && mine.iter().zip(theirs).all(|(m, t)| fits(m, t))
        };
        let keywords = later.params.iter().filter(|p| p.keyword_only);
        let by_name = |p: &FnParam| self.params.iter().any(|m| m.keyword_only && m.name == p.name && fits(m, p));
        let needed = |m: &FnParam| later.params.iter().any(|p| p.keyword_only && p.name == m.name && p.is_required());
        self.params.iter().filter(|m| m.keyword_only && m.is_required()).all(needed)
            && keywords.into_iter().all(by_name)
            && (required(later)..=positional(later)).all(by_position)
    }
}

/// An overload that no call reaches.
pub(crate) fn hidden_overload(hidden: &FnSig, by: &FnSig) -> Error {
    if hidden == by {
        return Error::registry(format!("the function {by} is registered already"))
            .help("give it a name of its own, or other parameters");
    }
    let why = format!("no call would reach the overload {hidden}: {by} takes all its calls");
    Error::registry(why).help("register the overload with the narrower types first, or give it a name of its own")
}

fn is_name(s: &str) -> bool {
    !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
}

/// Reads `IntList[2]? name=default`.
fn parameter(text: &str, keyword_only: bool) -> Result<FnParam> {
    let (ty, rest) = text.split_once(' ').ok_or_else(|| Error::parse(format!("'{text}' needs a type and a name")))?;
    let (ty, optional) = ty.strip_suffix('?').map_or((ty, false), |t| (t, true));
    let (word, len) = match ty.strip_suffix(']').and_then(|t| t.split_once('[')) {
        Some((word, n)) => {
            let n = n.parse::<usize>().map_err(|_| Error::parse(format!("'{n}' is not a length")))?;
            (word, Some(n))
        }
        None => (ty, None),
    };
    let kind = ParamKind::parse(word).ok_or_else(|| Error::parse(format!("unknown type '{word}'")))?;
    let (name, default) = rest.split_once('=').map_or((rest, None), |(n, d)| (n, Some(d)));
    let name = name.trim();
    if !is_name(name) {
        return Err(Error::parse(format!("'{name}' is not a name")));
    }
    let mut param = FnParam { len, optional, keyword_only, ..FnParam::new(name, kind) };
    if len.is_some() && !matches!(kind, ParamKind::Attr(k) if repeats(k)) {
        return Err(Error::parse(format!("a {word} has no length")));
    }
    param.default = match (default, kind) {
        (None, _) => None,
        (Some(_), _) if optional => return Err(Error::parse(format!("'{name}' is optional and has a default"))),
        // One value for a list with a length.
        (Some(d), ParamKind::Attr(k)) => {
            let one = len.and_then(|n| repeated(k, &one_value(k, d)?, n));
            Some(match one {
                Some(list) => list,
                None => param.accept(k, k.parse_value(d)?)?,
            })
        }
        (Some(_), _) => return Err(Error::parse(format!("'{name}' cannot have a default"))),
    };
    Ok(param)
}

/// Kinds of lists whose members may be given once for all.
fn repeats(k: AttrKind) -> bool {
    use AttrKind as A;
    matches!(k, A::Ints | A::Floats | A::Bools | A::Strs | A::DTypes | A::Scalars)
}

/// A default that is one member of a list.
fn one_value(list: AttrKind, text: &str) -> Option<AttrValue> {
    let member = match list {
        AttrKind::Ints => AttrKind::Int,
        AttrKind::Floats => AttrKind::Float,
        AttrKind::Bools => AttrKind::Bool,
        AttrKind::Strs => AttrKind::Str,
        AttrKind::DTypes => AttrKind::DType,
        AttrKind::Scalars => AttrKind::Scalar,
        _ => return None,
    };
    if text.trim().starts_with('[') { None } else { member.parse_value(text).ok() }
}

fn returned(text: &str) -> Option<FnReturn> {
    match text {
        "Void" => return Some(FnReturn::Void),
        "Tensor" => return Some(FnReturn::Tensor),
        "TensorTuple" => return Some(FnReturn::TensorTuple),
        _ => {}
    }
    if let Some(ParamKind::Attr(kind)) = ParamKind::parse(text) {
        return Some(FnReturn::Value(kind));
    }
    let inner = text.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(text);
    let names: Option<Vec<String>> = split_outside(inner, ',')
        .map(|r| r.strip_prefix("Tensor ").map(str::trim).filter(|n| is_name(n)).map(str::to_string))
        .collect();
    names.filter(|n| !n.is_empty()).map(FnReturn::Named)
}

impl fmt::Display for FnParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len.map_or(String::new(), |n| format!("[{n}]"));
        write!(f, "{}{len}{} {}", self.kind.name(), if self.optional { "?" } else { "" }, self.name)?;
        self.default.as_ref().map_or(Ok(()), |d| write!(f, "={d}"))
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
            write!(f, "{p}")?;
        }
        match &self.returns {
            FnReturn::Void => write!(f, ") -> Void"),
            FnReturn::Tensor => write!(f, ") -> Tensor"),
            FnReturn::TensorTuple => write!(f, ") -> TensorTuple"),
            FnReturn::Value(kind) => write!(f, ") -> {}", ParamKind::Attr(*kind).name()),
            FnReturn::Named(names) => {
                write!(f, ") -> ({})", names.iter().map(|r| format!("Tensor {r}")).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl OpDef {
    /// The functions that are this op: those of its texts, else one under its own name, which takes the inputs in order and then
    /// the attributes.
    ///
    /// # Errors
    /// A text is no signature, or not one of this op.
    pub fn function_signatures(&self) -> Result<Vec<FnSig>> {
        if self.functions.is_empty() {
            return Ok(vec![self.own_function()]);
        }
        self.functions.iter().map(|text| self.function_of(text)).collect()
    }

    /// Whether it computes nothing: an elementwise op whose result has the elements of its first input, as `copy` and the gradient of `add`.
    pub(crate) fn gives_its_input(&self) -> bool {
        self.expr.as_deref() == Some(&Expr::Input(0))
    }

    /// Whether its functions have a form that writes the result over the first argument: elementwise ops do whose result may have
    /// the dtype of that.
    pub fn has_in_place_form(&self) -> bool {
        use DTypeRule::{Input, Promote, PromoteFloat, PromoteInt};
        let same = matches!(self.dtype, Promote | PromoteFloat | PromoteInt | Input(0));
        self.expr.is_some() && !self.gives_its_input() && same && !self.traits.by_name_only
    }

    /// Whether it is one of oflow's own.
    pub(crate) fn is_builtin(&self) -> bool {
        self.domain == BUILTIN
    }

    /// A name as callers write it.
    fn called(&self, name: &str) -> String {
        if self.is_builtin() { name.to_string() } else { format!("{}.{name}", self.domain) }
    }

    fn function_of(&self, text: &str) -> Result<FnSig> {
        let mut sig = FnSig::parse(text)?;
        let bad = |why: String| Err(Error::registry(format!("function '{text}' of the op {}: {why}", self.sig.name)));
        let mut inputs = self.sig.inputs.iter();
        for p in &sig.params {
            let fits = match p.kind {
                ParamKind::Tensor | ParamKind::TensorTuple => inputs.next().is_some_and(|i| {
                    i.name == p.name && i.optional == p.optional && i.variadic == (p.kind == ParamKind::TensorTuple)
                }),
                ParamKind::Attr(kind) => {
                    let attr = self.sig.attrs.iter().chain(&self.sig.runtime).find(|a| a.name == p.name);
                    attr.is_some_and(|a| a.kind == kind)
                }
                ParamKind::Target => self.sig.inputs.is_empty(),
                ParamKind::Generator => self.traits.random,
                ParamKind::TensorIndex => false,
            };
            if !fits {
                return bad(format!("'{p}' is neither an input nor an attribute of {}", self.sig));
            }
        }
        if let Some(i) = inputs.next() {
            return bad(format!("the input '{}' is missing", i.name));
        }
        let given = |name: &str| sig.params.iter().any(|p| p.name == name);
        let mut attrs = self.sig.attrs.iter().chain(&self.sig.runtime);
        if let Some(a) = attrs.find(|a| a.default.is_none() && !given(&a.name)) {
            return bad(format!("the attribute '{}' is missing and has no default", a.name));
        }
        sig.name = self.called(&sig.name);
        Ok(sig)
    }

    /// Inputs, then attributes, under the op's own name.
    pub(crate) fn own_function(&self) -> FnSig {
        // Inputs that repeat together are one list, in the order that the op takes them.
        let together = self.sig.repeating().saturating_sub(1);
        let mut params: Vec<FnParam> = self.sig.inputs[..self.sig.inputs.len() - together]
            .iter()
            .map(|i| {
                let name = if i.variadic && together > 0 { "tensors" } else { i.name.as_str() };
                let kind = if i.variadic { ParamKind::TensorTuple } else { ParamKind::Tensor };
                FnParam { optional: i.optional, ..FnParam::new(name, kind) }
            })
            .collect();
        if self.sig.inputs.is_empty() {
            params.push(FnParam::new("target", ParamKind::Target));
        }
        params.extend(self.sig.attrs.iter().chain(&self.sig.runtime).map(|a| FnParam {
            // One that may be left out is absent then.
            optional: a.default == Some(AttrValue::Absent),
            default: a.default.clone().filter(|d| *d != AttrValue::Absent),
            ..FnParam::new(&a.name, ParamKind::Attr(a.kind))
        }));
        let returns = match self.sig.outputs.as_slice() {
            [] => FnReturn::Void,
            [_] => match self.sig.output_defs.first().map(|d| &d.count) {
                Some(OutputCount::Each(_) | OutputCount::ByShapes) => FnReturn::TensorTuple,
                _ => FnReturn::Tensor,
            },
            many => FnReturn::Named(many.iter().map(|o| o.to_string()).collect()),
        };
        FnSig { name: self.called(&self.sig.name), params, returns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sig(text: &str) -> FnSig {
        FnSig::parse(text).unwrap()
    }

    #[test]
    fn text_round_trips() {
        for t in [
            "leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor",
            "layer_norm(Tensor x, Tensor? weight, Tensor? bias, *, Int axes=1, Float eps=1e-5) -> (Tensor y, Tensor mean, Tensor rstd)",
            "sum(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor",
            "assign(Tensor x, Tensor y) -> Void",
            "split(Tensor x, Int size, Int dim=0) -> TensorTuple",
            "numel(Tensor x) -> Int",
            "shape(Tensor x) -> Shape",
            "pool(Tensor x, IntList[2] size, *, IntList[2] stride=[1, 1], String mode=\"a, b\", ScalarList? fill) -> Tensor",
        ] {
            assert_eq!(sig(t).to_string(), t);
        }
        assert_eq!(
            sig("f(Int64 n, Double p, IntList[3] d=2) -> Tensor").to_string(),
            "f(Int n, Float p, IntList[3] d=[2, 2, 2]) -> Tensor"
        );
    }

    #[test]
    fn bad_texts_are_refused_with_their_reason() {
        for (text, why) in [
            ("f(Tensr x) -> Tensor", "unknown type 'Tensr'"),
            ("f(Tensor x=1) -> Tensor", "'x' cannot have a default"),
            ("f(Tensor x, Int x) -> Tensor", "two parameters are named 'x'"),
            ("f(Int n=1, Tensor x) -> Tensor", "'x' must be given, but follows 'n', which may be left out"),
            ("f(Int? n=1) -> Tensor", "'n' is optional and has a default"),
            ("f(Tensor x, *) -> Tensor", "no parameter follows '*'"),
            ("f(*, Int a, *, Int b) -> Tensor", "'*' stands twice"),
            ("f(Tensor x) -> Tenser", "'Tenser' is not what a function returns"),
            ("f(Tensor x) -> ()", "'()' is not what a function returns"),
            ("f(Tensor[2] x) -> Tensor", "a Tensor has no length"),
            ("f(IntList[2] x=[1, 2, 3]) -> Tensor", "'x' must have 2 members, not 3"),
            ("f g(Tensor x) -> Tensor", "'f g' is not a name"),
            ("f(Tensor x", "missing '->'"),
            ("f -> Tensor", "missing '('"),
        ] {
            let e = FnSig::parse(text).unwrap_err();
            assert_eq!(e.message(), format!("function signature '{text}': {why}"));
        }
    }

    #[test]
    fn an_overload_is_hidden_where_an_earlier_one_takes_all_that_it_takes() {
        for (first, later, hidden) in [
            ("f(Tensor x, Scalar s) -> Tensor", "f(Tensor x, Int n) -> Tensor", true),
            ("f(Tensor x, Int n) -> Tensor", "f(Tensor x, Scalar s) -> Tensor", false),
            ("f(Tensor x, Tensor y) -> Tensor", "f(Tensor a, Tensor b) -> Tensor", true),
            ("f(Tensor x, Tensor y) -> Tensor", "f(Tensor x) -> Tensor", false),
            ("f(Tensor x, Tensor? y) -> Tensor", "f(Tensor x) -> Tensor", true),
            ("f(Tensor x) -> Tensor", "f(Tensor x, Int n=1) -> Tensor", false),
            ("f(Tensor x, IntList d) -> Tensor", "f(Tensor x, Int d) -> Tensor", true),
            ("f(Tensor x, IntList[2] d) -> Tensor", "f(Tensor x, IntList d) -> Tensor", false),
            ("f(Tensor x, *, Int n) -> Tensor", "f(Tensor x) -> Tensor", false),
            ("f(Tensor x, *, Int n=1) -> Tensor", "f(Tensor x, *, Int m) -> Tensor", false),
            ("f(Tensor x, *, Float n=1) -> Tensor", "f(Tensor x, *, Int n) -> Tensor", true),
            ("f(Tensor x, Tensor y) -> Tensor", "f(Tensor x, Tensor? y) -> Tensor", false),
        ] {
            assert_eq!(sig(first).hides(&sig(later)), hidden, "{first} before {later}");
        }
    }
}
