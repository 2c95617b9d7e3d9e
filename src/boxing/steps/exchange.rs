//! Any layout on any mesh → any other, by messages ([`crate::boxing::exchange`]).

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{MoveCost, Price};
use crate::boxing::exchange::{self, Own, volume};
use crate::boxing::rank_step::{Cell, Contribution, RankExchange, RankStep, Transfer};
use crate::boxing::sizes::count;
use crate::boxing::step::{Communication, Step, StepAt, start_in};
use crate::sbp::{Sbp, shard_box};
use oflow_kernels::Dims;

/// Any layout → any layout: each rank sends the intersections of its box with the receivers' boxes; P contributions
/// are reduced at the receiver, inner mesh axis first, in order of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Axes that are partial before and after, and stay so: the exchange runs within each of their coordinates.
    pub kept: AxisSet,
    /// Whether the device kind changes.
    pub device_copy: bool,
}

fn messages<'a>(at: &'a StepAt<'a>, own: &'a Own) -> exchange::Exchange<'a> {
    let (before, after) = (at.before, at.after);
    let ends = ((&before.placement, &before.sbp), (&after.placement, &after.sbp));
    exchange::Exchange::new(at.model, at.shape, ends.0, ends.1, own)
}

impl Step for Exchange {
    fn text(&self, names: &dyn Fn(AxisSet) -> String) -> String {
        let text = if self.device_copy { "exchange and copy to device" } else { "exchange" };
        if self.kept.is_empty() { text.into() } else { format!("{text} within {}", names(self.kept)) }
    }

    fn symbol(&self) -> &'static str {
        "X"
    }

    fn communication(&self) -> Communication {
        Communication::Messages { within: self.kept }
    }

    /// The messages count, and the elements of the rank that sends or receives the most; without messages the result is written once
    /// per contribution.
    fn price(&self, _at: &MoveCost<'_>) -> Option<Price> {
        None
    }

    fn contributions(&self, dims: &[usize], sbp: &[Sbp]) -> u64 {
        let reduced = |a: &usize| sbp[*a].is_partial() && !self.kept.contains(*a);
        (0..dims.len()).filter(reduced).map(|a| dims[a] as u64).product()
    }

    /// Elements that are sent and received, and the buffer in which they are reduced.
    fn scratch(&self, before: &[usize], after: &[usize], contributions: u64) -> u64 {
        let after = count(after);
        count(before) + after * contributions + if contributions > 1 { after } else { 0 }
    }

    fn program(&self, at: &StepAt<'_>, rank: usize) -> RankStep {
        let (before, after) = (at.before, at.after);
        let (sender, receiver) = (before.placement.position(rank), after.placement.position(rank));
        if sender.is_none() && receiver.is_none() {
            return RankStep::Idle;
        }
        let own = Own::new(&before.placement, &after.placement);
        let x = messages(at, &own);
        let mut out = RankExchange {
            sends: Vec::new(),
            receives: Vec::new(),
            size: None,
            identity: None,
            cells: Vec::new(),
            levels: x.levels(),
        };
        let have = sender.map(|p| shard_box(at.shape, &before.placement, &before.sbp, p));
        if let (Some(p), Some(have)) = (sender, &have) {
            x.sends(p, |to, b| {
                let rank = after.placement.ranks()[to];
                out.sends.push(Transfer { rank, offset: start_in(&b, have), size: b.size });
            });
        }
        if let Some(q) = receiver {
            let want = shard_box(at.shape, &after.placement, &after.sbp, q);
            out.identity = x.identity(q);
            x.pieces(q, |piece| {
                let contributions = piece
                    .holders
                    .iter()
                    .map(|h| match &have {
                        Some(have) if sender == Some(*h) => Contribution::Own(start_in(&piece.at, have)),
                        _ => {
                            let rank = before.placement.ranks()[*h];
                            let offset = Dims::new();
                            out.receives.push(Transfer { rank, offset, size: piece.at.size.clone() });
                            Contribution::Received(out.receives.len() - 1)
                        }
                    })
                    .collect();
                out.cells.push(Cell { offset: start_in(&piece.at, &want), size: piece.at.size, contributions });
            });
            out.size = Some(want.size);
        }
        RankStep::Exchange(out)
    }

    fn sent(&self, at: &StepAt<'_>, rank: usize) -> u64 {
        let Some(sender) = at.before.placement.position(rank) else { return 0 };
        let own = Own::new(&at.before.placement, &at.after.placement);
        let mut sum = 0;
        messages(at, &own).sends(sender, |_, b| sum += volume(&b));
        sum * at.dtype.size() as u64
    }

    fn sent_by_all(&self, at: &StepAt<'_>) -> u64 {
        let own = Own::new(&at.before.placement, &at.after.placement);
        messages(at, &own).volume().elements * at.dtype.size() as u64
    }
}
