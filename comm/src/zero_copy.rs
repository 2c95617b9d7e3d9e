//! A caller's buffers during one call, from which a transport may send and into which it may receive.
//!
//! While a transport still sends one range of a buffer, another range is written (or the same one, after its reader has
//! answered). A slice of the whole buffer would alias these, so the types here hand out slices of ranges.

use oflow_kernels::cpu::past_cache::{PAST_CACHE, copy_past_cache};
use std::marker::PhantomData;
use std::ops::Range;

/// Bytes that can be read during `'d`. Two are equal if they have the same address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawSlice<'d> {
    data: *const u8,
    len: usize,
    life: PhantomData<&'d [u8]>,
}

impl<'d> From<&'d [u8]> for RawSlice<'d> {
    fn from(bytes: &'d [u8]) -> RawSlice<'d> {
        RawSlice { data: bytes.as_ptr(), len: bytes.len(), life: PhantomData }
    }
}

impl<'d> RawSlice<'d> {
    /// Where the bytes lie.
    pub(super) fn as_ptr(self) -> *const u8 {
        self.data
    }
    /// Number of bytes.
    pub(super) fn len(self) -> usize {
        self.len
    }
    /// A part of them.
    ///
    /// # Panics
    /// Where it is not within.
    pub(super) fn part(self, range: Range<usize>) -> RawSlice<'d> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        RawSlice { data: self.data.wrapping_add(range.start), len: range.len(), life: PhantomData }
    }
    /// Copies them.
    pub(super) fn copy_to(self, dst: &mut [u8]) {
        assert_eq!(dst.len(), self.len, "bytes to copy");
        // SAFETY: readable by the meaning of this type; `dst` is borrowed, so that it is no part of them.
        unsafe { std::ptr::copy_nonoverlapping(self.data, dst.as_mut_ptr(), self.len) };
    }
}

/// Bytes that can be read and written during `'d`, by this rank's thread only.
pub struct RawSliceMut<'d> {
    data: *mut u8,
    len: usize,
    past_cache: bool,
    life: PhantomData<&'d mut [u8]>,
}

impl<'d> From<&'d mut [u8]> for RawSliceMut<'d> {
    fn from(bytes: &'d mut [u8]) -> RawSliceMut<'d> {
        RawSliceMut {
            data: bytes.as_mut_ptr(),
            len: bytes.len(),
            past_cache: bytes.len() >= PAST_CACHE,
            life: PhantomData,
        }
    }
}

impl<'d> RawSliceMut<'d> {
    /// A part of them to send from. It may be written again when its readers have it.
    pub(super) fn part(&self, range: Range<usize>) -> RawSlice<'d> {
        RawSlice { data: self.data.cast_const(), len: self.len, life: PhantomData }.part(range)
    }
    /// Whether the buffer is larger than the caches.
    pub(super) fn past_cache(&self) -> bool {
        self.past_cache
    }
    /// Room for what arrives.
    ///
    /// # Panics
    /// Where it is not within.
    pub(super) fn destination(&mut self, range: Range<usize>) -> Destination<'_> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        Destination {
            data: self.data.wrapping_add(range.start),
            len: range.len(),
            past_cache: self.past_cache,
            next: &[],
            life: PhantomData,
        }
    }
    /// A part of them to compute in.
    ///
    /// # Panics
    /// Where it is not within.
    pub(super) fn slice(&mut self, range: Range<usize>) -> &mut [u8] {
        let room = self.destination(range);
        // SAFETY: in bounds and ours; transports read what is on its way only within their calls, of which there is none
        // as long as the slice, and through pointers that are older than it.
        unsafe { std::slice::from_raw_parts_mut(room.data, room.len) }
    }
}

/// Memory into which a post may be received.
#[derive(Debug)]
pub struct Destination<'d> {
    pub(super) data: *mut u8,
    pub(super) len: usize,
    /// Whether the destination is part of a buffer that is larger than the caches.
    past_cache: bool,
    /// Bytes that are read after the destination has been filled.
    next: &'d [u8],
    life: PhantomData<&'d mut [u8]>,
}

impl<'d> Destination<'d> {
    /// The caller reads `next` soon after this has been filled.
    pub(super) fn before(self, next: &'d [u8]) -> Destination<'d> {
        Destination { next, ..self }
    }
    /// Copies bytes to its start.
    pub(super) fn fill(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len, "{} bytes for a room of {}", bytes.len(), self.len);
        // SAFETY: writable by the meaning of this type; `bytes` are borrowed, so that they lie elsewhere.
        let to = unsafe { std::slice::from_raw_parts_mut(self.data, bytes.len()) };
        match self.past_cache {
            true => copy_past_cache(bytes, to, self.next),
            false => to.copy_from_slice(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_sent_while_others_are_written() {
        let mut bytes = [1, 2, 3, 4, 5, 6];
        let mut slice = RawSliceMut::from(&mut bytes[..]);
        let sent = slice.part(0..2);
        slice.destination(2..4).fill(&[7]);
        slice.slice(4..6).fill(9);
        let mut seen = [0; 2];
        sent.copy_to(&mut seen);
        assert_eq!((seen, bytes), ([1, 2], [1, 2, 7, 4, 9, 9]));
    }

    #[test]
    fn nothing_is_lent_beyond_the_end() {
        let mut bytes = [0; 4];
        let mut slice = RawSliceMut::from(&mut bytes[..]);
        assert!(std::panic::catch_unwind(|| RawSlice::from(&[0u8; 4][..]).part(3..5)).is_err());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slice.slice(5..5).len())).is_err());
    }
}
