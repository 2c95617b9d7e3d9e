//! libnvrtc: programs, options, logs. `compile.rs` has the host compiler, `kernels.rs` finds kernels in a program's text.

mod cache;
mod compile;
mod kernels;

use std::ffi::{CStr, c_char, c_int};
use std::sync::Mutex;

use crate::driver::{Table, lock, module};

pub use compile::version;

const SUCCESS: i32 = 0;
const INVALID_INPUT: i32 = 3;
const INVALID_PROGRAM: i32 = 4;
const INVALID_OPTION: i32 = 5;
const COMPILATION: i32 = 6;
const BUILTIN_OPERATION_FAILURE: i32 = 7;
const NAME_EXPRESSION_NOT_VALID: i32 = 10;

/// The compute capabilities that may be asked for; only `sm_90` runs on the fake GPUs.
const ARCHS: [i32; 9] = [75, 80, 86, 87, 89, 90, 100, 110, 120];

#[derive(Default)]
struct Result_ {
    log: String,
    /// The whole image, for the architecture of the options, and whether that was a real one (`sm_`).
    image: Vec<u8>,
    real: bool,
}

struct Program {
    unit: compile::Unit,
    result: Mutex<Result_>,
}

static PROGRAMS: Table<Program> = Table::new();

/// # Safety
/// `text` is null or a C string.
unsafe fn string(text: *const c_char) -> Option<String> {
    // SAFETY: not null, so a C string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> i32 {
    if major.is_null() || minor.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: places for the results.
    unsafe {
        major.write(13);
        minor.write(0);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> i32 {
    if count.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: a place for the result.
    unsafe { count.write(ARCHS.len() as c_int) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetSupportedArchs(archs: *mut c_int) -> i32 {
    if archs.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: room for as many as nvrtcGetNumSupportedArchs says.
    unsafe { std::ptr::copy_nonoverlapping(ARCHS.as_ptr(), archs, ARCHS.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCreateProgram(
    to: *mut usize,
    source: *const c_char,
    name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> i32 {
    // SAFETY: C strings or null, and arrays of `count` of them.
    let (source, name, headers) = unsafe {
        let mut all = Vec::new();
        for at in 0..count.max(0) as usize {
            if headers.is_null() || names.is_null() {
                return INVALID_INPUT;
            }
            match (string(*names.add(at)), string(*headers.add(at))) {
                (Some(name), Some(text)) => all.push((name, text)),
                _ => return INVALID_INPUT,
            }
        }
        (string(source), string(name).unwrap_or_else(|| "default_program".into()), all)
    };
    let Some(source) = source.filter(|_| !to.is_null()) else { return INVALID_INPUT };
    let program = Program { unit: compile::Unit { name, source, headers }, result: Mutex::default() };
    // SAFETY: a place for the result.
    unsafe { to.write(PROGRAMS.insert(program)) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcDestroyProgram(program: *mut usize) -> i32 {
    // SAFETY: null or a place with a handle.
    match (!program.is_null()).then(|| unsafe { program.replace(0) }).and_then(|handle| PROGRAMS.remove(handle)) {
        Some(_) => SUCCESS,
        None => INVALID_PROGRAM,
    }
}

/// `sm_90`, `sm_90a`, `compute_90`: whether real, and the number.
fn parse_arch(text: &str) -> Option<(bool, u32)> {
    let (real, digits) = match text.strip_prefix("sm_") {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix("compute_")?),
    };
    let number: u32 = digits.trim_end_matches(['a', 'f']).parse().ok()?;
    ARCHS.contains(&(number as i32)).then_some((real, number))
}

/// The options that mean something here: macros, include folders, the architecture. Others are ignored.
fn parse_options(options: &[String]) -> Option<(Vec<String>, bool, u32)> {
    let (mut kept, mut real, mut arch) = (Vec::new(), false, 75);
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let mut value = |names: &[&str]| -> Option<String> {
            for name in names {
                if option == name {
                    return rest.next().cloned();
                }
                if let Some(value) = option.strip_prefix(name) {
                    return match value.strip_prefix('=') {
                        Some(value) => Some(value.into()),
                        None if name.len() == 2 => Some(value.into()),
                        None => continue,
                    };
                }
            }
            None
        };
        if let Some(text) = value(&["--gpu-architecture", "-arch"]) {
            (real, arch) = parse_arch(&text)?;
        } else if let Some(text) = value(&["--define-macro", "-D"]) {
            kept.push(format!("-D{text}"));
        } else if let Some(text) = value(&["--undefine-macro", "-U"]) {
            kept.push(format!("-U{text}"));
        } else if let Some(text) = value(&["--include-path", "-I"]) {
            kept.push(format!("-I{text}"));
        } else if !option.starts_with('-') {
            return None;
        }
    }
    Some((kept, real, arch))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCompileProgram(program: usize, count: c_int, options: *const *const c_char) -> i32 {
    let Some(program) = PROGRAMS.get(program) else { return INVALID_PROGRAM };
    // SAFETY: an array of `count` C strings.
    let options: Option<Vec<String>> =
        (0..count.max(0) as usize).map(|at| unsafe { string(*options.add(at)) }).collect();
    let Some((options, real, arch)) = options.as_deref().and_then(parse_options) else { return INVALID_OPTION };
    let mut result = lock(&program.result);
    *result = Result_::default();
    match compile::compile(&program.unit, &options) {
        Ok((object, log)) => {
            *result = Result_ { log, image: module::image(arch, &object), real };
            SUCCESS
        }
        Err(log) => {
            result.log = log;
            COMPILATION
        }
    }
}

/// # Safety
/// `to` is null or has room for `bytes`.
unsafe fn give(to: *mut u8, bytes: &[u8]) -> i32 {
    if to.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: the caller asked for the size before.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLogSize(program: usize, size: *mut usize) -> i32 {
    let Some(program) = PROGRAMS.get(program) else { return INVALID_PROGRAM };
    // SAFETY: the caller gives a place for the result.
    unsafe { give(size.cast(), &(lock(&program.result).log.len() + 1).to_ne_bytes()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLog(program: usize, log: *mut u8) -> i32 {
    let Some(program) = PROGRAMS.get(program) else { return INVALID_PROGRAM };
    let mut text = lock(&program.result).log.clone().into_bytes();
    text.push(0);
    // SAFETY: the caller gives as many bytes as the size says.
    unsafe { give(log, &text) }
}

/// The image if it is of the kind asked for: CUBINs exist for real architectures only.
fn image_of(program: usize, real: bool) -> Result<Vec<u8>, i32> {
    let program = PROGRAMS.get(program).ok_or(INVALID_PROGRAM)?;
    let result = lock(&program.result);
    if result.image.is_empty() {
        Err(INVALID_PROGRAM)
    } else {
        Ok(if real && !result.real { Vec::new() } else { result.image.clone() })
    }
}

macro_rules! images {
    ($($size:ident, $get:ident: $real:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $size(program: usize, size: *mut usize) -> i32 {
            match image_of(program, $real) {
                // SAFETY: the caller gives a place for the result.
                Ok(image) => unsafe { give(size.cast(), &image.len().to_ne_bytes()) },
                Err(code) => code,
            }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $get(program: usize, to: *mut u8) -> i32 {
            match image_of(program, $real) {
                // SAFETY: the caller gives as many bytes as the size says.
                Ok(image) if !image.is_empty() => unsafe { give(to, &image) },
                Ok(_) => INVALID_PROGRAM,
                Err(code) => code,
            }
        }
    )*};
}
images! {
    nvrtcGetCUBINSize, nvrtcGetCUBIN: true;
    nvrtcGetPTXSize, nvrtcGetPTX: false;
}

/// Kernels are found by their `extern "C"` names; name expressions are for templates, which the emulator does not know.
#[unsafe(no_mangle)]
extern "C" fn nvrtcAddNameExpression(_program: usize, _name: *const c_char) -> i32 {
    NAME_EXPRESSION_NOT_VALID
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetLoweredName(_program: usize, _name: *const c_char, _lowered: *mut *const c_char) -> i32 {
    NAME_EXPRESSION_NOT_VALID
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetErrorString(code: i32) -> *const c_char {
    let text = match code {
        SUCCESS => c"NVRTC_SUCCESS",
        1 => c"NVRTC_ERROR_OUT_OF_MEMORY",
        2 => c"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        INVALID_INPUT => c"NVRTC_ERROR_INVALID_INPUT",
        INVALID_PROGRAM => c"NVRTC_ERROR_INVALID_PROGRAM",
        INVALID_OPTION => c"NVRTC_ERROR_INVALID_OPTION",
        COMPILATION => c"NVRTC_ERROR_COMPILATION",
        BUILTIN_OPERATION_FAILURE => c"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        NAME_EXPRESSION_NOT_VALID => c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        _ => c"NVRTC_ERROR unknown",
    };
    text.as_ptr()
}
