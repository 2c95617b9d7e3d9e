//! All-gather in which each part crosses to each other host once.

use crate::Group;
use crate::collectives::{ALIGN, Segments, Session, round_range, rounds};
use crate::transport::{Segment, Transport};
use oflow_base::Result;
use oflow_base::host_hierarchy::HostHierarchy;
use smallvec::SmallVec;

impl<T: Transport> Session<'_, '_, T> {
    /// An all-gather over hosts: `to` is where each member's part goes, `total` their bytes.
    pub(crate) fn all_gather_hierarchical(
        &self,
        group: &Group,
        hierarchy: &HostHierarchy,
        send: &[u8],
        to: &mut [&mut [u8]],
        total: usize,
    ) -> Result<()> {
        let me = group.me;
        let (host, _) = hierarchy.place(me);
        let rank = |member: usize| group.ranks[member];
        let mates = || hierarchy.hosts[host].clone().filter(|m| *m != me);
        let away = |keeper: usize| {
            let (at, _) = hierarchy.place(keeper);
            hierarchy.kept(keeper).filter(move |j| !hierarchy.hosts[at].contains(j))
        };
        // An outbox buffer holds a chunk of all parts that one hands on.
        let hands_on = |k: usize| if hierarchy.hosts[hierarchy.place(k).0].len() > 1 { away(k).count() } else { 0 };
        let most = (0..group.ranks.len()).map(hands_on).max().unwrap_or(0);
        let chunk = self.link.capacity() / most.max(1) / ALIGN * ALIGN;
        let lens: SmallVec<[usize; 8]> = to.iter().map(|t| t.len()).collect();
        let has = |j: usize, round: usize| round < rounds(lens[j], chunk);
        let last = lens.iter().map(|&n| rounds(n, chunk)).max().unwrap_or(0);
        let keepers = (0..hierarchy.hosts.len()).filter(|h| *h != host).map(|h| hierarchy.keeper(h, me));
        let readers: SmallVec<[usize; 8]> = mates().chain(keepers).map(rank).collect();
        let all = |readers: &[usize], len: usize, total: usize| -> Segments {
            readers.iter().map(|&reader| Segment { reader, offset: 0, len, total: total as u64 }).collect()
        };
        let host_readers: SmallVec<[usize; 8]> = mates().map(rank).collect();
        for round in 0..=last {
            if has(me, round) {
                let piece = &send[round_range(send.len(), chunk, round)];
                let mut outbox = self.outbox()?;
                outbox[..piece.len()].copy_from_slice(piece);
                self.publish(outbox, &all(&readers, piece.len(), send.len()));
            }
            let due = |keeper: usize| away(keeper).filter(|j| round > 0 && has(*j, round - 1));
            let of = |j: usize| round_range(lens[j], chunk, round - 1);
            if due(me).next().is_some() {
                let mut handed = if host_readers.is_empty() { None } else { Some((self.outbox()?, 0)) };
                for j in due(me) {
                    let part = &mut to[j][of(j)];
                    self.fill_from(rank(j), part, lens[j])?;
                    if let Some((outbox, len)) = &mut handed {
                        outbox[*len..*len + part.len()].copy_from_slice(part);
                        *len += part.len();
                    }
                }
                if let Some((outbox, len)) = handed {
                    self.publish(outbox, &all(&host_readers, len, total));
                }
            }
            for m in mates() {
                if has(m, round) {
                    self.fill_from(rank(m), &mut to[m][round_range(lens[m], chunk, round)], lens[m])?;
                }
                if due(m).next().is_some() {
                    let piece = self.receive(rank(m), total)?;
                    self.is_as_long(piece.len(), due(m).map(|j| of(j).len()).sum(), rank(m))?;
                    let mut at = 0;
                    for j in due(m) {
                        let part = &mut to[j][of(j)];
                        part.copy_from_slice(&piece[at..at + part.len()]);
                        at += part.len();
                    }
                }
            }
        }
        Ok(())
    }
}
