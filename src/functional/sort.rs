//! Functions made of the ops of order: `sort`, `median`.

use super::{invoke, op};
use crate::error::{CallSite, Result};
use crate::interpreter::Outputs;
use crate::tensor::Tensor;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Choice";
    /// The indices that sort each line along `dim`: those of `sort`.
    "argsort(Tensor x, Int dim=-1, Bool descending=false, *, Bool stable=false) -> Tensor" = argsort;
    /// x sorted along its first dim.
    "msort(Tensor x) -> Tensor" = msort;
    /// The median of all elements, of an even number the lower one of the two. NaN wins, and of no floats at all it is NaN. Equal
    /// elements share the gradient.
    "median(Tensor x) -> Tensor" = median_of_all as fn median_of_all;
}

fn sorted(x: &Tensor, dim: i64, descending: bool, stable: bool, site: CallSite) -> Result<Outputs> {
    invoke(op!("sort"), &[Some(x)], smallvec![dim.into(), descending.into(), stable.into()], smallvec![], site)
}

pub(super) fn argsort(x: &Tensor, dim: i64, descending: bool, stable: bool, site: CallSite) -> Result<Tensor> {
    Ok(sorted(&x.detach(), dim, descending, stable, site)?.swap_remove(1))
}

pub(super) fn msort(x: &Tensor, site: CallSite) -> Result<Tensor> {
    Ok(sorted(x, 0, false, true, site)?.swap_remove(0))
}

pub(super) fn median_of_all(x: &Tensor, site: CallSite) -> Result<Tensor> {
    Ok(invoke(op!("middle"), &[Some(x)], smallvec![], smallvec![], site)?.swap_remove(0))
}
