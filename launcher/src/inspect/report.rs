//! `oflow report`: prints the report of a job again, or compares two.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use oflow::Report;
use oflow::text::tail;
use oflow::trace::Split;
use serde_json::json;

use super::{refused, show};
use crate::Failed;

/// Name of a report in the folder of a job's logs.
pub const REPORT_FILE: &str = "report.json";

/// Largest report that is read, in bytes.
const MOST: u64 = 256 << 20;

/// Lines of the comparison.
const LINES: usize = 12;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    let path = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf));
    command
        .arg(
            path("report")
                .required(true)
                .value_name("PATH")
                .help("Folder that `oflaunch --report --log-dir` wrote, or its file report.json"),
        )
        .arg(
            path("compare")
                .long("compare")
                .value_name("OTHER")
                .help("Print what differs from another report: steps, their parts, kernels and boxings by line"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let missing = || Failed::new("an argument is missing");
    let report = read(matches.get_one::<PathBuf>("report").ok_or_else(missing)?)?;
    let json = matches.get_flag("json");
    match matches.get_one::<PathBuf>("compare") {
        None if json => show(&format!("{:#}\n", as_json(&report)?)),
        None => show(&format!("{report}\n")),
        Some(other) => {
            let comparison = Comparison::of(&report, &read(other)?);
            if json { show(&format!("{:#}\n", comparison.to_json())) } else { show(&comparison.to_text()) }
        }
    }
}

fn read(path: &Path) -> Result<Report, Failed> {
    let file = if path.is_dir() { path.join(REPORT_FILE) } else { path.to_path_buf() };
    let text = oflow_files::text(&file, MOST).map_err(refused)?;
    Report::from_json(&text).map_err(|e| Failed::new(format!("{}: {e}", file.display())))
}

/// The report with its advice and summary.
fn as_json(report: &Report) -> Result<serde_json::Value, Failed> {
    let mut all: serde_json::Value = serde_json::from_str(&report.to_json())
        .map_err(|e| Failed::new(format!("the report cannot be written: {e}")))?;
    all["summary"] = json!(report.summary());
    all["advice"] = json!(report.advice());
    Ok(all)
}

/// One number of both reports.
struct Pair {
    name: String,
    before: f64,
    after: f64,
}

impl Pair {
    fn change(&self) -> f64 {
        self.after - self.before
    }
}

/// Two reports: the other one is the earlier.
struct Comparison {
    /// Milliseconds of a step and of its parts.
    step: Vec<Pair>,
    /// Milliseconds of a step by line, of kernels and of boxings, the largest change first.
    work: Vec<Pair>,
    boxings: Vec<Pair>,
    /// Bytes sent in a step.
    bytes: Pair,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// A part of a step, in the mean of the ranks.
fn part(report: &Report, of: fn(&Split) -> u64) -> f64 {
    let all: Vec<u64> = report.times.iter().filter(|t| t.steps > 0).map(|t| of(&t.step)).collect();
    all.iter().map(|ns| ms(*ns)).sum::<f64>() / all.len().max(1) as f64
}

fn by_line(report: &Report) -> (BTreeMap<String, f64>, BTreeMap<String, f64>) {
    let (mut work, mut boxings) = (BTreeMap::new(), BTreeMap::new());
    let ranks = report.times.iter().filter(|t| t.steps > 0).count().max(1) as f64;
    for time in report.times.iter().filter(|t| t.steps > 0) {
        for w in &time.work {
            let name = format!("{} at {}:{}", w.op, w.file, w.line);
            *work.entry(name).or_insert(0.0) += ms(w.ns) / time.steps as f64 / ranks;
        }
    }
    let steps = report.steps().max(1) as f64;
    for l in &report.lines {
        let name = format!("{} at {}:{}", l.op, l.file, l.line);
        *boxings.entry(name).or_insert(0.0) += l.measured.map_or(0.0, |m| ms(m.total_ns)) / steps;
    }
    (work, boxings)
}

fn pairs(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> Vec<Pair> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |all: &BTreeMap<String, f64>, name: &String| all.get(name).copied().unwrap_or(0.0);
    let mut all: Vec<Pair> = names
        .into_iter()
        .map(|name| Pair { name: name.clone(), before: of(before, name), after: of(after, name) })
        .collect();
    all.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    all
}

impl Comparison {
    fn of(report: &Report, other: &Report) -> Comparison {
        let both = |name: &str, of: fn(&Split) -> u64| Pair {
            name: name.to_string(),
            before: part(other, of),
            after: part(report, of),
        };
        let whole = Pair { name: "a step".into(), before: ms(other.step_ns()), after: ms(report.step_ns()) };
        let step = vec![
            whole,
            both("compute", |s| s.compute),
            both("communication", |s| s.communication),
            both("late ranks", |s| s.late_ranks),
            both("data", |s| s.data),
            both("checkpoints", |s| s.checkpoint),
            both("rest", Split::rest),
        ];
        let (before, after) = (by_line(other), by_line(report));
        let sent = |r: &Report| r.bytes() as f64 / r.steps().max(1) as f64;
        Comparison {
            step,
            work: pairs(&before.0, &after.0),
            boxings: pairs(&before.1, &after.1),
            bytes: Pair { name: "bytes sent".into(), before: sent(other), after: sent(report) },
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let list = |pairs: &[Pair]| {
            json!(
                pairs.iter().map(|p| json!({"name": p.name, "before": p.before, "after": p.after})).collect::<Vec<_>>()
            )
        };
        json!({
            "step_ms": list(&self.step),
            "kernels_ms": list(&self.work),
            "boxings_ms": list(&self.boxings),
            "bytes_a_step": {"before": self.bytes.before, "after": self.bytes.after},
        })
    }

    fn to_text(&self) -> String {
        let head = |title: &str| format!("{title:<60} {:>9} {:>9} {:>9} {:>8}\n", "before", "after", "change", "");
        let line = |p: &Pair| {
            let name = tail(&p.name, 60);
            let share = match p.before {
                b if b > 0.0 && p.after < 10.0 * b => format!("{:+.1} %", p.change() / b * 100.0),
                b if b > 0.0 => format!("x {:.0}", (p.after / b).min(999_999.0)),
                _ => "new".to_string(),
            };
            format!("{name:<60} {:>9.3} {:>9.3} {:>+9.3} {share:>8}\n", p.before, p.after, p.change())
        };
        let mut text = head("ms of a step");
        text.extend(self.step.iter().filter(|p| p.before != 0.0 || p.after != 0.0).map(line));
        let bytes =
            Pair { name: "MB sent a step".into(), before: self.bytes.before / 1e6, after: self.bytes.after / 1e6 };
        text += &line(&bytes);
        for (title, pairs) in
            [("kernels by line, ms of a step", &self.work), ("boxings by line, ms of a step", &self.boxings)]
        {
            let changed: Vec<&Pair> = pairs.iter().filter(|p| p.before != p.after).take(LINES).collect();
            if !changed.is_empty() {
                text += "\n";
                text += &head(title);
                text.extend(changed.into_iter().map(line));
            }
        }
        text
    }
}
