//! Copies and fills, in the order of streams.

use super::codes::*;
use super::memory::{MemoryKind, place};
use super::*;

/// Side of a copy: host or device.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Host,
    Device,
    Any,
}

fn side(at: usize, len: usize, want: Side) -> Outcome<MemoryKind> {
    let found = place(at, len)?;
    match want {
        Side::Any => Ok(found),
        Side::Device if found == MemoryKind::Device => Ok(found),
        Side::Host if found != MemoryKind::Device => Ok(found),
        _ => Err(INVALID_VALUE),
    }
}

/// Copies in the order of a stream. Memory of the host that is not page-locked is read before this returns and is written
/// when this returns, as the driver does it.
///
/// # Safety
/// Host ranges are valid, and stay so until the stream has done the copy.
unsafe fn copy(dst: (usize, Side), src: (usize, Side), len: usize, stream: usize, wait: bool) -> Outcome {
    current()?;
    let stream = stream::find(stream)?;
    if len == 0 {
        return Ok(());
    }
    let to = side(dst.0, len, dst.1)?;
    let from = side(src.0, len, src.1)?;
    let (dst, src) = (dst.0, src.0);
    if wait || from == MemoryKind::Pageable || to == MemoryKind::Pageable {
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
    }
    let staged: Option<Box<[u8]>> = (from == MemoryKind::Pageable && !wait).then(|| {
        // SAFETY: a host range that the caller says is valid.
        unsafe { std::slice::from_raw_parts(src as *const u8, len) }.into()
    });
    let ticket = stream.work(move |_| {
        let src = staged.as_ref().map_or(src as *const u8, |bytes| bytes.as_ptr());
        // SAFETY: both ranges were checked or promised; `copy` allows overlap.
        unsafe { std::ptr::copy(src, dst as *mut u8, len) };
        Ok(())
    });
    if wait || to == MemoryKind::Pageable {
        stream.wait(ticket);
        stream.gpu.healthy()?;
    }
    Ok(())
}

macro_rules! copies {
    ($($now:ident, $later:ident: $to:ident <- $from:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $now(dst: usize, src: usize, len: usize) -> i32 {
            // SAFETY: the caller's promise about host memory.
            status(unsafe { copy((dst, Side::$to), (src, Side::$from), len, 0, true) })
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $later(dst: usize, src: usize, len: usize, stream: usize) -> i32 {
            // SAFETY: the caller's promise about host memory.
            status(unsafe { copy((dst, Side::$to), (src, Side::$from), len, stream, false) })
        }
    )*};
}
copies! {
    cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2: Device <- Host;
    cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2: Host <- Device;
    cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2: Device <- Device;
    cuMemcpy, cuMemcpyAsync: Any <- Any;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyPeerAsync(
    dst: usize,
    to: usize,
    src: usize,
    from: usize,
    len: usize,
    stream: usize,
) -> i32 {
    if let Err(code) = gpu_of_context(to).and(gpu_of_context(from)) {
        return code;
    }
    // SAFETY: no host memory is involved.
    status(unsafe { copy((dst, Side::Device), (src, Side::Device), len, stream, false) })
}

/// Fills `count` elements.
fn fill<T: Copy + Send + 'static>(at: usize, value: T, count: usize, stream: usize, wait: bool) -> Outcome {
    current()?;
    let stream = stream::find(stream)?;
    if count == 0 {
        return Ok(());
    }
    if !at.is_multiple_of(size_of::<T>()) {
        return Err(INVALID_VALUE);
    }
    let bytes = count.checked_mul(size_of::<T>()).ok_or(INVALID_VALUE)?;
    if place(at, bytes)? == MemoryKind::Pageable {
        return Err(INVALID_VALUE);
    }
    if wait {
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
    }
    let ticket = stream.work(move |_| {
        // SAFETY: a live block or page-locked memory, checked above, aligned for T.
        unsafe { std::slice::from_raw_parts_mut(at as *mut T, count) }.fill(value);
        Ok(())
    });
    if wait {
        stream.wait(ticket);
    }
    Ok(())
}

macro_rules! fills {
    ($($now:ident, $later:ident: $type:ty;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $now(at: usize, value: $type, count: usize) -> i32 {
            status(fill(at, value, count, 0, true))
        }
        #[unsafe(no_mangle)]
        extern "C" fn $later(at: usize, value: $type, count: usize, stream: usize) -> i32 {
            status(fill(at, value, count, stream, false))
        }
    )*};
}
fills! {
    cuMemsetD8_v2, cuMemsetD8Async: u8;
    cuMemsetD16_v2, cuMemsetD16Async: u16;
    cuMemsetD32_v2, cuMemsetD32Async: u32;
}
