//! Kernels around cuSOLVER's decompositions: what it leaves to do.

use super::room::{Room, holds, sizes};
use crate::cuda::queue::Why;
use crate::cuda::rows::blocks;
use crate::cuda::{Args, Define, Function, Launch, Queue, Source};
use crate::{DType, KernelError, Result, View};

pub(in crate::cuda) static LINALG: Source = Source::file("linalg", include_str!("../../../cuda/linalg.cu"))
    .forms(&["T={f32,c64} PART=f32 Z=c64", "T={f64,c128} PART=f64 Z=c128"]);

fn function(q: &Queue, entry: &str, dtype: DType) -> Result<Function> {
    let part = dtype.part();
    if ![DType::F32, DType::F64].contains(&part) {
        return Err(KernelError::new(format!("no linear algebra of {dtype}")));
    }
    let defines = [Define::dtype("T", dtype), Define::dtype("PART", part), Define::dtype("Z", part.complex())];
    q.function(&LINALG, entry, &defines)
}

fn spread(items: usize) -> Launch {
    Launch::new(blocks(items as u64, 256), 256)
}

/// A block for each of these.
fn each(items: usize, threads: u32) -> Result<Launch> {
    let blocks =
        i32::try_from(items).map_err(|_| KernelError::new(format!("{items} columns are too many for a GPU")))?;
    Ok(Launch::new(blocks as u32, threads))
}

/// `strided` of the source, of matrices whose batch dims lie as one.
fn strided(x: &View) -> Result<[i64; 3]> {
    let (dims, strides) = (x.dims(), x.strides());
    let [batch @ .., rows, columns] = strides else {
        return Err(KernelError::new(format!("expected matrices [.., m, n], got {dims:?}")));
    };
    let lead = &dims[..batch.len()];
    let step = batch.iter().zip(lead).rev().find(|(_, n)| **n != 1).map_or(0, |(s, _)| *s);
    let mut want = step;
    for (s, n) in batch.iter().zip(lead).rev().filter(|(_, n)| **n != 1) {
        if *s != want {
            return Err(KernelError::new(format!("the matrices of {dims:?} lie in no order")));
        }
        want = s * *n as isize;
    }
    Ok([step, *rows, *columns].map(|s| s as i64))
}

/// Reports the matrices whose `info` is not 0.
///
/// # Errors
/// Those of the launch; the report is told when the stream is waited for.
pub fn report(q: &Queue, info: &View, why: Why) -> Result<()> {
    holds(info, DType::I32, info.len())?;
    if info.is_empty() {
        return Ok(());
    }
    let args = Args::new().view(info).value(info.len() as u64).value(why as i64);
    q.launch(function(q, "report", DType::F32)?, Launch::new(1, 1), q.fault_args(args))
}

/// Reports the matrices, contiguous ones, that have an infinity or a NaN.
///
/// # Errors
/// As [`report`].
pub fn check_finite(q: &Queue, x: &View) -> Result<()> {
    let (count, rows, columns) = sizes(x)?;
    holds(x, x.dtype(), count * rows * columns)?;
    if x.is_empty() {
        return Ok(());
    }
    let args = Args::new().view(x).value(count as u64).value((rows * columns) as u64).value(Why::NotFinite as i64);
    q.launch(function(q, "finite", x.dtype())?, spread(x.len()), q.fault_args(args))
}

/// Multiplies each vector, a column of `v`, by the factor of absolute value 1 that makes its first largest element positive, and the rows of
/// `paired` by the conjugates. With `conjugated`, the conjugates of the vectors are meant, and written.
///
/// # Errors
/// Where the tensors do not fit.
pub fn phases(q: &Queue, v: &View, paired: Option<&View>, conjugated: bool) -> Result<()> {
    let (count, rows, columns) = sizes(v)?;
    if v.is_empty() {
        return Ok(());
    }
    let (rows_of, length) = match paired {
        Some(w) if sizes(w)?.0 == count && w.dtype() == v.dtype() => (sizes(w)?.1, sizes(w)?.2),
        None => (0, 0),
        _ => return Err(KernelError::new("vectors and their partners are of different batches")),
    };
    let partner = paired.map_or(Ok([0; 3]), strided)?;
    let args = Args::new().view(v).value(strided(v)?).value(rows as u64).value(columns as u64);
    let args = args.opt_view(paired).value(partner).value(rows_of as u64).value(length as u64);
    q.launch(function(q, "phases", v.dtype())?, each(count * columns, 32)?, args.value(i32::from(conjugated)))
}

/// The determinants of matrices of which `lu` has the factors `[count, n, n]`, or with `logs` their directions and the logarithms of their
/// sizes.
///
/// # Errors
/// Where the tensors do not fit.
pub fn determinants(q: &Queue, lu: &View, pivots: &View, signs: &View, logs: Option<&View>) -> Result<()> {
    let (count, n, _) = sizes(lu)?;
    holds(pivots, DType::I64, count * n)?;
    holds(signs, lu.dtype(), count)?;
    logs.map_or(Ok(()), |l| holds(l, lu.dtype().part(), count))?;
    if count == 0 {
        return Ok(());
    }
    let args = Args::new().view(lu).value(strided(lu)?).view(pivots).value(n as u64).view(signs).opt_view(logs);
    q.launch(function(q, "determinants", lu.dtype())?, each(count, 32)?, args)
}

/// The permutation matrices P `[.., rows, rows]` with `A = P L U` of pivots of i64, counted from `first`. A pivot that is no row is reported.
///
/// # Errors
/// Where the tensors do not fit.
pub fn permutations(q: &Queue, pivots: &View, p: &View, first: i64) -> Result<()> {
    let (count, rows, _) = sizes(p)?;
    if p.is_empty() {
        return Ok(());
    }
    holds(p, p.dtype(), count * rows * rows)?;
    let k = pivots.len() / count;
    holds(pivots, DType::I64, count * k)?;
    let args = Args::new().view(pivots).view(p).value(count as u64).value(k as u64).value(rows as u64).value(first);
    q.launch(function(q, "permutations", p.dtype())?, spread(count * rows), q.fault_args(args))
}

/// Solves `A x = b` for triangles A `[.., n, n]` in the place of `b` `[.., n, k]`; with `conjugated`, of the conjugates of A.
///
/// # Errors
/// Where the tensors do not fit.
pub fn triangular(q: &Queue, a: &View, b: &View, [upper, unit, conjugated]: [bool; 3]) -> Result<()> {
    let ((count, n, m), (of, rows, columns)) = (sizes(a)?, sizes(b)?);
    if (count, n) != (of, rows) || n != m || a.dtype() != b.dtype() {
        return Err(KernelError::new(format!("triangles {:?} and right sides {:?}", a.dims(), b.dims())));
    }
    if b.is_empty() {
        return Ok(());
    }
    let args = Args::new().view(a).value(strided(a)?).view(b).value(strided(b)?).value(n as u64).value(columns as u64);
    let args = args.value(i32::from(upper)).value(i32::from(unit)).value(i32::from(conjugated));
    q.launch(function(q, "triangular", a.dtype())?, each(count * columns, 128)?, args)
}

/// Unit matrices.
///
/// # Errors
/// Where the tensor is not contiguous.
pub fn identities(q: &Queue, x: &View) -> Result<()> {
    let (count, n, _) = sizes(x)?;
    holds(x, x.dtype(), count * n * n)?;
    let args = Args::new().view(x).value(count as u64).value(n as u64);
    q.launch(function(q, "identities", x.dtype())?, spread(x.len()), args)
}

/// Makes Hermitian matrices of their lower triangles.
///
/// # Errors
/// Where the tensor is not contiguous.
pub fn mirror(q: &Queue, x: &View) -> Result<()> {
    let (count, n, _) = sizes(x)?;
    holds(x, x.dtype(), count * n * n)?;
    let args = Args::new().view(x).value(count as u64).value(n as u64);
    q.launch(function(q, "mirrored", x.dtype())?, spread(x.len()), args)
}

/// Factors of pairs of singular vectors.
#[derive(Clone, Copy)]
pub enum Weights<'a> {
    /// The inverse of the singular value, where it is above `atol` and `rtol` times the greatest.
    Inverse {
        /// Least singular value.
        atol: f64,
        /// Least singular value beside the greatest.
        rtol: f64,
    },
    /// The product of the other singular values, turned by the determinants of U and of Vᴴ.
    Others(&'a View, &'a View),
}

/// `conj(U diag(w) Vᴴ)` into `y`, of contiguous U `[.., m, k]`, singular values and Vᴴ `[.., k, n]`.
///
/// # Errors
/// Where the tensors do not fit, or there is no memory for the weights.
pub fn weighted(q: &Queue, [u, s, vh]: [&View; 3], weights: Weights, y: &View) -> Result<()> {
    let ((count, rows, k), columns, t) = (sizes(u)?, sizes(vh)?.2, u.dtype());
    holds(u, t, count * rows * k)?;
    holds(vh, t, count * k * columns)?;
    holds(s, t.part(), count * k)?;
    if y.is_empty() {
        return Ok(());
    }
    if sizes(y)? != (count, rows, columns) || y.dtype() != t {
        return Err(KernelError::new(format!("{:?} does not take [{rows}, {columns}]", y.dims())));
    }
    let w = Room::new(q, t, &[count, k])?;
    let args = Args::new().view(s).view(&w.view).value(count as u64).value(k as u64);
    let args = match weights {
        Weights::Inverse { atol, rtol } => args.value(atol).value(rtol).opt_view(None).opt_view(None),
        Weights::Others(left, right) => {
            holds(left, t, count)?;
            holds(right, t, count)?;
            args.value(0.0f64).value(0.0f64).view(left).view(right)
        }
    };
    q.launch(function(q, "weights", t)?, spread(count * k), args)?;
    let args = Args::new().view(u).view(&w.view).view(vh).view(y).value(strided(y)?);
    let args = args.value(count as u64).value(rows as u64).value(k as u64).value(columns as u64);
    q.launch(function(q, "weighted", t)?, spread(y.len()), args)
}
