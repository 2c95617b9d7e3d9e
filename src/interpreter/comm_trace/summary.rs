//! The first lines of a report: what a step consists of, and what is most worth changing.
//!
//! A gain is the time that a step would lose. Times are measured; where a change costs something instead, as another boxing, that is the
//! predicted cost, scaled by what the present boxings of the line take of their prediction.

use super::rank_time::{DataLine, RankTime};
use super::report::{Report, ReportHint, ReportLine};
use crate::memory::{DeviceMemory, by_use};
use oflow_base::text::{bytes, head, percent, short_path, tail};
use serde::Serialize;
use std::collections::BTreeMap;

/// Gains that are not worth a word: a hundredth of a step.
const NOTABLE: f64 = 0.01;
/// The same of ranks that come late: which one does changes from step to step by as much.
const NOTABLE_LATE: f64 = 0.03;

/// A change that would make steps shorter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// Time that a step would take less, in nanoseconds.
    pub gain_ns: u64,
    /// The same as a share of a step.
    pub share: f64,
    /// Where: a line of the program, or a rank.
    pub place: String,
    /// The present state and the change, in one line.
    pub change: String,
    /// Why, what else it costs, and how to do it.
    pub detail: String,
}

/// Nanoseconds as milliseconds.
fn ms(ns: u64) -> String {
    match ns {
        n if n < 100_000 => format!("{:.3} ms", n as f64 / 1e6),
        n if n < 10_000_000 => format!("{:.2} ms", n as f64 / 1e6),
        n if n < 10_000_000_000 => format!("{:.1} ms", n as f64 / 1e6),
        n => format!("{:.2} s", n as f64 / 1e9),
    }
}

/// The middle one.
fn median_of(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

impl Report {
    /// Ranks whose program ended steps.
    fn stepping(&self) -> impl Iterator<Item = &RankTime> + Clone {
        self.times.iter().filter(|t| t.steps > 0)
    }

    /// Median time of a step over the ranks, in nanoseconds; 0 without steps.
    pub fn step_ns(&self) -> u64 {
        median_of(self.stepping().map(|t| t.median_ns))
    }

    /// Number of steps; 0 if the program marked none.
    pub fn steps(&self) -> u64 {
        self.stepping().map(|t| t.steps).max().unwrap_or(0)
    }

    /// The changes most worth making, the largest gain first. Needs steps.
    pub fn advice(&self) -> Vec<Advice> {
        let step = self.step_ns();
        if step == 0 {
            return vec![];
        }
        let mut all: Vec<Advice> = self.hints.iter().filter_map(|h| self.layout(h)).collect();
        all.extend(self.data());
        all.extend(self.late());
        all.retain(|a| a.gain_ns as f64 >= NOTABLE * step as f64);
        all.sort_by_key(|a| std::cmp::Reverse(a.gain_ns));
        all.iter_mut().for_each(|a| a.share = a.gain_ns as f64 / step as f64);
        all
    }

    /// A layout in which a call would be cheaper.
    fn layout(&self, h: &ReportHint) -> Option<Advice> {
        let steps = self.steps();
        let here = self.lines.iter().filter(|l| (&l.file, l.line, &l.scope) == (&h.file, h.line, &h.scope));
        let (mut measured, mut predicted, mut boxed) = (0.0, 0.0, 0);
        for line in here {
            if !line.backward && line.op == h.op {
                boxed = boxed.max(line.count);
            }
            let Some((p, m)) = line.compared() else { continue };
            measured += m;
            predicted += p;
        }
        // Other calls of the op may stand on the line; where the call boxes something, that is counted.
        let calls = if boxed > 0 { boxed } else { h.calls } as f64 / steps as f64;
        // Without a boxing of its own the line pays for it where the result is used.
        let ratio = if predicted > 0.0 { measured / predicted } else { self.ratio().unwrap_or(1.0) };
        let modelled = (h.taken_ps as f64 - h.asked_ps as f64) / 1e3 * calls * ratio;
        // Backward may have made the gradient in the better layout already, and boxes it where the leaf lies.
        let boxed_back = |l: &&ReportLine| {
            l.op == "gradient" && (&l.tensor, &l.from, &l.to) == (&h.tensor, &h.better, &h.now) && h.input.is_some()
        };
        let back: f64 = self.lines.iter().filter(boxed_back).filter_map(|l| l.compared()).map(|(_, m)| m).sum();
        let saved = modelled.max(back / steps as f64);
        let key = (h.op.as_str(), h.file.as_str(), h.line, h.scope.as_str());
        let work = median_of(self.stepping().map(|t| t.work_at(key))) as f64;
        let gain = saved + work * (1.0 - h.work);
        if gain <= 0.0 {
            return None;
        }
        let place = format!("{}:{}", h.file, h.line);
        let scope = if h.scope.is_empty() { String::new() } else { format!(" in {}", h.scope) };
        let (change, how) = match &h.input {
            Some(input) => (
                format!("{}: {input} {} -> {}", h.op, h.now, h.better),
                format!(
                    "lay the {input} of {} out as {} where it is made, or by `to_global` before the first step",
                    h.call, h.better
                ),
            ),
            None => (format!("{}: result {} -> {}", h.op, h.now, h.better), format!("{}: {}", h.call, h.advice)),
        };
        let mut detail = format!("{place}{scope}: {how}");
        if back > modelled * steps as f64 {
            detail += &format!(
                "; its gradient, which is made as {}, need not be boxed ({} a step)",
                h.better,
                ms(saved as u64)
            );
        } else if saved != 0.0 {
            let us = |ps: u64| format!("{:.1} us", ps as f64 / 1e6);
            detail +=
                &format!("; its boxings are predicted to take {} instead of {} a call", us(h.asked_ps), us(h.taken_ps));
            if ratio > 0.0 {
                detail += &format!(", and take {ratio:.1} times the predicted here");
            }
        }
        if h.work < 0.999 {
            detail += &format!(
                "; each rank computes {:.0} % of what it does now ({} a step)",
                h.work * 100.0,
                ms(work as u64)
            );
        }
        match h.more_bytes {
            0 => {}
            n if n > 0 => {
                detail += &format!(
                    "; it takes {} more memory on each rank, and as much for its gradient and states",
                    bytes(n as u64)
                )
            }
            n => detail += &format!("; it takes {} less memory on each rank", bytes(n.unsigned_abs())),
        }
        Some(Advice { gain_ns: gain as u64, share: 0.0, place, change, detail })
    }

    /// Loaders that a rank waits for.
    fn data(&self) -> Vec<Advice> {
        let mut worst: BTreeMap<(&str, u32), (&RankTime, &DataLine)> = BTreeMap::new();
        for (time, line) in self.stepping().flat_map(|t| t.data.iter().map(move |d| (t, d))) {
            let kept = worst.entry((&line.file, line.line)).or_insert((time, line));
            if line.waited_ns > kept.1.waited_ns {
                *kept = (time, line);
            }
        }
        worst.into_values().filter_map(|(time, line)| self.loader(time, line)).collect()
    }

    fn loader(&self, time: &RankTime, d: &DataLine) -> Option<Advice> {
        let step = self.step_ns();
        let waited = d.waited_ns / time.steps.max(1);
        let make = d.made_ns / d.made.max(1);
        let batches = (d.taken as f64 / time.steps.max(1) as f64).max(1.0);
        // Threads that make as many batches as a step takes that does not wait.
        let beside = step.saturating_sub(waited).max(1);
        let threads = (make as f64 * batches / beside as f64).ceil().max(1.0) as usize;
        if threads <= d.threads || d.made == 0 {
            return None;
        }
        let cpu = (d.cpu_ns as f64 / d.made_ns.max(1) as f64).min(1.0);
        // What needs a processor takes it from the ranks where no core is left.
        let gain = if time.spare_cores > 0 { waited } else { (waited as f64 * (1.0 - cpu)) as u64 };
        let place = match d.file.as_str() {
            "" => "the loader".to_string(),
            file => format!("{file}:{}", d.line),
        };
        let now = match d.threads {
            0 => "no prefetch".to_string(),
            n => format!("prefetch on {n} threads"),
        };
        let how = match d.file.ends_with(".py") {
            true => format!("num_workers={threads}"),
            false => format!("prefetch({threads}, {})", threads * 2),
        };
        let mut detail = format!(
            "{place}: rank {} waits {} a step for batches, which take {} each to make ({:.0} % of it processor time); make them on threads before they are asked for: `{how}`",
            time.rank,
            ms(waited),
            ms(make),
            cpu * 100.0,
        );
        if gain < waited {
            detail += "; no core of the host is free, so the processor time remains";
        }
        let change = format!("data: {now} -> {how}");
        Some(Advice { gain_ns: gain, share: 0.0, place, change, detail })
    }

    /// A rank that others wait for.
    fn late(&self) -> Option<Advice> {
        if self.stepping().count() < 2 {
            return None;
        }
        let late = |t: &RankTime| t.step.late_ranks;
        let slow = self.stepping().min_by_key(|t| late(t))?;
        let others = || self.stepping().filter(|t| t.rank != slow.rank);
        let gain = median_of(others().map(late)).saturating_sub(late(slow));
        let more = |of: fn(&RankTime) -> u64| of(slow).saturating_sub(median_of(others().map(of)));
        let causes = [
            ("computes", more(|t| t.step.compute)),
            ("waits for data", more(|t| t.step.data)),
            ("is in its own code or without a processor", more(|t| t.step.rest())),
            ("writes checkpoints", more(|t| t.step.checkpoint)),
        ];
        if (gain as f64) < NOTABLE_LATE * self.step_ns() as f64 {
            return None;
        }
        let (does, longer) = causes.into_iter().max_by_key(|c| c.1)?;
        // Waiting for data has advice of its own.
        if does == "waits for data" {
            return None;
        }
        let place = format!("rank {} on {}", slow.rank, slow.host);
        let usual = others().map(|t| t.queued).fold(f64::INFINITY, f64::min);
        let mut detail =
            format!("{place}: it {does} {} a step longer than the others, which wait {} for it", ms(longer), ms(gain));
        let change = if slow.queued > usual + 0.05 {
            detail += &format!(
                "; {:.0} % of the time its main thread is ready and has no processor: something else uses its cores (`top` on that host shows it); move that away, or give the rank other cores (`--bind`)",
                slow.queued * 100.0
            );
            format!("its cores are shared ({:.0} % of the time without one)", slow.queued * 100.0)
        } else {
            detail += "; it has a core all the time, so its share of the work is larger (uneven shards, a branch of the program), or its host is slower";
            format!("it {does} {} longer than the others", ms(longer))
        };
        Some(Advice { gain_ns: gain, share: 0.0, place, change, detail })
    }

    /// The first ten lines: steps, what a step consists of, and the three changes most worth making. Empty if the report has no times.
    pub fn summary(&self) -> Vec<String> {
        if self.times.is_empty() {
            return vec![];
        }
        let ranks = if self.world == 1 { "1 rank".to_string() } else { format!("{} ranks", self.world) };
        let step = self.step_ns();
        if step == 0 {
            let works: u64 = self.times.iter().map(RankTime::works).sum();
            return vec![
                format!("{ranks}; no step ended: no optimizer stepped, and the program did not call mark_step()"),
                format!("kernels: {} in all; communication: {}", ms(works), ms(self.measured().as_nanos() as u64)),
                head(&self.memory(), 100),
            ];
        }
        let count = self.stepping().count() as u64;
        let mean = |of: fn(&RankTime) -> u64| self.stepping().map(of).sum::<u64>() / count;
        let whole = mean(|t| t.step.whole).max(1);
        let mut first =
            format!("{ranks}, {} steps of {} (median): {:.2} steps/s", self.steps(), ms(step), 1e9 / step as f64);
        if let Some(rows) = self.stepping().find_map(|t| t.rows) {
            first += &format!(", {:.0} rows/s", rows * 1e9 / step as f64);
        }
        let part = |name: &str, of: fn(&RankTime) -> u64| format!("{name} {}", percent(mean(of), whole));
        let parts = [
            part("compute", |t| t.step.compute),
            part("communication", |t| t.step.communication),
            part("late ranks", |t| t.step.late_ranks),
            part("data", |t| t.step.data),
            part("saving", |t| t.step.checkpoint),
            part("rest", |t| t.step.rest()),
        ];
        let mut lines = vec![first, format!("a step: {}", parts.join(", "))];
        lines.push(self.modules(whole));
        let sent = self.bytes() / self.steps().max(1);
        let hidden = mean(|t| t.beside_ns.saturating_sub(t.step.communication));
        lines.push(format!(
            "communication: {} a step, {} hidden behind compute{}",
            bytes(sent),
            ms(hidden),
            self.dearest()
        ));
        let late = self.stepping().min_by_key(|t| t.step.late_ranks);
        let waits = self.stepping().max_by_key(|t| t.step.late_ranks);
        lines.push(match (late, waits) {
            (Some(l), Some(w)) if w.step.late_ranks as f64 > NOTABLE * step as f64 => format!(
                "late: rank {} is waited for, by rank {} {} a step ({})",
                l.rank,
                w.rank,
                ms(w.step.late_ranks),
                percent(w.step.late_ranks, step)
            ),
            _ => "late: no rank is waited for".to_string(),
        });
        lines.push(self.memory());
        let advice = self.advice();
        if advice.is_empty() {
            lines.push("worth changing: nothing found that gains a hundredth of a step".to_string());
        } else {
            lines.push("most worth changing, with the predicted gain a step:".to_string());
        }
        for (n, a) in advice.iter().take(3).enumerate() {
            let gain = format!("{} ({:.0} %)", ms(a.gain_ns), a.share * 100.0);
            let text = format!("{}. {gain}  {}  {}", n + 1, short_path(&a.place), a.change);
            lines.push(text);
        }
        lines.iter().map(|l| head(l, 100)).collect()
    }

    /// The modules that compute longest.
    fn modules(&self, whole: u64) -> String {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let ranks = self.stepping().count().max(1) as u64;
        for time in self.stepping() {
            for w in &time.work {
                let name = match w.scope.as_str() {
                    "" => format!("{}:{}", short_path(&w.file), w.line),
                    scope => scope.split('.').take(3).collect::<Vec<_>>().join("."),
                };
                *sums.entry(name).or_default() += w.ns / time.steps.max(1) / ranks;
            }
        }
        let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
        sums.sort_by_key(|s| std::cmp::Reverse(s.1));
        let mut text = "compute:".to_string();
        for (name, ns) in &sums {
            let next = format!(" {} {},", tail(name, 40), percent(*ns, whole));
            if text.chars().count() + next.chars().count() > 90 {
                break;
            }
            text += &next;
        }
        format!("{} …", text.trim_end_matches(','))
    }

    /// The line whose boxings take longest.
    fn dearest(&self) -> String {
        let mut lines: BTreeMap<(&str, u32), u64> = BTreeMap::new();
        for l in &self.lines {
            *lines.entry((&l.file, l.line)).or_default() += l.measured.map_or(0, |m| m.total_ns);
        }
        let dearest = lines.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0);
        dearest.map_or(String::new(), |((file, line), ns)| {
            format!("; most at {}:{line} ({})", short_path(file), ms(ns / self.steps().max(1)))
        })
    }

    /// The device memory that is largest at its peak, of each kind of device, with the number of its rank.
    pub(super) fn most_memory(&self) -> Vec<(usize, &DeviceMemory)> {
        let mut most: BTreeMap<&str, (usize, &DeviceMemory)> = BTreeMap::new();
        for (rank, of) in self.times.iter().flat_map(|t| t.memory.iter().map(|m| (t.rank, m))) {
            let kept = most.entry(&of.device).or_insert((rank, of));
            if of.stats.peak > kept.1.stats.peak {
                *kept = (rank, of);
            }
        }
        let mut all: Vec<(usize, &DeviceMemory)> = most.into_values().collect();
        all.sort_by_key(|(_, of)| std::cmp::Reverse(of.stats.peak));
        all
    }

    fn memory(&self) -> String {
        let all = self.most_memory();
        let Some((rank, largest)) = all.first() else { return "memory: nothing is known of it".to_string() };
        let peak = |of: &DeviceMemory| format!("{} {}", of.device, bytes(of.stats.peak as u64));
        let others: String = all[1..].iter().map(|(rank, of)| format!("; {} (rank {rank})", peak(of))).collect();
        let mut text = format!("memory: at most {} (rank {rank})", peak(largest));
        for (n, (name, used)) in by_use(&largest.peak).into_iter().enumerate() {
            let sign = if n == 0 { ": " } else { ", " };
            let next = format!("{sign}{name} {}", percent(used, largest.stats.peak as u64));
            if text.chars().count() + next.chars().count() + others.chars().count() > 98 {
                return text + " …" + &others;
            }
            text += &next;
        }
        text + &others
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
