//! Dry runs: a program run as one rank of any world, without data and without the other ranks.
//!
//! [`dry_run`] enters a rank context that has no communicator and no memory. Its allocators count blocks in the real size
//! classes (`memory/allocator.rs`). Its streams execute nothing, but walk each boxing plan to find its scratch memory
//! (`backend/dry.rs`). Everything above runs unchanged, so plans, comm records and peak memory are those of a real run.
//! Storages and handles have an `Origin`: the program, or one dry run. `Tensor::check_origin` compares the origins before
//! a call is issued, so meta tensors and data never mix. An op that would ask other ranks gets its answer by a rule
//! (`to_global` of shards), or is refused (`from_boxes`).

use super::init::World;
use super::rank::{RankCtx, current};
use crate::boxing::{Model, Planner};
use crate::error::{CallSite, Error, Result};

/// More ranks than any job has. The ranks of a world are listed in memory.
const MOST_RANKS: usize = 1 << 20;

/// Runs a closure as one rank of a world, without data: on one thread, without the other ranks, and without memory behind the
/// tensors. Shapes, layouts, boxings and memory counts are those of a real run.
///
/// Tensors made in it are *meta tensors*. They go through the same inference, choice of signatures, boxing plans, autograd
/// and optimizers as tensors with data, on the same device kinds: `Device::Cuda` needs no GPU here. Instructions are
/// counted instead of executed. [`report`](crate::report) and [`take_comm_trace`](crate::take_comm_trace) return the communication,
/// with predicted times and without measured ones; [`memory_stats`](crate::memory_stats) returns the memory of this rank with its
/// peak.
///
/// - The dry run has its own stream of ops, generators, dispatch cache and comm records; those of the calling program do not change.
///   Modes of the thread, such as `no_grad` and policies, apply in it too.
/// - Using a meta tensor outside its dry run, or a tensor with data inside, is an error. So make the model in the closure.
/// - Reading a value (`item`, `to_vec`) is an error; ask [`is_dry_run`](crate::is_dry_run) before. Gradients count as finite for
///   [`GradScaler`](crate::optim::GradScaler). Checkpoints are neither saved nor loaded.
/// - `local.to_global(...)` assumes that the shards of all ranks are as large as this rank's. `from_boxes` is an error, because
///   it depends on data of the other ranks.
///
/// `world` is the number of ranks and `rank` the rank that is run. Ranks may be run one by one, in any order and on any thread.
/// The cost model is that of the calling job, or the default outside a job.
///
/// ```
/// use oflow::prelude::*;
/// // The communication and the memory of one rank of 4,096.
/// let (loss, report, memory) = oflow::dry_run(4096, 0, |world| {
///     let mesh = Placement::all(Device::Cuda)?.mesh(&[("dp", 512), ("tp", 8)])?;
///     let x = randn([1 << 16, 8192], (&mesh, sbp![S(0), B]))?;
///     let w = randn([8192, 8192], (&mesh, sbp![B, S(1)]))?.requires_grad_(true)?;
///     let loss = x.matmul(&w)?.sum(())?;
///     loss.backward()?;
///     assert_eq!(world.size(), 4096);
///     Ok((format!("{loss:?}"), oflow::report(), oflow::memory_stats(Device::Cuda)?))
/// })?;
/// assert_eq!(loss, "meta f32[] [P(sum), P(sum)] on cuda[dp=512, tp=8] (in graph)");
/// println!("{report}\n{memory}");
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If `rank` is not below `world`, and errors of the closure.
#[track_caller]
pub fn dry_run<R>(world: usize, rank: usize, f: impl FnOnce(&World) -> Result<R>) -> Result<R> {
    let model = *current().planner().model();
    run(world, rank, model, CallSite::here(), f)
}

/// Like [`dry_run`], with the cost model given: constants, and the number of ranks per host.
///
/// ```
/// use oflow::boxing::Model;
/// use oflow::prelude::*;
/// let hosts_of_8 = Model { hosts: 8.into(), ..Model::default() };
/// let predicted = oflow::dry_run_with(64, 0, hosts_of_8, |_| {
///     ones([1 << 20], (&Placement::all(Device::Cpu)?, sbp![P]))?.to_global(sbp![B])?;
///     Ok(oflow::report().predicted())
/// })?;
/// assert!(predicted.as_micros() > 0);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of [`dry_run`].
#[track_caller]
pub fn dry_run_with<R>(world: usize, rank: usize, model: Model, f: impl FnOnce(&World) -> Result<R>) -> Result<R> {
    run(world, rank, model, CallSite::here(), f)
}

fn run<R>(world: usize, rank: usize, model: Model, site: CallSite, f: impl FnOnce(&World) -> Result<R>) -> Result<R> {
    let fits = |n: usize| u32::try_from(n).ok().filter(|_| world <= MOST_RANKS && rank < world);
    let (Some(r), Some(w)) = (fits(rank), fits(world)) else {
        return Err(Error::argument(format!("a dry run cannot be rank {rank} of a world of {world}"))
            .at(site)
            .help(format!("ranks count from 0; a world has at most {MOST_RANKS}")));
    };
    f(&World::of(RankCtx::dry(r, w, Planner::new(model)), site))
}
