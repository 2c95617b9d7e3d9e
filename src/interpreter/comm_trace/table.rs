//! A report as text: the summary, then tables of 100 columns.

use super::rank_time::{RankTime, WorkLine};
use super::report::{Report, ReportLine, sum};
use crate::memory::write_tables;
use oflow_base::text::{bytes, tail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Width of the text.
const WIDTH: usize = 100;
/// Width of the numbers in the table of communication.
const NUMBERS: usize = 49;
/// Rows of the other tables.
const ROWS: usize = 12;
/// Ranks of the table of ranks.
const RANKS: usize = 16;

/// One row of the table: count, bytes, predicted (ps), measured (ns), median (ns).
struct Row(u64, u64, Option<u64>, Option<u64>, Option<u64>);

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |t: Option<u64>, unit: f64| match t.map(|t| t as f64 / unit) {
            None => "-".to_string(),
            Some(us) if us < 1e6 => format!("{us:.1}"),
            Some(us) => format!("{:.2}s", us / 1e6),
        };
        let Row(count, bytes, predicted, measured, median) = *self;
        let (predicted, measured, median) = (us(predicted, 1e6), us(measured, 1e3), us(median, 1e3));
        write!(f, "{count:>6} {bytes:>12} {predicted:>9} {measured:>9} {median:>8}")
    }
}

/// The lines of a text of at most that many columns. Words that are longer are cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        while let Some(line) = lines.last_mut() {
            let used = line.chars().count();
            let room = width.saturating_sub(used + usize::from(used > 0));
            if word.len() <= room {
                line.extend((used > 0).then_some(' '));
                line.extend(word);
                break;
            }
            if used == 0 {
                line.extend(word.drain(..width.max(1)));
            }
            lines.push(String::new());
        }
    }
    lines
}

/// A row with its text, which goes on below its own beginning.
fn row(f: &mut fmt::Formatter<'_>, numbers: &Row, text: &str) -> fmt::Result {
    let indent = text.len() - text.trim_start().len();
    for (n, line) in wrapped(text.trim_start(), WIDTH - NUMBERS - indent).iter().enumerate() {
        match n {
            0 => write!(f, "{numbers} {:indent$}{line}", "")?,
            _ => write!(f, "\n{:NUMBERS$}{:indent$}{line}", "", "")?,
        }
    }
    Ok(())
}

fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

/// The ranks and what a step consists of on each, in milliseconds.
fn ranks(f: &mut fmt::Formatter<'_>, times: &[RankTime]) -> fmt::Result {
    let head = ["step ms", "compute", "comm", "late", "data", "ckpt", "rest"].map(|h| format!("{h:>9}")).concat();
    writeln!(f, "\n{:>5} {:<13}{head} {:>7} {:>9}", "rank", "host", "no cpu", "peak MB")?;
    let mut shown: Vec<&RankTime> = times.iter().collect();
    if shown.len() > RANKS {
        // Those that the others wait for, and those that wait longest.
        shown.sort_by_key(|t| t.step.late_ranks);
        let last = shown.split_off(shown.len() - RANKS / 2);
        shown.truncate(RANKS / 2);
        shown.extend(last);
    }
    for t in &shown {
        let s = &t.step;
        let parts = [t.median_ns, s.compute, s.communication, s.late_ranks, s.data, s.checkpoint, s.rest()];
        let parts = parts.map(|ns| format!("{:>9}", ms(ns))).concat();
        let host: String = t.host.chars().filter(|c| !c.is_control()).take(12).collect();
        let peak = t.memory.iter().map(|d| d.stats.peak).max().map_or(0.0, |b| b as f64 / 1e6);
        writeln!(f, "{:>5} {host:<13}{parts} {:>5.1} % {peak:>9.1}", t.rank, t.queued * 100.0)?;
    }
    match times.len() - shown.len() {
        0 => Ok(()),
        n => writeln!(f, "      {n} more; these wait least, and most, for late ranks"),
    }
}

/// Time of kernels by a name, in a step.
fn work(f: &mut fmt::Formatter<'_>, title: &str, times: &[RankTime], name: fn(&WorkLine) -> String) -> fmt::Result {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (mut all, mut count) = (0, 0);
    for t in times.iter().filter(|t| t.steps > 0) {
        count += 1;
        all += t.works();
        for w in &t.work {
            let sum = sums.entry(name(w)).or_default();
            *sum = (sum.0 + w.count / t.steps, sum.1 + w.ns / t.steps);
        }
    }
    let mut sums: Vec<(String, (u64, u64))> = sums.into_iter().collect();
    if count == 0 || sums.len() < 2 {
        return Ok(());
    }
    sums.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
    writeln!(f, "\n{title:<71} {:>8} {:>9} {:>8}", "kernels", "ms/step", "share")?;
    for (name, (kernels, ns)) in sums.iter().take(ROWS) {
        let name = tail(name, 71);
        let share = *ns as f64 * 100.0 / all.max(1) as f64;
        writeln!(f, "{name:<71} {:>8} {:>9} {share:>6.1} %", kernels / count, ms(ns / count))?;
    }
    match sums.len().saturating_sub(ROWS) {
        0 => Ok(()),
        n => writeln!(f, "{n} more"),
    }
}

/// The boxings of a line of the program in one direction.
fn boxing(l: &ReportLine, several_places: bool, several_links: bool) -> String {
    let mut text = format!("  {} {}", if l.backward { "backward" } else { "forward" }, l.op);
    if !l.tensor.is_empty() {
        text += &format!(" {} {} -> {}", l.tensor, l.from, l.to);
    }
    if several_places && !l.on.is_empty() {
        text += &format!(" (from {})", l.on);
    }
    text += &format!(": {}", l.steps.join(", "));
    if several_links {
        let links: Vec<String> = l.links.iter().map(|(k, b)| format!("{k} {b} B")).collect();
        if !links.is_empty() {
            text += &format!("; {}", links.join(", "));
        }
    }
    text
}

impl Report {
    /// The ranks that the report is of.
    fn who(&self) -> String {
        let all = self.ranks.len() == self.world && self.world > 1;
        let ranks: Vec<String> = self.ranks.iter().take(16).map(|r| r.to_string()).collect();
        match (all, self.ranks.len()) {
            (true, n) => format!("all {n} ranks"),
            (false, 1) => format!("rank {} of {}", ranks[0], self.world),
            (false, n) => {
                let more = if n > 16 { format!(" and {} more", n - 16) } else { String::new() };
                format!("ranks {}{more} of {}", ranks.join(", "), self.world)
            }
        }
    }

    fn communication(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "communication by line of the program, {}", self.who())?;
        if self.dropped > 0 {
            writeln!(f, "{} communication records were dropped before: the sums are too small", self.dropped)?;
        }
        if self.lines.is_empty() {
            return write!(f, "none");
        }
        let meshes: BTreeSet<&str> = self.lines.iter().map(|l| l.on.as_str()).filter(|on| !on.is_empty()).collect();
        let several_links = self.bytes_by_link().len() > 1;
        writeln!(
            f,
            "{:>6} {:>12} {:>9} {:>9} {:>8}  (times in us, or in s)",
            "count", "bytes", "predicted", "measured", "median"
        )?;
        for place in self.lines.chunk_by(|a, b| (&a.file, a.line, &a.scope) == (&b.file, b.line, &b.scope)) {
            let predicted = sum(place.iter().map(|l| l.predicted_ps));
            let measured = sum(place.iter().map(|l| l.measured.map(|m| m.total_ns)));
            let count = sum(place.iter().map(|l| Some(l.count))).unwrap_or(0);
            let bytes = sum(place.iter().map(|l| Some(l.bytes))).unwrap_or(0);
            let of = if place[0].scope.is_empty() { "" } else { " in " };
            let text = format!("{}:{}{of}{}", place[0].file, place[0].line, place[0].scope);
            row(f, &Row(count, bytes, predicted, measured, None), &text)?;
            writeln!(f)?;
            for l in place {
                let (total, median) = (l.measured.map(|m| m.total_ns), l.measured.map(|m| m.median_ns));
                row(
                    f,
                    &Row(l.count, l.bytes, l.predicted_ps, total, median),
                    &boxing(l, meshes.len() > 1, several_links),
                )?;
                writeln!(f)?;
            }
        }
        let links: Vec<String> = self.bytes_by_link().iter().map(|(k, b)| format!("{b} B over {k}")).collect();
        let predicted = sum(self.lines.iter().map(|l| l.predicted_ps));
        let measured = sum(self.lines.iter().map(|l| l.measured.map(|m| m.total_ns)));
        let mut text = "in all".to_string();
        if !links.is_empty() {
            text += &format!(": {}", links.join(", "));
        }
        if let Some(ratio) = self.ratio() {
            text += &format!("; by the medians {ratio:.2} times the predicted");
        }
        row(f, &Row(self.count(), self.bytes(), predicted, measured, None), &text)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.times.is_empty() {
            self.summary().iter().try_for_each(|line| writeln!(f, "{line}"))?;
            ranks(f, &self.times)?;
            work(f, "compute by name scope", &self.times, |w| match w.scope.as_str() {
                "" => "(outside of all)".to_string(),
                scope => scope.to_string(),
            })?;
            work(f, "compute by line", &self.times, |w| format!("{} at {}:{}", w.op, w.file, w.line))?;
            for (rank, of) in self.most_memory() {
                writeln!(f, "\nmemory of rank {rank} at the peak of {}, {}", bytes(of.stats.peak as u64), of.device)?;
                write_tables(f, &of.peak)?;
            }
            let dropped: u64 = self.times.iter().map(|t| t.dropped).sum();
            if dropped > 0 {
                writeln!(f, "{dropped} events were dropped: the times are too small")?;
            }
            let advice = self.advice();
            if !advice.is_empty() {
                writeln!(f, "\nworth changing")?;
            }
            for (n, a) in advice.iter().enumerate() {
                let gain = format!("{}. {} ms a step ({:.1} %): {}", n + 1, ms(a.gain_ns), a.share * 100.0, a.detail);
                wrapped(&gain, WIDTH).iter().try_for_each(|line| writeln!(f, "{line}"))?;
            }
            writeln!(f)?;
        }
        self.communication(f)?;
        // Those of inputs are among the advice.
        let hints = self.hints.iter().filter(|h| h.input.is_none());
        hints.into_iter().try_for_each(|h| {
            let text = format!("hint: {}:{}: {}: {}", h.file, h.line, h.call, h.advice);
            wrapped(&text, WIDTH).iter().try_for_each(|line| write!(f, "\n{line}"))
        })
    }
}
