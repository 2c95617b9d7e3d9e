//! Content of a rank's heartbeats. Read on the control thread, because the rank's own thread may hang.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use oflow_proto::control as pb;
use rustix::time::{ClockId, clock_gettime};

use super::flight::{CallRecord, NodeRecord, OpRecord, Recorder};
use super::glimpse::{Watched, resident};
use oflow_comm::{Communicator, LinkEnd, Pulse};

/// Ops that are sent at most when the service asks, or when this rank has met another in a different op.
const MOST_RECORDS: usize = 1000;
/// Ops that go unasked with the news of a divergence.
const RECENT: u64 = 64;
/// A wait that is shorter is none.
const WAITING: Duration = Duration::from_millis(200);

/// Progress beside the dispatch stream. It belongs to the process, which is one rank: code that does such work need not know the
/// client.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// Reports progress of a rank that issues no ops, because it writes a file, reads data or compiles. As long as it is called
/// repeatedly the rank does not count as stalled (`oflaunch --stall`). The cost is one atomic addition.
pub fn moved() {
    MOVED.fetch_add(1, Ordering::Relaxed);
}

/// Content of the heartbeats up to now.
#[derive(Clone, Default)]
pub(super) struct ReportedState {
    /// Marks up to this ordinal.
    marks: u64,
    /// Interval that the service has asked for.
    pub(super) ask: Option<pb::Interval>,
    /// Ranks whose connections it has asked about, and the number of that question.
    pub(super) links: Vec<u32>,
    pub(super) asked: u64,
    /// Whether somebody watches the job.
    pub(super) watched: bool,
    /// Logged points up to this number.
    points: u64,
    /// Whether the next beat is one of those that carry a glimpse: every second one does.
    shows: bool,
}

impl ReportedState {
    /// Content of the heartbeats once this one has arrived.
    pub(super) fn with(&self, beat: &pb::HeartbeatRequest) -> ReportedState {
        let marks = beat.marks.last().map_or(self.marks, |m| m.ordinal);
        let points = beat.glimpse.as_ref().and_then(|g| g.points.last()).map_or(self.points, |p| p.number);
        ReportedState { marks, ask: None, links: Vec::new(), asked: self.asked, points, shows: !self.shows, ..*self }
    }

    /// The glimpse that the next beat is to carry, if any. `of` is missing until the rank has its communicator.
    pub(super) fn glimpse(&self, of: Option<&dyn Watched>) -> Option<pb::Glimpse> {
        let due = self.watched && self.shows;
        due.then(|| pb::Glimpse { resident: resident(), ..of.map(|w| w.look(self.points)).unwrap_or_default() })
    }

    /// Takes up a request in the answer to a heartbeat, and tells whether there was one. Whether that is anything.
    pub(super) fn hear(&mut self, reply: &mut pb::HeartbeatReply) -> bool {
        self.ask = reply.ask.take();
        self.links = std::mem::take(&mut reply.links);
        self.asked = self.asked.max(reply.asked);
        self.watched = reply.watched;
        self.ask.is_some() || !self.links.is_empty()
    }
}

/// The last op and the step of a graph as a beat saw them, and since when they have been the last ones.
struct Seen {
    ordinal: u64,
    steps: [u64; 2],
    since: Instant,
    /// Beats that found another step.
    moved: u64,
}

/// Sources of the heartbeats' content.
pub(super) struct Vitals {
    recorder: Arc<Recorder>,
    pulse: Arc<dyn Pulse>,
    /// Weak: the client outlives no communicator, and keeps none alive.
    comm: Weak<dyn Communicator>,
    seen: Mutex<Seen>,
}

impl Vitals {
    pub(super) fn new(recorder: Arc<Recorder>, comm: &Arc<dyn Communicator>) -> Vitals {
        let seen = Mutex::new(Seen { ordinal: 0, steps: [0; 2], since: Instant::now(), moved: 0 });
        Vitals { recorder, pulse: comm.pulse(), comm: Arc::downgrade(comm), seen }
    }

    /// A heartbeat; with the latest ops if it is to carry them unasked.
    pub(super) fn beat(&self, reported: &ReportedState, recent: bool) -> pb::HeartbeatRequest {
        let marks = self.recorder.marks_after(reported.marks);
        let last = self.recorder.last();
        let progress = last.as_ref().map_or(self.recorder.issued(), |o| o.ordinal);
        let (node, steps) = (self.recorder.node(), self.recorder.steps());
        let (last_ms, in_graphs) = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if (seen.ordinal, seen.steps) != (progress, steps) {
                let moved = seen.moved + u64::from(seen.steps != steps);
                *seen = Seen { ordinal: progress, steps, since: Instant::now(), moved };
            }
            let by_look = seen.since.elapsed().as_millis() as u64;
            // The record knows better when it was issued than the look at it. Nodes of a graph have none.
            let age = |o: &OpRecord| ((self.recorder.now() - o.time).max(0.0) * 1e3) as u64;
            let by_record = last.as_ref().filter(|_| node.is_none()).map_or(0, age);
            (by_record.max(by_look), seen.moved)
        };
        let interval =
            reported.ask.or(recent.then(|| pb::Interval { after: progress.saturating_sub(RECENT), to: progress }));
        let records = interval.map(|of| pb::Records {
            of: Some(of),
            ops: self.recorder.ops(of.after, of.to, MOST_RECORDS).into_iter().map(op).collect(),
        });
        let open = self.recorder.open_call();
        let wait = open.as_ref().and_then(|call| self.wait(call));
        let awaited = wait.as_ref().and_then(|_| self.pulse.waits_for()).map(|r| r as u32);
        let peers: BTreeSet<u32> = awaited.into_iter().chain(reported.links.iter().copied()).collect();
        pb::HeartbeatRequest {
            rank: 0,
            progress,
            marks: marks.into_iter().map(|(ordinal, hash)| pb::Mark { ordinal, hash }).collect(),
            wait,
            last: last.map(op),
            last_ms,
            records,
            cpu_ms: cpu_ms(),
            waited_ms: self.comm.upgrade().map_or(0, |c| c.traffic().waited_ns / 1_000_000),
            queued_ms: queued_ms(),
            marks_only: false,
            calls: self.comm.upgrade().map_or(0, |c| c.traffic().calls),
            links: peers.into_iter().filter_map(|peer| self.link(peer)).collect(),
            asked: reported.asked,
            moved: MOVED.load(Ordering::Relaxed) + in_graphs,
            absent: false,
            node: node.map(graph_node),
            glimpse: None,
        }
    }

    /// This rank's end of a connection.
    fn link(&self, peer: u32) -> Option<pb::LinkEnd> {
        let LinkEnd { sent, quiet, received, looks } = self.pulse.link(peer as usize)?;
        Some(pb::LinkEnd { peer, sent, sent_ms: quiet.as_millis() as u64, received, looks })
    }

    /// Whom the rank waits for in the collective that it is in.
    fn wait(&self, call: &CallRecord) -> Option<pb::Wait> {
        let since = Duration::try_from_secs_f64(self.recorder.now() - call.start).unwrap_or_default();
        if since < WAITING {
            return None;
        }
        let ranks = match self.pulse.waits_for() {
            Some(rank) => vec![rank],
            None => call.ranks.clone(),
        };
        let text = format!("{} of '{}' #{} ({}:{})", call.kind, call.op, call.ordinal, call.file, call.line);
        let ranks = ranks.into_iter().map(|r| r as u32).collect();
        Some(pb::Wait { ranks, call: text, since_ms: since.as_millis() as u64 })
    }
}

fn op(o: OpRecord) -> pb::OpRecord {
    pb::OpRecord { ordinal: o.ordinal, hash: o.hash, op: o.op, file: o.file, line: o.line, call: o.call }
}

fn graph_node(n: NodeRecord) -> pb::GraphNode {
    pb::GraphNode { graph: n.graph, number: n.number, op: n.op, file: n.file, line: n.line }
}

/// Time that the main thread has been queued for a processor; 0 if the system does not report it.
fn queued_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').nth(1).and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000_000
}

/// Processor time of this process.
fn cpu_ms() -> u64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as u64 * 1000 + t.tv_nsec as u64 / 1_000_000
}
