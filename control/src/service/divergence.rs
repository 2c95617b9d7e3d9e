//! Finds where the dispatch streams of ranks differ. Pure: takes heartbeats and the time, returns questions and verdicts.
//!
//! Streams are compared by the marks that heartbeats carry: hashes of everything that a rank has issued, at ordinals that
//! ranks at different positions have in common. Equal hashes at one ordinal mean equal streams up to there, so a difference is
//! never a false alarm, however far apart the ranks are. (A difference in the last ops of a rank that is stopped far behind the
//! others is found when it continues.) If two ranks differ, their records of the interval are requested, and the first op that
//! differs is named; if a record has been overwritten, the shortest known interval is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use oflow_proto::control as pb;

use crate::flight::Marks;
use crate::{Failure, FailureKind, Place};

/// How long the answers of two ranks are waited for.
const PATIENCE: Duration = Duration::from_millis(1100);
/// Records kept of one rank; it sends no more.
const MOST_RECORDS: usize = 1024;
const HELP: &str =
    "every rank must issue the same ops in the same order; look for a branch on the rank or on rank-local data";

/// Calls that look alike and differ in the data that the ranks give.
const DATA: [(&str, &str); 2] = [
    ("distribute", "; the data differs: a global tensor is made of one logical value, which every rank gives alike"),
    (
        "parameters",
        "; at the optimizer's first step parameters that are B have other values on one rank than on the other",
    ),
];
const DATA_HELP: &str = "give the same data and the same seed on every rank; make a global tensor of data that is each rank's own of local \
                         tensors: `to_global` with S(0) puts them together; OFLOW_CHECK=0 turns this check off";

#[derive(Default)]
struct Stream {
    marks: Marks,
    position: u64,
    records: BTreeMap<u64, pb::OpRecord>,
    /// Intervals that the rank has answered about: the widest.
    answered: Option<pb::Interval>,
}

/// Two ranks that differ.
struct Suspicion {
    pair: [usize; 2],
    /// Ordinal at which the hashes differ at the latest, if that is known.
    by: Option<u64>,
    /// Divergence that the ranks themselves have noticed.
    noticed: Option<Failure>,
    since: Instant,
    asked: [Option<pb::Interval>; 2],
}

/// The streams of all ranks.
#[derive(Default)]
pub struct Streams {
    ranks: BTreeMap<usize, Stream>,
    /// The rank that was farthest ahead: the others are compared with it.
    reference: Option<usize>,
    suspicion: Option<Suspicion>,
}

impl Streams {
    /// Takes a heartbeat. Heartbeats may arrive twice and in any order.
    pub fn beat(&mut self, beat: &pb::HeartbeatRequest, now: Instant) {
        let rank = beat.rank as usize;
        let stream = self.ranks.entry(rank).or_default();
        for mark in &beat.marks {
            stream.marks.note(mark.ordinal, mark.hash);
            stream.position = stream.position.max(mark.ordinal);
        }
        if let Some(records) = &beat.records {
            // Ops count from 1.
            for op in records.ops.iter().filter(|op| op.ordinal > 0) {
                stream.records.insert(op.ordinal, op.clone());
                // A record carries a hash as a mark does.
                stream.marks.note(op.ordinal, op.hash);
            }
            while stream.records.len() > MOST_RECORDS {
                stream.records.pop_first();
            }
            let wider = |a: &pb::Interval, b: &pb::Interval| a.after <= b.after && a.to >= b.to;
            if let Some(of) = records.of
                && stream.answered.is_none_or(|before| !wider(&before, &of))
            {
                stream.answered = Some(of);
            }
        }
        let position = stream.position;
        match self.reference {
            None => self.reference = Some(rank),
            Some(reference) if reference != rank => {
                if self.suspicion.is_none()
                    && let Some(by) = self.differ(rank, reference)
                {
                    self.suspect([rank, reference], Some(by), None, now);
                }
                if self.ranks.get(&reference).is_none_or(|r| r.position < position) {
                    self.reference = Some(rank);
                }
            }
            Some(_) => {}
        }
    }

    /// Takes a rank's report of a divergence and holds it back until the first op that differs is known. Returns the failure if
    /// it is not held back.
    pub fn noticed(&mut self, failure: Failure, now: Instant) -> Result<(), Failure> {
        let [a, b] = failure.places.as_slice() else { return Err(failure) };
        if a.rank == b.rank {
            return Err(failure);
        }
        let pair = [a.rank, b.rank];
        match &mut self.suspicion {
            Some(s) => {
                // What the ranks themselves have seen is worth more than nothing, and comes once.
                s.noticed.get_or_insert(failure);
            }
            None => self.suspect(pair, None, Some(failure), now),
        }
        Ok(())
    }

    fn suspect(&mut self, mut pair: [usize; 2], by: Option<u64>, noticed: Option<Failure>, since: Instant) {
        pair.sort_unstable();
        self.suspicion = Some(Suspicion { pair, by, noticed, since, asked: [None; 2] });
    }

    /// The first ordinal at which two ranks have marks that differ.
    fn differ(&self, a: usize, b: usize) -> Option<u64> {
        let (a, b) = (self.ranks.get(&a)?, self.ranks.get(&b)?);
        a.marks.after(0).into_iter().find(|(o, h)| b.marks.get(*o).is_some_and(|other| other != *h)).map(|(o, _)| o)
    }

    /// Takes the questions to ranks: rank and interval of ops. Each is returned once.
    pub fn asks(&mut self) -> Vec<(usize, pb::Interval)> {
        let Some(s) = &self.suspicion else { return Vec::new() };
        let pair = s.pair;
        let positions = pair.map(|r| self.ranks.get(&r).map_or(0, |s| s.position));
        let by = s.by.or_else(|| self.differ(pair[0], pair[1]));
        let to = by.unwrap_or(positions[0].min(positions[1]));
        let after = self.agreed(pair, to);
        if to <= after {
            return Vec::new();
        }
        let wanted = pb::Interval { after, to };
        let known = pair.map(|r| self.covers(r, &wanted));
        let mut asks = Vec::new();
        if let Some(s) = &mut self.suspicion {
            s.by = by;
            for i in 0..2 {
                if !known[i] && s.asked[i] != Some(wanted) {
                    s.asked[i] = Some(wanted);
                    asks.push((pair[i], wanted));
                }
            }
        }
        asks
    }

    /// The last ordinal before `before` up to which both streams are known to be the same.
    fn agreed(&self, [a, b]: [usize; 2], before: u64) -> u64 {
        match (self.ranks.get(&a), self.ranks.get(&b)) {
            (Some(a), Some(b)) => a.marks.agreed(&b.marks, before),
            _ => 0,
        }
    }

    /// Whether a rank has sent all its records of an interval.
    fn covers(&self, rank: usize, wanted: &pb::Interval) -> bool {
        let Some(stream) = self.ranks.get(&rank) else { return false };
        stream.answered.is_some_and(|a| a.after <= wanted.after && a.to >= wanted.to)
            || (wanted.after + 1..=wanted.to).all(|o| stream.records.contains_key(&o))
    }

    /// Returns the verdict, once the records have arrived or the time-out for them has passed.
    pub fn verdict(&self, now: Instant) -> Option<Failure> {
        let s = self.suspicion.as_ref()?;
        let late = now.saturating_duration_since(s.since) >= PATIENCE;
        if let Some(found) = self.first_difference(s.pair) {
            let [a, b] = s.pair.map(|r| self.op(r, found));
            let [before_a, before_b] = s.pair.map(|r| self.op(r, found - 1).map(|op| op.hash));
            let known_before = before_a.is_some() && before_a == before_b;
            let exact = found == 1 || known_before || self.agreed(s.pair, found) + 1 == found;
            if exact || late {
                let after = self.agreed(s.pair, found);
                return Some(self.name(s, a?, b?, (!exact).then_some(after)));
            }
        }
        if !late {
            return None;
        }
        Some(s.noticed.clone().map(|f| self.of_minority(f, s.pair)).unwrap_or_else(|| {
            let [a, b] = s.pair;
            let by = s.by.unwrap_or_default();
            let message = format!(
                "ranks {a} and {b} issued different ops: somewhere after op #{}, up to which they agree, and up to #{by}; \
                 their records of it are lost\n  help: {HELP}",
                self.agreed(s.pair, by)
            );
            self.of_minority(Failure::of_job(FailureKind::Diverged, message), s.pair)
        }))
    }

    fn op(&self, rank: usize, ordinal: u64) -> Option<&pb::OpRecord> {
        self.ranks.get(&rank)?.records.get(&ordinal)
    }

    /// The first ordinal of which both records are known and differ.
    fn first_difference(&self, [a, b]: [usize; 2]) -> Option<u64> {
        let a = &self.ranks.get(&a)?.records;
        a.iter().find(|(o, op)| self.op(b, **o).is_some_and(|other| other.hash != op.hash)).map(|(o, _)| *o)
    }

    /// `after`: the ops before were not known from there on, so it may have been an earlier one.
    fn name(&self, s: &Suspicion, a: &pb::OpRecord, b: &pb::OpRecord, after: Option<u64>) -> Failure {
        let [x, y] = s.pair;
        let places = [place(x, a), place(y, b)];
        let same_place = |p: &[Place]| p.iter().zip(&places).all(|(p, q)| p == q);
        if let (Some(noticed), None) = (&s.noticed, after)
            && same_place(&noticed.places)
            && (a.op.as_str(), a.line) != (b.op.as_str(), b.line)
        {
            return self.of_minority(noticed.clone(), s.pair);
        }
        let alike = (&a.op, &a.file, a.line) == (&b.op, &b.file, b.line);
        let text = |op: &pb::OpRecord| {
            let name = if alike && !op.call.is_empty() { op.call.clone() } else { format!("'{}'", op.op) };
            format!("{name} #{} ({}:{})", op.ordinal, op.file, op.line)
        };
        let mut message =
            format!("ranks {x} and {y} issued different ops: rank {x} issued {}, rank {y} {}", text(a), text(b));
        let data = DATA.iter().find(|(op, _)| alike && a.call == b.call && a.op == *op);
        if let Some((_, why)) = data {
            message += why;
        } else if alike && a.call == b.call {
            message += "; the calls look alike and differ in an attribute or in a value: a number given to the op, or the \
                        seed of its random numbers; or the op is declared otherwise";
        }
        if let Some(after) = after {
            message +=
                &format!("; the ops between #{after}, up to which they agree, and #{} are no longer known", a.ordinal);
        }
        if let Some(noticed) = &s.noticed
            && let [p, q] = noticed.places.as_slice()
            && !same_place(&noticed.places)
        {
            message += &format!("\n  they noticed when {p} met {q}");
        }
        message += &format!("\n  help: {}", if data.is_some() { DATA_HELP } else { HELP });
        self.of_minority(Failure::of_job(FailureKind::Diverged, message).in_places(places), s.pair)
    }

    /// Names the rank that differs from all others; of two ranks the higher one.
    fn of_minority(&self, mut failure: Failure, pair: [usize; 2]) -> Failure {
        let [a, b] = pair;
        let agrees =
            |r: usize, with: usize, not: usize| self.differ(r, not).is_some() && self.differ(r, with).is_none();
        let votes = |with: usize, not: usize| self.ranks.keys().filter(|r| agrees(**r, with, not)).count();
        failure.rank = Some(if votes(a, b) < votes(b, a) { a } else { b });
        failure
    }
}

fn place(rank: usize, op: &pb::OpRecord) -> Place {
    Place { rank, op: op.op.clone(), ordinal: op.ordinal, file: op.file.clone(), line: op.line }
}

#[cfg(test)]
#[path = "divergence_tests.rs"]
mod tests;
