//! Digest of the heartbeats of a host's ranks, for the root: the marks of one rank for all ranks that agree with it, and of
//! the others only the ranks that wait or are waited for. The root's work therefore grows with the number of hosts.

use std::collections::{BTreeMap, BTreeSet};

use oflow_proto::control as pb;

use crate::flight::Marks;

/// A rank that has issued nothing for so long may be one that others wait for.
const QUIET_MS: u64 = 1000;
/// One of this many heartbeats of a rank without problems is forwarded, so that the root detects slow ranks.
const SAMPLE: u32 = 32;

/// The ranks of one host.
#[derive(Default)]
pub struct Digest {
    marks: BTreeMap<usize, Marks>,
    /// Rank whose marks stand for those of all.
    voice: Option<usize>,
    /// Ranks that the root is to see itself, because they differ from another one.
    exposed: BTreeSet<usize>,
    /// Ranks whose last beat the root has as one of a rank that waits or does not move.
    troubled: BTreeSet<usize>,
    beats: BTreeMap<usize, u32>,
}

impl Digest {
    /// Takes a rank's heartbeat and returns what is forwarded of it.
    pub fn beat(&mut self, beat: pb::HeartbeatRequest) -> Vec<pb::HeartbeatRequest> {
        let rank = beat.rank as usize;
        let marks = self.marks.entry(rank).or_default();
        beat.marks.iter().for_each(|m| marks.note(m.ordinal, m.hash));
        let fresh = self.voice.is_none();
        let voice = *self.voice.get_or_insert(rank);
        let mut reported = Vec::new();
        // Records go only where streams differ.
        if beat.records.is_some() && self.exposed.insert(rank) {
            reported.extend([voice, rank].map(|r| self.all_marks(r)));
        }
        if voice != rank && !self.exposed.contains(&rank) && self.differ(rank, voice) {
            self.exposed.extend([rank, voice]);
            reported.extend([voice, rank].map(|r| self.all_marks(r)));
        }
        if fresh {
            reported.push(self.all_marks(rank));
        }
        let trouble = beat.wait.is_some() || beat.last_ms >= QUIET_MS;
        let before = if trouble { !self.troubled.insert(rank) } else { self.troubled.remove(&rank) };
        let count = self.beats.entry(rank).or_default();
        *count = (*count + 1) % SAMPLE;
        let sample = *count == 0;
        let sees_marks = rank == voice || self.exposed.contains(&rank);
        let asked = !beat.links.is_empty();
        if trouble || before || sees_marks || sample || asked {
            let marks = if sees_marks { beat.marks.clone() } else { Vec::new() };
            reported.push(pb::HeartbeatRequest { marks, ..beat });
        }
        reported
    }

    /// A rank has left. If its marks stood for the others, those of the next rank do.
    pub fn left(&mut self, rank: usize) {
        if self.voice == Some(rank) {
            self.voice = None;
        }
    }

    fn differ(&self, a: usize, b: usize) -> bool {
        match (self.marks.get(&a), self.marks.get(&b)) {
            (Some(a), Some(b)) => a.after(0).iter().any(|(o, h)| b.get(*o).is_some_and(|other| other != *h)),
            _ => false,
        }
    }

    /// A heartbeat with all marks of a rank and nothing else.
    fn all_marks(&self, rank: usize) -> pb::HeartbeatRequest {
        let marks = self.marks.get(&rank).map(|m| m.after(0)).unwrap_or_default();
        pb::HeartbeatRequest {
            rank: rank as u32,
            marks: marks.into_iter().map(|(ordinal, hash)| pb::Mark { ordinal, hash }).collect(),
            marks_only: true,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(rank: u32, marks: &[(u64, u64)]) -> pb::HeartbeatRequest {
        let marks = marks.iter().map(|&(ordinal, hash)| pb::Mark { ordinal, hash }).collect();
        pb::HeartbeatRequest { rank, marks, progress: 1, ..Default::default() }
    }

    #[test]
    fn one_speaks_for_all_that_agree() {
        let mut digest = Digest::default();
        assert_eq!(digest.beat(beat(4, &[(1, 10)])).len(), 2, "all its marks, and the beat");
        for rank in 5..8 {
            assert_eq!(digest.beat(beat(rank, &[(1, 10)])), []);
        }
        // One that waits is told of, and once more when it has gone on.
        let waits = pb::HeartbeatRequest { wait: Some(pb::Wait::default()), ..beat(5, &[(2, 20)]) };
        let reported = digest.beat(waits);
        assert!(reported.len() == 1 && reported[0].marks.is_empty() && reported[0].wait.is_some());
        assert_eq!(digest.beat(beat(5, &[])).len(), 1);
        assert_eq!(digest.beat(beat(5, &[])), []);
        digest.left(4);
        assert_eq!(digest.beat(beat(6, &[]))[0].marks.len(), 1, "the next one speaks, with all its marks");
    }

    #[test]
    fn those_that_differ_are_shown_with_all_their_marks() {
        let mut digest = Digest::default();
        digest.beat(beat(0, &[(1, 10), (2, 20)]));
        let reported = digest.beat(beat(1, &[(1, 10), (2, 21)]));
        assert_eq!(reported.iter().map(|b| (b.rank, b.marks.len())).collect::<Vec<_>>(), [(0, 2), (1, 2), (1, 2)]);
        assert_eq!(digest.beat(beat(1, &[(3, 30)])).len(), 1);
    }
}
