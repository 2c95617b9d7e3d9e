//! All-reduce along a chain of hosts.

use super::Stripes;
use super::fold::fold;
use crate::collectives::{ALIGN, Segments, Session};
use crate::transport::{Segment, Transport};
use crate::{DType, Group, ReduceOp};
use oflow_base::Result;
use oflow_base::host_hierarchy::{HostHierarchy, Width};
use smallvec::SmallVec;

/// Bytes of a stripe's chunk: it is read, folded and sent while it lies in a core's cache.
const CHUNK: usize = 128 << 10;

impl<T: Transport> Session<'_, '_, T> {
    /// An all-reduce over a chain of hosts.
    pub(crate) fn all_reduce_hierarchical(
        &self,
        group: &Group,
        hierarchy: &HostHierarchy,
        (send, recv): (&[u8], &mut [u8]),
        scratch: &mut Vec<u8>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let (n, stripes, last) = (send.len(), hierarchy.stripes(), hierarchy.hosts.len() - 1);
        let (host, place) = hierarchy.place(group.me);
        let run = hierarchy.hosts[host].clone();
        let widening = Width::reduced(dtype.size(), dtype.partial_size(op)).partial as usize / dtype.size();
        let rank = |member: usize| group.ranks[member];
        let mates = || run.clone().filter(|m| *m != group.me);
        let same = |h: usize| rank(hierarchy.hosts[h].start + place);
        let others = || (0..stripes).filter(|s| *s != place);
        // An outbox buffer holds one's values of all stripes, and the partial of one.
        let step = (self.link.capacity() / stripes.max(widening)).min(CHUNK) / ALIGN * ALIGN;
        let striped = Stripes { bytes: n, stripes, step };
        let stripe = |chunk: usize, s: usize| striped.of(chunk, s);
        let chunks = striped.chunks();
        let lag = last - host;
        for round in 0..chunks + lag {
            if round < chunks {
                if others().next().is_some() {
                    self.post_stripes(send, n, others().map(|s| (rank(run.start + s), stripe(round, s))))?;
                }
                if place < stripes {
                    let mine = stripe(round, place);
                    let wide = mine.len() * widening;
                    let mut outbox = self.outbox()?;
                    let mut pieces: SmallVec<[_; 8]> = SmallVec::new();
                    let partial = match host {
                        0 => None,
                        _ => Some(self.receive(same(host - 1), n)?),
                    };
                    if let Some(p) = &partial {
                        self.is_as_long(p.len(), wide, same(host - 1))?;
                    }
                    for m in mates() {
                        let piece = self.receive(rank(m), n)?;
                        self.is_as_long(piece.len(), mine.len(), rank(m))?;
                        pieces.push(piece);
                    }
                    let mut values: SmallVec<[&[u8]; 8]> = pieces.iter().map(|p| &**p).collect();
                    values.insert(place, &send[mine.clone()]);
                    let out = if host == last { mine.len() } else { wide };
                    fold(&mut outbox[..wide], partial.as_deref(), &values, scratch, (dtype, op), host == last)?;
                    drop(values);
                    drop((pieces, partial));
                    let part = |reader| Segment { reader, offset: 0, len: out, total: n as u64 };
                    let readers: Segments = if host == last {
                        recv[mine].copy_from_slice(&outbox[..out]);
                        mates().map(rank).chain([same(host - 1)]).map(part).collect()
                    } else {
                        [same(host + 1)].into_iter().map(part).collect()
                    };
                    self.publish(outbox, &readers);
                }
            }
            let Some(chunk) = round.checked_sub(lag).filter(|c| *c < chunks) else { continue };
            if place < stripes && host < last {
                let mine = stripe(chunk, place);
                self.fill_from(same(host + 1), &mut recv[mine.clone()], n)?;
                let back = (host > 0).then(|| same(host - 1));
                let readers: SmallVec<[usize; 8]> = mates().map(rank).chain(back).collect();
                if !readers.is_empty() {
                    let mut outbox = self.outbox()?;
                    outbox[..mine.len()].copy_from_slice(&recv[mine.clone()]);
                    let part = |&reader| Segment { reader, offset: 0, len: mine.len(), total: n as u64 };
                    self.publish(outbox, &readers.iter().map(part).collect::<Segments>());
                }
            }
            for s in others() {
                self.fill_from(rank(run.start + s), &mut recv[stripe(chunk, s)], n)?;
            }
        }
        Ok(())
    }
}
