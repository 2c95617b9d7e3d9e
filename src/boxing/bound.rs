//! Lower bound on the cost of boxing from one nd-SBP to another on one mesh, whatever the steps.
//!
//! Three arguments, each about the elements that ranks must receive:
//!
//! * **A corner.** The ranks of a *group* (all coordinates on the axes that are P in the destination) must together have
//!   the elements of their destination box. What the source boxes of the group do not hold, or hold only as contributions
//!   to be reduced with those of ranks outside the group, comes from outside. It is counted for groups at corners of
//!   the mesh.
//! * **Reduction.** C contributions to an element that may stay P over at most Q ranks must be merged C − Q times, each
//!   time with one transfer; and when the first group has the value, each of the other F − 1 groups that is to have it
//!   still needs a transfer. So n elements cost n (C − Q + F − 1) transfers, and some rank at least its share of them.
//!   With F = C, Q = 1 this is the 2 (k − 1) / k n of an all-reduce. Where shards are uneven, some send more: the
//!   holders of the m contributions to the largest shard send m transfers of an element, or m − 1 of one that stays with them.
//! * **Filling.** Where an axis becomes partial, its first coordinate has the whole box in the end. Either a step writes it
//!   (pad or keep), and what is larger than what the last of these wrote was received after that; or no step does, and
//!   the first rank receives all that its source box does not hold.
//!
//! Every step costs at least the bytes of its busiest rank at the best rate of the model, and some latency. Where only one step
//! communicates, the first rank has all that it needs directly from the ranks that hold it: one peer for each but itself.

use super::axes::AxisSet;
use super::cost::{Algorithm, LinkKind, Model, per_kib};
use super::sizes::{Sizes, count, largest_box};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use smallvec::SmallVec;

/// Elements that ranks must receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// Elements that some rank must receive at least.
    pub(super) elements: u64,
    /// Whether anything must cross between ranks.
    pub(super) communicates: bool,
    /// Whether contributions must be merged.
    pub(super) reduces: bool,
    /// Ranks, itself counted, that hold what the first rank needs; 2 where that is not known.
    pub(super) holders: u64,
    /// Elements of the first rank's destination box, which the last step writes.
    pub(super) written: u64,
    /// Where an axis becomes partial: elements that the first rank must receive if no step fills up with identities.
    pub(super) unfilled: Option<u64>,
}

/// Mesh axes of which both ends are tried for corners; the others go with the last of these.
const CORNER_AXES: usize = 3;

/// The boxes of the ranks at the corners of a mesh, which are at the first or last coordinate of each axis: start and end
/// in each dim, corner by corner.
pub(super) struct Corners(SmallVec<[(usize, usize); 64]>);

impl Corners {
    /// Of a layout. `first` are axes on which all corners are at coordinate 0; axes in `joined` do not split, because their
    /// ranks are taken together. An inner axis that splits a dim after a joined one does not split it either: what the
    /// joined ranks hold of the dim is not one box.
    pub(super) fn of(shape: &[usize], dims: &[usize], sbp: &[Sbp], first: AxisSet, joined: AxisSet) -> Corners {
        let rank = shape.len();
        let corners = 1usize << dims.len().min(CORNER_AXES);
        let mut boxes: SmallVec<[(usize, usize); 64]> = SmallVec::from_elem((0, 0), corners * rank);
        for corner in boxes.chunks_exact_mut(rank.max(1)) {
            for (side, n) in corner.iter_mut().zip(shape) {
                side.1 = *n;
            }
        }
        let mut scattered = 0u64;
        for (a, k) in dims.iter().enumerate() {
            let Sbp::Split(d) = sbp[a] else { continue };
            if joined.contains(a) {
                scattered |= 1 << d;
            }
            if scattered >> d & 1 == 1 {
                continue;
            }
            let mut known = (usize::MAX, 0, 0);
            for c in 0..corners {
                let (start, end) = &mut boxes[c * rank + d];
                let len = *end - *start;
                if len != known.0 {
                    known = (len, len.div_ceil(*k), len / k);
                }
                match c >> a.min(CORNER_AXES - 1) & 1 == 1 && !first.contains(a) {
                    true => *start = *end - known.2,
                    false => *end = *start + known.1,
                }
            }
        }
        Corners(boxes)
    }

    /// Elements of each of these boxes, and of what is common with the other corner.
    fn meet<'a>(&'a self, have: &'a Corners, rank: usize) -> impl Iterator<Item = (u64, u64)> + 'a {
        let corners = self.0.len().checked_div(rank).unwrap_or(1);
        (0..corners).map(move |c| {
            let (mut all, mut held) = (1u64, 1u64);
            for (w, h) in self.0[c * rank..(c + 1) * rank].iter().zip(&have.0[c * rank..(c + 1) * rank]) {
                all *= (w.1 - w.0) as u64;
                held *= w.1.min(h.1).saturating_sub(w.0.max(h.0)) as u64;
            }
            (all, held)
        })
    }
}

/// The axes that are partial.
pub(super) fn partials(sbp: &[Sbp]) -> AxisSet {
    (0..sbp.len()).filter(|a| sbp[*a].is_partial()).collect()
}

/// The least that boxing from one nd-SBP to another on a mesh of these sizes must move.
pub(super) fn need(shape: &[usize], dims: &[usize], from: &[Sbp], to: &[Sbp]) -> Need {
    let none = AxisSet::default();
    let (want, have) = (Corners::of(shape, dims, to, none, none), Corners::of(shape, dims, from, none, partials(to)));
    need_of(shape, dims, (from, &have), (to, &want))
}

/// [`need`] with the corners of both: of the source with the destination's partial axes joined.
pub(super) fn need_of(
    shape: &[usize],
    dims: &[usize],
    (from, have): (&[Sbp], &Corners),
    (to, want): (&[Sbp], &Corners),
) -> Need {
    let (mut group, mut ranks, mut holders) = (1u64, 1u64, 1u64);
    let (mut contributions, mut merged, mut outside) = (1u64, 1u64, false);
    let (mut copies, mut becomes) = (1u64, false);
    for (a, k) in dims.iter().enumerate() {
        let k = *k as u64;
        ranks *= k;
        becomes |= k > 1 && to[a].is_partial() && from[a] != to[a];
        if from[a].is_broadcast() {
            copies *= k;
        }
        match to[a] {
            Sbp::Partial(_) => group *= k,
            Sbp::Broadcast => holders *= k,
            Sbp::Split(_) => {}
        }
        if from[a].is_partial() {
            contributions *= k;
            if from[a] != to[a] {
                merged *= k;
                outside |= k > 1 && !to[a].is_partial();
            }
        }
    }
    let missing = want.meet(have, shape.len()).map(|(all, held)| if outside { all } else { all - held }).max();
    let missing = missing.unwrap_or(0);
    let mut elements = missing.div_ceil(group);
    if merged > 1 {
        let merges = contributions.saturating_sub(group).max(merged - 1);
        let n = shape.iter().fold(1u64, |n, s| n * *s as u64);
        elements = elements.max(n.saturating_mul(merges + holders - 1).div_ceil(ranks));
    }
    let own = largest_box(shape, dims, from);
    elements = elements.max(sent_by_first((shape, dims), (from, &own), to, (merged, copies)));
    let first = want.0.iter().zip(&have.0).take(shape.len());
    let cells: u64 = first.clone().map(|(w, h)| (w.1 - w.0).div_ceil((h.1 - h.0).max(1)) as u64).product();
    let written = first.clone().map(|(w, _)| (w.1 - w.0) as u64).product();
    let unfilled = becomes.then(|| {
        let held: u64 = first.zip(&own).map(|((w, _), h)| w.1.min(*h) as u64).product();
        written - held
    });
    Need {
        elements,
        communicates: missing > 0 || merged > 1,
        reduces: merged > 1,
        // The ranks along an axis that becomes partial may each have a part.
        holders: if becomes { 2 } else { cells.saturating_mul(merged).max(2) },
        written,
        unfilled,
    }
}

/// The least that boxing between two nd-SBPs must move where one of them is known on the outer axes only, whatever its other
/// axes are; `None` if that may be nothing.
pub(super) fn need_so_far(shape: &[usize], dims: &[usize], from: &[Sbp], to: &[Sbp]) -> Option<Need> {
    let (mut group, mut ranks, mut holders) = (1u64, 1u64, 1u64);
    let (mut copies, mut merged, mut outside, mut becomes) = (1u64, 1u64, false, false);
    for (a, k) in dims.iter().enumerate() {
        let k = *k as u64;
        ranks *= k;
        if from.get(a).is_some_and(|s| s.is_broadcast()) {
            copies *= k;
        }
        match to.get(a) {
            Some(Sbp::Partial(_)) => group *= k,
            Some(Sbp::Broadcast) => holders *= k,
            _ => {}
        }
        if let (Some(before), Some(after)) = (from.get(a), to.get(a))
            && before != after
            && k > 1
        {
            becomes |= after.is_partial();
            if before.is_partial() {
                merged *= k;
                outside |= !after.is_partial();
            }
        }
    }
    let n = shape.iter().fold(1u64, |n, s| n * *s as u64);
    let mut need = Need {
        elements: if merged > 1 { n.saturating_mul(merged + holders - 2).div_ceil(ranks) } else { 0 },
        communicates: merged > 1,
        reduces: merged > 1,
        holders: 2,
        written: 0,
        unfilled: None,
    };
    if from.len() == dims.len() {
        let own = largest_box(shape, dims, from);
        need.elements = need.elements.max(sent_by_first((shape, dims), (from, &own), to, (merged, copies)));
    }
    if to.len() == dims.len() {
        // The first rank's box; what it holds of it, alone and together with those of its group.
        let want = largest_box(shape, dims, to);
        let (mut alone, mut together) = (Sizes::from_slice(shape), Sizes::from_slice(shape));
        let mut scattered = 0u64;
        for (a, k) in dims.iter().enumerate().take(from.len()) {
            let Sbp::Split(d) = from[a] else { continue };
            alone[d] = alone[d].div_ceil(*k);
            if to[a].is_partial() {
                scattered |= 1 << d;
            } else if scattered >> d & 1 == 0 {
                together[d] = together[d].div_ceil(*k);
            }
        }
        let held = |sizes: &[usize]| want.iter().zip(sizes).map(|(w, h)| *w.min(h) as u64).product::<u64>();
        need.written = count(&want);
        let missing = need.written - if outside { 0 } else { held(&together) };
        need.elements = need.elements.max(missing.div_ceil(group));
        need.unfilled = becomes.then(|| need.written - held(&alone));
    }
    need.communicates |= need.elements > 0;
    (need.communicates || need.unfilled.is_some()).then_some(need)
}

/// Elements that the holders of the first shard must send, each its share: `own` are the sizes of that shard, `merged` the
/// contributions to it that are reduced, each with so many `copies`. Of the holders of one contribution someone sends an
/// element unless the element stays with them; and that is so for one contribution at most.
fn sent_by_first(
    (shape, dims): (&[usize], &[usize]),
    (from, own): (&[Sbp], &[usize]),
    to: &[Sbp],
    (merged, copies): (u64, u64),
) -> u64 {
    // What the holders have together in the end, who are at coordinate 0 of the axes that split the source. Where such an axis
    // becomes B, others have everything too.
    let mut stays = true;
    let mut sizes = Sizes::from_slice(shape);
    let mut scattered = 0u64;
    for (a, k) in dims.iter().enumerate().take(to.len()) {
        let fixed = from[a].split_dim().is_some();
        match to[a] {
            Sbp::Broadcast => stays &= !fixed || *k == 1,
            Sbp::Split(d) if !fixed => scattered |= 1 << d,
            Sbp::Split(d) if scattered >> d & 1 == 0 => sizes[d] = sizes[d].div_ceil(*k),
            _ => {}
        }
    }
    let kept: u64 = own.iter().zip(&sizes).map(|(h, w)| *h.min(w) as u64).product();
    let all = u128::from(count(own)) * u128::from(merged);
    (all - u128::from(if stays { kept } else { 0 })).div_ceil(u128::from(merged) * u128::from(copies)) as u64
}

/// Axes on which only coordinate 0 gets something in an exchange: those that become partial.
pub(super) fn becomes_partial(from: &[Sbp], to: &[Sbp]) -> AxisSet {
    (0..to.len()).filter(|a| to[*a].is_partial() && from[*a] != to[*a]).collect()
}

/// The cheapest rates of a model for ranks of a device kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    local: u64,
    per_kib_copied: u64,
    start: u64,
    per_peer: u64,
    per_kib: u64,
    /// Starting an exchange in which nothing is sent.
    pub(super) exchange_local: u64,
    /// Starting one in which something is.
    pub(super) exchange_start: u64,
    exchange_per_peer: u64,
    pub(super) exchange_per_kib: u64,
}

impl Floor {
    pub(super) fn new(model: &Model, device: Device) -> Floor {
        let near = model.between(device, 0, 0);
        let links = if model.hosts.several() { [near, LinkKind::Network] } else { [near, near] };
        let least = |of: &dyn Fn(LinkKind, Algorithm) -> u64, algorithms: &[Algorithm]| {
            let each = links.iter().flat_map(|l| algorithms.iter().map(|a| of(*l, *a)));
            each.min().unwrap_or(0)
        };
        let start = |l, a| model.rate(l, a).price(1, 0);
        let latency = |l, a| model.rate(l, a).latency_ps;
        let per_peer = |l, a| model.rate(l, a).per_peer_ps;
        let rate = |l, a| model.rate(l, a).per_kib_ps;
        Floor {
            local: model.local_ps.min(model.local_exchange_ps),
            per_kib_copied: model.per_kib_copied_ps,
            start: least(&start, &Algorithm::ALL),
            // By hosts a group has fewer peers than members.
            per_peer: if model.hosts.several() { 0 } else { least(&per_peer, &Algorithm::ALL) },
            per_kib: least(&rate, &Algorithm::ALL),
            exchange_local: model.local_exchange_ps,
            exchange_start: least(&latency, &[Algorithm::Exchange]),
            exchange_per_peer: least(&per_peer, &[Algorithm::Exchange]),
            exchange_per_kib: least(&rate, &[Algorithm::Exchange]),
        }
    }

    /// Of any steps.
    pub(super) fn steps(&self, need: Need, element: u64) -> u64 {
        self.of(need, element, 0)
    }

    /// Of any steps of which one alone communicates, or stays on the rank, with so much besides; or of several that do.
    fn of(&self, need: Need, element: u64, besides: u64) -> u64 {
        if need.communicates {
            let one = self.start.saturating_add((need.holders - 2).saturating_mul(self.per_peer));
            let two = self.start.saturating_mul(2);
            let sent = |elements: u64| per_kib(elements.saturating_mul(element), self.per_kib);
            let Some(unfilled) = need.unfilled else {
                return one.saturating_add(besides).min(two).saturating_add(sent(need.elements));
            };
            // Either all is received, or a step on the rank writes what is not.
            let received = one.saturating_add(besides).min(two).saturating_add(sent(need.elements.max(unfilled)));
            let copied = need.written.saturating_sub(need.elements).saturating_mul(element);
            let copied = self.local.saturating_add(per_kib(copied, self.per_kib_copied.min(self.per_kib)));
            let one = one.saturating_add(besides.saturating_sub(self.local));
            one.min(two).saturating_add(copied).saturating_add(sent(need.elements)).min(received)
        } else {
            let copied = per_kib(need.written.saturating_mul(element), self.per_kib_copied);
            let sent = per_kib(need.unfilled.unwrap_or(0).saturating_mul(element), self.per_kib);
            self.local.saturating_add(copied).min(self.start.saturating_add(sent)).saturating_add(besides)
        }
    }

    /// Of two exchanges of which the first sends something.
    pub(super) fn two_exchanges(&self, need: Need, element: u64) -> u64 {
        let starts = self.exchange_start.saturating_add(self.exchange_per_peer).saturating_add(self.exchange_local);
        starts.saturating_add(per_kib(need.elements.saturating_mul(element), self.exchange_per_kib))
    }

    /// Of two steps or more.
    pub(super) fn several_steps(&self, need: Need, element: u64) -> u64 {
        self.of(need, element, self.local.min(self.start))
    }

    /// Of one exchange, given the corners of both: of the source at coordinate 0 of the axes that become partial.
    pub(super) fn exchange(
        &self,
        (shape, dims): (&[usize], &[usize]),
        (from, have): (&[Sbp], &Corners),
        (to, want): (&[Sbp], &Corners),
        element: u64,
    ) -> u64 {
        let ways = Ways::of(dims, from, to);
        let rank = shape.len();
        let mut most = 0;
        let mut of_first = None;
        for (corner, (all, held)) in want.meet(have, rank).enumerate() {
            let stays = *of_first.get_or_insert(held);
            let own: u64 = have.0[corner * rank..(corner + 1) * rank].iter().map(|h| (h.1 - h.0) as u64).product();
            most = most.max(ways.received(all, held)).max(ways.sent(own, if ways.replicas > 1 { stays } else { held }));
        }
        let spans = want.0.iter().zip(&have.0).take(rank).map(|(w, h)| (w.1 - w.0, h.1 - h.0));
        self.of_exchange(most, ways.contributions, spans, element)
    }

    /// A weaker bound of one exchange in less time, given the sizes of the first rank's boxes.
    pub(super) fn exchange_of_first(&self, ways: &Ways, have: &[usize], want: &[usize], element: u64) -> u64 {
        let (mut all, mut held, mut own) = (1u64, 1u64, 1u64);
        for (w, h) in want.iter().zip(have) {
            all *= *w as u64;
            own *= *h as u64;
            held *= *w.min(h) as u64;
        }
        let spans = want.iter().zip(have).map(|(w, h)| (*w, *h));
        let most = ways.received(all, held).max(ways.sent(own, held));
        self.of_exchange(most, ways.contributions, spans, element)
    }

    /// Of one exchange in which a rank sends or receives so many elements. The first rank's box spans some cells of the source, of
    /// which one may be its own: `spans` has the sizes of both in each dim.
    fn of_exchange(
        &self,
        moved: u64,
        contributions: u64,
        spans: impl Iterator<Item = (usize, usize)>,
        element: u64,
    ) -> u64 {
        if moved == 0 {
            return self.exchange_local;
        }
        let cells = spans.map(|(w, h)| if w <= h { 1 } else { w.div_ceil(h.max(1)) as u64 });
        let messages = cells.fold(contributions, u64::saturating_mul).saturating_sub(1).max(1);
        self.exchange_start
            .saturating_add(messages.saturating_mul(self.exchange_per_peer))
            .saturating_add(per_kib(moved.saturating_mul(element), self.exchange_per_kib))
    }
}

/// How many senders and receivers an exchange has for an element.
pub(super) struct Ways {
    /// Contributions that are reduced into one.
    pub(super) contributions: u64,
    /// Ranks that hold the same contribution.
    replicas: u64,
    /// Ranks that get the element.
    receivers: u64,
}

impl Ways {
    pub(super) fn of(dims: &[usize], from: &[Sbp], to: &[Sbp]) -> Ways {
        let mut ways = Ways { contributions: 1, replicas: 1, receivers: 1 };
        for (a, k) in dims.iter().enumerate() {
            let k = *k as u64;
            match from[a] {
                Sbp::Partial(_) if from[a] != to[a] => ways.contributions *= k,
                Sbp::Broadcast => ways.replicas *= k,
                _ => {}
            }
            if to[a].is_broadcast() {
                ways.receivers *= k;
            }
        }
        ways
    }

    /// The ways that any source has for a receiver of which nothing else is known.
    pub(super) fn of_receiver() -> Ways {
        Ways { contributions: 1, replicas: 1, receivers: 0 }
    }

    /// Elements that some rank sends at least when the contributions to the largest shard are reduced: all but one are sent.
    pub(super) fn sent_to_reduce(&self, shard: u64) -> u64 {
        let (all, sent) = (u128::from(self.contributions), u128::from(self.contributions - 1));
        (u128::from(shard) * sent).div_ceil(all * u128::from(self.replicas)) as u64
    }

    /// Elements that a rank receives whose box has `all`, of which it holds `held`: every contribution but its own.
    fn received(&self, all: u64, held: u64) -> u64 {
        all.saturating_mul(self.contributions) - held
    }

    /// Elements that one of the replicas of a shard sends: together all that others want of it. `stays` is the most that
    /// one of them keeps of it for itself.
    fn sent(&self, shard: u64, stays: u64) -> u64 {
        shard.saturating_mul(self.receivers).div_ceil(self.replicas).saturating_sub(stays)
    }
}

/// A lower bound of the price from one nd-SBP to another on one mesh.
pub(super) fn least(model: &Model, shape: &[usize], element: u64, p: &Placement, from: &NdSbp, to: &NdSbp) -> u64 {
    let differs = (0..from.len()).any(|a| p.dims()[a] > 1 && from[a] != to[a]);
    if !differs || shape.contains(&0) {
        return 0;
    }
    Floor::new(model, p.device()).steps(need(shape, p.dims(), from, to), element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxing::Layout;
    use oflow_kernels::{DType, ReduceOp};

    fn check(shape: &[usize], dims: &[usize], from: &str, to: &str) -> (u64, bool) {
        let sbp = |s: &str| s.parse::<NdSbp>().unwrap();
        let n = need(shape, dims, &sbp(from), &sbp(to));
        (n.elements, n.communicates)
    }

    #[test]
    fn known_collectives_are_tight() {
        assert_eq!(check(&[64], &[4], "P", "B"), (2 * 3 * 16, true));
        assert_eq!(check(&[64], &[2, 2], "[P, P]", "[B, B]"), (2 * 3 * 16, true));
        assert_eq!(check(&[64], &[4], "P", "S(0)"), (48, true));
        assert_eq!(check(&[64], &[4], "S(0)", "B"), (48, true));
        assert_eq!(check(&[8, 8], &[4], "S(0)", "S(1)"), (12, true));
        assert_eq!(check(&[64], &[4], "B", "S(0)"), (0, false));
        assert_eq!(check(&[64], &[4], "S(0)", "P"), (0, false));
        assert_eq!(check(&[64], &[4], "B", "P"), (0, false));
        assert_eq!(check(&[8, 8], &[2, 2], "[P, S(0)]", "[P, S(1)]"), (16, true));
    }

    #[test]
    fn the_largest_shard_counts_where_shards_are_uneven() {
        // 3 of 5 rows on the first ranks, of which half must be sent.
        assert_eq!(check(&[4, 5], &[2, 2], "[P, S(1)]", "[S(0), S(1)]"), (6, true));
        assert_eq!(check(&[4, 5], &[2, 2, 2], "[P, S(1), B]", "[S(0), S(1), S(0)]"), (3, true));
        // Two ranks hold 10 elements each, of which 6 stay with one of them.
        assert_eq!(check(&[4, 5], &[2, 2], "[P, S(0)]", "[S(0), S(1)]"), (7, true));
    }

    #[test]
    fn becoming_partial_takes_a_copy_or_what_the_first_rank_lacks() {
        let price = |from: &str, to: &str| {
            let sbp = |s: &str| s.parse::<NdSbp>().unwrap();
            let mesh = Placement::of_world(Device::Cpu, 4).unwrap().mesh(&[("dp", 2), ("tp", 2)]).unwrap();
            least(&Model::default(), &[1024, 1024], 4, &mesh, &sbp(from), &sbp(to))
        };
        let mib = 1024 * 1024 * 100;
        // A pad of 4 MiB at a quarter of the price of sending them.
        assert_eq!(price("[S(0), B]", "[P, B]"), 200_000 + mib);
        // Receiving a quarter, and writing the rest.
        assert_eq!(price("[S(0), S(1)]", "[P, B]"), 5_500_000 + 200_000 + mib + 3 * mib / 4);
    }

    #[test]
    fn no_bound_exceeds_the_price_also_where_few_axes_are_known() {
        let max = Sbp::Partial(ReduceOp::Max);
        let all = [Sbp::Broadcast, Sbp::PARTIAL_SUM, max, Sbp::Split(0), Sbp::Split(1), Sbp::Split(2)];
        let floor = Floor::new(&Model::default(), Device::Cpu);
        let mut pairs = 0;
        for (dims, shape, every) in [
            (&[2usize, 3][..], [5usize, 7, 2], 1),
            (&[4, 2], [4, 3, 1], 1),
            (&[2, 2], [64, 32, 48], 2),
            (&[2, 2, 2], [4, 3, 1], 101),
            (&[2, 3, 2], [1001, 30, 7], 101),
            (&[2, 2, 2, 2], [48, 6, 7], 10_007),
        ] {
            let mesh = Placement::new(Device::Cpu, &(0..dims.iter().product()).collect::<Vec<_>>(), dims).unwrap();
            let layout = |i: usize| -> NdSbp { (0..dims.len()).map(|a| all[i / 6usize.pow(a as u32) % 6]).collect() };
            let count = 6usize.pow(dims.len() as u32);
            for (from, to) in (0..count * count).step_by(every).map(|i| (layout(i / count), layout(i % count))) {
                let at = |n: &NdSbp| Layout::new(&mesh, n.clone());
                let price = crate::boxing::cost(&shape, DType::F32, &at(&from), &at(&to)).unwrap();
                let least = least(&Model::default(), &shape, 4, &mesh, &from, &to);
                assert!(least <= price, "{from} {to} on {dims:?}: {least} {price}");
                for known in 0..=dims.len() {
                    for (from, to) in [(&from[..], &to[..known]), (&from[..known], &to[..])] {
                        let need = need_so_far(&shape, dims, from, to);
                        let least = need.map_or(0, |need| floor.steps(need, 4));
                        assert!(least <= price, "{from:?} {to:?} of {shape:?} on {dims:?}: {least} {price} {need:?}");
                    }
                }
                pairs += 1;
            }
        }
        assert!(pairs > 4000, "{pairs}");
    }
}
