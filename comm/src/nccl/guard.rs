//! Watches the communicators of a rank, and aborts them when no collective can succeed any more.

use super::{GRACE, LOOK_EVERY, NcclComm, Status, failed};
use oflow_base::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// Watches the communicators of a rank, on a thread that is started with the first one.
#[derive(Default)]
pub struct Guard {
    shared: Arc<Watched>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Default)]
struct Watched {
    comms: Mutex<Vec<Weak<NcclComm>>>,
    failure: Mutex<Option<Error>>,
    has_failed: AtomicBool,
    stop: AtomicBool,
}

impl Watched {
    fn fail(&self, e: Error) {
        let why = e.message().to_string();
        // Told before anything is aborted: what waits on the stream goes on at once then, and must not take what an unfinished
        // collective has left for its result.
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        self.has_failed.store(true, Ordering::Release);
        for comm in self.comms.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade) {
            comm.abort(&why);
        }
    }

    fn look(&self, missed: &mut Option<Instant>) {
        let comms: Vec<_> = {
            let mut all = self.comms.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|c| c.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let mut left = None;
        for comm in &comms {
            let reported = match comm.state() {
                Ok(Status::ncclSuccess | Status::ncclInProgress) => None,
                Ok(other) => Some(failed("NCCL reports", other, comm.lock().as_ref().map(|r| r.0))),
                Err(e) => Some(e),
            };
            if let Some(e) = comm.pulse.failure().or(reported) {
                return self.fail(e);
            }
            // Who has left is not missed by a communicator whose work is done.
            let busy = comm.work.is_busy();
            left = left.or_else(|| comm.left().filter(|_| busy));
        }
        match left {
            None => *missed = None,
            Some(e) if missed.get_or_insert_with(Instant::now).elapsed() > GRACE => self.fail(e),
            Some(_) => {}
        }
    }
}

impl Guard {
    /// Starts to watch a communicator.
    pub fn watch(&self, comm: &Arc<NcclComm>) -> Result<()> {
        self.shared.comms.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(comm));
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = self.shared.clone();
            let look = move || {
                let mut missed = None;
                while !shared.stop.load(Ordering::Acquire) && !shared.has_failed.load(Ordering::Acquire) {
                    shared.look(&mut missed);
                    std::thread::park_timeout(LOOK_EVERY);
                }
            };
            let started = std::thread::Builder::new().name("oflow-nccl".into()).spawn(look);
            *thread = Some(started.map_err(|e| Error::comm("cannot start the thread that watches NCCL").because(e))?);
        }
        Ok(())
    }

    /// Returns why the communicators were aborted, or `None`. Collectives on the stream at that time have wrong results.
    pub fn failure(&self) -> Option<Error> {
        if !self.shared.has_failed.load(Ordering::Acquire) {
            return None;
        }
        let first = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map(|e| Error::new(e.kind(), e.message().to_string()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(t) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            t.thread().unpark();
            // It ends within one look; a panic of it has been printed.
            let _ended = t.join();
        }
    }
}
