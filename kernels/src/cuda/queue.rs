//! The queue of a kernel on a GPU, and launching kernels on it.

use super::program::{Define, Function, Source};
use super::{Gpu, PinnedMemory, Stream, ahead, driver_error};
use crate::{KernelError, Result, View};
use cudarc::driver::result;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The grid of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of blocks.
    pub grid: (u32, u32, u32),
    /// Threads per block.
    pub block: (u32, u32, u32),
    /// Bytes of dynamic shared memory.
    pub shared: u32,
}

impl Launch {
    /// Makes a one-dimensional grid.
    pub const fn new(blocks: u32, threads: u32) -> Launch {
        Launch { grid: (blocks, 1, 1), block: (threads, 1, 1), shared: 0 }
    }
    /// Makes a three-dimensional grid.
    pub const fn grid(grid: (u32, u32, u32), threads: u32) -> Launch {
        Launch { grid, block: (threads, 1, 1), shared: 0 }
    }
    /// Sets the dynamic shared memory, in bytes.
    #[must_use]
    pub const fn shared(mut self, bytes: u32) -> Launch {
        self.shared = bytes;
        self
    }
}

/// Arguments of a kernel, in order. Each is at a multiple of 8 bytes in one buffer.
#[derive(Default)]
pub struct Args {
    words: SmallVec<[u64; 48]>,
    starts: SmallVec<[u32; 24]>,
}

impl Args {
    /// Makes an empty list.
    pub fn new() -> Args {
        Args::default()
    }
    /// Adds a value of the type of the kernel's parameter: a number, or a `repr(C)` struct.
    #[must_use]
    pub fn value<T: Copy>(mut self, value: T) -> Args {
        let words = size_of::<T>().div_ceil(8);
        assert!(align_of::<T>() <= 8, "arguments are aligned to 8 bytes");
        let start = self.words.len();
        self.starts.push(start as u32);
        self.words.resize(start + words, 0);
        // SAFETY: room for `words * 8 >= size_of::<T>()` bytes, which a `T` may be written to.
        unsafe { self.words[start..].as_mut_ptr().cast::<T>().write_unaligned(value) };
        self
    }
    /// Adds a struct whose members have 8 bytes each.
    #[must_use]
    pub fn words(mut self, words: &[u64]) -> Args {
        self.starts.push(self.words.len() as u32);
        self.words.extend_from_slice(words);
        self
    }
    /// Makes one argument of all arguments so far: a struct whose members have 8 bytes each.
    #[must_use]
    pub fn packed(mut self) -> Args {
        self.starts.truncate(1);
        self
    }
    /// Adds an address.
    #[must_use]
    pub fn ptr(self, at: *mut u8) -> Args {
        self.value(at as u64)
    }
    /// Adds the address of the first element of a view.
    #[must_use]
    pub fn view(self, view: &View) -> Args {
        self.ptr(view.ptr())
    }
    /// Adds the address of the first element of a view, or a null pointer if it is absent.
    #[must_use]
    pub fn opt_view(self, view: Option<&View>) -> Args {
        self.ptr(view.map_or(std::ptr::null_mut(), View::ptr))
    }
}

/// The record in which kernels report values out of range: host memory that the GPU writes (`of_fault` in the prelude).
pub struct FaultSlot {
    memory: PinnedMemory,
    device: *mut u8,
}

// SAFETY: addresses of memory that the slot owns, which is read through atomics.
unsafe impl Send for FaultSlot {}
// SAFETY: as above.
unsafe impl Sync for FaultSlot {}

/// `of_fault` of the prelude, in memory that host and GPU share.
#[repr(C)]
struct Record {
    claimed: AtomicU32,
    ready: AtomicU32,
    ticket: u64,
    value: i64,
    low: i64,
    high: i64,
}

/// A value out of range, reported by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the kernel's instruction.
    pub ticket: u64,
    /// Value that the kernel has refused.
    pub value: i64,
    /// Smallest legal value.
    pub low: i64,
    /// Largest legal value plus one.
    pub high: i64,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fault { value, low, high, .. } = self;
        match (low <= high, Why::text(*low)) {
            (true, _) => write!(f, "the value {value} is out of range {low}..{high}"),
            (false, Some(why)) => write!(f, "matrix {value} of the batch {why}"),
            // `of_divisor` in elementwise.cuh.
            (false, None) => f.write_str(crate::cpu::elementwise::DIVIDED_BY_ZERO),
        }
    }
}

impl FaultSlot {
    /// Makes an empty record.
    pub fn new(gpu: &Arc<Gpu>) -> Result<FaultSlot> {
        let memory = PinnedMemory::new(gpu, size_of::<Record>())?;
        let device = memory.device_data()?;
        Ok(FaultSlot { memory, device })
    }
    /// Takes the reported value, if there is one. Without one the cost is one read of host memory.
    pub fn take(&self) -> Option<Fault> {
        // SAFETY: zeroed memory of that size and more alignment, alive as long as self; the GPU writes the plain fields
        // before it sets `ready`, and nobody after.
        let record = unsafe { &*self.memory.data().cast::<Record>() };
        if record.ready.load(Ordering::Acquire) == 0 {
            return None;
        }
        let fault = Fault { ticket: record.ticket, value: record.value, low: record.low, high: record.high };
        record.ready.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        record.claimed.store(0, Ordering::Release);
        Some(fault)
    }
}

/// Why a matrix is not computed, as kernels report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A pivot is zero.
    Singular = 2,
    /// A leading minor is not positive.
    NotPositive = 3,
    /// An element is an infinity or a NaN.
    NotFinite = 4,
    /// An iteration did not converge.
    NotConverged = 5,
}

impl Why {
    /// Text of a report of this number, as the predicate of "matrix 3".
    fn text(number: i64) -> Option<&'static str> {
        match number {
            2 => Some("is singular: a pivot of its LU decomposition is zero"),
            3 => Some("is not positive definite: a leading minor is not positive"),
            4 => Some("has an infinity or a NaN"),
            5 => Some("has eigenvalues or singular values that did not converge"),
            _ => None,
        }
    }
}

/// A stream of a GPU for the kernel of one instruction.
pub struct Queue<'a> {
    stream: &'a Stream,
    faults: &'a FaultSlot,
    ticket: u64,
}

impl<'a> Queue<'a> {
    /// Makes the queue of the instruction of this number.
    pub fn new(stream: &'a Stream, faults: &'a FaultSlot, ticket: u64) -> Queue<'a> {
        Queue { stream, faults, ticket }
    }
    /// Returns the GPU.
    pub fn gpu(&self) -> &'a Arc<Gpu> {
        self.stream.gpu()
    }
    /// Returns the stream.
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }
    /// Adds the two arguments of a kernel that reports values out of range: `of_fault* fault, u64 ticket`.
    pub fn fault_args(&self, args: Args) -> Args {
        let [fault, ticket] = self.fault_words();
        args.value(fault).value(ticket)
    }
    /// The same two arguments as words.
    pub(super) fn fault_words(&self) -> [u64; 2] {
        [self.faults.device as u64, self.ticket]
    }
    /// Returns a kernel of a program, which is compiled at its first use.
    pub fn function(&self, source: &Source, entry: &str, defines: &[Define]) -> Result<Function> {
        let gpu = self.stream.gpu();
        gpu.bind()?;
        let info = gpu.info();
        gpu.programs.function(info, source, entry, defines, |arch| ahead::start(arch, &info.name))
    }
    /// Launches a kernel on the stream. A launch without blocks does nothing.
    ///
    /// The arguments must be those of the kernel, and the memory they name of this GPU and large enough for what the kernel
    /// touches; kernels are called by the functions beside them, which see to that.
    pub fn launch(&self, function: Function, launch: Launch, args: Args) -> Result<()> {
        self.put(function, launch, args, None)
    }
    /// Like [`launch`](Queue::launch), with a struct (`repr(C)`, as the kernel declares it) as the last argument, which is not
    /// copied into `args`.
    pub fn launch_with<T: Copy>(&self, function: Function, launch: Launch, args: Args, last: &T) -> Result<()> {
        self.put(function, launch, args, Some(std::ptr::from_ref(last).cast_mut().cast()))
    }
    fn put(
        &self,
        function: Function,
        launch: Launch,
        mut args: Args,
        last: Option<*mut std::ffi::c_void>,
    ) -> Result<()> {
        if launch.grid.0 == 0 || launch.grid.1 == 0 || launch.grid.2 == 0 {
            return Ok(());
        }
        if launch.grid.1 > 65535 || launch.grid.2 > 65535 {
            return Err(KernelError::device(format!("a grid of {:?} blocks is beyond what a GPU takes", launch.grid)));
        }
        self.gpu().bind()?;
        let base = args.words.as_mut_ptr();
        let mut params: SmallVec<[*mut std::ffi::c_void; 24]> =
            // SAFETY: starts lie inside the buffer.
            args.starts.iter().map(|s| unsafe { base.add(*s as usize) }.cast()).chain(last).collect();
        let stream = self.stream.raw();
        // SAFETY: a live function and stream of this context; the driver copies the arguments before it returns.
        unsafe { result::launch_kernel(function.raw(), launch.grid, launch.block, launch.shared, stream, &mut params) }
            .map_err(|e| driver_error(&format!("launching a kernel with {launch:?}"), e))
    }
    /// Returns the number of blocks of `threads` threads for `n` items of work, at most as many as `waves` times fill all
    /// multiprocessors; for kernels with a grid-stride loop.
    pub fn blocks(&self, n: usize, threads: u32, waves: u32) -> u32 {
        let most = self.gpu().multiprocessors() * (2048 / threads).max(1) * waves;
        n.div_ceil(threads as usize).min(most as usize) as u32
    }
}
