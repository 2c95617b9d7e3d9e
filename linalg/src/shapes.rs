//! Shapes that functions of several ops ask for, and identities of these shapes.

use oflow::functional::ones_like;
use oflow::prelude::*;

/// A matrix dim counted from the end.
pub(crate) fn size(a: &Tensor, back: usize) -> usize {
    a.ndim().checked_sub(back).map_or(1, |d| a.shape()[d])
}

/// Errors of the ops inside say which function called them.
pub(crate) fn named<R>(name: &str, made: Result<R>) -> Result<R> {
    made.map_err(|e| e.within(|| name.to_string()))
}

/// Refuses what is no batch of matrices, for functions whose first op would name another.
pub(crate) fn matrices(name: &str, a: &Tensor) -> Result<()> {
    match a.ndim() {
        0 | 1 => Err(Error::shape(format!("{name} needs a matrix or a batch of matrices, not {a:?}"))),
        _ => Ok(()),
    }
}

pub(crate) fn square(name: &str, a: &Tensor) -> Result<()> {
    matrices(name, a)?;
    match size(a, 1) == size(a, 2) {
        true => Ok(()),
        false => Err(Error::shape(format!("{name} needs square matrices, not {a:?}"))),
    }
}

/// The identity beside square matrices that have elements.
pub(crate) fn identity(a: &Tensor) -> Result<Tensor> {
    ones_like(&a.detach().select(-1, 0)?)?.diag_embed(0)
}

/// Ones on the diagonal of matrices of this shape.
pub(crate) fn diagonal_ones(like: &Tensor) -> Result<Tensor> {
    ones_like(&like.detach())?.tril(0)?.triu(0)
}
