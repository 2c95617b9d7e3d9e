//! Learning rates over time.

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A factor of the base learning rate, by step (counted from 0). As JSON it is `{"kind": "warmup_cosine", "warmup": 10, …}`. A factor that
/// depends on a metric is a [`Plateau`](super::Plateau). A warm-up before any schedule, or a plain stretch between, is a `Sequential` with a
/// `Linear` or `Constant` one.
///
/// ```
/// use oflow::optim::Schedule;
/// let s = Schedule::WarmupCosine { warmup: 10, total: 110, floor: 0.1 };
/// assert_eq!(s.at(4), 0.5);
/// assert_eq!(s.at(10), 1.0);
/// assert!((s.at(60) - 0.55).abs() < 1e-12);
/// assert_eq!(s.at(200), 0.1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// The constant 1.
    Constant,
    /// Linear warm-up to 1 over `warmup` steps, then half a cosine down to `floor` at step `total`, constant afterwards.
    WarmupCosine {
        /// Number of warm-up steps.
        warmup: usize,
        /// Step at which the floor is reached.
        total: usize,
        /// Final factor.
        floor: f64,
    },
    /// A factor of `gamma` after every `every` steps (`StepLR` of PyTorch).
    Step {
        /// Number of steps between two changes; 0 never changes.
        every: usize,
        /// Factor of each change.
        gamma: f64,
    },
    /// A factor of `gamma` at each milestone (`MultiStepLR`).
    MultiStep {
        /// Steps of the changes.
        milestones: Vec<usize>,
        /// Factor of each change.
        gamma: f64,
    },
    /// A factor for the first steps, then 1 (`ConstantLR`).
    ConstantFor {
        /// The factor.
        factor: f64,
        /// Number of steps with the factor.
        total: usize,
    },
    /// A line from one factor to another, constant afterwards (`LinearLR`).
    Linear {
        /// Factor at step 0.
        start: f64,
        /// Factor from step `total` on.
        end: f64,
        /// Number of steps between.
        total: usize,
    },
    /// A factor of `gamma` after every step (`ExponentialLR`).
    Exponential {
        /// Factor of each change.
        gamma: f64,
    },
    /// The part of the steps that is left, to a power (`PolynomialLR`).
    Polynomial {
        /// Step at which 0 is reached.
        total: usize,
        /// The power.
        power: f64,
    },
    /// A cosine from 1 down to `floor`, up again, and so on (`CosineAnnealingLR`).
    CosineAnnealing {
        /// Number of steps from 1 to the floor.
        period: usize,
        /// Least factor.
        floor: f64,
    },
    /// Half a cosine from 1 down to `floor`, again and again, each time over `growth` times as many steps (`CosineAnnealingWarmRestarts`).
    CosineRestarts {
        /// Number of steps to the first restart.
        first: usize,
        /// Factor of the number of steps from one restart to the next.
        growth: usize,
        /// Least factor.
        floor: f64,
    },
    /// A line from `least` up to 1 and down again, and so on (`CyclicLR`).
    Cyclic {
        /// Factor at the start of a cycle.
        least: f64,
        /// Number of steps up.
        up: usize,
        /// Number of steps down.
        down: usize,
        /// Factor of the height after each cycle: 1 for `triangular`, 0.5 for `triangular2`.
        #[serde(default = "one")]
        by_cycle: f64,
        /// Factor of the height after each step, below 1 for `exp_range`.
        #[serde(default = "one")]
        by_step: f64,
    },
    /// The square root of `warmup` / step after a linear warm-up to 1, with steps counted from 1 (Vaswani et al., 2017).
    InverseSqrt {
        /// Number of warm-up steps, 1 at least.
        warmup: usize,
    },
    /// One cycle over all steps: half a cosine from `start` up to 1, then one down to `end` (`OneCycleLR`, whose base is the largest rate).
    OneCycle {
        /// Number of all steps.
        total: usize,
        /// Part of the steps in which the factor rises.
        rise: f64,
        /// Factor at step 0.
        start: f64,
        /// Factor at the last step.
        end: f64,
        /// Whether to go along lines instead of cosines.
        #[serde(default)]
        linear: bool,
        /// Whether to go down to `start` over as many steps as up, and only then to `end`.
        #[serde(default)]
        three_phase: bool,
    },
    /// The product of several factors (`ChainedScheduler`).
    Chained {
        /// The factors.
        schedules: Vec<Schedule>,
    },
    /// One schedule after the other, each of which begins at its step 0 (`SequentialLR`).
    Sequential {
        /// The schedules.
        schedules: Vec<Schedule>,
        /// Steps at which the second, the third and so on begin.
        milestones: Vec<usize>,
    },
}

fn one() -> f64 {
    1.0
}

/// Half a cosine from one value to another; `way` goes from 0 to 1.
fn cosine(from: f64, to: f64, way: f64) -> f64 {
    to + (from - to) * 0.5 * (1.0 + (PI * way).cos())
}

/// The part of a way of `all` steps at `step`.
fn part(step: usize, all: usize) -> f64 {
    step as f64 / all.max(1) as f64
}

impl Schedule {
    /// Returns the factor of the learning rate at a step, counted from 0.
    pub fn at(&self, step: usize) -> f64 {
        match self {
            Schedule::Constant => 1.0,
            Schedule::WarmupCosine { warmup, .. } if step < *warmup => (step + 1) as f64 / *warmup as f64,
            Schedule::WarmupCosine { warmup, total, floor } => {
                cosine(1.0, *floor, part(step - warmup, total.saturating_sub(*warmup)).min(1.0))
            }
            Schedule::Step { every, gamma } => gamma.powi(step.checked_div(*every).unwrap_or(0) as i32),
            Schedule::MultiStep { milestones, gamma } => {
                gamma.powi(milestones.iter().filter(|m| **m <= step).count() as i32)
            }
            Schedule::ConstantFor { factor, total } => {
                if step < *total {
                    *factor
                } else {
                    1.0
                }
            }
            Schedule::Linear { end, total, .. } if step >= *total => *end,
            Schedule::Linear { start, end, total } => start + (end - start) * part(step, *total),
            Schedule::Exponential { gamma } => gamma.powf(step as f64),
            Schedule::Polynomial { total, .. } if step >= *total => 0.0,
            Schedule::Polynomial { total, power } => (1.0 - part(step, *total)).powf(*power),
            Schedule::CosineAnnealing { period, floor } => cosine(1.0, *floor, part(step, *period)),
            Schedule::CosineRestarts { first, growth, floor } => {
                let (mut step, mut all) = (step, (*first).max(1));
                while step >= all {
                    step -= all;
                    all = all.saturating_mul((*growth).max(1));
                }
                cosine(1.0, *floor, part(step, all))
            }
            Schedule::Cyclic { least, up, down, by_cycle, by_step } => {
                let (cycle, at) = (step / (up + down).max(1), step % (up + down).max(1));
                let height = if at <= *up { part(at, *up) } else { 1.0 - part(at - up, *down) };
                least + (1.0 - least) * height * by_cycle.powi(cycle as i32) * by_step.powf(step as f64)
            }
            Schedule::InverseSqrt { warmup } => {
                let (at, warmup) = (step as f64 + 1.0, (*warmup).max(1) as f64);
                (at / warmup).min((warmup / at).sqrt())
            }
            Schedule::OneCycle { total, rise, start, end, linear, three_phase } => {
                let (at, last) = (step as f64, total.saturating_sub(1) as f64);
                let top = rise * *total as f64 - 1.0;
                // Each part with the step at which it ends, and the factors between which it goes.
                let parts = match three_phase {
                    true => vec![(top, *start, 1.0), (2.0 * top, 1.0, *start), (last, *start, *end)],
                    false => vec![(top, *start, 1.0), (last, 1.0, *end)],
                };
                let mut begin = 0.0;
                for (until, from, to) in parts {
                    if at <= until {
                        let way = (at - begin) / (until - begin).max(f64::MIN_POSITIVE);
                        return match linear {
                            true => from + (to - from) * way,
                            false => cosine(from, to, way),
                        };
                    }
                    begin = until;
                }
                *end
            }
            Schedule::Chained { schedules } => schedules.iter().map(|s| s.at(step)).product(),
            Schedule::Sequential { schedules, milestones } => {
                let number = milestones.iter().filter(|m| **m <= step).count();
                let begin = number.checked_sub(1).map_or(0, |n| milestones[n]);
                schedules.get(number).map_or(1.0, |s| s.at(step - begin))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn values() {
        let step = Schedule::Step { every: 3, gamma: 0.5 };
        assert_eq!([0, 2, 3, 5, 6].map(|s| step.at(s)), [1.0, 1.0, 0.5, 0.5, 0.25]);
        assert_eq!(Schedule::Step { every: 0, gamma: 0.5 }.at(7), 1.0);
        assert_eq!(Schedule::Constant.at(9), 1.0);
        let root = Schedule::InverseSqrt { warmup: 4 };
        assert_eq!([0, 1, 3, 15, 35].map(|s| root.at(s)), [0.25, 0.5, 1.0, 0.5, 1.0 / 3.0]);
        // No warmup and no way down.
        assert_eq!(Schedule::WarmupCosine { warmup: 0, total: 0, floor: 0.2 }.at(5), 0.2);
        // Nothing to divide by.
        for s in [
            Schedule::Linear { start: 0.5, end: 0.25, total: 0 },
            Schedule::CosineRestarts { first: 0, growth: 0, floor: 0.25 },
            Schedule::CosineAnnealing { period: 0, floor: 0.25 },
            Schedule::Cyclic { least: 0.25, up: 0, down: 0, by_cycle: 1.0, by_step: 1.0 },
            Schedule::OneCycle { total: 1, rise: 0.0, start: 0.5, end: 0.25, linear: false, three_phase: false },
            Schedule::OneCycle { total: 2, rise: 0.9, start: 0.5, end: 0.25, linear: true, three_phase: true },
            Schedule::InverseSqrt { warmup: 0 },
            Schedule::Sequential { schedules: vec![], milestones: vec![2] },
        ] {
            assert!([0, 1, 9].iter().all(|step| s.at(*step).is_finite()), "{s:?}");
        }
    }
}
