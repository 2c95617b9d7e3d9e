//! Derived implementations of traits of oflow: `#[derive(OpParams)]`, by which a struct becomes the attributes of an op
//! (`oflow::ops::OpParams`), and `#[derive(Module)]`, by which its fields become parts of a module (`oflow::nn::Module`).

mod module;
mod params;

use syn::{DeriveInput, Error, parse_macro_input};

/// Implements `oflow::ops::OpParams` for a struct with named fields.
///
/// A field may say `#[param(default = "1 / 8")]`, in the grammar of a declaration, and `#[param(runtime)]`, for a number that a plan does
/// not depend on.
#[proc_macro_derive(OpParams, attributes(param))]
pub fn op_params(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    params::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `oflow::nn::Module` for a struct or an enum.
///
/// Each field is a part: a parameter, a buffer, a module, a constant, or a container of these. A field that is none says
/// `#[module(skip)]`. Parts have the names of their fields, joined by dots; fields of tuple structs have their numbers. The only field of
/// a tuple struct or of a tuple variant has no name of its own, nor has a variant.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    module::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}
