//! The functions of cuSOLVER that are called here, and how they are found. `cudarc` has bindings of all 480, which would take as long to
//! compile as the rest of what is used of it twice over.

use libloading::Library;
use std::ffi::{c_char, c_int, c_schar, c_void};
use std::sync::OnceLock;

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

fn open() -> Option<Library> {
    // SAFETY: one of CUDA's libraries, whose initialisers do nothing that matters.
    NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// Whether the loader finds the library.
pub(in crate::cuda) fn is_present() -> bool {
    open().is_some()
}

/// The library, opened for good; why it cannot be used.
pub(super) fn functions() -> Result<&'static Functions, String> {
    static FOUND: OnceLock<Result<Functions, String>> = OnceLock::new();
    let find = || {
        let library = open().ok_or("libcusolver.so is not on the library search path")?;
        Functions::of(Box::leak(Box::new(library)))
    };
    FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
}

/// The version of the library, or why it cannot be used.
pub(in crate::cuda) fn version() -> Result<String, String> {
    let mut v: c_int = 0;
    let library = functions()?;
    // SAFETY: writes one int.
    match unsafe { (library.cusolverGetVersion)(&mut v) } {
        0 => Ok(super::super::probe::version(v)),
        status => Err(format!("cusolverGetVersion: {}", name(status))),
    }
}

/// The name of a cusolverStatus_t.
pub(super) fn name(status: Status) -> &'static str {
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
