//! The definition of a function: signature, body and docs.

use super::bind::Bound;
use super::op_form::OpForm;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, FnReturn, FnSig, LibraryId, Op};
use crate::tensor::Tensor;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// A function in Rust over bound arguments.
pub type FnCode = Arc<dyn Fn(&Bound) -> Result<Vec<Tensor>> + Send + Sync>;

/// A function in Rust that gives a value which is not a tensor.
pub type FnValue = Arc<dyn Fn(&Bound) -> Result<AttrValue> + Send + Sync>;

/// Body of a function: one op, or code.
#[derive(Clone)]
pub enum FnBody {
    /// Calls the op of that name; parameters become inputs and attributes of the same names.
    Op(String),
    /// The same, and the result is written over the first argument.
    InPlace(String),
    /// Code that calls other functions.
    Code(FnCode),
    /// Code that gives a value which is not a tensor.
    Value(FnValue),
}

/// Generated Rust form of a function, made by `cargo xtask codegen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustForm {
    /// Name of the Rust function.
    pub name: String,
    /// A method of `Tensor`, or a function of [`functional`](crate::functional).
    pub method: bool,
    /// Path of the code that it calls; none: the op.
    pub code: Option<&'static str>,
}

/// Definition of a function: signature, body and docs.
#[derive(Clone)]
pub struct FnDef {
    /// Signature of the function.
    pub sig: FnSig,
    /// One sentence; more paragraphs of Markdown may follow.
    pub doc: String,
    /// Heading under which lists show it.
    pub subject: Cow<'static, str>,
    /// Body of the function.
    pub body: FnBody,
    /// Generated form in Rust, if the function has one.
    pub rust: Option<RustForm>,
    /// Not shown in lists, and not to be called from Python: a function that other functions and gradients call.
    pub hidden: bool,
    /// Whether the function adds an option to the overload before it, which messages and signatures show alone.
    pub variant: bool,
    /// The library that it comes from; none for others.
    pub(crate) library: Option<Arc<LibraryId>>,
    /// How it calls its op; clones share it.
    pub(super) form: Arc<OnceLock<OpForm>>,
}

impl FnDef {
    /// A function from its text; an error of the text is one of the grammar.
    ///
    /// # Errors
    /// The text is no signature, or it says of a body that gives tensors that it gives another value, or the other way round.
    pub fn new(text: &str, body: FnBody) -> Result<FnDef> {
        let sig = FnSig::parse(text)?;
        let (says, gives) = (matches!(sig.returns, FnReturn::Value(_)), matches!(body, FnBody::Value(_)));
        match says == gives {
            true => Ok(FnDef::of(sig, body)),
            false if gives => Err(Error::registry(format!("the code of {sig} returns a value that is not a tensor"))),
            false => Err(Error::registry(format!("the code of {sig} gives tensors")).help("give `FnBody::Value`")),
        }
    }
    pub(super) fn of(sig: FnSig, body: FnBody) -> FnDef {
        FnDef {
            sig,
            doc: String::new(),
            subject: Cow::Borrowed("Other"),
            body,
            rust: None,
            hidden: false,
            variant: false,
            library: None,
            form: Arc::default(),
        }
    }
    /// The function that calls an op under its own name: with its inputs in order, then its attributes.
    pub fn of_op(op: &Op) -> FnDef {
        let def = FnDef::of(op.own_function(), FnBody::Op(op.name().to_string())).doc(&op.doc);
        FnDef { hidden: op.traits.hidden, subject: op.subject.clone(), ..def }
    }
    /// A function of a library, which gives tensors or another value as its signature says.
    pub(crate) fn of_library(sig: FnSig, body: FnBody, library: Arc<LibraryId>) -> FnDef {
        let subject = Cow::Owned(format!("Functions of {}", library.name));
        FnDef { library: Some(library), subject, ..FnDef::of(sig, body) }
    }
    /// Sets the description: one sentence; more paragraphs of Markdown may follow.
    #[must_use]
    pub fn doc(mut self, doc: &str) -> FnDef {
        self.doc = doc.to_string();
        self
    }
    /// Leaves it out of lists, and refuses calls from Python.
    #[must_use]
    pub fn hidden(mut self) -> FnDef {
        self.hidden = true;
        self
    }
    /// The first paragraph of the description.
    pub fn summary(&self) -> &str {
        self.doc.split("\n\n").next().unwrap_or_default()
    }
}
