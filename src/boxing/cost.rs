//! Cost of a boxing step in integer picoseconds: one model for plans, the choice of signatures, explanations and
//! predictions.
//!
//! A communication takes `latency + peers * per_peer + wire * per_byte + copied * per_byte_copied`, with a latency, a time
//! per peer and a time per byte for each [`Algorithm`] on each kind of [`Link`]. Bytes beyond what caches hold may cost
//! more than those before them, never less (see [`Rate::extra_per_kib_ps`]). Every byte count is that of the busiest
//! rank, exact for uneven shards; `wire` is the larger of what it sends and what it receives. What a kind of step counts
//! stands in its file ([`super::steps`]), at its `price`.
//!
//! Long collectives of groups with several members on a host go by hosts ([`HostHierarchy`]). Then the price is that of the network
//! with the hops as peers and the bytes of the busiest rank that cross it, and that of the host with the busiest rank's mates
//! and bytes. Of groups that lie on hosts in different ways the dearest counts.
//!
//! Short messages of more than 64 members go by a tree ([`oflow_base::tree`]). They are priced as if sent directly, which is too
//! dear: bytes are told exactly, times are not.
//!
//! Packing around a collective is part of its bandwidth: every transport copies anyway. An exchange costs a little more
//! latency than a collective or a slice, so these are preferred where they do the same. An exchange of more than
//! [`EXACT_MESSAGES`] possible messages is priced with the average sender instead of the busiest one, and with the number of
//! messages of the first or last receiver, which keeps planning linear in the number of ranks.
//!
//! There are two sets of constants. [`Model::default`] is fixed, the same on every machine: signatures are chosen under it,
//! so a program's SBPs do not depend on where it runs. Measured constants (`oflow calibrate`) steer which steps carry out a
//! boxing, and what is predicted.

use super::axes::AxisSet;
use super::hosts::Hosts;
use crate::placement::{Device, Placement, shard_range};
use oflow_base::host_hierarchy::{FlowKind, HostHierarchy, Width, one_phase_bytes};
use oflow_kernels::{DType, ReduceOp};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Above this many possible messages an exchange is priced with the average sender.
pub const EXACT_MESSAGES: u64 = 1 << 13;

/// A kind of link between ranks. The slowest link of a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Between GPUs of one host.
    NvLink,
    /// Shared memory of processes of one host.
    SameHost,
    /// Between hosts, over the network.
    Network,
}

/// A communication algorithm, with its own rate per kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// All-reduce in one phase: every member sends the whole tensor to every other.
    AllReduceOnePhase,
    /// All-reduce in two phases: reduce-scatter and all-gather of chunks.
    AllReduceTwoPhase,
    /// All-gather: each member ends with the shards of all.
    AllGather,
    /// Reduce-scatter: each member ends with its shard of the sum.
    ReduceScatter,
    /// All-to-all.
    AllToAll,
    /// Broadcast from one member.
    Broadcast,
    /// Batch of point-to-point messages.
    Exchange,
}

impl Algorithm {
    /// All algorithms, in the order of their numbers.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::AllReduceOnePhase,
        Algorithm::AllReduceTwoPhase,
        Algorithm::AllGather,
        Algorithm::ReduceScatter,
        Algorithm::AllToAll,
        Algorithm::Broadcast,
        Algorithm::Exchange,
    ];
}

/// The constants of one algorithm over one kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Latency of the step, in picoseconds.
    pub latency_ps: u64,
    /// Time per peer of the busiest rank, in picoseconds.
    pub per_peer_ps: u64,
    /// Time per KiB that the busiest rank sends or receives, in picoseconds.
    pub per_kib_ps: u64,
    /// Size in KiB above which the extra time applies; about the size of the caches.
    #[serde(default)]
    pub extra_beyond_kib: u64,
    /// Extra time per KiB above that size, in picoseconds. It is not negative, so [`per_kib_ps`](Self::per_kib_ps) is a lower bound
    /// of the time per KiB in every plan.
    #[serde(default)]
    pub extra_per_kib_ps: u64,
}

impl Rate {
    /// Returns the predicted time of a communication, in picoseconds.
    pub fn price(&self, peers: u64, wire_bytes: u64) -> u64 {
        self.latency_ps.saturating_add(peers.saturating_mul(self.per_peer_ps)).saturating_add(self.bytes(wire_bytes))
    }

    /// Returns the part of the time that depends on the bytes, in picoseconds.
    pub fn bytes(&self, wire_bytes: u64) -> u64 {
        let beyond = wire_bytes.saturating_sub(self.extra_beyond_kib.saturating_mul(1024));
        per_kib(wire_bytes, self.per_kib_ps).saturating_add(per_kib(beyond, self.extra_per_kib_ps))
    }

    /// No more bytes than these can be sent in so many picoseconds.
    pub(super) fn most_bytes(&self, ps: u64) -> u64 {
        // One more, because prices are rounded down.
        let most = ((u128::from(ps) + 1) << 10).checked_div(u128::from(self.per_kib_ps)).unwrap_or(u128::MAX);
        most.min(u128::from(u64::MAX)) as u64
    }
}

/// The price of so many bytes at a price per KiB.
pub(super) fn per_kib(bytes: u64, ps: u64) -> u64 {
    ((u128::from(bytes) * u128::from(ps)) >> 10).min(u128::from(u64::MAX)) as u64
}

/// The rates of one kind of link, in the order of [`Algorithm::ALL`]; written to files by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "BTreeMap<Algorithm, Rate>", try_from = "BTreeMap<Algorithm, Rate>")]
pub struct Link {
    /// One rate per algorithm.
    pub rates: [Rate; 7],
}

impl From<Link> for BTreeMap<Algorithm, Rate> {
    fn from(link: Link) -> Self {
        Algorithm::ALL.into_iter().zip(link.rates).collect()
    }
}

impl TryFrom<BTreeMap<Algorithm, Rate>> for Link {
    type Error = String;

    fn try_from(named: BTreeMap<Algorithm, Rate>) -> Result<Link, String> {
        let rate = |a| named.get(&a).copied().ok_or_else(|| format!("the rate for {a:?} is missing"));
        let all = Algorithm::ALL.into_iter().map(rate).collect::<Result<Vec<_>, _>>()?;
        all.try_into().map(|rates| Link { rates }).map_err(|_| "a rate is missing".to_string())
    }
}

impl Link {
    /// The same constants for all collectives, and a little more latency for an exchange.
    const fn uniform(latency_ps: u64, per_peer_ps: u64, per_kib_ps: u64) -> Link {
        let rate = Rate { latency_ps, per_peer_ps, per_kib_ps, extra_beyond_kib: 0, extra_per_kib_ps: 0 };
        let exchange = Rate { latency_ps: latency_ps + latency_ps / 50, ..rate };
        Link { rates: [rate, rate, rate, rate, rate, rate, exchange] }
    }
}

/// The constants of the cost model, and the hosts of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Latency of a step without communication, in picoseconds.
    pub local_ps: u64,
    /// Latency of an exchange in which each rank only copies from itself, in picoseconds.
    pub local_exchange_ps: u64,
    /// Time per KiB copied on a rank, in picoseconds.
    pub per_kib_copied_ps: u64,
    /// Size in KiB above which copies take extra time.
    #[serde(default)]
    pub extra_copied_beyond_kib: u64,
    /// Extra time per KiB copied above that size, in picoseconds.
    #[serde(default)]
    pub extra_per_kib_copied_ps: u64,
    /// Between GPUs of one host.
    pub nvlink: Link,
    /// Between processes of one host.
    pub same_host: Link,
    /// Between hosts, over the network.
    pub network: Link,
    /// The host of each rank.
    #[serde(rename = "ranks_per_host")]
    pub hosts: Hosts,
    /// Soft limit of the bytes that a plan may use on a rank besides its source and destination shards
    /// ([`BoxingPlan::extra_bytes`](super::BoxingPlan::extra_bytes)). If no plan is within the limit, the plan with the least memory is
    /// used and marked ([`BoxingPlan::over_memory`](super::BoxingPlan::over_memory)).
    #[serde(default)]
    pub extra_memory: Option<u64>,
}

impl Default for Model {
    /// The fixed constants, for one host: 10 GB/s and 5 µs between processes, 200 GB/s and 10 µs over NVLink, 12.5 GB/s and 30 µs
    /// over the network, 40 GB/s for copies.
    fn default() -> Model {
        Model {
            local_ps: 200_000,
            local_exchange_ps: 250_000,
            per_kib_copied_ps: 25 << 10,
            extra_copied_beyond_kib: 0,
            extra_per_kib_copied_ps: 0,
            nvlink: Link::uniform(10_000_000, 500_000, 5 << 10),
            same_host: Link::uniform(5_000_000, 500_000, 100 << 10),
            network: Link::uniform(30_000_000, 2_000_000, 80 << 10),
            hosts: Hosts::default(),
            extra_memory: None,
        }
    }
}

impl Model {
    /// Returns the rate of an algorithm over a kind of link.
    pub fn rate(&self, link: LinkKind, algorithm: Algorithm) -> &Rate {
        let link = match link {
            LinkKind::NvLink => &self.nvlink,
            LinkKind::SameHost => &self.same_host,
            LinkKind::Network => &self.network,
        };
        &link.rates[algorithm as usize]
    }

    /// Returns the kind of link between two ranks of a device kind.
    pub fn between(&self, device: Device, a: usize, b: usize) -> LinkKind {
        match (self.hosts.host(a) == self.hosts.host(b), device) {
            (false, _) => LinkKind::Network,
            (true, Device::Cuda) => LinkKind::NvLink,
            (true, _) => LinkKind::SameHost,
        }
    }

    /// How a group of ranks lies on hosts, where its long collectives go by that.
    pub fn hierarchy(&self, ranks: &[usize]) -> Option<HostHierarchy> {
        if self.hosts.several() { HostHierarchy::of(ranks.len(), |i| self.hosts.host(ranks[i])) } else { None }
    }

    /// Returns the slowest link within the groups of a mesh along one axis.
    pub fn along(&self, placement: &Placement, axis: usize) -> LinkKind {
        let ranks = placement.ranks();
        let stride: usize = placement.dims()[axis + 1..].iter().product();
        let first = |p: usize| p - p / stride % placement.dims()[axis] * stride;
        let host = |p: usize| self.hosts.host(ranks[p]);
        let crosses = self.hosts.several() && (0..ranks.len()).any(|p| host(p) != host(first(p)));
        if crosses { LinkKind::Network } else { self.between(placement.device(), 0, 0) }
    }

    /// Returns the predicted time of a local step that writes so many bytes, in picoseconds.
    pub fn local(&self, bytes: u64) -> u64 {
        self.local_ps.saturating_add(self.copied(bytes))
    }

    /// Returns the time to copy so many bytes on a rank, in picoseconds.
    pub fn copied(&self, bytes: u64) -> u64 {
        let beyond = bytes.saturating_sub(self.extra_copied_beyond_kib.saturating_mul(1024));
        per_kib(bytes, self.per_kib_copied_ps).saturating_add(per_kib(beyond, self.extra_per_kib_copied_ps))
    }
}

/// Elements that member `i` of `k` sends in an all-reduce of `n` elements.
pub(crate) fn all_reduce_sent(n: usize, k: usize, i: usize, element: u64) -> u64 {
    let (peers, chunk) = (k as u64 - 1, shard_range(n, k, i).len() as u64);
    if n as u64 * element <= one_phase_bytes(k) as u64 { peers * n as u64 } else { n as u64 - chunk + peers * chunk }
}

/// The part of a dim that member `index` has when axes of sizes `ks`, outermost first, split it one inside the other:
/// members are numbered row-major.
pub(super) fn nested_range(len: usize, ks: &[usize], index: usize) -> Range<usize> {
    if let [k] = ks {
        return shard_range(len, *k, index);
    }
    let mut range = 0..len;
    let mut inner: usize = ks.iter().product();
    let mut rest = index;
    for k in ks {
        inner /= k;
        let r = shard_range(range.len(), *k, rest / inner);
        rest %= inner;
        range = range.start + r.start..range.start + r.end;
    }
    range
}

/// The links that connect the groups of a move.
#[derive(Clone)]
pub(super) struct Groups {
    /// The slowest link in one of them.
    link: LinkKind,
    /// Returns the kind of link within a host.
    near: LinkKind,
    /// Each of the ways in which a group lies on hosts; none for those that always go the direct way.
    hierarchies: SmallVec<[Option<HostHierarchy>; 1]>,
}

impl Groups {
    /// The groups along some axes of a mesh.
    pub(super) fn along(model: &Model, mesh: &Placement, axes: AxisSet) -> Groups {
        let near = model.between(mesh.device(), 0, 0);
        let link = axes.iter().map(|a| model.along(mesh, a)).max().unwrap_or(near);
        let mut hierarchies = SmallVec::new();
        if link == LinkKind::Network && mesh.device() != Device::Cuda {
            for p in 0..mesh.len() {
                let coord = mesh.coord(p);
                if axes.iter().all(|a| coord[a] == 0) {
                    let (group, _) = mesh.group_along(p, axes.iter());
                    let hierarchy = HostHierarchy::of(group.len(), |i| model.hosts.host(mesh.ranks()[group[i]]));
                    if !hierarchies.contains(&hierarchy) {
                        hierarchies.push(hierarchy);
                    }
                }
            }
        }
        Groups { link, near, hierarchies }
    }
}

/// The predicted time of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Price {
    /// The part that does not depend on the bytes.
    pub(super) start: u64,
    bytes: u64,
}

impl Price {
    /// Returns the sum, in picoseconds.
    pub(super) fn total(self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

/// A move that is to be priced, along axes of sizes `ks`.
pub(super) struct MoveCost<'a> {
    pub(super) model: &'a Model,
    pub(super) groups: &'a Groups,
    /// Sizes of the axes of the move, outermost first.
    pub(super) ks: &'a [usize],
    /// The largest box before these axes split it: the box at coordinate 0 of all other axes, because the balanced split gives
    /// the larger parts to the smaller coordinates.
    pub(super) sizes: &'a [usize],
    pub(super) dtype: DType,
}

impl MoveCost<'_> {
    /// Members of a group.
    pub(super) fn members(&self) -> usize {
        self.ks.iter().product()
    }

    /// Members but one.
    pub(super) fn peers(&self) -> u64 {
        self.members() as u64 - 1
    }

    /// Elements of the box.
    pub(super) fn elements(&self) -> u64 {
        self.without(&[])
    }

    /// Product of the sizes of all dims but `skip`.
    pub(super) fn without(&self, skip: &[usize]) -> u64 {
        (0..self.sizes.len()).filter(|d| !skip.contains(d)).map(|d| self.sizes[d] as u64).product()
    }

    /// Length of the part of a dim that a member has.
    pub(super) fn part(&self, dim: usize, member: usize) -> u64 {
        nested_range(self.sizes[dim], self.ks, member).len() as u64
    }

    /// Elements of the largest member's part where a dim is split.
    pub(super) fn largest(&self, dim: usize) -> u64 {
        self.without(&[dim]) * self.part(dim, 0)
    }

    /// Elements of the smallest member's part where a dim is split.
    pub(super) fn smallest(&self, dim: usize) -> u64 {
        self.without(&[dim]) * self.part(dim, self.members() - 1)
    }

    /// Width of elements that are moved.
    pub(super) fn moved(&self) -> Width {
        Width::moved(self.dtype.size())
    }

    /// Width of elements that are reduced.
    pub(super) fn reduced(&self, op: ReduceOp) -> Width {
        Width::reduced(self.dtype.size(), self.dtype.partial_size(op))
    }

    /// The price of writing so many elements on the rank.
    pub(super) fn local(&self, elements: u64) -> Price {
        Price { start: 0, bytes: self.model.local(elements * self.dtype.size() as u64) }
    }

    /// The price of a call with so many peers, in which the busiest rank sends or receives so many elements.
    pub(super) fn direct(&self, algorithm: Algorithm, peers: u64, wire: u64) -> Price {
        let rate = self.model.rate(self.groups.link, algorithm);
        Price { start: rate.price(peers, 0), bytes: rate.bytes(wire * self.dtype.size() as u64) }
    }

    /// The price of a collective by the dearest of its groups: [`direct`](Self::direct), or by hosts, of a message of the box's
    /// elements of which a member has at most `part`.
    pub(super) fn collective(
        &self,
        (kind, algorithm): (FlowKind, Algorithm),
        (peers, wire): (u64, u64),
        part: u64,
        width: Width,
    ) -> Price {
        let n = self.elements();
        let (far, near) = (self.model.rate(self.groups.link, algorithm), self.model.rate(self.groups.near, algorithm));
        let by_hosts = self.groups.hierarchies.iter().map(|s| match s {
            Some(s) if s.takes(kind, n, width) => {
                let b = s.busiest(kind, n, part, width);
                let start = far.price(b.hops, 0).saturating_add(near.price(b.mates, 0));
                Price { start, bytes: near.bytes(b.near).saturating_add(far.bytes(b.far)) }
            }
            _ => self.direct(algorithm, peers, wire),
        });
        by_hosts.max_by_key(|p| p.total()).unwrap_or_else(|| self.direct(algorithm, peers, wire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_parts_are_those_of_one_axis_inside_the_other() {
        let sizes: Vec<usize> = (0..4).map(|i| nested_range(6, &[2, 2], i).len()).collect();
        assert_eq!(sizes, [2, 1, 2, 1]);
        for (len, ks) in [(7, vec![3]), (10, vec![2, 3]), (3, vec![2, 2, 2]), (0, vec![2, 2])] {
            let k: usize = ks.iter().product();
            let parts: Vec<_> = (0..k).map(|i| nested_range(len, &ks, i)).collect();
            assert!(parts.windows(2).all(|w| w[0].end == w[1].start) && parts[0].start == 0 && parts[k - 1].end == len);
            assert_eq!(parts[0].len(), parts.iter().map(|p| p.len()).max().unwrap());
            assert_eq!(parts[k - 1].len(), parts.iter().map(|p| p.len()).min().unwrap());
        }
    }

    #[test]
    fn a_model_of_any_numbers_has_prices() {
        use crate::boxing::{Layout, Planner};
        let most = Rate {
            latency_ps: u64::MAX,
            per_peer_ps: u64::MAX,
            per_kib_ps: u64::MAX,
            extra_beyond_kib: u64::MAX,
            extra_per_kib_ps: u64::MAX,
        };
        let link = Link { rates: [most; 7] };
        for ranks_per_host in [0, 2, usize::MAX] {
            let model = Model {
                local_ps: u64::MAX,
                local_exchange_ps: u64::MAX,
                per_kib_copied_ps: u64::MAX,
                extra_copied_beyond_kib: u64::MAX,
                extra_per_kib_copied_ps: u64::MAX,
                nvlink: link,
                same_host: link,
                network: link,
                hosts: ranks_per_host.into(),
                extra_memory: Some(0),
            };
            let mesh = Placement::of_world(Device::Cpu, 4).unwrap().mesh(&[("dp", 2), ("tp", 2)]).unwrap();
            let other = Placement::of_world(Device::Cpu, 4).unwrap();
            let layout = |p: &Placement, sbp: &str| Layout::new(p, sbp.parse::<crate::sbp::NdSbp>().unwrap());
            let planner = Planner::new(model);
            for (from, to) in [("[S(0), S(0)]", "[B, B]"), ("[P, S(0)]", "[S(1), B]"), ("[S(1), S(0)]", "[S(0), S(1)]")]
            {
                let plan = planner.plan(&[64, 48], oflow_kernels::DType::F32, &layout(&mesh, from), &layout(&mesh, to));
                assert!(plan.unwrap().cost_ps > 0);
                let plan =
                    planner.plan(&[64, 48], oflow_kernels::DType::F32, &layout(&mesh, from), &layout(&other, "[S(0)]"));
                assert!(plan.unwrap().cost_ps > 0);
            }
        }
    }

    #[test]
    fn links_end_where_hosts_do() {
        let mesh = Placement::of_world(Device::Cpu, 8).unwrap().mesh(&[("dp", 2), ("tp", 4)]).unwrap();
        let model = Model { hosts: 4.into(), ..Model::default() };
        assert_eq!((model.along(&mesh, 0), model.along(&mesh, 1)), (LinkKind::Network, LinkKind::SameHost));
        assert_eq!(Model::default().along(&mesh, 0), LinkKind::SameHost);
        assert_eq!(Model::default().along(&mesh.on(Device::Cuda), 0), LinkKind::NvLink);
    }
}
