//! Steps of further optimizers in place: each is the rule of one element, and one pass over all state carries it out.

use multiversion::multiversion;
use smallvec::SmallVec;

use super::acc::{Acc, with_acc};
use super::optim::{check, cut};
use super::rows::{Buffered, Buffers, Rows};
use crate::parallel::parallel_for;
use crate::{KernelError, View};

type Result<T, E = KernelError> = std::result::Result<T, E>;

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
    pub const OPS: [&'static str; 7] = [
        "adam_many",
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
            Step::Adagrad { .. } | Step::Lion { .. } => 1,
            Step::Adadelta { .. } => 2,
            Step::LambDirection { .. } => 3,
            Step::Average { .. } => 0,
        }
    }

    /// Number of the rule in CUDA (`RULE`).
    pub(crate) fn rule(&self) -> i64 {
        match *self {
            Step::Adam { .. } => 0,
            Step::RmsProp { centered, buffer, .. } => 1 + i64::from(centered) + 2 * i64::from(buffer),
            Step::Adagrad { .. } => 5,
            Step::Adadelta { .. } => 6,
            Step::Lion { .. } => 7,
            Step::LambDirection { .. } => 8,
            Step::Average { .. } => 9,
        }
    }

    /// The numbers of a rule, the same for every element, in the order in which it names them.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        match *self {
            Step::Adam { lr, beta1, beta2, eps, weight_decay, decoupled, step, .. } => {
                let (first, second) = corrections(beta1, beta2, step);
                let (keep, add) = if decoupled { (1.0 - lr * weight_decay, 0.0) } else { (1.0, weight_decay) };
                [keep, add, 1.0 - beta1, beta2, 1.0 - beta2, 1.0 / second.sqrt(), eps, lr / first]
            }
            Step::RmsProp { lr, alpha, eps, weight_decay, momentum, .. } => {
                [lr, alpha, 1.0 - alpha, eps, weight_decay, momentum, 0.0, 0.0]
            }
            Step::Adagrad { lr, eps, weight_decay } => [lr, eps, weight_decay, 0.0, 0.0, 0.0, 0.0, 0.0],
            Step::Adadelta { lr, rho, eps, weight_decay } => [lr, rho, 1.0 - rho, eps, weight_decay, 0.0, 0.0, 0.0],
            Step::Lion { lr, beta1, beta2, weight_decay } => {
                [1.0 - lr * weight_decay, lr, beta1, 1.0 - beta1, beta2, 1.0 - beta2, 0.0, 0.0]
            }
            Step::LambDirection { beta1, beta2, eps, weight_decay, step } => {
                let (first, second) = if step == 0 { (1.0, 1.0) } else { corrections(beta1, beta2, step) };
                [beta1, 1.0 - beta1, beta2, 1.0 - beta2, 1.0 / first, 1.0 / second.sqrt(), eps, weight_decay]
            }
            Step::Average { decay } => [1.0 - decay, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        }
    }
}

/// How many numbers a rule has at most.
pub(crate) const NUMBERS: usize = 8;

fn corrections(beta1: f64, beta2: f64, step: u64) -> (f64, f64) {
    (1.0 - beta1.powf(step as f64), 1.0 - beta2.powf(step as f64))
}

/// The rule of one element.
trait Rule<A> {
    /// How many of the states it has.
    const STATES: usize;
    /// The new parameter; changes the states.
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A;
}

struct Adam<const LARGEST: bool>;
impl<A: Acc, const LARGEST: bool> Rule<A> for Adam<LARGEST> {
    const STATES: usize = 2 + LARGEST as usize;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [keep, add, rest1, beta2, rest2, root, eps, step] = *n;
        let g = g + add * p;
        s[0] = s[0] + (g - s[0]) * rest1;
        s[1] = s[1] * beta2 + g * g * rest2;
        let mut square = s[1];
        if LARGEST {
            // NaN of the second moment stays.
            s[2] = if s[2] > square { s[2] } else { square };
            square = s[2];
        }
        p * keep - step * (s[0] / (square.sqrt() * root + eps))
    }
}

struct RmsProp<const CENTERED: bool, const BUFFER: bool>;
impl<A: Acc, const CENTERED: bool, const BUFFER: bool> Rule<A> for RmsProp<CENTERED, BUFFER> {
    const STATES: usize = 1 + CENTERED as usize + BUFFER as usize;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [lr, alpha, rest, eps, decay, momentum, ..] = *n;
        let g = g + decay * p;
        s[0] = s[0] * alpha + g * g * rest;
        let mut square = s[0];
        if CENTERED {
            s[1] = s[1] + (g - s[1]) * rest;
            square = square - s[1] * s[1];
        }
        let along = g / (square.sqrt() + eps);
        if !BUFFER {
            return p - lr * along;
        }
        let at = 1 + CENTERED as usize;
        s[at] = s[at] * momentum + along;
        p - lr * s[at]
    }
}

struct Adagrad;
impl<A: Acc> Rule<A> for Adagrad {
    const STATES: usize = 1;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [lr, eps, decay, ..] = *n;
        let g = g + decay * p;
        s[0] = s[0] + g * g;
        p - lr * (g / (s[0].sqrt() + eps))
    }
}

struct Adadelta;
impl<A: Acc> Rule<A> for Adadelta {
    const STATES: usize = 2;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [lr, rho, rest, eps, decay, ..] = *n;
        let g = g + decay * p;
        s[0] = s[0] * rho + g * g * rest;
        let along = (s[1] + eps).sqrt() / (s[0] + eps).sqrt() * g;
        s[1] = s[1] * rho + along * along * rest;
        p - lr * along
    }
}

struct Lion;
impl<A: Acc> Rule<A> for Lion {
    const STATES: usize = 1;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [keep, lr, beta1, rest1, beta2, rest2, ..] = *n;
        let along = s[0] * beta1 + g * rest1;
        s[0] = s[0] * beta2 + g * rest2;
        // The sign; 0 and NaN stay what they are.
        let sign = if along > A::ZERO {
            A::ONE
        } else if along < A::ZERO {
            -A::ONE
        } else {
            along
        };
        p * keep - lr * sign
    }
}

struct LambDirection;
impl<A: Acc> Rule<A> for LambDirection {
    const STATES: usize = 3;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, s: &mut [A; 3]) -> A {
        let [beta1, rest1, beta2, rest2, first, root, eps, decay] = *n;
        s[0] = s[0] * beta1 + g * rest1;
        s[1] = s[1] * beta2 + g * g * rest2;
        s[2] = s[0] * first / (s[1].sqrt() * root + eps) + decay * p;
        p
    }
}

struct Average;
impl<A: Acc> Rule<A> for Average {
    const STATES: usize = 0;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, _: &mut [A; 3]) -> A {
        p + (g - p) * n[0]
    }
}

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

fn subtracted<A: Buffered>(x: &View, y: &View, factor: f64) {
    rows::<A, Subtract>([factor; NUMBERS], x, y, &[]);
}

struct Subtract;
impl<A: Acc> Rule<A> for Subtract {
    const STATES: usize = 0;
    #[inline(always)]
    fn one(n: &[A; NUMBERS], p: A, g: A, _: &mut [A; 3]) -> A {
        p - n[0] * g
    }
}

fn chosen<A: Buffered>(step: &Step, p: &View, g: &View, s: &[&View]) {
    let n = step.numbers();
    match *step {
        Step::Adam { largest: false, .. } => rows::<A, Adam<false>>(n, p, g, s),
        Step::Adam { largest: true, .. } => rows::<A, Adam<true>>(n, p, g, s),
        Step::RmsProp { centered, buffer, .. } => match (centered, buffer) {
            (false, false) => rows::<A, RmsProp<false, false>>(n, p, g, s),
            (false, true) => rows::<A, RmsProp<false, true>>(n, p, g, s),
            (true, false) => rows::<A, RmsProp<true, false>>(n, p, g, s),
            (true, true) => rows::<A, RmsProp<true, true>>(n, p, g, s),
        },
        Step::Adagrad { .. } => rows::<A, Adagrad>(n, p, g, s),
        Step::Adadelta { .. } => rows::<A, Adadelta>(n, p, g, s),
        Step::Lion { .. } => rows::<A, Lion>(n, p, g, s),
        Step::LambDirection { .. } => rows::<A, LambDirection>(n, p, g, s),
        Step::Average { .. } => rows::<A, Average>(n, p, g, s),
    }
}

type Parts = Vec<SmallVec<[Rows; 5]>>;

fn parts<const N: usize>(views: [&View; N]) -> Parts {
    cut(views).into_iter().map(|rows| rows.into_iter().collect()).collect()
}

fn rows<A: Buffered, R: Rule<A>>(numbers: [f64; NUMBERS], param: &View, grad: &View, states: &[&View]) {
    let numbers = numbers.map(A::from_f64);
    let all: Parts = match *states {
        [] => parts([param, grad]),
        [a] => parts([param, grad, a]),
        [a, b] => parts([param, grad, a, b]),
        [a, b, c, ..] => parts([param, grad, a, b, c]),
    };
    for part in &all {
        let (param, grad, states) = (&part[0], &part[1], &part[2..]);
        parallel_for(param.count, param.grain(), &|range| {
            A::with_buffers(|Buffers { a, b, c, d, more, .. }| {
                for row in range {
                    // SAFETY: rows are in range and float (checked); each row is updated by one thread.
                    unsafe {
                        let g = grad.read(row, a);
                        param.update(row, b, |p| {
                            updated(states.first(), row, c, |s0| {
                                updated(states.get(1), row, d, |s1| {
                                    updated(states.get(2), row, &mut more[0], |s2| {
                                        run::<A, R>(&numbers, p, g, s0, s1, s2)
                                    });
                                });
                            });
                        });
                    }
                }
            });
        });
    }
}

/// Lets `f` change a row; an empty one where there are no rows.
///
/// # Safety
/// As [`Rows::update`].
unsafe fn updated<A: Acc>(rows: Option<&Rows>, row: usize, buffer: &mut Vec<A>, f: impl FnOnce(&mut [A])) {
    match rows {
        // SAFETY: the caller's promise.
        Some(rows) => unsafe { rows.update(row, buffer, f) },
        None => f(&mut []),
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn run<A: Acc, R: Rule<A>>(n: &[A; NUMBERS], p: &mut [A], g: &[A], s0: &mut [A], s1: &mut [A], s2: &mut [A]) {
    let len = p.len();
    let g = &g[..len];
    // States that the rule does not have are empty.
    let s0 = &mut s0[..if R::STATES > 0 { len } else { 0 }];
    let s1 = &mut s1[..if R::STATES > 1 { len } else { 0 }];
    let s2 = &mut s2[..if R::STATES > 2 { len } else { 0 }];
    for i in 0..len {
        let mut s = [A::ZERO; 3];
        if R::STATES > 0 {
            s[0] = s0[i];
        }
        if R::STATES > 1 {
            s[1] = s1[i];
        }
        if R::STATES > 2 {
            s[2] = s2[i];
        }
        p[i] = R::one(n, p[i], g[i], &mut s);
        if R::STATES > 0 {
            s0[i] = s[0];
        }
        if R::STATES > 1 {
            s1[i] = s[1];
        }
        if R::STATES > 2 {
            s2[i] = s[2];
        }
    }
}
