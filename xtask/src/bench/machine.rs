//! Whether the machine is quiet: the processor time that others take, read from `/proc/stat` at two times.

use std::error::Error;
use std::fmt;
use std::fs;
use std::time::Duration;

/// Largest shares of all cores' time on a machine that counts as quiet. A quiet one shows 0 to 2 %.
const MOST_OTHERS: f64 = 0.05;
const MOST_STEAL: f64 = 0.02;

/// Share of the processors that others took between two times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Share of the time of all cores that other processes and the kernel used.
    others: f64,
    /// Share that the hypervisor gave to other machines.
    steal: f64,
    /// Mean number of tasks that ran or waited in the last minute. It is told and not judged: it remembers the bench before.
    load: f64,
}

impl State {
    /// From two texts of `/proc/stat`, the clock ticks that the processes of the bench used between them, and `/proc/loadavg`.
    pub fn between(before: &str, after: &str, own: u64, load: &str) -> Result<State, String> {
        let (before, after) = (Ticks::parse(before)?, Ticks::parse(after)?);
        let since = |of: fn(&Ticks) -> u64| of(&after).saturating_sub(of(&before));
        let (busy, idle, steal) = (since(|t| t.busy), since(|t| t.idle), since(|t| t.steal));
        let all = (busy + idle + steal).max(1) as f64;
        let load = load.split(' ').next().and_then(|l| l.parse().ok()).ok_or(format!("no load average in '{load}'"))?;
        Ok(State { others: busy.saturating_sub(own) as f64 / all, steal: steal as f64 / all, load })
    }

    /// Whether measurements on such a machine are a result.
    pub fn is_quiet(&self) -> bool {
        self.others <= MOST_OTHERS && self.steal <= MOST_STEAL
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let State { others, steal, load } = self;
        write!(f, "others {:.1} %, steal {:.1} %, load {load:.2}", 100.0 * others, 100.0 * steal)
    }
}

/// Clock ticks of all cores since the machine was started.
struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    /// user, nice, system, idle, iowait, irq, softirq, steal; guests follow and are in user and nice already.
    fn parse(stat: &str) -> Result<Ticks, String> {
        let line = stat.lines().find_map(|l| l.strip_prefix("cpu ")).ok_or("/proc/stat has no line 'cpu'")?;
        let fields: Vec<u64> = line.split_whitespace().map_while(|w| w.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields[..] else {
            return Err(format!("/proc/stat has too few fields: cpu {line}"));
        };
        Ok(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
    }
}

/// State of the machine over one second, in which this process sleeps.
pub fn state() -> Result<State, Box<dyn Error>> {
    let before = fs::read_to_string("/proc/stat")?;
    std::thread::sleep(Duration::from_secs(1));
    Ok(State::between(&before, &fs::read_to_string("/proc/stat")?, 0, &fs::read_to_string("/proc/loadavg")?)?)
}

/// Looks at others while a bench runs.
pub struct Watch {
    stat: String,
    own: u64,
}

impl Watch {
    /// Begins to watch.
    pub fn start() -> Result<Watch, Box<dyn Error>> {
        Ok(Watch { stat: fs::read_to_string("/proc/stat")?, own: own_ticks(&fs::read_to_string("/proc/self/stat")?)? })
    }
    /// Share of the processors that others took since, once the bench has been waited for. Its processes that nobody waited
    /// for count as others.
    pub fn state(&self) -> Result<State, Box<dyn Error>> {
        let own = own_ticks(&fs::read_to_string("/proc/self/stat")?)?.saturating_sub(self.own);
        let (stat, load) = (fs::read_to_string("/proc/stat")?, fs::read_to_string("/proc/loadavg")?);
        Ok(State::between(&self.stat, &stat, own, &load)?)
    }
}

/// Clock ticks of a process and of all below it that were waited for, from `/proc/self/stat`.
fn own_ticks(stat: &str) -> Result<u64, String> {
    // The name may hold anything; the fields after it are numbers. utime is the 14th field, cstime the 17th.
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').skip(11).take(4)).into_iter().flatten();
    let ticks: Vec<u64> = fields.map_while(|w| w.parse().ok()).collect();
    if ticks.len() == 4 { Ok(ticks.iter().sum()) } else { Err(format!("/proc/self/stat cannot be read: {stat}")) }
}

/// Processor, cores, memory and kernel.
pub fn description() -> Result<String, Box<dyn Error>> {
    let (cpu, memory) = (fs::read_to_string("/proc/cpuinfo")?, fs::read_to_string("/proc/meminfo")?);
    let of = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name)).and_then(|l| l.split_once(':'));
        line.map_or("unknown".to_string(), |(_, value)| value.trim().to_string())
    };
    let cores = std::thread::available_parallelism()?;
    let kib: f64 = of(&memory, "MemTotal").trim_end_matches(" kB").parse()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let (model, gib) = (of(&cpu, "model name"), kib / f64::from(1 << 20));
    Ok(format!("{model}, {cores} cores, {gib:.0} GiB, Linux {}", kernel.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  1000 100 200 5000 40 0 10 5 0 0\ncpu0 1000 100 200 5000 40 0 10 5 0 0\nintr 1\n";

    fn after(user: u64, idle: u64, steal: u64) -> String {
        format!("cpu  {} 100 200 {} 40 0 10 {} 7 7\ncpu0 1 2 3\n", 1000 + user, 5000 + idle, 5 + steal)
    }

    fn check(user: u64, idle: u64, steal: u64, own: u64, text: &str, quiet: bool) {
        let state =
            State::between(BEFORE, &after(user, idle, steal), own, "0.50 1.00 2.00 1/99 1234\n").expect("a state");
        assert_eq!(state.to_string(), text);
        assert_eq!(state.is_quiet(), quiet, "{text}");
    }

    #[test]
    fn shares_are_of_all_the_time_between_two_readings() {
        check(2, 198, 0, 0, "others 1.0 %, steal 0.0 %, load 0.50", true);
        check(50, 150, 0, 0, "others 25.0 %, steal 0.0 %, load 0.50", false);
        check(0, 190, 10, 0, "others 0.0 %, steal 5.0 %, load 0.50", false);
        // No tick has passed.
        check(0, 0, 0, 0, "others 0.0 %, steal 0.0 %, load 0.50", true);
    }

    #[test]
    fn the_bench_itself_is_not_others() {
        check(150, 50, 0, 146, "others 2.0 %, steal 0.0 %, load 0.50", true);
        check(150, 50, 0, 50, "others 50.0 %, steal 0.0 %, load 0.50", false);
        // The two counts are taken at slightly different times.
        check(150, 50, 0, 152, "others 0.0 %, steal 0.0 %, load 0.50", true);
    }

    #[test]
    fn unreadable_texts_are_errors() {
        let between = |a: &str, b: &str, load: &str| State::between(a, b, 0, load).expect_err("an error");
        assert_eq!(between("intr 1", BEFORE, "0 0 0"), "/proc/stat has no line 'cpu'");
        assert_eq!(between(BEFORE, "cpu  1 2 3", "0 0 0"), "/proc/stat has too few fields: cpu  1 2 3");
        assert_eq!(between(BEFORE, BEFORE, ""), "no load average in ''");
    }

    #[test]
    fn own_ticks_are_those_of_the_process_and_its_children() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 200 0 0 11 22 300 4000 20 0 1 0 9 9 9";
        assert_eq!(own_ticks(stat), Ok(4333));
        assert!(own_ticks("7 (x) S 1").is_err());
    }
}
