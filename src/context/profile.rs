//! Profiles of a part of a program: [`profile`].

use super::rank::here;
use super::timeline::Timeline;
use crate::error::{CallSite, Result};
use crate::trace::{Busy, Session, Totals};
use oflow_base::text::{short_path, tail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of a table, and characters of their names.
const ROWS: usize = 12;
const NAME: usize = 62;

/// A profile that is being taken; made by [`Profiler::start`].
#[must_use = "`stop` ends the profile and returns it"]
pub struct Profiler {
    /// Ended before the results are read.
    session: Session,
    timeline: Option<Timeline>,
    totals: Arc<Mutex<Totals>>,
    rank: usize,
    world: usize,
}

impl Profiler {
    /// Begins a profile of what the threads of this rank do, at most until the profiler is dropped.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start() -> Result<Profiler> {
        let ctx = here();
        let totals = Arc::new(Mutex::new(Totals::default()));
        let session = Session::start(crate::trace::owner(), 0..u64::MAX, totals.clone())?;
        Ok(Profiler { session, timeline: None, totals, rank: ctx.rank(), world: ctx.world() })
    }

    /// Begins a profile, and writes its timeline to `rank-N.pftrace` in a folder, N being the number of this rank. It can be opened in
    /// <https://ui.perfetto.dev>; the files of several ranks one after the other are one timeline. A folder that is not there is made.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn start_with_timeline(folder: impl AsRef<Path>) -> Result<Profiler> {
        let ctx = here();
        let mut profiler = Profiler::start()?;
        profiler.timeline = Some(Timeline::in_folder(&ctx.timeline_of(crate::trace::owner()), folder.as_ref())?);
        Ok(profiler)
    }

    /// Ends the profile. The boxings that were issued before are in it.
    ///
    /// # Errors
    /// If work of this rank has failed, or the timeline could not be written.
    pub fn stop(self) -> Result<Profile> {
        // What streams have not finished yet belongs to the profile.
        here().quiesce()?;
        let Profiler { session, timeline, totals, rank, world } = self;
        drop(session);
        let timeline = timeline.map(Timeline::finish).transpose()?;
        let totals = std::mem::take(&mut *totals.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Profile { totals, timeline, rank, world })
    }
}

/// Sums over what a rank did, by op, line and name scope. Prints as tables.
pub struct Profile {
    totals: Totals,
    timeline: Option<(PathBuf, Option<String>)>,
    rank: usize,
    world: usize,
}

impl Profile {
    /// Returns the sums.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the file of the timeline, if one was written.
    pub fn timeline(&self) -> Option<&Path> {
        self.timeline.as_ref().map(|(path, _)| path.as_path())
    }
}

/// Takes a profile of what the threads of this rank do in a closure: which ops, lines and modules its time goes to, and how its steps split
/// into computing, communication and waiting. Each rank has its own. While no profile is taken it costs nothing; while one is, a call of an
/// op costs some 0.2 µs more.
///
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let x = randn([64, 64], Device::Cpu)?;
/// let (y, profile) = oflow::profile(|| x.matmul(&x)?.relu())?;
/// assert_eq!(y.shape(), [64, 64]);
/// let kernels: u64 = profile.totals().of_kind("kernel").map(|(_, _, busy)| busy.count).sum();
/// assert_eq!(kernels, 2);
/// println!("{profile}");
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// That of the closure, and those of [`Profiler`].
pub fn profile<R>(body: impl FnOnce() -> Result<R>) -> Result<(R, Profile)> {
    let profiler = Profiler::start()?;
    let result = body()?;
    Ok((result, profiler.stop()?))
}

/// An op with its line, in the width of a name: a long path is cut, and the op is not.
fn at_line(op: &str, site: CallSite) -> String {
    let room = NAME.saturating_sub(op.chars().count() + 4);
    let mut place = site.to_string();
    if place.chars().count() > room {
        let path = format!("{}:{}", site.file, site.line);
        place = place.replacen(&path, &format!("{}:{}", short_path(site.file), site.line), 1);
    }
    format!("{op} at {}", tail(&place, room))
}

/// Nanoseconds in a unit that fits, in eight columns.
fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        n if n < 1e4 => format!("{:>5.2} us", n / 1e3),
        n if n < 1e6 => format!("{:>5.1} us", n / 1e3),
        n if n < 1e9 => format!("{:>5.1} ms", n / 1e6),
        n => format!("{:>6.2} s", n / 1e9),
    }
}

/// Rows with equal keys as one, the largest first.
fn summed<K: Ord>(rows: impl Iterator<Item = (K, Busy)>) -> Vec<(K, Busy)> {
    let mut sums: BTreeMap<K, Busy> = BTreeMap::new();
    for (key, busy) in rows {
        let sum = sums.entry(key).or_default();
        sum.count += busy.count;
        sum.ns += busy.ns;
    }
    let mut sums: Vec<(K, Busy)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, busy)| std::cmp::Reverse(busy.ns));
    sums
}

fn table(f: &mut fmt::Formatter<'_>, title: &str, rows: &[(String, Busy)], whole: u64) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title:<NAME$} {:>8} {:>9} {:>9} {:>5}", "count", "total", "each", "share")?;
    for (name, busy) in rows.iter().take(ROWS) {
        let share = busy.ns as f64 * 100.0 / whole.max(1) as f64;
        let each = time(busy.ns / busy.count.max(1));
        writeln!(f, "{:<NAME$} {:>8} {:>9} {each:>9} {share:>4.1}%", tail(name, NAME), busy.count, time(busy.ns))?;
    }
    let rest: Vec<&Busy> = rows.iter().skip(ROWS).map(|(_, busy)| busy).collect();
    if !rest.is_empty() {
        let (count, ns) = rest.iter().fold((0, 0), |(c, n), b| (c + b.count, n + b.ns));
        let share = ns as f64 * 100.0 / whole.max(1) as f64;
        let name = format!("{} more", rest.len());
        writeln!(f, "{name:<NAME$} {count:>8} {:>9} {:>9} {share:>4.1}%", time(ns), "")?;
    }
    Ok(())
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = &self.totals;
        write!(f, "profile of rank {} of {}", self.rank, self.world)?;
        match t.step() {
            None => writeln!(f, ", no step ended in it")?,
            Some(s) => {
                writeln!(f, ", {} steps, median {}", t.steps(), time(t.median_step()).trim_start())?;
                let parts = [
                    ("compute", s.compute),
                    ("communication", s.communication),
                    ("late ranks", s.late_ranks),
                    ("data", s.data),
                    ("saving", s.checkpoint),
                    ("rest", s.rest()),
                ];
                let part = |(name, ns): &(&str, u64)| match *ns as f64 * 100.0 / s.whole.max(1) as f64 {
                    p if p < 10.0 => format!("{name} {p:.1} %"),
                    p => format!("{name} {p:.0} %"),
                };
                writeln!(f, "a step: {}", parts.iter().map(part).collect::<Vec<_>>().join(", "))?;
            }
        }
        let sums = |kind: &'static str, name: fn(&str, CallSite) -> String| {
            summed(t.of_kind(kind).map(|(op, site, busy)| (name(op, site), busy)))
        };
        let whole = |rows: &[(String, Busy)]| rows.iter().map(|(_, b)| b.ns).sum::<u64>();
        let by_op = |op: &str, _: CallSite| op.to_string();
        let by_module = |_: &str, site: CallSite| match site.scope.path() {
            "" => "(outside of all)".to_string(),
            path => path.to_string(),
        };
        let kernels = sums("kernel", by_op);
        let all = whole(&kernels);
        table(f, "kernels by op", &kernels, all)?;
        let modules = sums("kernel", by_module);
        if modules.len() > 1 {
            table(f, "kernels by name scope", &modules, all)?;
        }
        table(f, "kernels by line", &sums("kernel", at_line), all)?;
        let boxings = sums("boxing", at_line);
        table(f, "boxings by line, without waiting for late ranks", &boxings, whole(&boxings))?;
        for (kind, title) in [("data", "data"), ("checkpoint", "checkpoints"), ("span", "spans of the program")] {
            let rows = sums(kind, at_line);
            table(f, title, &rows, whole(&rows))?;
        }
        if t.dropped() > 0 {
            writeln!(f, "\n{} events were dropped: the sums are too small", t.dropped())?;
        }
        if let Some((path, missing)) = &self.timeline {
            writeln!(f, "\ntimeline: {} (open it in https://ui.perfetto.dev)", path.display())?;
            if let Some(missing) = missing {
                writeln!(f, "{missing}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
