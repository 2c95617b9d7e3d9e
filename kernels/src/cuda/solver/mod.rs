//! Decompositions of matrices by cuSOLVER, one matrix of a batch after the other. Its matrices lie by columns: what is row-major here is to
//! the library the transposed matrix.
//!
//! A routine writes for each matrix what came of it as an i32 of the GPU: 0, or why it was not computed. [`report`] makes an error of that,
//! which is told when the stream is waited for.

mod around;
mod room;

pub(super) use around::LINALG;
pub use around::{
    Weights, check_finite, determinants, identities, mirror, permutations, phases, report, triangular, weighted,
};
pub use room::Room;

use super::cusolver::{Solver, done, job};
use super::probe::{Optional, optional};
pub use super::queue::Why;
use super::stream::Scratch;
use super::{Queue, copy};
use crate::{DType, Dims, KernelError, Result, Strides, View};
use room::{holds, sizes};
use std::ffi::{c_int, c_void};

/// The library on the queue's GPU.
fn solver<'a>(q: &Queue<'a>) -> Result<&'a Solver> {
    let wrong = |e: &String| KernelError::device(format!("linear algebra on a GPU needs cuSOLVER: {e}"));
    optional(Optional::Cusolver).as_ref().map_err(wrong)?;
    q.gpu().solver()
}

/// A cudaDataType.
fn data_type(dtype: DType) -> Result<c_int> {
    match dtype {
        DType::F32 => Ok(0),
        DType::F64 => Ok(1),
        DType::C64 => Ok(4),
        DType::C128 => Ok(5),
        other => Err(KernelError::new(format!("cuSOLVER has no matrices of {other}"))),
    }
}

/// A batch of matrices by columns, one after the other.
pub struct Matrices<'a> {
    room: Room<'a>,
    count: usize,
    rows: usize,
    columns: usize,
}

/// The view with its last two dims exchanged.
pub fn transposed(x: &View) -> View {
    let (mut dims, mut strides): (Dims, Strides) = (x.dims().into(), x.strides().into());
    let rank = dims.len();
    if rank >= 2 {
        dims.swap(rank - 1, rank - 2);
        strides.swap(rank - 1, rank - 2);
    }
    // SAFETY: the elements of the view in another order.
    unsafe { x.restride(0, dims, strides) }
}

impl<'a> Matrices<'a> {
    /// Matrices of arbitrary numbers.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(q: &Queue<'a>, dtype: DType, count: usize, rows: usize, columns: usize) -> Result<Matrices<'a>> {
        Ok(Matrices { room: Room::new(q, dtype, &[count, columns, rows])?, count, rows, columns })
    }

    /// Copies of the matrices of a view, in a dtype.
    ///
    /// # Errors
    /// There is no memory; the view has no two dims.
    pub fn of(q: &Queue<'a>, x: &View, dtype: DType) -> Result<Matrices<'a>> {
        let (count, rows, columns) = sizes(x)?;
        let made = Matrices::new(q, dtype, count, rows, columns)?;
        made.fill(q, x)?;
        Ok(made)
    }

    /// Copies the matrices of a view, of which there are as many, into the first columns.
    ///
    /// # Errors
    /// They do not fit.
    pub fn fill(&self, q: &Queue, x: &View) -> Result<()> {
        let (count, rows, columns) = sizes(x)?;
        if count != self.count || rows != self.rows || columns > self.columns {
            return Err(KernelError::new(format!("{count} matrices [{rows}, {columns}] do not fit a room for others")));
        }
        let lead = x.rank() - 2;
        let mut strides: Strides = (0..lead)
            .map(|d| (x.dims()[d + 1..lead].iter().product::<usize>() * self.rows * self.columns) as isize)
            .collect();
        strides.extend([1, self.rows as isize]);
        // SAFETY: elements of the room, by the sizes that were compared.
        let to = unsafe { self.room.view.restride(0, x.dims().into(), strides) };
        copy::copy(q, x, &to)
    }

    /// The matrices as a view `[count, rows, columns]`.
    pub fn view(&self) -> View {
        transposed(&self.room.view)
    }

    /// The first rows and columns of the matrices, as a view of these dims, `[.., rows, columns]`.
    ///
    /// # Errors
    /// They are more than there are.
    pub fn part(&self, dims: &[usize]) -> Result<View> {
        let [batch @ .., rows, columns] = dims else {
            return Err(KernelError::new(format!("expected matrices [.., m, n], got {dims:?}")));
        };
        if batch.iter().product::<usize>() != self.count || *rows > self.rows || *columns > self.columns {
            return Err(KernelError::new(format!("{dims:?} does not lie in {} matrices", self.count)));
        }
        let each = self.rows * self.columns;
        let mut strides: Strides =
            (0..batch.len()).map(|d| (batch[d + 1..].iter().product::<usize>() * each) as isize).collect();
        strides.extend([1, self.rows as isize]);
        // SAFETY: elements of the room, by the sizes that were compared.
        Ok(unsafe { self.room.view.restride(0, dims.into(), strides) })
    }

    fn at(&self, index: usize) -> *mut c_void {
        let each = self.rows * self.columns * self.room.view.dtype().size();
        self.room.view.ptr().wrapping_add(index * each).cast()
    }
    fn code(&self) -> Result<c_int> {
        data_type(self.room.view.dtype())
    }
    fn is_empty(&self) -> bool {
        self.count == 0 || self.rows == 0 || self.columns == 0
    }
    fn square(&self) -> Result<i64> {
        match self.rows == self.columns {
            true => Ok(self.rows as i64),
            false => Err(KernelError::new(format!("[{}, {}] is not square", self.rows, self.columns))),
        }
    }
    /// Rows as the library counts the distance of columns.
    fn ld(&self) -> i64 {
        self.rows.max(1) as i64
    }
}

/// The `index`-th of equal parts of a tensor.
fn nth(x: &View, index: usize, of: usize) -> *mut c_void {
    let each = x.len() / of.max(1) * x.dtype().size();
    x.ptr().wrapping_add(index * each).cast()
}

/// Zeros, of matrices that no routine is called for.
fn nothing_wrong(q: &Queue, info: &View) -> Result<()> {
    // SAFETY: the elements of the view, which is contiguous (`holds`).
    unsafe { q.stream().set_zero(info.ptr(), info.len() * 4) }
}

/// Workspaces of a routine.
struct Work<'a> {
    device: Scratch<'a>,
    bytes: usize,
    host: Vec<u8>,
}

impl<'a> Work<'a> {
    fn new(q: &Queue<'a>, what: &str, ask: impl FnOnce(*mut usize, *mut usize) -> c_int) -> Result<Work<'a>> {
        let (mut bytes, mut on_host) = (0, 0);
        done(what, ask(&mut bytes, &mut on_host))?;
        let mut host: Vec<u8> = vec![];
        host.try_reserve_exact(on_host)
            .map_err(|_| KernelError::out_of_memory(format!("cuSOLVER needs {on_host} bytes of host memory")))?;
        host.resize(on_host, 0);
        Ok(Work { device: q.stream().scratch(bytes)?, bytes, host })
    }
    /// Addresses and sizes as the library takes them.
    fn parts(&mut self) -> (*mut c_void, usize, *mut c_void, usize) {
        (self.device.data().cast(), self.bytes, self.host.as_mut_ptr().cast(), self.host.len())
    }
}

/// The factors of Cholesky in the place of the named triangles.
///
/// # Errors
/// There is no cuSOLVER; what it reports.
pub fn cholesky(q: &Queue, a: &Matrices, upper: bool, info: &View) -> Result<()> {
    holds(info, DType::I32, a.count)?;
    if a.is_empty() {
        return nothing_wrong(q, info);
    }
    let (n, t, uplo) = (a.square()?, a.code()?, c_int::from(upper));
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        // SAFETY: sizes and addresses of one of the matrices (checked by `Matrices`), places for the sizes.
        let mut w = Work::new(q, "potrf", |d, o| unsafe {
            (f.cusolverDnXpotrf_bufferSize)(h, p, uplo, n, t, a.at(0), a.ld(), t, d, o)
        })?;
        let (device, bytes, host, host_bytes) = w.parts();
        (0..a.count).try_for_each(|i| {
            let info = nth(info, i, a.count);
            // SAFETY: as above, with workspaces of the sizes that were asked for and an i32 of the GPU.
            done("potrf", unsafe {
                (f.cusolverDnXpotrf)(h, p, uplo, n, t, a.at(i), a.ld(), t, device, bytes, host, host_bytes, info)
            })
        })
    })
}

/// Solves with factors of [`cholesky`] in the place of `b`.
///
/// # Errors
/// As [`cholesky`].
pub fn cholesky_solve(q: &Queue, a: &Matrices, upper: bool, b: &Matrices) -> Result<()> {
    if b.is_empty() {
        return Ok(());
    }
    let (n, t, uplo) = (a.square()?, a.code()?, c_int::from(upper));
    fits(a, b)?;
    let info = Room::new(q, DType::I32, &[1])?;
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        (0..a.count).try_for_each(|i| {
            let (columns, info) = (b.columns as i64, info.view.ptr().cast());
            // SAFETY: sizes and addresses of one of the matrices and its right sides, and an i32 of the GPU.
            done("potrs", unsafe {
                (f.cusolverDnXpotrs)(h, p, uplo, n, columns, t, a.at(i), a.ld(), t, b.at(i), b.ld(), info)
            })
        })
    })
}

fn fits(a: &Matrices, b: &Matrices) -> Result<()> {
    match (a.count, a.rows, a.room.view.dtype()) == (b.count, b.rows, b.room.view.dtype()) {
        true => Ok(()),
        false => Err(KernelError::new(format!("{} right sides do not fit {} matrices", b.count, a.count))),
    }
}

/// The LU decomposition in the place of the matrices; pivots are i64 from 1 on.
///
/// # Errors
/// As [`cholesky`].
pub fn lu(q: &Queue, a: &Matrices, pivots: &View, info: &View) -> Result<()> {
    holds(info, DType::I32, a.count)?;
    holds(pivots, DType::I64, a.count * a.rows.min(a.columns))?;
    if a.is_empty() {
        return nothing_wrong(q, info);
    }
    let (m, n, t) = (a.rows as i64, a.columns as i64, a.code()?);
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        // SAFETY: as in `cholesky`.
        let mut w = Work::new(q, "getrf", |d, o| unsafe {
            (f.cusolverDnXgetrf_bufferSize)(h, p, m, n, t, a.at(0), a.ld(), t, d, o)
        })?;
        let (device, bytes, host, host_bytes) = w.parts();
        (0..a.count).try_for_each(|i| {
            let (pivots, info) = (nth(pivots, i, a.count), nth(info, i, a.count));
            // SAFETY: as in `cholesky`, with a pivot of i64 for each step.
            done("getrf", unsafe {
                (f.cusolverDnXgetrf)(h, p, m, n, t, a.at(i), a.ld(), pivots, t, device, bytes, host, host_bytes, info)
            })
        })
    })
}

/// Solves with factors of [`lu`], or with the transposed matrix, in the place of `b`.
///
/// # Errors
/// As [`cholesky`].
pub fn lu_solve(q: &Queue, a: &Matrices, pivots: &View, transposed: bool, b: &Matrices) -> Result<()> {
    if b.is_empty() {
        return Ok(());
    }
    let (n, t) = (a.square()?, a.code()?);
    holds(pivots, DType::I64, a.count * a.rows)?;
    fits(a, b)?;
    let info = Room::new(q, DType::I32, &[1])?;
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        (0..a.count).try_for_each(|i| {
            let (columns, info) = (b.columns as i64, info.view.ptr().cast());
            let (pivots, turn) = (nth(pivots, i, a.count), c_int::from(transposed));
            // SAFETY: sizes and addresses of one of the matrices, its pivots and right sides, and an i32 of the GPU.
            done("getrs", unsafe {
                (f.cusolverDnXgetrs)(h, p, turn, n, columns, t, a.at(i), a.ld(), pivots, t, b.at(i), b.ld(), info)
            })
        })
    })
}

/// The first `columns` of the matrices as R and, below its diagonal, the reflections, whose factors go to `tau`.
///
/// # Errors
/// As [`cholesky`].
pub fn qr(q: &Queue, a: &Matrices, columns: usize, tau: &View) -> Result<()> {
    holds(tau, a.room.view.dtype(), a.count * a.rows.min(columns))?;
    if a.is_empty() || columns == 0 {
        return Ok(());
    }
    if columns > a.columns {
        return Err(KernelError::new(format!("{columns} columns of matrices of {}", a.columns)));
    }
    let (m, n, t) = (a.rows as i64, columns as i64, a.code()?);
    let info = Room::new(q, DType::I32, &[1])?;
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        // SAFETY: as in `cholesky`.
        let mut w = Work::new(q, "geqrf", |d, o| unsafe {
            (f.cusolverDnXgeqrf_bufferSize)(h, p, m, n, t, a.at(0), a.ld(), t, nth(tau, 0, a.count), t, d, o)
        })?;
        let (device, bytes, host, host_bytes) = w.parts();
        (0..a.count).try_for_each(|i| {
            let (tau, info) = (nth(tau, i, a.count), info.view.ptr().cast());
            // SAFETY: as in `cholesky`, with a factor for each reflection.
            done("geqrf", unsafe {
                (f.cusolverDnXgeqrf)(h, p, m, n, t, a.at(i), a.ld(), t, tau, t, device, bytes, host, host_bytes, info)
            })
        })
    })
}

/// The first `width` columns of Q in the place of the reflections of [`qr`].
///
/// # Errors
/// As [`cholesky`]; the library counts these in 32 bits.
pub fn q_of(q: &Queue, a: &Matrices, width: usize, tau: &View) -> Result<()> {
    if a.is_empty() || width == 0 {
        return Ok(());
    }
    let int =
        |n: usize| c_int::try_from(n).map_err(|_| KernelError::new(format!("{n} rows are too many for cuSOLVER")));
    let (m, n, ld) = (int(a.rows)?, int(width.min(a.columns))?, int(a.rows)?);
    let k = int(tau.len() / a.count)?.min(n);
    let info = Room::new(q, DType::I32, &[1])?;
    solver(q)?.call(q.stream().raw(), |f, h, _| {
        let (ask, run) = match a.room.view.dtype() {
            DType::F32 => (f.cusolverDnSorgqr_bufferSize, f.cusolverDnSorgqr),
            DType::F64 => (f.cusolverDnDorgqr_bufferSize, f.cusolverDnDorgqr),
            DType::C64 => (f.cusolverDnCungqr_bufferSize, f.cusolverDnCungqr),
            _ => (f.cusolverDnZungqr_bufferSize, f.cusolverDnZungqr),
        };
        let mut size = 0;
        // SAFETY: sizes and addresses of one of the matrices and its factors; a place for the size.
        done("orgqr", unsafe { ask(h, m, n, k, a.at(0), ld, nth(tau, 0, a.count), &mut size) })?;
        let work = q.stream().scratch(size.max(0) as usize * a.room.view.dtype().size())?;
        (0..a.count).try_for_each(|i| {
            let (tau, info) = (nth(tau, i, a.count), info.view.ptr().cast());
            // SAFETY: as above, with a workspace of the size that was asked for and an i32 of the GPU.
            done("orgqr", unsafe { run(h, m, n, k, a.at(i), ld, tau, work.data().cast(), size, info) })
        })
    })
}

/// The eigenvalues of Hermitian matrices of which a triangle is named, from the least on, and the vectors in the place of the matrices.
///
/// # Errors
/// As [`cholesky`].
pub fn eigh(q: &Queue, a: &Matrices, upper: bool, values: &View, info: &View) -> Result<()> {
    holds(info, DType::I32, a.count)?;
    holds(values, a.room.view.dtype().part(), a.count * a.rows)?;
    if a.is_empty() {
        return nothing_wrong(q, info);
    }
    let (n, t, tw, uplo) = (a.square()?, a.code()?, data_type(values.dtype())?, c_int::from(upper));
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        // SAFETY: as in `cholesky`.
        let mut w = Work::new(q, "syevd", |d, o| unsafe {
            (f.cusolverDnXsyevd_bufferSize)(h, p, 1, uplo, n, t, a.at(0), a.ld(), tw, nth(values, 0, a.count), t, d, o)
        })?;
        let (device, bytes, host, host_bytes) = w.parts();
        (0..a.count).try_for_each(|i| {
            let (w, info, ld) = (nth(values, i, a.count), nth(info, i, a.count), a.ld());
            // SAFETY: as in `cholesky`, with a real number for each eigenvalue.
            done("syevd", unsafe {
                (f.cusolverDnXsyevd)(h, p, 1, uplo, n, t, a.at(i), ld, tw, w, t, device, bytes, host, host_bytes, info)
            })
        })
    })
}

/// The singular values, from the greatest on, of matrices of no fewer rows than columns, which are written over; the vectors U and Vᴴ. U has
/// as many columns as there are rows, or as columns.
///
/// # Errors
/// As [`cholesky`].
pub fn svd(q: &Queue, a: &Matrices, u: &Matrices, values: &View, vh: &Matrices, info: &View) -> Result<()> {
    holds(info, DType::I32, a.count)?;
    holds(values, a.room.view.dtype().part(), a.count * a.columns)?;
    let fits = a.rows >= a.columns
        && (u.count, u.rows) == (a.count, a.rows)
        && (u.columns == a.rows || u.columns == a.columns)
        && (vh.count, vh.rows, vh.columns) == (a.count, a.columns, a.columns);
    if !fits {
        return Err(KernelError::new(format!("no singular vectors of [{}, {}]", a.rows, a.columns)));
    }
    if a.is_empty() {
        return nothing_wrong(q, info);
    }
    let (m, n, t, ts) = (a.rows as i64, a.columns as i64, a.code()?, data_type(values.dtype())?);
    let (left, right) = (job(if u.columns == a.rows { 'A' } else { 'S' }), job('A'));
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        let s = |i: usize| nth(values, i, a.count);
        // SAFETY: as in `cholesky`.
        let mut w = Work::new(q, "gesvd", |d, o| unsafe {
            (f.cusolverDnXgesvd_bufferSize)(
                h,
                p,
                left,
                right,
                m,
                n,
                t,
                a.at(0),
                a.ld(),
                ts,
                s(0),
                t,
                u.at(0),
                u.ld(),
                t,
                vh.at(0),
                vh.ld(),
                t,
                d,
                o,
            )
        })?;
        let (device, bytes, host, host_bytes) = w.parts();
        (0..a.count).try_for_each(|i| {
            let (u_at, vh_at, info) = (u.at(i), vh.at(i), nth(info, i, a.count));
            // SAFETY: as in `cholesky`, with a real number for each singular value and rooms for the vectors.
            done("gesvd", unsafe {
                (f.cusolverDnXgesvd)(
                    h,
                    p,
                    left,
                    right,
                    m,
                    n,
                    t,
                    a.at(i),
                    a.ld(),
                    ts,
                    s(i),
                    t,
                    u_at,
                    u.ld(),
                    t,
                    vh_at,
                    vh.ld(),
                    t,
                    device,
                    bytes,
                    host,
                    host_bytes,
                    info,
                )
            })
        })
    })
}

/// The eigenvalues of complex matrices, which are written over, and the vectors as columns.
///
/// # Errors
/// As [`cholesky`].
pub fn eig(q: &Queue, a: &Matrices, values: &View, vectors: &Matrices, info: &View) -> Result<()> {
    holds(info, DType::I32, a.count)?;
    holds(values, a.room.view.dtype(), a.count * a.rows)?;
    fits(a, vectors)?;
    if a.is_empty() {
        return nothing_wrong(q, info);
    }
    let (n, t, ld, none) = (a.square()?, a.code()?, a.ld(), std::ptr::null_mut());
    solver(q)?.call(q.stream().raw(), |f, h, p| {
        let w = |i: usize| nth(values, i, a.count);
        // SAFETY: as in `cholesky`; no left vectors are asked for.
        let mut work = Work::new(q, "geev", |d, o| unsafe {
            let (a, v) = (a.at(0), vectors.at(0));
            (f.cusolverDnXgeev_bufferSize)(h, p, 0, 1, n, t, a, ld, t, w(0), t, none, ld, t, v, ld, t, d, o)
        })?;
        let (device, bytes, host, host_bytes) = work.parts();
        (0..a.count).try_for_each(|i| {
            let (at, v, info) = (a.at(i), vectors.at(i), nth(info, i, a.count));
            // SAFETY: as in `cholesky`, with a number for each eigenvalue and a room for the vectors.
            done("geev", unsafe {
                (f.cusolverDnXgeev)(
                    h,
                    p,
                    0,
                    1,
                    n,
                    t,
                    at,
                    ld,
                    t,
                    w(i),
                    t,
                    none,
                    ld,
                    t,
                    v,
                    ld,
                    t,
                    device,
                    bytes,
                    host,
                    host_bytes,
                    info,
                )
            })
        })
    })
}
