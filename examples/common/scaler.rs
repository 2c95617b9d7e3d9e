//! Loss scaling where the precision needs it.

use oflow::optim::{GradScaler, GradScalerOptions, Optimizer};
use oflow::prelude::*;

/// A [`GradScaler`] under f16 autocast. In every other precision its methods change nothing.
pub struct LossScaler(pub Option<GradScaler>);

impl LossScaler {
    /// The scaler for a precision.
    pub fn new(precision: Autocast) -> LossScaler {
        LossScaler((precision == Autocast::F16).then(|| GradScaler::new(GradScalerOptions::default())))
    }
    /// The loss to call `backward` on.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        self.0.as_ref().map_or_else(|| Ok(loss.clone()), |s| s.scale(loss))
    }
    /// Divides the gradients by the scale. Needed before gradients are read or clipped.
    #[track_caller]
    pub fn unscale(&mut self, opt: &dyn Optimizer) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |s| s.unscale_(opt))
    }
    /// Steps the optimizer; skips the step if a gradient is infinite or NaN.
    #[track_caller]
    pub fn step(&mut self, opt: &mut dyn Optimizer) -> Result<()> {
        match &mut self.0 {
            None => opt.step(),
            Some(s) => {
                s.step(opt)?;
                s.update();
                Ok(())
            }
        }
    }
    /// Number of skipped steps.
    pub fn skipped(&self) -> u64 {
        self.0.as_ref().map_or(0, GradScaler::skipped)
    }
}
