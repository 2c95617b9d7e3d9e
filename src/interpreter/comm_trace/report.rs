//! Comm records added up by line of the program, and the time of the ranks: for people as text (`table.rs`), for programs as JSON.

use super::rank_time::RankTime;
use crate::boxing::{BoxingPlan, LinkKind};
use crate::error::{CallSite, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Equal boxings of one line of the program, added up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReportLine {
    /// Source file of the line.
    pub file: String,
    /// Line, from 1. In backward that of the forward call; for the gradient of a leaf, of the call of backward.
    pub line: u32,
    /// The [`name_scope`](crate::name_scope) of the call, as `blocks.3.attn`; empty outside of all.
    #[serde(default)]
    pub scope: String,
    /// The op that needed it; `gradient` for the complete gradient of a leaf, `to_global` or `to_vec` where the program
    /// asked for it.
    pub op: String,
    /// Whether it happened in backward.
    pub backward: bool,
    /// Type of the tensor, as `f32[8, 4]`; empty for a collective without a plan.
    pub tensor: String,
    /// The placement it came from.
    pub on: String,
    /// Layout before the boxing.
    pub from: String,
    /// Layout after the boxing, with the placement where that is another.
    pub to: String,
    /// Steps of the boxing, as `all-reduce(sum) along tp`.
    pub steps: Vec<String>,
    /// Number of boxings that the line stands for.
    pub count: u64,
    /// Bytes that all ranks together sent.
    pub bytes: u64,
    /// The bytes of boxings by kind of link.
    pub links: BTreeMap<LinkKind, u64>,
    /// Predicted time of all of them, in picoseconds; `None` for a collective without a plan.
    pub predicted_ps: Option<u64>,
    /// Measured time of all of them; `None` if no rank of the report had a part in them.
    pub measured: Option<Measured>,
}

/// Time from the last arrival of those that took part to the rank's end. Over several ranks: the median of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// How many were measured.
    pub count: u64,
    /// The median of the last ones, in nanoseconds.
    pub median_ns: u64,
    /// The sum, in nanoseconds.
    pub total_ns: u64,
}

/// A call that would cost less with another layout: of its result, which is dear to reduce, or of an input that lives longer than the call.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReportHint {
    /// Source file of the line.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Name scope of the call.
    pub scope: String,
    /// Name of the op.
    pub op: String,
    /// The call in short form.
    pub call: String,
    /// Layout to ask for, and its cost; empty where an input should lie otherwise.
    pub advice: String,
    /// Name of the input that should lie otherwise; none where the result should.
    pub input: Option<String>,
    /// Type of that input, as `f32[8, 4]`.
    pub tensor: String,
    /// The present layout.
    pub now: String,
    /// The better one.
    pub better: String,
    /// Predicted cost of the communication of a call and its gradients now, in picoseconds.
    pub taken_ps: u64,
    /// The same in the better layout.
    pub asked_ps: u64,
    /// Share of the call's work that a rank would do, of what it does now.
    pub work: f64,
    /// Bytes that a rank would hold more.
    pub more_bytes: i64,
    /// How often the call was made, as far as it was counted.
    pub calls: u64,
}

impl ReportHint {
    /// A hint for a call of an op.
    pub(in super::super) fn new(site: CallSite, op: &str, call: String) -> ReportHint {
        let (file, scope) = (site.file.to_string(), site.scope.path().to_string());
        ReportHint { file, line: site.line, scope, op: op.to_string(), call, work: 1.0, ..ReportHint::default() }
    }

    /// Whether both are about the same call.
    fn is_of(&self, other: &ReportHint) -> bool {
        let key = |h: &ReportHint| (h.file.clone(), h.line, h.scope.clone(), h.call.clone(), h.input.clone());
        key(self) == key(other)
    }
}

/// Communication of ranks, by line of the program. Prints as a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Number of ranks of the job.
    pub world: usize,
    /// The ranks that the report is of.
    pub ranks: Vec<usize>,
    /// In the order of the program's lines, forward before backward.
    pub lines: Vec<ReportLine>,
    /// Comm records that were dropped before the report was made: its sums are too small by so many.
    pub dropped: u64,
    /// Calls of the whole run that another layout would make cheaper, in the order of the program's lines.
    pub hints: Vec<ReportHint>,
    /// Where the time of the ranks went; empty where nobody asked for it.
    #[serde(default)]
    pub times: Vec<RankTime>,
}

/// Line, op, backward.
type LineKey = (CallSite, &'static str, bool);

impl ReportLine {
    pub(super) fn of_boxing(
        place: LineKey,
        plan: &BoxingPlan,
        links: BTreeMap<LinkKind, u64>,
        (count, predicted_ps): (u64, u64),
        measured: Option<Measured>,
    ) -> ReportLine {
        let (site, op, backward) = place;
        // A step prints as `what: before -> after`.
        let what = |s: String| s.rsplit_once(": ").map_or(s.clone(), |(what, _)| what.to_string());
        let moves = plan.src.placement != plan.dst.placement;
        ReportLine {
            file: site.file.to_string(),
            line: site.line,
            scope: site.scope.path().to_string(),
            op: op.to_string(),
            backward,
            tensor: format!("{}{:?}", plan.dtype, plan.shape.as_slice()),
            on: plan.src.placement.to_string(),
            from: plan.src.sbp.to_string(),
            to: if moves { plan.dst.to_string() } else { plan.dst.sbp.to_string() },
            steps: plan.steps.iter().map(|s| what(s.to_string())).collect(),
            count,
            bytes: links.values().sum::<u64>() * count,
            links: links.into_iter().map(|(k, b)| (k, b * count)).collect(),
            predicted_ps: Some(predicted_ps),
            measured,
        }
    }

    pub(super) fn of_collective(
        place: LineKey,
        (bytes, name): (u64, &str),
        count: u64,
        measured: Option<Measured>,
    ) -> ReportLine {
        let (site, op, backward) = place;
        let none = String::new;
        ReportLine {
            file: site.file.to_string(),
            line: site.line,
            scope: site.scope.path().to_string(),
            op: op.to_string(),
            backward,
            tensor: none(),
            on: none(),
            from: none(),
            to: none(),
            steps: vec![name.into()],
            count,
            bytes: bytes * count,
            links: BTreeMap::new(),
            predicted_ps: None,
            measured,
        }
    }

    /// Lines with equal keys tell of equal boxings.
    fn key(&self) -> impl Ord + use<> {
        let l = self.clone();
        ((l.file, l.line, l.scope, l.backward), (l.op, l.tensor, l.on, l.from, l.to, l.steps), l.predicted_ps.is_none())
    }

    /// Predicted and measured time of what was measured, in the same unit. Each counts with the median: one that was
    /// interrupted would outweigh many.
    pub(super) fn compared(&self) -> Option<(f64, f64)> {
        let (p, m) = (self.predicted_ps?, self.measured?);
        Some((p as f64 / 1e3 * m.count as f64 / self.count.max(1) as f64, m.median_ns as f64 * m.count as f64))
    }
}

impl Report {
    pub(super) fn new(
        world: usize,
        ranks: Vec<usize>,
        lines: Vec<ReportLine>,
        dropped: u64,
        mut hints: Vec<ReportHint>,
    ) -> Report {
        let join = |mut same: Vec<ReportLine>| {
            // Plans that were made anew: the one that ran most stands for the median.
            same.sort_by_key(|l| std::cmp::Reverse(l.count));
            let mut sum = same.remove(0);
            for l in same {
                sum.count = sum.count.saturating_add(l.count);
                sum.bytes = sum.bytes.saturating_add(l.bytes);
                l.links.iter().for_each(|(k, b)| add(sum.links.entry(*k).or_insert(0), *b));
                sum.predicted_ps = sum.predicted_ps.zip(l.predicted_ps).map(|(a, b)| a.saturating_add(b));
                sum.measured = match (sum.measured, l.measured) {
                    (Some(a), Some(b)) => {
                        let (count, total_ns) =
                            (a.count.saturating_add(b.count), a.total_ns.saturating_add(b.total_ns));
                        Some(Measured { count, total_ns, ..a })
                    }
                    (a, b) => a.or(b),
                };
            }
            sum
        };
        sort(&mut hints);
        Report { world, ranks, lines: grouped(lines, join), dropped, hints, times: vec![] }
    }

    /// One report of the reports of several ranks: bytes are of all ranks anyway, times become the median of the ranks.
    pub fn merge(reports: impl IntoIterator<Item = Report>) -> Report {
        let mut all = Report { world: 0, ranks: vec![], lines: vec![], dropped: 0, hints: vec![], times: vec![] };
        for r in reports {
            all.world = all.world.max(r.world);
            all.ranks.extend(r.ranks);
            all.lines.extend(r.lines);
            all.dropped = all.dropped.max(r.dropped);
            all.hints.extend(r.hints);
            all.times.extend(r.times);
        }
        sort(&mut all.hints);
        all.hints.dedup_by(|a, b| a.is_of(b));
        all.times.sort_by_key(|t| t.rank);
        all.ranks.sort_unstable();
        let join = |mut same: Vec<ReportLine>| {
            let times: Vec<Measured> = same.iter().filter_map(|l| l.measured).collect();
            let of = |f: fn(&Measured) -> u64| median(&mut times.iter().map(f).collect::<Vec<_>>());
            let measured = of(|m| m.median_ns).zip(of(|m| m.total_ns)).map(|(median_ns, total_ns)| Measured {
                count: times.iter().map(|m| m.count).max().unwrap_or(0),
                median_ns,
                total_ns,
            });
            // Ranks that ended early have seen less: the one that saw most tells counts and bytes.
            same.sort_by_key(|l| std::cmp::Reverse(l.count));
            ReportLine { measured, ..same.remove(0) }
        };
        all.lines = grouped(all.lines, join);
        all
    }

    /// Boxings (and collectives without a plan).
    pub fn count(&self) -> u64 {
        sum(self.lines.iter().map(|l| Some(l.count))).unwrap_or(0)
    }

    /// Bytes that all ranks together sent.
    pub fn bytes(&self) -> u64 {
        sum(self.lines.iter().map(|l| Some(l.bytes))).unwrap_or(0)
    }

    /// The same by kind of link; collectives without a plan are not in it.
    pub fn bytes_by_link(&self) -> BTreeMap<LinkKind, u64> {
        let mut sum = BTreeMap::new();
        for (kind, bytes) in self.lines.iter().flat_map(|l| &l.links) {
            add(sum.entry(*kind).or_insert(0), *bytes);
        }
        sum
    }

    /// Predicted time of all boxings.
    pub fn predicted(&self) -> Duration {
        Duration::from_nanos(sum(self.lines.iter().map(|l| l.predicted_ps)).unwrap_or(0) / 1000)
    }

    /// Measured time of all boxings.
    pub fn measured(&self) -> Duration {
        Duration::from_nanos(sum(self.lines.iter().map(|l| l.measured.map(|m| m.total_ns))).unwrap_or(0))
    }

    /// Measured over predicted time, of what has both; none if nothing has. Of equal boxings each counts as the median.
    pub fn ratio(&self) -> Option<f64> {
        let (p, m) = self.lines.iter().filter_map(|l| l.compared()).fold((0.0, 0.0), |(p, m), (a, b)| (p + a, m + b));
        (p > 0.0).then(|| m / p)
    }

    /// The report as JSON; [`from_json`](Self::from_json) reads it back.
    pub fn to_json(&self) -> String {
        // Plain data with string keys and finite numbers: there is nothing that could fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a report that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// When the text is not one.
    pub fn from_json(text: &str) -> Result<Report> {
        let report: Report = serde_json::from_str(text).map_err(|e| Error::parse("not a report").because(e))?;
        match report.times.iter().all(RankTime::is_plausible)
            && report.hints.iter().all(|h| (0.0..=1e6).contains(&h.work))
        {
            true => Ok(report),
            false => Err(Error::parse("not a report: it has times of more than ten days, or shares that are none")),
        }
    }
}

/// In the order of the program's lines; those of one call by what they say.
fn sort(hints: &mut [ReportHint]) {
    hints.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
}

/// Joins lines of equal keys and sorts by key.
fn grouped(lines: Vec<ReportLine>, join: impl Fn(Vec<ReportLine>) -> ReportLine) -> Vec<ReportLine> {
    let mut groups = BTreeMap::new();
    for l in lines {
        groups.entry(l.key()).or_insert_with(Vec::new).push(l);
    }
    groups.into_values().map(join).collect()
}

/// The middle one; of an even number the mean of the middle two.
pub(super) fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    let n = values.len();
    (n > 0).then(|| values[(n - 1) / 2].midpoint(values[n / 2]))
}

/// Adds up: a report that another process wrote may hold any numbers.
fn add(to: &mut u64, more: u64) {
    *to = to.saturating_add(more);
}

/// The sum of rows that have something.
pub(super) fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.flatten().reduce(u64::saturating_add)
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
