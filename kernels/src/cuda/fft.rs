//! Discrete Fourier transforms along one dim, by cuFFT: lines of numbers that lie one after the other. Others are copied to scratch memory
//! first, and so are results whose lines lie otherwise.

use super::probe::{Optional, optional};
use super::rows::blocks;
use super::stream::Scratch;
use super::{Args, Define, Launch, Queue, Source, Stream, copy};
use crate::view::contiguous_strides;
use crate::{DType, KernelError, Result, View};
use cudarc::cufft::sys;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) static FFT: Source = Source::file("fft", include_str!("../../cuda/fft.cu")).forms(&["T={f32,f64}"]);

/// Plans that a GPU keeps. A program whose sizes never come again must not fill the memory.
const MOST_PLANS: usize = 1024;

/// Kind of a transform, by the numbers that it takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transform {
    /// Complex numbers to complex numbers.
    Complex,
    /// Real numbers to the first half of their transform.
    FromReal,
    /// The first half of a transform to the real numbers that have it.
    ToReal,
}

/// Kind, double precision, length and count of lines.
type Key = (Transform, bool, usize, usize);

/// Plans of one GPU.
#[derive(Default)]
pub(super) struct Plans(Mutex<BTreeMap<Key, Arc<Mutex<Plan>>>>);

struct Plan {
    handle: sys::cufftHandle,
    /// Bytes of scratch memory.
    area: usize,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made in `Plan::new`, destroyed once. The library frees memory of the GPU when work with it is done.
        let _ = unsafe { sys::cufftDestroy(self.handle) };
    }
}

fn done(what: &str, status: sys::cufftResult) -> Result<()> {
    match status {
        sys::cufftResult::CUFFT_SUCCESS => Ok(()),
        sys::cufftResult::CUFFT_ALLOC_FAILED => Err(KernelError::out_of_memory(format!("{what}: out of memory"))),
        status => Err(KernelError::device(format!("{what}: {status:?}"))),
    }
}

impl Plan {
    fn new(kind: Transform, double: bool, n: usize, count: usize) -> Result<Plan> {
        use sys::cufftType as T;
        let mut handle = 0;
        // SAFETY: writes one handle; the library is there (`transform` asks), and the context is current.
        done("cufftCreate", unsafe { sys::cufftCreate(&mut handle) })?;
        let mut plan = Plan { handle, area: 0 };
        // SAFETY: a live handle without a plan.
        done("cufftSetAutoAllocation", unsafe { sys::cufftSetAutoAllocation(handle, 0) })?;
        let of = match (kind, double) {
            (Transform::Complex, false) => T::CUFFT_C2C,
            (Transform::Complex, true) => T::CUFFT_Z2Z,
            (Transform::FromReal, false) => T::CUFFT_R2C,
            (Transform::FromReal, true) => T::CUFFT_D2Z,
            (Transform::ToReal, false) => T::CUFFT_C2R,
            (Transform::ToReal, true) => T::CUFFT_Z2D,
        };
        let (mut sizes, none) = ([n as i64], std::ptr::null_mut());
        // SAFETY: one size, no embedding (lines lie one after the other), and a place for the bytes.
        let made = unsafe {
            sys::cufftMakePlanMany64(
                handle,
                1,
                sizes.as_mut_ptr(),
                none,
                1,
                n as i64,
                none,
                1,
                n as i64,
                of,
                count as i64,
                &mut plan.area,
            )
        };
        done(&format!("cuFFT cannot plan {count} transforms of {n} numbers"), made)?;
        Ok(plan)
    }

    /// Puts the transform of lines on a stream.
    fn run(
        &self,
        stream: &Stream,
        area: &Scratch<'_>,
        kind: Transform,
        from: &View,
        to: &View,
        sign: c_int,
    ) -> Result<()> {
        let double = [from.dtype(), to.dtype()].contains(&DType::C128);
        // SAFETY: a live plan, which only this call uses (it is locked); a live stream of the context that is current, and scratch memory of
        // the size that the plan asks for.
        unsafe {
            done("cufftSetStream", sys::cufftSetStream(self.handle, stream.raw().cast()))?;
            done("cufftSetWorkArea", sys::cufftSetWorkArea(self.handle, area.data().cast()))?;
        }
        let (x, y) = (from.ptr(), to.ptr());
        // SAFETY: dense lines of the plan's count and length in memory of this GPU, of the dtypes that the function takes: complex numbers
        // are pairs of reals.
        let status = unsafe {
            match (kind, double) {
                (Transform::Complex, false) => sys::cufftExecC2C(self.handle, x.cast(), y.cast(), sign),
                (Transform::Complex, true) => sys::cufftExecZ2Z(self.handle, x.cast(), y.cast(), sign),
                (Transform::FromReal, false) => sys::cufftExecR2C(self.handle, x.cast(), y.cast()),
                (Transform::FromReal, true) => sys::cufftExecD2Z(self.handle, x.cast(), y.cast()),
                (Transform::ToReal, false) => sys::cufftExecC2R(self.handle, x.cast(), y.cast()),
                (Transform::ToReal, true) => sys::cufftExecZ2D(self.handle, x.cast(), y.cast()),
            }
        };
        done("cuFFT's launch", status)
    }
}

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
    let plan = {
        let mut plans = q.gpu().fft.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, real == DType::F64, n, count);
        match plans.get(&key) {
            Some(plan) => plan.clone(),
            None => {
                q.gpu().bind()?;
                let plan = Arc::new(Mutex::new(Plan::new(kind, key.1, n, count)?));
                if plans.len() >= MOST_PLANS {
                    plans.clear();
                }
                plans.insert(key, plan.clone());
                plan
            }
        }
    };
    {
        let plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        let area = q.stream().scratch(plan.area)?;
        plan.run(q.stream(), &area, kind, &given, &made, if inverse { 1 } else { -1 })?;
    }
    if factor != 1.0 {
        let parts = made.len() * made.dtype().size() / real.size();
        let args = Args::new().view(&made).value(parts as u64).value(factor);
        q.launch(q.function(&FFT, "scale", &define)?, spread(parts), args)?;
    }
    if made.ptr() == to.ptr() { Ok(()) } else { copy::copy(q, &made, &to) }
}
