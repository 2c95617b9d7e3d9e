//! Progress of a training on rank 0: on a terminal a bar that is redrawn, elsewhere a line on stdout for each logged step.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows the steps that are done.
pub struct Progress {
    shown: bool,
    total: usize,
    began: Instant,
    /// When the bar was last drawn.
    drawn: Option<Instant>,
}

impl Progress {
    /// Progress over `total` steps; silent if not `shown`.
    pub fn new(total: usize, shown: bool) -> Progress {
        Progress { shown, total: total.max(1), began: Instant::now(), drawn: None }
    }
    /// Shows that `done` steps are done, the last logged one with this loss. `each` is the time of a step since the one logged before,
    /// in seconds; NaN if there was none. The line has all digits of the loss, so that runs can be compared.
    pub fn at(&mut self, done: usize, loss: &str, each: f64) {
        if !self.shown {
            return;
        }
        if !std::io::stdout().is_terminal() {
            let time = if each.is_nan() { String::new() } else { format!(" ({:.3} ms)", each * 1e3) };
            println!("step {done}/{}: loss {loss}{time}", self.total);
            return;
        }
        let last = done >= self.total;
        if !last && self.drawn.is_some_and(|d| d.elapsed() < Duration::from_millis(50)) {
            return;
        }
        self.drawn = Some(Instant::now());
        let filled = done * 30 / self.total;
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(30 - filled));
        let seconds = self.began.elapsed().as_secs_f64();
        let end = if last { "\n" } else { "" };
        let mut out = std::io::stderr().lock();
        // The bar is decoration: a closed stderr does not stop the training.
        let _ = write!(out, "\r{bar} {done}/{} loss {loss} {seconds:.1} s\x1b[K{end}", self.total);
        let _ = out.flush();
    }
}
