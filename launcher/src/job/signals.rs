//! Signals to oflaunch: those that end the job, and Ctrl-Z.

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind};

use crate::Failed;

/// The signals that end a job, and the one that stops it.
pub(super) struct Signals {
    ends: [unix::Signal; 2],
    /// None where it is ignored, as under `nohup`.
    hangup: Option<unix::Signal>,
    stop: unix::Signal,
}

impl Signals {
    /// From here on they do not end or stop us by themselves.
    pub(super) fn listen() -> Result<Signals, Failed> {
        let listen = |kind| unix::signal(kind).map_err(|e| Failed::new(format!("cannot listen for signals: {e}")));
        let hangup = if ignores(Signal::HUP) { None } else { Some(listen(SignalKind::hangup())?) };
        let stop = listen(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
        Ok(Signals { ends: [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?], hangup, stop })
    }

    /// Waits for the next one that ends the job.
    pub(super) async fn next(&mut self) -> Signal {
        loop {
            match self.any().await {
                // Without ranks only we stop.
                Signal::TSTP => stop_here(),
                end => return end,
            }
        }
    }

    /// Waits for the next one.
    pub(super) async fn any(&mut self) -> Signal {
        let [int, term] = &mut self.ends;
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            Some(()) = int.recv() => Signal::INT,
            Some(()) = term.recv() => Signal::TERM,
            Some(()) = hangup => Signal::HUP,
            Some(()) = self.stop.recv() => Signal::TSTP,
            // They end with the runtime only.
            else => std::future::pending().await,
        }
    }
}

/// Whether this process was started with a signal ignored.
fn ignores(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Stops this process, as Ctrl-Z does by default. Returns when it continues.
pub(super) fn stop_here() {
    // Nothing can refuse this.
    let _stopped = kill_process(getpid(), Signal::STOP);
}
