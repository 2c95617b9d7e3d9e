//! Byte counters of a connection, for other threads. From the counters of both ends the control plane distinguishes a connection
//! that delivers nothing from a rank that sends nothing.

use crate::{LinkEnd, now_ns};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counts of one end. Written by the rank's own thread.
#[derive(Default)]
pub(super) struct Tally {
    sent: AtomicU64,
    sent_at: AtomicU64,
    received: AtomicU64,
    looks: AtomicU64,
}

impl Tally {
    /// The kernel has taken bytes for sending. The time is set first: a reader that reads the count before it sees an older time
    /// with a smaller count, or a newer time, never more bytes than were there at that time.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent_at.store(now_ns(), Ordering::Release);
        self.sent.fetch_add(bytes as u64, Ordering::Release);
    }
    /// Bytes were read.
    pub(super) fn came(&self, bytes: usize) {
        self.looks.store(0, Ordering::Release);
        self.received.fetch_add(bytes as u64, Ordering::Release);
    }
    /// The socket is open for reading and there was nothing.
    pub(super) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Release);
    }
    /// The counts now.
    pub(super) fn end(&self) -> LinkEnd {
        // Each pair in the order opposite to that of the writes.
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
