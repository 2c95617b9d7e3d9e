//! `oflow timeline`: steps of a timeline that `oflaunch --trace` has recorded, as a picture or as lines of text.
//!
//! `packets.rs` takes a trace file apart, `read.rs` makes slices of it, `lay.rs` lays them out as a picture, and `text.rs` prints a line of
//! characters for each rank. A file is read twice, so that only the slices of the steps that are shown are held.

mod lay;
mod packets;
mod read;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Arg, ArgMatches, Command, value_parser};

pub(crate) use packets::Packets;

use crate::Failed;
use crate::cores::runs;
use crate::inspect::show;
use crate::picture::Output;
use crate::terminal::visible;
use read::{Kind, Tracks};

/// Ranks that are drawn where none are named.
const FIRST_RANKS: usize = 8;
/// Steps that are drawn at most.
const MOST_STEPS: u64 = 100;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("files")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .value_name("PATH")
                .help("Folder that `oflaunch --trace` wrote, or timelines of it, of all hosts"),
        )
        .arg(
            Arg::new("step")
                .long("step")
                .value_parser(steps)
                .value_name("N|A..B")
                .help("Steps to show; without it the one of median length"),
        )
        .arg(
            Arg::new("ranks")
                .long("ranks")
                .value_delimiter(',')
                .value_parser(value_parser!(usize))
                .value_name("RANK,…")
                .help("Ranks to show; without it the first 8"),
        )
        .arg(Output::argument())
        .arg(Output::side("width", "Width of the picture"))
        .after_help(
            "Examples:
  oflow timeline run
  oflow timeline run --step 12 -o step.svg
  oflow timeline run/job.pftrace run/node-1.pftrace --step 10..12 --ranks 0,8 -o steps.png

In a picture in SVG each box says its name, time and line where the pointer rests on it. For a closer look open the file in
https://ui.perfetto.dev.",
        )
}

/// One step, or a range without its end.
fn steps(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("a step such as 12, or a range of at most {MOST_STEPS} such as 10..12");
    let number = |t: &str| t.parse::<u64>().map_err(|_| wrong());
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (number(from)?, number(to)?),
        None => (number(text)?, number(text)?.saturating_add(1)),
    };
    if from < to && to - from <= MOST_STEPS { Ok((from, to)) } else { Err(wrong()) }
}

/// The steps of a rank: number, begin, end.
type Steps = Vec<(u64, u64, u64)>;

/// Facts that the first reading finds.
#[derive(Default)]
struct Overview {
    tracks: Tracks,
    steps: BTreeMap<usize, Steps>,
    /// From the first begin to the last end of all slices.
    whole: Option<(u64, u64)>,
}

/// The part of a timeline that is shown.
struct Part {
    title: String,
    /// Begin and end, in nanoseconds on the clock of the trace.
    window: (u64, u64),
    /// Ranks with their names.
    ranks: Vec<(usize, String)>,
    /// The slices by rank and track.
    slices: BTreeMap<(usize, u64), Vec<read::Slice>>,
    tracks: Tracks,
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let output = Output::asked(matches)?;
    let asked: Vec<&PathBuf> = matches.get_many("files").into_iter().flatten().collect();
    let mut files = asked.iter().map(|path| files_of(path)).collect::<Result<Vec<_>, _>>()?.concat();
    // Slices of a file that is named twice would be counted twice.
    let same = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let mut seen = BTreeSet::new();
    files.retain(|path| seen.insert(same(path)));
    let mut all = Overview::default();
    for file in &files {
        read::scan(file, &mut all.tracks, |slice| {
            let (from, to) = all.whole.unwrap_or((u64::MAX, 0));
            all.whole = Some((from.min(slice.begin), to.max(slice.end)));
            if slice.kind == Kind::Step
                && let Some(number) = slice.name.strip_prefix("step ").and_then(|n| n.parse().ok())
                // A range has an end.
                && number < u64::MAX
            {
                all.steps.entry(slice.rank).or_default().push((number, slice.begin, slice.end));
            }
            Ok(())
        })?;
    }
    if all.tracks.cut > 0 {
        eprintln!("oflow: {} files end within an event: the rank was killed, or still runs", all.tracks.cut);
    }
    let ranks = ranks(&all.tracks, matches.get_many::<usize>("ranks"))?;
    let (what, window) = window(&all, &ranks, matches.get_one::<(u64, u64)>("step").copied())?;
    let numbers: Vec<usize> = ranks.iter().map(|(n, _)| *n).collect();
    let slices = read::within(&files, &numbers, window)?;
    let name = asked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(" ");
    let left = all.tracks.ranks.len() - ranks.len();
    let more = if left > 0 { format!("; {left} more ranks are not shown (--ranks)") } else { String::new() };
    let title = format!("{what}{more} ({})", visible(&name));
    let part = Part { title, window, ranks, slices, tracks: all.tracks };
    match output {
        Some(output) => output.write(&lay::draw(&part, matches.get_one::<u32>("width").copied())),
        None => show(&text::draw(&part, &all.steps)),
    }
}

/// A file itself, or the timelines in a folder: the joined ones of each host, or those of single ranks if a job writes them now.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Failed> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let failed = |e: std::io::Error| Failed::new(format!("cannot read {}: {e}", path.display()));
    let (mut joined, mut single) = (vec![], vec![]);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_none_or(|e| e != "pftrace") {
            continue;
        }
        let written = file.metadata().and_then(|m| m.modified()).map_err(failed)?;
        let of_rank = file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("rank-"));
        if of_rank { single.push((written, file)) } else { joined.push((written, file)) }
    }
    // Older ones of single ranks are left from a job that was killed.
    let newest = |files: &[(SystemTime, PathBuf)]| files.iter().map(|(written, _)| *written).max();
    let chosen = if newest(&single) > newest(&joined) { single } else { joined };
    let mut files: Vec<PathBuf> = chosen.into_iter().map(|(_, file)| file).collect();
    files.sort();
    if files.is_empty() {
        return Err(Failed::new(format!(
            "{} has no timeline\n  help: `oflaunch --trace {0} …` writes {0}/job.pftrace",
            path.display()
        )));
    }
    Ok(files)
}

/// The ranks to show.
fn ranks<'a>(tracks: &Tracks, asked: Option<impl Iterator<Item = &'a usize>>) -> Result<Vec<(usize, String)>, Failed> {
    let Some(asked) = asked else {
        return Ok(tracks.ranks.iter().take(FIRST_RANKS).map(|(n, name)| (*n, name.clone())).collect());
    };
    let mut numbers: Vec<usize> = asked.copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let named = |n: usize| match tracks.ranks.get(&n) {
        Some(name) => Ok((n, name.clone())),
        None => {
            Err(Failed::new(format!("the timeline has no rank {n}: it has {}", spans(tracks.ranks.keys().copied()))))
        }
    };
    numbers.into_iter().map(named).collect()
}

/// Numbers in ascending order as a text: `0 to 3, 8`.
fn spans(numbers: impl Iterator<Item = usize>) -> String {
    runs(numbers, " to ").join(", ")
}

/// The time to show, and what it is. Steps of a job that was started again count from its last start.
fn window(
    all: &Overview,
    ranks: &[(usize, String)],
    asked: Option<(u64, u64)>,
) -> Result<(String, (u64, u64)), Failed> {
    let shown = || ranks.iter().filter_map(|(n, _)| all.steps.get(n));
    let Some(first) = shown().find(|steps| !steps.is_empty()) else {
        if asked.is_some() {
            return Err(Failed::new(
                "no step ended in this timeline\n  help: leave --step out, or let the program call `oflow::mark_step()`",
            ));
        }
        let (from, to) = all.whole.unwrap_or((0, 1));
        let window = at_least_one(from, to);
        return Ok((format!("{} in all, without steps", time(window.1 - window.0)), window));
    };
    let (from, to) = asked.unwrap_or_else(|| {
        let n = median_step(first);
        (n, n + 1)
    });
    let mut window: Option<(u64, u64)> = None;
    for steps in shown() {
        // The last slice of a number is that of the last start.
        for number in from..to {
            if let Some((_, begin, end)) = steps.iter().rev().find(|(n, ..)| *n == number) {
                let (a, b) = window.unwrap_or((u64::MAX, 0));
                window = Some((a.min(*begin), b.max(*end)));
            }
        }
    }
    let what = if to - from == 1 { format!("step {from}") } else { format!("steps {from} to {}", to - 1) };
    match window {
        Some((a, b)) => Ok((format!("{what}, {}", time(b - a)), at_least_one(a, b))),
        None => Err(Failed::new(format!(
            "{what} is not in this timeline\n  help: it has {}",
            spans(first.iter().map(|(n, ..)| usize::try_from(*n).unwrap_or(usize::MAX)))
        ))),
    }
}

/// A window of at least a nanosecond.
fn at_least_one(from: u64, to: u64) -> (u64, u64) {
    let from = from.min(u64::MAX - 1);
    (from, to.max(from + 1))
}

/// The number of the step of median length. The first one, which also makes what later ones find, is left out if there are others.
fn median_step(steps: &Steps) -> u64 {
    let mut later: Vec<&(u64, u64, u64)> = steps.iter().skip(usize::from(steps.len() > 1)).collect();
    later.sort_by_key(|(_, begin, end)| end - begin);
    later.get(later.len() / 2).map_or(0, |(n, ..)| *n)
}

/// Nanoseconds as people read them: `812 ns`, `14.6 ms`.
fn time(ns: u64) -> String {
    let scaled = |by: f64, unit: &str| {
        let value = ns as f64 / by;
        let digits = if value < 10.0 { 2 } else { 1 };
        format!("{value:.digits$} {unit}")
    };
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => scaled(1e3, "us"),
        1_000_000..1_000_000_000 => scaled(1e6, "ms"),
        _ => scaled(1e9, "s"),
    }
}

#[cfg(test)]
mod tests;
