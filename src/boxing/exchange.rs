//! The general move: from any layout on any mesh to any other.
//!
//! Each rank of the destination needs its box of the logical tensor. The source layout cuts the tensor into *cells* (one
//! per combination of coordinates on the axes that split); for each cell that meets the box, each combination of
//! coordinates on the partial axes is one *contribution*, which the receiver reduces inner axis first. A contribution is
//! held by the *replicas* on the B axes: a receiver that is in the source mesh takes its own copy where it has one, and of
//! other cells the replica that is as far from its own as the cell is, so that ranks that want the same cell take it from
//! different ones; one from outside takes the replica that its place among the receivers points to. No rank serves all. Where ranks are on several hosts, the next replica on the receiver's own host is taken
//! instead if there is one. A source position therefore sends at most one box to each receiver.
//!
//! The destination's own partial axes: only coordinate 0 gets the value. A rank elsewhere gets the identity of the innermost
//! partial axis on which its coordinate is not 0, so that the reduction of the axes inside it, which comes first, meets
//! its own identities and leaves this one. Axes that are partial alike on both sides of one mesh can be *kept*: then the exchange runs
//! within each of their coordinates.
//!
//! Nothing here is ever listed for all pairs of ranks: each side finds its partners by walking the mesh axes and skipping
//! the coordinates whose boxes do not meet.

use super::axes::AxisSet;
use super::cost::{Algorithm, EXACT_MESSAGES, LinkKind, Model, Rate};
use super::loads::busiest;
use crate::placement::{Placement, shard_range};
use crate::sbp::{NdSbp, Sbp, shard_box};
use oflow_kernels::{ReduceOp, ShardBox};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

type Coord = SmallVec<[usize; 4]>;

/// True when both meshes hold the same ranks at the same coordinates.
pub(super) fn same_mesh(a: &Placement, b: &Placement) -> bool {
    a == b || (a.ranks() == b.ranks() && a.dims() == b.dims())
}

/// True when an axis inside `axis` is partial with another reduction.
fn inner_other_partial(dims: &[usize], sbp: &[Sbp], axis: usize, op: ReduceOp) -> bool {
    (axis + 1..dims.len()).any(|b| dims[b] > 1 && sbp[b].partial_op().is_some_and(|o| o != op))
}

/// Where the ranks of the destination stand in the source mesh.
pub(super) enum Own {
    /// At the same position.
    Same,
    /// By destination position.
    Table(Vec<Option<u32>>),
}

impl Own {
    pub(super) fn new(from: &Placement, to: &Placement) -> Own {
        if same_mesh(from, to) {
            return Own::Same;
        }
        let mut sorted: Vec<(usize, u32)> = from.ranks().iter().enumerate().map(|(p, r)| (*r, p as u32)).collect();
        sorted.sort_unstable();
        let find = |r: &usize| sorted.binary_search_by_key(r, |e| e.0).ok().map(|i| sorted[i].1);
        Own::Table(to.ranks().iter().map(find).collect())
    }

    fn get(&self, position: usize) -> Option<usize> {
        match self {
            Own::Same => Some(position),
            Own::Table(t) => t[position].map(|p| p as usize),
        }
    }
}

/// An exchange between two layouts, with the questions one can ask of it.
pub(super) struct Exchange<'a> {
    model: &'a Model,
    shape: &'a [usize],
    from: &'a Placement,
    from_sbp: &'a NdSbp,
    to: &'a Placement,
    to_sbp: &'a NdSbp,
    own: &'a Own,
    /// Axes partial on both sides that stay so.
    pub(super) kept: AxisSet,
    /// Source axes that are reduced, outermost first. Those of size 1 need not be.
    reduced: SmallVec<[usize; 4]>,
}

/// One cell that a receiver needs.
pub(super) struct Piece {
    /// The intersection of cell and receiver's box, in the logical tensor.
    pub(super) at: ShardBox,
    /// Source positions that hold its contributions, in row-major order of the reduced axes.
    pub(super) holders: SmallVec<[usize; 4]>,
}

/// Totals over all ranks.
pub(super) struct Volume {
    /// Elements that cross between ranks.
    pub(super) elements: u64,
    /// The most that one rank receives.
    pub(super) max_received: u64,
}

/// The coordinates of a balanced split of `len` over `parts` whose ranges meet `want`.
fn overlapping(len: usize, parts: usize, want: Range<usize>) -> Range<usize> {
    let first_where = |cond: &dyn Fn(&Range<usize>) -> bool| {
        let (mut lo, mut hi) = (0, parts);
        while lo < hi {
            let mid = lo.midpoint(hi);
            if cond(&shard_range(len, parts, mid)) {
                hi = mid;
            } else {
                lo = mid + 1;
            }
        }
        lo
    };
    let first = first_where(&|r| r.end > want.start);
    first..first_where(&|r| r.start >= want.end).max(first)
}

/// Coordinates to walk on an axis that does not split.
enum Pick {
    One(usize),
    Each,
}

struct Walk<'a, F> {
    placement: &'a Placement,
    sbp: &'a NdSbp,
    want: &'a ShardBox,
    /// The current cell, narrowed axis by axis.
    cell: ShardBox,
    coord: Coord,
    visit: F,
}

impl<F: FnMut(&Coord, &ShardBox)> Walk<'_, F> {
    fn axis(&mut self, axis: usize, pick: &dyn Fn(usize) -> Pick) {
        if axis == self.placement.axes() {
            (self.visit)(&self.coord, &self.cell);
            return;
        }
        let k = self.placement.dims()[axis];
        if let Sbp::Split(d) = self.sbp[axis] {
            let (start, len) = (self.cell.offset[d], self.cell.size[d]);
            let lo = self.want.offset[d].max(start);
            let hi = (self.want.offset[d] + self.want.size[d]).min(start + len);
            if lo >= hi {
                return;
            }
            for i in overlapping(len, k, lo - start..hi - start) {
                let r = shard_range(len, k, i);
                self.coord[axis] = i;
                self.cell.offset[d] = start + r.start;
                self.cell.size[d] = r.len();
                self.axis(axis + 1, pick);
            }
            self.cell.offset[d] = start;
            self.cell.size[d] = len;
        } else {
            let coords = match pick(axis) {
                Pick::One(i) => i..i + 1,
                Pick::Each => 0..k,
            };
            for i in coords {
                self.coord[axis] = i;
                self.axis(axis + 1, pick);
            }
        }
    }
}

/// Visits the coordinates of a layout whose boxes meet `want`, with their boxes.
fn walk(
    shape: &[usize],
    (placement, sbp): (&Placement, &NdSbp),
    want: &ShardBox,
    pick: &dyn Fn(usize) -> Pick,
    visit: impl FnMut(&Coord, &ShardBox),
) {
    if want.size.contains(&0) {
        return;
    }
    let coord = smallvec![0; placement.axes()];
    Walk { placement, sbp, want, cell: ShardBox::whole(shape), coord, visit }.axis(0, pick);
}

/// The common part of two boxes of one tensor.
pub(super) fn meet(a: &ShardBox, b: &ShardBox) -> ShardBox {
    let mut m = a.clone();
    for d in 0..a.size.len() {
        let start = a.offset[d].max(b.offset[d]);
        let end = (a.offset[d] + a.size[d]).min(b.offset[d] + b.size[d]);
        m.offset[d] = start;
        m.size[d] = end.saturating_sub(start);
    }
    m
}

pub(super) fn volume(b: &ShardBox) -> u64 {
    b.size.iter().map(|s| *s as u64).product()
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        model: &'a Model,
        shape: &'a [usize],
        (from, from_sbp): (&'a Placement, &'a NdSbp),
        (to, to_sbp): (&'a Placement, &'a NdSbp),
        own: &'a Own,
    ) -> Exchange<'a> {
        let mut kept = AxisSet::default();
        if matches!(own, Own::Same) {
            for a in 0..from.axes() {
                if from.dims()[a] > 1 && from_sbp[a].is_partial() && from_sbp[a] == to_sbp[a] {
                    kept.insert(a);
                }
            }
        }
        let partial = |kept: AxisSet| -> SmallVec<[usize; 4]> {
            let counts = |a: &usize| from.dims()[*a] > 1 && from_sbp[*a].is_partial() && !kept.contains(*a);
            (0..from.axes()).filter(counts).collect()
        };
        let mut reduced = partial(kept);
        // An axis cannot be reduced before an inner one of another kind: then nothing is kept.
        let clash =
            |a: &usize| from_sbp[*a].partial_op().is_some_and(|op| inner_other_partial(from.dims(), from_sbp, *a, op));
        if !kept.is_empty() && reduced.iter().any(clash) {
            kept = AxisSet::default();
            reduced = partial(kept);
        }
        Exchange { model, shape, from, from_sbp, to, to_sbp, own, kept, reduced }
    }

    /// Reductions at the receiver, outermost first: op and number of coordinates.
    pub(super) fn levels(&self) -> SmallVec<[(ReduceOp, usize); 2]> {
        self.reduced.iter().filter_map(|a| Some((self.from_sbp[*a].partial_op()?, self.from.dims()[*a]))).collect()
    }

    pub(super) fn contributions(&self) -> usize {
        self.reduced.iter().map(|a| self.from.dims()[*a]).product()
    }

    /// The reduction whose identity this destination position gets; `None` where the position gets the value.
    pub(super) fn identity(&self, position: usize) -> Option<ReduceOp> {
        let coord = self.to.coord(position);
        let outside = |a: &usize| coord[*a] != 0 && self.to_sbp[*a].is_partial();
        if !(0..self.to.axes()).filter(outside).any(|a| !self.kept.contains(a)) {
            return None;
        }
        // Kept axes count here: on an inner one, too, only one coordinate may hold the identity of an outer one.
        (0..self.to.axes()).rev().find(outside).and_then(|a| self.to_sbp[a].partial_op())
    }

    /// The coordinates on the source's axes from which a receiver takes: its replicas, and the kept axes.
    fn source_of(&self, receiver: usize) -> Coord {
        if let Some(own) = self.own.get(receiver) {
            return self.from.coord(own);
        }
        let to = self.to.coord(receiver);
        let (mut cell, mut copies, mut copy) = (0, 1, 0);
        for (a, c) in to.iter().enumerate() {
            let k = self.to.dims()[a];
            match self.to_sbp[a] {
                Sbp::Split(_) => cell = cell * k + c,
                _ => (copies, copy) = (copies * k, copy * k + c),
            }
        }
        let mut turn = cell * copies + copy;
        let mut coord: Coord = smallvec![0; self.from.axes()];
        for a in (0..self.from.axes()).rev().filter(|a| self.from_sbp[*a].is_broadcast()) {
            coord[a] = turn % self.from.dims()[a];
            turn /= self.from.dims()[a];
        }
        coord
    }

    /// The position that serves a receiver with the contribution at `coord`. On the B axes `coord` and `source` both have
    /// what `source_of` says of the receiver.
    fn holder(&self, receiver: usize, source: &Coord, coord: &Coord) -> usize {
        let copied = |a: &usize| self.from.dims()[*a] > 1 && self.from_sbp[*a].is_broadcast();
        let axes: SmallVec<[usize; 4]> = (0..self.from.axes()).filter(copied).collect();
        let copies: usize = axes.iter().map(|a| self.from.dims()[*a]).product();
        let mine = axes.iter().fold(0, |n, a| n * self.from.dims()[*a] + source[*a]);
        let far = match self.own.get(receiver) {
            // Kept axes are the receiver's own: they add nothing.
            Some(_) => (0..coord.len())
                .filter(|a| !copied(a))
                .map(|a| coord[a] as isize - source[a] as isize)
                .sum::<isize>()
                .rem_euclid(copies as isize) as usize,
            None => 0,
        };
        let mut at = coord.clone();
        let mut replica = |turn: usize| {
            let mut rest = (mine + far + turn) % copies;
            for a in axes.iter().rev() {
                at[*a] = rest % self.from.dims()[*a];
                rest /= self.from.dims()[*a];
            }
            self.from.position_of(&at)
        };
        let first = replica(0);
        if !self.model.hosts.several() {
            return first;
        }
        let home = self.model.hosts.host(self.to.ranks()[receiver]);
        (0..copies).map(replica).find(|p| self.model.hosts.host(self.from.ranks()[*p]) == home).unwrap_or(first)
    }

    /// The cells that a receiver needs, in order of source coordinates.
    pub(super) fn pieces(&self, receiver: usize, mut visit: impl FnMut(Piece)) {
        if self.identity(receiver).is_some() {
            return;
        }
        let want = shard_box(self.shape, self.to, self.to_sbp, receiver);
        let source = self.source_of(receiver);
        let count = self.contributions();
        walk(self.shape, (self.from, self.from_sbp), &want, &|a| Pick::One(source[a]), |coord, cell| {
            let mut coord = coord.clone();
            let holders = (0..count)
                .map(|mut i| {
                    for a in self.reduced.iter().rev() {
                        coord[*a] = i % self.from.dims()[*a];
                        i /= self.from.dims()[*a];
                    }
                    self.holder(receiver, &source, &coord)
                })
                .collect();
            visit(Piece { at: meet(&want, cell), holders });
        });
    }

    /// The messages that a source position sends: destination position and box.
    pub(super) fn sends(&self, sender: usize, mut visit: impl FnMut(usize, ShardBox)) {
        let have = shard_box(self.shape, self.from, self.from_sbp, sender);
        let mine = self.from.coord(sender);
        let pick = |a: usize| match self.to_sbp[a] {
            _ if self.kept.contains(a) => Pick::One(mine[a]),
            Sbp::Partial(_) => Pick::One(0),
            _ => Pick::Each,
        };
        walk(self.shape, (self.to, self.to_sbp), &have, &pick, |coord, cell| {
            let receiver = self.to.position_of(coord);
            if self.own.get(receiver) == Some(sender) {
                return;
            }
            let source = self.source_of(receiver);
            let mut asked = mine.clone();
            for a in (0..asked.len()).filter(|a| self.from_sbp[*a].is_broadcast()) {
                asked[a] = source[a];
            }
            if self.holder(receiver, &source, &asked) == sender {
                visit(receiver, meet(&have, cell));
            }
        });
    }

    /// Elements that one receiver takes from others. Its pieces and their contributions are all different, and at most
    /// one of them is its own shard.
    fn received(&self, receiver: usize) -> u64 {
        if self.identity(receiver).is_some() {
            return 0;
        }
        let want = shard_box(self.shape, self.to, self.to_sbp, receiver);
        let own = self
            .own
            .get(receiver)
            .map_or(0, |p| volume(&meet(&want, &shard_box(self.shape, self.from, self.from_sbp, p))));
        volume(&want) * self.contributions() as u64 - own
    }

    /// Bytes that cross between ranks, in time linear in the number of receivers.
    pub(super) fn volume(&self) -> Volume {
        let mut v = Volume { elements: 0, max_received: 0 };
        for q in 0..self.to.len() {
            let r = self.received(q);
            v.elements += r;
            v.max_received = v.max_received.max(r);
        }
        v
    }

    /// Elements copied or reduced by the receiver with the largest box.
    fn copied(&self) -> u64 {
        volume(&shard_box(self.shape, self.to, self.to_sbp, 0)) * self.contributions() as u64
    }

    /// A lower bound of the price, from the first and the last receiver alone.
    pub(super) fn least_price(&self, element: u64) -> u64 {
        match self.received(0).max(self.received(self.to.len() - 1)) {
            0 => self.model.local_exchange_ps,
            r => self
                .rate(self.near())
                .price(1, r.saturating_mul(element))
                .min(self.rate(LinkKind::Network).price(1, r.saturating_mul(element))),
        }
    }

    fn rate(&self, link: LinkKind) -> &Rate {
        self.model.rate(link, Algorithm::Exchange)
    }

    /// The link within a host.
    fn near(&self) -> LinkKind {
        self.model.between(self.from.device(), 0, 0)
    }

    /// The price: the messages and the elements of the busiest rank; without messages, of writing the result once per contribution.
    /// `None` where it is known in less time that the price is more than `limit`.
    pub(super) fn price_within(&self, element: u64, limit: u64) -> Option<u64> {
        let cells: u64 = (0..self.from.axes())
            .filter(|a| self.from_sbp[*a].split_dim().is_some())
            .map(|a| self.from.dims()[a] as u64)
            .product();
        let partners = cells * self.contributions() as u64;
        let hosts = self.model.hosts.several();
        let local =
            || self.model.local_exchange_ps.saturating_add(self.model.copied(self.copied().saturating_mul(element)));
        let exact = self.to.len() as u64 * partners <= EXACT_MESSAGES;
        if exact && !hosts && matches!(self.own, Own::Same) {
            let rate = self.rate(self.near());
            let most_elements = match limit.checked_sub(rate.price(1, 0)) {
                _ if limit == u64::MAX => u64::MAX,
                Some(rest) => rate.most_bytes(rest) / element,
                None => 0,
            };
            let ends = (self.from_sbp.as_ref(), self.to_sbp.as_ref());
            let most = busiest(self.shape, self.from.dims(), ends, self.kept, most_elements)?;
            return Some(match most.messages {
                0 => local(),
                n => rate.price(n, most.elements.saturating_mul(element)),
            });
        }
        let v = self.volume();
        if v.elements == 0 {
            return Some(local());
        }
        if !exact {
            let average = v.elements.div_ceil(self.from.len() as u64);
            let link = if hosts { LinkKind::Network } else { self.near() };
            let mut messages = 0;
            for q in [0, self.to.len() - 1] {
                let mut n = 0;
                self.pieces(q, |piece| n += piece.holders.len() as u64);
                messages = messages.max(n);
            }
            let bytes = v.max_received.max(average).saturating_mul(element);
            return Some(self.rate(link).price(messages.max(1), bytes));
        }
        let mut sent: SmallVec<[Load; 16]> = smallvec![Load::default(); self.from.len()];
        let mut busiest = Load::default();
        for q in 0..self.to.len() {
            let own = self.own.get(q);
            let mut received = Load::default();
            self.pieces(q, |piece| {
                let elements = volume(&piece.at);
                for h in piece.holders.iter().filter(|h| own != Some(**h)) {
                    let far = hosts
                        && self.model.hosts.host(self.from.ranks()[*h]) != self.model.hosts.host(self.to.ranks()[q]);
                    received.add(elements, far);
                    sent[*h].add(elements, far);
                }
            });
            busiest.raise(&received);
        }
        sent.iter().for_each(|s| busiest.raise(s));
        let far = self.rate(LinkKind::Network);
        let near = self.rate(self.near());
        let slow = if busiest.far > 0 { far } else { near };
        let start = slow.price(busiest.messages, 0);
        let near = near.bytes(busiest.near.saturating_mul(element));
        Some(start.saturating_add(near).saturating_add(far.bytes(busiest.far.saturating_mul(element))))
    }
}

/// Bytes that one rank sends or receives in an exchange.
#[derive(Clone, Default)]
struct Load {
    /// Elements within the host.
    near: u64,
    /// Elements between hosts.
    far: u64,
    messages: u64,
}

impl Load {
    fn add(&mut self, elements: u64, far: bool) {
        self.messages += 1;
        *(if far { &mut self.far } else { &mut self.near }) += elements;
    }

    fn raise(&mut self, other: &Load) {
        self.near = self.near.max(other.near);
        self.far = self.far.max(other.far);
        self.messages = self.messages.max(other.messages);
    }
}
