//! Optimizers, gradient clipping, loss scaling and learning-rate schedules.
//!
//! An optimizer holds handles of the parameters and updates them in place. Its state has the layouts of the parameters, so a step
//! needs no communication. See [`Optimizer`] for an example.

mod adamw;
mod clip;
mod many;
mod master;
mod scaler;
mod schedule;
mod sgd;

pub use adamw::{AdamW, AdamWOptions};
pub use clip::clip_grad_norm;
pub use scaler::{GradScaler, GradScalerOptions};
pub use schedule::Schedule;
pub use sgd::{Sgd, SgdOptions};

use crate::error::Result;
use crate::tensor::Tensor;

/// An algorithm that updates parameters from their gradients.
///
/// ```
/// use oflow::optim::{Optimizer, Sgd, SgdOptions};
/// use oflow::prelude::*;
/// let w = ones([2], Device::Cpu)?.requires_grad_(true)?;
/// let mut opt = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..Default::default() });
/// w.square()?.sum(())?.backward()?;
/// opt.step()?;
/// assert_eq!(w.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait Optimizer {
    /// Updates each parameter that has a gradient, in place.
    ///
    /// # Errors
    /// If a gradient has another shape than its parameter.
    fn step(&mut self) -> Result<()>;
    /// Returns the parameters, in the order in which they were given.
    fn parameters(&self) -> &[Tensor];
    /// Returns the learning rate.
    fn lr(&self) -> f64;
    /// Sets the learning rate of later steps.
    fn set_lr(&mut self, lr: f64);
    /// Removes the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|p| p.set_grad(None));
    }
}
