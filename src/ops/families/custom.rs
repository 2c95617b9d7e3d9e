//! Op that stands in the autograd graph for a user's function.

use crate::error::{Error, Result};
use crate::ops::{Grad, OpDef};

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![OpDef::new("apply_custom(xs?...: any) -> ys").map(|o| {
        o.doc("A function of the user's with a backward of its own; called as `apply_custom` in Rust, never by name.")
            .traits(|t| t.hidden = true)
            .check(|_| {
                Err(Error::unsupported("a user's function cannot be called as an op")
                    .help("call `oflow::apply_custom` in Rust"))
            })
            .grad(Grad::None)
    })]
}
