//! A progress bar for rank 0: on a terminal one line that is redrawn, elsewhere one line for each tenth.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A progress bar on stderr.
pub struct Progress {
    shown: bool,
    total: usize,
    began: Instant,
    /// Tenths already printed, where stderr is no terminal.
    tenths: usize,
    drawn: Option<Instant>,
}

impl Progress {
    /// A bar over `total` steps; silent on ranks that do not show it.
    pub fn new(total: usize, shown: bool) -> Progress {
        Progress { shown, total: total.max(1), began: Instant::now(), tenths: 0, drawn: None }
    }
    /// Shows that `done` steps are done, with a text after the numbers.
    pub fn at(&mut self, done: usize, text: impl FnOnce() -> String) {
        if !self.shown {
            return;
        }
        let (tenths, last) = (done * 10 / self.total, done >= self.total);
        let mut out = std::io::stderr().lock();
        // Progress is decoration: a closed stderr does not stop the training.
        let _ = if out.is_terminal() {
            if !last && self.drawn.is_some_and(|d| d.elapsed() < Duration::from_millis(50)) {
                return;
            }
            self.drawn = Some(Instant::now());
            let filled = done * 30 / self.total;
            let bar = format!("{}{}", "█".repeat(filled), "░".repeat(30 - filled));
            let seconds = self.began.elapsed().as_secs_f64();
            let end = if last { "\n" } else { "" };
            write!(out, "\r{bar} {done}/{} {} {seconds:.1} s\x1b[K{end}", self.total, text())
        } else if tenths > self.tenths {
            self.tenths = tenths;
            writeln!(out, "{:3} % {}", tenths * 10, text())
        } else {
            Ok(())
        };
        let _ = out.flush();
    }
}
