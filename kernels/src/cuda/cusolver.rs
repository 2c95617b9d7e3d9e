//! cuSOLVER: the functions that are called here, how they are found, and the handle of a GPU. `cudarc` has bindings of all 480, which would take as long to
//! compile as the rest of what is used of it twice over.

use super::by_name::open;
use crate::{KernelError, Result};
use cudarc::driver::sys::CUstream;
use libloading::Library;
use std::ffi::{c_char, c_int, c_schar, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

pub(super) type Handle = *mut c_void;
type Status = c_int;
type Mode = c_int;
type Pointer = *mut c_void;

macro_rules! functions {
    ($($name:ident($($arg:ident: $t:ty),* $(,)?);)*) => {
        /// Functions of the library, under their own names. What each takes and gives stands in NVIDIA's documentation of cuSOLVER.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub $name: unsafe extern "C" fn($($t),*) -> Status,)*
        }
        impl Functions {
            fn of(library: &'static Library) -> Result<Functions, String> {
                Ok(Functions {
                    // SAFETY: functions of these types in every version from 11.7 (CUDA 12.6) on.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                        .map_err(|_| format!("libcusolver.so is too old: it lacks {}", stringify!($name)))?,)*
                })
            }
        }
    };
}

functions! {
    cusolverGetVersion(version: *mut c_int);
    cusolverDnCreate(handle: *mut Handle);
    cusolverDnSetStream(handle: Handle, stream: Pointer);
    cusolverDnCreateParams(params: *mut Handle);
    cusolverDnXpotrf_bufferSize(h: Handle, p: Handle, uplo: Mode, n: i64, t: c_int, a: Pointer, lda: i64, compute: c_int, device: *mut usize, host: *mut usize);
    cusolverDnXpotrf(h: Handle, p: Handle, uplo: Mode, n: i64, t: c_int, a: Pointer, lda: i64, compute: c_int, device: Pointer, bytes: usize, host: Pointer, host_bytes: usize, info: Pointer);
    cusolverDnXpotrs(h: Handle, p: Handle, uplo: Mode, n: i64, columns: i64, t: c_int, a: Pointer, lda: i64, tb: c_int, b: Pointer, ldb: i64, info: Pointer);
    cusolverDnXgetrf_bufferSize(h: Handle, p: Handle, m: i64, n: i64, t: c_int, a: Pointer, lda: i64, compute: c_int, device: *mut usize, host: *mut usize);
    cusolverDnXgetrf(h: Handle, p: Handle, m: i64, n: i64, t: c_int, a: Pointer, lda: i64, pivots: Pointer, compute: c_int, device: Pointer, bytes: usize, host: Pointer, host_bytes: usize, info: Pointer);
    cusolverDnXgetrs(h: Handle, p: Handle, trans: Mode, n: i64, columns: i64, t: c_int, a: Pointer, lda: i64, pivots: Pointer, tb: c_int, b: Pointer, ldb: i64, info: Pointer);
    cusolverDnXgeqrf_bufferSize(h: Handle, p: Handle, m: i64, n: i64, t: c_int, a: Pointer, lda: i64, tt: c_int, tau: Pointer, compute: c_int, device: *mut usize, host: *mut usize);
    cusolverDnXgeqrf(h: Handle, p: Handle, m: i64, n: i64, t: c_int, a: Pointer, lda: i64, tt: c_int, tau: Pointer, compute: c_int, device: Pointer, bytes: usize, host: Pointer, host_bytes: usize, info: Pointer);
    cusolverDnXsyevd_bufferSize(h: Handle, p: Handle, job: Mode, uplo: Mode, n: i64, t: c_int, a: Pointer, lda: i64, tw: c_int, w: Pointer, compute: c_int, device: *mut usize, host: *mut usize);
    cusolverDnXsyevd(h: Handle, p: Handle, job: Mode, uplo: Mode, n: i64, t: c_int, a: Pointer, lda: i64, tw: c_int, w: Pointer, compute: c_int, device: Pointer, bytes: usize, host: Pointer, host_bytes: usize, info: Pointer);
    cusolverDnXgesvd_bufferSize(h: Handle, p: Handle, left: c_schar, right: c_schar, m: i64, n: i64, t: c_int, a: Pointer, lda: i64, ts: c_int, s: Pointer, tu: c_int, u: Pointer, ldu: i64, tv: c_int, v: Pointer, ldv: i64, compute: c_int, device: *mut usize, host: *mut usize);
    cusolverDnXgesvd(h: Handle, p: Handle, left: c_schar, right: c_schar, m: i64, n: i64, t: c_int, a: Pointer, lda: i64, ts: c_int, s: Pointer, tu: c_int, u: Pointer, ldu: i64, tv: c_int, v: Pointer, ldv: i64, compute: c_int, device: Pointer, bytes: usize, host: Pointer, host_bytes: usize, info: Pointer);
    cusolverDnXgeev_bufferSize(h: Handle, p: Handle, left: Mode, right: Mode, n: i64, t: c_int, a: Pointer, lda: i64, tw: c_int, w: Pointer, tl: c_int, l: Pointer, ldl: i64, tr: c_int, r: Pointer, ldr: i64, compute: c_int, device: *mut usize, host: *mut usize);
    cusolverDnXgeev(h: Handle, p: Handle, left: Mode, right: Mode, n: i64, t: c_int, a: Pointer, lda: i64, tw: c_int, w: Pointer, tl: c_int, l: Pointer, ldl: i64, tr: c_int, r: Pointer, ldr: i64, compute: c_int, device: Pointer, bytes: usize, host: Pointer, host_bytes: usize, info: Pointer);
    cusolverDnSorgqr_bufferSize(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, size: *mut c_int);
    cusolverDnDorgqr_bufferSize(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, size: *mut c_int);
    cusolverDnCungqr_bufferSize(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, size: *mut c_int);
    cusolverDnZungqr_bufferSize(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, size: *mut c_int);
    cusolverDnSorgqr(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, work: Pointer, size: c_int, info: Pointer);
    cusolverDnDorgqr(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, work: Pointer, size: c_int, info: Pointer);
    cusolverDnCungqr(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, work: Pointer, size: c_int, info: Pointer);
    cusolverDnZungqr(h: Handle, m: c_int, n: c_int, k: c_int, a: Pointer, lda: c_int, tau: Pointer, work: Pointer, size: c_int, info: Pointer);
}

/// The names that the loader is asked for, as `cudarc` asks for those of the other libraries.
const NAMES: [&str; 3] = ["libcusolver.so", "libcusolver.so.12", "libcusolver.so.11"];

/// Whether the loader finds the library.
pub(super) fn is_present() -> bool {
    open(&NAMES).is_some()
}

/// The library, opened for good; why it cannot be used.
fn functions() -> Result<&'static Functions, String> {
    static FOUND: OnceLock<Result<Functions, String>> = OnceLock::new();
    let find = || {
        let library = open(&NAMES).ok_or("libcusolver.so is not on the library search path")?;
        Functions::of(Box::leak(Box::new(library)))
    };
    FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
}

/// The version of the library, or why it cannot be used.
pub(super) fn version() -> Result<String, String> {
    let mut v: c_int = 0;
    let library = functions()?;
    // SAFETY: writes one int.
    match unsafe { (library.cusolverGetVersion)(&mut v) } {
        0 => Ok(format!("{}.{}.{}", v / 1000, v / 100 % 10, v % 100)),
        status => Err(format!("cusolverGetVersion: {}", name(status))),
    }
}

/// The name of a cusolverStatus_t.
fn name(status: Status) -> &'static str {
    match status {
        0 => "CUSOLVER_STATUS_SUCCESS",
        1 => "CUSOLVER_STATUS_NOT_INITIALIZED",
        2 => "CUSOLVER_STATUS_ALLOC_FAILED",
        3 => "CUSOLVER_STATUS_INVALID_VALUE",
        4 => "CUSOLVER_STATUS_ARCH_MISMATCH",
        6 => "CUSOLVER_STATUS_EXECUTION_FAILED",
        7 => "CUSOLVER_STATUS_INTERNAL_ERROR",
        9 => "CUSOLVER_STATUS_NOT_SUPPORTED",
        _ => "an unknown status",
    }
}

/// Whether all vectors are wanted, those of the smaller dim, or none: a `char` of the library.
pub(super) fn job(letter: char) -> c_schar {
    letter as c_char as c_schar
}

/// The library as one GPU uses it. Handles have a stream, so a call holds the lock.
pub(super) struct Solver {
    functions: &'static Functions,
    handles: Mutex<(Handle, Handle)>,
}

// SAFETY: the handles may be used from any thread, by one at a time.
unsafe impl Send for Solver {}
// SAFETY: as above.
unsafe impl Sync for Solver {}

pub(super) fn done(what: &str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        2 => Err(KernelError::out_of_memory(format!("cuSOLVER: {what}: out of memory"))),
        status => Err(KernelError::device(format!("cuSOLVER: {what}: {}", name(status)))),
    }
}

impl Solver {
    /// Opens the library for the GPU whose context is current.
    pub(super) fn new() -> Result<Solver> {
        let functions = functions().map_err(KernelError::device)?;
        let (mut handle, mut params) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: each writes one handle.
        unsafe {
            done("cusolverDnCreate", (functions.cusolverDnCreate)(&mut handle))?;
            done("cusolverDnCreateParams", (functions.cusolverDnCreateParams)(&mut params))?;
        }
        Ok(Solver { functions, handles: Mutex::new((handle, params)) })
    }

    /// Calls with the handles, of which the first puts work on the stream.
    pub(super) fn call<T>(
        &self,
        stream: CUstream,
        f: impl FnOnce(&Functions, Handle, Handle) -> Result<T>,
    ) -> Result<T> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a live handle and a live stream of this GPU.
        let set = unsafe { (self.functions.cusolverDnSetStream)(handles.0, stream.cast()) };
        done("cusolverDnSetStream", set)?;
        f(self.functions, handles.0, handles.1)
    }
}
