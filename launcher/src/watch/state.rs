//! The state of a job as the page and `--top` show it. Everything in it is bounded.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use oflow::control::service::{Held, HostPart, MOST_BOXINGS, Sight};
use oflow_proto::control as pb;
use serde_json::{Value, json};

use super::rank::{PARTS, Rank};
use super::series::{Curve, Metrics};

/// Boxings that are kept, the last ones of all ranks.
const BOXINGS: usize = 24;
/// Ranks whose boxings are shown, spread over the job: most ranks have the same ones.
const SAMPLE: usize = BOXINGS / MOST_BOXINGS;

/// A boxing that was seen, with a number of its own.
pub(super) struct Boxing {
    pub(super) number: u64,
    rank: u32,
    pub(super) seen: pb::SeenBoxing,
}

/// State of a job.
pub struct State {
    program: String,
    began: Instant,
    restart: u32,
    hosts: Vec<HostPart>,
    pub(super) ranks: BTreeMap<u32, Rank>,
    pub(super) metrics: Metrics,
    boxings: VecDeque<Boxing>,
    boxings_seen: u64,
    pub(super) held: Vec<Held>,
    stall: f64,
    /// By seconds since the start: steps per second, rows per second of a rank, resident memory of all ranks.
    rates: [Curve; 3],
    /// Why the job has failed.
    pub(super) failure: Option<String>,
    /// The exit code of the job.
    ended: Option<u8>,
}

/// Numbers over all ranks.
pub(super) struct Summary {
    pub(super) world: usize,
    pub(super) hosts: usize,
    pub(super) seconds: f64,
    pub(super) steps: f64,
    pub(super) rows: f64,
    pub(super) resident: u64,
    pub(super) waits: f64,
    /// How many ranks are in each phase.
    pub(super) phases: BTreeMap<&'static str, usize>,
}

impl State {
    /// The state of a job that begins.
    pub fn new(program: String) -> State {
        State {
            program,
            began: Instant::now(),
            restart: 0,
            hosts: Vec::new(),
            ranks: BTreeMap::new(),
            metrics: Metrics::default(),
            boxings: VecDeque::new(),
            boxings_seen: 0,
            held: Vec::new(),
            stall: 0.0,
            rates: Default::default(),
            failure: None,
            ended: None,
        }
    }

    /// Takes what there is to see.
    pub fn update(&mut self, sight: Sight, failure: Option<String>, now: Instant) {
        let Sight { restart, hosts, glimpses, left, held, stall } = sight;
        if restart != self.restart {
            self.restart = restart;
            self.ranks.clear();
        }
        (self.hosts, self.held, self.stall, self.failure) = (hosts, held, stall.as_secs_f64(), failure);
        let every = self.world().div_ceil(SAMPLE).max(1);
        for mut glimpse in glimpses {
            for p in glimpse.points.drain(..) {
                self.metrics.push(&p.name, p.step, p.value);
            }
            let shown = (glimpse.rank as usize).is_multiple_of(every);
            for seen in glimpse.boxings.drain(..).filter(|_| shown) {
                self.boxings_seen += 1;
                self.boxings.push_back(Boxing { number: self.boxings_seen, rank: glimpse.rank, seen });
            }
            match self.ranks.get_mut(&glimpse.rank) {
                Some(rank) => rank.update(glimpse, now),
                None => drop(self.ranks.insert(glimpse.rank, Rank::new(glimpse, now))),
            }
        }
        self.boxings.drain(..self.boxings.len().saturating_sub(BOXINGS));
        for rank in left {
            if let Some(rank) = u32::try_from(rank).ok().and_then(|r| self.ranks.get_mut(&r)) {
                rank.left = true;
            }
        }
        let s = self.summary(now);
        if self.ended.is_none() && !self.ranks.is_empty() {
            for (curve, value) in self.rates.iter_mut().zip([s.steps, s.rows, s.resident as f64]) {
                curve.push((s.seconds * 10.0).round() / 10.0, value);
            }
        }
    }

    fn world(&self) -> usize {
        self.hosts.last().map_or(0, |h| h.ranks.end)
    }

    /// The job has ended with this code.
    pub fn end(&mut self, code: u8) {
        self.ended = Some(code);
    }

    /// A boxing by its number, as long as it is kept.
    pub(super) fn boxing(&self, number: u64) -> Option<&Boxing> {
        self.boxings.iter().find(|b| b.number == number)
    }

    pub(super) fn summary(&self, now: Instant) -> Summary {
        let world = self.world();
        let alive = || self.ranks.values().filter(|r| !r.left);
        let count = alive().count().max(1) as f64;
        let mean = |of: &dyn Fn(&Rank) -> f64| alive().map(of).sum::<f64>() / count;
        let mut phases = BTreeMap::new();
        self.ranks.values().for_each(|r| *phases.entry(r.phase(now)).or_default() += 1);
        let unknown = world.saturating_sub(self.ranks.len());
        if unknown > 0 {
            *phases.entry("starting").or_default() += unknown;
        }
        Summary {
            world,
            hosts: self.hosts.len(),
            seconds: now.saturating_duration_since(self.began).as_secs_f64(),
            steps: mean(&|r| r.rates().0),
            rows: mean(&|r| r.rates().1),
            resident: alive().map(|r| r.glimpse.resident).sum(),
            waits: mean(&Rank::waits),
            phases,
        }
    }

    /// How the job is: a word, and the reason if it has failed.
    pub(super) fn status(&self) -> (&'static str, &str) {
        match (self.ended, &self.failure) {
            (_, Some(why)) => ("failed", why),
            (Some(0), None) => ("ended", ""),
            (Some(_), None) => ("failed", ""),
            (None, None) if self.hosts.is_empty() => ("starting", ""),
            (None, None) if !self.held.is_empty() => ("waiting", ""),
            (None, None) => ("running", ""),
        }
    }

    /// Name of the program.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Seconds after which a stall ends the job.
    pub(super) fn stall(&self) -> f64 {
        self.stall
    }

    /// Everything but curves of metrics and lines.
    pub(super) fn to_json(&self, now: Instant) -> Value {
        let s = self.summary(now);
        let (status, why) = self.status();
        let held = |h: &Held| json!({ "rank": h.rank, "waiting": h.waiting, "seconds": h.since.as_secs_f64().round(), "text": h.text });
        let host = |h: &HostPart| json!({ "name": h.name, "first": h.ranks.start, "count": h.ranks.len() });
        json!({
            "program": self.program,
            "status": status,
            "why": why,
            "code": self.ended,
            "restart": self.restart,
            "world": s.world,
            "hosts": self.hosts.iter().map(host).collect::<Vec<_>>(),
            "seconds": s.seconds.round(),
            "steps": s.steps,
            "rows": s.rows,
            "resident": s.resident,
            "waits": s.waits,
            "phases": s.phases,
            "parts": PARTS,
            "stall": self.stall,
            "held": self.held.iter().map(held).collect::<Vec<_>>(),
            "ranks": self.ranks.values().map(|r| r.to_json(now)).collect::<Vec<_>>(),
            "boxings": self.boxings.iter().rev().map(Boxing::to_json).collect::<Vec<_>>(),
            "rates": self.rates.iter().map(Curve::to_json).collect::<Vec<_>>(),
            "metrics": self.metrics.version,
        })
    }
}

impl Boxing {
    fn to_json(&self) -> Value {
        let b = &self.seen;
        let scope = if b.scope.is_empty() { String::new() } else { format!(" in {}", b.scope) };
        let tensor = if b.dtype.is_empty() { String::new() } else { format!("{}{:?}", b.dtype, b.shape) };
        json!({
            "number": self.number,
            "rank": self.rank,
            "op": b.op,
            "backward": b.backward,
            "place": format!("{}:{}{scope}", b.file, b.line),
            "tensor": tensor,
            "from": b.from,
            "to": b.to,
            "mesh": b.mesh.as_ref().map(mesh_text).unwrap_or_default(),
            "to_mesh": b.to_mesh.as_ref().map(mesh_text),
            "drawn": super::picture::can_draw(b),
            "bytes": b.bytes,
            "ns": b.ns,
        })
    }
}

/// A mesh as `dp=2,tp=4`, or `2,4` where its axes have no names.
fn mesh_text(mesh: &pb::Mesh) -> String {
    let axis = |(i, n): (usize, &u32)| match mesh.names.get(i).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name}={n}"),
        None => n.to_string(),
    };
    format!("{}[{}]", mesh.device, mesh.dims.iter().enumerate().map(axis).collect::<Vec<_>>().join(","))
}
