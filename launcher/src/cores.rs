//! Which cores each rank runs on.

use std::ops::Range;

use rustix::thread::{CpuSet, sched_getaffinity};

/// The cores this process may use: its affinity mask, cut to the quota of its control group.
pub fn available() -> Vec<usize> {
    let quota = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cores: Vec<usize> = match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(),
        // A host with more cores than the mask holds: no pinning then, but the number is known.
        Err(_) => (0..quota).collect(),
    };
    cores.truncate(quota);
    cores
}

/// Consecutive cores for each rank, none shared and none left over; `None` if there are too few for all threads.
pub fn split(cores: &[usize], nproc: usize, threads: usize) -> Option<Vec<Vec<usize>>> {
    if nproc * threads > cores.len() {
        return None;
    }
    let share = |rank: usize| -> Range<usize> { rank * cores.len() / nproc..(rank + 1) * cores.len() / nproc };
    Some((0..nproc).map(|rank| cores[share(rank)].to_vec()).collect())
}

/// Cores as people write them: `0-3,8`.
pub fn describe(cores: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let text: Vec<String> = runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    text.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_goes_to_one_rank() {
        for n in 1..20 {
            let cores: Vec<usize> = (0..n).map(|i| 3 * i + 1).collect();
            for nproc in 1..=n {
                for threads in 1..=n / nproc {
                    let parts = split(&cores, nproc, threads).unwrap();
                    assert!(parts.iter().all(|p| p.len() >= threads), "{n} {nproc} {threads}");
                    assert_eq!(parts.concat(), cores);
                }
                assert!(split(&cores, nproc, n / nproc + 1).is_none());
            }
        }
    }

    #[test]
    fn runs_are_shortened() {
        assert_eq!(describe(&[]), "");
        assert_eq!(describe(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
    }

    #[test]
    fn this_process_has_a_core() {
        assert!(!available().is_empty());
    }
}
