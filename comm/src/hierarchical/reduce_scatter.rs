//! Reduce-scatter along a chain of hosts.

use super::fold::fold;
use crate::collectives::{ALIGN, Segments, Session, round_range};
use crate::transport::{Segment, Transport};
use crate::{DType, Group, ReduceOp};
use oflow_base::Result;
use oflow_base::host_hierarchy::{HostHierarchy, Width};
use smallvec::SmallVec;

/// Parts of the message by the member at the other end.
type ByPeer = SmallVec<[(usize, SmallVec<[usize; 8]>); 8]>;

fn by_peer(parts: &[usize], peer: impl Fn(usize) -> usize) -> ByPeer {
    let mut all = ByPeer::new();
    for &j in parts {
        let p = peer(j);
        match all.iter_mut().find(|(q, _)| *q == p) {
            Some((_, list)) => list.push(j),
            None => all.push((p, SmallVec::from_slice(&[j]))),
        }
    }
    all
}

/// Bytes of a part's chunk: an outbox buffer holds one of each of so many parts. Small buffers leave too little for whole
/// cache lines.
fn chunk_of(capacity: usize, parts: usize) -> usize {
    let chunk = capacity / parts;
    chunk - chunk % if chunk < ALIGN { 16 } else { ALIGN }
}

impl<T: Transport> Session<'_, '_, T> {
    /// A reduce-scatter over a chain of hosts: member j's part of `send` has `counts[j]` bytes.
    pub(crate) fn reduce_scatter_hierarchical(
        &self,
        group: &Group,
        hierarchy: &HostHierarchy,
        send: &[u8],
        (recv, counts): (&mut [u8], &[usize]),
        scratch: &mut Vec<u8>,
        how: (DType, ReduceOp),
    ) -> Result<()> {
        let (n, me, last) = (send.len(), group.me, hierarchy.hosts.len() - 1);
        let (host, place) = hierarchy.place(me);
        let widening = Width::reduced(how.0.size(), how.0.partial_size(how.1)).partial as usize / how.0.size();
        let rank = |member: usize| group.ranks[member];
        let mates = || hierarchy.hosts[host].clone().filter(|m| *m != me);
        let starts: SmallVec<[usize; 8]> =
            counts.iter().scan(0, |at, c| Some(std::mem::replace(at, *at + c))).collect();
        let kept = |keeper: usize| hierarchy.kept(keeper);
        let mine: SmallVec<[usize; 8]> = kept(me).collect();
        // Whose partials one waits for, and to whom one's own go: on the last host they are results.
        let before = if host > 0 { by_peer(&mine, |j| hierarchy.keeper(host - 1, j)) } else { ByPeer::new() };
        let after = by_peer(&mine, |j| if host < last { hierarchy.keeper(host + 1, j) } else { j });
        let members = group.ranks.len();
        let most = (0..members).map(|k| kept(k).count()).max().unwrap_or(1);
        let chunk = chunk_of(self.link.capacity(), members.max(most * widening));
        let len = |j: usize, round: usize| round_range(counts[j], chunk, round).len();
        let range = |j: usize, round: usize| {
            let r = round_range(counts[j], chunk, round);
            starts[j] + r.start..starts[j] + r.end
        };
        let rounds = counts.iter().map(|c| c.div_ceil(chunk)).max().unwrap_or(0);
        let lag = last - host;
        for round in 0..rounds + lag {
            if round < rounds {
                self.post_kept(mates().map(|m| (rank(m), kept(m))), n, |j| &send[range(j, round)])?;
                let bytes: usize = mine.iter().map(|&j| len(j, round)).sum();
                if bytes > 0 {
                    let mut outbox = self.outbox()?;
                    let mut partials: SmallVec<[_; 8]> = SmallVec::new();
                    for (from, parts) in &before {
                        let wide = parts.iter().map(|&j| len(j, round)).sum::<usize>() * widening;
                        if wide > 0 {
                            let piece = self.receive(rank(*from), n)?;
                            self.is_as_long(piece.len(), wide, rank(*from))?;
                            partials.push((parts, piece));
                        }
                    }
                    let mut pieces: SmallVec<[_; 8]> = SmallVec::new();
                    for m in mates() {
                        let piece = self.receive(rank(m), n)?;
                        self.is_as_long(piece.len(), bytes, rank(m))?;
                        pieces.push(piece);
                    }
                    let sum = |parts: &[usize], j: usize| -> usize {
                        parts.iter().take_while(|i| **i != j).map(|&i| len(i, round)).sum()
                    };
                    let (mut readers, mut at) = (Segments::new(), 0);
                    for (to, parts) in &after {
                        let start = at;
                        for &j in parts {
                            let own = range(j, round);
                            let (from, wide) = (sum(&mine, j), own.len() * widening);
                            let partial =
                                partials.iter().find(|(parts, _)| parts.contains(&j)).map(|(parts, piece)| {
                                    let from = sum(parts, j) * widening;
                                    &piece[from..from + wide]
                                });
                            let mut values: SmallVec<[&[u8]; 8]> =
                                pieces.iter().map(|p| &p[from..from + own.len()]).collect();
                            values.insert(place, &send[own]);
                            fold(&mut outbox[at..at + wide], partial, &values, scratch, how, host == last)?;
                            at += wide;
                        }
                        // Results are as narrow as the values; there is one for each reader.
                        let len = if host == last { (at - start) / widening } else { at - start };
                        if *to == me {
                            recv[round_range(counts[me], chunk, round)].copy_from_slice(&outbox[start..start + len]);
                        } else if len > 0 {
                            readers.push(Segment { reader: rank(*to), offset: start, len, total: n as u64 });
                        }
                    }
                    self.publish(outbox, &readers);
                }
            }
            if let Some(done) = round.checked_sub(lag).filter(|_| host < last)
                && len(me, done) > 0
            {
                let to = &mut recv[round_range(counts[me], chunk, done)];
                self.fill_from(rank(hierarchy.keeper(last, me)), to, n)?;
            }
        }
        Ok(())
    }

    /// Posts to each of some ranks the parts that it keeps, one after another; no post to a rank without bytes.
    fn post_kept<'b>(
        &self,
        to: impl Iterator<Item = (usize, impl Iterator<Item = usize> + Clone)>,
        total: usize,
        bytes: impl Fn(usize) -> &'b [u8],
    ) -> Result<()> {
        let mut to = to.filter(|(_, parts)| parts.clone().any(|j| !bytes(j).is_empty())).peekable();
        if to.peek().is_none() {
            return Ok(());
        }
        let mut outbox = self.outbox()?;
        let (mut readers, mut at) = (Segments::new(), 0);
        for (reader, parts) in to {
            let start = at;
            for j in parts {
                let part = bytes(j);
                outbox[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            readers.push(Segment { reader, offset: start, len: at - start, total: total as u64 });
        }
        self.publish(outbox, &readers);
        Ok(())
    }
}
