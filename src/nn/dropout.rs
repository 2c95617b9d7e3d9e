//! Dropout as a module: it knows whether it trains.

use super::Mode;
use crate::context::current;
use crate::error::Result;
use crate::tensor::Tensor;

/// Dropout as a module. In training mode it sets elements to zero with probability p and multiplies the others by 1 / (1 - p);
/// in evaluation mode it returns its input. The mask does not depend on placement or SBP.
pub struct Dropout {
    p: f64,
    training: Mode,
}
crate::module!(Dropout { training });

impl Dropout {
    /// Makes a module in training mode. If `p` is not within 0 and 1, the first `forward` returns an error.
    pub fn new(p: f64) -> Dropout {
        Dropout { p, training: Mode(true) }
    }
    /// Whether the module is in training mode.
    pub fn training(&self) -> bool {
        self.training.0
    }
    /// Returns `x` with dropped elements in training mode. In evaluation mode, and with p = 0, returns `x` itself, like
    /// PyTorch's module. Any shape.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if !self.training.0 {
            return Ok(x.clone());
        }
        if self.p == 0.0 {
            // The ordinal is drawn all the same: later numbers must not depend on a rate being zero.
            current().draw(x.is_global());
            return Ok(x.clone());
        }
        x.dropout(self.p)
    }
}
