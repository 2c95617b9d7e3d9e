//! Calls by name: the first overload that takes the arguments runs.

use super::bind::{Arg, Bound, ByPosition, Given, Language, Misfits, Unfit, Words, bind, first_fit};
use super::definition::{FnBody, FnDef};
use super::index::TensorIndex;
use super::op_form::{OpForm, OutputSlot};
use super::table::overloads;
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::ops::{AttrValue, FnParam, ParamKind};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::convert::Infallible;
use std::marker::PhantomData;

/// Calls by name in Rust: values are arguments already.
#[derive(Default)]
pub(super) struct ByName<'a>(PhantomData<&'a Arg>);

/// A whole index of one member: a number, or a tensor.
fn one_index(a: &Arg) -> Option<TensorIndex> {
    match a {
        Arg::Tensor(t) => Some(t.into()),
        Arg::Attr(AttrValue::Int(i)) => Some((*i).into()),
        _ => None,
    }
}

impl<'a> Language for ByName<'a> {
    type Value = &'a Arg;
    type Taken = Arg;
    type Error = Infallible;
    const WORDS: Words = Words::Plain;

    fn is_absent(&self, _: &FnParam, value: &Arg) -> bool {
        matches!(value, Arg::None)
    }
    fn convert(&mut self, p: &FnParam, passed: &[&'a Arg]) -> std::result::Result<Arg, Unfit<Infallible>> {
        let [value] = *passed else { return Err(Unfit::Type) };
        match (value, p.kind) {
            (Arg::Tensor(_), ParamKind::Tensor)
            | (Arg::Tensors(_), ParamKind::TensorTuple)
            | (Arg::Target(_), ParamKind::Target)
            | (Arg::Generator(_), ParamKind::Generator)
            | (Arg::Index(_), ParamKind::TensorIndex) => Ok(value.clone()),
            (one, ParamKind::TensorIndex) => one_index(one).map(Arg::from).ok_or(Unfit::Type),
            (Arg::Attr(v), ParamKind::Attr(kind)) => {
                p.accept(kind, v.clone()).map(Arg::Attr).map_err(|e| Unfit::Text(e.message().to_string()))
            }
            _ => Err(Unfit::Type),
        }
    }
    fn left_out(&mut self, _: usize, p: &FnParam) -> std::result::Result<Option<Arg>, Unfit<Infallible>> {
        Ok(p.default.clone().map(Arg::Attr))
    }
    fn type_of(&self, p: &FnParam) -> String {
        p.kind.name().to_string()
    }
    fn describe(&self, value: &Arg) -> String {
        value.describe()
    }
}

/// The overloads of a function, each with the reason why it does not take a call.
pub(super) fn there_are(defs: &[FnDef], misfits: &Misfits, given: &Given<'_, &Arg>) -> String {
    let one = |(def, why): (&FnDef, &super::bind::Misfit)| {
        format!("    {}\n        {}", def.sig, why.text(&ByName::default(), &def.sig, given))
    };
    format!("there are:\n{}", defs.iter().zip(misfits).map(one).collect::<Vec<_>>().join("\n"))
}

/// Calls a function of the table, or an op that has no function of its own, by name. Errors, comm records and gradients name
/// the caller's line, whatever the function calls.
///
/// ```
/// use oflow::{functional::call, prelude::*};
/// let x = from_vec(vec![-1.0f32, 2.0], [2], Device::Cpu)?;
/// let y = call("leaky_relu", &[(&x).into()], &[("alpha", 0.5.into())])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [-0.5, 2.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// When there is no such function, or no overload takes these arguments: the message lists the overloads.
#[track_caller]
pub fn call(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> Result<Vec<Tensor>> {
    let site = CallSite::here();
    call_at(name, args, named, site)?.tensors().map_err(|e| e.in_call(|| text_of(name, args, named)).at(site))
}

/// Calls a function whose result is not a tensor by name.
///
/// ```
/// use oflow::{functional::call_value, prelude::*};
/// let x = zeros([2, 3], Device::Cpu)?;
/// assert_eq!(call_value("numel", &[x.into()], &[])?.to_string(), "6");
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// As [`call`]; also if the function gives tensors.
#[track_caller]
pub fn call_value(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> Result<AttrValue> {
    let site = CallSite::here();
    match call_at(name, args, named, site)? {
        Returned::Value(v) => Ok(v),
        Returned::Tensors(_) => Err(Error::argument("the function gives tensors")
            .in_call(|| text_of(name, args, named))
            .at(site)
            .help("call it with `call`")),
    }
}

/// Calls a function by name, whatever it returns.
///
/// # Errors
/// As [`call`].
#[track_caller]
pub fn call_any(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> Result<Returned> {
    call_at(name, args, named, CallSite::here())
}

/// Result of a function called by name.
#[derive(Clone, Debug)]
pub enum Returned {
    /// Tensors in the order of the function's results.
    Tensors(Vec<Tensor>),
    /// A value that is no tensor.
    Value(AttrValue),
}

impl Returned {
    pub(super) fn tensors(self) -> Result<Vec<Tensor>> {
        match self {
            Returned::Tensors(all) => Ok(all),
            Returned::Value(v) => Err(Error::argument(format!("the function returns {v}, which is not a tensor"))
                .help("call it with `call_value`")),
        }
    }
}

fn call_at(name: &str, args: &[Arg], named: &[(&str, Arg)], site: CallSite) -> Result<Returned> {
    let defs = overloads(name).map_err(|e| e.at(site))?;
    let (values, keywords) = values_of(args, named);
    let given = Given::new(&values, &keywords);
    let text = || given.text(name, Arg::describe);
    let fitting = first_fit(&defs, |def| bind(&mut ByName::default(), &def.sig, ByPosition::of(&def.sig), &given));
    match fitting {
        Ok(Ok((def, args))) => def.run(Bound { args, site }).map_err(|e| named_in(name, e, text)),
        Ok(Err(misfits)) => Err(Error::argument("no overload takes these arguments")
            .in_call(text)
            .at(site)
            .help(there_are(&defs, &misfits, &given))),
        Err(never) => match never {},
    }
}

/// Returns the error with the called function in its text, for bindings of other languages: a function that calls others fails in one
/// of them, whose name tells the program nothing. Errors about other ranks name the ops of all ranks. `text` is the call.
#[cold]
pub fn named_in(name: &str, e: Error, text: impl Fn() -> String) -> Error {
    // One of the two names may be without the domain.
    let is_named = |text: &str| {
        let (own, full) = (text.split(['(', ':']).next().unwrap_or_default(), name.replace("::", "."));
        let ends = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|domain| domain.is_empty() || domain.ends_with('.'))
        };
        !own.is_empty() && (ends(own, &full) || ends(&full, own))
    };
    let of_ranks = matches!(e.kind(), ErrorKind::Peer | ErrorKind::Link | ErrorKind::Diverged);
    if of_ranks || is_named(&e.to_string()) { e.in_call(text) } else { e.within(text) }
}

/// A call as text.
fn text_of(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> String {
    let (values, keywords) = values_of(args, named);
    Given::new(&values, &keywords).text(name, Arg::describe)
}

/// The values of a call, and the keywords of the last of them.
#[allow(clippy::type_complexity)]
fn values_of<'a>(args: &'a [Arg], named: &'a [(&'a str, Arg)]) -> (SmallVec<[&'a Arg; 8]>, SmallVec<[&'a str; 8]>) {
    (args.iter().chain(named.iter().map(|(_, a)| a)).collect(), named.iter().map(|(n, _)| *n).collect())
}

impl FnDef {
    /// Meaning of each output of the function's op in a call with these arguments, where a call may leave outputs out or
    /// make several of one: for bindings of other languages, which name what [`run`](FnDef::run) returns. None elsewhere.
    ///
    /// # Errors
    /// The function's op is not registered any more, or an argument is none of its attribute.
    pub fn outputs(&self, bound: &Bound) -> Result<Option<Vec<OutputSlot>>> {
        match &self.body {
            FnBody::Op(op) => OpForm::with(&self.form, &self.sig, op, |form| form.outputs(&self.sig, bound)),
            _ => Ok(None),
        }
    }

    /// Runs the function on bound arguments: one for each parameter of [`FnDef::sig`], defaults filled in, attribute values as
    /// [`FnParam::accept`](super::FnParam::accept) returns them. For bindings of other languages, which match arguments themselves.
    /// Errors, comm records and gradients name the line `bound.site`.
    ///
    /// # Errors
    /// Those of the function.
    pub fn run(&self, bound: Bound) -> Result<Returned> {
        let site = bound.site;
        let _scope = site.scope();
        let returned = match &self.body {
            FnBody::Op(op) => OpForm::with(&self.form, &self.sig, op, |form| form.call(&self.sig, bound, false))
                .map(Returned::Tensors),
            FnBody::InPlace(op) => {
                OpForm::with(&self.form, &self.sig, op, |form| form.call(&self.sig, bound, true)).map(Returned::Tensors)
            }
            FnBody::Code(f) => f(&bound).map(Returned::Tensors),
            FnBody::Value(f) => f(&bound).map(Returned::Value),
        };
        returned.map_err(|e| e.at(site))
    }
}
