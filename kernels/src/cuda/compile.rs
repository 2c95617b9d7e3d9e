//! Compiles sources to machine code with NVRTC, with a cache folder.

use super::probe::probe;
use crate::{KernelError, Result};
use cudarc::nvrtc::{result, sys};
use oflow_files::Access;
use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Headers that every program may include.
pub(super) const HEADERS: &[(&str, &str)] = &[
    ("prelude.cuh", include_str!("../../cuda/prelude.cuh")),
    ("elementwise.cuh", include_str!("../../cuda/elementwise.cuh")),
    ("special.cuh", include_str!("../../cuda/special.cuh")),
    ("complex.cuh", include_str!("../../cuda/complex.cuh")),
    ("pointwise.cuh", include_str!("../../cuda/pointwise.cuh")),
    ("rows.cuh", include_str!("../../cuda/rows.cuh")),
    ("many.cuh", include_str!("../../cuda/many.cuh")),
    ("vmath.cuh", include_str!("../../cuda/vmath.cuh")),
    ("oflow_tensor.h", oflow_op::TENSOR_HEADER),
];

/// Beside the architecture and the macros. The last: a lambda in a kernel belongs to the GPU (NVRTC 13.0 takes a generic one
/// for a function of the host otherwise).
const OPTIONS: [&str; 2] = ["--std=c++17", "--device-as-default-execution-space"];

/// A program as the compiler gets it.
pub(super) struct Unit<'a> {
    pub name: &'a str,
    pub text: &'a str,
    /// Macros, `NAME=value`.
    pub defines: Vec<String>,
    /// Architecture, such as `sm_90`.
    pub arch: String,
    /// Name of the GPU; code for an emulated GPU is cached separately.
    pub gpu: &'a str,
}

/// The machine code (a CUBIN), from the cache or compiled, and whether it had to be compiled.
///
/// Ranks need the same programs at the same time: the first compiles, in whichever process, the others wait and read.
///
/// # Errors
/// What the compiler says, with its lines.
pub(super) fn machine_code(unit: &Unit) -> Result<(Vec<u8>, bool)> {
    let Some(folder) = usable_cache() else { return Ok((compile(unit)?, true)) };
    let key = key(unit);
    let file = folder.join(format!("{}-{key:032x}.cubin", unit.name));
    if let Some(code) = read(&file) {
        return Ok((code, false));
    }
    let _turn = turn(folder, key, unit.name);
    if let Some(code) = read(&file) {
        return Ok((code, false));
    }
    let code = compile(unit)?;
    if let Err(e) = write(&file, &code) {
        // Without the cache everything still works, only slower next time.
        eprintln!("oflow: cannot keep compiled kernels in {}: {e}", file.display());
    }
    Ok((code, true))
}

/// Locks that keep two from compiling the same. Programs that share one wait for each other, which is rare and costs a compilation.
const TURNS: u128 = 64;

/// Waits for the others that compile a program of this key, and keeps them out while the file is open. Without locks (some file systems
/// have none) each compiles for itself.
fn turn(folder: &Path, key: u128, name: &str) -> Option<File> {
    let file = oflow_files::lock::open_lock(&folder.join(format!(".turn-{:02}", key % TURNS))).ok()?;
    let tell =
        |_: &str| eprintln!("oflow: waiting for another rank or process, which compiles {name}.cu for the same GPU");
    oflow_files::lock::wait_for(&file, tell).ok()?;
    Some(file)
}

/// Of all that the code depends on.
fn key(unit: &Unit) -> u128 {
    let version = probe().nvrtc.as_deref().unwrap_or("");
    let mut h = Fnv128::default();
    for part in [unit.text, &unit.arch, unit.gpu, version, env!("CARGO_PKG_VERSION")] {
        h.add(part);
    }
    OPTIONS.iter().for_each(|o| h.add(o));
    HEADERS.iter().for_each(|(name, text)| {
        h.add(name);
        h.add(text);
    });
    // In whichever order they were given.
    let mut defines: Vec<&String> = unit.defines.iter().collect();
    defines.sort_unstable();
    defines.into_iter().for_each(|d| h.add(d));
    h.0
}

/// FNV-1a: stable over builds and machines, which the standard library's hashers are not.
struct Fnv128(u128);

impl Default for Fnv128 {
    fn default() -> Self {
        Fnv128(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv128 {
    fn add(&mut self, text: &str) {
        for b in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

/// Returns the cache folder: `$OFLOW_KERNEL_CACHE`, or `oflow/kernels` in the user's cache folder. `None` if neither is known.
pub fn cache_dir() -> Option<&'static Path> {
    static DIR: OnceLock<Option<PathBuf>> = OnceLock::new();
    DIR.get_or_init(|| {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        var("OFLOW_KERNEL_CACHE").or_else(|| {
            var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|h| h.join(".cache"))).map(|d| d.join("oflow/kernels"))
        })
    })
    .as_deref()
}

/// The cache folder, made if it is not there, unless another user could replace what is in it, which is told once.
fn usable_cache() -> Option<&'static Path> {
    static USABLE: OnceLock<bool> = OnceLock::new();
    let folder = cache_dir()?;
    let usable = USABLE.get_or_init(|| match oflow_files::cache_folder(folder) {
        Ok(()) => true,
        Err(e) => {
            // Without the cache everything still works, only slower.
            eprintln!("oflow: compiled kernels are not kept: {e}");
            false
        }
    });
    usable.then_some(folder)
}

/// The code in a file, unless it was damaged or is another user's: the last 16 bytes are the sum of those before.
fn read(file: &Path) -> Option<Vec<u8>> {
    // In a sticky folder anybody may have made it.
    let mut bytes = oflow_files::checked_bytes(file, u64::MAX).ok()?;
    let at = bytes.len().checked_sub(16)?;
    let sum = u128::from_le_bytes(bytes[at..].try_into().ok()?);
    bytes.truncate(at);
    (checksum(&bytes) == sum).then_some(bytes)
}

/// Under another name first, so that a reader never sees half of it.
fn write(file: &Path, code: &[u8]) -> oflow_base::Result<()> {
    let sum = checksum(code).to_le_bytes();
    oflow_files::replace(file, Access::Private, &[code, &sum].concat())
}

fn checksum(bytes: &[u8]) -> u128 {
    let mut h = Fnv128::default();
    for b in bytes {
        h.0 = (h.0 ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    h.0
}

/// Frees the compiler's handle.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created in `compile`, destroyed once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

pub(super) fn compile(unit: &Unit) -> Result<Vec<u8>> {
    probe().nvrtc.as_ref().map_err(|e| KernelError::device(format!("no CUDA compiler (NVRTC): {e}")))?;
    let failed = |what: &str, status: &dyn std::fmt::Debug| {
        KernelError::device(format!("compiling {} {:?} for {}: {what}: {status:?}", unit.name, unit.defines, unit.arch))
    };
    let c = |s: &str| CString::new(s).map_err(|_| failed("a zero byte in the source", &()));
    let (text, name) = (c(unit.text)?, c(&format!("{}.cu", unit.name))?);
    let headers: Vec<(CString, CString)> = HEADERS.iter().map(|(n, t)| Ok((c(n)?, c(t)?))).collect::<Result<_>>()?;
    let names: Vec<_> = headers.iter().map(|h| h.0.as_ptr()).collect();
    let texts: Vec<_> = headers.iter().map(|h| h.1.as_ptr()).collect();
    let mut raw = std::ptr::null_mut();
    // SAFETY: NUL-terminated strings that outlive the call, as many texts as names.
    let status = unsafe {
        sys::nvrtcCreateProgram(
            &mut raw,
            text.as_ptr(),
            name.as_ptr(),
            headers.len() as i32,
            texts.as_ptr(),
            names.as_ptr(),
        )
    };
    status.result().map_err(|e| failed("nvrtcCreateProgram", &e))?;
    let program = Program(raw);
    let mut options = vec![format!("--gpu-architecture={}", unit.arch)];
    options.extend(OPTIONS.map(str::to_string));
    options.extend(unit.defines.iter().map(|d| format!("-D{d}")));
    // SAFETY: a live program.
    if let Err(e) = unsafe { result::compile_program(program.0, &options) } {
        return Err(failed(&log(&program), &e));
    }
    let mut size = 0;
    // SAFETY: a compiled program; writes one size.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) }.result().map_err(|e| failed("nvrtcGetCUBINSize", &e))?;
    let mut code = vec![0u8; size];
    // SAFETY: room for the size just asked for.
    let status = unsafe { sys::nvrtcGetCUBIN(program.0, code.as_mut_ptr().cast()) };
    status.result().map_err(|e| failed("nvrtcGetCUBIN", &e))?;
    Ok(code)
}

fn log(program: &Program) -> String {
    // SAFETY: a live program.
    match unsafe { result::get_program_log(program.0) } {
        Ok(bytes) => {
            let bytes: Vec<u8> = bytes.iter().map(|b| *b as u8).take_while(|b| *b != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Err(e) => format!("(no log: {e:?})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_could_have_put_there_is_not_read() {
        let folder = std::env::temp_dir().join(format!("oflow-kernels-{}", std::process::id()));
        let file = folder.join("a/relu.cubin");
        oflow_files::cache_folder(file.parent().unwrap()).unwrap();
        write(&file, b"code").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        assert_eq!(read(&file).unwrap(), b"code");
        for path in [&file, &folder] {
            let before = mode(path);
            fs::set_permissions(path, Permissions::from_mode(before | 0o022)).unwrap();
            assert_eq!(read(&file), None, "{}", path.display());
            fs::set_permissions(path, Permissions::from_mode(before)).unwrap();
        }
        fs::write(&file, b"damaged, and longer than a sum").unwrap();
        assert_eq!(read(&file), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
