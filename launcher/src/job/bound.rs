//! Detects that other programs use the cores to which ranks are bound, and then lets the ranks use all cores of the job: a bound rank
//! waits for its own cores even if other cores are free.
//!
//! The time that a rank has lost to other programs is estimated as the lesser of two times:
//!
//! - the longest time that one of its threads was runnable and not running (`/proc/PID/task/TID/schedstat`). A kernel ends with its
//!   slowest thread, so the rank loses about that much. Alone it is not enough: it is above zero also if the rank has more busy threads
//!   than cores;
//! - the time that its cores ran anything but its own threads (`/proc/stat` less the rank's processor time). Alone it is not enough: it is
//!   above zero also if other programs run while the rank sleeps, which costs nothing.
//!
//! Processes that a rank has started and that still run count as other programs. On an idle machine a check reads one file, and one for each
//! rank; the files of the threads are read only if the second time is long.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use crate::cores::{Binding, describe, set_of};
use crate::load::{CoreClocks, processor_time};
use crate::rank::Group;

/// Least time between two checks.
const EVERY: Duration = Duration::from_millis(900);
/// Share of the time above which a rank loses more by waiting than it gains by being bound.
const MOST: f64 = 0.1;
/// Number of the last [`OF`] checks that must have found other programs. One or two may be a short disturbance such as a cron job; load that
/// comes and goes is detected too. With the check before, the first to read the threads, detection takes about four seconds.
const LOOKS: usize = 3;
/// Number of checks that are remembered.
const OF: usize = 5;
/// Largest number of passes over the threads of a rank to widen their masks. A thread that starts during a pass may have inherited the old
/// mask, so passes are repeated until one finds no such thread.
const PASSES: usize = 16;

/// The binding of the ranks of this host, over all starts of a job.
pub(super) struct Bound {
    binding: Option<Binding>,
    /// Whether ranks may use the wider sets.
    freed: bool,
    /// Whether the user has been told, or no rank can get more cores; then nothing is checked any more.
    reported: bool,
    last: Option<Look>,
    history: History,
}

/// Clocks at the time of a check.
struct Look {
    at: Instant,
    cores: CoreClocks,
    ranks: Vec<Option<Clocks>>,
}

/// The clocks of a rank.
#[derive(Clone, Debug, Default)]
struct Clocks {
    /// Processor time of all its threads.
    ran: Duration,
    /// Time that each thread has waited for a core, by thread id; `None` if not read at this check.
    waited: Option<BTreeMap<i32, Duration>>,
}

impl Bound {
    /// Makes the state of a job, whose ranks are bound by `binding`, if at all. Ranks that cannot get more cores than they have are not checked.
    pub(super) fn new(binding: Option<Binding>) -> Bound {
        let reported = binding.as_ref().is_none_or(|b| b.own == b.wider);
        Bound { binding, freed: false, reported, last: None, history: History::default() }
    }

    /// Returns the cores that a rank is bound to.
    pub(super) fn cores(&self, local: usize) -> Option<&[usize]> {
        let binding = self.binding.as_ref()?;
        Some(if self.freed { &binding.wider[local] } else { &binding.own[local] })
    }

    /// Forgets earlier checks; call it whenever the ranks have been started.
    pub(super) fn begin(&mut self) {
        (self.last, self.history) = (None, History::default());
    }

    /// Checks the ranks of this host, of which the first has the number `first_rank`, if the last check is long enough ago. If other programs
    /// use their cores, lets the ranks use more cores and returns the report. That happens once in a job at most.
    pub(super) fn look(&mut self, ranks: &[Arc<Group>], first_rank: usize, now: Instant) -> Option<Contention> {
        let binding = self.binding.as_ref().filter(|_| !self.reported)?;
        let elapsed = self.last.as_ref().map(|last| now.saturating_duration_since(last.at));
        if elapsed.is_some_and(|e| e < EVERY) {
            return None;
        }
        let cores = CoreClocks::read()?;
        let ran = |group: &Arc<Group>| {
            let ran = group.is_live().then(|| processor_time(group.pid())).flatten()?;
            Some(Clocks { ran, waited: None })
        };
        let mut look = Look { at: now, cores, ranks: ranks.iter().map(ran).collect() };
        let before = self.last.take();
        let mut shares = Vec::with_capacity(ranks.len());
        for (local, clocks) in look.ranks.iter_mut().enumerate() {
            let earlier = before.as_ref().and_then(|b| Some((b, elapsed?, b.ranks.get(local)?.as_ref()?)));
            let (Some(clocks), Some((before, elapsed, earlier))) = (clocks, earlier) else {
                shares.push(0.0);
                continue;
            };
            let own = &binding.own[local];
            // A rank that has all cores of its node cannot get more.
            let busy = look.cores.busy_since(&before.cores, elapsed, own).filter(|_| *own != binding.wider[local]);
            let others = busy.map_or(Duration::ZERO, |[busy, _]| others(busy, earlier, clocks));
            if over(others, elapsed) {
                clocks.waited = waited(ranks[local].pid());
            }
            shares.push(share(elapsed, others, earlier, clocks));
        }
        self.last = Some(look);
        let (local, waited) = self.history.note(elapsed?, shares)?;
        self.reported = true;
        if !binding.fixed {
            let widened = ranks
                .iter()
                .enumerate()
                .filter(|(_, group)| group.is_live())
                .map(|(local, group)| widen(group.pid(), &binding.own[local], &binding.wider[local]));
            // If the program has bound all its threads itself, nothing is changed and nothing reported.
            if widened.sum::<usize>() == 0 {
                return None;
            }
            self.freed = true;
        }
        let message = message(binding, local, first_rank, waited);
        Some(Contention { rank: first_rank + local, waited, freed: !binding.fixed, message })
    }
}

/// Report that other programs use the ranks' cores.
pub(super) struct Contention {
    /// The rank that has waited most.
    rank: usize,
    /// Share of the time that the rank has waited, 0 to 1.
    waited: f64,
    /// Whether ranks may use more cores from now on.
    freed: bool,
    /// The line for the user.
    pub(super) message: String,
}

impl Contention {
    /// Returns the fields of the event in the event log.
    pub(super) fn event(&self) -> Value {
        let Contention { rank, waited, freed, message } = self;
        json!({ "rank": rank, "waited": (waited * 1000.0).round() / 1000.0, "freed": freed, "message": message })
    }
}

fn message(binding: &Binding, local: usize, first_rank: usize, waited: f64) -> String {
    let Binding { own, wider, fixed } = binding;
    let done = if *fixed {
        "ranks stay bound, as `--bind cores` asks; `--bind none` would let them move".to_string()
    } else if wider.iter().all(|w| *w == wider[0]) {
        format!("ranks may now use all of cores {}, as with `--bind none`", describe(&wider[local]))
    } else {
        "ranks may now use all cores of their NUMA node; with `--bind none` they may use those of all nodes".to_string()
    };
    let (rank, percent) = (first_rank + local, 100.0 * waited);
    let cores = if own[local].len() == 1 { "core" } else { "cores" };
    let own = describe(&own[local]);
    format!(
        "other work uses the cores of this job: rank {rank} waited {percent:.0} % of the time for {cores} {own}; {done}"
    )
}

/// Time that a rank's cores ran other programs, if they were busy for the time `busy` in all.
fn others(busy: Duration, earlier: &Clocks, later: &Clocks) -> Duration {
    busy.saturating_sub(later.ran.saturating_sub(earlier.ran))
}

fn over(time: Duration, elapsed: Duration) -> bool {
    time.as_secs_f64() > MOST * elapsed.as_secs_f64()
}

/// The share of the time between two looks that a rank was kept waiting, when its cores ran other work for so long. It is 0 at the
/// first of several looks that find other work, since the threads were not read at the one before.
fn share(elapsed: Duration, others: Duration, earlier: &Clocks, later: &Clocks) -> f64 {
    let (Some(earlier), Some(later)) = (&earlier.waited, &later.waited) else { return 0.0 };
    let waits = later.iter().filter_map(|(thread, waited)| Some(waited.saturating_sub(*earlier.get(thread)?)));
    let longest = waits.max().unwrap_or_default();
    longest.min(others).as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
}

/// The last looks: the time since the one before, and the share of each rank.
#[derive(Default)]
struct History(VecDeque<(Duration, Vec<f64>)>);

impl History {
    /// Adds a look. Once enough of the last ones have found other work, returns the rank that waited most in these, and its share.
    fn note(&mut self, elapsed: Duration, shares: Vec<f64>) -> Option<(usize, f64)> {
        let ranks = shares.len();
        self.0.push_back((elapsed, shares));
        if self.0.len() > OF {
            self.0.pop_front();
        }
        let found = |shares: &[f64]| shares.iter().any(|s| *s > MOST);
        let looks: Vec<_> = self.0.iter().filter(|(_, shares)| found(shares)).collect();
        if looks.len() < LOOKS {
            return None;
        }
        let all: f64 = looks.iter().map(|(elapsed, _)| elapsed.as_secs_f64()).sum();
        let waited = |rank: usize| looks.iter().map(|(e, s)| e.as_secs_f64() * s[rank]).sum::<f64>() / all;
        (0..ranks).map(|rank| (rank, waited(rank))).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// How long each thread of a process has waited for a core.
fn waited(pid: i32) -> Option<BTreeMap<i32, Duration>> {
    let wait = |thread: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        Some((thread, Duration::from_nanos(text.split(' ').nth(1)?.parse().ok()?)))
    };
    Some(threads(pid)?.into_iter().filter_map(wait).collect())
}

fn threads(pid: i32) -> Option<Vec<i32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Allows every thread of a process that is bound to `own` to run on `wider`. Returns how many there were.
fn widen(pid: i32, own: &[usize], wider: &[usize]) -> usize {
    if own == wider {
        return 0;
    }
    let (own, wider) = (set_of(own), set_of(wider));
    let one = |thread: &i32| {
        let thread = Pid::from_raw(*thread);
        // One that the program has bound itself is left alone, and so is one that has ended meanwhile.
        thread.is_some()
            && sched_getaffinity(thread).is_ok_and(|set| set == own)
            && sched_setaffinity(thread, &wider).is_ok()
    };
    let pass = || threads(pid).unwrap_or_default().iter().filter(|t| one(t)).count();
    (0..PASSES).map(|_| pass()).take_while(|n| *n > 0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A rank's second: how long its cores were busy, how long it ran, and how long each thread waited, in milliseconds. Returns the
    /// share that other work kept it waiting.
    fn second(busy: u64, ran: u64, waits: &[u64]) -> f64 {
        let ms = Duration::from_millis;
        let clocks = |ran: u64, waits: Vec<u64>| {
            let waited = (1..).zip(waits.into_iter().map(ms)).collect();
            Clocks { ran: ms(ran), waited: Some(waited) }
        };
        let earlier = clocks(5000, vec![70; waits.len()]);
        let later = clocks(5000 + ran, waits.iter().map(|w| 70 + w).collect());
        share(SECOND, others(ms(busy), &earlier, &later), &earlier, &later)
    }

    #[test]
    fn a_rank_is_kept_waiting_by_others_only() {
        // A busy process on the rank's only core.
        assert_eq!(second(1000, 500, &[480, 0]), 0.48);
        // Four busy threads on one core; a loader and the main thread that meet in bursts, on a core that is half idle.
        assert_eq!(second(1000, 1000, &[750, 750, 750, 750]), 0.0);
        assert_eq!(second(500, 495, &[250, 250]), 0.005);
        // Other work that runs while the rank sleeps.
        assert_eq!(second(950, 50, &[4]), 0.004);
        // Own threads compete, and a little is others'.
        assert_eq!(second(1000, 850, &[600, 600]), 0.15);
        // Two cores of which one is shared: the thread that waits longest counts, since the others wait for it.
        assert_eq!(second(2000, 1500, &[30, 470]), 0.47);
        // Many threads that wait a little each lose a little.
        assert_eq!(second(16_000, 15_000, &[60; 16]), 0.06);
    }

    #[test]
    fn only_threads_that_were_read_twice_count() {
        let clocks = |threads: Option<&[i32]>| Clocks {
            ran: SECOND,
            waited: threads.map(|all| all.iter().map(|t| (*t, SECOND * *t as u32)).collect()),
        };
        let of = |earlier, later| share(SECOND, SECOND, &clocks(earlier), &clocks(later));
        assert_eq!((of(None, Some(&[1][..])), of(Some(&[1]), None), of(Some(&[1]), Some(&[1, 2]))), (0.0, 0.0, 0.0));
    }

    /// Looks one second apart at two ranks, `.` without waits, `0` and `1` where that rank waited half the time. Returns the look
    /// that decided, and what it found.
    fn decide(looks: &str) -> Option<(usize, usize, f64)> {
        let mut history = History::default();
        looks.chars().enumerate().find_map(|(i, look)| {
            let waits = |rank: u32| if look.to_digit(10) == Some(rank) { 0.5 } else { 0.0 };
            let (rank, share) = history.note(SECOND, vec![waits(0), waits(1)])?;
            Some((i, rank, share))
        })
    }

    #[test]
    fn lasting_waits_count_and_a_blip_does_not() {
        assert_eq!(decide(".000"), Some((3, 0, 0.5)));
        assert_eq!(decide("....0.....11....0...1...."), None);
        assert_eq!(decide("..0.0.1"), Some((6, 0, 1.0 / 3.0)), "comes and goes, and moves among the cores");
        assert_eq!(decide("11.1"), Some((3, 1, 0.5)));
        assert_eq!(decide("........"), None);
    }

    #[test]
    fn the_user_reads_what_was_measured() {
        let found = |fixed, wider: [Vec<usize>; 2]| {
            let own = if fixed { [vec![0, 1], vec![2]] } else { [vec![0], vec![1]] };
            message(&Binding { own: own.into(), wider: wider.into(), fixed }, 0, 4, 0.476)
        };
        let start = "other work uses the cores of this job: rank 4 waited 48 % of the time for";
        let all = [vec![0, 1, 2], vec![0, 1, 2]];
        assert_eq!(
            found(false, all.clone()),
            format!("{start} core 0; ranks may now use all of cores 0-2, as with `--bind none`")
        );
        assert_eq!(
            found(true, all),
            format!("{start} cores 0-1; ranks stay bound, as `--bind cores` asks; `--bind none` would let them move")
        );
        assert_eq!(
            found(false, [vec![0, 2], vec![1, 3]]),
            format!(
                "{start} core 0; ranks may now use all cores of their NUMA node; with `--bind none` they may use those of all nodes"
            )
        );
    }

    #[test]
    fn the_waits_of_threads_are_read() {
        let own = std::process::id() as i32;
        assert!(waited(own).is_some_and(|w| w.contains_key(&own)) && waited(-1).is_none());
    }

    #[test]
    fn threads_that_have_bound_themselves_are_left_alone() {
        let cores = crate::cores::available();
        let [first, second, ..] = *cores else { return println!("skipped: one core") };
        let (bound, done) = (std::sync::Barrier::new(3), std::sync::Barrier::new(3));
        let on = &|core: usize| {
            sched_setaffinity(None, &set_of(&[core])).unwrap();
            bound.wait();
            done.wait();
            sched_getaffinity(None).unwrap()
        };
        std::thread::scope(|scope| {
            let [one, other] = [first, second].map(|core| scope.spawn(move || on(core)));
            bound.wait();
            let pid = std::process::id() as i32;
            assert_eq!(widen(pid, &[first], &[first, second]), 1);
            assert_eq!(widen(pid, &[first], &[first, second]), 0);
            assert_eq!(widen(pid, &[second], &[second]), 0);
            done.wait();
            assert!(one.join().unwrap() == set_of(&[first, second]) && other.join().unwrap() == set_of(&[second]));
        });
    }
}
