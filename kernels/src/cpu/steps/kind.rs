//! The steps with their settings, and the numbers that the rule of each takes.

/// The step of an optimizer with its settings. What it keeps of a parameter follows the gradient, in the order told here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Adam with PyTorch's formula. State: first moment, second moment, and with `largest` (AMSGrad) the largest second moment.
    Adam {
        /// Learning rate.
        lr: f64,
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Whether the decay scales the parameter (AdamW) instead of entering the gradient.
        decoupled: bool,
        /// Whether the root is of the largest second moment so far.
        largest: bool,
        /// Number of this step, from 1.
        step: u64,
    },
    /// RMSprop with PyTorch's formula. State: mean of squares, then the mean of gradients if `centered`, then the momentum buffer
    /// if `buffer`.
    RmsProp {
        /// Learning rate.
        lr: f64,
        /// Decay of the means.
        alpha: f64,
        /// Added to the root of the mean of squares.
        eps: f64,
        /// Weight decay, added to the gradient.
        weight_decay: f64,
        /// Decay of the momentum buffer.
        momentum: f64,
        /// Whether the square of the mean gradient is subtracted from the mean of squares.
        centered: bool,
        /// Whether there is a momentum buffer.
        buffer: bool,
    },
    /// Adagrad with PyTorch's formula. State: sum of squares.
    Adagrad {
        /// Learning rate of this step.
        lr: f64,
        /// Added to the root of the sum.
        eps: f64,
        /// Weight decay, added to the gradient.
        weight_decay: f64,
    },
    /// RAdam with PyTorch's formula: Adam whose step is corrected for the variance of the second moment. State: first moment, second
    /// moment.
    RAdam {
        /// Learning rate.
        lr: f64,
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Whether the decay scales the parameter instead of entering the gradient.
        decoupled: bool,
        /// Number of this step, from 1.
        step: u64,
    },
    /// NAdam with PyTorch's formula: Adam with Nesterov momentum. State: first moment, second moment.
    NAdam {
        /// Learning rate.
        lr: f64,
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Growth of the momentum from half of `beta1` to `beta1`.
        momentum_decay: f64,
        /// Whether the decay scales the parameter instead of entering the gradient.
        decoupled: bool,
        /// Number of this step, from 1.
        step: u64,
    },
    /// Adamax with PyTorch's formula. State: first moment, largest decayed magnitude.
    Adamax {
        /// Learning rate.
        lr: f64,
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the largest magnitude.
        beta2: f64,
        /// Added to the magnitude of each gradient.
        eps: f64,
        /// Weight decay, added to the gradient.
        weight_decay: f64,
        /// Number of this step, from 1.
        step: u64,
    },
    /// Averaged SGD with PyTorch's formula. State: the average of the parameter.
    Asgd {
        /// Learning rate of this step.
        rate: f64,
        /// Part of the parameter that decays for a rate of 1.
        lambd: f64,
        /// Weight decay, added to the gradient.
        weight_decay: f64,
        /// Part of the parameter in the new average; 1 makes the average the parameter.
        mix: f64,
    },
    /// Rprop with PyTorch's formula. State: previous gradient, size of each element's step.
    Rprop {
        /// Factor of the size where the gradient changes its sign.
        shrink: f64,
        /// Factor of the size where the gradient keeps its sign.
        grow: f64,
        /// Least size.
        least: f64,
        /// Largest size.
        most: f64,
    },
    /// Adadelta with PyTorch's formula. State: mean of squared gradients, mean of squared changes.
    Adadelta {
        /// Learning rate.
        lr: f64,
        /// Decay of the means.
        rho: f64,
        /// Added under the roots.
        eps: f64,
        /// Weight decay, added to the gradient.
        weight_decay: f64,
    },
    /// Lion (Chen et al., 2023). State: momentum.
    Lion {
        /// Learning rate.
        lr: f64,
        /// Part of the momentum in the direction.
        beta1: f64,
        /// Decay of the momentum.
        beta2: f64,
        /// Decoupled weight decay.
        weight_decay: f64,
    },
    /// The direction of LAMB (You et al., 2020), from which the norms are taken. State: first moment, second moment, and the
    /// direction, which is the result; the parameter stays.
    LambDirection {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Weight decay, added to the direction.
        weight_decay: f64,
        /// Number of this step, from 1; 0 leaves the moments without bias correction.
        step: u64,
    },
    /// An exponential average: the parameter is the average, the gradient the new value. No state.
    Average {
        /// Part of the average that stays.
        decay: f64,
    },
}

impl Step {
    /// The ops that are steps of this kind.
    pub const OPS: [&'static str; 12] = [
        "adam_many",
        "radam_many",
        "nadam_many",
        "adamax_many",
        "asgd_many",
        "rprop_many",
        "rmsprop_many",
        "adagrad_many",
        "adadelta_many",
        "lion_many",
        "lamb_direction_many",
        "average_many",
    ];

    /// The step of one of [`OPS`](Step::OPS), with the numbers that `number` gives by name. `has` tells whether a parameter has an
    /// input of that number: 0 is the parameter, 1 its gradient, then its state.
    ///
    /// # Errors
    /// Those of `number`.
    pub fn of_op<E>(op: &str, number: impl Fn(&str) -> Result<f64, E>, has: impl Fn(usize) -> bool) -> Result<Step, E> {
        let n = number;
        // Not below 0.
        let step = |least: f64| n("step").map(|s| s.max(least) as u64);
        Ok(match op {
            "adam_many" => Step::Adam {
                lr: n("lr")?,
                beta1: n("beta1")?,
                beta2: n("beta2")?,
                eps: n("eps")?,
                weight_decay: n("weight_decay")?,
                decoupled: n("decoupled")? != 0.0,
                largest: has(4),
                step: step(1.0)?,
            },
            "rmsprop_many" => Step::RmsProp {
                lr: n("lr")?,
                alpha: n("alpha")?,
                eps: n("eps")?,
                weight_decay: n("weight_decay")?,
                momentum: n("decay")?,
                centered: has(3),
                buffer: has(4),
            },
            "radam_many" => Step::RAdam {
                lr: n("lr")?,
                beta1: n("beta1")?,
                beta2: n("beta2")?,
                eps: n("eps")?,
                weight_decay: n("weight_decay")?,
                decoupled: n("decoupled")? != 0.0,
                step: step(1.0)?,
            },
            "nadam_many" => Step::NAdam {
                lr: n("lr")?,
                beta1: n("beta1")?,
                beta2: n("beta2")?,
                eps: n("eps")?,
                weight_decay: n("weight_decay")?,
                momentum_decay: n("momentum_decay")?,
                decoupled: n("decoupled")? != 0.0,
                step: step(1.0)?,
            },
            "adamax_many" => Step::Adamax {
                lr: n("lr")?,
                beta1: n("beta1")?,
                beta2: n("beta2")?,
                eps: n("eps")?,
                weight_decay: n("weight_decay")?,
                step: step(1.0)?,
            },
            "asgd_many" => {
                Step::Asgd { rate: n("rate")?, lambd: n("lambd")?, weight_decay: n("weight_decay")?, mix: n("mix")? }
            }
            "rprop_many" => {
                Step::Rprop { shrink: n("shrink")?, grow: n("grow")?, least: n("least")?, most: n("most")? }
            }
            "adagrad_many" => Step::Adagrad { lr: n("lr")?, eps: n("eps")?, weight_decay: n("weight_decay")? },
            "adadelta_many" => {
                Step::Adadelta { lr: n("lr")?, rho: n("rho")?, eps: n("eps")?, weight_decay: n("weight_decay")? }
            }
            "lion_many" => {
                Step::Lion { lr: n("lr")?, beta1: n("beta1")?, beta2: n("beta2")?, weight_decay: n("weight_decay")? }
            }
            "lamb_direction_many" => Step::LambDirection {
                beta1: n("beta1")?,
                beta2: n("beta2")?,
                eps: n("eps")?,
                weight_decay: n("weight_decay")?,
                step: step(0.0)?,
            },
            _ => Step::Average { decay: n("decay")? },
        })
    }

    /// The number of tensors that it keeps of a parameter.
    pub fn states(&self) -> usize {
        match *self {
            Step::Adam { largest, .. } => 2 + usize::from(largest),
            Step::RmsProp { centered, buffer, .. } => 1 + usize::from(centered) + usize::from(buffer),
            Step::Adagrad { .. } | Step::Lion { .. } | Step::Asgd { .. } => 1,
            Step::RAdam { .. } | Step::NAdam { .. } | Step::Adamax { .. } => 2,
            Step::Adadelta { .. } | Step::Rprop { .. } => 2,
            Step::LambDirection { .. } => 3,
            Step::Average { .. } => 0,
        }
    }

    /// Number of the rule in CUDA (`RULE`).
    pub(crate) fn rule(&self) -> i64 {
        match *self {
            Step::Adam { .. } | Step::RAdam { .. } => 0,
            Step::RmsProp { centered, buffer, .. } => 1 + i64::from(centered) + 2 * i64::from(buffer),
            Step::Adagrad { .. } => 5,
            Step::Adadelta { .. } => 6,
            Step::Lion { .. } => 7,
            Step::LambDirection { .. } => 8,
            Step::Average { .. } => 9,
            Step::NAdam { .. } => 10,
            Step::Adamax { .. } => 11,
            Step::Asgd { .. } => 12,
            Step::Rprop { .. } => 13,
        }
    }

    /// The numbers of a rule, the same for every element, in the order in which it names them.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        match *self {
            Step::Adam { lr, beta1, beta2, eps, weight_decay, decoupled, step, .. } => {
                let (first, second) = corrections(beta1, beta2, step);
                let [keep, add] = decay(lr, weight_decay, decoupled);
                padded([keep, add, 1.0 - beta1, beta2, 1.0 - beta2, 1.0 / second.sqrt(), eps, lr / first])
            }
            Step::RAdam { lr, beta1, beta2, eps, weight_decay, decoupled, step } => {
                let (first, second) = corrections(beta1, beta2, step);
                let [keep, add] = decay(lr, weight_decay, decoupled);
                // Without rectification the step is along the first moment: its divisor is 1.
                let (root, eps, along) = match rectification(beta2, second, step) {
                    Some(rect) => (1.0, eps, lr * rect * second.sqrt() / first),
                    None => (0.0, 1.0, lr / first),
                };
                padded([keep, add, 1.0 - beta1, beta2, 1.0 - beta2, root, eps, along])
            }
            Step::NAdam { lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled, step } => {
                let (_, second) = corrections(beta1, beta2, step);
                let [keep, add] = decay(lr, weight_decay, decoupled);
                let momentum = |at: u64| beta1 * (1.0 - 0.5 * 0.96f64.powf(at as f64 * momentum_decay));
                let (mu, next, product) = (momentum(step), momentum(step + 1), momenta(momentum, step));
                let (of_gradient, of_mean) = (lr * (1.0 - mu) / (1.0 - product), lr * next / (1.0 - product * next));
                let root = 1.0 / second.sqrt();
                [keep, add, 1.0 - beta1, beta2, 1.0 - beta2, root, eps, of_gradient, of_mean]
            }
            Step::Adamax { lr, beta1, beta2, eps, weight_decay, step } => {
                let (first, _) = corrections(beta1, beta2, step);
                padded([weight_decay, 1.0 - beta1, beta2, eps, lr / first])
            }
            Step::Asgd { rate, lambd, weight_decay, mix } => padded([1.0 - lambd * rate, rate, weight_decay, mix]),
            Step::Rprop { shrink, grow, least, most } => padded([shrink, grow, least, most]),
            Step::RmsProp { lr, alpha, eps, weight_decay, momentum, .. } => {
                padded([lr, alpha, 1.0 - alpha, eps, weight_decay, momentum])
            }
            Step::Adagrad { lr, eps, weight_decay } => padded([lr, eps, weight_decay]),
            Step::Adadelta { lr, rho, eps, weight_decay } => padded([lr, rho, 1.0 - rho, eps, weight_decay]),
            Step::Lion { lr, beta1, beta2, weight_decay } => {
                padded([1.0 - lr * weight_decay, lr, beta1, 1.0 - beta1, beta2, 1.0 - beta2])
            }
            Step::LambDirection { beta1, beta2, eps, weight_decay, step } => {
                let (first, second) = if step == 0 { (1.0, 1.0) } else { corrections(beta1, beta2, step) };
                padded([beta1, 1.0 - beta1, beta2, 1.0 - beta2, 1.0 / first, 1.0 / second.sqrt(), eps, weight_decay])
            }
            Step::Average { decay } => padded([1.0 - decay]),
        }
    }
}

/// How many numbers a rule has at most.
pub(crate) const NUMBERS: usize = 9;

/// The numbers of a rule that has fewer than [`NUMBERS`].
fn padded<const N: usize>(numbers: [f64; N]) -> [f64; NUMBERS] {
    std::array::from_fn(|i| numbers.get(i).copied().unwrap_or(0.0))
}

fn corrections(beta1: f64, beta2: f64, step: u64) -> (f64, f64) {
    (1.0 - beta1.powf(step as f64), 1.0 - beta2.powf(step as f64))
}

/// Factor of the parameter, and the part of it that is added to the gradient.
fn decay(lr: f64, weight_decay: f64, decoupled: bool) -> [f64; 2] {
    if decoupled { [1.0 - lr * weight_decay, 0.0] } else { [1.0, weight_decay] }
}

/// RAdam's factor for the variance of the second moment; `None` in the first steps, in which the variance is not tractable.
fn rectification(beta2: f64, second: f64, step: u64) -> Option<f64> {
    let most = 2.0 / (1.0 - beta2) - 1.0;
    let length = most - 2.0 * step as f64 * beta2.powf(step as f64) / second;
    let ratio = (length - 4.0) * (length - 2.0) * most / ((most - 4.0) * (most - 2.0) * length);
    (length > 5.0).then(|| ratio.sqrt())
}

/// The product of NAdam's momenta up to a step. Below 1e-20 it is 0 beside 1, so that a long training does not multiply on.
fn momenta(of: impl Fn(u64) -> f64, step: u64) -> f64 {
    // Momenta about 1 for longer than that are no training: what is left is taken as if they did not change.
    const MOST: u64 = 1 << 20;
    let mut product: f64 = 1.0;
    for at in 1..=step.min(MOST) {
        product *= of(at);
        if product < 1e-20 {
            return 0.0;
        }
        if !product.is_finite() {
            return product;
        }
    }
    if step > MOST { product * of(step).powf((step - MOST) as f64) } else { product }
}

#[cfg(test)]
mod tests {
    use super::momenta;

    #[test]
    fn momenta_of_any_number_of_steps_are_multiplied_in_bounded_time() {
        assert_eq!(momenta(|_| 0.5, 3), 0.125);
        assert_eq!(momenta(|_| 0.9, u64::MAX), 0.0);
        assert_eq!(momenta(|_| 2.5, 1 << 62), f64::INFINITY);
        assert_eq!(momenta(|_| 1.0, 1 << 62), 1.0);
        assert!(momenta(|_| f64::NAN, 1 << 62).is_nan());
    }
}
