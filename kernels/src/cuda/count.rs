//! Places in sorted sequences, and counts; see [`crate::cpu::count`].

use super::fill::fill;
use super::index::index_dtype;
use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::count::{check_counts, check_histogram, check_search};
use crate::{KernelError, Result, Scalar, View};

pub(super) static COUNT: Source = Source::file("count", include_str!("../../cuda/count.cu")).forms(&[
    "KIND=0 T={f32,bf16,i64,u8} O=i64 RIGHT={0,1}",
    "KIND=0 T=f32 O=i32 RIGHT=0",
    "KIND=1 I={i32,i64}",
    "KIND=2 T={f32,f64}",
]);

fn each(q: &Queue, n: usize) -> Launch {
    Launch::new(q.blocks(n, 256, 4), 256)
}

/// See [`searchsorted`](crate::cpu::count::searchsorted).
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn searchsorted(q: &Queue, sorted: &View, x: &View, out: &View, right: bool) -> Result<()> {
    let (n, of_one) = check_search(sorted, x, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let defines = [
        Define::int("KIND", 0),
        Define::dtype("T", x.dtype()),
        Define::dtype("O", out.dtype()),
        Define::int("RIGHT", i64::from(right)),
    ];
    let f = q.function(&COUNT, "searchsorted", &defines)?;
    let args = Args::new().view(out).view(sorted).view(x).value(x.len() as u64).value(n as u64).value(of_one as u64);
    q.launch(f, each(q, x.len()), args)
}

/// See [`count_index`](crate::cpu::count::count_index). An index out of range is reported to the queue's fault slot.
///
/// # Errors
/// If dims or dtypes do not fit.
pub fn count_index(q: &Queue, ids: &View, out: &View, first: usize, size: usize) -> Result<()> {
    check_counts(ids, out)?;
    fill(q, out, Scalar::Int(0))?;
    if ids.is_empty() {
        return Ok(());
    }
    let f = q.function(&COUNT, "count_index", &[Define::int("KIND", 1), index_dtype(ids)?])?;
    let args = Args::new().view(out).view(ids).value(ids.len() as u64);
    let args = args.value(first as i64).value(out.len() as i64).value(size as i64);
    q.launch(f, each(q, ids.len()), q.fault_args(args))
}

/// Returns the bytes of scratch memory of [`histogram`]: a count for each interval.
pub fn histogram_workspace(bins: usize) -> usize {
    bins * 8
}

/// See [`histogram`](crate::cpu::count::histogram).
///
/// # Errors
/// If a tensor is not contiguous, the dtypes are not one of f32 and f64, or the scratch memory is missing.
pub fn histogram(q: &Queue, x: &View, out: &View, lo: f64, hi: f64, scratch: Option<&View>) -> Result<()> {
    check_histogram(x, out)?;
    let bins = out.len();
    if bins == 0 {
        return Ok(());
    }
    let counts = scratch.filter(|s| s.len() >= histogram_workspace(bins));
    let counts = counts.ok_or_else(|| KernelError::new("the counts need their scratch memory"))?;
    fill(q, counts, Scalar::Int(0))?;
    let defines = [Define::int("KIND", 2), Define::dtype("T", x.dtype())];
    if !x.is_empty() {
        let args = Args::new().view(x).view(counts).value(x.len() as u64).value(bins as u64).value(lo).value(hi);
        q.launch(q.function(&COUNT, "histogram", &defines)?, each(q, x.len()), args)?;
    }
    let args = Args::new().view(counts).view(out).value(bins as u64);
    q.launch(q.function(&COUNT, "histogram_store", &defines)?, each(q, bins), args)
}
