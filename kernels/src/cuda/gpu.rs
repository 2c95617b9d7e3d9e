//! A GPU of this process: its primary context, its properties, its compiled programs.

use super::blas::Blas;
use super::cudnn::Dnn;
use super::cufft::Plans;
use super::cusolver::Solver;
use super::driver_error;
use super::probe::{GpuInfo, LEAST_CAPABILITY, probe};
use super::program::Programs;
use crate::{KernelError, Result};
use cudarc::driver::{result, sys};
use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A GPU of this process. All ranks that use it share it (they are threads, in tests). It is never closed, so memory and streams
/// can be freed at any time and on any thread.
pub struct Gpu {
    info: GpuInfo,
    context: sys::CUcontext,
    multiprocessors: u32,
    shared_memory: u32,
    pub(super) programs: Programs,
    blas: OnceLock<Result<Blas>>,
    pub(super) fft: Plans,
    solver: OnceLock<Result<Solver>>,
    dnn: OnceLock<Result<Dnn>>,
}

// SAFETY: a CUDA context may be made current on any thread; the rest is plain data or locked.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

thread_local! {
    /// The GPU whose context is current on this thread, by number.
    static BOUND: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Gpu {
    /// Opens the visible GPU with this index, at most once per process.
    ///
    /// # Errors
    /// If the driver, the GPU or a library is missing. The message says which.
    pub fn open(index: usize) -> Result<Arc<Gpu>> {
        static OPEN: Mutex<Vec<Arc<Gpu>>> = Mutex::new(Vec::new());
        let gpus = probe().check()?;
        let Some(info) = gpus.get(index) else {
            return Err(KernelError::device(format!("GPU {index} is out of range: {} are visible", gpus.len())));
        };
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(g) = open.iter().find(|g| g.info.index == index) {
            return Ok(g.clone());
        }
        let gpu = Arc::new(Gpu::new(info.clone())?);
        open.push(gpu.clone());
        Ok(gpu)
    }

    fn new(info: GpuInfo) -> Result<Gpu> {
        use sys::CUdevice_attribute_enum as A;
        if info.capability < LEAST_CAPABILITY {
            let (major, minor) = LEAST_CAPABILITY;
            return Err(KernelError::device(format!(
                "{} has compute capability {}.{}; oflow's kernels need {major}.{minor}",
                info.name, info.capability.0, info.capability.1
            )));
        }
        let failed = |e| driver_error("opening a GPU", e);
        let device = result::device::get(info.index as i32).map_err(failed)?;
        // SAFETY: a device handle of this driver, which the probe has initialised.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(failed)?;
        // SAFETY: as above.
        let attribute = |a| unsafe { result::device::get_attribute(device, a) }.map_err(failed);
        Ok(Gpu {
            multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
            shared_memory: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32,
            programs: Programs::new(info.capability),
            blas: OnceLock::new(),
            fft: Plans::default(),
            solver: OnceLock::new(),
            dnn: OnceLock::new(),
            info,
            context,
        })
    }

    /// Makes the GPU's context current on the calling thread. Call it before any other call of the driver.
    pub fn bind(&self) -> Result<()> {
        if BOUND.get() == Some(self.info.index) {
            return Ok(());
        }
        // SAFETY: a context that is never released.
        unsafe { result::ctx::set_current(self.context) }.map_err(|e| driver_error("cuCtxSetCurrent", e))?;
        BOUND.set(Some(self.info.index));
        Ok(())
    }

    /// cuBLASLt on this GPU, opened at its first use.
    pub(super) fn blas(&self) -> Result<&Blas> {
        self.bind()?;
        self.blas.get_or_init(Blas::new).as_ref().map_err(Clone::clone)
    }

    /// cuSOLVER on this GPU, opened at its first use.
    pub(super) fn solver(&self) -> Result<&Solver> {
        self.bind()?;
        self.solver.get_or_init(Solver::new).as_ref().map_err(Clone::clone)
    }

    /// cuDNN on this GPU, opened at its first use.
    pub(super) fn dnn(&self) -> Result<&Dnn> {
        self.bind()?;
        self.dnn.get_or_init(Dnn::new).as_ref().map_err(Clone::clone)
    }

    /// Returns the properties of the GPU.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }
    /// Returns the UUID of the GPU, the same in every process.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let failed = |e| driver_error("cuDeviceGetUuid", e);
        let device = result::device::get(self.info.index as i32).map_err(failed)?;
        Ok(result::device::get_uuid(device).map_err(failed)?.bytes.map(|b| b as u8))
    }
    /// Returns the number of multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }
    /// Returns the largest shared memory of a block, in bytes.
    pub fn shared_memory(&self) -> u32 {
        self.shared_memory
    }
    /// Returns the free and the total memory in bytes.
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        self.bind()?;
        result::mem_get_info().map_err(|e| driver_error("cuMemGetInfo", e))
    }
}
