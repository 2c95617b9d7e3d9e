//! Threads that make what is asked for later.
//!
//! [`InOrder`] has the protocol: a number of jobs, made by several threads and taken in order by one caller. `begun` jobs were taken up by a
//! thread, `taken` were returned; `taken <= begun <= taken + ahead`. A thread waits while `begun == taken + ahead`; the caller waits while
//! the job `taken` is not in `made`. All of it is under one lock; each change wakes all that wait.

use crate::error::{Error, Result, panic_text};
use crate::trace;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Starts a thread with a name.
pub(super) fn spawn<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    let owner = trace::owner();
    let made = Builder::new().name(name.to_string()).spawn(move || {
        trace::adopt(owner);
        f()
    });
    made.map_err(|e| Error::io(format!("no thread '{name}' could be started: {e}")).because(e))
}

/// Runs users' code. A panic becomes an error.
pub(super) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = panic_text(&*payload).unwrap_or("(no message)");
        Error::value(format!("panic on a thread that reads data: {text}"))
            .help("return an error from the closure where a row cannot be made")
    })
}

struct State<T> {
    begun: usize,
    taken: usize,
    made: BTreeMap<usize, Result<T>>,
    closed: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Users' code does not run under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results of the jobs `first..end`, made on threads and returned in order.
pub(super) struct InOrder<T> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
}

impl<T: Send + 'static> InOrder<T> {
    /// Starts threads that run `make`, for at most `ahead` jobs more than were taken.
    pub fn start(
        first: usize,
        end: usize,
        threads: usize,
        ahead: usize,
        make: impl Fn(usize) -> Result<T> + Send + Sync + 'static,
    ) -> Result<InOrder<T>> {
        let state = State { begun: first, taken: first, made: BTreeMap::new(), closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (make, ahead) = (Arc::new(make), ahead.max(1));
        let mut all = InOrder { shared, threads: vec![] };
        for _ in 0..threads.max(1) {
            let (shared, make) = (all.shared.clone(), make.clone());
            all.threads.push(spawn("oflow-data", move || {
                while let Some(job) = begin(&shared, end, ahead) {
                    let made = guarded(|| make(job)).and_then(|r| r);
                    shared.lock().made.insert(job, made);
                    shared.changed.notify_all();
                }
            })?);
        }
        Ok(all)
    }
    /// Returns the result of the next job. There must be one.
    pub fn take(&self) -> Result<T> {
        let mut state = self.shared.lock();
        loop {
            let next = state.taken;
            if let Some(made) = state.made.remove(&next) {
                state.taken += 1;
                self.shared.changed.notify_all();
                return made;
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The next job of a thread, once there is room for its result; `None` where there is nothing more to do.
fn begin<T>(shared: &Shared<T>, end: usize, ahead: usize) -> Option<usize> {
    let mut state = shared.lock();
    loop {
        if state.closed || state.begun >= end {
            return None;
        }
        if state.begun < state.taken.saturating_add(ahead) {
            state.begun += 1;
            return Some(state.begun - 1);
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

impl<T> Drop for InOrder<T> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn results_come_in_order_and_no_more_are_made_than_asked() {
        for (threads, ahead) in [(1, 1), (3, 2), (4, 9)] {
            let begun = Arc::new(AtomicUsize::new(0));
            let count = begun.clone();
            let jobs = InOrder::start(5, 60, threads, ahead, move |n| {
                count.fetch_add(1, Ordering::SeqCst);
                // Later jobs are done earlier.
                std::thread::sleep(Duration::from_micros((n % 4 * 200) as u64));
                if n % 10 == 7 { Err(Error::value(format!("row {n}"))) } else { Ok(n) }
            })
            .unwrap();
            for n in 5..60 {
                match jobs.take() {
                    Ok(got) => assert_eq!(got, n),
                    Err(e) => assert_eq!((e.message(), n % 10), (format!("row {n}").as_str(), 7)),
                }
                // `take` counts before a thread sees it: at most `ahead` jobs more than were taken have begun.
                assert!(begun.load(Ordering::SeqCst) <= n - 5 + 1 + ahead, "{threads} threads, {ahead} ahead");
            }
            assert_eq!(begun.load(Ordering::SeqCst), 55);
        }
    }

    #[test]
    fn a_panic_is_an_error_of_its_job_and_threads_end_when_dropped() {
        let alive = Arc::new(());
        let held = alive.clone();
        let jobs = InOrder::start(0, 1000, 3, 4, move |n| {
            let _held = &held;
            assert!(n != 2, "no row {n}");
            Ok(n)
        })
        .unwrap();
        assert_eq!((jobs.take().unwrap(), jobs.take().unwrap()), (0, 1));
        let e = jobs.take().unwrap_err();
        assert_eq!(e.message(), "panic on a thread that reads data: no row 2");
        assert_eq!(jobs.take().unwrap(), 3);
        drop(jobs);
        assert_eq!(Arc::strong_count(&alive), 1, "all threads have ended");
    }
}
