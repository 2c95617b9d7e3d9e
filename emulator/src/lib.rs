//! Makes a process load the emulated CUDA (`emulator/driver`) where it would load CUDA, so that the code that ships runs
//! `Device::Cuda` on a machine without a GPU:
//!
//! ```no_run
//! if let Err(reason) = oflow_emulator::activate() {
//!     eprintln!("skipped: {reason}");
//!     return;
//! }
//! // cudarc's `dlopen("libcuda.so")` now finds the emulator.
//! ```
//!
//! How: tiny shared objects named `libcuda.so`, `libnvrtc.so`, … that depend on the emulator's are made next to the test's
//! binary and opened by path before anybody asks for them by name; the dynamic loader answers a later request by name with
//! the object that it has. A child process finds them in [`library_dir`] through `LD_LIBRARY_PATH` (give it
//! `OFLOW_KERNELS_AHEAD=0` and an `OFLOW_KERNEL_CACHE` of its own too).
//!
//! How many GPUs there are, how much memory, random delays: environment variables, see `emulator/driver/src/lib.rs`. Set
//! them before `activate`.
//!
//! The emulator is a shared object that exports the parts of libcuda, NVRTC, cuBLASLt, NCCL, cuFFT, cuSOLVER and cuDNN that oflow calls. A stream
//! is a thread, with random delays under `OFLOW_EMULATOR_DELAY_US`. The host cannot access device memory. A kernel is the
//! shipped `.cu` file compiled as C++; the threads of a block are fibers. `tests/cuda` runs every op, gradients, boxings
//! and training on `Device::Cuda` here, and on a real GPU with `OFLOW_TEST_GPU=1`.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The libraries that cudarc looks for first.
const NAMES: [&str; 7] =
    ["libcuda.so", "libnvrtc.so", "libcublasLt.so", "libnccl.so", "libcufft.so", "libcusolver.so", "libcudnn.so"];
const EMULATOR: &str = "liboflow_emulated_cuda.so";

/// Makes the emulated libraries the ones that this process loads. Call it before anything that may load CUDA's. The error
/// says why it cannot be done: no C++ compiler, or the emulator was not built.
pub fn activate() -> Result<(), String> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| {
        compiler_runs()?;
        let folder = library_dir()?;
        // A test needs few of all kernels, the others would be compiled beside it; and code of this GPU has no place in the
        // user's cache.
        // SAFETY: at the start of a test process; what reads the environment by then is Rust's own, which locks it.
        unsafe {
            std::env::set_var("OFLOW_KERNELS_AHEAD", "0");
            if std::env::var_os("OFLOW_KERNEL_CACHE").is_none() {
                std::env::set_var("OFLOW_KERNEL_CACHE", folder.join("kernels"));
            }
        }
        for name in NAMES {
            open(&folder.join(name))?;
        }
        Ok(())
    })
    .clone()
}

/// The folder with `libcuda.so` and the others, made if need be: `LD_LIBRARY_PATH` of a child that is to run under the
/// emulator.
pub fn library_dir() -> Result<PathBuf, String> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOLDER.get_or_init(|| make_shims(&emulator()?)).clone()
}

fn cxx() -> String {
    std::env::var("CXX").ok().filter(|cxx| !cxx.is_empty()).unwrap_or_else(|| "c++".into())
}

/// Whether there is a compiler of C++. The error says which one does not run.
pub fn compiler_runs() -> Result<(), String> {
    match Command::new(cxx()).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!("the CUDA emulator compiles kernels with a C++ compiler, and `{}` does not run", cxx())),
    }
}

/// The emulator's shared object: cargo puts it beside the test binary (`deps`) or a folder above.
fn emulator() -> Result<PathBuf, String> {
    let binary = std::env::current_exe().map_err(|e| format!("where is this binary? {e}"))?;
    let folders = binary.ancestors().skip(1).take(2);
    let candidates: Vec<PathBuf> =
        folders.flat_map(|folder| [folder.join(EMULATOR), folder.join("deps").join(EMULATOR)]).collect();
    // The newest: an old copy may lie in the one folder when cargo has built into the other.
    let newest = candidates.iter().filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path))).max();
    newest
        .map(|(_, path)| path.clone())
        .ok_or_else(|| format!("{EMULATOR} is not beside {}: cargo build -p oflow-emulated-cuda", binary.display()))
}

/// Compiles the shims for that emulator, unless they are there.
fn make_shims(emulator: &Path) -> Result<PathBuf, String> {
    let beside = emulator.parent().ok_or("the emulator lies in no folder")?;
    let folder = beside.join("oflow-emulator");
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    for name in NAMES {
        let shim = folder.join(name);
        if shim.exists() {
            continue;
        }
        // Made under another name and renamed: tests of several processes may be doing the same.
        let unfinished = folder.join(format!(".{name}-{}", std::process::id()));
        let output = Command::new(cxx())
            .args(["-x", "c", "/dev/null", "-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed"])
            .arg(format!("-Wl,-soname,{name}"))
            .arg("-Wl,-rpath,$ORIGIN/..")
            .arg("-Wl,--disable-new-dtags")
            .arg("-L")
            .arg(beside)
            .arg("-l:liboflow_emulated_cuda.so")
            .arg("-o")
            .arg(&unfinished)
            .output()
            .map_err(|e| format!("`{}` does not run: {e}", cxx()))?;
        if !output.status.success() {
            return Err(format!("cannot link {name}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        std::fs::rename(&unfinished, &shim).map_err(|e| format!("cannot name {}: {e}", shim.display()))?;
    }
    Ok(folder)
}

fn open(path: &Path) -> Result<(), String> {
    let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| "a path with a zero byte")?;
    // SAFETY: a library without initialisers but Rust's own; the name is a C string. It stays open for ever.
    if unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null() {
        // SAFETY: after a failed dlopen this is a C string, valid until the next call on this thread.
        let text = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(format!("cannot load {}: {text}", path.display()));
    }
    Ok(())
}
