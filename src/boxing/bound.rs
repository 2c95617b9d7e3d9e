//! What getting from one nd-SBP to another on one mesh costs at least, whatever the steps.
//!
//! Two arguments, each about the elements that ranks must receive:
//!
//! * **A corner.** The ranks of a *group* (all coordinates on the axes that are P in the destination) must together have
//!   the elements of their destination box. What the source boxes of the group do not hold, or hold only as contributions
//!   to be reduced with those of ranks outside the group, comes from outside. It is counted for the first and the last
//!   group of the mesh, whose boxes start and end with the tensor.
//! * **Reduction.** C contributions to an element that may stay P over at most Q ranks must be merged C − Q times, each
//!   time with one transfer; and when the first group has the value, each of the other F − 1 groups that is to have it
//!   still needs a transfer. So n elements cost n (C − Q + F − 1) transfers, and some rank at least its share of them.
//!   With F = C, Q = 1 this is the 2 (k − 1) / k n of an all-reduce.
//!
//! Every step costs at least the bytes of its busiest rank at the best rate of the model, and some latency.

use super::cost::{Algorithm, LinkKind, Model};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use smallvec::SmallVec;

/// What ranks must receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// Elements that some rank must receive at least.
    pub(super) elements: u64,
    /// Whether anything must cross between ranks.
    pub(super) communicates: bool,
    /// Whether contributions must be merged.
    pub(super) reduces: bool,
}

fn product(sizes: impl Iterator<Item = usize>) -> u64 {
    sizes.fold(1, |n, s| n * s as u64)
}

/// What getting from one nd-SBP to another on a mesh of these sizes needs.
pub(super) fn need(shape: &[usize], dims: &[usize], from: &[Sbp], to: &[Sbp]) -> Need {
    type Sizes = SmallVec<[usize; 8]>;
    let whole: Sizes = shape.into();
    // Boxes of the first and of the last group: destination, and what the group holds of the source at most.
    let (mut want, mut have) = ([whole.clone(), whole.clone()], [whole.clone(), whole]);
    // Dims that ranks of one group hold different parts of: an inner split of them is not one box of the group.
    let mut scattered = 0u64;
    let (mut group, mut ranks, mut holders) = (1u64, 1u64, 1u64);
    let (mut contributions, mut merged, mut outside) = (1u64, 1u64, false);
    for (a, k) in dims.iter().enumerate().filter(|(_, k)| **k > 1) {
        let n = *k as u64;
        ranks *= n;
        match to[a] {
            Sbp::Partial(_) => group *= n,
            Sbp::Broadcast => holders *= n,
            Sbp::Split(d) => {
                want[0][d] = want[0][d].div_ceil(*k);
                want[1][d] /= k;
            }
        }
        match from[a] {
            Sbp::Partial(_) => {
                contributions *= n;
                if from[a] != to[a] {
                    merged *= n;
                    outside |= !to[a].is_partial();
                }
            }
            Sbp::Broadcast => {}
            Sbp::Split(d) if to[a].is_partial() => scattered |= 1 << d,
            Sbp::Split(d) if scattered >> d & 1 == 1 => {}
            Sbp::Split(d) => {
                have[0][d] = have[0][d].div_ceil(*k);
                have[1][d] /= k;
            }
        }
    }
    let mut missing = 0;
    for (want, have) in want.iter().zip(&have) {
        let all = product(want.iter().copied());
        let held = if outside { 0 } else { product(want.iter().zip(have).map(|(w, h)| *w.min(h))) };
        missing = missing.max(all - held);
    }
    let mut elements = missing.div_ceil(group);
    if merged > 1 {
        let merges = contributions.saturating_sub(group).max(merged - 1);
        let transfers = product(shape.iter().copied()).saturating_mul(merges + holders - 1);
        elements = elements.max(transfers.div_ceil(ranks));
    }
    Need { elements, communicates: missing > 0 || merged > 1, reduces: merged > 1 }
}

/// The cheapest rates of a model for ranks of a device kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    local: u64,
    start: u64,
    per_kib: u64,
    /// Starting an exchange in which nothing is sent.
    pub(super) exchange_local: u64,
    /// Starting one in which something is.
    pub(super) exchange_start: u64,
    exchange_per_kib: u64,
}

impl Floor {
    pub(super) fn new(model: &Model, device: Device) -> Floor {
        let near = model.between(device, 0, 0);
        let links = if model.ranks_per_host > 0 { [near, LinkKind::Network] } else { [near, near] };
        let least = |of: &dyn Fn(LinkKind, Algorithm) -> u64, algorithms: &[Algorithm]| {
            let each = links.iter().flat_map(|l| algorithms.iter().map(|a| of(*l, *a)));
            each.min().unwrap_or(0)
        };
        let start = |l, a| model.rate(l, a).price(1, 0);
        let per_kib = |l, a| model.rate(l, a).per_kib_ps;
        Floor {
            local: model.local_ps.min(model.local_exchange_ps),
            start: least(&start, &Algorithm::ALL),
            per_kib: least(&per_kib, &Algorithm::ALL),
            exchange_local: model.local_exchange_ps,
            exchange_start: least(&start, &[Algorithm::Exchange]),
            exchange_per_kib: least(&per_kib, &[Algorithm::Exchange]),
        }
    }

    /// Of any steps.
    pub(super) fn steps(&self, need: Need, element: u64) -> u64 {
        if need.communicates { self.start + kib(need.elements * element, self.per_kib) } else { self.local }
    }

    /// Of one exchange.
    pub(super) fn exchange(&self, need: Need, element: u64) -> u64 {
        match need.communicates {
            true => self.exchange_start + kib(need.elements * element, self.exchange_per_kib),
            false => self.exchange_local,
        }
    }
}

fn kib(bytes: u64, ps: u64) -> u64 {
    ((u128::from(bytes) * u128::from(ps)) >> 10).min(u128::from(u64::MAX)) as u64
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
        assert_eq!(check(&[8, 8], &[2, 2], "[P, S(0)]", "[P, S(1)]"), (8, true));
    }
}
