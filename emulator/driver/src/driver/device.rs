//! GPUs and contexts: an H100's numbers, and which context is current on which thread.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering::SeqCst;

use super::codes::*;
use super::*;
use crate::nvrtc;

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> i32 {
    if flags != 0 {
        return INVALID_VALUE;
    }
    if gpus().is_empty() {
        return NO_DEVICE;
    }
    INITIALISED.store(true, SeqCst);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(unsafe { put(version, 13000) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(initialised().and_then(|()| unsafe { put(count, gpus().len() as c_int) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(gpu(ordinal).and_then(|gpu| unsafe { put(device, gpu.ordinal as c_int) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> i32 {
    status(gpu(device).and_then(|_| {
        // With the version: who keeps compiled kernels by the GPU's name compiles anew for another emulator.
        let text = format!("Emulated GPU (oflow, {:08x})\0", nvrtc::version());
        let room = usize::try_from(len).ok().filter(|&len| len > 0 && !name.is_null()).ok_or(INVALID_VALUE)?;
        let kept = room.min(text.len());
        // SAFETY: the caller gives `len` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, kept);
            name.add(kept - 1).write(0);
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> i32 {
    status(gpu(device).and_then(|gpu| {
        let mut bytes = *b"oflow emulated 0";
        bytes[15] = gpu.ordinal as u8;
        // SAFETY: the caller gives a place for the result.
        unsafe { put(uuid, bytes) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { cuDeviceGetUuid_v2(uuid, device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(gpu(device).and_then(|gpu| unsafe { put(bytes, lock(&gpu.heap).capacity()) }))
}

/// Shared memory that a block may have without asking, and at most.
pub const SHARED_DEFAULT: u32 = 48 << 10;
pub const SHARED_MOST: u32 = 227 << 10;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> i32 {
    status(gpu(device).and_then(|gpu| {
        let answer = match attribute {
            1..=3 => 1024,              // threads in a block, along x, y
            4 => 64,                    // along z
            5 => 0x7fff_ffff,           // blocks along x
            6 | 7 => 65535,             // along y, z
            8 => SHARED_DEFAULT as i32, // shared memory of a block
            9 => 65536,                 // constant memory
            10 => 32,                   // lanes of a warp
            11 => 0x7fff_ffff,          // pitch
            12 | 82 => 65536,           // registers of a block, of an SM
            13 => 1_980_000,            // kHz
            14 => 512,
            16 => 132,              // SMs
            19 | 31 | 41 | 78 => 1, // mapped host memory, concurrent kernels, unified addresses, priorities
            33 => 1 + gpu.ordinal as i32,
            36 => 2_619_000,
            37 => 5120,
            38 => 50 << 20, // L2
            39 => 2048,     // threads of an SM
            40 => 3,        // copy engines
            75 => 9,
            76 => 0,
            81 => 228 << 10,          // shared memory of an SM
            97 => SHARED_MOST as i32, // of a block that asks
            95 | 102 | 115 => 0,      // cooperative launch, virtual memory, memory pools
            106 => 32,                // blocks of an SM
            111 => 1 << 10,           // shared memory that the system keeps of each block
            0 | 163.. | i32::MIN..0 => return Err(INVALID_VALUE),
            _ => 0,
        };
        // SAFETY: the caller gives a place for the result.
        unsafe { put(value, answer) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(gpu(device).and(gpu(peer)).and_then(|_| unsafe { put(can, (device != peer) as c_int) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxEnablePeerAccess(context: usize, _flags: c_uint) -> i32 {
    status(current().and_then(|_| gpu_of_context(context).map(|_| ())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> i32 {
    status(gpu(device).and_then(|gpu| {
        gpu.retained.fetch_add(1, SeqCst);
        // SAFETY: the caller gives a place for the result.
        unsafe { put(context, gpu.context()) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> i32 {
    status(gpu(device).and_then(|gpu| {
        let before = gpu.retained.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).map_err(|_| INVALID_CONTEXT)?;
        if before == 1 {
            gpu.reset();
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> i32 {
    status(gpu(device).map(Gpu::reset))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) -> i32 {
    // SAFETY: the caller gives places for the results.
    status(gpu(device).and_then(|gpu| unsafe {
        put(flags, 0)?;
        put(active, (gpu.retained.load(SeqCst) > 0) as c_int)
    }))
}

impl Gpu {
    /// Ends a context and with it work, streams, events, modules, memory, the sticky error.
    fn reset(&'static self) {
        stream::drain(self);
        stream::forget(self);
        event::forget(self);
        module::forget(self);
        *lock(&self.null_stream) = None;
        lock(&self.heap).clear();
        self.error.store(0, SeqCst);
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: usize) -> i32 {
    let ordinal = match context {
        0 => None,
        context => match gpu_of_context(context) {
            Ok(gpu) => Some(gpu.ordinal),
            Err(code) => return code,
        },
    };
    CURRENT.with_borrow_mut(|stack| {
        stack.pop();
        stack.push(ordinal);
    });
    status(initialised())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> i32 {
    let at = CURRENT.with_borrow(|stack| stack.last().copied().flatten());
    // SAFETY: the caller gives a place for the result.
    status(initialised().and_then(|()| unsafe { put(context, at.map_or(0, |at| gpus()[at].context())) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(current_even_if_failed().and_then(|gpu| unsafe { put(device, gpu.ordinal as c_int) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: usize) -> i32 {
    status(gpu_of_context(context).map(|gpu| CURRENT.with_borrow_mut(|stack| stack.push(Some(gpu.ordinal)))))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut usize) -> i32 {
    status(initialised().and_then(|()| {
        let top = CURRENT.with_borrow_mut(Vec::pop).flatten().ok_or(INVALID_CONTEXT)?;
        if !context.is_null() {
            // SAFETY: not null, so a place for the result.
            unsafe { context.write(gpus()[top].context()) };
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> i32 {
    status(current().and_then(|gpu| {
        stream::drain(gpu);
        gpu.healthy()
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> i32 {
    // SAFETY: the caller gives places for the results.
    status(current().and_then(|_| unsafe {
        put(least, 0)?;
        put(greatest, -5)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetFlags(_flags: c_uint) -> i32 {
    status(current().map(|_| ()))
}
