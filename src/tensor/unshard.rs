//! Tensors that are stored split and read whole: the mark of such a tensor, and of what it was gathered to.
//!
//! The interpreter boxes a marked tensor before each call that reads it. [`nn::zero`](crate::nn::zero) marks parameters.

use super::inner::{ForUse, Tensor, Unsharding};

impl Tensor {
    /// Marks a new handle: calls read it in another layout. A handle is marked once.
    pub(crate) fn set_for_use(&self, how: ForUse) {
        let _ = self.inner().gathering.set(Box::new(Unsharding::Marked(how)));
    }
    /// The layout in which calls read it, where that is not its own.
    #[inline]
    pub(crate) fn for_use(&self) -> Option<&ForUse> {
        match self.inner().gathering.get().map(|g| &**g) {
            Some(Unsharding::Marked(how)) => Some(how),
            _ => None,
        }
    }
    /// Notes the marked tensor of which this is an unsharded copy for one call.
    pub(crate) fn set_gathered_from(&self, source: &Tensor) {
        let _ = self.inner().gathering.set(Box::new(Unsharding::From(source.clone())));
    }
    /// The marked tensor of which this is an unsharded copy for one call.
    #[inline]
    pub(crate) fn gathered_from(&self) -> Option<&Tensor> {
        match self.inner().gathering.get().map(|g| &**g) {
            Some(Unsharding::From(source)) => Some(source),
            _ => None,
        }
    }
}
