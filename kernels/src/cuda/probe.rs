//! Finds the GPUs and the CUDA libraries of this machine. Ask here before any call of a CUDA library: `cudarc` panics at the
//! first use of a missing library.

use crate::cuda::driver_error;
use crate::cuda::libraries::{LIBRARIES, Library, OPTIONAL, open_unfound};
use crate::cuda::{cudnn, cusolver};
use crate::{KernelError, Result};
use cudarc::{cublaslt, cufft, driver, nccl, nvrtc};
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A GPU of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Index among the visible GPUs.
    pub index: usize,
    /// Name, such as `NVIDIA H200`.
    pub name: String,
    /// Compute capability: major and minor.
    pub capability: (i32, i32),
    /// Memory in bytes.
    pub memory: usize,
}

/// The GPUs and libraries found. A library is its version, or the reason why it cannot be used.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The driver: the newest CUDA version that it supports.
    pub driver: Result<String, String>,
    /// The GPUs, or the reason why there are none.
    pub gpus: Result<Vec<GpuInfo>, String>,
    /// NVRTC, the run-time compiler.
    pub nvrtc: Result<String, String>,
    /// cuBLASLt, for matrix products.
    pub cublaslt: Result<String, String>,
    /// NCCL, for collectives.
    pub nccl: Result<String, String>,
}

/// Lowest compute capability that the kernels support (they use bf16 arithmetic and asynchronous copies).
pub const LEAST_CAPABILITY: (i32, i32) = (8, 0);

impl Probe {
    /// Returns an error with help if something is missing for computing on a GPU.
    pub fn check(&self) -> Result<&[GpuInfo]> {
        let missing = |what: &str, why: &str| KernelError::device(format!("{what}: {why}"));
        self.driver.as_ref().map_err(|e| missing("no CUDA driver", e))?;
        let gpus = self.gpus.as_ref().map_err(|e| missing("no GPU", e))?;
        self.nvrtc.as_ref().map_err(|e| missing("no CUDA compiler (NVRTC)", e))?;
        self.cublaslt.as_ref().map_err(|e| missing("no cuBLASLt", e))?;
        Ok(gpus)
    }
}

/// Returns the GPUs and libraries of this machine. They are looked for once per process.
pub fn probe() -> &'static Probe {
    static FOUND: OnceLock<Probe> = OnceLock::new();
    FOUND.get_or_init(look)
}

/// Why a library is absent.
fn absent(name: &str, unusable: &[(Library, PathBuf)]) -> String {
    match unusable.iter().find(|(l, _)| l.name == name) {
        None => format!("{name} is not on the library search path"),
        Some((_, file)) => format!(
            "{name} is not on the library search path, but {} is there: start the program with oflaunch, or put a link \
             named {name} to it into a folder of LD_LIBRARY_PATH",
            file.display()
        ),
    }
}

/// Libraries that only some ops need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optional {
    /// cuFFT, for Fourier transforms.
    Cufft,
    /// cuSOLVER, for linear algebra.
    Cusolver,
    /// cuDNN, for convolutions.
    Cudnn,
}

/// Returns the version of a library that only some ops need, or the reason why it cannot be used. It is looked for once per process.
pub fn optional(which: Optional) -> &'static Result<String, String> {
    static FOUND: [OnceLock<Result<String, String>>; 3] = [const { OnceLock::new() }; 3];
    FOUND[which as usize].get_or_init(|| {
        let library = OPTIONAL[which as usize];
        let unusable = open_unfound(&[library]);
        if !library.is_found() {
            return Err(absent(library.name, &unusable));
        }
        match which {
            Optional::Cufft => cufft_version(),
            Optional::Cusolver => cusolver::version(),
            Optional::Cudnn => cudnn::version(),
        }
    })
}

fn look() -> Probe {
    let unusable = open_unfound(&LIBRARIES);
    macro_rules! library {
        ($sys:path, $file:literal, $needed:expr) => {{
            use $sys as sys;
            // SAFETY: only tries to open a library by its names; the second call comes only if that succeeds, and looks for
            // symbols without calling them.
            let lacking = unsafe {
                match sys::is_culib_present() {
                    false => None,
                    true => Some($needed.into_iter().find(|s| sys::culib().get::<*const ()>(s.as_bytes()).is_err())),
                }
            };
            match lacking {
                None => Err(absent($file, &unusable)),
                Some(Some(symbol)) => Err(format!("{} is too old: it lacks {symbol}", $file)),
                Some(None) => Ok(()),
            }
        }};
    }
    // Beside these only functions are called that were there long before.
    let driver =
        library!(driver::sys, "libcuda.so", ["cuStreamCreateWithPriority", "cuModuleLoadData", "cuLaunchKernel"]);
    let nvrtc = library!(nvrtc::sys, "libnvrtc.so", ["nvrtcGetCUBIN", "nvrtcGetCUBINSize"]);
    let cublaslt = library!(cublaslt::sys, "libcublasLt.so", ["cublasLtGetVersion", "cublasLtMatmul"]);
    let nccl = library!(nccl::sys, "libnccl.so", ["ncclGetVersion", "ncclCommInitRankConfig", "ncclCommFinalize"]);
    Probe {
        gpus: match &driver {
            Err(_) => Err("the driver is missing".to_string()),
            Ok(()) => gpus().map_err(|e| e.0),
        },
        driver: driver.and_then(|()| driver_version()),
        nvrtc: nvrtc.and_then(|()| nvrtc_version()),
        cublaslt: cublaslt.map(|()| cublaslt_version()),
        nccl: nccl.and_then(|()| nccl_version()),
    }
}

fn driver_version() -> Result<String, String> {
    let mut version: c_int = 0;
    // SAFETY: writes one int; the library is there. Needs no initialisation.
    match unsafe { driver::sys::cuDriverGetVersion(&mut version) }.result() {
        Ok(()) => Ok(format!("CUDA {}.{}", version / 1000, version % 1000 / 10)),
        Err(e) => Err(driver_error("cuDriverGetVersion", e).0),
    }
}

fn gpus() -> Result<Vec<GpuInfo>> {
    driver::result::init().map_err(|e| driver_error("cuInit", e))?;
    let count = driver::result::device::get_count().map_err(|e| driver_error("cuDeviceGetCount", e))?;
    if count == 0 {
        return Err(KernelError::device("the driver sees no GPU"));
    }
    (0..count).map(info).collect()
}

fn info(index: c_int) -> Result<GpuInfo> {
    use driver::sys::CUdevice_attribute_enum as A;
    let failed = |e| driver_error("reading the properties of a GPU", e);
    let device = driver::result::device::get(index).map_err(failed)?;
    // SAFETY: a device handle of this driver.
    let attribute = |a| unsafe { driver::result::device::get_attribute(device, a) }.map_err(failed);
    Ok(GpuInfo {
        index: index as usize,
        name: driver::result::device::get_name(device).map_err(failed)?,
        capability: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        // SAFETY: a device handle of this driver.
        memory: unsafe { driver::result::device::total_mem(device) }.map_err(failed)?,
    })
}

fn nvrtc_version() -> Result<String, String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two ints; the library is there.
    match unsafe { nvrtc::sys::nvrtcVersion(&mut major, &mut minor) } {
        nvrtc::sys::nvrtcResult::NVRTC_SUCCESS => Ok(format!("{major}.{minor}")),
        e => Err(format!("nvrtcVersion: {e:?}")),
    }
}

fn cublaslt_version() -> String {
    // SAFETY: takes and touches nothing; the library is there.
    let v = unsafe { cublaslt::sys::cublasLtGetVersion() };
    // 120304 is 12.3.4, as is 13_01_02 = 130102.
    format!("{}.{}.{}", v / 10000, v / 100 % 100, v % 100)
}

fn nccl_version() -> Result<String, String> {
    let mut v: c_int = 0;
    // SAFETY: writes one int; the library is there.
    match unsafe { nccl::sys::ncclGetVersion(&mut v) } {
        nccl::sys::ncclResult_t::ncclSuccess => Ok(format!("{}.{}.{}", v / 10000, v / 100 % 100, v % 100)),
        e => Err(format!("ncclGetVersion: {e:?}")),
    }
}

fn cufft_version() -> Result<String, String> {
    let mut v: c_int = 0;
    // SAFETY: writes one int; the library is there.
    match unsafe { cufft::sys::cufftGetVersion(&mut v) } {
        // 12104 is 12.1.4.
        cufft::sys::cufftResult::CUFFT_SUCCESS => Ok(format!("{}.{}.{}", v / 1000, v / 100 % 10, v % 100)),
        e => Err(format!("cufftGetVersion: {e:?}")),
    }
}
