//! Results in the memory of operands that end with the call.

use super::act::{Home, RootId, Slot, SlotId};
use super::lower::Lowered;
use oflow_kernels::view::is_contiguous;

impl Lowered {
    /// Lets outputs of kernels take the memory of values that end with them, where the kernel proposes it.
    pub(super) fn reuse(&mut self) {
        let mut taken: Vec<RootId> = (0..self.roots.len()).collect();
        for k in 0..self.acts.len() {
            let act = &mut self.acts[k];
            for r in act.reads.iter_mut().chain(&mut act.writes) {
                *r = taken[*r];
            }
            let act = &self.acts[k];
            let Some(kernel) = act.kernel() else { continue };
            let slot = |s: SlotId| &self.slots[s];
            let found = kernel.plan.inplace.iter().find_map(|(i, o)| {
                let (from, to) = (kernel.inputs.get(*i).copied()??, *kernel.outputs.get(*o)?);
                let (a, b) = (slot(from), slot(to));
                let (ra, rb) = (taken[a.root], b.root);
                let whole = |s: &Slot, r: RootId| {
                    s.offset == 0 && s.ty.bytes == self.roots[r].bytes && is_contiguous(&s.ty.ty.shape, &s.strides)
                };
                let once = act.reads.iter().chain(&act.writes).filter(|r| **r == ra).count() == 1;
                // An exchange may read it still.
                let free = self.roots[ra].held.is_none_or(|held| held < act.time);
                let ends = free && self.roots[ra].last == act.time && self.roots[rb].first == act.time;
                let arena = self.roots[ra].home == Home::Arena && self.roots[rb].home == Home::Arena;
                (arena && ends && once && ra != rb && a.ty.id() == b.ty.id() && whole(a, ra) && whole(b, rb))
                    .then_some((ra, rb))
            });
            if let Some((from, to)) = found {
                taken[to] = from;
                (self.roots[from].last, self.roots[from].held) = (self.roots[to].last, self.roots[to].held);
                self.roots[from].shared |= self.roots[to].shared;
                for w in &mut self.acts[k].writes {
                    *w = taken[*w];
                }
            }
        }
        for s in &mut self.slots {
            s.root = taken[s.root];
        }
        for (r, root) in self.roots.iter_mut().enumerate() {
            if taken[r] != r {
                // Nobody uses it.
                (root.bytes, root.first, root.last) = (0, 0, 0);
            }
        }
    }
}
