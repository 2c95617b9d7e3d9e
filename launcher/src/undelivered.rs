//! Output, logs and events that could not be written: whether that ends the job.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::output::complain;

/// Output of a job that was lost. Clones are of the same job.
#[derive(Clone, Debug, Default)]
pub struct Undelivered(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Whether the job ends with the first loss.
    required: bool,
    first: Mutex<Option<Cause>>,
    changed: Notify,
}

/// Why the job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody reads the output of oflaunch any more.
    Closed,
    /// Something that is required could not be written: a sentence.
    Unwritten(String),
}

impl Undelivered {
    /// Makes the record of a job, which ends with the first one if its output and logs are `required`.
    pub fn new(required: bool) -> Undelivered {
        Undelivered(Arc::new(State { required, ..State::default() }))
    }

    /// Tells that something could not be written: prints why, and ends the job if that is asked for.
    pub fn lost(&self, text: &str) {
        if self.0.required {
            self.end(Cause::Unwritten(text.into()));
        } else {
            complain(&format!("{text}; the job goes on, what does not fit is lost"));
        }
    }

    /// Tells that nobody reads the output, which ends the job.
    pub fn closed(&self) {
        self.end(Cause::Closed);
    }

    fn end(&self, cause: Cause) {
        self.0.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
        self.0.changed.notify_one();
    }

    /// Returns the first loss that ends the job.
    pub fn first(&self) -> Option<Cause> {
        self.0.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for it.
    pub async fn wait(&self) -> Cause {
        loop {
            let changed = self.0.changed.notified();
            if let Some(cause) = self.first() {
                return cause;
            }
            changed.await;
        }
    }
}
