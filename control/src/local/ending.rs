//! Signals that end a rank which does not exit by itself after its job has failed; oflaunch does the same for ranks that it starts.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// Time from SIGTERM to SIGKILL.
const TERMINATE: Duration = Duration::from_secs(1);

pub(super) struct Ending {
    rank: usize,
    grace: Duration,
    cancelled: Mutex<bool>,
    wake: Condvar,
}

impl Ending {
    pub(super) fn new(rank: usize, grace: Duration) -> Ending {
        Ending { rank, grace, cancelled: Mutex::new(false), wake: Condvar::new() }
    }

    /// To be called when the job has failed. If this rank has not left after `grace`, it gets SIGTERM, then SIGKILL. Does not block.
    pub(super) fn begin(self: &Arc<Self>, why: &str) {
        let (ending, why) = (self.clone(), why.to_string());
        let wait = move || {
            if ending.left_within(ending.grace) {
                return;
            }
            eprintln!("oflow: rank {} has not ended although its job has failed ({why}); it is ended now", ending.rank);
            // If a process cannot signal itself, there is nothing else to try.
            let _sent = kill_process(getpid(), Signal::TERM);
            if !ending.left_within(TERMINATE) {
                let _sent = kill_process(getpid(), Signal::KILL);
            }
        };
        if let Err(e) = std::thread::Builder::new().name("oflow-ending".into()).spawn(wait) {
            tracing::error!("cannot start the thread that ends this rank: {e}");
        }
    }

    /// To be called when the rank leaves by itself: it gets no signal.
    pub(super) fn cancel(&self) {
        *self.cancelled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    fn left_within(&self, limit: Duration) -> bool {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        *self.wake.wait_timeout_while(cancelled, limit, |c| !*c).unwrap_or_else(PoisonError::into_inner).0
    }
}
