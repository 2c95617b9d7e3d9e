//! Pools of threads.

use oflow_kernels::parallel::install_pool;

/// Runs `f` on a fresh thread that is a member of a pool of `threads` threads.
pub(crate) fn with_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| {
        let work = s.spawn(|| {
            let _pool = install_pool(threads).unwrap();
            f()
        });
        work.join().unwrap()
    })
}
