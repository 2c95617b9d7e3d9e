//! The table of functions: signature text, overloads in order, and what runs. Docs, call by name and later Python read it.

use super::by_name::Bound;
use super::pytorch;
use super::sig::{FnParam, FnSig, ParamKind};
use crate::error::{Error, Result};
use crate::ops::{self, AttrValue, Op};
use crate::tensor::Tensor;
use std::sync::{Arc, LazyLock, RwLock};

/// A function in Rust over bound arguments.
pub type FnCode = Arc<dyn Fn(&Bound) -> Result<Vec<Tensor>> + Send + Sync>;

/// What a function does.
#[derive(Clone)]
pub enum FnBody {
    /// Calls the op of that name; parameters become inputs and attributes of the same names.
    Op(String),
    /// Code.
    Code(FnCode),
}

/// A function.
#[derive(Clone)]
pub struct FnDef {
    /// Signature.
    pub sig: FnSig,
    /// What it does.
    pub body: FnBody,
}

/// `(signature, op)`: functions whose parameters are an op's inputs and attributes. Overloads of a name stand in order.
const OPS: &[(&str, &str)] = &[
    ("add(Tensor a, Tensor b) -> Tensor", "add"),
    ("add(Tensor x, Scalar s) -> Tensor", "add_scalar"),
    ("sub(Tensor a, Tensor b) -> Tensor", "sub"),
    ("sub(Tensor x, Scalar s) -> Tensor", "sub_scalar"),
    ("sub(Scalar s, Tensor x) -> Tensor", "rsub_scalar"),
    ("mul(Tensor a, Tensor b) -> Tensor", "mul"),
    ("mul(Tensor x, Scalar s) -> Tensor", "mul_scalar"),
    ("div(Tensor a, Tensor b) -> Tensor", "div"),
    ("div(Tensor x, Scalar s) -> Tensor", "div_scalar"),
    ("div(Scalar s, Tensor x) -> Tensor", "rdiv_scalar"),
    ("pow(Tensor a, Tensor b) -> Tensor", "pow"),
    ("pow(Tensor x, Scalar s) -> Tensor", "pow_scalar"),
    ("pow(Scalar s, Tensor x) -> Tensor", "rpow_scalar"),
    ("maximum(Tensor a, Tensor b) -> Tensor", "maximum"),
    ("maximum(Tensor x, Scalar s) -> Tensor", "maximum_scalar"),
    ("minimum(Tensor a, Tensor b) -> Tensor", "minimum"),
    ("minimum(Tensor x, Scalar s) -> Tensor", "minimum_scalar"),
    ("eq(Tensor a, Tensor b) -> Tensor", "eq"),
    ("eq(Tensor x, Scalar s) -> Tensor", "eq_scalar"),
    ("ne(Tensor a, Tensor b) -> Tensor", "ne"),
    ("ne(Tensor x, Scalar s) -> Tensor", "ne_scalar"),
    ("lt(Tensor a, Tensor b) -> Tensor", "lt"),
    ("lt(Tensor x, Scalar s) -> Tensor", "lt_scalar"),
    ("le(Tensor a, Tensor b) -> Tensor", "le"),
    ("le(Tensor x, Scalar s) -> Tensor", "le_scalar"),
    ("gt(Tensor a, Tensor b) -> Tensor", "gt"),
    ("gt(Tensor x, Scalar s) -> Tensor", "gt_scalar"),
    ("ge(Tensor a, Tensor b) -> Tensor", "ge"),
    ("ge(Tensor x, Scalar s) -> Tensor", "ge_scalar"),
    ("leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor", "leaky_relu"),
    ("elu(Tensor x, *, Float alpha=1.0) -> Tensor", "elu"),
    ("full(Shape shape, Scalar value, Target target, *, DataType dtype=f32) -> Tensor", "full"),
    ("zeros(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", "full"),
    ("rand(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", "rand"),
    ("randn(Shape shape, Target target, *, DataType dtype=f32) -> Tensor", "randn"),
    ("bernoulli(Shape shape, Target target, *, Float p=0.5, DataType dtype=f32) -> Tensor", "bernoulli"),
    ("randint(Shape shape, Int lo, Int hi, Target target, *, DataType dtype=i64) -> Tensor", "randint"),
    ("cat(TensorTuple xs, Int dim=0) -> Tensor", "concat"),
    ("masked_fill(Tensor x, Tensor mask, Scalar s) -> Tensor", "masked_fill"),
    ("dropout(Tensor x, *, Float p=0.5) -> Tensor", "dropout"),
];

struct Table {
    defs: Vec<FnDef>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut defs = vec![];
    let mut add = |text: &str, body: FnBody| match FnSig::parse(text) {
        Ok(sig) => defs.push(FnDef { sig, body }),
        // The built-in table is checked by the first test that runs.
        Err(e) => unreachable!("function table: {e}"),
    };
    for (text, op) in OPS {
        add(text, FnBody::Op(op.to_string()));
    }
    add("reshape(Tensor x, IntList shape) -> Tensor", FnBody::Code(Arc::new(reshape)));
    add("cross_entropy(Tensor logits, Tensor target) -> Tensor", FnBody::Code(Arc::new(cross_entropy)));
    add("masked_select(Tensor x, Tensor mask) -> Tensor", FnBody::Code(Arc::new(masked_select)));
    add("linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor", FnBody::Code(Arc::new(linear)));
    RwLock::new(Table { defs })
});

fn given(b: &Bound, i: usize) -> Result<&Tensor> {
    b.tensor(i).ok_or_else(|| Error::argument(format!("argument {i} must be a tensor")))
}

fn ints(b: &Bound, i: usize) -> Vec<i64> {
    match b.attr(i) {
        Some(AttrValue::Ints(v)) => v.to_vec(),
        _ => vec![],
    }
}

fn reshape(b: &Bound) -> Result<Vec<Tensor>> {
    Ok(vec![given(b, 0)?.reshape(ints(b, 1))?])
}

fn cross_entropy(b: &Bound) -> Result<Vec<Tensor>> {
    Ok(vec![given(b, 0)?.cross_entropy(given(b, 1)?)?])
}

fn linear(b: &Bound) -> Result<Vec<Tensor>> {
    Ok(vec![given(b, 0)?.linear(given(b, 1)?, b.tensor(2))?])
}

fn masked_select(b: &Bound) -> Result<Vec<Tensor>> {
    Ok(vec![given(b, 0)?.masked_select(given(b, 1)?)?])
}

/// An op called by its own name: inputs first, then attributes by name.
fn from_op(op: &Op) -> FnDef {
    // Inputs that repeat together are one list, in the order that the op takes them.
    let together = op.sig.repeating().saturating_sub(1);
    let mut params: Vec<FnParam> = op.sig.inputs[..op.sig.inputs.len() - together]
        .iter()
        .map(|i| FnParam {
            name: if i.variadic && together > 0 { "tensors".into() } else { i.name.to_string() },
            kind: if i.variadic { ParamKind::TensorTuple } else { ParamKind::Tensor },
            optional: i.optional,
            default: None,
            keyword_only: false,
        })
        .collect();
    if op.sig.inputs.is_empty() {
        params.push(FnParam {
            name: "target".into(),
            kind: ParamKind::Target,
            optional: false,
            default: None,
            keyword_only: false,
        });
    }
    params.extend(op.sig.attrs.iter().chain(&op.sig.runtime).map(|a| FnParam {
        name: a.name.to_string(),
        kind: ParamKind::Attr(a.kind),
        optional: false,
        default: a.default.clone(),
        keyword_only: false,
    }));
    let returns = match op.sig.outputs.as_slice() {
        [_] => vec!["Tensor".to_string()],
        many => many.iter().map(|o| o.to_string()).collect(),
    };
    let sig = FnSig { name: op.name().to_string(), params, returns };
    FnDef { sig, body: FnBody::Op(op.name().to_string()) }
}

/// The overloads of a name, in order: those of the table, else the op of that name. An op of another crate is called by the
/// names that [`find`](ops::find) takes.
pub(super) fn overloads(name: &str) -> Result<Vec<FnDef>> {
    let t = TABLE.read().unwrap_or_else(|e| e.into_inner());
    let found: Vec<FnDef> = t.defs.iter().filter(|d| d.sig.name == name).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    if let Some(op) = ops::lookup(name)? {
        return Ok(vec![from_op(op)]);
    }
    let ops = ops::shown();
    let names = t.defs.iter().map(|d| d.sig.name.as_str()).chain(ops.iter().map(|o| o.name()));
    let e = Error::registry(format!("there is no function named '{name}'"));
    Err(match pytorch::instead(name) {
        Some(other) => e.help(other),
        None => match ops::nearest(name, names) {
            Some(n) => e.help(format!("did you mean '{n}'?")),
            None => e.help("`oflow ops` lists the ops"),
        },
    })
}

/// All functions, the ops that have none of their own included.
pub fn functions() -> Vec<FnDef> {
    let mut all = TABLE.read().unwrap_or_else(|e| e.into_inner()).defs.clone();
    for op in ops::shown() {
        if !all.iter().any(|d| d.sig.name == op.name()) {
            all.push(from_op(op));
        }
    }
    all
}

/// Adds a function (or an overload) from its text.
pub fn register_function(text: &str, body: FnBody) -> Result<()> {
    let def = FnDef { sig: FnSig::parse(text)?, body };
    TABLE.write().unwrap_or_else(|e| e.into_inner()).defs.push(def);
    Ok(())
}
