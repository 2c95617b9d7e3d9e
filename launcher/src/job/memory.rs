//! Detects ranks that the kernel has killed because the memory was exhausted. The signal, SIGKILL, does not show it: other
//! processes send it too. But the kernel counts such kills, before each kill. So a rank's end by SIGKILL is one if the count has
//! grown and no other process explains it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long after the count the process may take to end: its memory is given back first. An older count was another process,
/// one that a rank had started, for instance.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Kills by the kernel that no end of a rank explains yet.
pub struct MemoryKills {
    counted: u64,
    open: VecDeque<Instant>,
}

impl MemoryKills {
    /// Starts to watch the count.
    pub fn new() -> MemoryKills {
        MemoryKills { counted: count(), open: VecDeque::new() }
    }

    /// Reads the count. Call it a few times a second, so that the time of each kill is known.
    pub fn look(&mut self, now: Instant) {
        self.note(count(), now);
    }

    fn note(&mut self, count: u64, now: Instant) {
        self.open.extend((self.counted..count).take(1024).map(|_| now));
        self.counted = count;
        self.open.retain(|at| now.saturating_duration_since(*at) <= ENDS_WITHIN);
    }

    /// Returns whether `killed` ranks that SIGKILL has just ended were all killed because the memory was exhausted. If only some
    /// of them may have been, returns false.
    pub fn explain(&mut self, ranks: usize) -> bool {
        let all = ranks > 0 && self.open.len() >= ranks;
        self.open.drain(..ranks.min(self.open.len()));
        all
    }
}

/// How many processes of our own control group the kernel has killed so far because memory had run out, for the group or the
/// whole machine; 0 if the system does not report it.
fn count() -> u64 {
    files(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
        .iter()
        .find_map(|f| read_count(&std::fs::read_to_string(f).ok()?))
        .unwrap_or(0)
}

/// Where the count may stand, best first, for a process of these groups.
fn files(groups: &str) -> Vec<String> {
    let mut files = vec![];
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_end_matches('/');
        if controllers.is_empty() {
            // Those of groups below are not our ranks. Older kernels have only the sum.
            let names = ["memory.events.local", "memory.events"];
            files.extend(places(path).iter().flat_map(|p| names.map(|f| format!("/sys/fs/cgroup{p}/{f}"))));
        } else if controllers.split(',').any(|c| c == "memory") {
            files.extend(places(path).iter().map(|p| format!("/sys/fs/cgroup/memory{p}/memory.oom_control")));
        }
    }
    files
}

/// A group's path below the mount. In a container the mount may begin at our own group, while the path is the host's.
fn places(path: &str) -> Vec<&str> {
    if path.is_empty() { vec![path] } else { vec![path, ""] }
}

fn read_count(events: &str) -> Option<u64> {
    events.lines().find_map(|l| l.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_explains_one_end_and_not_for_long() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut kills = MemoryKills { counted: 5, open: VecDeque::new() };
        assert!(!kills.explain(1), "kill -9");
        kills.note(6, at(1));
        assert!(kills.explain(1) && !kills.explain(1), "one of memory, and then kill -9");
        // A process that a rank had started was killed for memory; much later somebody kills the rank.
        kills.note(7, at(2));
        kills.note(7, at(13));
        assert!(!kills.explain(1));
        // Two ranks end at once, one for memory: it is not known which.
        kills.note(8, at(14));
        assert!(!kills.explain(2) && !kills.explain(1));
        kills.note(10, at(15));
        assert!(kills.explain(2));
        // No rank has ended by this signal; a counter that is set back is no end.
        kills.note(11, at(16));
        assert!(!kills.explain(0));
        kills.note(3, at(17));
        assert!(kills.explain(1) && !kills.explain(1));
    }

    #[test]
    fn the_count_stands_among_others() {
        assert_eq!(read_count("low 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 9\n"), Some(3));
        assert_eq!(read_count("low 0\n"), None);
        assert_eq!(read_count("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"), Some(4));
        assert_eq!(
            files("4:memory:/a\n3:cpu,cpuacct:/\n0::/b\n"),
            [
                "/sys/fs/cgroup/memory/a/memory.oom_control",
                "/sys/fs/cgroup/memory/memory.oom_control",
                "/sys/fs/cgroup/b/memory.events.local",
                "/sys/fs/cgroup/b/memory.events",
                "/sys/fs/cgroup/memory.events.local",
                "/sys/fs/cgroup/memory.events",
            ]
        );
        assert_eq!(files("0::/\nnonsense")[0], "/sys/fs/cgroup/memory.events.local");
    }
}
