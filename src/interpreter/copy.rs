//! Writing a value in place.

use super::call::Call;
use crate::error::{CallSite, Result};
use crate::op;
use crate::tensor::Tensor;

/// Writes the value of `from` into `to`, in place.
pub(super) fn assign(to: &Tensor, from: &Tensor, site: CallSite) -> Result<()> {
    Call::new(op!("assign")?, &[Some(to), Some(from)]).at(site).run().map(drop)
}
