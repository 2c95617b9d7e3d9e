//! What the tests of the emulator share: contexts, streams, memory and kernels through cudarc's raw functions.
#![allow(dead_code)]

use std::ffi::{CString, c_void};

use cudarc::driver::sys;
use cudarc::driver::sys::CUresult;
use cudarc::nvrtc::sys as nvrtc;

pub const OK: CUresult = CUresult::CUDA_SUCCESS;

/// Activates the emulator; false, with the reason printed, where it cannot run.
pub fn emulated() -> bool {
    // SAFETY: every test of a process sets the same, before anything reads it.
    unsafe { std::env::set_var("OFLOW_EMULATOR_GPUS", "4") };
    match oflow_emulator::activate() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

/// Makes the context of a GPU current on this thread.
pub fn enter(ordinal: i32) -> sys::CUcontext {
    unsafe {
        assert_eq!(sys::cuInit(0), OK);
        let mut device = 0;
        assert_eq!(sys::cuDeviceGet(&mut device, ordinal), OK);
        let mut context = std::ptr::null_mut();
        assert_eq!(sys::cuDevicePrimaryCtxRetain(&mut context, device), OK);
        assert_eq!(sys::cuCtxSetCurrent(context), OK);
        context
    }
}

pub fn stream() -> sys::CUstream {
    let mut stream = std::ptr::null_mut();
    unsafe { assert_eq!(sys::cuStreamCreate(&mut stream, 1), OK) };
    stream
}

pub fn event() -> sys::CUevent {
    let mut event = std::ptr::null_mut();
    unsafe { assert_eq!(sys::cuEventCreate(&mut event, 0), OK) };
    event
}

pub fn alloc(bytes: usize) -> sys::CUdeviceptr {
    let mut at = 0;
    unsafe { assert_eq!(sys::cuMemAlloc_v2(&mut at, bytes), OK) };
    at
}

/// Values on the device.
pub fn upload<T: Copy>(values: &[T]) -> sys::CUdeviceptr {
    let at = alloc(size_of_val(values).max(1));
    unsafe { assert_eq!(sys::cuMemcpyHtoD_v2(at, values.as_ptr().cast(), size_of_val(values)), OK) };
    at
}

pub fn download<T: Copy + Default>(at: sys::CUdeviceptr, count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    unsafe {
        assert_eq!(sys::cuCtxSynchronize(), OK);
        assert_eq!(sys::cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), at, count * size_of::<T>()), OK);
    }
    values
}

/// Compiles a program; the image, or the log.
pub fn compile(source: &str, headers: &[(&str, &str)], options: &[&str]) -> Result<Vec<u8>, String> {
    let c = |text: &str| CString::new(text).unwrap();
    let (source, name) = (c(source), c("test.cu"));
    let names: Vec<_> = headers.iter().map(|h| c(h.0)).collect();
    let texts: Vec<_> = headers.iter().map(|h| c(h.1)).collect();
    let names: Vec<_> = names.iter().map(|x| x.as_ptr()).collect();
    let texts: Vec<_> = texts.iter().map(|x| x.as_ptr()).collect();
    let options: Vec<_> = ["--gpu-architecture=sm_90"].iter().chain(options).map(|o| c(o)).collect();
    let options: Vec<_> = options.iter().map(|x| x.as_ptr()).collect();
    unsafe {
        let mut program = std::ptr::null_mut();
        let created = nvrtc::nvrtcCreateProgram(
            &mut program,
            source.as_ptr(),
            name.as_ptr(),
            headers.len() as i32,
            texts.as_ptr(),
            names.as_ptr(),
        );
        assert_eq!(created, nvrtc::nvrtcResult::NVRTC_SUCCESS);
        let result = nvrtc::nvrtcCompileProgram(program, options.len() as i32, options.as_ptr());
        let mut size = 0;
        nvrtc::nvrtcGetProgramLogSize(program, &mut size);
        let mut log = vec![0u8; size];
        nvrtc::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
        log.pop();
        let log = String::from_utf8(log).unwrap();
        if result != nvrtc::nvrtcResult::NVRTC_SUCCESS {
            assert_eq!(result, nvrtc::nvrtcResult::NVRTC_ERROR_COMPILATION, "{log}");
            nvrtc::nvrtcDestroyProgram(&mut program);
            return Err(log);
        }
        nvrtc::nvrtcGetCUBINSize(program, &mut size);
        let mut image = vec![0u8; size];
        assert_eq!(nvrtc::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()), nvrtc::nvrtcResult::NVRTC_SUCCESS);
        nvrtc::nvrtcDestroyProgram(&mut program);
        Ok(image)
    }
}

/// A kernel of a program that compiles.
pub fn kernel(source: &str, name: &str) -> sys::CUfunction {
    let image = compile(source, &[], &[]).unwrap_or_else(|log| panic!("{log}"));
    function(&image, name)
}

pub fn function(image: &[u8], name: &str) -> sys::CUfunction {
    unsafe {
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        assert_eq!(sys::cuModuleLoadData(&mut module, image.as_ptr().cast()), OK);
        let name = CString::new(name).unwrap();
        assert_eq!(sys::cuModuleGetFunction(&mut function, module, name.as_ptr()), OK);
        function
    }
}

/// Launches along x.
pub fn launch(
    function: sys::CUfunction,
    grid: u32,
    block: u32,
    shared: u32,
    stream: sys::CUstream,
    params: &mut [*mut c_void],
) -> CUresult {
    let extra = std::ptr::null_mut();
    unsafe { sys::cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, params.as_mut_ptr(), extra) }
}

/// The address of an argument.
pub fn arg<T>(value: &mut T) -> *mut c_void {
    (value as *mut T).cast()
}
