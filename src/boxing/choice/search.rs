//! Best first: a beginning of a candidate (rows on the outer axes) or a candidate waits with a lower bound of its price and
//! is looked at closer when nothing else could be better. What is taken off the queue priced in full is the best: bounds
//! never exceed prices, so the rule's order (price, then P outputs, then declared order) holds for it against all others.
//!
//! A search looks at so many nodes at most. One that has not ended by then takes the best candidate that it knows, and says
//! what any costs at least.

use super::prices::Prices;
use super::space::{Leaf, Space};
use super::{ChoiceInput, Unproven};
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

/// Limit of what one search looks at: a node counts 1, a boxing that is priced [`PRICE`]. A count and no clock, so that
/// every rank ends at the same place. Calls of up to 4 inputs on up to 4 mesh axes and with up to 8 dims may take more.
fn most_looks(c: &ChoiceInput<'_>) -> u64 {
    let mut tensors = c.infer.inputs.iter().flatten().chain(c.outs);
    let small = c.sbps.len() <= 4 && c.placement.axes() <= 4 && tensors.all(|t| t.shape.len() <= 8);
    if small { 1 << 20 } else { 1 << 18 }
}

const PRICE: u64 = 64;

/// So many prices are asked for each boxing of the call before candidates are guessed.
const GUESS_AFTER: u64 = 8;

/// Result of a search: the choice, and whether it was proven the best.
pub(super) struct ChosenSignature {
    pub(super) sig: NdSignature,
    /// Price of the choice and the least that any candidate costs, where the search ended before these met.
    pub(super) unproven: Option<Unproven>,
}

impl ChosenSignature {
    fn proven(sig: Option<NdSignature>) -> Option<ChosenSignature> {
        sig.map(|sig| ChosenSignature { sig, unproven: None })
    }
}

/// The best candidate of the space, if there is one.
pub(super) fn best(c: &ChoiceInput<'_>, space: &Space) -> Result<Option<ChosenSignature>> {
    // Most calls find everything where it is to be: no candidate, or one, needs no price.
    match space.candidates_at_most() {
        0 => return Ok(None),
        1 => return Ok(ChosenSignature::proven(space.first().and_then(|only| space.signature(c, &only)))),
        _ => {}
    }
    let axes = c.placement.axes();
    let mut prices = Prices::new(c, space);
    let mut queue: BinaryHeap<Reverse<Node>> = BinaryHeap::new();
    // The best candidate so far: what must cost more need not wait.
    let mut limit: Option<(u64, u32, Leaf)> = None;
    let mut looked = 0;
    let mut guessed = false;
    // The next candidate is priced in full after so many prices.
    let mut price_whole = 1;
    let most_looks = most_looks(c);
    if !space.rows.is_empty() {
        queue.push(Reverse(Node { bound: 0, partials: 0, rows: Leaf::new(), stage: Stage::Beginning }));
    }
    for i in 0..space.listed().len() {
        let rows = Space::listed_leaf(i);
        let (bound, partials) = prices.of_beginning(&rows);
        queue.push(Reverse(Node { bound, partials, rows, stage: Stage::Candidate }));
    }
    while let Some(Reverse(mut node)) = queue.pop() {
        let spent = looked + prices.priced() * PRICE;
        if spent > most_looks && node.stage != Stage::Priced {
            return give_up(c, space, &mut prices, node, limit);
        }
        if !guessed && prices.priced() > GUESS_AFTER * prices.boxings() {
            // With a good price in hand it takes less to know that others are worse.
            guessed = true;
            for rows in guesses(c, space, &prices, &Leaf::new()) {
                limit = better(c, space, &mut prices, limit, rows)?;
            }
        }
        // As soon as one is known, prices need not be found that are above it.
        if node.stage == Stage::Candidate && prices.priced() >= price_whole && space.is_legal(c, &node.rows) {
            price_whole = 2 * prices.priced().max(prices.boxings());
            limit = better(c, space, &mut prices, limit, node.rows.clone())?;
        }
        match node.stage {
            Stage::Beginning => {
                for row in space.on_axis(node.rows.len()) {
                    if !space.is_first_of_twins(&node.rows, *row) {
                        continue;
                    }
                    let mut rows = node.rows.clone();
                    rows.push(*row);
                    if space.mixes_lowerings(&rows) {
                        continue;
                    }
                    looked += 1;
                    let (bound, partials) = prices.of_beginning(&rows);
                    if limit.as_ref().is_some_and(|l| bound > l.0) {
                        continue;
                    }
                    let stage = if rows.len() == axes { Stage::Candidate } else { Stage::Beginning };
                    queue.push(Reverse(Node { bound, partials, rows, stage }));
                }
            }
            Stage::Priced => return Ok(ChosenSignature::proven(space.signature(c, &node.rows))),
            Stage::Candidate if !space.is_legal(c, &node.rows) => {}
            Stage::Candidate => {
                // The only one that is left needs no price.
                let Some(Reverse(next)) = queue.peek() else {
                    return Ok(ChosenSignature::proven(space.signature(c, &node.rows)));
                };
                let is_best =
                    |bound: u64| (bound, node.partials, &node.rows) <= (next.bound, next.partials, &next.rows);
                let mut bound = prices.of_candidate(&node.rows);
                let mut priced = false;
                if is_best(bound) {
                    let most = limit.as_ref().map_or(u64::MAX, |l| l.0);
                    (bound, priced) = prices.of_parts(&node.rows, most, is_best)?;
                }
                if priced && let Some(lowering) = prices.lowering_of(&node.rows) {
                    priced = is_best(bound);
                    if priced {
                        bound = with_lowering(c, space, &prices, &node.rows, bound, lowering)?;
                    }
                }
                looked += 1;
                node.bound = bound;
                if priced {
                    node.stage = Stage::Priced;
                    let here = (bound, node.partials, node.rows.clone());
                    limit = Some(limit.map_or(here.clone(), |l| l.min(here)));
                }
                if limit.as_ref().is_none_or(|l| bound <= l.0) {
                    queue.push(Reverse(node));
                }
            }
        }
    }
    Ok(None)
}

/// The bound of a candidate whose parts are priced, with the price of its lowering in the place of the least one.
fn with_lowering(
    c: &ChoiceInput<'_>,
    space: &Space,
    prices: &Prices<'_>,
    rows: &Leaf,
    bound: u64,
    lowering: u8,
) -> Result<u64> {
    prices.count();
    Ok(match space.signature(c, rows) {
        Some(sig) => bound.saturating_add(price_lowering(c, &sig, lowering)? - LEAST_LOWERING),
        None => bound,
    })
}

/// Candidates that may be good: those in which an input stays as it is, or none, and each axis takes the row with the least
/// bound; and of `begin` the same.
fn guesses(c: &ChoiceInput<'_>, space: &Space, prices: &Prices<'_>, begin: &Leaf) -> Vec<Leaf> {
    let dive = |begin: &Leaf, stays: Option<usize>| -> Option<Leaf> {
        let mut rows = begin.clone();
        for axis in rows.len()..c.placement.axes() {
            let with = |row: u16| {
                let mut rows = rows.clone();
                rows.push(row);
                rows
            };
            let keeps = |row: u16| match stays.and_then(|i| Some((i, c.sbps[i].as_ref()?))) {
                Some((i, have)) => space.rows[row as usize].inputs[i] == have[axis],
                None => true,
            };
            let all = space.on_axis(axis).iter().filter(|r| keeps(**r)).map(|r| with(*r));
            let legal = all.filter(|rows| !space.mixes_lowerings(rows));
            rows = legal.min_by_key(|rows| prices.of_beginning(rows))?;
        }
        Some(rows)
    };
    let mut tries: Vec<Leaf> = Vec::new();
    if !space.rows.is_empty() {
        tries.extend((0..c.sbps.len()).filter_map(|i| dive(&Leaf::new(), Some(i))));
        tries.extend(dive(&Leaf::new(), None));
        tries.extend(if begin.is_empty() { None } else { dive(begin, None) });
    }
    tries.retain(|rows| space.is_legal(c, rows));
    tries
}

/// The better of the best candidate so far and another one.
fn better(
    c: &ChoiceInput<'_>,
    space: &Space,
    prices: &mut Prices<'_>,
    best: Option<(u64, u32, Leaf)>,
    rows: Leaf,
) -> Result<Option<(u64, u32, Leaf)>> {
    let most = best.as_ref().map_or(u64::MAX, |b| b.0);
    let (_, partials) = prices.of_beginning(&rows);
    let (mut price, priced) = prices.of_parts(&rows, most, |_| true)?;
    if !priced {
        return Ok(best);
    }
    if let Some(lowering) = prices.lowering_of(&rows) {
        price = with_lowering(c, space, prices, &rows, price, lowering)?;
    }
    let here = (price, partials, rows);
    Ok(Some(best.map_or(here.clone(), |b| b.min(here))))
}

/// The best of what is known when a search has looked at as much as it may: the best candidate so far, and some guesses.
/// `next` is what would be looked at next: nothing costs less than its bound.
fn give_up(
    c: &ChoiceInput<'_>,
    space: &Space,
    prices: &mut Prices<'_>,
    next: Node,
    mut best: Option<(u64, u32, Leaf)>,
) -> Result<Option<ChosenSignature>> {
    let mut tries = match next.stage {
        Stage::Beginning => guesses(c, space, prices, &next.rows),
        _ => guesses(c, space, prices, &Leaf::new()),
    };
    if next.stage == Stage::Candidate && space.is_legal(c, &next.rows) {
        tries.push(next.rows);
    }
    // Where all of these are refused, the first that is not will do.
    if tries.is_empty() && best.is_none() {
        let mut declared = std::iter::successors(space.first(), |leaf| space.after(leaf));
        tries.extend(declared.find(|rows| space.is_legal(c, rows)));
    }
    for rows in tries {
        best = better(c, space, prices, best, rows)?;
    }
    let Some((price, _, rows)) = best else { return Ok(None) };
    // Where they meet nothing is cheaper; but another of the same price may be before it in order.
    let unproven = Some(Unproven { price, least: next.bound.min(price) });
    Ok(space.signature(c, &rows).map(|sig| ChosenSignature { sig, unproven }))
}
