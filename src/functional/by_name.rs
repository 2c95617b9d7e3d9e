//! Call by name: arguments are matched against the overloads of a function in order; the first that fits runs.

use super::create::{IntoTarget, TargetSpec};
use super::index::{TensorIndex, text_of};
use super::op_form::{OpForm, OutputSlot};
use super::table::{FnBody, FnDef, overloads};
use crate::context::Generator;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Target;
use crate::ops::{AttrValue, FnSig, ParamKind};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};

/// An argument of a call by name.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor, local or global.
    Tensor(Tensor),
    /// A list of tensors.
    Tensors(Vec<Tensor>),
    /// Where a new tensor lives.
    Target(Target),
    /// An index into a tensor.
    Index(Vec<TensorIndex>),
    /// Where random numbers come from.
    Generator(Generator),
    /// Anything an op's attribute can be.
    Attr(AttrValue),
    /// Nothing, in the place of an optional parameter.
    None,
}

impl From<&Tensor> for Arg {
    fn from(t: &Tensor) -> Arg {
        Arg::Tensor(t.clone())
    }
}
impl From<Vec<Tensor>> for Arg {
    fn from(t: Vec<Tensor>) -> Arg {
        Arg::Tensors(t)
    }
}
impl From<Vec<TensorIndex>> for Arg {
    fn from(indices: Vec<TensorIndex>) -> Arg {
        Arg::Index(indices)
    }
}
impl From<TensorIndex> for Arg {
    fn from(index: TensorIndex) -> Arg {
        Arg::Index(vec![index])
    }
}
impl From<&Generator> for Arg {
    fn from(g: &Generator) -> Arg {
        Arg::Generator(g.clone())
    }
}
impl From<Target> for Arg {
    fn from(t: Target) -> Arg {
        Arg::Target(t)
    }
}
macro_rules! attr_args {
    ($($t:ty),*) => {$(impl From<$t> for Arg { fn from(x: $t) -> Arg { Arg::Attr(x.into()) } })*};
}
attr_args!(
    i64,
    i32,
    usize,
    f64,
    bool,
    &str,
    DType,
    Scalar,
    &[i64],
    &[usize],
    Vec<i64>,
    Vec<f64>,
    Vec<bool>,
    Vec<&str>,
    Vec<DType>,
    Vec<Scalar>,
    Vec<Vec<i64>>,
    Device,
    Placement,
    NdSbp
);

impl From<Tensor> for Arg {
    fn from(t: Tensor) -> Arg {
        Arg::Tensor(t)
    }
}
impl From<&[Tensor]> for Arg {
    fn from(t: &[Tensor]) -> Arg {
        Arg::Tensors(t.to_vec())
    }
}
impl From<f32> for Arg {
    fn from(x: f32) -> Arg {
        Arg::from(f64::from(x))
    }
}

impl Arg {
    fn describe(&self) -> String {
        match self {
            Arg::Tensor(t) => t.short(),
            Arg::Tensors(v) => format!("{} tensors", v.len()),
            Arg::Target(_) => "target".into(),
            Arg::Index(i) => text_of(i),
            Arg::Generator(g) => format!("{g:?}"),
            Arg::Attr(v) => v.to_string(),
            Arg::None => "none".into(),
        }
    }
}

/// Arguments of one call, by parameter.
pub struct Bound {
    /// One per parameter; none where left out.
    pub args: Vec<Option<Arg>>,
    /// The user's line.
    pub site: CallSite,
}

/// A parameter of another type than the code of the function reads: a mistake of whoever wrote both.
fn of_other_type(i: usize, what: &str) -> Error {
    Error::argument(format!("argument {i} is read as {what}, which it is not declared to be, or it was left out"))
}

impl Bound {
    fn arg(&self, i: usize) -> Option<&Arg> {
        self.args.get(i)?.as_ref()
    }
    /// The tensor of parameter `i`; none where it was left out.
    pub fn tensor(&self, i: usize) -> Option<&Tensor> {
        match self.arg(i) {
            Some(Arg::Tensor(t)) => Some(t),
            _ => None,
        }
    }
    /// The attribute value of parameter `i`; none where it was left out.
    pub fn attr(&self, i: usize) -> Option<&AttrValue> {
        match self.arg(i) {
            Some(Arg::Attr(v)) => Some(v),
            _ => None,
        }
    }
    /// The tensor of parameter `i`.
    ///
    /// # Errors
    /// It is not declared as a tensor, or was left out. The same holds for the methods below.
    pub fn given(&self, i: usize) -> Result<&Tensor> {
        self.tensor(i).ok_or_else(|| of_other_type(i, "a tensor"))
    }
    /// The tensors of parameter `i`.
    pub fn tensors(&self, i: usize) -> Result<&[Tensor]> {
        match self.arg(i) {
            Some(Arg::Tensors(v)) => Ok(v),
            _ => Err(of_other_type(i, "a list of tensors")),
        }
    }
    /// Where the new tensor of parameter `i` lives.
    pub fn target(&self, i: usize) -> Result<&Target> {
        match self.arg(i) {
            Some(Arg::Target(t)) => Ok(t),
            _ => Err(of_other_type(i, "a target")),
        }
    }
    /// Where the new tensor of parameter `i` lives, of the dtype of parameter `dtype` if that was given.
    pub fn target_of(&self, i: usize, dtype: Option<usize>) -> Result<TargetSpec> {
        let target = self.target(i)?.into_target();
        Ok(match dtype.and_then(|d| self.dtype(d)) {
            Some(dtype) => target.dtype(dtype),
            None => target,
        })
    }
    /// The same, with numbers of the generator of parameter `generator`.
    pub(super) fn drawing_target_of(&self, i: usize, dtype: Option<usize>, generator: usize) -> Result<TargetSpec> {
        let target = self.target_of(i, dtype)?;
        Ok(match self.generator(generator) {
            Some(g) => target.generator(g),
            None => target,
        })
    }
    /// The device of parameter `i`.
    pub fn device(&self, i: usize) -> Result<Device> {
        match self.attr(i) {
            Some(AttrValue::Device(d)) => Ok(*d),
            _ => Err(of_other_type(i, "a device")),
        }
    }
    /// The index of parameter `i`.
    pub fn index(&self, i: usize) -> Result<&[TensorIndex]> {
        match self.arg(i) {
            Some(Arg::Index(v)) => Ok(v),
            _ => Err(of_other_type(i, "an index")),
        }
    }
    /// The generator of parameter `i`; none where it was left out.
    pub fn generator(&self, i: usize) -> Option<&Generator> {
        match self.arg(i) {
            Some(Arg::Generator(g)) => Some(g),
            _ => None,
        }
    }
    /// The integer of parameter `i`.
    pub fn int(&self, i: usize) -> Result<i64> {
        match self.attr(i) {
            Some(AttrValue::Int(n)) => Ok(*n),
            _ => Err(of_other_type(i, "an integer")),
        }
    }
    /// The float of parameter `i`.
    pub fn float(&self, i: usize) -> Result<f64> {
        match self.attr(i) {
            Some(AttrValue::Float(x)) => Ok(*x),
            _ => Err(of_other_type(i, "a float")),
        }
    }
    /// The truth value of parameter `i`.
    pub fn bool(&self, i: usize) -> Result<bool> {
        match self.attr(i) {
            Some(AttrValue::Bool(b)) => Ok(*b),
            _ => Err(of_other_type(i, "a bool")),
        }
    }
    /// The number of parameter `i`.
    pub fn scalar(&self, i: usize) -> Result<Scalar> {
        match self.attr(i) {
            Some(AttrValue::Scalar(s)) => Ok(*s),
            _ => Err(of_other_type(i, "a number")),
        }
    }
    /// The text of parameter `i`.
    pub fn text(&self, i: usize) -> Result<&str> {
        match self.attr(i) {
            Some(AttrValue::Str(text)) => Ok(text),
            _ => Err(of_other_type(i, "a text")),
        }
    }
    /// The integers of parameter `i`.
    pub fn ints(&self, i: usize) -> Result<&[i64]> {
        match self.attr(i) {
            Some(AttrValue::Ints(v)) => Ok(v),
            _ => Err(of_other_type(i, "a list of integers")),
        }
    }
    /// The floats of parameter `i`.
    pub fn floats(&self, i: usize) -> Result<&[f64]> {
        match self.attr(i) {
            Some(AttrValue::Floats(v)) => Ok(v),
            _ => Err(of_other_type(i, "a list of floats")),
        }
    }
    /// The sizes of the shape of parameter `i`.
    pub fn shape(&self, i: usize) -> Result<Vec<usize>> {
        let sizes = self.ints(i)?.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>();
        sizes.ok_or_else(|| of_other_type(i, "a shape"))
    }
    /// The element type of parameter `i`; none where it was left out.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        match self.attr(i) {
            Some(AttrValue::DType(d)) => Some(*d),
            _ => None,
        }
    }
    /// The element type of parameter `i`.
    pub fn given_dtype(&self, i: usize) -> Result<DType> {
        self.dtype(i).ok_or_else(|| of_other_type(i, "an element type"))
    }
    /// The nd-SBP of parameter `i`; none where it was left out.
    pub fn sbp(&self, i: usize) -> Option<&NdSbp> {
        match self.attr(i) {
            Some(AttrValue::NdSbp(s)) => Some(s),
            _ => None,
        }
    }
    /// The placement of parameter `i`; none where it was left out.
    pub fn placement(&self, i: usize) -> Option<&Placement> {
        match self.attr(i) {
            Some(AttrValue::Placement(p)) => Some(p),
            _ => None,
        }
    }
}

/// A whole index of one member: a number, or a tensor.
fn one_index(a: &Arg) -> Option<TensorIndex> {
    match a {
        Arg::Tensor(t) => Some(t.into()),
        Arg::Attr(AttrValue::Int(i)) => Some((*i).into()),
        _ => None,
    }
}

/// Matches arguments to parameters, or says why they do not fit.
pub(super) fn bind(sig: &FnSig, args: &[Arg], named: &[(&str, Arg)]) -> std::result::Result<Vec<Option<Arg>>, String> {
    let positional = sig.params.iter().filter(|p| !p.keyword_only).count();
    if args.len() > positional {
        return Err(format!("takes {positional} positional arguments, {} given", args.len()));
    }
    let given_twice = |n: &str| named.iter().filter(|(m, _)| *m == n).count() > 1;
    if let Some((n, _)) = named.iter().find(|(n, _)| given_twice(n)) {
        return Err(format!("'{n}' is given twice"));
    }
    if let Some((n, _)) = named.iter().find(|(n, _)| !sig.params.iter().any(|p| p.name == *n)) {
        return Err(format!("has no parameter '{n}'"));
    }
    let mut bound = vec![];
    for (i, p) in sig.params.iter().enumerate() {
        let by_name = named.iter().find(|(n, _)| *n == p.name).map(|(_, a)| a);
        let by_place = args.get(i).filter(|_| !p.keyword_only);
        if by_place.is_some() && by_name.is_some() {
            return Err(format!("'{}' is given twice: by its place and by its name", p.name));
        }
        let given = by_place.or(by_name);
        let value = match (given, p.kind) {
            (None | Some(Arg::None), _) => match &p.default {
                Some(d) => Some(Arg::Attr(d.clone())),
                None if p.optional => None,
                None => return Err(format!("'{}' is missing", p.name)),
            },
            (Some(a @ Arg::Tensor(_)), ParamKind::Tensor)
            | (Some(a @ Arg::Tensors(_)), ParamKind::TensorTuple)
            | (Some(a @ Arg::Target(_)), ParamKind::Target)
            | (Some(a @ Arg::Generator(_)), ParamKind::Generator)
            | (Some(a @ Arg::Index(_)), ParamKind::TensorIndex) => Some(a.clone()),
            (Some(a), ParamKind::TensorIndex) if one_index(a).is_some() => one_index(a).map(Arg::from),
            (Some(Arg::Attr(v)), ParamKind::Attr(k)) => {
                Some(Arg::Attr(p.accept(k, v.clone()).map_err(|e| e.message().to_string())?))
            }
            (Some(a), k) => return Err(format!("'{}' must be {}, not {}", p.name, k.name(), a.describe())),
        };
        bound.push(value);
    }
    Ok(bound)
}

/// Calls a function of the table, or an op that has no function of its own, by name. Errors, receipts and gradients name
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
    call_at(name, args, named, site)?.tensors().map_err(|e| e.in_call(|| given(name, args, named)).at(site))
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
            .in_call(|| given(name, args, named))
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

/// A call as text.
fn given(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> String {
    let names = named.iter().map(|(n, a)| format!("{n}={}", a.describe()));
    format!("{name}({})", args.iter().map(Arg::describe).chain(names).collect::<Vec<_>>().join(", "))
}

fn call_at(name: &str, args: &[Arg], named: &[(&str, Arg)], site: CallSite) -> Result<Returned> {
    let defs = overloads(name).map_err(|e| e.at(site))?;
    let given = || given(name, args, named);
    match first_fit(&defs, |sig| bind(sig, args, named)) {
        Ok((def, args)) => def.run(Bound { args, site }).map_err(|e| e.in_call(given)),
        Err(there_are) => {
            Err(Error::argument("no overload takes these arguments").in_call(given).at(site).help(there_are))
        }
    }
}

/// The first overload that takes the arguments, with them as it gets them. If there is none: the overloads, each with the reason.
pub(super) fn first_fit(
    defs: &[FnDef],
    bind: impl Fn(&FnSig) -> std::result::Result<Vec<Option<Arg>>, String>,
) -> std::result::Result<(&FnDef, Vec<Option<Arg>>), String> {
    let mut reasons = vec![];
    for def in defs {
        match bind(&def.sig) {
            Ok(args) => return Ok((def, args)),
            Err(why) => reasons.push(format!("    {}\n        {why}", def.sig)),
        }
    }
    Err(format!("there are:\n{}", reasons.join("\n")))
}

impl FnDef {
    /// Meaning of each output of the function's op in a call with these arguments, where a call may leave outputs out or
    /// make several of one: for bindings of other languages, which name what [`run`](FnDef::run) returns. None elsewhere.
    ///
    /// # Errors
    /// The function's op is not registered any more, or an argument is none of its attribute.
    pub fn outputs(&self, bound: &Bound) -> Result<Option<Vec<OutputSlot>>> {
        match &self.body {
            FnBody::Op(op) => OpForm::with(self, op, |form| form.outputs(&self.sig, bound)),
            _ => Ok(None),
        }
    }

    /// Runs the function on bound arguments: one for each parameter of [`FnDef::sig`], defaults filled in, attribute values as
    /// [`FnParam::accept`](super::FnParam::accept) returns them. For bindings of other languages, which match arguments themselves.
    /// Errors, receipts and gradients name the line `bound.site`.
    ///
    /// # Errors
    /// Those of the function.
    pub fn run(&self, bound: Bound) -> Result<Returned> {
        let site = bound.site;
        let _scope = site.scope();
        let returned = match &self.body {
            FnBody::Op(op) => OpForm::with(self, op, |form| form.call(&self.sig, bound, false)).map(Returned::Tensors),
            FnBody::InPlace(op) => {
                OpForm::with(self, op, |form| form.call(&self.sig, bound, true)).map(Returned::Tensors)
            }
            FnBody::Code(f) => f(&bound).map(Returned::Tensors),
            FnBody::Value(f) => f(&bound).map(Returned::Value),
        };
        returned.map_err(|e| e.at(site))
    }
}
