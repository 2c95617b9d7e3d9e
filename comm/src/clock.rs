//! The clock that ranks of one host share.

/// Returns the system's monotonic clock in nanoseconds. It is the same clock in all processes of a host, so a rank can tell when
/// another rank of its host started a collective.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Both parts are positive: the clock starts with the machine.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
