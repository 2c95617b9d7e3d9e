//! A pool of threads that run as ranks. A run borrows threads and returns them, so a test suite with many small worlds does not
//! start a thread for each rank.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Idle threads. Runs may overlap (tests are concurrent): each takes its own.
static IDLE: Mutex<Vec<Arc<Worker>>> = Mutex::new(Vec::new());

/// One thread's mailbox.
struct Worker {
    job: Mutex<Option<Job>>,
    posted: Condvar,
}

/// Work of a thread; `'static` only because [`run_team`] waits for all of them before its borrows end.
type Job = Box<dyn FnOnce() + Send>;

impl Worker {
    fn spawn() -> Arc<Worker> {
        let worker = Arc::new(Worker { job: Mutex::new(None), posted: Condvar::new() });
        let mine = worker.clone();
        std::thread::Builder::new()
            .name("oflow-sim-rank".into())
            .spawn(move || {
                loop {
                    let mut job = mine.job.lock().unwrap_or_else(PoisonError::into_inner);
                    while job.is_none() {
                        job = mine.posted.wait(job).unwrap_or_else(PoisonError::into_inner);
                    }
                    let Some(work) = job.take() else { continue };
                    drop(job);
                    work();
                }
            })
            .expect("the system starts a thread");
        worker
    }
}

/// Counts the ranks that have not ended yet.
struct Latch {
    left: Mutex<usize>,
    ended: Condvar,
}

impl Latch {
    fn count_down(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        if *left == 0 {
            self.ended.notify_all();
        }
    }
    fn wait(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        while *left > 0 {
            left = self.ended.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Numbers panics in the order in which the ranks' ends left their world.
static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MY_PANIC: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A transport calls this before the other ranks see that its rank has left. If the thread unwinds, its panic then counts
/// as earlier than those that follow from it on other ranks.
pub(super) fn leaving() {
    if std::thread::panicking() && MY_PANIC.get().is_none() {
        MY_PANIC.set(Some(PANICS.fetch_add(1, Ordering::Relaxed)));
    }
}

/// Runs `f(rank)` on `n` threads of the pool at once and returns the results in rank order.
///
/// # Panics
/// With the message of the first rank that panicked, after all ranks have ended.
pub fn run_team<R: Send>(n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut workers = {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = idle.len().saturating_sub(n);
        idle.split_off(keep)
    };
    workers.resize_with(n, Worker::spawn);

    let results: Vec<Mutex<Option<R>>> = (0..n).map(|_| Mutex::new(None)).collect();
    let panics: Mutex<Vec<(u64, usize, String)>> = Mutex::new(Vec::new());
    let latch = Arc::new(Latch { left: Mutex::new(n), ended: Condvar::new() });
    for (rank, worker) in workers.iter().enumerate() {
        let (f, results, panics, latch) = (&f, &results, &panics, latch.clone());
        let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
            match catch_unwind(AssertUnwindSafe(|| f(rank))) {
                Ok(r) => *results[rank].lock().unwrap_or_else(PoisonError::into_inner) = Some(r),
                Err(p) => {
                    let order = MY_PANIC.take().unwrap_or_else(|| PANICS.fetch_add(1, Ordering::Relaxed));
                    panics.lock().unwrap_or_else(PoisonError::into_inner).push((order, rank, message(&*p)));
                }
            }
            latch.count_down();
        });
        // SAFETY: only the lifetime changes. The borrows of the job are used before `count_down`, and this function does
        // not return or unwind before the latch has counted all jobs down: nothing between here and `wait` panics.
        let job: Job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Job>(job) };
        *worker.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        worker.posted.notify_one();
    }
    latch.wait();
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).append(&mut workers);

    let panics = panics.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, rank, message)) = panics.iter().min() {
        panic!("rank {rank} panicked: {message}");
    }
    results.into_iter().filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no message)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_rank_order_and_a_panic_names_its_rank() {
        for n in [0, 1, 3, 8, 2] {
            assert_eq!(run_team(n, |r| r * 10), (0..n).map(|r| r * 10).collect::<Vec<_>>());
        }
        let e = catch_unwind(|| run_team(3, |r| assert!(r != 2, "boom"))).unwrap_err();
        assert_eq!(message(&*e), "rank 2 panicked: boom");
        assert_eq!(run_team(3, |r| r), [0, 1, 2]);
    }
}
