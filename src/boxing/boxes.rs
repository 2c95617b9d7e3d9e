//! From boxes that ranks hold to boxes that ranks need: from what they happen to hold to a layout (results of data-dependent ops, pieces
//! of a checkpoint), and from a layout to the windows that a kernel reads (the rows beside a shard that a convolution sees).
//!
//! A rank may hold several boxes or none; boxes may overlap, and where they do they are copies of each other. Each rank of
//! the destination gets each element that it needs once: from its own boxes where they have it, else from a rank of its
//! host, else from any other. Among holders of one kind the one that has sent least so far sends; a piece that only
//! part of a box has is cut. On partial axes of the destination coordinate 0 gets the value, the others the
//! identity.
//!
//! The plan is a pure function of the boxes, the destination and where hosts end, so every rank that knows all boxes makes
//! the same one.

use super::cost::Model;
use super::exchange::{meet, volume};
use crate::error::{Error, Result};
use crate::sbp::Layout;
use crate::sbp::shard_box;
use oflow_kernels::{Dims, ReduceOp, ShardBox};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A box of the logical tensor that a rank holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBox {
    /// The rank that holds the box.
    pub rank: usize,
    /// The box in the logical tensor.
    pub at: ShardBox,
}

/// A part of a box that is sent or copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the box that it is part of.
    pub source: usize,
    /// The rank that holds it.
    pub from: usize,
    /// The rank that needs it; `from` for a copy.
    pub to: usize,
    /// The part, as a box in the logical tensor.
    pub at: ShardBox,
}

/// The box that a rank is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedBox {
    /// The rank that wants the box.
    pub rank: usize,
    /// The box in the logical tensor.
    pub at: ShardBox,
    /// Of a partial layout, where another rank gets the values: the reduction whose identity this rank gets.
    pub identity: Option<ReduceOp>,
}

/// A plan that turns boxes held by ranks into boxes that ranks need.
#[derive(Clone, Debug)]
pub struct BoxesPlan {
    /// Logical shape of the tensor.
    pub shape: Dims,
    /// The boxes that there are.
    pub held: Vec<HeldBox>,
    /// The boxes that are needed, at most one for each rank.
    pub wanted: Vec<WantedBox>,
    /// In the order of the receivers in `wanted`, then in the order in which a message holds them.
    pub pieces: Vec<Piece>,
    /// Elements sent between ranks: counted once, since warm calls ask.
    sent: u64,
}

impl BoxesPlan {
    fn new(shape: &[usize], held: Vec<HeldBox>, wanted: Vec<WantedBox>, pieces: Vec<Piece>) -> BoxesPlan {
        let sent = pieces.iter().filter(|p| p.from != p.to).map(|p| volume(&p.at)).sum();
        BoxesPlan { shape: shape.into(), held, wanted, pieces, sent }
    }

    /// Returns the number of elements sent between ranks.
    pub fn elements_sent(&self) -> u64 {
        self.sent
    }

    /// The box that a rank wants, if it wants any.
    pub fn wants(&self, rank: usize) -> Option<&WantedBox> {
        self.wanted.iter().find(|w| w.rank == rank)
    }

    /// All ranks that hold or need something, sorted.
    pub fn ranks(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> =
            self.held.iter().map(|h| h.rank).chain(self.wanted.iter().map(|w| w.rank)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}

/// Identity that fills a destination rank's shard in place of a value: that of the innermost partial axis on which the rank
/// is not first.
fn identity(dst: &Layout, position: usize) -> Option<ReduceOp> {
    let coord = dst.placement.coord(position);
    (0..coord.len()).rev().filter(|a| coord[*a] != 0).find_map(|a| dst.sbp[a].partial_op())
}

/// Plans how boxes that ranks hold become a layout.
///
/// ```
/// use oflow::boxing::{HeldBox, Layout, Model, collect_boxes};
/// use oflow::{kernels::ShardBox, placement::{Device, Placement}, sbp};
/// let mesh = Placement::of_world(Device::Cpu, 2)?;
/// let at = |start: usize, len: usize| {
///     ShardBox { logical: [10][..].into(), offset: [start][..].into(), size: [len][..].into() }
/// };
/// // Rank 0 holds 7 of 10 elements, rank 1 the last 6: three are there twice.
/// let held = [HeldBox { rank: 0, at: at(0, 7) }, HeldBox { rank: 1, at: at(4, 6) }];
/// let plan = collect_boxes(&[10], &held, &Layout::new(&mesh, sbp![S(0)]), &Model::default())?;
/// assert_eq!(plan.elements_sent(), 0);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If a box is not inside the shape, or if no box has an element that a rank needs.
pub fn collect_boxes(shape: &[usize], held: &[HeldBox], dst: &Layout, model: &Model) -> Result<BoxesPlan> {
    for h in held {
        let inside = |d: usize| h.at.offset[d].checked_add(h.at.size[d]).is_some_and(|end| end <= shape[d]);
        let ranks = h.at.offset.len() == shape.len() && h.at.size.len() == shape.len();
        if !ranks || !(0..shape.len()).all(inside) {
            return Err(Error::shape(format!(
                "the box of sizes {:?} at {:?} that rank {} holds is not inside {shape:?}",
                h.at.size.as_slice(),
                h.at.offset.as_slice(),
                h.rank
            )));
        }
    }
    let mut pieces = Vec::new();
    let mut sent: BTreeMap<usize, u64> = BTreeMap::new();
    let mut hole: Option<ShardBox> = None;
    let mut wanted = Vec::with_capacity(dst.placement.len());
    for (position, &to) in dst.placement.ranks().iter().enumerate() {
        let (at, identity) = (shard_box(shape, &dst.placement, &dst.sbp, position), identity(dst, position));
        wanted.push(WantedBox { rank: to, at: at.clone(), identity });
        if identity.is_some() {
            continue;
        }
        let mut missing: Vec<ShardBox> = if volume(&at) == 0 { vec![] } else { vec![at] };
        let near = |rank: usize| match rank {
            r if r == to => 0,
            r if model.hosts.host(r) == model.hosts.host(to) => 1,
            _ => 2,
        };
        for distance in 0..3 {
            let holders: Vec<(usize, &HeldBox)> = held
                .iter()
                .enumerate()
                .filter(|(_, h)| near(h.rank) == distance && missing.iter().any(|m| volume(&meet(m, &h.at)) > 0))
                .collect();
            let mut left = Vec::new();
            while let Some(part) = missing.pop() {
                let has = |h: &HeldBox| volume(&meet(&part, &h.at));
                let load = |h: &HeldBox| if distance == 0 { 0 } else { sent.get(&h.rank).copied().unwrap_or(0) };
                let best =
                    holders.iter().filter(|(_, h)| has(h) > 0).min_by_key(|(i, h)| (load(h), Reverse(has(h)), *i));
                let Some((source, h)) = best else {
                    left.push(part);
                    continue;
                };
                let at = meet(&part, &h.at);
                if distance > 0 {
                    *sent.entry(h.rank).or_default() += volume(&at);
                }
                missing.extend(without(&part, &at));
                pieces.push(Piece { source: *source, from: h.rank, to, at });
            }
            missing = left;
        }
        hole = missing.into_iter().chain(hole).min_by(|a, b| a.offset.cmp(&b.offset));
    }
    if let Some(hole) = hole {
        return Err(Error::shape(format!(
            "no rank holds the elements from {:?} on (a box of sizes {:?}) of {shape:?}",
            hole.offset.as_slice(),
            hole.size.as_slice()
        ))
        .help("the boxes of all ranks together must cover the tensor"));
    }
    Ok(BoxesPlan::new(shape, held.to_vec(), wanted, pieces))
}

/// Plans how each rank gets a box of a tensor in a layout, one for each position of its placement. Where the layout is partial, a box
/// holds contributions as a shard does. Ranks exchange within the axes that split the tensor; along the others each group has all of
/// it.
///
/// ```
/// use oflow::boxing::{Layout, collect_windows};
/// use oflow::{kernels::ShardBox, placement::{Device, Placement}, sbp};
/// let mesh = Placement::of_world(Device::Cpu, 2)?;
/// let at = |start: usize, len: usize| {
///     ShardBox { logical: [8][..].into(), offset: [start][..].into(), size: [len][..].into() }
/// };
/// // Each rank has 4 elements and needs one of the other's.
/// let plan = collect_windows(&[8], &Layout::new(&mesh, sbp![S(0)]), vec![at(0, 5), at(3, 5)]);
/// assert_eq!(plan.elements_sent(), 2);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn collect_windows(shape: &[usize], src: &Layout, windows: Vec<ShardBox>) -> BoxesPlan {
    let mesh = &src.placement;
    let ranks = mesh.ranks();
    let held: Vec<HeldBox> =
        (0..mesh.len()).map(|p| HeldBox { rank: ranks[p], at: shard_box(shape, mesh, &src.sbp, p) }).collect();
    let splits = |a: &usize| src.sbp[*a].split_dim().is_some();
    let mut pieces = Vec::new();
    for (position, want) in windows.iter().enumerate() {
        let (group, _) = mesh.group_along(position, (0..mesh.axes()).filter(splits));
        for source in group {
            let at = meet(want, &held[source].at);
            if volume(&at) > 0 {
                pieces.push(Piece { source, from: ranks[source], to: ranks[position], at });
            }
        }
    }
    let wanted = ranks.iter().zip(windows).map(|(rank, at)| WantedBox { rank: *rank, at, identity: None }).collect();
    BoxesPlan::new(shape, held, wanted, pieces)
}

/// Parts of a box that remain without `part`: boxes that do not overlap.
fn without(whole: &ShardBox, part: &ShardBox) -> SmallVec<[ShardBox; 4]> {
    let mut left = SmallVec::new();
    let mut rest = whole.clone();
    for d in 0..rest.size.len() {
        let (start, end) = (rest.offset[d], rest.offset[d] + rest.size[d]);
        let (from, to) = (part.offset[d], part.offset[d] + part.size[d]);
        for (a, b) in [(start, from), (to, end)] {
            if a < b {
                let mut slab = rest.clone();
                (slab.offset[d], slab.size[d]) = (a, b - a);
                left.push(slab);
            }
        }
        (rest.offset[d], rest.size[d]) = (from, to - from);
    }
    left
}
