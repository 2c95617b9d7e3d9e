//! The table of functions: signature text, overloads in order, and what runs. Docs, call by name and later Python read it.
//!
//! A function is here under its own text where it calls several ops, where it has overloads, or where its order of arguments is not
//! that of an op (`composed.rs`). Every other op is a function by its own declaration.

use super::by_name::Bound;
use super::composed::COMPOSED;
use super::pytorch;
use super::sig::{FnParam, FnReturn, FnSig, ParamKind};
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
    /// One sentence.
    pub doc: String,
    /// What it does.
    pub body: FnBody,
    /// Not shown in lists: a function that other functions call.
    pub hidden: bool,
}

impl FnDef {
    /// A function from its text; an error of the text is one of the grammar.
    ///
    /// # Errors
    /// The text is no signature.
    pub fn new(text: &str, body: FnBody) -> Result<FnDef> {
        Ok(FnDef { sig: FnSig::parse(text)?, doc: String::new(), body, hidden: false })
    }
    /// Sets the one-sentence description.
    #[must_use]
    pub fn doc(mut self, doc: &str) -> FnDef {
        self.doc = doc.to_string();
        self
    }
    /// Leaves it out of lists.
    #[must_use]
    pub fn hidden(mut self) -> FnDef {
        self.hidden = true;
        self
    }
}

struct Table {
    defs: Vec<FnDef>,
}

impl Table {
    /// Adds a function, or an overload behind those of its name.
    fn add(&mut self, def: FnDef) -> Result<()> {
        let same = self.defs.iter().filter(|d| d.sig.name == def.sig.name);
        if let Some(first) = same.into_iter().find(|d| d.sig.hides(&def.sig)) {
            return Err(Error::registry(format!(
                "no call would reach the overload {}: {} takes all its calls",
                def.sig, first.sig
            ))
            .help("register the overload with the narrower types first, or give it a name of its own"));
        }
        self.defs.push(def);
        Ok(())
    }
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table { defs: vec![] };
    for (text, doc, body) in COMPOSED {
        // The built-in table is checked by the first test that runs.
        if let Err(e) = FnDef::new(text, body.into()).and_then(|def| table.add(def.doc(doc))) {
            unreachable!("function table: {e}");
        }
    }
    RwLock::new(table)
});

/// An op called by its own name: inputs first, then attributes by name.
fn from_op(op: &Op) -> FnDef {
    // Inputs that repeat together are one list, in the order that the op takes them.
    let together = op.sig.repeating().saturating_sub(1);
    let mut params: Vec<FnParam> = op.sig.inputs[..op.sig.inputs.len() - together]
        .iter()
        .map(|i| {
            let name = if i.variadic && together > 0 { "tensors" } else { i.name.as_str() };
            let kind = if i.variadic { ParamKind::TensorTuple } else { ParamKind::Tensor };
            FnParam { optional: i.optional, ..FnParam::new(name, kind) }
        })
        .collect();
    if op.sig.inputs.is_empty() {
        params.push(FnParam::new("target", ParamKind::Target));
    }
    params.extend(op.sig.attrs.iter().chain(&op.sig.runtime).map(|a| FnParam {
        // One that may be left out is absent then.
        optional: a.default == Some(AttrValue::Absent),
        default: a.default.clone().filter(|d| *d != AttrValue::Absent),
        ..FnParam::new(&a.name, ParamKind::Attr(a.kind))
    }));
    let returns = match op.sig.outputs.as_slice() {
        [] => FnReturn::Void,
        [_] => FnReturn::Tensor,
        many => FnReturn::Named(many.iter().map(|o| o.to_string()).collect()),
    };
    let sig = FnSig { name: op.name().to_string(), params, returns };
    FnDef { sig, doc: op.doc.clone(), body: FnBody::Op(op.name().to_string()), hidden: false }
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
    let shown = |d: &&FnDef| !d.hidden;
    let mut all: Vec<FnDef> =
        TABLE.read().unwrap_or_else(|e| e.into_inner()).defs.iter().filter(shown).cloned().collect();
    for op in ops::shown() {
        if !all.iter().any(|d| d.sig.name == op.name()) {
            all.push(from_op(op));
        }
    }
    all
}

/// Adds a function, or an overload behind those of its name.
///
/// ```
/// use oflow::functional::{FnBody, FnDef, call, register_function};
/// use oflow::prelude::*;
/// let double = |b: &oflow::functional::Bound| Ok(vec![b.given(0)?.mul(2.0)?]);
/// register_function(FnDef::new("double(Tensor x) -> Tensor", FnBody::Code(std::sync::Arc::new(double)))?)?;
/// let y = call("double", &[ones([2], Device::Cpu)?.into()], &[])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If an earlier overload of the name takes all calls that this one takes.
pub fn register_function(def: FnDef) -> Result<()> {
    TABLE.write().unwrap_or_else(|e| e.into_inner()).add(def)
}
