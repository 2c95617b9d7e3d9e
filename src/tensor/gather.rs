//! Tensors that are stored split and read whole: the mark of such a tensor, and of what it was gathered to.
//!
//! The interpreter boxes a marked tensor before each call that reads it. [`nn::zero`](crate::nn::zero) marks parameters.

use super::GlobalRef;
use super::handle::Tensor;

/// The layout in which calls read a tensor that is stored in another one.
#[derive(Clone)]
pub(crate) struct ForUse {
    /// The type that calls get.
    pub to: GlobalRef,
    /// Whether the gathered form is remembered until the tensor changes; else it lives for one call.
    pub keeps: bool,
    /// Whether the gradient lies as the gathered form does, and not as the tensor.
    pub whole_gradient: bool,
}

/// Role of a handle in ZeRO's unsharding; most have none.
pub(super) enum Gathering {
    /// Calls read it in another layout.
    Marked(ForUse),
    /// The form of a marked tensor that one call reads.
    From(Tensor),
}

impl Tensor {
    /// Marks a new handle: calls read it in another layout. A handle is marked once.
    pub(crate) fn set_for_use(&self, how: ForUse) {
        let _ = self.inner().gathering.set(Box::new(Gathering::Marked(how)));
    }
    /// The layout in which calls read it, where that is not its own.
    #[inline]
    pub(crate) fn for_use(&self) -> Option<&ForUse> {
        match self.inner().gathering.get().map(|g| &**g) {
            Some(Gathering::Marked(how)) => Some(how),
            _ => None,
        }
    }
    /// Notes the marked tensor of which this is a form for one call.
    pub(crate) fn set_gathered_from(&self, source: &Tensor) {
        let _ = self.inner().gathering.set(Box::new(Gathering::From(source.clone())));
    }
    /// The marked tensor of which this is a form for one call.
    #[inline]
    pub(crate) fn gathered_from(&self) -> Option<&Tensor> {
        match self.inner().gathering.get().map(|g| &**g) {
            Some(Gathering::From(source)) => Some(source),
            _ => None,
        }
    }
}
