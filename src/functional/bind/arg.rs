//! An argument as functions take it.

use crate::context::Generator;
use crate::functional::index::{TensorIndex, text_of};
use crate::interpreter::Target;
use crate::ops::AttrValue;
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
    /// The argument in messages: a tensor by its type, a value as text.
    pub(crate) fn describe(&self) -> String {
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
