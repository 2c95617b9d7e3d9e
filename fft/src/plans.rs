//! The transforms that were planned: planning takes longer than a short transform, so the last ones are kept.

use crate::halves;
use crate::vectors::halves::{Of, pairwise};
use crate::vectors::{Columns, Lane, line};
use rustfft::num_complex::Complex as Z;
use rustfft::{Fft, FftDirection, FftPlanner};
use std::sync::{Arc, Mutex, PoisonError};

/// Plans kept at most of each kind of numbers.
const MOST: usize = 256;

/// Bytes that they hold at most, as far as lengths tell. A plan of more is kept alone.
const MOST_BYTES: usize = 128 << 20;

/// Bytes of a plan, as a multiple of those of a line of complex numbers: twiddle factors, those of lines that lie side by side, and those
/// of a longer transform of a power of two where the length has large prime factors.
const LINES: usize = 6;

/// Direction of a Fourier transform and whether one of its sides is real; part of the key of a remembered plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransformKind {
    Forward,
    Inverse,
    FromReal,
    ToReal,
}

/// A planned transform of complex numbers.
pub(crate) struct ComplexPlan<T: Lane> {
    pub(crate) fft: Arc<dyn Fft<T>>,
    /// Of lines that lie side by side, where that is faster.
    pub(crate) columns: Option<Columns<T>>,
}

/// A planned transform of which one side is real numbers. Those of an even length are taken in pairs for complex ones, so it is of half the
/// length; of an odd length they are complex numbers without imaginary parts.
pub(crate) struct RealPlan<T> {
    pub(crate) fft: Arc<dyn Fft<T>>,
    /// `exp(-2πi k / n)` for k from 1 to less than n / 4, of even lengths.
    pub(crate) roots: Vec<Z<T>>,
}

/// A planned transform.
#[derive(Clone)]
enum FftPlan<T: Lane> {
    Complex(Arc<ComplexPlan<T>>),
    Real(Arc<RealPlan<T>>),
}

/// A transform of one line. Planners remember every length and never forget one, so each plan is made by a planner of its own.
fn of_line<T: Lane>(n: usize, inverse: bool) -> Arc<dyn Fft<T>> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    line(n, inverse).unwrap_or_else(|| FftPlanner::new().plan_fft(n, direction))
}

impl<T: Lane> FftPlan<T> {
    fn make(kind: TransformKind, n: usize) -> FftPlan<T> {
        let real = |inverse: bool| {
            let even = n.is_multiple_of(2);
            let len = if even { n / 2 } else { n };
            let fft = of_line(len, inverse);
            let root = |k: usize| {
                let [re, im] = halves::root(k, n);
                Z { re, im }
            };
            let count = if even { (len - 1) / 2 } else { 0 };
            FftPlan::Real(Arc::new(RealPlan { fft, roots: (1..=count).map(root).collect() }))
        };
        let complex = |inverse: bool| {
            FftPlan::Complex(Arc::new(ComplexPlan { fft: of_line(n, inverse), columns: Columns::new(n, inverse) }))
        };
        match kind {
            TransformKind::Forward => complex(false),
            TransformKind::Inverse => complex(true),
            TransformKind::FromReal => real(false),
            TransformKind::ToReal => real(true),
        }
    }
}

/// The plans of the last transforms, the last one at the end.
pub(crate) struct Plans<T: Lane>(Vec<(TransformKind, usize, FftPlan<T>)>);

impl<T: Lane> Plans<T> {
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
pub(crate) trait Real: Lane {
    /// The plans of this process.
    fn plans() -> &'static Mutex<Plans<Self>>;
    /// [`halves::of_spectrum`] of many pairs.
    fn all_of_spectrum(low: &mut [Z<Self>], high: &mut [Z<Self>], roots: &[Z<Self>], factor: Self);
    /// [`halves::of_pairs`] of many pairs.
    fn all_of_pairs(low: &mut [Z<Self>], high: &mut [Z<Self>], roots: &[Z<Self>], factor: Self);
}

macro_rules! real {
    ($($t:ty: $spectrum:ident $pairs:ident),*) => {$(
        impl Real for $t {
            fn all_of_spectrum(low: &mut [Z<$t>], high: &mut [Z<$t>], roots: &[Z<$t>], factor: $t) {
                pairwise(Of::Spectrum, halves::$spectrum, (low, high), roots, factor);
            }
            fn all_of_pairs(low: &mut [Z<$t>], high: &mut [Z<$t>], roots: &[Z<$t>], factor: $t) {
                pairwise(Of::Pairs, halves::$pairs, (low, high), roots, factor);
            }
            fn plans() -> &'static Mutex<Plans<Self>> {
                static PLANS: Mutex<Plans<$t>> = Mutex::new(Plans::new());
                &PLANS
            }
        }
    )*};
}
real!(f32: all_of_spectrum_f32 all_of_pairs_f32, f64: all_of_spectrum_f64 all_of_pairs_f64);

fn plan<T: Real>(kind: TransformKind, n: usize) -> FftPlan<T> {
    T::plans().lock().unwrap_or_else(PoisonError::into_inner).get(kind, n)
}

/// A transform of complex lines of length n.
pub(crate) fn complex<T: Real>(n: usize, inverse: bool) -> Arc<ComplexPlan<T>> {
    match plan(if inverse { TransformKind::Inverse } else { TransformKind::Forward }, n) {
        FftPlan::Complex(plan) => plan,
        FftPlan::Real(_) => unreachable!("a plan is of the kind that it is kept under"),
    }
}

/// A transform of real lines of length n, or to such.
pub(crate) fn real<T: Real>(n: usize, inverse: bool) -> Arc<RealPlan<T>> {
    match plan(if inverse { TransformKind::ToReal } else { TransformKind::FromReal }, n) {
        FftPlan::Real(plan) => plan,
        FftPlan::Complex(_) => unreachable!("a plan is of the kind that it is kept under"),
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
