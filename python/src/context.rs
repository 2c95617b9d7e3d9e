//! The rank of this process, and when a call lets other threads of Python run.

use crate::errors::{OrRaise, exception};
use crate::guards;
use oflow::control::LaunchEnv;
use oflow::functional::{Arg, FnBody, FnDef};
use oflow::{GeneratorState, RankCtx, RankGenerators, World};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The rank of the process, once it has joined its job.
static RANK: Mutex<Option<Arc<RankCtx>>> = Mutex::new(None);

/// Whether this process is a fork of a rank.
static FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
    /// On the thread that joined: leaves the job when it is dropped, which `_finish` does. Without a destructor of its own, since
    /// other locals of the thread may be gone before it.
    static WORLD: RefCell<ManuallyDrop<Option<World>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Enters the rank's context on this thread; the first call of the process joins the job. Ends the modes of this thread that other
/// threads have left.
#[inline]
pub fn enter(py: Python<'_>) -> PyResult<()> {
    if ENTERED.get() && !guards::left_elsewhere() { Ok(()) } else { enter_slowly(py) }
}

/// While it lives, calls from Python run in the context that the thread has.
pub struct OfTheCaller(bool);

/// For code of Python that the library calls: the thread is in the context of whoever called the library, which may be a simulated
/// rank of a test. To enter that of the process would put its calls on another rank.
pub fn of_the_caller() -> OfTheCaller {
    OfTheCaller(ENTERED.replace(true))
}

impl Drop for OfTheCaller {
    fn drop(&mut self) {
        ENTERED.set(self.0);
    }
}

#[cold]
fn enter_slowly(py: Python<'_>) -> PyResult<()> {
    guards::end_left();
    if ENTERED.get() { Ok(()) } else { join(py) }
}

fn join(py: Python<'_>) -> PyResult<()> {
    let rank = RANK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match rank {
        Some(ctx) => {
            // For the life of the thread, at whose end its context is dropped.
            std::mem::forget(ctx.enter());
            ENTERED.set(true);
            Ok(())
        }
        None if FORKED.load(Ordering::Relaxed) => Err(PyRuntimeError::new_err(
            "this process was forked from a rank of oflow: the threads that the library needs are not in it; start workers with \
             multiprocessing's method \"spawn\"",
        )),
        None => {
            let threading = py.import("threading")?;
            let main = threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?);
            if !main && LaunchEnv::from_env().or_raise(py)?.is_some() {
                let e =
                    oflow::Error::context("the first use of oflow in this job is on a thread that is not the main one");
                return Err(exception(py, e.help("call oflow.init() in the main thread before other threads start")));
            }
            // Joining waits for the other ranks.
            let joined = py.detach(|| {
                let world = oflow::init()?;
                let ctx = world.ctx().clone();
                WORLD.with_borrow_mut(|w| **w = Some(world));
                Ok(ctx)
            });
            *RANK.lock().unwrap_or_else(PoisonError::into_inner) = Some(joined.or_raise(py)?);
            ENTERED.set(true);
            Ok(())
        }
    }
}

/// The context of the rank, which has been entered.
fn joined(py: Python<'_>) -> PyResult<Arc<RankCtx>> {
    enter(py)?;
    let rank = RANK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    rank.ok_or_else(|| PyRuntimeError::new_err("this process has left its job"))
}

/// Joins the job that a launcher has set up in the environment; without one, a world of one. The first use of a tensor does the
/// same.
#[pyfunction]
pub fn init(py: Python<'_>) -> PyResult<()> {
    enter(py)
}

/// Whether this process has joined its job, or is a world of one already.
#[pyfunction]
pub fn is_initialized() -> bool {
    RANK.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Leaves the job: the end of the program. Tensors may still be dropped.
#[pyfunction]
pub fn _finish(py: Python<'_>) {
    let rank = RANK.lock().unwrap_or_else(PoisonError::into_inner).take();
    py.detach(|| {
        // What the context ends may wait for other ranks.
        let world = WORLD.with_borrow_mut(|w| w.take());
        drop(rank);
        drop(world);
    });
    ENTERED.set(false);
}

/// The context of the rank, if the process has joined its job.
pub fn now() -> Option<Arc<RankCtx>> {
    RANK.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// In a process that was forked from a rank: drops what belongs to the rank without a word to anybody.
pub fn forget() {
    let rank = match RANK.try_lock() {
        Ok(mut rank) => rank.take(),
        // Another thread of the rank, which is not here, held it.
        Err(_) => None,
    };
    if rank.is_none() && !ENTERED.get() {
        return;
    }
    FORKED.store(true, Ordering::Relaxed);
    std::mem::forget(rank);
    std::mem::forget(WORLD.with_borrow_mut(|w| w.take()));
    ENTERED.set(false);
}

/// The number of this rank.
#[pyfunction]
pub fn rank(py: Python<'_>) -> PyResult<usize> {
    Ok(joined(py)?.rank())
}

/// The number of ranks.
#[pyfunction]
pub fn world_size(py: Python<'_>) -> PyResult<usize> {
    Ok(joined(py)?.world())
}

/// Seeds the random numbers of this rank: call it with the same seed on every rank.
#[pyfunction]
pub fn manual_seed(py: Python<'_>, seed: u64) -> PyResult<()> {
    enter(py)?;
    oflow::manual_seed(seed);
    Ok(())
}

/// The states of this rank's generators of global and of local tensors, each a seed and the number of draws.
#[pyfunction]
pub fn _generators(py: Python<'_>) -> PyResult<((u64, u64), (u64, u64))> {
    enter(py)?;
    let (pair, all) = (|s: GeneratorState| (s.seed, s.ordinal), oflow::rank_generators());
    Ok((pair(all.global), pair(all.local)))
}

/// Both generators go on from states of ``_generators``.
#[pyfunction]
pub fn _set_generators(py: Python<'_>, of_global: (u64, u64), of_local: (u64, u64)) -> PyResult<()> {
    enter(py)?;
    let state = |(seed, ordinal)| GeneratorState { seed, ordinal };
    oflow::set_rank_generators(RankGenerators { global: state(of_global), local: state(of_local) }).or_raise(py)
}

/// Waits until every rank has called this.
#[pyfunction]
pub fn barrier(py: Python<'_>) -> PyResult<()> {
    enter(py)?;
    let site = crate::site::caller(py);
    let wait = || {
        let _scope = site.scope();
        WORLD.with_borrow(|w| w.as_ref().map(World::barrier))
    };
    match py.detach(wait) {
        Some(done) => done.or_raise(py),
        None => Err(PyRuntimeError::new_err("barrier() is called on the thread that has joined the job")),
    }
}

/// From so many elements on a call takes longer than to hand the interpreter over.
const LONG: usize = 1 << 12;

/// Whether other threads of Python should run meanwhile: the call may wait for other ranks, or computes long.
pub fn takes_long(args: &[Option<Arg>], def: &FnDef) -> bool {
    let long = |t: &oflow::Tensor| {
        if t.is_global() { t.placement().is_ok_and(|p| p.len() > 1) } else { t.numel() >= LONG }
    };
    let value = matches!(def.body, FnBody::Value(_));
    args.iter().flatten().any(|a| match a {
        Arg::Tensor(t) => long(t) && (!value || t.is_global()),
        Arg::Tensors(all) => all.iter().any(long),
        Arg::Target(_) => true,
        _ => false,
    })
}
