//! Optimizers, gradient clipping, loss scaling and learning-rate schedules.
//!
//! An optimizer holds handles of the parameters and updates them in place. Its state has the layouts of the parameters, so a step
//! needs no communication. Each optimizer is a file in `kinds`, a row of the table there, and one op. See [`Optimizer`] for an example.

mod average;
mod captured;
mod clip;
mod groups;
mod kinds;
mod lbfgs;
mod many;
mod master;
mod plateau;
mod rule;
mod saved;
mod scaler;
mod schedule;
mod stepper;

pub use average::Ema;
pub use clip::clip_grad_norm;
pub use groups::{Groups, by_decay};
pub use kinds::*;
pub use lbfgs::{Lbfgs, LbfgsOptions, LineSearch};
pub use plateau::{Plateau, PlateauOptions};
pub use rule::{OptimizerRule, ParamState, Scalars, StateShape, StepCall, StepCount};
pub use saved::Notes;
pub use scaler::{GradScaler, GradScalerOptions};
pub use schedule::Schedule;
pub use stepper::Stepper;

use crate::error::{CallSite, Error, Result};
use crate::interpreter::{compare_replicas, outside_capture};
use crate::tensor::Tensor;
use std::collections::BTreeMap;

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
    /// Updates each parameter that has a gradient, in place, for a call at `site`: the line that errors and comm records name.
    /// Programs call [`step`](OptimizerExt::step).
    ///
    /// # Errors
    /// If a gradient has another shape than its parameter, or if the step would train nothing ([`check_gradients`]).
    fn step_at(&mut self, site: CallSite) -> Result<()>;
    /// Returns the parameters, in the order in which they were given.
    fn parameters(&self) -> &[Tensor];
    /// Returns the learning rate.
    fn lr(&self) -> f64;
    /// Sets the learning rate of later steps.
    fn set_lr(&mut self, lr: f64);
    /// Removes the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|p| p.put_grad(None));
    }
}

/// `step` of every [`Optimizer`], `dyn Optimizer` included. It is not a method of `Optimizer` itself, because a call through
/// `dyn` does not pass the caller's line on. The prelude has it.
pub trait OptimizerExt: Optimizer {
    /// Updates each parameter that has a gradient, in place.
    ///
    /// # Errors
    /// If a gradient has another shape than its parameter, or if the step would train nothing ([`check_gradients`]).
    #[track_caller]
    fn step(&mut self) -> Result<()> {
        self.step_at(CallSite::here())
    }
}

impl<T: Optimizer + ?Sized> OptimizerExt for T {}

/// Refuses a step that would train nothing without a word. [`Optimizer::step_at`] calls it first.
///
/// # Errors
/// When a parameter without a gradient was replaced in its module ([`Module::to_global`](crate::nn::Module::to_global),
/// [`map_parameters`](crate::nn::Module::map_parameters), a change of dtype) after the optimizer had taken it, and when no parameter has
/// a gradient.
pub fn check_gradients(parameters: &[Tensor], site: CallSite) -> Result<()> {
    let mut any = parameters.is_empty();
    for (i, p) in parameters.iter().enumerate() {
        if p.grad().is_some() {
            any = true;
        } else if let Some(replaced) = p.replaced() {
            return Err(Error::autograd(format!(
                "parameter {i} of the optimizer, {p:?}, has no gradient: at {replaced} its module got another tensor in its place"
            ))
            .at(site)
            .help("make the optimizer after the last change of the module's layout, device or dtype"));
        }
    }
    if any {
        return Ok(());
    }
    Err(Error::autograd("no parameter has a gradient")
        .at(site)
        .help("call `backward()` first; make the optimizer after the last change of the module's parameters"))
}

/// Refuses parameters that are given twice: a step would move them twice.
///
/// # Errors
/// If there are such.
pub fn check_distinct(parameters: &[Tensor]) -> Result<()> {
    let mut seen = BTreeMap::new();
    for (i, p) in parameters.iter().enumerate() {
        if let Some(first) = seen.insert(p.weak().number(), i) {
            return Err(Error::argument(format!(
                "parameter {i} of the optimizer, {p:?}, is given twice: parameter {first} is the same tensor"
            ))
            .help("give each parameter once, in one group"));
        }
    }
    Ok(())
}

/// Refuses a learning rate that is no rate: of a schedule that divides by zero, or a wrong sign.
///
/// # Errors
/// When it is negative, infinite or NaN.
pub fn check_rate(lr: f64, site: CallSite) -> Result<()> {
    match lr >= 0.0 && lr.is_finite() {
        true => Ok(()),
        false => Err(Error::argument(format!("the learning rate is {lr}"))
            .at(site)
            .help("it is a number of at least 0: see the optimizer's options, its schedule, and `set_lr`")),
    }
}

/// Checks of an optimizer before each of its steps.
#[derive(Clone, Debug, Default)]
pub(super) struct StepChecks {
    compared: bool,
}

impl StepChecks {
    /// Refuses a step that would train nothing. The first step refuses parameters that are given twice or that the optimizer does not
    /// accept, and compares parameters that every rank should have alike: one that started with other values would train another model, in silence.
    pub(super) fn before(
        &mut self,
        parameters: &[Tensor],
        accepts: impl Fn(&Tensor) -> Result<()>,
        site: CallSite,
    ) -> Result<()> {
        check_gradients(parameters, site)?;
        if !self.compared {
            check_distinct(parameters).map_err(|e| e.at(site))?;
            parameters.iter().try_for_each(accepts).map_err(|e| e.at(site))?;
            self.compared = true;
            outside_capture(site, || compare_replicas(parameters, site)).map_err(|e| e.at(site))?;
        }
        Ok(())
    }
}

/// The parameters that a step updates, with their numbers.
fn with_gradients(parameters: &[Tensor]) -> impl Iterator<Item = (usize, &Tensor)> {
    parameters.iter().enumerate().filter(|(_, p)| p.grad().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::{IntoTarget, ones};
    use crate::placement::Device;
    use oflow_kernels::DType;

    #[test]
    fn a_learning_rate_that_is_none_is_refused_and_changes_nothing() {
        let p = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
        p.sum(()).unwrap().backward().unwrap();
        for kind in OptimizerConfig::KINDS {
            let config: OptimizerConfig = serde_json::from_value(serde_json::json!({ "kind": kind })).unwrap();
            for lr in [-0.1, f64::NAN, f64::INFINITY] {
                let mut opt = config.build(vec![p.clone()]);
                opt.set_lr(lr);
                let e = opt.step().unwrap_err().to_string();
                assert!(e.contains(&format!("the learning rate is {lr}")) && e.contains("optim/mod.rs"), "{kind}: {e}");
            }
        }
        assert_eq!(p.to_vec::<f32>().unwrap(), [1.0, 1.0]);
    }

    #[test]
    fn changed_settings_count_from_the_next_step_on() {
        let p = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
        let mut sgd = Sgd::new(vec![p.clone()], SgdOptions { lr: 0.5, ..Default::default() });
        p.sum(()).unwrap().backward().unwrap();
        sgd.step().unwrap();
        sgd.set_options(SgdOptions { lr: 0.25, weight_decay: 2.0, master_weights: false, ..sgd.options() });
        sgd.step().unwrap();
        // 0.5 - 0.25 · (1 + 2 · 0.5).
        assert_eq!(p.to_vec::<f32>().unwrap(), [0.0, 0.0]);
        assert!(sgd.options().master_weights, "whether there are masters is decided once");
        let mut adam = AdamW::new(vec![p.clone()], AdamWOptions { weight_decay: 0.0, ..Default::default() });
        adam.set_options(AdamWOptions { lr: 0.0, ..adam.options() });
        adam.step().unwrap();
        assert_eq!((p.to_vec::<f32>().unwrap(), adam.lr()), (vec![0.0, 0.0], 0.0));
    }

    /// Errors of the optimizer itself, and of a call that it makes.
    #[test]
    fn an_error_names_the_line_that_called_step() {
        let make = |dtype: DType| ones([2], Device::Cpu.dtype(dtype)).unwrap().requires_grad_(true).unwrap();
        let sgd = |p: &Tensor| Sgd::new(vec![p.clone()], SgdOptions::default());
        let p = make(DType::F32);
        let mut all: Vec<Box<dyn Optimizer>> =
            vec![Box::new(sgd(&p)), Box::new(AdamW::new(vec![p.clone()], AdamWOptions::default()))];
        for opt in &mut all {
            let (e, line) = (opt.step().unwrap_err(), line!());
            assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
        }
        let mut scaler = GradScaler::new(GradScalerOptions::default());
        let (e, line) = (scaler.step(&mut *all[0]).unwrap_err(), line!());
        assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
        let (e, line) = (sgd(&p).step().unwrap_err(), line!());
        assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    }
}
