//! Ops of oflow in shared libraries. This crate is the interface ([`abi`], from which `oflow_op.h` is made), and how a library is
//! written in Rust. It has no dependencies, so that such a library is built within seconds:
//!
//! ```
//! use oflow_op::{Call, Library, Op, Outputs, Result};
//!
//! fn softsign(call: &Call, out: &mut Outputs) -> Result<()> {
//!     let (x, scale) = (call.input::<f32>("x")?, call.float("scale")? as f32);
//!     let y = out.slice::<f32>(0)?;
//!     for (y, x) in y.iter_mut().zip(x) {
//!         *y = scale * x / (1.0 + x.abs());
//!     }
//!     Ok(())
//! }
//!
//! oflow_op::library! {
//!     Library::new("mine").op(
//!         Op::new("softsign(x: f32; scale: runtime float = 1.0) -> y")
//!             .doc("x / (1 + |x|), scaled.")
//!             .signatures(&["S(0) -> S(0)"])
//!             .gradient("none")
//!             .samples(&["f32[4, 6]", "f32[5]; scale=0.5"])
//!             .cpu(softsign),
//!     )
//! }
//! # fn main() {}
//! ```
//!
//! A program loads it with `oflow::libraries::build_and_load(&["softsign.rs"], …)`. In C and C++ the same is said with `oflow_op.h` and
//! `oflow_op.hpp`, which this crate carries ([`SOURCES`]).

pub mod abi;
mod call;
mod calls;
mod declare;
mod infer;

pub use call::{Bf16, Bool, Call, Element, F16, Outputs, View};
pub use declare::{Devices, Kernel, Library, Op, export};
pub use infer::{Infer, Type};

use std::fmt;

/// Why a kernel or a rule failed: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// Error with a sentence that says why.
    pub fn new(why: impl Into<String>) -> Error {
        Error(why.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<&str> for Error {
    fn from(why: &str) -> Error {
        Error(why.to_string())
    }
}

impl From<String> for Error {
    fn from(why: String) -> Error {
        Error(why)
    }
}

/// Result of a kernel or a rule.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The files of this crate and the headers for C and C++, `(path, text)`: what a program needs to build a library.
pub const SOURCES: &[(&str, &str)] = &[
    ("src/lib.rs", include_str!("lib.rs")),
    ("src/abi.rs", include_str!("abi.rs")),
    ("src/call.rs", include_str!("call.rs")),
    ("src/calls.rs", include_str!("calls.rs")),
    ("src/declare.rs", include_str!("declare.rs")),
    ("src/infer.rs", include_str!("infer.rs")),
    ("include/oflow_op.h", include_str!("../include/oflow_op.h")),
    ("include/oflow_op.hpp", include_str!("../include/oflow_op.hpp")),
    ("include/oflow_value.hpp", include_str!("../include/oflow_value.hpp")),
    ("include/oflow_call.hpp", include_str!("../include/oflow_call.hpp")),
    ("include/oflow_function.hpp", include_str!("../include/oflow_function.hpp")),
    ("include/oflow_params.hpp", include_str!("../include/oflow_params.hpp")),
    ("include/oflow_tensor.h", TENSOR_HEADER),
];

/// Tensors by index, for C++ and for CUDA kernels: `oflow_tensor.h`.
pub const TENSOR_HEADER: &str = include_str!("../include/oflow_tensor.h");

/// Exports the ops of a library: `library! { Library::new("mine").op(…) }`. Once in a library.
#[macro_export]
macro_rules! library {
    ($library:expr) => {
        /// What oflow calls when it loads the library.
        ///
        /// # Safety
        /// `host` is oflow's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn oflow_op_library(
            host: *const $crate::abi::oflow_host,
        ) -> *const $crate::abi::oflow_library {
            // SAFETY: passed on.
            unsafe { $crate::export(host, || $library) }
        }
    };
}
