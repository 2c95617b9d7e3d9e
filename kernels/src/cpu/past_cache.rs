//! Copies that do not go through the caches: for results that are larger than the caches, whose lines would be read before they
//! are written and push others out.

/// Results of so many bytes are written past the caches.
pub const PAST_CACHE: usize = 8 << 20;

/// Copies `src` to `dst`, which has the same length, without keeping `dst` in a cache. Meanwhile `next` is fetched from memory, as
/// much of it as is copied. What is written is visible to other threads as after any other write.
///
/// # Panics
/// Where the lengths differ.
pub fn copy_past_cache(src: &[u8], dst: &mut [u8], next: &[u8]) {
    assert_eq!(src.len(), dst.len(), "bytes to copy");
    #[cfg(target_arch = "x86_64")]
    {
        let head = dst.as_ptr().align_offset(LINE).min(dst.len());
        let lines = (dst.len() - head) / LINE;
        let tail = head + lines * LINE;
        dst[..head].copy_from_slice(&src[..head]);
        // SAFETY: `lines` whole lines lie within both slices, those of `dst` are aligned, and every x86-64 CPU has SSE2.
        unsafe { lines_past_cache(src[head..].as_ptr(), dst[head..].as_mut_ptr(), lines, next) };
        dst[tail..].copy_from_slice(&src[tail..]);
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _fetched_when_read = next;
        dst.copy_from_slice(src);
    }
}

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// # Safety
/// So many lines are readable at `from` and writable at `to`, which is aligned to a line; they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn lines_past_cache(from: *const u8, to: *mut u8, lines: usize, next: &[u8]) {
    use std::arch::x86_64::{__m128i, _MM_HINT_T1, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128};
    let fetched = next.len() / LINE;
    let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
    for i in 0..lines {
        // SAFETY: by this function's contract; a line has four of 16 bytes. What is fetched lies within `next`.
        unsafe {
            if i < fetched {
                _mm_prefetch::<_MM_HINT_T1>(next.as_ptr().add(i * LINE).cast());
            }
            let line = [0, 1, 2, 3].map(|k| _mm_loadu_si128(from.add(4 * i + k)));
            for (k, part) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(4 * i + k), part);
            }
        }
    }
    // Such writes are not ordered with later ones otherwise.
    // SAFETY: every x86-64 CPU has SSE.
    unsafe { _mm_sfence() };
}
