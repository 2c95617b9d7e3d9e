//! The transforms that were planned: planning takes longer than a short transform, so the last ones are kept.

use oflow::kernels::Element;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};
use std::sync::{Arc, Mutex, PoisonError};

/// Plans kept at most of each kind of numbers.
const MOST: usize = 256;

/// Bytes that they hold at most, as far as lengths tell. A plan of more is kept alone.
const MOST_BYTES: usize = 128 << 20;

/// Bytes of a plan, as a multiple of those of a line of complex numbers: twiddle factors, and those of a longer transform of a power of
/// two where the length has large prime factors.
const LINES: usize = 4;

/// Direction of a Fourier transform and whether one of its sides is real; part of the key of a remembered plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransformKind {
    Forward,
    Inverse,
    FromReal,
    ToReal,
}

/// A planned transform.
#[derive(Clone)]
enum FftPlan<T> {
    Complex(Arc<dyn Fft<T>>),
    FromReal(Arc<dyn RealToComplex<T>>),
    ToReal(Arc<dyn ComplexToReal<T>>),
}

impl<T: FftNum> FftPlan<T> {
    /// Planners remember every length and never forget one, so each plan is made by a planner of its own.
    fn make(kind: TransformKind, n: usize) -> FftPlan<T> {
        match kind {
            TransformKind::Forward => FftPlan::Complex(FftPlanner::new().plan_fft_forward(n)),
            TransformKind::Inverse => FftPlan::Complex(FftPlanner::new().plan_fft_inverse(n)),
            TransformKind::FromReal => FftPlan::FromReal(RealFftPlanner::new().plan_fft_forward(n)),
            TransformKind::ToReal => FftPlan::ToReal(RealFftPlanner::new().plan_fft_inverse(n)),
        }
    }
}

/// The plans of the last transforms, the last one at the end.
pub(crate) struct Plans<T>(Vec<(TransformKind, usize, FftPlan<T>)>);

impl<T: FftNum> Plans<T> {
    const fn new() -> Plans<T> {
        Plans(Vec::new())
    }

    fn get(&mut self, kind: TransformKind, n: usize) -> FftPlan<T> {
        let found = self.0.iter().rposition(|(k, len, _)| *k == kind && *len == n);
        let entry = match found {
            Some(at) => self.0.remove(at),
            None => (kind, n, FftPlan::make(kind, n)),
        };
        let plan = entry.2.clone();
        self.0.push(entry);
        let bytes = |all: &[(TransformKind, usize, FftPlan<T>)]| -> usize {
            all.iter().map(|(_, len, _)| len.saturating_mul(LINES * 2 * size_of::<T>())).fold(0, usize::saturating_add)
        };
        while self.0.len() > 1 && (self.0.len() > MOST || bytes(&self.0) > MOST_BYTES) {
            self.0.remove(0);
        }
        plan
    }
}

/// f32 and f64.
pub(crate) trait Real: FftNum + Element + Default {
    /// The plans of this process.
    fn plans() -> &'static Mutex<Plans<Self>>;
}

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Real for $t {
            fn plans() -> &'static Mutex<Plans<Self>> {
                static PLANS: Mutex<Plans<$t>> = Mutex::new(Plans::new());
                &PLANS
            }
        }
    )*};
}
real!(f32, f64);

fn plan<T: Real>(kind: TransformKind, n: usize) -> FftPlan<T> {
    T::plans().lock().unwrap_or_else(PoisonError::into_inner).get(kind, n)
}

/// A transform of complex lines of length n.
pub(crate) fn complex<T: Real>(n: usize, inverse: bool) -> Arc<dyn Fft<T>> {
    match plan(if inverse { TransformKind::Inverse } else { TransformKind::Forward }, n) {
        FftPlan::Complex(plan) => plan,
        FftPlan::FromReal(_) | FftPlan::ToReal(_) => unreachable!("a plan is of the kind that it is kept under"),
    }
}

/// A transform of real lines of length n.
pub(crate) fn from_real<T: Real>(n: usize) -> Arc<dyn RealToComplex<T>> {
    match plan(TransformKind::FromReal, n) {
        FftPlan::FromReal(plan) => plan,
        FftPlan::Complex(_) | FftPlan::ToReal(_) => unreachable!("a plan is of the kind that it is kept under"),
    }
}

/// A transform to real lines of length n.
pub(crate) fn to_real<T: Real>(n: usize) -> Arc<dyn ComplexToReal<T>> {
    match plan(TransformKind::ToReal, n) {
        FftPlan::ToReal(plan) => plan,
        FftPlan::Complex(_) | FftPlan::FromReal(_) => unreachable!("a plan is of the kind that it is kept under"),
    }
}

/// Returns how many planned transforms this process keeps, and how many it keeps at most. The transforms used last are kept: planning
/// takes longer than a short transform.
///
/// ```
/// use oflow::prelude::*;
/// oflow_fft::register()?;
/// let before = oflow_fft::kept_plans().0;
/// oflow_fft::fft(&ones([12], Device::Cpu)?, Default::default())?;
/// let (kept, most) = oflow_fft::kept_plans();
/// assert!(kept > before && kept <= most);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn kept_plans() -> (usize, usize) {
    let of_f32 = f32::plans().lock().unwrap_or_else(PoisonError::into_inner).0.len();
    (of_f32 + f64::plans().lock().unwrap_or_else(PoisonError::into_inner).0.len(), 2 * MOST)
}
