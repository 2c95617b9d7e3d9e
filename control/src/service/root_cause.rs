//! Finds the cause among the failures that were reported at one time. Pure.
//!
//! Nothing else compares failures. The root asks for the [`cause`] among those of all hosts. An agent sees the exits of its own ranks
//! first: it asks whether an earlier one is still to come ([`Ends::earlier_is_still_ending`]), and reports the likeliest cause first
//! ([`Ends::sort`]).
//!
//! A killed rank comes before an error, an error before a lost link; among equals the rank counts that left the job first. A
//! failure may say for which rank the failed one had waited in vain ([`Failure::missing`]). Then that rank is the cause: with its
//! own failure if it reported one, else as a rank that ended while others needed it. If that rank has not ended, the link to it
//! is lost: the rank whose links to several ranks are lost is named, and of a single lost link neither end.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Failure, FailureKind};

/// A failure that may be the cause of others.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The failure as it is reported.
    pub failure: Failure,
    /// Exit code of the failed rank; `None` if it is not known yet.
    pub code: Option<u8>,
    /// Whether the job ends whatever restarts are left.
    pub is_final: bool,
}

impl Candidate {
    /// Whether it is the loss of one rank's link to another.
    fn is_lost_link(&self) -> bool {
        self.failure.kind == FailureKind::LinkLost && self.failure.missing.is_some()
    }
}

/// The ranks that have ended.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Ranks that have left the job, in order.
    departures: Vec<usize>,
    /// Ranks whose process has ended, and how: a sentence without its end, or empty.
    gone: BTreeMap<usize, String>,
}

impl Ends {
    /// A rank has left the job.
    pub fn left(&mut self, rank: usize) {
        self.departures.push(rank);
    }

    /// A rank's process has ended. `how`: a sentence without its end, or empty.
    pub fn gone(&mut self, rank: usize, how: String) {
        self.gone.insert(rank, how);
    }

    /// Whether a rank has left the job, or its process has ended.
    pub fn has_left(&self, rank: usize) -> bool {
        self.departures.contains(&rank) || self.gone.contains_key(&rank)
    }

    /// Place of a failure among others of the same time: the least is the likeliest cause.
    fn precedence(&self, failure: &Failure) -> (u8, usize) {
        let left = self.departures.iter().position(|r| Some(*r) == failure.rank).unwrap_or(usize::MAX);
        (weight(failure.kind), left)
    }

    /// Sorts failures so that the likeliest cause comes first. Equal ones keep their order.
    pub fn sort<T>(&self, all: &mut [T], failure: impl Fn(&T) -> &Failure) {
        all.sort_by_key(|one| self.precedence(failure(one)));
    }

    /// Whether a rank that may be the cause has left the job and its process has not ended yet, so how it ends is not known: a
    /// rank that left before any of the failed ones, or for which a failed one had waited. A killed rank needs no explanation.
    pub fn earlier_is_still_ending(&self, candidates: &[Candidate]) -> bool {
        if candidates.iter().any(|c| weight(c.failure.kind) == 0) {
            return false;
        }
        let is_ending = |rank: &usize| self.departures.contains(rank) && !self.gone.contains_key(rank);
        if candidates.iter().filter_map(|c| c.failure.missing).any(|rank| is_ending(&rank)) {
            return true;
        }
        let failed = |rank: &usize| candidates.iter().any(|c| c.failure.rank == Some(*rank));
        candidates.iter().any(|c| c.failure.rank.is_some_and(|r| self.has_left(r)))
            && self.departures.iter().take_while(|rank| !failed(rank)).any(|rank| !self.gone.contains_key(rank))
    }
}

/// Whether links between ranks are lost and nothing else explains the failures.
pub fn is_about_links(candidates: &[Candidate]) -> bool {
    candidates.iter().any(Candidate::is_lost_link) && candidates.iter().all(|c| weight(c.failure.kind) > 0)
}

/// Returns the cause, or `None` without candidates.
pub fn cause(candidates: &[Candidate], ends: &Ends) -> Option<Candidate> {
    // The first of those that are equal, so the order of arrival decides last.
    let mut at = candidates.iter().min_by_key(|c| ends.precedence(&c.failure))?;
    let mut seen = BTreeSet::new();
    let mut found = loop {
        let Some(missing) = at.failure.missing.filter(|_| weight(at.failure.kind) > 0) else { break at.clone() };
        match candidates.iter().find(|c| c.failure.rank == Some(missing)) {
            // Two ends of a lost link point to each other, and both end by it.
            Some(own) if at.is_lost_link() && own.is_lost_link() => break link(at, candidates),
            Some(own) if seen.insert(missing) => at = own,
            Some(_) => break at.clone(),
            None if ends.has_left(missing) => break ended(at, missing, ends),
            None if at.is_lost_link() => break link(at, candidates),
            None => break at.clone(),
        }
    };
    // A rank that told of its failure may have ended meanwhile.
    let rank = found.failure.rank;
    let of_rank = candidates.iter().find(|c| rank.is_some() && c.failure.rank == rank).and_then(|c| c.code);
    found.code = found.code.or(of_rank);
    found.is_final |= candidates.iter().any(|c| c.is_final);
    found.failure.missing = None;
    Some(found)
}

/// The failure of a rank that has ended although another one still waited for it.
fn ended(waiter: &Candidate, missing: usize, ends: &Ends) -> Candidate {
    let how = ends.gone.get(&missing).filter(|how| !how.is_empty());
    let how = how.map_or_else(|| format!("rank {missing} ended"), Clone::clone);
    let message = format!("{how} while others needed it: {}", waiter.failure.message);
    let failure = Failure::of_rank(missing, FailureKind::Exited, message).in_places(waiter.failure.places.clone());
    Candidate { failure, ..waiter.clone() }
}

/// The failure of a link, or of all links of a rank.
fn link(first: &Candidate, candidates: &[Candidate]) -> Candidate {
    let lost = candidates.iter().filter(|c| c.is_lost_link()).map(|c| &c.failure);
    let pairs: BTreeSet<[usize; 2]> = lost
        .filter_map(|f| Some([f.rank?, f.missing?]))
        .map(|mut pair| {
            pair.sort_unstable();
            pair
        })
        .collect();
    let mut links: BTreeMap<usize, usize> = BTreeMap::new();
    pairs.iter().flatten().for_each(|rank| *links.entry(*rank).or_default() += 1);
    let most = links.values().copied().max().unwrap_or(0);
    let mut worst = links.iter().filter(|(_, n)| **n == most).map(|(rank, _)| *rank);
    let mut failure = first.failure.clone();
    failure.rank = None;
    if let (true, Some(rank), None) = (most > 1, worst.next(), worst.next()) {
        let others: Vec<String> = pairs
            .iter()
            .filter(|p| p.contains(&rank))
            .flatten()
            .filter(|r| **r != rank)
            .map(usize::to_string)
            .collect();
        failure.rank = Some(rank);
        failure.message =
            format!("the links of rank {rank} to ranks {} are lost: {}", others.join(" and "), first.failure.message);
    }
    Candidate { failure, ..first.clone() }
}

/// How likely a failure of this kind is the cause of others at the same time; less is likelier.
fn weight(kind: FailureKind) -> u8 {
    use FailureKind::{Diverged, Interrupted, Killed, LinkLost, NodeLost, OutOfMemory, Stalled, Stopped};
    match kind {
        Killed | OutOfMemory | NodeLost | Interrupted | Stopped | Diverged | Stalled => 0,
        LinkLost => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind::{Error, Exited, Killed, LinkLost};

    fn candidate(rank: usize, kind: FailureKind, missing: Option<usize>) -> Candidate {
        let failure = Failure { missing, ..Failure::of_rank(rank, kind, format!("rank {rank} failed")) };
        Candidate { failure, code: Some(1), is_final: false }
    }

    fn check(candidates: &[Candidate], ends: &Ends) -> (Option<usize>, FailureKind, String) {
        let failure = cause(candidates, ends).unwrap().failure;
        assert_eq!(failure.missing, None);
        (failure.rank, failure.kind, failure.message)
    }

    /// A case in words: failures as `rank kind`, or `rank kind for missing` where the rank had waited for another one, ranks that have
    /// left in order, and of these the ones whose processes have ended.
    fn case(failures: &str, left: &[usize], gone: &[usize]) -> (Vec<Candidate>, Ends) {
        let candidates = failures.split(", ").map(|text| {
            let words: Vec<&str> = text.split(' ').collect();
            let kind = [Error, Exited, Killed, LinkLost, FailureKind::OutOfMemory, FailureKind::Panicked]
                .into_iter()
                .find(|k| format!("{k:?}") == words[1]);
            candidate(words[0].parse().unwrap(), kind.unwrap(), words.get(3).map(|m| m.parse().unwrap()))
        });
        let mut ends = Ends::default();
        left.iter().for_each(|rank| ends.left(*rank));
        gone.iter().for_each(|rank| ends.gone(*rank, String::new()));
        (candidates.collect(), ends)
    }

    #[test]
    fn failures_of_one_time_in_their_order() {
        for (failures, left, gone, order, waits) in [
            // Of equal ones the rank that left first counts, whichever was reported first.
            ("0 Error, 1 Error", &[1, 0][..], &[0, 1][..], &[1, 0][..], false),
            ("0 Error, 1 Error", &[0, 1], &[0, 1], &[0, 1], false),
            ("0 Panicked, 1 Error, 2 Exited", &[2, 1], &[0, 1, 2], &[2, 1, 0], false),
            // A rank that died before it could say goodbye comes last, but not if it was killed.
            ("0 Exited, 1 Error", &[1], &[0, 1], &[1, 0], false),
            ("0 Error, 1 Killed", &[0], &[0, 1], &[1, 0], false),
            ("0 Error, 1 OutOfMemory", &[0, 1], &[0, 1], &[1, 0], false),
            ("0 LinkLost for 2, 1 Error", &[0, 1], &[0, 1], &[1, 0], false),
            // Rank 2 left before the failed one and still runs: how it ends may explain the failure.
            ("0 Error", &[2, 0], &[0], &[0], true),
            ("0 Exited", &[2], &[0], &[0], true),
            ("0 Error", &[2, 0], &[0, 2], &[0], false),
            ("0 Error", &[0, 2], &[0], &[0], false),
            ("0 Error, 2 Error", &[2, 0], &[0, 2], &[2, 0], false),
            ("0 Error for 2", &[0, 2], &[0], &[0], true),
            ("0 Error for 2", &[0], &[0], &[0], false),
            ("0 Killed", &[2, 0], &[0], &[0], false),
            // Nothing is known of the failed rank itself.
            ("0 Error", &[2], &[], &[0], false),
        ] {
            let (mut candidates, ends) = case(failures, left, gone);
            assert_eq!(ends.earlier_is_still_ending(&candidates), waits, "{failures}; left {left:?}, gone {gone:?}");
            ends.sort(&mut candidates, |c| &c.failure);
            let sorted: Vec<_> = candidates.iter().filter_map(|c| c.failure.rank).collect();
            assert_eq!(sorted, order, "{failures}; left {left:?}, gone {gone:?}");
        }
    }

    #[test]
    fn a_rank_that_ended_while_others_waited_is_the_cause() {
        let mut ends = Ends::default();
        ends.left(3);
        let waiters = [candidate(0, Error, Some(1)), candidate(1, Error, Some(3))];
        let wanted = "rank 3 ended while others needed it: rank 1 failed";
        assert_eq!(check(&waiters, &ends), (Some(3), Exited, wanted.into()));
        assert!(ends.earlier_is_still_ending(&waiters));
        ends.gone(3, "rank 3 (pid 9) exited with code 0".into());
        assert!(!ends.earlier_is_still_ending(&waiters));
        let wanted = "rank 3 (pid 9) exited with code 0 while others needed it: rank 1 failed";
        assert_eq!(check(&waiters, &ends), (Some(3), Exited, wanted.into()));
        // It had failed itself; a kill needs no explanation.
        let own = [waiters[1].clone(), candidate(3, Error, None)];
        assert_eq!(check(&own, &ends), (Some(3), Error, "rank 3 failed".into()));
        let killed = [waiters[1].clone(), candidate(2, Killed, None)];
        assert_eq!(check(&killed, &ends).0, Some(2));
    }

    #[test]
    fn a_lost_link_to_a_rank_that_has_ended_is_its_end() {
        let mut ends = Ends::default();
        let lost = [candidate(0, LinkLost, Some(2))];
        assert_eq!(check(&lost, &ends), (None, LinkLost, "rank 0 failed".into()));
        ends.gone(2, String::new());
        assert_eq!(check(&lost, &ends).0, Some(2));
    }

    #[test]
    fn a_rank_whose_links_are_all_lost_is_named_in_any_order() {
        let told = [candidate(0, LinkLost, Some(2)), candidate(1, LinkLost, Some(2)), candidate(2, LinkLost, Some(0))];
        for first in 0..3 {
            let mut told = told.clone();
            told.rotate_left(first);
            let (rank, kind, message) = check(&told, &Ends::default());
            assert_eq!((rank, kind), (Some(2), LinkLost));
            assert!(message.starts_with("the links of rank 2 to ranks 0 and 1 are lost: "), "{message}");
        }
        // All three have ended by that, and a fourth because the first has.
        let mut ends = Ends::default();
        [1, 2, 0].into_iter().for_each(|rank| ends.left(rank));
        let mut told = told.to_vec();
        told.push(candidate(3, Error, Some(0)));
        let (rank, kind, _) = check(&told, &ends);
        assert_eq!((rank, kind), (Some(2), LinkLost));
        // Both ends of one link, and two links that have nothing in common.
        assert_eq!(check(&[told[0].clone(), told[2].clone()], &Ends::default()).0, None);
        assert_eq!(check(&[told[0].clone(), candidate(1, LinkLost, Some(3))], &Ends::default()).0, None);
    }

    #[test]
    fn ranks_that_point_to_each_other_are_no_endless_loop() {
        let both = [candidate(0, Error, Some(1)), candidate(1, Error, Some(0))];
        assert_eq!(check(&both, &Ends::default()).1, Error);
    }
}
