//! Learning rates over time.

use serde::{Deserialize, Serialize};

/// A factor of the base learning rate, by step (counted from 0). As JSON it is `{"kind": "warmup_cosine", "warmup": 10, …}`.
///
/// ```
/// use oflow::optim::Schedule;
/// let s = Schedule::WarmupCosine { warmup: 10, total: 110, floor: 0.1 };
/// assert_eq!(s.at(4), 0.5);
/// assert_eq!(s.at(10), 1.0);
/// assert!((s.at(60) - 0.55).abs() < 1e-12);
/// assert_eq!(s.at(200), 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// A factor of `gamma` after every `every` steps.
    Step {
        /// Number of steps between two changes; 0 never changes.
        every: usize,
        /// Factor of each change.
        gamma: f64,
    },
}

impl Schedule {
    /// Returns the factor of the learning rate at a step, counted from 0.
    pub fn at(&self, step: usize) -> f64 {
        match *self {
            Schedule::Constant => 1.0,
            Schedule::WarmupCosine { warmup, .. } if step < warmup => (step + 1) as f64 / warmup as f64,
            Schedule::WarmupCosine { warmup, total, floor } => {
                let way = (step - warmup) as f64 / total.saturating_sub(warmup).max(1) as f64;
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * way.min(1.0)).cos())
            }
            Schedule::Step { every, gamma } => gamma.powi(step.checked_div(every).unwrap_or(0) as i32),
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
        // No warmup and no way down.
        assert_eq!(Schedule::WarmupCosine { warmup: 0, total: 0, floor: 0.2 }.at(5), 0.2);
    }
}
