//! The clock that ranks of one host share.

/// Nanoseconds of the system's monotonic clock. Processes of one host read the same one, so that a rank can tell when
/// another arrived at a collective.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Both parts are positive: the clock starts with the machine.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
