//! Starts a rank: from the launcher's environment, as a world of one, or as a thread of a test.

use super::rank::{EnterGuard, RankCtx};
use crate::boxing::{Hosts, Model, Planner};
use crate::comm::Communicator;
use crate::comm::shm::{ShmArena, ShmOptions};
use crate::comm::sim::SimWorld;
use crate::control::{ControlClient, Failure, FailureKind, Hello, LaunchEnv, Local, StartedRank, TRANSPORT_VARIABLE};
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::intern::FixedHasher;
use crate::ops;
use crate::vm::VmMode;
use oflow_kernels::parallel::{Pool, install_pool};
use std::hash::Hasher;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

/// This process's rank in its job. Dropping it leaves the job, so keep it until the end of `main`.
#[must_use = "the rank leaves the job when this is dropped: `let world = oflow::init()?;` keeps it, `let _ = …` drops it at once"]
pub struct World {
    ctx: Arc<RankCtx>,
    _entered: EnterGuard,
    /// Worker threads of the compute thread; they end with it.
    _pool: Option<Pool>,
    /// The other ranks of the host where oflaunch has not started them; left after everything else has ended.
    local: Option<Local>,
}

impl Drop for World {
    fn drop(&mut self) {
        // While the context is entered: what it has not written may be tensors.
        let log = self.ctx.log_slot().take();
        drop(log);
        // Under oflaunch the exit code tells; elsewhere nobody who would tell the others looks at it.
        if self.local.is_some()
            && std::thread::panicking()
            && let Some(control) = self.ctx.control()
        {
            let rank = self.ctx.rank();
            let failure = Failure::of_rank(rank, FailureKind::Panicked, format!("rank {rank} panicked"));
            if let Err(error) = control.report_failure(&failure) {
                tracing::debug!("could not report the panic: {error}");
            }
        }
    }
}

impl World {
    /// Makes the world of a context and enters the context on behalf of that line.
    pub(super) fn of(ctx: Arc<RankCtx>, site: CallSite) -> World {
        World { _entered: ctx.enter_at(site), ctx, _pool: None, local: None }
    }
    /// Returns the number of this rank.
    pub fn rank(&self) -> usize {
        self.ctx.rank()
    }
    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.ctx.world()
    }
    /// Returns the context, to enter it on helper threads.
    pub fn ctx(&self) -> &Arc<RankCtx> {
        &self.ctx
    }
    /// Waits until every rank has called this. In a dry run it returns at once.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let site = crate::error::CallSite::here();
        let tag = self.ctx.next_op("barrier", 0, site);
        if self.ctx.is_dry() {
            return Ok(());
        }
        let group = crate::comm::Group { ranks: (0..self.size()).collect(), me: self.rank() };
        self.ctx.quiesce()?;
        self.ctx.comm()?.barrier(&group, &tag)
    }
}

/// Joins this process's job and enters its rank context on this thread. Rank and world are read from the environment that the
/// launcher has set: `oflaunch`, or one of [`STARTERS`](crate::control::STARTERS) (`mpirun`, `srun`, `torchrun` …). Programs not
/// started by a launcher run as a world of one.
///
/// # Errors
/// If the environment is incomplete, if the control service cannot be reached or refuses this rank, or if this thread has a
/// context already.
///
/// ```
/// let world = oflow::init()?;
/// assert_eq!((world.rank(), world.size()), (0, 1));
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn init() -> Result<World> {
    let site = CallSite::here();
    if let Ok(ctx) = super::rank::current_rank() {
        return Err(Error::context("this thread has entered a rank context already").help(match ctx.is_dry() {
            true => "in a dry run use the world that `dry_run` gives",
            false => "call oflow::init() once",
        }));
    }
    init_tracing()?;
    // What cannot be meant is refused, also where nothing would come of it.
    let (_, threads) = (wants_mpi()?, LaunchEnv::threads_asked()?);
    crate::backend::cuda::check_links()?;
    let (env, mut local) = match LaunchEnv::from_env()? {
        Some(env) => (Some(env), None),
        None => match StartedRank::from_env()?.filter(|found| found.world > 1) {
            Some(found) => {
                let local = Local::meet(&found)?;
                (Some(local.env().clone()), Some(local))
            }
            None => (None, None),
        },
    };
    let pool = use_threads(env.as_ref().map_or(threads, |e| e.threads));
    let ctx = match env {
        Some(env) => {
            let ctx = join(&env)?;
            if let (Some(local), Some(control)) = (&mut local, ctx.control()) {
                local.watch(control)?;
            }
            ctx
        }
        None => {
            let comm = SimWorld::new(1).pop().ok_or_else(|| Error::comm("no world of one"))?;
            RankCtx::new(Arc::new(comm), None, Planner::default(), VmMode::Inline)?
        }
    };
    ctx.start_timeline()?;
    Ok(World { _entered: ctx.enter_at(site), ctx, _pool: pool, local })
}

fn join(env: &LaunchEnv) -> Result<Arc<RankCtx>> {
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_string(),
        registry_hash: ops::hash(),
        program_hash: program_hash(),
    };
    let control = Arc::new(ControlClient::connect(env, hello)?);
    if env.world > 1 && wants_mpi()? {
        let hosts = super::hosts::of_ranks(env, &control)?;
        let planner = Planner::new(Model { hosts: Hosts::of(&hosts), ..cost_model(&control)? });
        let comm = mpi_comm(env, &control, hosts)?;
        // MPI moves bytes only while it is called, so a thread of its own would have nothing to overlap.
        return RankCtx::new(comm, Some(control), planner, VmMode::Inline);
    }
    let arena = match env.shm_fd {
        Some(fd) => {
            // SAFETY: the launcher passed this descriptor to this process alone; nobody else owns it here.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            Some(ShmArena::from_fd(&fd, env.local_rank, env.local_world)?)
        }
        None => None,
    };
    let (comm, hosts): (Arc<dyn Communicator>, Hosts) = match arena {
        _ if env.local_world < env.world && env.nodes > 1 => super::hosts::join(env, &control, arena)?,
        Some(arena) if env.local_world == env.world => {
            let options = ShmOptions { timeout: env.wait_limit(), ..Default::default() };
            (Arc::new(arena.comm(env.rank, options)?), Hosts::default())
        }
        None if env.world == 1 => {
            (Arc::new(SimWorld::new(1).pop().ok_or_else(|| Error::comm("no world of one"))?), Hosts::default())
        }
        _ => {
            return Err(Error::unsupported("this rank has no shared memory with the other ranks of its host")
                .help("start the job with oflaunch"));
        }
    };
    // A core that nobody computes on takes the large boxings, which then overlap with compute.
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = env.threads.unwrap_or(1);
    let spare = env.world > 1 && cores > threads && env.local_world * (threads + 1) <= host_cores();
    let planner = Planner::new(Model { hosts, ..cost_model(&control)? });
    RankCtx::new(comm, Some(control), planner, if spare { VmMode::CommThread } else { VmMode::Inline })
}

/// Whether the user wants the ranks to talk through the MPI library of the site.
fn wants_mpi() -> Result<bool> {
    match std::env::var(TRANSPORT_VARIABLE) {
        Err(_) => Ok(false),
        Ok(text) if text == "own" => Ok(false),
        Ok(text) if text == "mpi" => Ok(true),
        Ok(text) => {
            Err(Error::argument(format!("environment variable {TRANSPORT_VARIABLE} is {text:?}, not own or mpi")))
        }
    }
}

#[cfg(feature = "mpi")]
fn mpi_comm(env: &LaunchEnv, control: &Arc<ControlClient>, hosts: Vec<usize>) -> Result<Arc<dyn Communicator>> {
    use crate::comm::{Pulse, mpi};
    /// Failures that the control plane knows of; MPI itself does not see that a rank has died.
    struct Control(Arc<ControlClient>);
    impl Pulse for Control {
        fn failure(&self) -> Option<Error> {
            self.0.has_failed().then(|| self.0.failure()).flatten().map(Error::from)
        }
        fn has_left(&self, _rank: usize) -> bool {
            false
        }
    }
    let pulse = Arc::new(Control(control.clone()));
    let options = mpi::MpiOptions { timeout: env.wait_limit(), hosts, ..Default::default() };
    Ok(Arc::new(mpi::join(env.rank, env.world, pulse, options)?))
}

#[cfg(not(feature = "mpi"))]
fn mpi_comm(_env: &LaunchEnv, _control: &Arc<ControlClient>, _hosts: Vec<usize>) -> Result<Arc<dyn Communicator>> {
    Err(Error::unsupported(format!("{TRANSPORT_VARIABLE}=mpi, but this program was built without MPI"))
        .help("build it with the cargo feature `mpi` of oflow, or unset the variable: ranks started by mpirun can communicate without MPI too"))
}

/// The cost model that the launcher gives to every rank: all plan alike, because all read the same bytes.
fn cost_model(control: &ControlClient) -> Result<Model> {
    Ok(match control.cost_model() {
        [] => Model::default(),
        bytes => serde_json::from_slice(bytes)
            .map_err(|e| Error::comm("the cost model that the launcher sent cannot be read").because(e))?,
    })
}

/// Cores of the host, whatever this process is bound to.
fn host_cores() -> usize {
    std::fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|s| s.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<usize>().ok()))
        .map_or(1, |last| last + 1)
}

/// Hash over size and time of the executable: ranks of different programs are refused at start. Of the file that runs, not
/// of what its path names by now: it may have been built anew since.
fn program_hash() -> u64 {
    let mut h = FixedHasher::default();
    if let Ok(meta) = std::fs::metadata("/proc/self/exe") {
        h.write_u64(meta.len());
        if let Some(t) = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok()) {
            h.write_u64(t.as_nanos() as u64);
        }
    }
    h.finish()
}

/// The compute thread becomes a member of its pool: entering from outside would cost 20 µs a call. A thread that belongs
/// to a pool already keeps it.
fn use_threads(threads: Option<usize>) -> Option<Pool> {
    let n = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    (n > 1).then(|| install_pool(n).ok()).flatten()
}

/// `OFLOW_LOG=oflow=debug` prints spans and events; a subscriber of the user's own takes precedence.
fn init_tracing() -> Result<()> {
    use std::io::{IsTerminal, stderr};
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::prelude::*;
    let Some(text) = std::env::var_os("OFLOW_LOG").filter(|text| !text.is_empty()) else { return Ok(()) };
    let filter = text.to_str().and_then(|text| text.parse::<Targets>().ok()).ok_or_else(|| {
        Error::argument(format!("environment variable OFLOW_LOG is {text:?}, not a list of levels")).help(
            "write a level (error, warn, info, debug, trace, off), target=level, or several of them with commas between: \
             warn,oflow=debug",
        )
    })?;
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let log = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(stderr).with_filter(filter);
    let _the_programs_own_counts = tracing_subscriber::registry().with(log).try_init();
    Ok(())
}

/// Runs a closure on `n` simulated ranks, which are threads, and returns the results in order of ranks. For tests: deadlocks are
/// detected and reported, and a panic of one rank ends the others with an error.
///
/// ```
/// use oflow::prelude::*;
/// let sums = oflow::run_ranks(4, |world| {
///     let mesh = Placement::all(Device::Cpu)?;
///     let x = ones([6], (&mesh, sbp![S(0)]))?;
///     assert_eq!(world.size(), 4);
///     x.sum(())?.item()
/// })?;
/// assert_eq!(sums, [6.0; 4]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// When ranks fail, the error of one of them that says why: rather that of the rank that failed first than that of a rank that only
/// tells of another's end.
#[track_caller]
pub fn run_ranks<R: Send>(n: usize, f: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    run_ranks_with(n, VmMode::Inline, f)
}

/// Like [`run_ranks`], with streams of the given kind.
#[track_caller]
pub fn run_ranks_with<R: Send>(n: usize, mode: VmMode, f: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    let site = CallSite::here();
    let results = crate::comm::sim::run(n, |_, comm| {
        let ctx = RankCtx::new(Arc::new(comm), None, Planner::default(), mode)?;
        let world = World::of(ctx, site);
        let out = f(&world);
        world.ctx.quiesce()?;
        out
    });
    // When one rank fails the others fail with it. A logical error tells most, then one that tells of no other rank's end.
    let (mut values, mut errors) = (vec![], vec![]);
    for r in results {
        match r {
            Ok(v) => values.push(v),
            Err(e) => errors.push(e),
        }
    }
    let priority =
        |e: &Error| (!e.is_logical(), matches!(e.kind(), ErrorKind::Peer | ErrorKind::Comm | ErrorKind::Link));
    match (0..errors.len()).min_by_key(|i| priority(&errors[*i])) {
        Some(i) => Err(errors.swap_remove(i)),
        None => Ok(values),
    }
}
