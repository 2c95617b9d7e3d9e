//! libcusolver: the dense routines that oflow calls, by `dense.rs`. Work is put on the handle's stream; sizes, addresses and workspaces are
//! checked when it is called.

mod dense;
mod place;

use std::ffi::{c_int, c_schar};
use std::sync::Mutex;

use crate::driver::memory::{MemoryKind, place};
use crate::driver::{Table, current, lock, stream};
use dense::{Matrix, Number};
use place::{HOST_WORKSPACE, INVALID_VALUE, Outcome, Place, Type, WORKSPACE, Workspace, column, integers, numbers};

const SUCCESS: i32 = 0;
const NOT_INITIALIZED: i32 = 1;
const EXECUTION_FAILED: i32 = 6;

fn status(outcome: Outcome) -> i32 {
    outcome.err().unwrap_or(SUCCESS)
}

/// The stream of each handle.
static HANDLES: Table<Mutex<usize>> = Table::new();
static PARAMS: Table<()> = Table::new();

/// Puts a routine on the stream of a handle. What it returns is written to `info`.
fn enqueue(
    handle: usize,
    info: usize,
    work: Option<Workspace>,
    mut routine: impl FnMut() -> i32 + Send + 'static,
) -> Outcome {
    let stream = *lock(&*HANDLES.get(handle).ok_or(NOT_INITIALIZED)?);
    current().map_err(|_| EXECUTION_FAILED)?;
    let info = integers("info", 1, 4, info)?;
    let stream = stream::find(stream).map_err(|_| INVALID_VALUE)?;
    stream.work(move |_| {
        // SAFETY: checked above and when it was called; a block that dies meanwhile stays mapped.
        unsafe {
            if let Some(Workspace(at, bytes)) = work {
                (at as *mut u8).write_bytes(0xCD, bytes);
            }
            (info as *mut i32).write(routine());
        }
        Ok(())
    });
    Ok(())
}

/// # Safety
/// Each is null or a place for a size.
unsafe fn sizes(device: *mut usize, host: *mut usize) -> i32 {
    if device.is_null() || host.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null.
    unsafe {
        device.write(WORKSPACE);
        host.write(HOST_WORKSPACE);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverGetVersion(to: *mut c_int) -> i32 {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, so a place for the result.
    unsafe { to.write(12_000) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnCreate(to: *mut usize) -> i32 {
    if current().is_err() {
        return NOT_INITIALIZED;
    }
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, so a place for the result.
    unsafe { to.write(HANDLES.insert(Mutex::new(0))) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cusolverDnSetStream(handle: usize, stream: usize) -> i32 {
    status(HANDLES.get(handle).map(|h| *lock(&h) = stream).ok_or(NOT_INITIALIZED))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnCreateParams(to: *mut usize) -> i32 {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, so a place for the result.
    unsafe { to.write(PARAMS.insert(())) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXpotrf_bufferSize(
    _handle: usize,
    _params: usize,
    _uplo: c_int,
    _n: i64,
    _t: c_int,
    _a: usize,
    _lda: i64,
    _compute: c_int,
    device: *mut usize,
    host: *mut usize,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { sizes(device, host) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXpotrf(
    handle: usize,
    _params: usize,
    uplo: c_int,
    n: i64,
    t: c_int,
    a: usize,
    lda: i64,
    _compute: c_int,
    device: usize,
    bytes: usize,
    host: *mut u8,
    host_bytes: usize,
    info: usize,
) -> i32 {
    let put = || {
        let a = Place::new("A", Type::of(t)?, n, n, lda, a)?;
        let work = Workspace::new(device, bytes, host, host_bytes)?;
        // SAFETY: checked; the stream's work has the memory for itself.
        enqueue(handle, info, Some(work), move || unsafe {
            let mut m = a.read();
            let wrong = dense::cholesky(&mut m, uplo == 1);
            a.write(&m);
            wrong
        })
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXpotrs(
    handle: usize,
    _params: usize,
    uplo: c_int,
    n: i64,
    columns: i64,
    t: c_int,
    a: usize,
    lda: i64,
    tb: c_int,
    b: usize,
    ldb: i64,
    info: usize,
) -> i32 {
    let put = || {
        let (a, b) =
            (Place::new("A", Type::of(t)?, n, n, lda, a)?, Place::new("B", Type::of(tb)?, n, columns, ldb, b)?);
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, None, move || unsafe {
            let mut x = b.read();
            dense::cholesky_solve(&a.read(), uplo == 1, &mut x);
            b.write(&x);
            0
        })
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgetrf_bufferSize(
    _handle: usize,
    _params: usize,
    _m: i64,
    _n: i64,
    _t: c_int,
    _a: usize,
    _lda: i64,
    _compute: c_int,
    device: *mut usize,
    host: *mut usize,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { sizes(device, host) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgetrf(
    handle: usize,
    _params: usize,
    m: i64,
    n: i64,
    t: c_int,
    a: usize,
    lda: i64,
    pivots: usize,
    _compute: c_int,
    device: usize,
    bytes: usize,
    host: *mut u8,
    host_bytes: usize,
    info: usize,
) -> i32 {
    let put = || {
        let a = Place::new("A", Type::of(t)?, m, n, lda, a)?;
        let k = a.rows.min(a.columns);
        let pivots = integers("the pivots", k, 8, pivots)?;
        let work = Workspace::new(device, bytes, host, host_bytes)?;
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, Some(work), move || unsafe {
            let mut m = a.read();
            let mut found = vec![0i64; k];
            let wrong = dense::lu(&mut m, &mut found);
            a.write(&m);
            (pivots as *mut i64).copy_from(found.as_ptr(), k);
            wrong
        })
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgetrs(
    handle: usize,
    _params: usize,
    trans: c_int,
    n: i64,
    columns: i64,
    t: c_int,
    a: usize,
    lda: i64,
    pivots: usize,
    tb: c_int,
    b: usize,
    ldb: i64,
    info: usize,
) -> i32 {
    let put = || {
        let (a, b) =
            (Place::new("A", Type::of(t)?, n, n, lda, a)?, Place::new("B", Type::of(tb)?, n, columns, ldb, b)?);
        let pivots = integers("the pivots", a.rows, 8, pivots)?;
        if !(0..=1).contains(&trans) {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, None, move || unsafe {
            let mut x = b.read();
            let swaps = std::slice::from_raw_parts(pivots as *const i64, a.rows);
            // Of a matrix that was not decomposed.
            if swaps.iter().all(|p| (1..=a.rows as i64).contains(p)) {
                dense::lu_solve(&a.read(), swaps, trans == 1, &mut x);
                b.write(&x);
            }
            0
        })
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgeqrf_bufferSize(
    _handle: usize,
    _params: usize,
    _m: i64,
    _n: i64,
    _t: c_int,
    _a: usize,
    _lda: i64,
    _tt: c_int,
    _tau: usize,
    _compute: c_int,
    device: *mut usize,
    host: *mut usize,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { sizes(device, host) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgeqrf(
    handle: usize,
    _params: usize,
    m: i64,
    n: i64,
    t: c_int,
    a: usize,
    lda: i64,
    tt: c_int,
    tau: usize,
    _compute: c_int,
    device: usize,
    bytes: usize,
    host: *mut u8,
    host_bytes: usize,
    info: usize,
) -> i32 {
    let put = || {
        let a = Place::new("A", Type::of(t)?, m, n, lda, a)?;
        let k = a.rows.min(a.columns);
        let tau = numbers("tau", Type::of(tt)?, k, tau)?;
        let work = Workspace::new(device, bytes, host, host_bytes)?;
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, Some(work), move || unsafe {
            let (mut m, mut factors) = (a.read(), vec![Number::default(); k]);
            dense::qr(&mut m, &mut factors);
            a.write(&m);
            tau.write(&column(factors));
            0
        })
    };
    status(put())
}

/// orgqr and ungqr.
#[allow(clippy::too_many_arguments)]
fn first_columns(
    of: Type,
    handle: usize,
    sizes: [c_int; 3],
    a: usize,
    ld: c_int,
    tau: usize,
    work: (usize, c_int),
    info: usize,
) -> Outcome {
    let [m, n, k] = sizes;
    let a = Place::new("A", of, m.into(), n.into(), ld.into(), a)?;
    let k = usize::try_from(k).map_err(|_| INVALID_VALUE)?;
    let tau = numbers("tau", of, k, tau)?;
    let bytes = usize::try_from(work.1).map_err(|_| INVALID_VALUE)? * of.size();
    if m < n || n < k as c_int || bytes < WORKSPACE || place(work.0, bytes) != Ok(MemoryKind::Device) {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as in `cusolverDnXpotrf`.
    enqueue(handle, info, Some(Workspace(work.0, bytes)), move || unsafe {
        let mut m = a.read();
        dense::q_of(&mut m, &tau.read().data);
        a.write(&m);
        0
    })
}

macro_rules! first_columns {
    ($($ask:ident $name:ident $code:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $ask(
            _handle: usize, _m: c_int, _n: c_int, _k: c_int, _a: usize, _lda: c_int, _tau: usize, size: *mut c_int,
        ) -> i32 {
            if size.is_null() {
                return INVALID_VALUE;
            }
            // SAFETY: not null, so a place for the result.
            unsafe { size.write(WORKSPACE as c_int) };
            SUCCESS
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            handle: usize, m: c_int, n: c_int, k: c_int, a: usize, lda: c_int, tau: usize, work: usize, size: c_int,
            info: usize,
        ) -> i32 {
            status(Type::of($code).and_then(|t| first_columns(t, handle, [m, n, k], a, lda, tau, (work, size), info)))
        }
    )*};
}
first_columns! {
    cusolverDnSorgqr_bufferSize cusolverDnSorgqr 0;
    cusolverDnDorgqr_bufferSize cusolverDnDorgqr 1;
    cusolverDnCungqr_bufferSize cusolverDnCungqr 4;
    cusolverDnZungqr_bufferSize cusolverDnZungqr 5;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXsyevd_bufferSize(
    _handle: usize,
    _params: usize,
    _job: c_int,
    _uplo: c_int,
    _n: i64,
    _t: c_int,
    _a: usize,
    _lda: i64,
    _tw: c_int,
    _w: usize,
    _compute: c_int,
    device: *mut usize,
    host: *mut usize,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { sizes(device, host) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXsyevd(
    handle: usize,
    _params: usize,
    job: c_int,
    uplo: c_int,
    n: i64,
    t: c_int,
    a: usize,
    lda: i64,
    tw: c_int,
    w: usize,
    _compute: c_int,
    device: usize,
    bytes: usize,
    host: *mut u8,
    host_bytes: usize,
    info: usize,
) -> i32 {
    let put = || {
        let a = Place::new("A", Type::of(t)?, n, n, lda, a)?;
        let w = numbers("W", Type::of(tw)?, a.rows, w)?;
        let work = Workspace::new(device, bytes, host, host_bytes)?;
        if job != 1 || w.of != a.of.real() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, Some(work), move || unsafe {
            let mut m = a.read();
            let values = dense::eigh(&mut m, uplo == 1);
            a.write(&m);
            w.write(&column(values.into_iter().map(Number::from).collect()));
            0
        })
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgesvd_bufferSize(
    _handle: usize,
    _params: usize,
    _left: c_schar,
    _right: c_schar,
    _m: i64,
    _n: i64,
    _t: c_int,
    _a: usize,
    _lda: i64,
    _ts: c_int,
    _s: usize,
    _tu: c_int,
    _u: usize,
    _ldu: i64,
    _tv: c_int,
    _v: usize,
    _ldv: i64,
    _compute: c_int,
    device: *mut usize,
    host: *mut usize,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { sizes(device, host) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgesvd(
    handle: usize,
    _params: usize,
    left: c_schar,
    right: c_schar,
    m: i64,
    n: i64,
    t: c_int,
    a: usize,
    lda: i64,
    ts: c_int,
    s: usize,
    tu: c_int,
    u: usize,
    ldu: i64,
    tv: c_int,
    v: usize,
    ldv: i64,
    _compute: c_int,
    device: usize,
    bytes: usize,
    host: *mut u8,
    host_bytes: usize,
    info: usize,
) -> i32 {
    let put = || {
        let a = Place::new("A", Type::of(t)?, m, n, lda, a)?;
        let (all, thin) = (b'A' as c_schar, b'S' as c_schar);
        if a.rows < a.columns || ![all, thin].contains(&left) || ![all, thin].contains(&right) {
            return Err(INVALID_VALUE);
        }
        let s = numbers("S", Type::of(ts)?, a.columns, s)?;
        let u = Place::new("U", Type::of(tu)?, m, if left == all { m } else { n }, ldu, u)?;
        let v = Place::new("VT", Type::of(tv)?, n, n, ldv, v)?;
        let work = Workspace::new(device, bytes, host, host_bytes)?;
        if s.of != a.of.real() || u.of != a.of || v.of != a.of {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, Some(work), move || unsafe {
            let m = a.read();
            if !m.data.iter().all(|x| x.re.is_finite() && x.im.is_finite()) {
                return 1;
            }
            let (values, left, right) = dense::svd(&m);
            // What the matrix was is lost.
            a.write(&Matrix { data: vec![Number::from(f64::NAN); m.data.len()], ..m });
            s.write(&column(values.into_iter().map(Number::from).collect()));
            u.write(&left);
            v.write(&right);
            0
        })
    };
    status(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgeev_bufferSize(
    _handle: usize,
    _params: usize,
    _left: c_int,
    _right: c_int,
    _n: i64,
    _t: c_int,
    _a: usize,
    _lda: i64,
    _tw: c_int,
    _w: usize,
    _tl: c_int,
    _l: usize,
    _ldl: i64,
    _tr: c_int,
    _r: usize,
    _ldr: i64,
    _compute: c_int,
    device: *mut usize,
    host: *mut usize,
) -> i32 {
    // SAFETY: the caller gives places for the results.
    unsafe { sizes(device, host) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cusolverDnXgeev(
    handle: usize,
    _params: usize,
    left: c_int,
    right: c_int,
    n: i64,
    t: c_int,
    a: usize,
    lda: i64,
    tw: c_int,
    w: usize,
    _tl: c_int,
    _l: usize,
    _ldl: i64,
    tr: c_int,
    r: usize,
    ldr: i64,
    _compute: c_int,
    device: usize,
    bytes: usize,
    host: *mut u8,
    host_bytes: usize,
    info: usize,
) -> i32 {
    let put = || {
        let a = Place::new("A", Type::of(t)?, n, n, lda, a)?;
        let w = numbers("W", Type::of(tw)?, a.rows, w)?;
        let r = Place::new("VR", Type::of(tr)?, n, n, ldr, r)?;
        let work = Workspace::new(device, bytes, host, host_bytes)?;
        // The library has no left vectors; of its mixtures of types oflow takes complex numbers throughout.
        if left != 0 || right != 1 || !a.of.complex || w.of != a.of || r.of != a.of {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as in `cusolverDnXpotrf`.
        enqueue(handle, info, Some(work), move || unsafe {
            let m = a.read();
            let finite = m.data.iter().all(|x| x.re.is_finite() && x.im.is_finite());
            let Some((values, vectors)) = dense::eig(&m).filter(|_| finite) else { return 1 };
            a.write(&Matrix { data: vec![Number::from(f64::NAN); m.data.len()], ..m });
            w.write(&column(values));
            r.write(&vectors);
            0
        })
    };
    status(put())
}
