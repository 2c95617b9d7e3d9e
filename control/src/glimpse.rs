//! Glimpses of a rank, for people who watch the job.

use oflow_proto::control as pb;

/// Source of a rank's glimpses, asked on the control thread while somebody watches the job.
pub trait Watched: Send + Sync {
    /// Says whether somebody watches. Called again and again with the same answer.
    fn watch(&self, on: bool);

    /// Returns what there is to see: name scope, memory of devices, steps and times; the boxings since the last look; and the logged points after
    /// this number. Everything else the heartbeat tells.
    fn look(&self, after: u64) -> pb::Glimpse;
}

/// Resident memory of this process in bytes; 0 if the system does not report it.
pub(super) fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_has_memory() {
        assert!(super::resident() > 1 << 20);
    }
}
