//! Python as a caller of functions: the names of its arguments, what it may leave out, and its words. `read` reads the objects.

use crate::errors::Unfit;
use crate::keywords;
use crate::place;
use crate::read::{self, Index, Object};
use crate::signature::{self, PLACE};
use crate::types::MemoryFormat;
use oflow::functional::bind::{Language, Words};
use oflow::functional::{Arg, FnParam, FnSig};
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};
use std::borrow::Cow;

/// Position of the parameter that a keyword names.
pub fn named(sig: &FnSig, keyword: &str) -> Option<usize> {
    let all = &sig.params;
    let found = all.iter().position(|p| signature::name_of(p) == keyword && p.kind != ParamKind::Target);
    found.or_else(|| keywords::parameter(sig, keyword))
}

/// Python as a caller of functions, in the binding of one call to one overload.
pub struct Arguments<'b, 'a, 'py> {
    /// Whether the overload has a parameter for the place of a new tensor.
    makes_tensor: bool,
    /// Values for parameters that the call leaves out.
    base: &'b [Option<Arg>],
    place: place::Given<'a, 'py>,
    /// Whether the call asks for leaves that require a gradient.
    pub requires_grad: bool,
    /// Indices of which values are not tensors yet, with the number of each among the index arguments.
    pub unmade: Vec<(usize, Index)>,
    indices: usize,
    /// Whether tensors may be given one by one.
    variadic: bool,
}

impl<'b> Arguments<'b, '_, '_> {
    /// For an overload, which may take its tensors one by one; `base` has values for parameters that the call leaves out.
    pub fn of(makes_tensor: bool, variadic: bool, base: &'b [Option<Arg>]) -> Self {
        Arguments {
            makes_tensor,
            base,
            place: Default::default(),
            requires_grad: false,
            unmade: vec![],
            indices: 0,
            variadic,
        }
    }
}

impl<'a, 'py> Language for Arguments<'_, 'a, 'py> {
    type Value = Object<'a, 'py>;
    type Taken = Arg;
    type Error = PyErr;
    const WORDS: Words = Words::Python;

    fn name<'p>(&self, p: &'p FnParam) -> Cow<'p, str> {
        signature::name_of(p)
    }
    fn named(&self, sig: &FnSig, keyword: &str) -> Option<usize> {
        named(sig, keyword)
    }
    fn is_absent(&self, p: &FnParam, o: Object<'a, 'py>) -> bool {
        o.is_none() && !p.is_required()
    }
    fn convert(&mut self, p: &FnParam, passed: &[Object<'a, 'py>]) -> Result<Arg, Unfit> {
        // Of a function that takes tensors one by one.
        if p.kind == ParamKind::TensorTuple && (self.variadic || passed.len() > 1) {
            let one_by_one = passed.len() > 1 || passed.iter().any(|o| o.is_instance_of::<crate::tensor::Tensor>());
            if one_by_one {
                return passed.iter().map(|o| read::tensor(*o)).collect::<Result<_, _>>().map(Arg::Tensors);
            }
        }
        let [o] = *passed else {
            return Ok(Arg::Attr(AttrValue::Ints(passed.iter().map(|o| read::int(*o)).collect::<Result<_, _>>()?)));
        };
        if p.kind == ParamKind::TensorIndex {
            let index = read::index(o)?;
            self.indices += 1;
            if index.values.is_empty() {
                return Ok(Arg::Index(index.members));
            }
            self.unmade.push((self.indices - 1, index));
            return Ok(Arg::Index(vec![]));
        }
        read::convert(p, o)
    }
    fn other_keyword(&mut self, keyword: &str, o: Object<'a, 'py>) -> Result<bool, Unfit> {
        let at = PLACE.iter().position(|(name, ..)| *name == keyword).filter(|_| self.makes_tensor);
        if let Some(at) = at {
            self.place[at] = Some(o).filter(|o| !o.is_none());
            return Ok(true);
        }
        Ok(is_about_memory(keyword) && is_of_memory(o))
    }
    fn supplies(&self, i: usize, p: &FnParam) -> bool {
        p.kind == ParamKind::Target || self.base.get(i).is_some_and(Option::is_some)
    }
    fn left_out(&mut self, i: usize, p: &FnParam) -> Result<Option<Arg>, Unfit> {
        if p.kind == ParamKind::Target {
            let (target, requires_grad) = place::target(&self.place)?;
            self.requires_grad = requires_grad;
            return Ok(Some(Arg::Target(target)));
        }
        let base = self.base.get(i).cloned().flatten();
        Ok(base.or_else(|| p.default.clone().map(Arg::Attr)))
    }
    fn type_of(&self, p: &FnParam) -> String {
        takes(p)
    }
    fn describe(&self, o: Object<'a, 'py>) -> String {
        found(o).unwrap_or_else(|_| "?".into())
    }
}

/// Whether an object is one that keywords about memory take.
fn is_of_memory(o: Object<'_, '_>) -> bool {
    o.is_none() || o.is_instance_of::<MemoryFormat>() || o.is_instance_of::<PyBool>()
}

/// The type of an object; of a list or tuple with those of its members.
pub fn found(object: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let name = kind_of(object)?;
    if !(object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()) {
        return Ok(name);
    }
    let mut kinds: Vec<String> = vec![];
    for member in object.try_iter()? {
        let kind = kind_of(member?.as_borrowed())?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(if kinds.is_empty() { format!("empty {name}") } else { format!("{name} of {}", kinds.join(", ")) })
}

/// The class of an object, with its library where that has a class of the name that oflow has.
fn kind_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    if let Some(class) = read::of_another_library(&object)? {
        return Ok(format!("{class} (`oflow.from_dlpack` takes it)"));
    }
    let name = object.get_type().name()?.to_string();
    match name.as_str() {
        "Tensor" | "dtype" | "device" | "Generator" => {
            let class = read::class_of(&object.get_type())?;
            Ok(if class.starts_with("oflow.") { name } else { class })
        }
        _ => Ok(name),
    }
}

/// Types that a parameter takes, in Python's words.
pub fn takes(p: &FnParam) -> String {
    let one = match p.kind {
        ParamKind::Tensor => "Tensor",
        ParamKind::TensorTuple => "a list or tuple of Tensors",
        ParamKind::Target => "a device",
        ParamKind::TensorIndex => "an index (int, slice, None, ..., Tensor or a tuple of them)",
        ParamKind::Generator => "Generator",
        ParamKind::Attr(k) => match k {
            AttrKind::Int => "int",
            AttrKind::Float => "float",
            AttrKind::Bool => "bool",
            AttrKind::Str => "str",
            AttrKind::Ints | AttrKind::Shape => "int or a tuple of ints",
            AttrKind::Floats => "float or a tuple of floats",
            AttrKind::DType => "oflow.dtype",
            AttrKind::Scalar => "Number",
            AttrKind::Bytes => "bytes",
            AttrKind::Device => "a device",
            AttrKind::Placement => "oflow.placement",
            AttrKind::NdSbp => "an sbp or a tuple of sbps",
            AttrKind::IntLists | AttrKind::Shapes => "a list of tuples of ints",
            AttrKind::Placements => "a list of placements",
            AttrKind::NdSbps => "a list of sbps",
            AttrKind::Bools => "a list of bools",
            AttrKind::Strs => "a list of strs",
            AttrKind::DTypes => "a list of dtypes",
            AttrKind::Scalars => "a list of Numbers",
            _ => "something else",
        },
    };
    let many = p.len.map_or(String::new(), |n| format!(" (of {n})"));
    format!("{one}{many}{}", if p.optional { " or None" } else { "" })
}

/// PyTorch's keywords that say how a result lies in memory or how it is computed. They are taken and have no effect.
fn is_about_memory(keyword: &str) -> bool {
    matches!(keyword, "memory_format" | "layout" | "pin_memory" | "non_blocking" | "sparse_grad")
}
