//! Tensors of a module that are not trained.

use super::module::own;
use crate::tensor::Tensor;

/// A tensor that belongs to a module and is not a parameter: it gets no gradient, optimizers do not see it, and
/// [`Module::to_global`](super::Module::to_global) places it. Running statistics are buffers.
///
/// ```
/// use oflow::nn::{Buffer, Linear, Module};
/// use oflow::prelude::*;
/// #[derive(oflow::nn::Module)]
/// struct Centered {
///     fc: Linear,
///     mean: Buffer,
/// }
///
/// let net = Centered { fc: Linear::new(3, 2, Device::Cpu)?, mean: Buffer::new(zeros([3], Device::Cpu)?) };
/// assert_eq!(net.parameters().len(), 2);
/// let names: Vec<String> = net.named_buffers().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["mean"]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Buffer {
    tensor: Tensor,
    persistent: bool,
}

impl Buffer {
    /// Makes a buffer that checkpoints keep.
    pub fn new(tensor: Tensor) -> Buffer {
        Buffer { tensor: unrecorded(tensor), persistent: true }
    }
    /// Makes a buffer that no checkpoint keeps: a table that the module can make again.
    pub fn transient(tensor: Tensor) -> Buffer {
        Buffer { persistent: false, ..Buffer::new(tensor) }
    }
    /// Returns the tensor. To change its values write into it in place, without recording.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }
    /// Puts another tensor in its place.
    pub fn set(&mut self, tensor: Tensor) {
        self.tensor = unrecorded(tensor);
    }
    /// Whether checkpoints keep it.
    pub fn persistent(&self) -> bool {
        self.persistent
    }
}

/// The same values without a place in an autograd graph, in a tensor that may be written.
fn unrecorded(tensor: Tensor) -> Tensor {
    own(if tensor.requires_grad() { tensor.detach() } else { tensor })
}
