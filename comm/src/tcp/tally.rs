//! Byte counters of a connection, for other threads. From the counters of both ends the control plane distinguishes a connection
//! that delivers nothing from a rank that sends nothing.

use crate::{LinkEnd, now_ns};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counters of one end of a connection. Only the rank's own thread writes them.
#[derive(Default)]
pub(super) struct Tally {
    /// Bytes that the kernel has taken for sending.
    sent: AtomicU64,
    /// Time at which it last took some, in ns on this rank's clock.
    sent_at: AtomicU64,
    /// Bytes read.
    received: AtomicU64,
    /// Number of checks since the last read byte that found the socket empty.
    looks: AtomicU64,
}

impl Tally {
    /// Counts bytes that the kernel has taken for sending. The time is written before the count, and read after it: the time that a
    /// reader gets is never older than its count.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent_at.store(now_ns(), Ordering::Release);
        self.sent.fetch_add(bytes as u64, Ordering::Release);
    }
    /// Counts bytes read from the socket.
    pub(super) fn came(&self, bytes: usize) {
        self.looks.store(0, Ordering::Release);
        self.received.fetch_add(bytes as u64, Ordering::Release);
    }
    /// Counts a check that found the socket open and empty.
    pub(super) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Release);
    }
    /// Returns the current counters.
    pub(super) fn end(&self) -> LinkEnd {
        // Each pair is read in the reverse order of its writes.
        let sent = self.sent.load(Ordering::Acquire);
        let quiet = now_ns().saturating_sub(self.sent_at.load(Ordering::Acquire));
        let looks = self.looks.load(Ordering::Acquire);
        let received = self.received.load(Ordering::Acquire);
        LinkEnd { sent, quiet: Duration::from_nanos(quiet), received, looks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_count_from_the_last_byte_on() {
        let tally = Tally::default();
        tally.looked();
        tally.sent(5);
        assert_eq!((tally.end().sent, tally.end().received, tally.end().looks), (5, 0, 1));
        assert!(tally.end().quiet < Duration::from_secs(60));
        tally.came(7);
        tally.looked();
        tally.looked();
        assert_eq!((tally.end().received, tally.end().looks), (7, 2));
    }
}
