//! Broadcast from host to host.

use super::Stripes;
use crate::Group;
use crate::collectives::{ALIGN, Segments, Session};
use crate::transport::{Segment, Transport};
use oflow_base::Result;
use oflow_base::host_hierarchy::HostHierarchy;

impl<T: Transport> Session<'_, '_, T> {
    /// A broadcast over hosts from member `root`.
    pub(crate) fn broadcast_hierarchical(
        &self,
        group: &Group,
        hierarchy: &HostHierarchy,
        root: usize,
        buf: &mut [u8],
    ) -> Result<()> {
        let (n, stripes, hosts) = (buf.len(), hierarchy.stripes(), hierarchy.hosts.len());
        let (host, place) = hierarchy.place(group.me);
        let (home, _) = hierarchy.place(root);
        let rank = |member: usize| group.ranks[member];
        let mates = || hierarchy.hosts[host].clone().filter(|m| *m != group.me).map(rank);
        let same = |h: usize| rank(hierarchy.hosts[h % hosts].start + place);
        let after = (place < stripes && (host + 1) % hosts != home).then(|| same(host + 1));
        // The root's buffer holds a chunk of all stripes.
        let step = self.link.capacity() / stripes / ALIGN * ALIGN;
        let striped = Stripes { bytes: n, stripes, step };
        for chunk in 0..striped.chunks() {
            let (whole, mine) = (striped.chunk(chunk), striped.of(chunk, place));
            // What is posted, to one's host and, of it, the own stripe to the host after.
            let (posted, to_mates) = match () {
                () if group.me == root => (whole.clone(), true),
                () if host == home => {
                    self.fill_from(rank(root), &mut buf[whole.clone()], n)?;
                    (mine.clone(), false)
                }
                () if place < stripes => {
                    self.fill_from(same(host + hosts - 1), &mut buf[mine.clone()], n)?;
                    (mine.clone(), true)
                }
                () => (0..0, false),
            };
            let part = |reader, offset, len| Segment { reader, offset, len, total: n as u64 };
            let near = mates().filter(|_| to_mates).map(|m| part(m, 0, posted.len()));
            let far = after.map(|reader| part(reader, mine.start - posted.start, mine.len()));
            let parts: Segments = near.chain(far).collect();
            if !parts.is_empty() {
                let mut outbox = self.outbox()?;
                outbox[..posted.len()].copy_from_slice(&buf[posted]);
                self.publish(outbox, &parts);
            }
            if host != home {
                for s in (0..stripes).filter(|s| *s != place) {
                    self.fill_from(rank(hierarchy.hosts[host].start + s), &mut buf[striped.of(chunk, s)], n)?;
                }
            }
        }
        Ok(())
    }
}
