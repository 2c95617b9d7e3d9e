//! In the place of `vectors` where there are no vectors of 512 bits: rustfft computes all.

use oflow::kernels::Element;
use rustfft::num_complex::Complex as Z;
use rustfft::{Fft, FftNum};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

/// f32 and f64.
pub(crate) trait Lane: FftNum + Element + Default {
    const LANES: usize = 1;
}
impl Lane for f32 {}
impl Lane for f64 {}

pub(crate) fn line<T: Lane>(_: usize, _: bool) -> Option<Arc<dyn Fft<T>>> {
    None
}

/// There are none.
pub(crate) struct Columns<T>(Infallible, PhantomData<T>);

impl<T: Lane> Columns<T> {
    pub(crate) fn new(_: usize, _: bool) -> Option<Columns<T>> {
        None
    }
    pub(crate) fn room(&self) {
        match self.0 {}
    }
    pub(crate) fn run<'a>(&self, (): &mut (), _: T, _: impl Fn(usize) -> &'a [T], _: impl FnMut(usize) -> &'a mut [T]) {
        match self.0 {}
    }
}

pub(crate) fn parts<T: Lane>(_: &[Z<T>]) -> &[T] {
    &[]
}

pub(crate) fn parts_mut<T: Lane>(_: &mut [Z<T>]) -> &mut [T] {
    &mut []
}

pub(crate) mod halves {
    use super::Lane;
    use crate::halves::Pairwise;
    use rustfft::num_complex::Complex as Z;

    #[derive(Clone, Copy)]
    pub(crate) enum Of {
        Spectrum,
        Pairs,
    }

    pub(crate) fn pairwise<T: Lane>(
        _: Of,
        all: Pairwise<T>,
        (low, high): (&mut [Z<T>], &mut [Z<T>]),
        roots: &[Z<T>],
        factor: T,
    ) {
        all(low, high, roots, factor);
    }
}
