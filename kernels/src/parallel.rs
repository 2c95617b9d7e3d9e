//! Multi-threading of kernels: one function that splits a range.
//!
//! Chunk boundaries depend on the length and the grain only. A kernel that computes each chunk by itself, or combines
//! per-chunk results in chunk order, therefore gives the same bits for any number of threads.
//!
//! The calling thread must be a member of the pool ([`install_pool`]), because passing work to a pool from outside takes longer
//! than most kernels. A thread without a pool computes everything itself.

use crate::{KernelError, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Number of elements below which a memory-bound kernel runs on one thread.
pub const GRAIN: usize = 32 * 1024;

/// Calls `f` on `0..grain`, `grain..2 * grain`, … up to `len`, in any order and possibly in parallel. Returns after the last
/// call.
pub fn parallel_for(len: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let grain = grain.max(1);
    let chunks = len.div_ceil(grain);
    let chunk = |c: usize| f(c * grain..len.min((c + 1) * grain));
    if chunks <= 1 || threads() == 1 {
        (0..chunks).for_each(chunk);
    } else {
        (0..chunks).into_par_iter().for_each(chunk);
    }
}

/// Returns the number of threads that [`parallel_for`] uses on this thread.
pub fn threads() -> usize {
    if rayon::current_thread_index().is_some() { rayon::current_num_threads() } else { 1 }
}

/// The worker threads of [`install_pool`]. They end when it is dropped; the installing thread then computes alone.
#[derive(Debug)]
pub struct Pool {
    _pool: rayon::ThreadPool,
}

/// Makes the calling thread a member of a new pool of `threads` threads, so that [`parallel_for`] called on it is spread
/// over them. A thread can join one pool in its life.
///
/// # Errors
/// If the thread already belongs to a pool or the system refuses to start threads.
pub fn install_pool(threads: usize) -> Result<Pool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .use_current_thread()
        .thread_name(|i| format!("oflow-compute-{i}"))
        .build()
        .map(|_pool| Pool { _pool })
        .map_err(|e| KernelError::new(format!("cannot start {threads} compute threads: {e}")))
}
