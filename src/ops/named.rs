//! Attributes, inputs and outputs by name: one way for kernels, inference, gradients, lowerings and checks of numbers.

use super::attr::{AttrKind, AttrValue, Attrs};
use super::def::OpDef;
use super::params::OpParams;
use super::typed::FromAttr;
use crate::error::{Error, Result};
use oflow_kernels::{Dims, Scalar};
use smallvec::SmallVec;

/// Name or position of an input or runtime attribute.
pub trait Which: Copy {
    /// Position of the input.
    ///
    /// # Errors
    /// The op has no input of that name, or the name stands for several tensors.
    fn input_of(self, op: &OpDef) -> Result<usize>;
    /// Position of the runtime attribute.
    ///
    /// # Errors
    /// The op has no runtime attribute of that name.
    fn runtime_of(self, op: &OpDef) -> Result<usize>;
}

impl Which for usize {
    fn input_of(self, _op: &OpDef) -> Result<usize> {
        Ok(self)
    }
    fn runtime_of(self, _op: &OpDef) -> Result<usize> {
        Ok(self)
    }
}

impl Which for &str {
    fn input_of(self, op: &OpDef) -> Result<usize> {
        let inputs = || list(op.sig.inputs.iter().map(|i| i.name.as_str()));
        let at = op.sig.input(self).ok_or_else(|| unknown(op, "input", self, inputs()))?;
        match op.sig.inputs[at].variadic {
            false => Ok(at),
            true => Err(Error::argument(format!("input '{self}' of {} stands for several tensors", op.sig.name))
                .help("ask for all of them: `inputs_of`, or for one by its position")),
        }
    }
    fn runtime_of(self, op: &OpDef) -> Result<usize> {
        let known = || list(op.sig.runtime.iter().map(|a| a.name.as_str()));
        op.sig.runtime_attr(self).ok_or_else(|| unknown(op, "runtime attribute", self, known()))
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

/// The error of a name that the declaration does not have; `known` lists those that it has.
#[cold]
pub(super) fn unknown(op: &OpDef, what: &str, name: &str, known: String) -> Error {
    Error::argument(format!("{} has no {what} '{name}'", op.sig.name)).help(format!("it has: {known}"))
}

/// Position of an output among those that a call makes: the first, where the name stands for several; none where the call does not
/// make it. `given`: whether the i-th tensor of the call is there.
///
/// # Errors
/// The op has no output of that name.
pub(super) fn output_of(
    op: &OpDef,
    name: &str,
    attrs: &Attrs,
    given: impl Iterator<Item = bool>,
) -> Result<Option<usize>> {
    let known = || list(op.sig.outputs.iter().map(|o| o.as_str()));
    let at = op.sig.outputs.iter().position(|o| *o == name).ok_or_else(|| unknown(op, "output", name, known()))?;
    if !op.sig.outputs_vary() {
        return Ok(Some(at));
    }
    let given: SmallVec<[bool; 8]> = given.collect();
    Ok(match op.sig.outputs_made(attrs, &given) {
        Some(made) => made.iter().position(|o| *o == at),
        None => Some(at),
    })
}

/// The positions of the tensors of a call that an input stands for: one, or those of a variadic input.
///
/// # Errors
/// The op has no input of that name.
pub(super) fn inputs_of(op: &OpDef, name: &str, given: usize) -> Result<impl Iterator<Item = usize> + use<>> {
    let sig = &op.sig;
    let known = || list(sig.inputs.iter().map(|i| i.name.as_str()));
    let at = sig.input(name).ok_or_else(|| unknown(op, "input", name, known()))?;
    let (step, end) = match sig.inputs[at].variadic {
        true => (sig.repeating(), given),
        false => (1, (at + 1).min(given)),
    };
    Ok((at..end.max(at)).step_by(step.max(1)))
}

/// The attributes of one call. Without the values of runtime attributes where a plan must not depend on them.
#[derive(Clone, Copy)]
pub(crate) struct AttrsOf<'a> {
    pub(crate) op: &'a OpDef,
    pub(crate) attrs: &'a Attrs,
    pub(crate) runtime: Option<&'a [Scalar]>,
}

impl<'a> AttrsOf<'a> {
    /// The plan attribute of that name. Optional ones at the end may be left out of a call.
    pub(crate) fn attr(&self, name: &str) -> Result<&'a AttrValue> {
        const ABSENT: &AttrValue = &AttrValue::Absent;
        let sig = &self.op.sig;
        let optional = |i: usize| (sig.attrs[i].default == Some(AttrValue::Absent)).then_some(ABSENT);
        let found = sig.attr(name).and_then(|i| self.attrs.get(i).or_else(|| optional(i)));
        found.ok_or_else(|| self.no_attr(name))
    }

    /// The parameters as a struct.
    pub(crate) fn params<P: OpParams>(&self) -> Result<P> {
        P::read(&|name| match self.runtime(name) {
            Some(s) => {
                Ok(self.op.sig.runtime_attr(name).map_or(s.into(), |i| number_of(self.op.sig.runtime[i].kind, s)))
            }
            None => self.attr(name).cloned(),
        })
    }

    #[cold]
    fn no_attr(&self, name: &str) -> Error {
        let (op, sig) = (self.op, &self.op.sig);
        if sig.runtime_attr(name).is_some() {
            let why = match self.runtime {
                Some(_) => "is a runtime attribute: a number, and no other value",
                None => "is a runtime attribute, whose value is not known when a call is planned",
            };
            return Error::argument(format!("attribute '{name}' of {} {why}", sig.name));
        }
        let all = sig.attrs.iter().chain(&sig.runtime).map(|a| a.name.as_str());
        unknown(op, "attribute", name, list(all))
    }

    /// A number among the runtime attributes; none where there is no such runtime attribute.
    fn runtime(&self, name: &str) -> Option<Scalar> {
        self.runtime?.get(self.op.sig.runtime_attr(name)?).copied()
    }

    /// A plan or runtime attribute as a type of Rust.
    pub(crate) fn read<T: FromAttr<'a>>(&self, name: &str) -> Result<T> {
        if T::IS_NUMBER
            && let Some(s) = self.runtime(name)
        {
            return T::from_number(s).ok_or_else(|| self.wrong(name, T::WHAT, &s.into()));
        }
        let value = self.attr(name)?;
        T::from_attr(value).ok_or_else(|| self.wrong(name, T::WHAT, value))
    }
    /// An integer that is a size.
    pub(crate) fn size(&self, name: &str) -> Result<usize> {
        as_size(self.read(name)?)
    }
    /// A list of integers that are sizes.
    pub(crate) fn sizes(&self, name: &str) -> Result<Dims> {
        self.read::<&[i64]>(name)?.iter().map(|n| as_size(*n)).collect()
    }

    #[cold]
    fn wrong(&self, name: &str, wanted: &str, v: &AttrValue) -> Error {
        Error::argument(format!("attribute '{name}' of {} is {v}, which is not {wanted}", self.op.sig.name))
    }
}

/// A runtime attribute as a value of its declared type.
fn number_of(kind: AttrKind, s: Scalar) -> AttrValue {
    match (kind, s) {
        (AttrKind::Float, s) => AttrValue::Float(s.to_f64()),
        (AttrKind::Int, Scalar::Int(i)) => AttrValue::Int(i),
        (AttrKind::Bool, Scalar::Bool(b)) => AttrValue::Bool(b),
        (_, s) => AttrValue::Scalar(s),
    }
}

/// Converts an attribute to a size; the only place that does.
fn as_size(n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::shape(format!("a size cannot be {n}")).help("sizes are 0 or more"))
}

/// Gives a context the methods that read attributes by name. `$of` makes an [`AttrsOf`] of it.
macro_rules! attrs_by_name {
    ($self:ident, $of:expr, {$($what:literal $name:ident -> $ty:ty = $read:ident;)*}) => {
        $(
            #[doc = concat!($what, ", by name.")]
            ///
            /// # Errors
            /// The op has no such attribute (the error lists those that it has), or its value is of another type.
            pub fn $name(&$self, name: &str) -> Result<$ty> {
                $of.$read(name)
            }
        )*
    };
    ($self:ident, $of:expr, $life:lifetime) => {
        $crate::ops::named::attrs_by_name!($self, $of, {
            "Plan attribute" attr -> &$life $crate::ops::AttrValue = attr;
        });
        $crate::ops::named::attrs_by_name!($self, $of, $life, but attr);
    };
    ($self:ident, $of:expr, $life:lifetime, but attr) => {
        /// The parameters as a struct: all its fields, by name.
        ///
        /// # Errors
        /// The op lacks one of them, or it holds a value that the field cannot; a rule that a plan depends on asks for a runtime
        /// attribute.
        pub fn params<P: $crate::ops::OpParams>(&$self) -> Result<P> {
            $of.params()
        }
        $crate::ops::named::attrs_by_name!($self, $of, {
            "Text attribute" str -> &$life str = read;
            "List of integers" ints -> &$life [i64] = read;
            "List of floats" floats -> &$life [f64] = read;
            "List of other values" list -> &$life [$crate::ops::AttrValue] = read;
            "Placement attribute" placement_attr -> &$life $crate::placement::Placement = read;
            "nd-SBP attribute" sbp_attr -> &$life $crate::sbp::NdSbp = read;
            "Integer attribute" int -> i64 = read;
            "Float attribute (an integer is accepted)" float -> f64 = read;
            "Bool attribute" bool -> bool = read;
            "Number: an int, float, bool or scalar attribute" scalar -> oflow_kernels::Scalar = read;
            "Element type attribute" dtype_attr -> oflow_kernels::DType = read;
            "Device attribute" device_attr -> $crate::placement::Device = read;
            "Integer attribute that is a size (an error where it is negative)" size -> usize = size;
            "List attribute whose members are sizes (an error where one is negative)" sizes -> oflow_kernels::Dims = sizes;
        });
    };
}
pub(super) use attrs_by_name;
