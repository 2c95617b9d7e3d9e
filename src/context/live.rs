//! Glimpses that a rank gives while somebody watches its job (`oflaunch --watch`, `--top`). While nobody does, nothing is recorded; logged metrics
//! are kept, the last ones, so that who comes later sees the curves.

use crate::boxing::BoxingPlan;
use crate::comm::now_ns;
use crate::control::Watched;
use crate::control::flight::Recorder;
use crate::error::CallSite;
use crate::memory::Allocator;
use crate::placement::Placement;
use crate::trace::{Boxed, LiveTotals, Moved, Session};
use oflow_proto::control as pb;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Logged values that are kept.
const POINTS: usize = 4096;
/// Values that one look tells at most.
const POINTS_AT_ONCE: usize = 512;
/// Ranks of a mesh that are told.
const MESH_RANKS: usize = 1024;

/// A recording for people who watch.
struct Recording {
    /// Ended when this is dropped.
    session: Session,
    totals: Arc<Mutex<LiveTotals>>,
    since: u64,
}

/// The logged values, with the number of the last one.
#[derive(Default)]
struct Points {
    last: u64,
    kept: VecDeque<pb::Point>,
}

impl Points {
    /// The values after a number. If they are too many, those of every second or third step, and so on.
    fn after(&self, number: u64) -> Vec<pb::Point> {
        let first = self.kept.partition_point(|p| p.number <= number);
        let every = (self.kept.len() - first).div_ceil(POINTS_AT_ONCE).max(1);
        let (mut steps, mut step) = (0usize, None);
        let mut is_shown = |p: &&pb::Point| {
            if step.replace(p.step) != Some(p.step) {
                steps += 1;
            }
            steps % every == 0 || every == 1
        };
        self.kept.iter().skip(first).filter(&mut is_shown).take(POINTS_AT_ONCE).cloned().collect()
    }
}

/// Source of a rank's glimpses.
pub(crate) struct Live {
    owner: u32,
    recorder: Arc<Recorder>,
    allocators: Arc<Mutex<Vec<Allocator>>>,
    recording: Mutex<Option<Recording>>,
    points: Mutex<Points>,
}

impl Live {
    /// Of the rank whose threads record under `owner`.
    pub(super) fn new(owner: u32, recorder: Arc<Recorder>, allocators: Arc<Mutex<Vec<Allocator>>>) -> Live {
        Live { owner, recorder, allocators, recording: Mutex::default(), points: Mutex::default() }
    }

    /// Keeps the logged values of a step.
    pub(crate) fn log<'a>(&self, step: usize, values: impl Iterator<Item = (&'a str, f64)>) {
        let points = &mut *lock(&self.points);
        for (name, value) in values {
            points.last += 1;
            if points.kept.len() == POINTS {
                points.kept.pop_front();
            }
            points.kept.push_back(pb::Point { number: points.last, name: name.into(), step: step as u64, value });
        }
    }
}

impl Watched for Live {
    fn watch(&self, on: bool) {
        let mut recording = lock(&self.recording);
        if recording.is_some() == on {
            return;
        }
        if !on {
            *recording = None;
            return;
        }
        let totals = Arc::new(Mutex::new(LiveTotals::new()));
        match Session::start(self.owner, 0..u64::MAX, totals.clone()) {
            Ok(session) => *recording = Some(Recording { session, totals, since: now_ns() }),
            Err(e) => tracing::debug!("{e}"),
        }
    }

    fn look(&self, after: u64) -> pb::Glimpse {
        let mut glimpse = pb::Glimpse { scope: self.recorder.scope().into(), ..Default::default() };
        let memory = |a: &Allocator| pb::DeviceMemory { device: a.device_name().into(), bytes: a.stats().live as u64 };
        glimpse.memory = lock(&self.allocators).iter().map(memory).collect();
        if let Some(Recording { session, totals, since }) = &*lock(&self.recording) {
            // Before the totals: the collector's locks are taken first.
            (glimpse.steps, glimpse.watched) = (session.steps(), now_ns().saturating_sub(*since));
            let mut totals = lock(totals);
            glimpse.rows = totals.rows();
            let s = totals.spent();
            glimpse.spent = Some(pb::Spent {
                whole: s.whole,
                compute: s.compute,
                communication: s.communication,
                late_ranks: s.late_ranks,
                data: s.data,
                checkpoint: s.checkpoint,
            });
            glimpse.boxings = totals.take_boxings().map(|(site, boxed)| seen(site, &boxed)).collect();
        }
        glimpse.points = lock(&self.points).after(after);
        glimpse
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whole at every point where a panic could happen.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seen(site: CallSite, boxed: &Boxed) -> pb::SeenBoxing {
    let mut seen = pb::SeenBoxing {
        op: boxed.op.into(),
        file: site.file.into(),
        line: site.line,
        scope: site.scope.path().into(),
        backward: boxed.backward,
        bytes: boxed.bytes,
        ns: boxed.moving_ns,
        ..Default::default()
    };
    match &boxed.moved {
        Moved::Exchange(name) => seen.from = (*name).into(),
        Moved::Plan(plan) => {
            let BoxingPlan { shape, dtype, src, dst, .. } = &**plan;
            seen.shape = shape.iter().map(|n| *n as u64).collect();
            seen.dtype = dtype.to_string();
            (seen.from, seen.to) = (src.sbp.to_string(), dst.sbp.to_string());
            seen.mesh = Some(mesh(&src.placement));
            seen.to_mesh = (src.placement != dst.placement).then(|| mesh(&dst.placement));
        }
    }
    seen
}

fn mesh(of: &Placement) -> pb::Mesh {
    let told = of.len() <= MESH_RANKS;
    pb::Mesh {
        device: of.device().name().into(),
        dims: of.dims().iter().map(|n| *n as u32).collect(),
        names: of.names().iter().map(|n| n.clone().unwrap_or_default()).collect(),
        ranks: if told { of.ranks().iter().map(|r| *r as u32).collect() } else { Vec::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn a_rank_shows_its_steps_boxings_and_metrics_while_it_is_watched() {
        let seen = crate::run_ranks(2, |world| {
            let ctx = world.ctx();
            let live = Live::new(ctx.owner(), ctx.recorder().clone(), ctx.shared_allocators());
            live.log(3, [("loss", 0.5), ("lr", 0.1)].into_iter());
            live.watch(true);
            live.watch(true);
            let mesh = Placement::all(Device::Cpu)?;
            let x = ones([6, 4], (&mesh, sbp![S(0)]))?;
            let _scope = crate::name_scope("head");
            let _whole = x.to_global((&mesh, sbp![B]))?;
            crate::mark_step();
            // The session hands over what was recorded when it ends.
            let recorded = lock(&live.recording).as_ref().map(|r| (r.session.steps(), r.totals.clone()));
            live.watch(false);
            assert!(live.look(0).spent.is_none(), "nothing is recorded any more");
            let (steps, totals) = recorded.expect("it was watched");
            let boxing = lock(&totals).take_boxings().last().map(|(site, b)| super::seen(site, &b));
            let points: Vec<_> = live.look(0).points.iter().map(|p| (p.number, p.name.clone(), p.step)).collect();
            assert_eq!(points, [(1, "loss".into(), 3), (2, "lr".into(), 3)]);
            assert!(live.look(2).points.is_empty() && live.look(1).points.len() == 1);
            assert_eq!(live.look(0).scope, "head");
            Ok((steps, boxing))
        });
        for (steps, boxing) in seen.expect("both ranks end well") {
            let b = boxing.expect("a boxing was seen");
            assert_eq!((steps, b.scope.as_str(), b.shape.as_slice()), (1, "head", &[6, 4][..]));
            assert_eq!((b.from.as_str(), b.to.as_str(), b.dtype.as_str()), ("[S(0)]", "[B]", "f32"));
            assert_eq!(b.mesh.map(|m| (m.dims, m.ranks)), Some((vec![2], vec![0, 1])));
        }
    }

    #[test]
    fn only_the_last_values_are_kept() {
        let seen = crate::run_ranks(1, |world| {
            let ctx = world.ctx();
            let live = Live::new(ctx.owner(), ctx.recorder().clone(), ctx.shared_allocators());
            (0..5000).for_each(|step| live.log(step, [("loss", 0.0)].into_iter()));
            let first = live.look(0).points;
            // Of every eighth step, up to the last one.
            let ends = [first.first(), first.last()].map(|p| p.map(|p| p.number));
            Ok((first.len(), ends, live.look(4990).points.len()))
        });
        let begin = 5000 - POINTS as u64;
        assert_eq!(seen.ok(), Some(vec![(POINTS_AT_ONCE, [Some(begin + 8), Some(5000)], 10)]));
    }
}
