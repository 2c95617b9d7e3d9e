//! How fast the steps are, without the first ones: those make plans, compile kernels and fill the memory cache.

use oflow::prelude::*;
use std::time::Instant;

/// Times of windows of steps. A window ends where the host has waited for the device, so that nothing is left running.
pub struct Meter {
    warmup: usize,
    /// Where the open window began: step and time.
    from: Option<(usize, Instant)>,
    /// Seconds a step, by window.
    windows: Vec<f64>,
    steps: usize,
    seconds: f64,
}

impl Meter {
    /// The first `warmup` steps do not count.
    pub fn new(warmup: usize) -> Meter {
        Meter { warmup, from: None, windows: vec![], steps: 0, seconds: 0.0 }
    }
    /// `done` steps are done and the host has waited for them. Returns the seconds a step since the last call.
    pub fn mark(&mut self, done: usize) -> f64 {
        let now = Instant::now();
        let each = match self.from {
            Some((from, at)) if done > from => {
                let (steps, seconds) = (done - from, (now - at).as_secs_f64());
                (self.steps, self.seconds) = (self.steps + steps, self.seconds + seconds);
                self.windows.push(seconds / steps as f64);
                seconds / steps as f64
            }
            _ => f64::NAN,
        };
        if done >= self.warmup {
            self.from = Some((done, now));
        }
        each
    }
    /// Seconds of a step: median over the windows.
    pub fn median(&self) -> f64 {
        let mut w = self.windows.clone();
        w.sort_by(f64::total_cmp);
        w.get(w.len() / 2).copied().unwrap_or(f64::NAN)
    }
    /// Steps a second over all that count.
    pub fn steps_per_s(&self) -> f64 {
        self.steps as f64 / self.seconds
    }
}

/// The most device memory that was in use at once, in MiB.
pub fn peak_mib(device: Device) -> Result<f64> {
    Ok(oflow::memory_stats(device)?.peak as f64 / f64::from(1 << 20))
}
