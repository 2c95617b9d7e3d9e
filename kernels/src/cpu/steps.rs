//! Steps of further optimizers in place: each is the rule of one element, and one pass over all state carries it out.

mod kind;
mod rules;

pub use kind::Step;

use super::acc::with_acc;
use super::optim::check;
use crate::{KernelError, View};
use rules::{chosen, subtracted};

type Result<T, E = KernelError> = std::result::Result<T, E>;

/// Carries out a step for one parameter. All views have one shape; each may have its own float dtype, and the arithmetic is
/// that of the parameter's (f32 for halves).
///
/// # Errors
/// If dims differ, a dtype is no float, or the number of states is another one.
pub fn step(step: &Step, param: &View, grad: &View, states: &[&View]) -> Result<()> {
    check_step(step, param, grad, states)?;
    with_acc!(param.dtype(), chosen(step, param, grad, states));
    Ok(())
}

pub(crate) fn check_step(step: &Step, param: &View, grad: &View, states: &[&View]) -> Result<()> {
    if states.len() != step.states() {
        let wanted = step.states();
        return Err(KernelError::new(format!(
            "the step keeps {wanted} tensors of a parameter; here are {}",
            states.len()
        )));
    }
    check(param, &[("the gradient", grad)])?;
    states.iter().try_for_each(|s| check(param, &[("what the optimizer keeps", s)]))
}

/// `x -= factor * y`.
///
/// # Errors
/// If dims differ or a dtype is no float.
pub fn subtract(x: &View, y: &View, factor: f64) -> Result<()> {
    check(x, &[("what is subtracted", y)])?;
    with_acc!(x.dtype(), subtracted(x, y, factor));
    Ok(())
}
