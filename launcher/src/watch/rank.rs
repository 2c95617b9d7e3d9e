//! State of one rank, with rates over the last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use oflow::control::service::Glimpse;
use oflow_proto::control as pb;
use serde_json::{Value, json};

/// The time over which rates and shares are taken.
const WINDOW: Duration = Duration::from_secs(2);
/// A rank is silent if nothing was heard of it for so long.
const SILENT: Duration = Duration::from_secs(3);

/// Parts of a rank's time, in the order of [`Rank::shares`].
pub(super) const PARTS: [&str; 6] = ["compute", "communication", "waiting", "data", "checkpoint", "other"];
const WAITING: usize = 2;

/// Counters at some time.
struct Sample {
    at: Instant,
    spent: pb::Spent,
    watched: u64,
    steps: u64,
    rows: u64,
}

/// A rank that has told something.
pub(super) struct Rank {
    pub(super) glimpse: Glimpse,
    heard: Instant,
    samples: VecDeque<Sample>,
    /// Whether it has left the job.
    pub(super) left: bool,
}

impl Rank {
    pub(super) fn new(glimpse: Glimpse, now: Instant) -> Rank {
        let mut rank = Rank { glimpse: Glimpse::default(), heard: now, samples: VecDeque::new(), left: false };
        rank.update(glimpse, now);
        rank
    }

    pub(super) fn update(&mut self, glimpse: Glimpse, now: Instant) {
        let sample = Sample {
            at: now,
            spent: glimpse.spent.unwrap_or_default(),
            watched: glimpse.watched,
            steps: glimpse.steps,
            rows: glimpse.rows,
        };
        // Counters start anew when somebody begins to watch again.
        if self
            .samples
            .back()
            .is_some_and(|last| last.spent.whole > sample.spent.whole || last.watched > sample.watched)
        {
            self.samples.clear();
        }
        if glimpse.spent.is_some() {
            self.samples.push_back(sample);
        }
        // The first one is as old as the window, if there is one that old.
        while self.samples.get(1).is_some_and(|s| now.saturating_duration_since(s.at) >= WINDOW) {
            self.samples.pop_front();
        }
        (self.glimpse, self.heard) = (glimpse, now);
    }

    /// The first and the last sample of the window, the seconds between them, and how many of these were recorded.
    fn window(&self) -> Option<(&Sample, &Sample, f64, f64)> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
        let all = seconds(first.watched, last.watched);
        (all > 0.0).then(|| (first, last, all, seconds(first.spent.whole, last.spent.whole).max(1e-9)))
    }

    /// How long nothing was heard of it.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard)
    }

    /// The rank that it waits for now, and for how long.
    pub(super) fn wait(&self) -> Option<&pb::Wait> {
        self.glimpse.wait.as_ref()
    }

    /// Share of each of [`PARTS`] in its time, from 0 to 1. A wait that has not ended counts.
    pub(super) fn shares(&self) -> [f64; 6] {
        let Some((first, last, seconds, recorded)) = self.window() else { return [0.0; 6] };
        let share = |of: fn(&pb::Spent) -> u64| {
            (of(&last.spent).saturating_sub(of(&first.spent)) as f64 / 1e9 / recorded).clamp(0.0, 1.0)
        };
        let mut shares = [
            share(|s| s.compute),
            share(|s| s.communication),
            share(|s| s.late_ranks),
            share(|s| s.data),
            share(|s| s.checkpoint),
            0.0,
        ];
        if let Some(wait) = self.wait() {
            shares[WAITING] = shares[WAITING].max((wait.since_ms as f64 / 1e3 / seconds).min(1.0));
        }
        // What is measured in one window may have begun in the one before.
        let sum: f64 = shares.iter().sum();
        if sum > 1.0 {
            shares.iter_mut().for_each(|s| *s /= sum);
        }
        shares[5] = (1.0 - sum).max(0.0);
        shares
    }

    /// Share of its time in which it waits for other ranks.
    pub(super) fn waits(&self) -> f64 {
        self.shares()[WAITING]
    }

    /// Name of its phase: the largest part of its time, or a long wait that it is in now.
    pub(super) fn phase(&self, now: Instant) -> &'static str {
        if self.left {
            return "ended";
        }
        if self.silence(now) > SILENT {
            return "silent";
        }
        if self.wait().is_some_and(|w| w.since_ms >= 1000) {
            return PARTS[WAITING];
        }
        if self.glimpse.last.is_none() && self.glimpse.spent.is_none() {
            return "starting";
        }
        let shares = self.shares();
        let most = (0..PARTS.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b])).unwrap_or(5);
        PARTS[most]
    }

    /// Steps per second, and rows per second.
    pub(super) fn rates(&self) -> (f64, f64) {
        let rate = |(first, last, seconds, recorded): (&Sample, &Sample, f64, f64)| {
            let more = |a: u64, b: u64| b.saturating_sub(a) as f64;
            (more(first.steps, last.steps) / seconds, more(first.rows, last.rows) / recorded)
        };
        self.window().map_or((0.0, 0.0), rate)
    }

    /// Current op and line, as `matmul` and `train.rs:12 in blocks.3`.
    pub(super) fn op(&self) -> (String, String) {
        let g = &self.glimpse;
        let scope = if g.scope.is_empty() { String::new() } else { format!(" in {}", g.scope) };
        match (&g.node, &g.last) {
            (Some(n), _) => (format!("{} (node {} of a graph)", n.op, n.number), format!("{}:{}", n.file, n.line)),
            (None, Some(o)) => (o.op.clone(), format!("{}:{}{scope}", o.file, o.line)),
            (None, None) => (String::new(), String::new()),
        }
    }

    pub(super) fn to_json(&self, now: Instant) -> Value {
        let (op, place) = self.op();
        let (steps, rows) = self.rates();
        let g = &self.glimpse;
        let rounded = |x: f64| (x * 1e4).round() / 1e4;
        json!({
            "rank": g.rank,
            "phase": self.phase(now),
            "shares": self.shares().map(rounded),
            "op": op,
            "place": place,
            "call": g.last.as_ref().map(|o| o.call.as_str()).unwrap_or_default(),
            "ordinal": g.last.as_ref().map(|o| o.ordinal),
            "last_ms": g.last_ms,
            "wait": self.wait().map(|w| json!({ "ranks": w.ranks, "call": w.call, "ms": w.since_ms })),
            "resident": g.resident,
            "memory": g.memory.iter().map(|m| json!([m.device, m.bytes])).collect::<Vec<_>>(),
            "steps": rounded(steps),
            "rows": rounded(rows),
            "silent_ms": self.silence(now).as_millis() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glimpse(seconds: u64, compute: u64, late: u64, steps: u64) -> Glimpse {
        let ns = |s: u64| s * 1_000_000_000;
        let spent = pb::Spent { whole: ns(seconds), compute: ns(compute), late_ranks: ns(late), ..Default::default() };
        Glimpse { steps, rows: steps * 8, spent: Some(spent), watched: ns(seconds), ..Default::default() }
    }

    #[test]
    fn shares_and_rates_are_those_of_the_last_seconds() {
        let (start, s) = (Instant::now(), Duration::from_secs(1));
        let mut rank = Rank::new(glimpse(0, 0, 0, 0), start);
        assert_eq!((rank.shares(), rank.rates()), ([0.0; 6], (0.0, 0.0)));
        for t in 1..10u64 {
            rank.update(glimpse(t, t, 0, 4 * t), start + s * t as u32);
        }
        assert_eq!((rank.rates(), rank.shares()[0]), ((4.0, 32.0), 1.0));
        assert_eq!(rank.phase(start + 9 * s), "compute");
        for t in 10..14u64 {
            rank.update(glimpse(t, 9, t - 10, 36), start + s * t as u32);
        }
        assert_eq!((rank.rates().0, rank.waits(), rank.phase(start + 13 * s)), (0.0, 1.0, "waiting"));
        assert_eq!(rank.phase(start + 20 * s), "silent");
        // Somebody watches again.
        rank.update(glimpse(0, 0, 0, 0), start + 20 * s);
        assert_eq!((rank.rates(), rank.samples.len()), ((0.0, 0.0), 1));
    }

    #[test]
    fn a_wait_that_has_not_ended_is_seen() {
        let now = Instant::now();
        let mut rank = Rank::new(glimpse(0, 0, 0, 0), now);
        let wait = pb::Wait { ranks: vec![1], call: "c".into(), since_ms: 5000 };
        rank.update(Glimpse { wait: Some(wait), ..glimpse(2, 0, 0, 0) }, now);
        assert_eq!((rank.waits(), rank.phase(now)), (1.0, "waiting"));
    }
}
