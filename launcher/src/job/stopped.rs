//! State of a rank's process in the kernel: whether the process has been stopped (SIGSTOP), and how long it has run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A process that is stopped for so long will not go on by itself: a shell's or a debugger's stops are shorter.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks that must have seen it, so that a launcher that was itself stopped does not misjudge.
const LOOKS: u32 = 3;

/// The times at which ranks were first seen stopped.
#[derive(Default)]
pub struct Stopped(BTreeMap<usize, (Instant, u32)>);

impl Stopped {
    /// Checks a rank. Returns whether it has been stopped for long enough to count as stopped.
    pub fn look(&mut self, rank: usize, state: Option<char>, now: Instant) -> bool {
        if state != Some('T') {
            self.0.remove(&rank);
            return false;
        }
        let (since, looks) = self.0.entry(rank).or_insert((now, 0));
        *looks += 1;
        *looks >= LOOKS && now.saturating_duration_since(*since) >= PATIENCE
    }
}

/// The state of a process: R runs or is runnable, S and D wait, T is stopped, t is traced by a debugger.
pub fn state_of(pid: i32) -> Option<char> {
    read_state(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// How long the main thread of a process has run, and how long it could have run but had no processor.
pub fn clocks_of(pid: i32) -> Option<[Duration; 2]> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut ns = text.split(' ').map_while(|field| field.parse().ok());
    Some([Duration::from_nanos(ns.next()?), Duration::from_nanos(ns.next()?)])
}

/// The name in brackets may have brackets and spaces itself.
fn read_state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lasting_stop_counts() {
        let (start, mut stopped) = (Instant::now(), Stopped::default());
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert!(!stopped.look(1, Some('T'), start) && !stopped.look(1, Some('T'), at(500)));
        assert!(!stopped.look(1, Some('T'), at(1900)));
        assert!(stopped.look(1, Some('T'), at(2000)));
        // It went on for a moment.
        assert!(!stopped.look(1, Some('R'), at(2100)) && !stopped.look(1, Some('T'), at(9000)));
        // We were stopped ourselves: two looks far apart are not enough.
        assert!(!stopped.look(1, Some('T'), at(90_000)));
        for state in [Some('R'), Some('S'), Some('D'), Some('t'), None] {
            assert!((0..9).all(|i| !stopped.look(2, state, at(i * 1000))), "{state:?}");
        }
    }

    #[test]
    fn the_state_stands_after_the_name() {
        assert_eq!(read_state("12 (a) b) T 1 2"), Some('T'));
        assert_eq!(read_state(""), None);
        assert!(matches!(state_of(std::process::id() as i32), Some('R' | 'S')));
        assert!(clocks_of(std::process::id() as i32).is_some() && clocks_of(-1).is_none());
    }
}
