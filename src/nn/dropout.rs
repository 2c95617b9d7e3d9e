//! Dropout as a module: it knows whether it trains.

use super::module::{Module, Part};
use crate::context::current;
use crate::error::Result;
use crate::tensor::Tensor;

/// Zeroes elements with probability p while training and scales the others by 1 / (1 - p); passes everything on
/// otherwise. The mask does not depend on placement or SBP.
pub struct Dropout {
    p: f64,
    training: bool,
}

impl Dropout {
    /// In training mode. A p that is no probability is an error of the first forward.
    pub fn new(p: f64) -> Dropout {
        Dropout { p, training: true }
    }
    /// Whether it drops.
    pub fn training(&self) -> bool {
        self.training
    }
    /// Drops; in evaluation and with p = 0 it returns `x` itself, as PyTorch's module does.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if !self.training {
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

impl Part for Dropout {
    fn visit<'a>(&'a self, _: &str, _: &mut dyn FnMut(&str, &'a Tensor)) {}
    fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        Ok(())
    }
    fn set_training(&mut self, on: bool) {
        self.training = on;
    }
}
impl Module for Dropout {}
