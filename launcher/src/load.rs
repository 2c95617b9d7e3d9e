//! How busy cores are, and how much of that is a process's own work: the rest is other work.

use std::time::{Duration, Instant};

/// Times of every core since the machine was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreClocks(Vec<Option<CoreClock>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CoreClock {
    /// Time in which the core had nothing to run.
    idle: Duration,
    /// The host of this virtual machine ran something else on it.
    stolen: Duration,
}

impl CoreClocks {
    /// Reads the clocks. Returns `None` where the system does not report them.
    pub fn read() -> Option<CoreClocks> {
        parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Returns how long these cores have run something since `earlier`, added up, when `elapsed` has passed, and how long they were
    /// stolen from this virtual machine. Returns `None` if a core is missing.
    pub fn busy_since(&self, earlier: &CoreClocks, elapsed: Duration, cores: &[usize]) -> Option<[Duration; 2]> {
        let mut all = [Duration::ZERO; 2];
        for core in cores {
            let clock = |clocks: &CoreClocks| clocks.0.get(*core).copied().flatten();
            let (now, then) = (clock(self)?, clock(earlier)?);
            let stolen = now.stolen.saturating_sub(then.stolen).min(elapsed);
            // The other columns are sampled at ticks of the timer; the idle time is measured.
            all[0] += elapsed.saturating_sub(now.idle.saturating_sub(then.idle) + stolen);
            all[1] += stolen;
        }
        Some(all)
    }
}

/// The lines are `cpuN user nice system idle iowait irq softirq steal …`, in ticks. Cores that are offline have none.
fn parse(stat: &str) -> Option<CoreClocks> {
    let mut clocks = Vec::new();
    for line in stat.lines() {
        let Some((name, rest)) = line.strip_prefix("cpu").and_then(|l| l.split_once(' ')) else { continue };
        // The first line is the sum of all.
        let Ok(core) = name.parse::<usize>() else { continue };
        let all: Vec<u64> = rest.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let (idle, waiting, stolen) = (*all.get(3)?, all.get(4).unwrap_or(&0), all.get(7).unwrap_or(&0));
        if clocks.len() <= core {
            clocks.resize(core + 1, None);
        }
        clocks[core] = Some(CoreClock { idle: ticks(idle + waiting), stolen: ticks(*stolen) });
    }
    (!clocks.is_empty()).then_some(CoreClocks(clocks))
}

/// Returns the processor time of a process, with that of processes that it has started and waited for.
pub fn processor_time(pid: i32) -> Option<Duration> {
    read_times(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn read_times(stat: &str) -> Option<Duration> {
    // After the name in brackets: state, ppid … utime and stime at 11 and 12, then those of children.
    let times = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
    let all: Vec<u64> = times.map_while(|t| t.parse().ok()).collect();
    (all.len() == 4).then(|| ticks(all.iter().sum()))
}

/// A measurement of other work on cores, while this process and those that it starts work too.
pub struct Beside {
    began: Instant,
    cores: CoreClocks,
    own: Duration,
}

impl Beside {
    /// Begins it. Returns `None` where the system does not report the times.
    pub fn begin() -> Option<Beside> {
        Some(Beside { began: Instant::now(), cores: CoreClocks::read()?, own: own_time()? })
    }

    /// Returns how many of these cores other work used on average, with what the host of this virtual machine took. All processes
    /// that this one has started must have ended.
    pub fn end(&self, cores: &[usize]) -> Option<f64> {
        let elapsed = self.began.elapsed();
        let [busy, stolen] = CoreClocks::read()?.busy_since(&self.cores, elapsed, cores)?;
        let others = (busy + stolen).saturating_sub(own_time()?.saturating_sub(self.own));
        Some(others.as_secs_f64() / elapsed.as_secs_f64().max(1e-9))
    }
}

fn own_time() -> Option<Duration> {
    processor_time(i32::try_from(std::process::id()).ok()?)
}

/// Returns a number of clock ticks, the kernel's unit in `stat` files, as time.
pub fn ticks(n: u64) -> Duration {
    Duration::from_secs_f64(n as f64 / rustix::param::clock_ticks_per_second().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        let clocks = |idle: u64, waiting: u64, stolen: u64| {
            let text =
                format!("cpu  9 9 9 9\ncpu0 1 2 3 {idle} {waiting} 0 0 {stolen} 0 0\ncpu2 0 0 0 {idle}\nintr 5\n");
            parse(&text).unwrap()
        };
        let second = ticks(1).as_secs_f64().recip() as u64;
        let (then, now) = (clocks(second, 0, 0), clocks(second + second / 4, second / 4, second / 10));
        let busy = |cores: &[usize]| now.busy_since(&then, Duration::from_secs(1), cores);
        assert_eq!(busy(&[0]), Some([400, 100].map(Duration::from_millis)));
        assert_eq!(busy(&[2, 0]), Some([1150, 100].map(Duration::from_millis)));
        assert_eq!((busy(&[1]), busy(&[7])), (None, None), "offline, and not there");
        assert_eq!(then.busy_since(&now, Duration::ZERO, &[0]), Some([Duration::ZERO; 2]), "clocks that go back");
        assert!(parse("").is_none() && parse("cpu0 1 2").is_none());
        assert!(CoreClocks::read().is_some());
    }

    #[test]
    fn the_times_of_a_process_stand_after_its_name() {
        let text = "12 (a) b) R 1 12 12 0 -1 4194304 100 0 0 0 7 5 2 1 20 0 1 0 100 0 0";
        assert_eq!(read_times(text), Some(ticks(15)));
        assert_eq!((read_times(""), read_times("12 (a) R 1 2 3")), (None, None));
        assert!(own_time().is_some() && processor_time(-1).is_none());
    }

    #[test]
    fn there_is_less_other_work_than_cores() {
        let cores = crate::cores::available();
        let others = Beside::begin().unwrap().end(&cores).unwrap();
        assert!((0.0..=cores.len() as f64).contains(&others), "{others}");
    }
}
