//! libcuda. The state is the process's: GPUs with their one (primary) context, and tables of live handles. A handle is a
//! number that is never given twice, so that a stale one is an error and not somebody else's stream.

pub mod codes;
pub mod copy;
pub mod device;
pub mod event;
mod gate;
pub mod graph;
pub mod launch;
pub mod memory;
pub mod module;
pub mod stream;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codes::*;
use memory::Heap;
use stream::Stream;

/// Result of a function that may fail with a CUresult.
pub type Outcome<T = ()> = Result<T, i32>;

/// A CUresult of an outcome.
pub fn status(outcome: Outcome) -> i32 {
    outcome.err().unwrap_or(SUCCESS)
}

/// A lock that a panic elsewhere does not take along: the tables are valid between statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number from the environment, or the default.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(default)
}

/// One fake GPU with its primary context.
pub struct Gpu {
    pub ordinal: usize,
    pub heap: Mutex<Heap>,
    retained: AtomicUsize,
    /// The sticky error of the context; 0 if none.
    error: AtomicI32,
    null_stream: Mutex<Option<Arc<Stream>>>,
}

static GPUS: OnceLock<Vec<Gpu>> = OnceLock::new();
static INITIALISED: AtomicBool = AtomicBool::new(false);
static NEXT_HANDLE: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// Ordinals of the contexts that are current on this thread, the innermost last.
    static CURRENT: RefCell<Vec<Option<usize>>> = const { RefCell::new(Vec::new()) };
}

/// A handle that was never given before. Tagged, so that it is neither an address nor a small number.
pub fn new_handle() -> usize {
    0x0e00_0000_0000_0000 | NEXT_HANDLE.fetch_add(1, SeqCst) << 4
}

/// All emulated GPUs.
pub fn gpus() -> &'static [Gpu] {
    GPUS.get_or_init(|| {
        let count = setting("OFLOW_EMULATOR_GPUS", 1);
        let bytes = setting("OFLOW_EMULATOR_MEMORY_MB", 4096) << 20;
        (0..count)
            .map(|ordinal| Gpu {
                ordinal,
                heap: Mutex::new(Heap::new(bytes)),
                retained: AtomicUsize::new(0),
                error: AtomicI32::new(0),
                null_stream: Mutex::new(None),
            })
            .collect()
    })
}

/// cuInit has been called.
pub fn initialised() -> Outcome {
    if INITIALISED.load(SeqCst) { Ok(()) } else { Err(NOT_INITIALIZED) }
}

/// The GPU that a CUdevice names.
pub fn gpu(device: i32) -> Outcome<&'static Gpu> {
    initialised()?;
    usize::try_from(device).ok().and_then(|at| gpus().get(at)).ok_or(INVALID_DEVICE)
}

/// The GPU whose context is current on this thread, healthy or not.
pub fn current_even_if_failed() -> Outcome<&'static Gpu> {
    initialised()?;
    let ordinal = CURRENT.with_borrow(|stack| stack.last().copied().flatten()).ok_or(INVALID_CONTEXT)?;
    let gpu = &gpus()[ordinal];
    if gpu.retained.load(SeqCst) == 0 { Err(CONTEXT_IS_DESTROYED) } else { Ok(gpu) }
}

/// The GPU whose context is current on this thread; its sticky error if it has one.
pub fn current() -> Outcome<&'static Gpu> {
    let gpu = current_even_if_failed()?;
    gpu.healthy()?;
    Ok(gpu)
}

impl Gpu {
    /// The sticky error, if there is one.
    pub fn healthy(&self) -> Outcome {
        match self.error.load(SeqCst) {
            0 => Ok(()),
            error => Err(error),
        }
    }

    /// Makes `code` the sticky error, unless there is one. The text goes to stderr and behind the error's own.
    pub fn fail(&self, code: i32, text: &str) {
        if self.error.compare_exchange(0, code, SeqCst, SeqCst).is_ok() {
            codes::explain(code, text);
            eprintln!("emulated GPU {}: {}: {text}", self.ordinal, codes::name(code));
        }
    }

    /// The CUcontext of this GPU.
    pub fn context(&self) -> usize {
        self as *const Gpu as usize
    }

    /// The default stream, made on first use.
    pub fn null_stream(&'static self) -> Arc<Stream> {
        lock(&self.null_stream).get_or_insert_with(|| Stream::start(self, 0, 0)).clone()
    }

    /// The default stream if anybody has used it.
    pub fn null_stream_if_any(&self) -> Option<Arc<Stream>> {
        lock(&self.null_stream).clone()
    }
}

fn gpu_of_context(context: usize) -> Outcome<&'static Gpu> {
    initialised()?;
    gpus().iter().find(|gpu| gpu.context() == context).ok_or(INVALID_CONTEXT)
}

/// A table of live handles.
pub struct Table<T>(Mutex<BTreeMap<usize, Arc<T>>>);

impl<T> Table<T> {
    pub const fn new() -> Self {
        Table(Mutex::new(BTreeMap::new()))
    }
    pub fn insert(&self, value: T) -> usize {
        let handle = new_handle();
        lock(&self.0).insert(handle, Arc::new(value));
        handle
    }
    pub fn insert_arc(&self, handle: usize, value: Arc<T>) {
        lock(&self.0).insert(handle, value);
    }
    pub fn get(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.0).get(&handle).cloned()
    }
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.0).remove(&handle)
    }
    pub fn all(&self) -> Vec<Arc<T>> {
        lock(&self.0).values().cloned().collect()
    }
    pub fn retain(&self, keep: impl Fn(&T) -> bool) {
        lock(&self.0).retain(|_, value| keep(value));
    }
}

/// Writes through a pointer that a caller gave for a result; null is an invalid value.
///
/// # Safety
/// `to` is null or valid for a write of `T`.
pub unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, so valid by this function's contract.
    unsafe { to.write(value) };
    Ok(())
}
