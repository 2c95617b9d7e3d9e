//! Discrete Fourier transforms along one dim, by cuFFT: lines of numbers that lie one after the other. Others are copied to scratch memory
//! first, and so are results whose lines lie otherwise.

pub use super::cufft::Transform;
use super::probe::{Optional, optional};
use super::rows::blocks;
use super::{Args, Define, Launch, Queue, Source, copy};
use crate::view::contiguous_strides;
use crate::{DType, KernelError, Result, View};
use std::sync::PoisonError;

pub(super) static FFT: Source = Source::file("fft", include_str!("../../cuda/fft.cu")).forms(&["T={f32,f64}"]);

fn bytes(dtype: DType, dims: &[usize]) -> usize {
    dims.iter().fold(dtype.size(), |b: usize, d| b.saturating_mul(*d)).next_multiple_of(256)
}

/// Returns the bytes of scratch memory of [`transform`] for an input and an output of these dtypes and dims.
pub fn workspace(kind: Transform, dim: usize, (from, x): (DType, &[usize]), (to, y): (DType, &[usize])) -> usize {
    let copied_in = if kind == Transform::Complex { 0 } else { bytes(from, x) };
    let copied_out = if dim + 1 == y.len() { 0 } else { bytes(to, y) };
    copied_in.saturating_add(copied_out)
}

/// The view with `dim` as its last.
fn along_last(x: &View, dim: usize) -> View {
    let (mut dims, mut strides): (crate::Dims, crate::Strides) = (x.dims().into(), x.strides().into());
    let (n, step) = (dims.remove(dim), strides.remove(dim));
    dims.push(n);
    strides.push(step);
    // SAFETY: the elements of the view in another order.
    unsafe { x.restride(0, dims, strides) }
}

/// A dense view at the start of the scratch memory, of which it takes its bytes.
fn place(room: &mut (*mut u8, usize), dtype: DType, dims: &[usize]) -> Result<View> {
    let need = bytes(dtype, dims);
    if need > room.1 {
        return Err(KernelError::new("a transform was given too little scratch memory"));
    }
    let at = room.0;
    *room = (at.wrapping_add(need), room.1 - need);
    // SAFETY: as many bytes of the scratch memory, which nobody else uses; they are written before they are read.
    Ok(unsafe { View::from_raw(at, dtype, dims.into(), contiguous_strides(dims)) })
}

/// Transforms along `dim`, times a factor: `y[k] = factor · Σ x[j] exp(∓2πi jk / n)`, with + if `inverse`. A transform from real numbers
/// is never inverse here, one to real numbers always; imaginary parts of numbers that are their own conjugates do not count there.
/// `scratch` has [`workspace`] bytes.
///
/// # Errors
/// There is no cuFFT; dims or dtypes do not fit; what the library reports.
pub fn transform(
    q: &Queue,
    kind: Transform,
    (x, y, dim): (&View, &View, usize),
    inverse: bool,
    factor: f64,
    scratch: &View,
) -> Result<()> {
    optional(Optional::Cufft)
        .as_ref()
        .map_err(|e| KernelError::device(format!("transforms on a GPU need cuFFT: {e}")))?;
    let part = |d: DType| if d == DType::C128 || d == DType::F64 { DType::F64 } else { DType::F32 };
    let real = part(x.dtype());
    let (from_real, to_real) = (kind == Transform::FromReal, kind == Transform::ToReal);
    let fits = x.rank() == y.rank()
        && dim < x.rank()
        && x.dtype() == if from_real { real } else { real.complex() }
        && y.dtype() == if to_real { real } else { real.complex() };
    if !fits {
        let (a, b) = (x.dims(), y.dims());
        return Err(KernelError::new(format!("a transform of {} {a:?} to {} {b:?} along {dim}", x.dtype(), y.dtype())));
    }
    if x.is_empty() || y.is_empty() {
        return Ok(());
    }
    let (from, to) = (along_last(x, dim), along_last(y, dim));
    let n = if to_real { y.dims()[dim] } else { x.dims()[dim] };
    let count = y.len() / y.dims()[dim];
    let mut room = (scratch.ptr(), scratch.len());
    let made = if to.is_contiguous() { to.clone() } else { place(&mut room, y.dtype(), to.dims())? };
    // The library writes over spectra of real numbers, and takes pairs of real numbers at a time.
    let usable = from.is_contiguous() && !to_real && (from.ptr() as usize).is_multiple_of(2 * real.size());
    let given = match (usable, kind) {
        (true, _) => from,
        (false, Transform::Complex) => {
            copy::copy(q, &from, &made)?;
            made.clone()
        }
        (false, _) => {
            let given = place(&mut room, x.dtype(), from.dims())?;
            copy::copy(q, &from, &given)?;
            given
        }
    };
    let define = [Define::dtype("T", real)];
    let spread = |items: usize| Launch::new(blocks(items as u64, 256), 256);
    if to_real {
        let both = i32::from(n.is_multiple_of(2) && n > 1);
        let args = Args::new().view(&given).value(count as u64).value((n / 2 + 1) as u64).value(both);
        q.launch(q.function(&FFT, "real_ends", &define)?, spread(count), args)?;
    }
    q.gpu().bind()?;
    let plan = q.gpu().fft.plan(kind, real == DType::F64, n, count)?;
    {
        let plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        let area = q.stream().scratch(plan.area)?;
        plan.run(q.stream().raw(), area.data(), kind, &given, &made, if inverse { 1 } else { -1 })?;
    }
    if factor != 1.0 {
        let parts = made.len() * made.dtype().size() / real.size();
        let args = Args::new().view(&made).value(parts as u64).value(factor);
        q.launch(q.function(&FFT, "scale", &define)?, spread(parts), args)?;
    }
    if made.ptr() == to.ptr() { Ok(()) } else { copy::copy(q, &made, &to) }
}
