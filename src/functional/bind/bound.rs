//! The bound arguments of one call, with their typed reads.

use super::arg::Arg;
use crate::context::Generator;
use crate::error::{CallSite, Error, Result};
use crate::functional::index::TensorIndex;
use crate::interpreter::Target;
use crate::ops::{AttrValue, FromAttr};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};

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

/// Reads of attribute values: as a result where the parameter has a value in every call, as an option where it may be left out.
macro_rules! attributes {
    ($($what:literal $name:ident -> Result<$ty:ty>;)*) => {$(
        #[doc = concat!($what, " of parameter `i`.")]
        ///
        /// # Errors
        /// It is not declared as one, or was left out.
        pub fn $name(&self, i: usize) -> Result<$ty> {
            self.read(i)
        }
    )*};
    ($($what:literal $name:ident -> Option<$ty:ty>;)*) => {$(
        #[doc = concat!($what, " of parameter `i`; none where it was left out.")]
        pub fn $name(&self, i: usize) -> Option<$ty> {
            self.attr(i).and_then(FromAttr::from_attr)
        }
    )*};
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
    /// The generator of parameter `i`; none where it was left out.
    pub fn generator(&self, i: usize) -> Option<&Generator> {
        match self.arg(i) {
            Some(Arg::Generator(g)) => Some(g),
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
    /// The index of parameter `i`.
    pub fn index(&self, i: usize) -> Result<&[TensorIndex]> {
        match self.arg(i) {
            Some(Arg::Index(v)) => Ok(v),
            _ => Err(of_other_type(i, "an index")),
        }
    }
    /// The sizes of the shape of parameter `i`.
    pub fn shape(&self, i: usize) -> Result<Vec<usize>> {
        let sizes = self.ints(i)?.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>();
        sizes.ok_or_else(|| of_other_type(i, "a shape"))
    }

    /// The attribute value of parameter `i` as a type of Rust.
    fn read<'a, T: FromAttr<'a>>(&'a self, i: usize) -> Result<T> {
        self.attr(i).and_then(T::from_attr).ok_or_else(|| of_other_type(i, T::WHAT))
    }
    attributes! {
        "The integer" int -> Result<i64>;
        "The float" float -> Result<f64>;
        "The truth value" bool -> Result<bool>;
        "The number" scalar -> Result<Scalar>;
        "The text" text -> Result<&str>;
        "The integers" ints -> Result<&[i64]>;
        "The floats" floats -> Result<&[f64]>;
        "The device" device -> Result<Device>;
        "The element type" given_dtype -> Result<DType>;
    }
    attributes! {
        "The element type" dtype -> Option<DType>;
        "The nd-SBP" sbp -> Option<&NdSbp>;
        "The placement" placement -> Option<&Placement>;
    }
}
