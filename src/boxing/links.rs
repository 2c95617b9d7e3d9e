//! Kinds of links that the bytes of a plan cross. Worked out when somebody asks, never while a boxing runs.

use super::cost::LinkKind;
use super::moved::Moved;
use super::plan::BoxingPlan;
use super::rank_step::{RankCollective, RankStep};
use crate::placement::Device;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkKind::NvLink => "NVLink",
            LinkKind::SameHost => "same host",
            LinkKind::Network => "network",
        })
    }
}

impl BoxingPlan {
    /// The bytes of [`bytes_sent`](Self::bytes_sent) by the kind of link that they cross, under the plan's model. Kinds that
    /// carry nothing are left out. Exact, but for all-reduces of groups whose members stand in turn on hosts: there a
    /// transport may shift a few bytes, as it may between ranks.
    pub fn bytes_by_link(&self) -> BTreeMap<LinkKind, u64> {
        let mut links = BTreeMap::new();
        let total = self.bytes_sent();
        if total == 0 {
            return links;
        }
        let ranks = self.ranks();
        let hosts: BTreeSet<usize> = ranks.iter().map(|r| self.model.hosts.host(*r)).collect();
        if hosts.len() == 1 {
            links.insert(self.between(0, 0), total);
            return links;
        }
        for &to in &ranks {
            self.received(to, |from, bytes| {
                if bytes > 0 {
                    *links.entry(self.between(from, to)).or_insert(0) += bytes;
                }
            });
        }
        links
    }

    /// The ranks that take part.
    pub(super) fn ranks(&self) -> BTreeSet<usize> {
        self.src.placement.ranks().iter().chain(self.dst.placement.ranks()).copied().collect()
    }

    /// The link that bytes of the plan cross between two ranks.
    pub(super) fn between(&self, from: usize, to: usize) -> LinkKind {
        let (src, dst) = (self.src.placement.device(), self.dst.placement.device());
        // Between kinds of devices the bytes go through the memory of the hosts.
        self.model.between(if src == dst { src } else { Device::Cpu }, from, to)
    }

    /// Tells what a rank receives, message by message: sender and bytes.
    fn received(&self, rank: usize, mut tell: impl FnMut(usize, u64)) {
        let bytes = |size: &[usize]| (size.iter().product::<usize>() * self.dtype.size()) as u64;
        for step in self.make_program(rank).steps {
            if let Some(moved) = Moved::of(&step, self.dtype) {
                moved.received(&self.model, self.on_host(), &mut tell);
                continue;
            }
            match step {
                // Each member has a message of its own for each other.
                RankStep::Collective(RankCollective { members, joined: Some(parts), mut size, .. }) => {
                    for (i, r) in members.ranks.iter().enumerate().filter(|(i, _)| *i != members.me) {
                        size[parts.dim] = parts.ranges[i].len();
                        tell(*r, bytes(&size));
                    }
                }
                RankStep::Exchange(x) => x.receives.iter().for_each(|t| tell(t.rank, bytes(&t.size))),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxing::{Layout, Model, Planner};
    use crate::placement::Placement;
    use crate::sbp;
    use crate::sbp::NdSbp;
    use oflow_kernels::DType;

    #[test]
    fn every_byte_crosses_one_link() {
        let hosts_of_2 = Planner::new(Model { hosts: 2.into(), ..Default::default() });
        let one_host = Planner::default();
        let world = Placement::of_world(Device::Cpu, 4).unwrap();
        let mesh = world.mesh(&[("dp", 2), ("tp", 2)]).unwrap();
        let nd: Vec<NdSbp> = vec![
            sbp![B, B],
            sbp![S(0), B],
            sbp![B, S(1)],
            sbp![S(0), S(0)],
            sbp![S(1), S(0)],
            sbp![P, S(0)],
            sbp![S(1), P],
            sbp![P, P],
        ];
        let pair = Placement::new(Device::Cpu, &[1, 2], &[2]).unwrap();
        let alone = Placement::new(Device::Cpu, &[0], &[1]).unwrap();
        let mut layouts: Vec<Layout> = nd.iter().map(|s| Layout::new(&mesh, s.clone())).collect();
        layouts.extend([sbp![B], sbp![S(0)], sbp![P]].into_iter().map(|s| Layout::new(&pair, s)));
        layouts.push(Layout::new(&alone, sbp![B]));
        let mut mixed = 0;
        for (a, b) in layouts.iter().flat_map(|a| layouts.iter().map(move |b| (a, b))) {
            for shape in [[7usize, 5], [130, 33], [0, 3], [1, 2]] {
                let p = hosts_of_2.plan(&shape, DType::F32, a, b).unwrap();
                let links = p.bytes_by_link();
                assert_eq!(links.values().sum::<u64>(), p.bytes_sent(), "{p}");
                mixed += (links.len() == 2) as usize;
                let p = one_host.plan(&shape, DType::F32, a, b).unwrap();
                let links = p.bytes_by_link();
                assert_eq!(links.get(&LinkKind::SameHost).copied().unwrap_or(0), p.bytes_sent(), "{p}");
            }
        }
        assert!(mixed > 50, "{mixed}");
    }

    #[test]
    fn every_byte_of_a_large_group_crosses_one_link() {
        let world = Placement::of_world(Device::Cpu, 100).unwrap();
        let plane = world.mesh(&[("a", 4), ("b", 25)]).unwrap();
        for hosts in [100, 40] {
            let planner = Planner::new(Model { hosts: hosts.into(), ..Default::default() });
            for (mesh, from) in
                [(&world, sbp![P]), (&world, sbp![S(0)]), (&plane, sbp![P, P]), (&plane, sbp![S(0), S(0)])]
            {
                let to: NdSbp = if from.len() == 1 { sbp![B] } else { sbp![B, B] };
                for n in [0, 3, 70, 130, 5000] {
                    let ends = (Layout::new(mesh, from.clone()), Layout::new(mesh, to.clone()));
                    let p = planner.plan(&[n], DType::F32, &ends.0, &ends.1).unwrap();
                    assert_eq!(p.bytes_by_link().values().sum::<u64>(), p.bytes_sent(), "{p}");
                    let by_rank: u64 = (0..100).map(|r| p.bytes_sent_by(r)).sum();
                    assert_eq!(by_rank, p.bytes_sent(), "{p}");
                }
            }
        }
    }

    #[test]
    fn known_routes() {
        let planner = Planner::new(Model { hosts: 2.into(), ..Default::default() });
        let mesh = Placement::of_world(Device::Cpu, 4).unwrap().mesh(&[("dp", 2), ("tp", 2)]).unwrap();
        let links = |from: NdSbp, to: NdSbp| {
            let p = planner.plan(&[8, 8], DType::F32, &Layout::new(&mesh, from), &Layout::new(&mesh, to)).unwrap();
            p.bytes_by_link().into_iter().collect::<Vec<_>>()
        };
        // tp is within a host, dp between hosts: each of 4 ranks gets the 128 bytes of its one peer.
        assert_eq!(links(sbp![B, S(0)], sbp![B, B]), [(LinkKind::SameHost, 512)]);
        assert_eq!(links(sbp![S(0), B], sbp![B, B]), [(LinkKind::Network, 512)]);
        assert_eq!(links(sbp![B, B], sbp![S(0), B]), []);
    }
}
