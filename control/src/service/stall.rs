//! Finds stalled ranks: ranks that hold up others. Pure: takes heartbeats and the time, returns warnings and failures.
//!
//! A rank that makes progress does not stall, nor does a rank that no other rank waits for. A waiting rank points to the ranks it
//! waits for. At the end of such a chain is a rank that does not wait, which *stalls* the others, or there is a cycle. The time
//! in which a starved rank was queued for a processor does not count, so it does not count as stalled. A rank is starved if it has
//! had a processor less than a quarter of the time in which it could run.
//!
//! Ranks wait in collectives, which their heartbeats tell, and in meetings of the control plane. A rank whose process runs and has
//! not joined the job makes no progress; its launcher tells how much it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use oflow_proto::control as pb;

use super::kv_store::Meeting;
use super::watching::Held;
use crate::flight::NodeRecord;
use crate::{Failure, FailureKind, Place};
use oflow_comm::transport::place_of;

/// A wait that is worth a warning.
const WARN: Duration = Duration::from_secs(5);
/// A wait that people who watch the job see.
const SHOWN: Duration = Duration::from_secs(1);
/// A rank without heartbeats for this time is not judged here; the launcher watches its process.
const HEARD: Duration = Duration::from_secs(3);
/// A rank that was queued this many times as long as it ran is starved.
const STARVED: u32 = 3;
/// The time over which a rank is found slow.
const WINDOW: Duration = Duration::from_secs(30);

/// A result of the search.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A sentence for the user.
    Warning(String),
    /// The failure of the job.
    Failure(Failure),
}

struct Waiting {
    ranks: Vec<usize>,
    call: String,
    ordinal: Option<u64>,
    since: Instant,
}

struct View {
    heard: Instant,
    progress: u64,
    calls: u64,
    /// Of work beside the ops.
    steps: u64,
    /// When one of these last changed, and the clocks of the rank then.
    moved: Instant,
    cpu_ms: [u64; 2],
    queued_ms: [u64; 2],
    last: Option<pb::OpRecord>,
    /// The node of the graph that it runs.
    node: Option<NodeRecord>,
    last_ms: u64,
    /// Whether it has not joined the job.
    absent: bool,
    wait: Option<Waiting>,
    /// (when, waited) at the beginning of the window for slowness.
    window: (Instant, u64, u64),
    waited_ms: u64,
}

/// The states of the ranks of a job, from their heartbeats.
pub struct Stalls {
    limit: Duration,
    ranks: BTreeMap<usize, View>,
    warned: BTreeSet<usize>,
    slow: BTreeSet<usize>,
    /// Open meetings, and since when nobody has come.
    meetings: BTreeMap<String, (usize, Instant)>,
    /// Waits in meetings, by rank.
    in_meeting: BTreeMap<usize, Waiting>,
}

impl Stalls {
    /// `limit`: time-out for a rank that makes no progress.
    pub fn new(limit: Duration) -> Stalls {
        Stalls {
            limit,
            ranks: BTreeMap::new(),
            warned: BTreeSet::new(),
            slow: BTreeSet::new(),
            meetings: BTreeMap::new(),
            in_meeting: BTreeMap::new(),
        }
    }

    /// Takes a heartbeat.
    pub fn beat(&mut self, beat: &pb::HeartbeatRequest, now: Instant) {
        let rank = beat.rank as usize;
        let issued = now.checked_sub(Duration::from_millis(beat.last_ms)).unwrap_or(now);
        let view = self.ranks.entry(rank).or_insert_with(|| View {
            heard: now,
            progress: beat.progress,
            calls: beat.calls,
            steps: beat.moved,
            moved: issued,
            cpu_ms: [beat.cpu_ms; 2],
            queued_ms: [beat.queued_ms; 2],
            last: None,
            node: None,
            last_ms: 0,
            absent: beat.absent,
            wait: None,
            window: (now, beat.waited_ms, beat.calls),
            waited_ms: beat.waited_ms,
        });
        if beat.absent && !view.absent {
            // Its process runs, but what had joined is not heard any more: it may have become another program.
            (view.heard, view.last_ms) = (now, now.saturating_duration_since(view.moved).as_millis() as u64);
            // Clocks of the main thread; those of the rank itself were of all its threads.
            view.cpu_ms[1] = view.cpu_ms[1].max(beat.cpu_ms);
            view.queued_ms[1] = view.queued_ms[1].max(beat.queued_ms);
            return;
        }
        let joined = view.absent && !beat.absent;
        let beside = joined || view.calls != beat.calls || view.steps != beat.moved;
        if view.progress != beat.progress || beside {
            // A collective of an older op ended, or a piece of a file was written, just now at the latest.
            let fresh = joined || view.progress == beat.progress || view.steps != beat.moved;
            view.moved = if fresh { now } else { issued.max(view.moved) };
            (view.progress, view.calls, view.steps) = (beat.progress, beat.calls, beat.moved);
            view.absent = beat.absent;
            (view.cpu_ms, view.queued_ms) = ([beat.cpu_ms; 2], [beat.queued_ms; 2]);
            self.warned.remove(&rank);
        }
        (view.cpu_ms[1], view.queued_ms[1]) = (beat.cpu_ms, beat.queued_ms);
        (view.heard, view.waited_ms) = (now, beat.waited_ms);
        (view.last, view.last_ms) = (beat.last.clone(), beat.last_ms);
        view.node = beat.node.as_ref().map(node);
        view.wait = beat.wait.as_ref().map(|w| Waiting {
            ranks: w.ranks.iter().map(|r| *r as usize).filter(|r| *r != rank).collect(),
            ordinal: place_of(rank, &w.call).map(|p| p.ordinal),
            call: w.call.clone(),
            since: now.checked_sub(Duration::from_millis(w.since_ms)).unwrap_or(now),
        });
    }

    /// A rank has left the job.
    pub fn left(&mut self, rank: usize) {
        self.ranks.remove(&rank);
    }

    /// The wait of a rank.
    fn wait(&self, rank: usize) -> Option<&Waiting> {
        self.ranks.get(&rank).and_then(|v| v.wait.as_ref()).or_else(|| self.in_meeting.get(&rank))
    }

    /// Notes who waits for whom in the open meetings.
    fn meet(&mut self, open: &[Meeting], now: Instant) {
        self.meetings.retain(|name, _| open.iter().any(|m| m.name == *name));
        self.in_meeting.clear();
        for Meeting { name, here, missing } in open {
            let (came, since) = self.meetings.entry(name.clone()).or_insert((here.len(), now));
            if *came != here.len() {
                (*came, *since) = (here.len(), now);
            }
            for rank in here {
                let call = format!("the meeting {name:?} of the control plane");
                let wait = Waiting { ranks: missing.clone(), call, ordinal: None, since: *since };
                self.in_meeting.entry(*rank).or_insert(wait);
            }
        }
    }

    /// Ranks that a waiting rank really waits for: not those that are in the same call.
    fn awaited(&self, rank: usize) -> Vec<usize> {
        let Some(wait) = self.wait(rank) else { return Vec::new() };
        let here = |r: usize| self.wait(r);
        let late = |r: &usize| wait.ordinal.is_none() || here(*r).is_none_or(|w| w.ordinal != wait.ordinal);
        let late: Vec<usize> = wait.ranks.iter().copied().filter(late).collect();
        // All of them are there and in it: then they wait for each other.
        if late.is_empty() { wait.ranks.clone() } else { late }
    }

    /// The rank at the end of the chain that begins with a waiting one, or the circle that it runs into.
    fn end_of(&self, rank: usize) -> Result<usize, Vec<usize>> {
        let mut chain = vec![rank];
        loop {
            let at = chain[chain.len() - 1];
            if self.wait(at).is_none() {
                return Ok(at);
            }
            let awaited = self.awaited(at);
            // One that does not wait says more than one that does.
            let next = awaited.iter().find(|r| self.wait(**r).is_none()).or(awaited.first());
            let Some(next) = next.copied() else { return Ok(at) };
            if let Some(i) = chain.iter().position(|r| *r == next) {
                return Err(chain.split_off(i));
            }
            chain.push(next);
        }
    }

    /// Returns the warnings and failures at this time, with these open meetings.
    pub fn look(&mut self, now: Instant, open: &[Meeting]) -> Vec<Finding> {
        let mut found = Vec::new();
        self.meet(open, now);
        let known: BTreeSet<usize> = self.ranks.keys().chain(self.in_meeting.keys()).copied().collect();
        let long = |r: &usize| self.wait(*r).is_some() && self.waited(*r, now) >= WARN.min(self.limit);
        let waiting: Vec<usize> = known.into_iter().filter(long).collect();
        let mut by_culprit: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for rank in &waiting {
            match self.end_of(*rank) {
                Ok(end) => by_culprit.entry(end).or_default().push(*rank),
                Err(circle) => found.extend(self.circle(&circle, now)),
            }
        }
        for (culprit, waiters) in by_culprit {
            found.extend(self.stalled(culprit, &waiters, now));
        }
        found.extend(self.slow());
        found
    }

    fn stalled(&mut self, culprit: usize, waiters: &[usize], now: Instant) -> Option<Finding> {
        let view = self.ranks.get(&culprit)?;
        // It may have moved on since the others last told; and of one that is silent nothing is known.
        let still = now.saturating_duration_since(view.moved);
        if self.wait(culprit).is_some()
            || now.saturating_duration_since(view.heard) > HEARD
            || still < WARN.min(self.limit)
        {
            return None;
        }
        let longest = waiters.iter().copied().max_by_key(|r| self.waited(*r, now))?;
        let [queued, ran] =
            [view.queued_ms, view.cpu_ms].map(|[from, to]| Duration::from_millis(to.saturating_sub(from)));
        let queued = if queued > ran * STARVED { queued } else { Duration::ZERO };
        let could_run = self.waited(longest, now).min(still.saturating_sub(queued));
        let text = self.describe(culprit, longest, waiters, now);
        if could_run >= self.limit {
            let of_node = view.node.as_ref().map(|n| n.place(culprit));
            let places = [self.place(longest), of_node.or_else(|| view.last.as_ref().map(|o| place(culprit, o)))];
            let failure =
                Failure::of_rank(culprit, FailureKind::Stalled, format!("rank {culprit} stalls the job: {text}"));
            return Some(Finding::Failure(failure.in_places(places.into_iter().flatten())));
        }
        self.warned.insert(culprit).then_some(Finding::Warning(text))
    }

    /// The ranks that hold up others at this time, for people who watch: long before anything is warned of.
    pub fn holding(&self, now: Instant) -> Vec<Held> {
        let known: BTreeSet<usize> = self.ranks.keys().chain(self.in_meeting.keys()).copied().collect();
        let waiting = known.into_iter().filter(|r| self.wait(*r).is_some() && self.waited(*r, now) >= SHOWN);
        let mut by_end: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for rank in waiting {
            let end = self.end_of(rank).unwrap_or_else(|circle| circle.into_iter().min().unwrap_or(rank));
            by_end.entry(end).or_default().push(rank);
        }
        let held = |(end, waiters): (usize, Vec<usize>)| {
            let longest = waiters.iter().copied().max_by_key(|r| self.waited(*r, now))?;
            let since = self.waited(longest, now);
            let text = match self.ranks.contains_key(&end) && self.wait(end).is_none() {
                true => self.describe(end, longest, &waiters, now),
                false => {
                    let call = self.wait(longest).map_or("", |w| w.call.as_str());
                    let others = match waiters.len() {
                        1 => String::new(),
                        n => format!(" and {} more", n - 1),
                    };
                    format!("rank {longest}{others} in {call}: waiting for rank {end}, {:.0} s", since.as_secs_f64())
                }
            };
            Some(Held { rank: end, waiting: waiters.len(), since, text })
        };
        by_end.into_iter().filter_map(held).collect()
    }

    fn waited(&self, rank: usize, now: Instant) -> Duration {
        let since = self.wait(rank).map(|w| w.since);
        since.map_or(Duration::ZERO, |s| now.saturating_duration_since(s))
    }

    fn place(&self, rank: usize) -> Option<Place> {
        place_of(rank, &self.wait(rank)?.call)
    }

    fn describe(&self, culprit: usize, longest: usize, waiters: &[usize], now: Instant) -> String {
        let (view, wait) = (&self.ranks[&culprit], self.wait(longest));
        let seconds = |d: Duration| format!("{:.0} s", d.as_secs_f64());
        let call = wait.map_or("a collective", |w| w.call.as_str());
        let (others, have) = match waiters.len() {
            1 => (String::new(), "has"),
            2 => (" and 1 other rank".to_string(), "have"),
            n => (format!(" and {} other ranks", n - 1), "have"),
        };
        let did = match (&view.node, &view.last) {
            (Some(n), _) => {
                let op = if n.op.is_empty() { String::new() } else { format!("'{}'", n.op) };
                format!("has issued nothing since {}", n.describe(&op))
            }
            (None, Some(o)) => format!("has issued nothing since '{}' #{} ({}:{})", o.op, o.ordinal, o.file, o.line),
            (None, None) if view.absent => "has not called oflow::init()".into(),
            (None, None) => "has not issued any op".into(),
        };
        let still = now.saturating_duration_since(view.moved).max(Duration::from_millis(view.last_ms));
        let since = now.saturating_duration_since(view.moved).as_millis().max(1) as u64;
        let share = |[from, to]: [u64; 2]| (to.saturating_sub(from)) as f64 / since as f64;
        let doing = match (share(view.cpu_ms), share(view.queued_ms)) {
            (cpu, _) if cpu > 0.5 => "it computes",
            (_, queued) if queued > 0.3 => "other processes keep it from the processor",
            (cpu, _) if cpu < 0.05 => "it sleeps: it waits for something outside the job",
            _ => "it computes now and then",
        };
        format!(
            "rank {longest}{others} {have} waited {} for rank {culprit}, in {call}; rank {culprit} {did}, {}; {doing}",
            seconds(self.waited(longest, now)),
            match view.last.is_some() || view.node.is_some() {
                true => format!("{} ago", seconds(still)),
                false => format!("{} after its start", seconds(still)),
            }
        )
    }

    fn circle(&mut self, circle: &[usize], now: Instant) -> Option<Finding> {
        let mut ranks = circle.to_vec();
        let first = ranks.iter().enumerate().min_by_key(|(_, r)| **r).map_or(0, |(i, _)| i);
        ranks.rotate_left(first);
        let shortest = ranks.iter().map(|r| self.waited(*r, now)).min()?;
        let fresh = |r: &usize| self.ranks.get(r).is_some_and(|v| now.saturating_duration_since(v.heard) <= HEARD);
        if shortest < WARN.min(self.limit) || !ranks.iter().all(fresh) {
            return None;
        }
        let next = |i: usize| ranks[(i + 1) % ranks.len()];
        let lines: Vec<String> = ranks
            .iter()
            .enumerate()
            .filter_map(|(i, r)| {
                let call = &self.wait(*r)?.call;
                Some(format!("rank {r} waits for rank {} in {call}", next(i)))
            })
            .collect();
        let text = format!("ranks wait for each other, since {:.0} s: {}", shortest.as_secs_f64(), lines.join("; "));
        if shortest >= self.limit {
            let places = ranks.iter().filter_map(|r| self.place(*r));
            return Some(Finding::Failure(Failure::of_rank(ranks[0], FailureKind::Stalled, text).in_places(places)));
        }
        self.warned.insert(ranks[0]).then_some(Finding::Warning(text))
    }

    /// A rank that moves, but for which the others wait most of the time.
    fn slow(&mut self) -> Option<Finding> {
        let shares: Vec<(usize, f64)> = self
            .ranks
            .iter()
            .filter_map(|(r, v)| {
                let took = v.heard.saturating_duration_since(v.window.0);
                let moves = v.calls > v.window.2 + 3;
                let share = (v.waited_ms - v.window.1.min(v.waited_ms)) as f64 / took.as_millis() as f64;
                (took >= WINDOW && moves).then_some((*r, share))
            })
            .collect();
        if shares.len() < self.ranks.len() || shares.len() < 2 {
            return None;
        }
        for view in self.ranks.values_mut() {
            view.window = (view.heard, view.waited_ms, view.calls);
        }
        let (slow, own) = shares.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let others: Vec<f64> = shares.iter().filter(|(r, _)| *r != slow).map(|(_, s)| *s).collect();
        let least = others.iter().copied().fold(f64::INFINITY, f64::min);
        if own > 0.1 || least < 0.5 || !self.slow.insert(slow) {
            return None;
        }
        Some(Finding::Warning(format!(
            "rank {slow} is slow: in the last {:.0} s every other rank has waited at least {:.0} % of the time for late ones, \
             rank {slow} {:.0} %",
            WINDOW.as_secs_f64(),
            least * 100.0,
            own * 100.0
        )))
    }
}

fn node(n: &pb::GraphNode) -> NodeRecord {
    let pb::GraphNode { graph, number, op, file, line } = n.clone();
    NodeRecord { graph, number, op, call: String::new(), file, line }
}

fn place(rank: usize, op: &pb::OpRecord) -> Place {
    Place { rank, op: op.op.clone(), ordinal: op.ordinal, file: op.file.clone(), line: op.line }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn beat(rank: u32, progress: u64, wait: Option<(&[u32], u64, u64)>) -> pb::HeartbeatRequest {
        let wait = wait.map(|(ranks, ordinal, ms)| pb::Wait {
            ranks: ranks.to_vec(),
            call: format!("all_reduce of 'sum' #{ordinal} (train.rs:{ordinal})"),
            since_ms: ms,
        });
        let last = pb::OpRecord {
            ordinal: progress,
            op: "relu".into(),
            file: "train.rs".into(),
            line: 7,
            ..Default::default()
        };
        pb::HeartbeatRequest { rank, progress, wait, last: Some(last), calls: progress, ..Default::default() }
    }

    fn warnings(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|f| if let Finding::Warning(w) = f { w.as_str() } else { panic!("{f:?}") }).collect()
    }

    #[test]
    fn an_endless_loop_is_warned_of_and_ends_the_job() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(20 * S));
        let mut all = vec![];
        for t in 0..30u32 {
            let now = start + t * S;
            let ms = u64::from(t) * 1000;
            stalls.beat(&beat(0, 5, Some((&[1], 5, ms))), now);
            stalls.beat(&beat(2, 5, Some((&[0, 1, 2], 5, ms))), now);
            stalls.beat(&pb::HeartbeatRequest { cpu_ms: ms, last_ms: ms, ..beat(1, 4, None) }, now);
            all.extend(stalls.look(now, &[]).into_iter().map(|f| (t, f)));
        }
        let (at, Finding::Warning(text)) = &all[0] else { panic!("{all:?}") };
        assert_eq!(*at, 5);
        assert_eq!(
            text,
            "rank 2 and 1 other rank have waited 5 s for rank 1, in all_reduce of 'sum' #5 (train.rs:5); rank 1 has issued nothing since 'relu' #4 (train.rs:7), 5 s ago; it computes"
        );
        let (at, Finding::Failure(failure)) = &all[1] else { panic!("{all:?}") };
        assert_eq!((*at, failure.rank, failure.kind), (20, Some(1), FailureKind::Stalled));
        assert_eq!(failure.places.iter().map(|p| (p.rank, p.line)).collect::<Vec<_>>(), [(2, 5), (1, 7)]);
    }

    #[test]
    fn a_rank_in_a_graph_is_named_with_its_node_and_only_if_it_stays_there() {
        let node = |number: u32, op: &str| pb::GraphNode {
            graph: 4,
            number,
            op: op.into(),
            file: "model.rs".into(),
            line: 10 + number,
        };
        // From second 20 on it stays at node 7.
        let (start, mut stalls) = (Instant::now(), Stalls::new(10 * S));
        let mut failures = vec![];
        for t in 0..60u64 {
            let now = start + t as u32 * S;
            let (step, ago) = (t.min(20), t.saturating_sub(20) * 1000);
            stalls.beat(&beat(0, 5, Some((&[1], 5, t * 1000))), now);
            let at = node(if t < 20 { t as u32 + 100 } else { 7 }, "relu");
            let stuck = beat(1, 4, None);
            stalls.beat(&pb::HeartbeatRequest { moved: step, last_ms: ago, node: Some(at), ..stuck }, now);
            let found = stalls.look(now, &[]).into_iter();
            failures.extend(found.filter_map(|f| if let Finding::Failure(f) = f { Some((t, f)) } else { None }));
        }
        let (at, failure) = &failures[0];
        let text = "rank 1 has issued nothing since 'relu', node 7 of graph #4 (model.rs:17), 10 s ago";
        assert!(*at == 30 && failure.message.contains(text), "{at}: {failure:?}");
        let place = &failure.places[1];
        assert_eq!((place.op.as_str(), place.ordinal, place.line, place.rank), ("relu", 4, 17, 1));
        // Of a call that is not known its number is told.
        stalls.beat(&pb::HeartbeatRequest { node: Some(node(7, "")), ..beat(1, 4, None) }, start + 61 * S);
        let text = stalls.describe(1, 0, &[0], start + 61 * S);
        assert!(text.contains("has issued nothing since node 7 of graph #4 (model.rs:17), "), "{text}");
    }

    #[test]
    fn a_starved_rank_and_one_that_moves_are_left_alone() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(2 * S));
        for t in 0..600u64 {
            let now = start + t as u32 * S;
            let ms = t * 1000;
            stalls.beat(&beat(0, 5, Some((&[1], 5, ms))), now);
            // It gets the processor a five-hundredth of the time.
            stalls.beat(&pb::HeartbeatRequest { cpu_ms: ms / 500, queued_ms: ms - ms / 500, ..beat(1, 4, None) }, now);
            let found = stalls.look(now, &[]);
            assert!(found.len() <= 1 && warnings(&found).iter().all(|w| w.ends_with("keep it from the processor")));
        }
        let mut stalls = Stalls::new(2 * S);
        for t in 0..600u64 {
            let now = start + t as u32 * S;
            // Late each time, but it moves.
            stalls.beat(&beat(0, 5 + t, Some((&[1], 5 + t, 900))), now);
            stalls.beat(&beat(1, 4 + t, None), now);
            assert_eq!(stalls.look(now, &[]), []);
        }
    }

    #[test]
    fn a_rank_that_has_joined_and_is_not_heard_any_more_stalls() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(10 * S));
        stalls.beat(&beat(1, 4, None), start);
        let mut all = vec![];
        for t in 0..15u64 {
            let (now, ms) = (start + t as u32 * S, t * 1000);
            stalls.beat(&beat(0, 5, Some((&[1], 5, ms))), now);
            stalls.beat(&pb::HeartbeatRequest { rank: 1, absent: true, cpu_ms: 1, ..Default::default() }, now);
            all.extend(stalls.look(now, &[]).into_iter().map(|f| (t, f)));
        }
        let Some((10, Finding::Failure(f))) = all.iter().find(|(_, f)| matches!(f, Finding::Failure(_))) else {
            panic!("{all:?}")
        };
        assert!(f.rank == Some(1) && f.message.contains("has issued nothing since 'relu' #4"), "{f}");
    }

    #[test]
    fn an_endless_loop_on_a_busy_machine_fires_at_the_limit() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(10 * S));
        let mut all = vec![];
        for t in 0..15u64 {
            let (now, ms) = (start + t as u32 * S, t * 1000);
            stalls.beat(&beat(0, 5, Some((&[1], 5, ms))), now);
            // It has a processor every second moment.
            let half = pb::HeartbeatRequest { cpu_ms: ms / 2, queued_ms: ms / 2, last_ms: ms, ..beat(1, 4, None) };
            stalls.beat(&half, now);
            all.extend(stalls.look(now, &[]).into_iter().map(|f| (t, f)));
        }
        let fired = all.iter().find(|(_, f)| matches!(f, Finding::Failure(_))).map(|(t, _)| *t);
        assert_eq!(fired, Some(10), "{all:?}");
    }

    #[test]
    fn who_writes_a_file_for_long_does_not_stall_until_it_hangs() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(20 * S));
        let mut all = vec![];
        for t in 0..200u64 {
            let now = start + t as u32 * S;
            let ms = t * 1000;
            stalls.beat(&beat(0, 5, Some((&[1], 5, ms))), now);
            // A piece every four seconds, the last one after a hundred.
            let moved = t.min(100) / 4;
            stalls.beat(&pb::HeartbeatRequest { moved, last_ms: ms, ..beat(1, 4, None) }, now);
            all.extend(stalls.look(now, &[]).into_iter().map(|f| (t, f)));
        }
        let failures: Vec<u64> =
            all.iter().filter(|(_, f)| matches!(f, Finding::Failure(_))).map(|(t, _)| *t).collect();
        assert_eq!((failures[0], all[0].0), (120, 105), "{all:?}");
    }

    #[test]
    fn silent_and_departed_ranks_are_not_judged() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(2 * S));
        stalls.beat(&beat(1, 4, None), start);
        let now = start + 60 * S;
        stalls.beat(&beat(0, 5, Some((&[1], 5, 60_000))), now);
        assert_eq!(stalls.look(now, &[]), []);
        stalls.left(1);
        assert_eq!(stalls.look(now, &[]), []);
    }

    #[test]
    fn a_circle_is_named() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(10 * S));
        stalls.beat(&beat(2, 5, Some((&[1], 5, 6000))), start);
        stalls.beat(&beat(1, 6, Some((&[2], 6, 7000))), start);
        let found = stalls.look(start, &[]);
        assert_eq!(
            warnings(&found),
            [
                "ranks wait for each other, since 6 s: rank 1 waits for rank 2 in all_reduce of 'sum' #6 (train.rs:6); rank 2 waits for rank 1 in all_reduce of 'sum' #5 (train.rs:5)"
            ]
        );
        stalls.beat(&beat(2, 5, Some((&[1], 5, 11_000))), start);
        stalls.beat(&beat(1, 6, Some((&[2], 6, 12_000))), start);
        assert!(
            matches!(&stalls.look(start, &[])[0], Finding::Failure(f) if f.kind == FailureKind::Stalled && f.places.len() == 2)
        );
    }

    #[test]
    fn a_slow_rank_is_named_once_with_numbers() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(300 * S));
        let mut all = vec![];
        for t in 0..100u64 {
            let now = start + t as u32 * S;
            for rank in 0..3u32 {
                let waited_ms = if rank == 2 { t * 20 } else { t * 800 };
                stalls.beat(&pb::HeartbeatRequest { waited_ms, ..beat(rank, t, None) }, now);
            }
            all.extend(stalls.look(now, &[]));
        }
        assert_eq!(
            warnings(&all),
            [
                "rank 2 is slow: in the last 30 s every other rank has waited at least 80 % of the time for late ones, rank 2 2 %"
            ]
        );
    }

    #[test]
    fn a_rank_that_never_joins_holds_up_a_meeting() {
        let (start, mut stalls) = (Instant::now(), Stalls::new(10 * S));
        let meeting = |here: &[usize], missing: &[usize]| Meeting {
            name: "data plane".into(),
            here: here.to_vec(),
            missing: missing.to_vec(),
        };
        let mut all = vec![];
        for t in 0..15u64 {
            let now = start + t as u32 * S;
            let absent = pb::HeartbeatRequest { rank: 1, absent: true, last_ms: t * 1000, ..Default::default() };
            stalls.beat(&absent, now);
            // Rank 2 comes after two seconds: until then somebody comes.
            let open = if t < 2 { meeting(&[0], &[1, 2]) } else { meeting(&[0, 2], &[1]) };
            all.extend(stalls.look(now, &[open]).into_iter().map(|f| (t, f)));
        }
        let Some((12, Finding::Failure(failure))) = all.iter().find(|(_, f)| matches!(f, Finding::Failure(_))) else {
            panic!("{all:?}")
        };
        assert_eq!(failure.rank, Some(1));
        let text = "rank 1 stalls the job: rank 2 and 1 other rank have waited 10 s for rank 1, in the meeting \"data plane\" of \
                    the control plane; rank 1 has not called oflow::init(), 12 s after its start; it sleeps: it waits for \
                    something outside the job";
        assert_eq!(failure.message, text);
        // It joins, which is progress, and the meeting ends.
        stalls.beat(&pb::HeartbeatRequest { rank: 1, ..Default::default() }, start + 15 * S);
        assert_eq!(stalls.look(start + 16 * S, &[meeting(&[0, 2], &[1])]), []);
        assert_eq!(stalls.look(start + 60 * S, &[]), []);
    }
}
