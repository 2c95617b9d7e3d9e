//! Measures the speed of training steps. The first steps are left out: they make plans, compile kernels and fill the memory
//! cache.

use oflow::prelude::*;
use std::time::Instant;

/// Measures windows of steps. A window ends after the host has waited for the device, so that no work of it is left running.
pub struct Meter {
    warmup: usize,
    /// Step and time at which the open window began.
    from: Option<(usize, Instant)>,
    /// Seconds per step of each window.
    windows: Vec<f64>,
    steps: usize,
    seconds: f64,
}

impl Meter {
    /// A meter that leaves the first `warmup` steps out of [`median`](Self::median) and [`steps_per_s`](Self::steps_per_s).
    pub fn new(warmup: usize) -> Meter {
        Meter { warmup, from: None, windows: vec![], steps: 0, seconds: 0.0 }
    }
    /// Ends a window after `done` steps, which the host has waited for. Returns seconds per step since the last call, NaN in the
    /// first one.
    pub fn mark(&mut self, done: usize) -> f64 {
        let now = Instant::now();
        let each = match self.from {
            Some((from, at)) if done > from => {
                let (steps, seconds) = (done - from, (now - at).as_secs_f64());
                if from >= self.warmup {
                    (self.steps, self.seconds) = (self.steps + steps, self.seconds + seconds);
                    self.windows.push(seconds / steps as f64);
                }
                seconds / steps as f64
            }
            _ => f64::NAN,
        };
        self.from = Some((done, now));
        each
    }
    /// Seconds per step, the median over the windows.
    pub fn median(&self) -> f64 {
        let mut w = self.windows.clone();
        w.sort_by(f64::total_cmp);
        w.get(w.len() / 2).copied().unwrap_or(f64::NAN)
    }
    /// Steps per second over all windows.
    pub fn steps_per_s(&self) -> f64 {
        self.steps as f64 / self.seconds
    }
}

/// Peak device memory in use, in MiB.
pub fn peak_mib(device: Device) -> Result<f64> {
    Ok(oflow::memory_stats(device)?.peak as f64 / f64::from(1 << 20))
}
