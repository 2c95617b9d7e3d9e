//! Glimpses of ranks for people who watch the job (`oflaunch --watch`, `--top`): the last one of each rank, collected at the root while
//! somebody watches. Everything that ranks tell is cut to a size here, on their host and at the root.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::ops::Range;
use std::time::Duration;

use oflow_proto::control as pb;

/// Longest text of a glimpse, in bytes.
const TEXT: usize = 512;
/// Points that are kept of a rank until they are taken. A rank sends no more at once.
pub const MOST_POINTS: usize = 1024;
/// Boxings that are kept of a rank until they are taken. A rank sends no more at once.
pub const MOST_BOXINGS: usize = 8;
/// Devices, dims, axes and awaited ranks that are told.
const FEW: usize = 16;
/// Ranks of a mesh that are told.
pub const MESH_RANKS: usize = 1024;

/// A rank for which others wait, or the first of ranks that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The rank that does not come.
    pub rank: usize,
    /// Number of ranks that wait.
    pub waiting: usize,
    /// The longest of their waits.
    pub since: Duration,
    /// A sentence about it.
    pub text: String,
}

/// A host and its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPart {
    /// Name of the host.
    pub name: String,
    /// Ranks of the host.
    pub ranks: Range<usize>,
}

/// State of a job for people who watch it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sight {
    /// Number of restarts so far.
    pub restart: u32,
    /// The hosts, in order.
    pub hosts: Vec<HostPart>,
    /// Ranks that have told something since the last look: the last state of each, and all points and boxings.
    pub glimpses: Vec<pb::Glimpse>,
    /// Ranks that have left the job.
    pub left: Vec<usize>,
    /// Ranks that hold up others.
    pub held: Vec<Held>,
    /// Time-out for these.
    pub stall: Duration,
}

/// Glimpses that the root has collected, and ranks that have left.
#[derive(Default)]
pub struct Watching {
    pub on: bool,
    glimpses: BTreeMap<usize, pb::Glimpse>,
    left: BTreeSet<usize>,
}

impl Watching {
    /// A start begins: nothing is known of its ranks.
    pub fn begin(&mut self) {
        *self = Watching { on: self.on, ..Watching::default() };
    }

    /// Takes what a rank tells.
    pub fn note(&mut self, rank: usize, mut glimpse: pb::Glimpse) {
        if !self.on {
            return;
        }
        cut(&mut glimpse);
        if let Some(before) = self.glimpses.remove(&rank) {
            glimpse.points = joined(before.points, take(&mut glimpse.points), MOST_POINTS);
            glimpse.boxings = joined(before.boxings, take(&mut glimpse.boxings), MOST_BOXINGS);
        }
        self.glimpses.insert(rank, glimpse);
    }

    /// A rank has left the job.
    pub fn left(&mut self, rank: usize) {
        self.left.insert(rank);
    }

    /// Takes what there is: the glimpses, and the ranks that have left.
    pub fn take(&mut self) -> (Vec<pb::Glimpse>, Vec<usize>) {
        (take(&mut self.glimpses).into_values().collect(), self.left.iter().copied().collect())
    }
}

/// The last `most` of both.
fn joined<T>(mut first: Vec<T>, second: Vec<T>, most: usize) -> Vec<T> {
    first.extend(second);
    first.drain(..first.len().saturating_sub(most));
    first
}

/// The glimpse that a heartbeat carries, with what else the heartbeat tells.
pub fn of_beat(beat: &mut pb::HeartbeatRequest) -> Option<pb::Glimpse> {
    let mut glimpse = beat.glimpse.take()?;
    glimpse.rank = beat.rank;
    glimpse.last = beat.last.clone();
    glimpse.last_ms = beat.last_ms;
    glimpse.wait = beat.wait.clone();
    glimpse.node = beat.node.clone();
    cut(&mut glimpse);
    Some(glimpse)
}

/// Cuts what is too long.
fn cut(glimpse: &mut pb::Glimpse) {
    shorten(&mut glimpse.scope);
    if let Some(last) = &mut glimpse.last {
        [&mut last.op, &mut last.file, &mut last.call].into_iter().for_each(shorten);
    }
    if let Some(wait) = &mut glimpse.wait {
        shorten(&mut wait.call);
        wait.ranks.truncate(FEW);
    }
    if let Some(node) = &mut glimpse.node {
        [&mut node.op, &mut node.file].into_iter().for_each(shorten);
    }
    glimpse.memory.truncate(FEW);
    glimpse.memory.iter_mut().for_each(|m| shorten(&mut m.device));
    glimpse.boxings.drain(..glimpse.boxings.len().saturating_sub(MOST_BOXINGS));
    for b in &mut glimpse.boxings {
        [&mut b.op, &mut b.file, &mut b.scope, &mut b.dtype, &mut b.from, &mut b.to].into_iter().for_each(shorten);
        b.shape.truncate(FEW);
        for mesh in [&mut b.mesh, &mut b.to_mesh].into_iter().flatten() {
            mesh.dims.truncate(FEW);
            mesh.names.truncate(FEW);
            mesh.ranks.truncate(MESH_RANKS);
            mesh.names.iter_mut().chain([&mut mesh.device]).for_each(shorten);
        }
    }
    glimpse.points.drain(..glimpse.points.len().saturating_sub(MOST_POINTS));
    glimpse.points.iter_mut().for_each(|p| shorten(&mut p.name));
}

fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(TEXT));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(number: u64) -> pb::Point {
        pb::Point { number, name: "loss".into(), step: number, value: 0.5 }
    }

    #[test]
    fn nothing_is_kept_while_nobody_watches() {
        let mut watching = Watching::default();
        watching.note(1, pb::Glimpse::default());
        assert!(watching.take().0.is_empty());
        watching.on = true;
        watching.note(1, pb::Glimpse::default());
        watching.left(1);
        assert_eq!((watching.take().0.len(), watching.take().1), (1, vec![1]));
    }

    #[test]
    fn points_are_joined_and_everything_is_bounded() {
        let mut watching = Watching { on: true, ..Watching::default() };
        let with = |points: Range<u64>| pb::Glimpse { points: points.map(point).collect(), ..Default::default() };
        watching.note(0, with(1..3));
        watching.note(0, with(3..5));
        let numbers = |g: &pb::Glimpse| g.points.iter().map(|p| p.number).collect::<Vec<_>>();
        assert_eq!(numbers(&watching.take().0[0]), [1, 2, 3, 4]);
        let mesh =
            pb::Mesh { ranks: vec![7; 5000], dims: vec![1; 99], names: vec!["n".repeat(999)], ..Default::default() };
        let boxing = pb::SeenBoxing { op: "ü".repeat(600), mesh: Some(mesh), ..Default::default() };
        let mut large = with(0..5000);
        large.boxings = vec![boxing; 50];
        large.wait = Some(pb::Wait { ranks: vec![1; 999], call: "c".repeat(9999), since_ms: 1 });
        watching.note(0, large.clone());
        watching.note(0, large);
        let all = watching.take().0;
        assert_eq!((all[0].points.len(), all[0].boxings.len()), (MOST_POINTS, MOST_BOXINGS));
        let size = prost::Message::encoded_len(&all[0]);
        assert!(size < 120_000, "{size}");
        assert_eq!(all[0].boxings[0].op.len(), TEXT);
    }
}
