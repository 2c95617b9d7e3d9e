//! Binding of ranks to cores.

use std::ops::Range;

use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Returns the cores that this process may use: its affinity mask, limited by the quota of its control group.
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

/// Divides the cores into consecutive parts, one for each rank. Returns `None` if there are too few cores for all threads.
pub fn split(cores: &[usize], nproc: usize, threads: usize) -> Option<Vec<Vec<usize>>> {
    if nproc * threads > cores.len() {
        return None;
    }
    let share = |rank: usize| -> Range<usize> { rank * cores.len() / nproc..(rank + 1) * cores.len() / nproc };
    Some((0..nproc).map(|rank| cores[share(rank)].to_vec()).collect())
}

/// How ranks are bound to cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Bind {
    /// Each rank has its own cores, if there are enough for all threads; once other work uses them, all cores of the job.
    #[default]
    Auto,
    /// Each rank has its own cores, if there are enough for all threads, also beside other work.
    Cores,
    /// Like auto, with all cores of a rank in one NUMA node; if there are too few, ranks share the cores of their node.
    Numa,
    /// Ranks are not bound.
    None,
}

/// The cores of each rank of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Cores of each rank at the start.
    pub own: Vec<Vec<usize>>,
    /// Cores that each rank may use once other work uses some of those above: with them, others of the job or of the NUMA node.
    pub wider: Vec<Vec<usize>>,
    /// Whether ranks stay on their own cores even then.
    pub fixed: bool,
}

impl Binding {
    /// Binds ranks to these cores for good.
    pub fn fixed(own: Vec<Vec<usize>>) -> Binding {
        Binding { wider: own.clone(), own, fixed: true }
    }

    /// Returns a rank's cores as text.
    pub fn describe(&self, rank: usize) -> String {
        let own = describe(&self.own[rank]);
        if self.fixed || self.own[rank] == self.wider[rank] {
            format!("cores {own}")
        } else {
            format!("cores {own}, beside other work {}", describe(&self.wider[rank]))
        }
    }
}

/// Returns the cores of each rank, or `None` if ranks are not bound.
pub fn bind(how: Bind, cores: &[usize], nodes: &[Vec<usize>], nproc: usize, threads: usize) -> Option<Binding> {
    // One node is no choice.
    let numa = how == Bind::Numa && nodes.len() > 1;
    let whole = [cores.to_vec()];
    let nodes = if numa { nodes } else { &whole };
    let mut own = Vec::with_capacity(nproc);
    let mut wider = Vec::with_capacity(nproc);
    for (i, node) in nodes.iter().enumerate() {
        let ranks = (i + 1) * nproc / nodes.len() - i * nproc / nodes.len();
        let parts = match how {
            Bind::None => None,
            Bind::Auto | Bind::Cores | Bind::Numa => split(node, ranks, threads),
        };
        own.extend(parts.or_else(|| numa.then(|| vec![node.clone(); ranks]))?);
        wider.extend(vec![node.clone(); ranks]);
    }
    Some(Binding { own, wider, fixed: how == Bind::Cores })
}

/// Returns the set of these cores for the kernel.
pub fn set_of(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    set
}

/// Returns the usable cores of each NUMA node that has some.
pub fn numa_nodes(cores: &[usize]) -> Vec<Vec<usize>> {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/node") else { return vec![cores.to_vec()] };
    let mut nodes: Vec<(usize, Vec<usize>)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let list = std::fs::read_to_string(entry.path().join("cpulist")).ok()?;
            let own: Vec<usize> = read_list(&list)?.into_iter().filter(|c| cores.contains(c)).collect();
            (!own.is_empty()).then_some((number, own))
        })
        .collect();
    nodes.sort_unstable();
    if nodes.is_empty() { vec![cores.to_vec()] } else { nodes.into_iter().map(|(_, own)| own).collect() }
}

/// Reads what [`describe`] writes.
fn read_list(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= CpuSet::MAX_CPU {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

/// Returns cores as text: `0-3,8`.
pub fn describe(cores: &[usize]) -> String {
    runs(cores.iter().copied(), "-").join(",")
}

/// Returns ascending numbers as texts, those that follow each other as their first and last with `to` between: `0-3` and `8`.
pub fn runs(numbers: impl IntoIterator<Item = usize>, to: &str) -> Vec<String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for n in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(n) => *last = n,
            _ => runs.push((n, n)),
        }
    }
    runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}{to}{b}") }).collect()
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
    fn lists_are_read_back() {
        for cores in [&[][..], &[3], &[0, 1, 2, 3, 8, 10, 11]] {
            assert_eq!(read_list(&describe(cores)).unwrap(), cores);
        }
        assert_eq!(read_list("0-3\n").unwrap(), [0, 1, 2, 3]);
        assert!(read_list("a").is_none() && read_list("0-99999999999").is_none());
    }

    #[test]
    fn ranks_are_bound_as_asked() {
        let cores: Vec<usize> = (0..8).collect();
        let nodes = [vec![0, 2, 4, 6], vec![1, 3, 5, 7]];
        let show = |how, nproc, threads| match bind(how, &cores, &nodes, nproc, threads) {
            None => "all".to_string(),
            Some(all) => (0..nproc).map(|rank| all.describe(rank)).collect::<Vec<_>>().join(" | "),
        };
        assert_eq!(show(Bind::None, 2, 4), "all");
        assert_eq!(show(Bind::Auto, 2, 4), "cores 0-3, beside other work 0-7 | cores 4-7, beside other work 0-7");
        assert_eq!(show(Bind::Auto, 1, 8), "cores 0-7");
        assert_eq!(show(Bind::Auto, 2, 5), "all");
        assert_eq!(show(Bind::Cores, 2, 4), "cores 0-3 | cores 4-7");
        assert_eq!(show(Bind::Cores, 2, 5), "all");
        assert_eq!(show(Bind::Numa, 2, 4), "cores 0,2,4,6 | cores 1,3,5,7");
        let (even, odd) = ("beside other work 0,2,4,6", "beside other work 1,3,5,7");
        let four = format!("cores 0,2, {even} | cores 4,6, {even} | cores 1,3, {odd} | cores 5,7, {odd}");
        assert_eq!(show(Bind::Numa, 4, 2), four);
        assert_eq!(show(Bind::Numa, 3, 2), format!("cores 0,2,4,6 | cores 1,3, {odd} | cores 5,7, {odd}"));
        assert_eq!(show(Bind::Numa, 2, 5), "cores 0,2,4,6 | cores 1,3,5,7");
        assert_eq!(show(Bind::Numa, 1, 4), "cores 1,3,5,7");
        let one = bind(Bind::Numa, &cores, std::slice::from_ref(&cores), 2, 4).unwrap();
        assert_eq!(one, bind(Bind::Auto, &cores, &[], 2, 4).unwrap());
    }

    #[test]
    fn every_core_is_of_one_node() {
        let cores = available();
        let mut all = numa_nodes(&cores).concat();
        all.sort_unstable();
        assert_eq!(all, cores);
    }

    #[test]
    fn this_process_has_a_core() {
        assert!(!available().is_empty());
    }
}
