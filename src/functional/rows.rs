//! How a function of several ops is written down: its text, its docs and its code stand in one place, and everything else is made
//! of them by `cargo xtask codegen` (methods and functions in Rust, call by name) or read from them (`generated/reference.md`).

use super::bind::Bound;
use crate::error::Result;
use crate::ops::AttrValue;
use crate::tensor::Tensor;

/// A function of the table that is not one op.
pub(super) struct Row {
    /// Heading under which lists show it.
    pub subject: &'static str,
    /// Lines of documentation.
    pub doc: &'static [&'static str],
    /// Signature of the function, as text.
    pub text: &'static str,
    /// Body of the function.
    pub does: Does,
}

/// Body of a function of the table.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// Calls this function of Rust, which takes the parameters as plain values and the caller's line. Code that reads them by name,
    /// and the method or function that users call, are generated.
    Body {
        /// Path of the function of Rust.
        path: &'static str,
        /// Name of the free function that users call; empty: the text's name, and a method where the first parameter is a tensor.
        function: &'static str,
    },
    /// By name this; what users of Rust call is written by hand, because its types are Rust's own.
    ByName(fn(&Bound) -> Result<Vec<Tensor>>),
    /// The same, for what is no tensor.
    Value(fn(&Bound) -> Result<AttrValue>),
}

/// Functions with a body: `/// docs`, `"text" = body;` or `"text" = body as fn name_in_rust;`.
macro_rules! functions {
    ($list:ident, $subject:literal; $($(#[doc = $doc:literal])* $text:literal = $body:ident $(as fn $function:ident)?;)*) => {
        pub(super) const $list: &[$crate::functional::rows::Row] = &[$($crate::functional::rows::Row {
            subject: $subject,
            doc: &[$($doc),*],
            text: $text,
            does: $crate::functional::rows::Does::Body {
                path: concat!(module_path!(), "::", stringify!($body)),
                function: concat!($(stringify!($function))?),
            },
        }),*];
    };
}

/// Functions that are only called by name, because what users of Rust call is written by hand: `/// docs`, `"text" = |b| code;`. The
/// code gives tensors ([`Does::ByName`]) or another value ([`Does::Value`]).
macro_rules! by_name {
    ($list:ident, $subject:literal, $gives:ident; $($(#[doc = $doc:literal])* $text:literal = |$b:ident| $code:expr;)*) => {
        pub(super) const $list: &[$crate::functional::rows::Row] = &[$($crate::functional::rows::Row {
            subject: $subject,
            doc: &[$($doc),*],
            text: $text,
            does: $crate::functional::rows::Does::$gives(|$b| $code),
        }),*];
    };
}
