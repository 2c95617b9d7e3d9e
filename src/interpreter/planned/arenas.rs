//! The arenas of a lowered program, and what each act allocates and waits for because of them.

use super::act::{Arena, Home, RootId};
use super::lower::Lowered;
use super::section::Section;
use crate::error::Result;
use crate::placement::Device;
use crate::plan::{Lifetime, Packing};
use smallvec::SmallVec;

/// Facts about a kernel that a run needs beside its work.
#[derive(Default)]
pub(super) struct Around {
    /// Memory that begins with it and is allocated in each run.
    pub(super) fresh: SmallVec<[RootId; 1]>,
    /// Memory that other streams may use, and whether it is written.
    pub(super) waits: SmallVec<[(RootId, bool); 2]>,
    /// Memory from outside that it reads only, and that it writes.
    pub(super) read: SmallVec<[RootId; 2]>,
    pub(super) written: SmallVec<[RootId; 2]>,
}

/// The arenas of a lowered program, which `place` packs: the n-th arena, given what lives in it.
pub(super) fn arenas(
    lowered: &Lowered,
    mut place: impl FnMut(usize, Device, &[Lifetime]) -> Result<Packing>,
) -> Result<Vec<Arena>> {
    let mut arenas: Vec<Arena> = vec![];
    for (r, root) in lowered.roots.iter().enumerate().filter(|(_, r)| r.home == Home::Arena && r.bytes > 0) {
        match arenas.iter_mut().find(|a| a.device == root.device) {
            Some(a) => a.roots.push(r),
            None => {
                arenas.push(Arena { device: root.device, packing: Packing::default(), memory: None, roots: vec![r] })
            }
        }
    }
    for (n, a) in arenas.iter_mut().enumerate() {
        a.packing = place(n, a.device, &lifetimes(lowered, &a.roots))?;
    }
    Ok(arenas)
}

/// Sizes and times of what lives in an arena.
pub(super) fn lifetimes(lowered: &Lowered, roots: &[RootId]) -> Vec<Lifetime> {
    let lifetime = |r: &RootId| {
        let r = &lowered.roots[*r];
        Lifetime { bytes: r.bytes, first: r.first, last: r.last }
    };
    roots.iter().map(lifetime).collect()
}

/// Facts that each act needs: what it has to allocate and to wait for.
pub(super) fn around(lowered: &Lowered, arenas: &[Arena]) -> Vec<Around> {
    let mut around: Vec<Around> = lowered.acts.iter().map(|_| Around::default()).collect();
    let root = |r: RootId| &lowered.roots[r];
    let mut begun = vec![false; lowered.roots.len()];
    let mut begins = vec![None; lowered.roots.len()];
    for section in &lowered.sections {
        if let Section::Acts(inside) = section {
            inside.fresh.iter().for_each(|r| begun[*r] = true);
        }
    }
    for (k, kernel) in lowered.acts.iter().enumerate() {
        let uses = kernel.reads.iter().map(|r| (*r, false)).chain(kernel.writes.iter().map(|w| (*w, true)));
        for (r, written) in uses {
            if !std::mem::replace(&mut begun[r], true) {
                begins[r] = Some(k);
                if root(r).home == Home::Fresh {
                    around[k].fresh.push(r);
                }
            }
            let outside = matches!(root(lowered.whole_of(r)).home, Home::Outside(_));
            if outside || root(r).shared {
                around[k].waits.push((r, written));
            }
            match (outside, written) {
                (true, true) if !around[k].written.contains(&r) => around[k].written.push(r),
                // What it writes itself it may read.
                (true, false) if !kernel.writes.contains(&r) => around[k].read.push(r),
                _ => {}
            }
        }
    }
    for a in arenas {
        let place = |i: usize| (a.packing.offsets[i], a.packing.offsets[i] + root(a.roots[i]).bytes);
        let shared = (0..a.roots.len()).filter(|i| root(a.roots[*i]).shared);
        for s in shared {
            let (low, high) = place(s);
            for other in (0..a.roots.len()).filter(|o| *o != s && place(*o).0 < high && low < place(*o).1) {
                for (first, users) in [(s, other), (other, s)] {
                    if let Some(k) = begins[a.roots[first]] {
                        around[k].waits.push((a.roots[users], true));
                    }
                }
            }
        }
    }
    around
}
