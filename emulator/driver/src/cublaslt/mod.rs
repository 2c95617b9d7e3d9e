//! libcublasLt: descriptors here, the check and the run of a product in `matmul.rs`, its arithmetic in `gemm.rs`.

mod gemm;
mod matmul;

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

use crate::driver::{Table, current, lock};

pub const SUCCESS: i32 = 0;
pub const NOT_INITIALIZED: i32 = 1;
pub const INVALID_VALUE: i32 = 7;
pub const EXECUTION_FAILED: i32 = 13;
pub const NOT_SUPPORTED: i32 = 15;

/// Result of a function that may fail with a cublasStatus_t.
type Outcome<T = ()> = Result<T, i32>;

fn status(outcome: Outcome) -> i32 {
    outcome.err().unwrap_or(SUCCESS)
}

/// Attributes of a product, as cublasLtMatmulDesc_t has them.
#[derive(Clone, Copy)]
pub struct Desc {
    pub compute: i32,
    pub scale: i32,
    pub pointer_mode: i32,
    pub transposed_a: i32,
    pub transposed_b: i32,
    pub epilogue: i32,
    pub bias: usize,
    pub bias_stride: i64,
    /// -1: that of D.
    pub bias_type: i32,
    pub aux: usize,
    pub aux_ld: i64,
    pub aux_stride: i64,
}

/// Attributes of a matrix, as cublasLtMatrixLayout_t has them.
#[derive(Clone, Copy)]
pub struct MatrixLayout {
    pub dtype: i32,
    /// 0 columns, 1 rows are contiguous.
    pub order: i32,
    pub rows: u64,
    pub cols: u64,
    pub ld: i64,
    pub batches: i32,
    pub stride: i64,
}

static HANDLES: Table<()> = Table::new();
static DESCS: Table<Mutex<Desc>> = Table::new();
static LAYOUTS: Table<Mutex<MatrixLayout>> = Table::new();
/// A preference is how much workspace there may be.
static PREFERENCES: Table<Mutex<usize>> = Table::new();

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, so valid by contract.
    unsafe { to.write(value) };
    Ok(())
}

/// An attribute's value from the caller's buffer, which must have just its size.
///
/// # Safety
/// `from` is null or has `size` bytes.
unsafe fn take<T: Copy>(from: *const c_void, size: usize) -> Outcome<T> {
    if from.is_null() || size != size_of::<T>() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, of that size; perhaps unaligned.
    Ok(unsafe { from.cast::<T>().read_unaligned() })
}

fn find<T>(table: &Table<T>, handle: usize) -> Outcome<Arc<T>> {
    table.get(handle).ok_or(INVALID_VALUE)
}

fn copy_of<T: Copy>(table: &Table<Mutex<T>>, handle: usize) -> Outcome<T> {
    find(table, handle).map(|value| *lock(&value))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtCreate(to: *mut usize) -> i32 {
    if current().is_err() {
        return NOT_INITIALIZED;
    }
    // SAFETY: the caller gives a place for the result.
    status(unsafe { put(to, HANDLES.insert(())) })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtDestroy(handle: usize) -> i32 {
    if HANDLES.remove(handle).is_some() { SUCCESS } else { NOT_INITIALIZED }
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    130_000
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetCudartVersion() -> usize {
    13_000
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusName(code: i32) -> *const c_char {
    match code {
        SUCCESS => c"CUBLAS_STATUS_SUCCESS",
        NOT_INITIALIZED => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        INVALID_VALUE => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        EXECUTION_FAILED => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        NOT_SUPPORTED => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"unknown status",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusString(code: i32) -> *const c_char {
    match code {
        SUCCESS => c"success",
        NOT_INITIALIZED => c"the library was not initialized",
        INVALID_VALUE => c"an unsupported value or parameter was passed to the function",
        EXECUTION_FAILED => c"the GPU program failed to execute",
        NOT_SUPPORTED => c"the functionality requested is not supported",
        _ => return cublasLtGetStatusName(code),
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescCreate(to: *mut usize, compute: i32, scale: i32) -> i32 {
    let desc = Desc {
        compute,
        scale,
        pointer_mode: 0,
        transposed_a: 0,
        transposed_b: 0,
        epilogue: 1,
        bias: 0,
        bias_stride: 0,
        bias_type: -1,
        aux: 0,
        aux_ld: 0,
        aux_stride: 0,
    };
    // SAFETY: the caller gives a place for the result.
    status(unsafe { put(to, DESCS.insert(Mutex::new(desc))) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    handle: usize,
    attribute: c_int,
    from: *const c_void,
    size: usize,
) -> i32 {
    let set = || -> Outcome {
        let shared = find(&DESCS, handle)?;
        let mut desc = lock(&shared);
        // SAFETY: the caller gives `size` bytes.
        unsafe {
            match attribute {
                0 => desc.compute = take(from, size)?,
                1 => desc.scale = take(from, size)?,
                2 => desc.pointer_mode = take(from, size)?,
                3 => desc.transposed_a = take(from, size)?,
                4 => desc.transposed_b = take(from, size)?,
                7 => desc.epilogue = take(from, size)?,
                8 => desc.bias = take(from, size)?,
                10 => desc.bias_stride = take(from, size)?,
                11 => desc.aux = take(from, size)?,
                12 => desc.aux_ld = take(from, size)?,
                13 => desc.aux_stride = take(from, size)?,
                15 | 25 => drop(take::<u8>(from, 1)),
                26 => desc.bias_type = take(from, size)?,
                _ => return Err(NOT_SUPPORTED),
            }
        }
        Ok(())
    };
    status(set())
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulDescDestroy(handle: usize) -> i32 {
    status(DESCS.remove(handle).map(|_| ()).ok_or(INVALID_VALUE))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutCreate(to: *mut usize, dtype: i32, rows: u64, cols: u64, ld: i64) -> i32 {
    let layout = MatrixLayout { dtype, order: 0, rows, cols, ld, batches: 1, stride: 0 };
    // SAFETY: the caller gives a place for the result.
    status(unsafe { put(to, LAYOUTS.insert(Mutex::new(layout))) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    handle: usize,
    attribute: c_int,
    from: *const c_void,
    size: usize,
) -> i32 {
    let set = || -> Outcome {
        let shared = find(&LAYOUTS, handle)?;
        let mut layout = lock(&shared);
        // SAFETY: the caller gives `size` bytes.
        unsafe {
            match attribute {
                0 => layout.dtype = take(from, size)?,
                1 => layout.order = take(from, size)?,
                2 => layout.rows = take(from, size)?,
                3 => layout.cols = take(from, size)?,
                4 => layout.ld = take(from, size)?,
                5 => layout.batches = take(from, size)?,
                6 => layout.stride = take(from, size)?,
                _ => return Err(NOT_SUPPORTED),
            }
        }
        Ok(())
    };
    status(set())
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatrixLayoutDestroy(handle: usize) -> i32 {
    status(LAYOUTS.remove(handle).map(|_| ()).ok_or(INVALID_VALUE))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceCreate(to: *mut usize) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(unsafe { put(to, PREFERENCES.insert(Mutex::new(0))) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    handle: usize,
    attribute: c_int,
    from: *const c_void,
    size: usize,
) -> i32 {
    let set = || -> Outcome {
        let preference = find(&PREFERENCES, handle)?;
        match attribute {
            // SAFETY: the caller gives `size` bytes.
            1 => *lock(&preference) = unsafe { take(from, size)? },
            0..=15 => {}
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    };
    status(set())
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulPreferenceDestroy(handle: usize) -> i32 {
    status(PREFERENCES.remove(handle).map(|_| ()).ok_or(INVALID_VALUE))
}
