//! CUresult: numbers, names and texts.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;

use super::lock;

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[allow(dead_code)] pub const $name: i32 = $value;)*
        const CODES: &[(i32, &CStr, &str)] = &[$(($value, match CStr::from_bytes_with_nul(
            concat!("CUDA_", codes!(@prefix $name), stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }, $text)),*];
    };
    (@prefix SUCCESS) => { "" };
    (@prefix $name:ident) => { "ERROR_" };
}
codes! {
    SUCCESS = 0, "no error";
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    DEINITIALIZED = 4, "driver shutting down";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_IMAGE = 200, "device kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid device context";
    NO_BINARY_FOR_GPU = 209, "no kernel image is available for execution on the device";
    INVALID_PTX = 218, "a PTX JIT compilation failed";
    INVALID_HANDLE = 400, "invalid resource handle";
    NOT_FOUND = 500, "named symbol not found";
    NOT_READY = 600, "device not ready";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    CONTEXT_IS_DESTROYED = 709, "context is destroyed";
    ASSERT = 710, "device-side assert triggered";
    MISALIGNED_ADDRESS = 716, "misaligned address";
    LAUNCH_FAILED = 719, "unspecified launch failure";
    NOT_SUPPORTED = 801, "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "operation failed due to a previous error during capture";
    STREAM_CAPTURE_UNMATCHED = 903, "stream capture is not in progress on this stream";
    STREAM_CAPTURE_ISOLATION = 905, "dependency created on uncaptured work in another stream";
    UNKNOWN = 999, "unknown error";
}

/// Failures inside the emulator, by code, with the terminating zero. Never removed: callers hold pointers.
static EXPLAINED: Mutex<BTreeMap<i32, &'static CStr>> = Mutex::new(BTreeMap::new());

/// From now on the text of `code` says this too.
pub fn explain(code: i32, text: &str) {
    let Some((_, _, meaning)) = CODES.iter().find(|entry| entry.0 == code) else { return };
    if let Ok(whole) = CString::new(format!("{meaning}; emulator: {text}").replace('\0', " ")) {
        lock(&EXPLAINED).insert(code, Box::leak(whole.into_boxed_c_str()));
    }
}

/// The name of a CUresult.
pub fn name(code: i32) -> &'static str {
    CODES.iter().find(|entry| entry.0 == code).and_then(|entry| entry.1.to_str().ok()).unwrap_or("unknown CUresult")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: i32, text: *mut *const c_char) -> i32 {
    let Some((_, name, _)) = CODES.iter().find(|entry| entry.0 == code) else { return INVALID_VALUE };
    // SAFETY: the caller gives a place for the result.
    super::status(unsafe { super::put(text, name.as_ptr()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: i32, text: *mut *const c_char) -> i32 {
    let Some((_, _, meaning)) = CODES.iter().find(|entry| entry.0 == code) else { return INVALID_VALUE };
    let mut explained = lock(&EXPLAINED);
    let whole = *explained
        .entry(code)
        .or_insert_with(|| Box::leak(CString::new(*meaning).unwrap_or_default().into_boxed_c_str()));
    // SAFETY: the caller gives a place for the result.
    super::status(unsafe { super::put(text, whole.as_ptr()) })
}
