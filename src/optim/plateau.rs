//! A learning rate that falls where a metric has stopped becoming better.

use crate::error::Result;
use crate::state::{LoadState, SaveState, Stateful};
use serde::{Deserialize, Serialize};

/// Settings of a [`Plateau`]; PyTorch's defaults of `ReduceLROnPlateau`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlateauOptions {
    /// Whether a larger metric is better.
    pub maximize: bool,
    /// Factor of the learning rate at each change.
    pub factor: f64,
    /// Number of steps without a better metric that change nothing.
    pub patience: usize,
    /// By how much a better metric is better than the best one.
    pub threshold: f64,
    /// Whether the threshold is a part of the best metric.
    pub relative: bool,
    /// Number of steps after a change that do not count.
    pub cooldown: usize,
    /// Least learning rate.
    pub least: f64,
    /// Smallest change that is made.
    pub eps: f64,
}

impl Default for PlateauOptions {
    fn default() -> PlateauOptions {
        PlateauOptions {
            maximize: false,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            relative: true,
            cooldown: 0,
            least: 0.0,
            eps: 1e-8,
        }
    }
}

/// The metrics so far, as far as later steps depend on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    best: Option<f64>,
    bad: usize,
    cooldown: usize,
}

/// Lowers a learning rate where a metric, such as the loss of the validation, has not become better for a number of steps.
///
/// ```
/// use oflow::optim::{Plateau, PlateauOptions};
/// let mut plateau = Plateau::new(PlateauOptions { factor: 0.5, patience: 1, ..Default::default() });
/// let mut lr = 0.1;
/// for loss in [3.0, 2.0, 2.0, 2.0] {
///     lr = plateau.step(lr, loss);
/// }
/// assert_eq!(lr, 0.05);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plateau {
    options: PlateauOptions,
    seen: Seen,
}

impl Plateau {
    /// Makes one that has seen no metric.
    pub fn new(options: PlateauOptions) -> Plateau {
        Plateau { options, seen: Seen::default() }
    }
    /// Takes a metric, and returns the learning rate that follows `lr`: give it to [`Optimizer::set_lr`](super::Optimizer::set_lr).
    pub fn step(&mut self, lr: f64, metric: f64) -> f64 {
        if self.is_better(metric) {
            self.seen.best = Some(metric);
            self.seen.bad = 0;
        } else {
            self.seen.bad += 1;
        }
        if self.seen.cooldown > 0 {
            self.seen.cooldown -= 1;
            self.seen.bad = 0;
        }
        if self.seen.bad <= self.options.patience {
            return lr;
        }
        self.seen.cooldown = self.options.cooldown;
        self.seen.bad = 0;
        let lower = (lr * self.options.factor).max(self.options.least);
        if lr - lower > self.options.eps { lower } else { lr }
    }
    /// Returns the best metric so far.
    pub fn best(&self) -> Option<f64> {
        self.seen.best
    }
    fn is_better(&self, metric: f64) -> bool {
        let PlateauOptions { maximize, threshold, relative, .. } = self.options;
        let sign = if maximize { -1.0 } else { 1.0 };
        let best = self.seen.best.unwrap_or(sign * f64::INFINITY);
        let bound = if relative { sign * best * (1.0 - sign * threshold) } else { sign * best - threshold };
        sign * metric < bound
    }
}

/// Saves what it has seen; the settings are those of the program.
impl Stateful for Plateau {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("plateau", self.seen)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        if let Some(seen) = from.value("plateau")? {
            self.seen = seen;
        }
        Ok(())
    }
}
