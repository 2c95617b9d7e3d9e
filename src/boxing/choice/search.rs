//! Best first: a beginning of a candidate (rows on the outer axes) or a candidate waits with a lower bound of its price and
//! is looked at closer when nothing else could be better. What is taken off the queue priced in full is the best: bounds
//! never exceed prices, so the rule's order (price, then P outputs, then declared order) holds for it against all others.

use super::ChoiceInput;
use super::prices::Prices;
use super::space::{Leaf, Space};
use crate::boxing::dry::{LEAST_LOWERING, price_lowering};
use crate::error::Result;
use crate::ops::NdSignature;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// In the order of the rule.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    bound: u64,
    partials: u32,
    rows: Leaf,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Rows of the outer axes.
    Beginning,
    /// Of all axes.
    Candidate,
    /// The bound is the price.
    Priced,
}

/// The best candidate of the space, if there is one.
pub(super) fn best(c: &ChoiceInput<'_>, space: &Space) -> Result<Option<NdSignature>> {
    let axes = c.placement.axes();
    let mut prices = Prices::new(c, space);
    let mut queue: BinaryHeap<Reverse<Node>> = BinaryHeap::new();
    // The price of the best candidate so far: what must cost more need not wait.
    let mut limit = u64::MAX;
    if !space.rows.is_empty() {
        queue.push(Reverse(Node { bound: 0, partials: 0, rows: Leaf::new(), stage: Stage::Beginning }));
    }
    for i in 0..space.listed().len() {
        let rows = Space::listed_leaf(i);
        let (bound, partials) = prices.of_beginning(&rows);
        queue.push(Reverse(Node { bound, partials, rows, stage: Stage::Candidate }));
    }
    while let Some(Reverse(mut node)) = queue.pop() {
        match node.stage {
            Stage::Beginning => {
                for row in space.on_axis(node.rows.len()) {
                    let mut rows = node.rows.clone();
                    rows.push(*row);
                    if space.mixes_lowerings(&rows) {
                        continue;
                    }
                    let (bound, partials) = prices.of_beginning(&rows);
                    if bound > limit {
                        continue;
                    }
                    let stage = if rows.len() == axes { Stage::Candidate } else { Stage::Beginning };
                    queue.push(Reverse(Node { bound, partials, rows, stage }));
                }
            }
            Stage::Priced => return Ok(space.signature(c, &node.rows)),
            Stage::Candidate if !space.is_legal(c, &node.rows) => {}
            Stage::Candidate => {
                // The only one that is left needs no price.
                let Some(Reverse(next)) = queue.peek() else { return Ok(space.signature(c, &node.rows)) };
                let is_best =
                    |bound: u64| (bound, node.partials, &node.rows) <= (next.bound, next.partials, &next.rows);
                let mut bound = prices.of_candidate(&node.rows);
                let mut priced = false;
                if is_best(bound) {
                    (bound, priced) = prices.of_parts(&node.rows, is_best)?;
                }
                if priced && let Some(lowering) = prices.lowering_of(&node.rows) {
                    priced = is_best(bound);
                    if priced && let Some(sig) = space.signature(c, &node.rows) {
                        bound = bound.saturating_add(price_lowering(c, &sig, lowering)? - LEAST_LOWERING);
                    }
                }
                node.bound = bound;
                if priced {
                    node.stage = Stage::Priced;
                    limit = limit.min(bound);
                }
                if bound <= limit {
                    queue.push(Reverse(node));
                }
            }
        }
    }
    Ok(None)
}
