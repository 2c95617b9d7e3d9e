//! Collectives that know the hosts: see [`Chain`] for who does what.
//!
//! A chain goes over the message in chunks. In round t, for chunk t a member posts its values of each stripe to the stripe's
//! member on its host (A); who has a stripe takes these and the partial of the host before, and posts the new partial to the
//! host after (B) - on the last host it is the result, and goes to the members there and back. For chunk t - lag, who has a
//! stripe takes the result from the host after and posts it to its host and to the host before (C), and everyone takes the
//! results of the other stripes (D). The lag, the number of hosts that follow, fills the chain.
//!
//! **Deadlock freedom**: in a round a member waits for posts A of its host, then for B of the hosts before, then for C of the
//! hosts after (which for one chunk they post in a round no later, because their lag is shorter), then for C of its host; each
//! is in a round no later than its own, and among those of one round every wait is for a step that comes before in A, B by
//! host upwards, C by host downwards, D. Buffers are used again [`SLOTS`](super::transport::SLOTS) posts later, of which a
//! round has three, so that their readers have taken them in a round before.

use super::collectives::{ALIGN, Parts, Session};
use super::transport::{Part, Transport};
use super::{DType, Group, ReduceOp};
use crate::boxing::chain::{Chain, partial_bytes};
use crate::error::Result;
use oflow_kernels::cpu::accumulate::{accumulate, reduce_slices};
use oflow_kernels::cpu::lane::{Bf16Lane, F16Lane, Lane};
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of a stripe's chunk: it is read, folded and sent while it lies in a core's cache.
const CHUNK: usize = 128 << 10;

impl<T: Transport> Session<'_, '_, T> {
    /// An all-reduce over a chain of hosts.
    pub(super) fn chain(
        &self,
        group: &Group,
        chain: &Chain,
        buf: &mut [u8],
        scratch: &mut Vec<u8>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let (n, stripes, last) = (buf.len(), chain.stripes, chain.hosts.len() - 1);
        let (host, place) = chain.place(group.me);
        let run = chain.hosts[host].clone();
        let widening = partial_bytes(dtype, op) / dtype.size();
        let rank = |member: usize| group.ranks[member];
        let mates = || run.clone().filter(|m| *m != group.me);
        let same = |h: usize| rank(chain.hosts[h].start + place);
        let others = || (0..stripes).filter(|s| *s != place);
        // An outbox buffer holds one's values of all stripes, and the partial of one.
        let step = (self.link.capacity() / stripes.max(widening)).min(CHUNK) / ALIGN * ALIGN;
        let stripe = |chunk: usize, s: usize| -> Range<usize> {
            let at = chunk * step * stripes;
            let len = (step * stripes).min(n - at);
            let step = len.div_ceil(stripes).next_multiple_of(ALIGN);
            at + (s * step).min(len)..at + ((s + 1) * step).min(len)
        };
        let chunks = n.div_ceil(step * stripes);
        let lag = last - host;
        let take = |buf: &mut [u8], from: usize, to: Range<usize>| -> Result<()> {
            let piece = self.receive(from, n)?;
            self.fits(&piece, to.len(), from)?;
            buf[to].copy_from_slice(&piece);
            Ok(())
        };
        for round in 0..chunks + lag {
            if round < chunks {
                if others().next().is_some() {
                    self.post_stripes(buf, n, others().map(|s| (rank(run.start + s), stripe(round, s))))?;
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
                        self.fits(p, wide, same(host - 1))?;
                    }
                    for m in mates() {
                        let piece = self.receive(rank(m), n)?;
                        self.fits(&piece, mine.len(), rank(m))?;
                        pieces.push(piece);
                    }
                    let mut values: SmallVec<[&[u8]; 8]> = pieces.iter().map(|p| &**p).collect();
                    values.insert(place, &buf[mine.clone()]);
                    let out = if host == last { mine.len() } else { wide };
                    fold(&mut outbox[..wide], partial.as_deref(), &values, scratch, (dtype, op), host == last)?;
                    drop(values);
                    drop((pieces, partial));
                    let part = |reader| Part { reader, offset: 0, len: out, total: n as u64 };
                    let readers: Parts = if host == last {
                        buf[mine].copy_from_slice(&outbox[..out]);
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
                take(buf, same(host + 1), mine.clone())?;
                let back = (host > 0).then(|| same(host - 1));
                let readers: SmallVec<[usize; 8]> = mates().map(rank).chain(back).collect();
                if !readers.is_empty() {
                    let mut outbox = self.outbox()?;
                    outbox[..mine.len()].copy_from_slice(&buf[mine.clone()]);
                    let part = |&reader| Part { reader, offset: 0, len: mine.len(), total: n as u64 };
                    self.publish(outbox, &readers.iter().map(part).collect::<Parts>());
                }
            }
            for s in others() {
                take(buf, rank(run.start + s), stripe(chunk, s))?;
            }
        }
        Ok(())
    }

    /// Posts to each of some ranks a range of `bytes`.
    fn post_stripes(&self, bytes: &[u8], total: usize, to: impl Iterator<Item = (usize, Range<usize>)>) -> Result<()> {
        let mut outbox = self.outbox()?;
        let (mut parts, mut offset) = (Parts::new(), 0);
        for (reader, range) in to {
            let len = range.len();
            outbox[offset..offset + len].copy_from_slice(&bytes[range]);
            parts.push(Part { reader, offset, len, total: total as u64 });
            offset += len.next_multiple_of(ALIGN);
        }
        self.publish(outbox, &parts);
        Ok(())
    }
}

/// Combines a partial with values, in this order, at the start of `dst`: as a partial again, or as the result. Sums of halves
/// are in f32 until the result, as if all values were combined at once.
fn fold(
    dst: &mut [u8],
    partial: Option<&[u8]>,
    values: &[&[u8]],
    scratch: &mut Vec<u8>,
    (dtype, op): (DType, ReduceOp),
    whole: bool,
) -> Result<()> {
    if partial_bytes(dtype, op) == dtype.size() {
        let all: SmallVec<[&[u8]; 8]> = partial.into_iter().chain(values.iter().copied()).collect();
        return Ok(reduce_slices(dst, &all, dtype, op)?);
    }
    let mut rest = values;
    match partial {
        Some(p) => dst.copy_from_slice(p),
        None => {
            if let Some((first, others)) = values.split_first() {
                widen(dst, first, dtype);
                rest = others;
            }
        }
    }
    scratch.resize(dst.len().max(scratch.len()), 0);
    let room = dst.len();
    for value in rest {
        widen(&mut scratch[..room], value, dtype);
        accumulate(dst, &scratch[..room], DType::F32, op)?;
    }
    if whole {
        narrow(dst, dtype);
    }
    Ok(())
}

/// Halves as f32.
fn widen(dst: &mut [u8], src: &[u8], dtype: DType) {
    let (to, _) = dst.as_chunks_mut::<4>();
    let (from, _) = src.as_chunks::<2>();
    let pairs = to.iter_mut().zip(from);
    if dtype == DType::F16 {
        pairs.for_each(|(t, f)| *t = F16Lane(u16::from_ne_bytes(*f)).to_f32().to_ne_bytes());
    } else {
        pairs.for_each(|(t, f)| *t = Bf16Lane(u16::from_ne_bytes(*f)).to_f32().to_ne_bytes());
    }
}

/// f32 as halves, in the first half of the same place.
fn narrow(bytes: &mut [u8], dtype: DType) {
    for i in 0..bytes.len() / 4 {
        let wide = f32::from_ne_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        let half = if dtype == DType::F16 { F16Lane::from_f32(wide).0 } else { Bf16Lane::from_f32(wide).0 };
        bytes[2 * i..2 * i + 2].copy_from_slice(&half.to_ne_bytes());
    }
}
