//! cuFFT: the plans of a GPU. A line's numbers lie one after the other, and so do the lines.

use crate::{DType, KernelError, Result, View};
use cudarc::cufft::sys;
use cudarc::driver::sys::CUstream;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

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

pub(super) struct Plan {
    handle: sys::cufftHandle,
    /// Bytes of scratch memory.
    pub(super) area: usize,
}

impl Plans {
    /// The plan of so many transforms of this kind, for one call. The context of the GPU is current.
    pub(super) fn plan(&self, kind: Transform, double: bool, n: usize, count: usize) -> Result<Arc<Mutex<Plan>>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, double, n, count);
        if let Some(plan) = plans.get(&key) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(Mutex::new(Plan::new(kind, double, n, count)?));
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(key, plan.clone());
        Ok(plan)
    }
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
    pub(super) fn run(
        &self,
        stream: CUstream,
        area: *mut u8,
        kind: Transform,
        from: &View,
        to: &View,
        sign: c_int,
    ) -> Result<()> {
        let double = [from.dtype(), to.dtype()].contains(&DType::C128);
        // SAFETY: a live plan, which only this call uses (it is locked); a live stream of the context that is current, and scratch memory of
        // the size that the plan asks for.
        unsafe {
            done("cufftSetStream", sys::cufftSetStream(self.handle, stream.cast()))?;
            done("cufftSetWorkArea", sys::cufftSetWorkArea(self.handle, area.cast()))?;
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
