//! The boxing policy: refuses the plan of a call whose boxings a scope denies, and says which change of layouts avoids them.
//!
//! Decided when a boxing is about to run and not when its call is planned, so that a plan made outside a scope is judged
//! inside it (and the dispatch key needs no policy). Denying looks at plans alone: every rank decides alike, also those
//! outside the placement, and before any byte moves (I18). Local steps are no communication: a plan that moves no byte
//! between ranks is always allowed and never mentioned.

use super::boxing::{BoxingReason, check, denied};
use super::call::Call;
use super::comm_trace::in_backward;
use crate::boxing::{ChoiceInput, Layout, candidates, choose, plan as boxing_plan};
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::plan::{ExchangeLengthStep, For, Plan, Step, Where, with_choice};
use crate::sbp::NdSbp;

/// Refuses the boxings of a call where they are denied, whether or not a boxed copy is remembered: what a handle
/// remembers depends on what ran before.
pub(super) fn check_plan(call: &Call<'_>, plan: &Plan, placement: &Placement) -> Result<()> {
    if BoxingReason::Needed("").is_denied() { refuse_plan(call, plan, placement) } else { Ok(()) }
}

fn refuse_plan(call: &Call<'_>, plan: &Plan, placement: &Placement) -> Result<()> {
    let op = call.op.name();
    for b in plan.boxings().filter(|b| b.boxing.plan.bytes_sent() > 0) {
        let e = match b.purpose {
            For::Input(i) => {
                let name = call.op.sig.input_def(i).map_or("", |d| d.name.as_str());
                denied(&format!("input {i} `{name}` of {op}"), &b.boxing.plan)
            }
            For::Lowering => {
                let e = denied(&format!("a value inside {op}"), &b.boxing.plan);
                Error::denied(format!("{}; the ranks do {op} together", e.message()))
            }
            // The layout of the result is what the program asked for.
            For::Result => {
                check(BoxingReason::Asked(op), &b.boxing.plan)?;
                continue;
            }
        };
        return Err(e.help(way_out(call, plan, placement)));
    }
    for step in &plan.steps {
        if let Step::Halo(w) = step
            && w.bytes > 0
        {
            let name = call.op.sig.input_def(w.input).map_or("", |d| d.name.as_str());
            return Err(Error::denied(format!(
                "boxing is denied here: {op} reads elements of input {} `{name}` beside the shards: {} B between ranks",
                w.input, w.bytes
            ))
            .help(way_out(call, plan, placement)));
        }
    }
    check_lengths(call, plan)
}

/// Refuses what a result whose length depends on values sends: which bytes depends on values too, so any that it may send are
/// refused. Lengths are told, parts are exchanged.
fn check_lengths(call: &Call<'_>, plan: &Plan) -> Result<()> {
    for step in &plan.steps {
        let Step::ExchangeLength(ExchangeLengthStep { spread: Some((placement, sbp)), .. }) = step else { continue };
        let split = (0..sbp.len()).any(|a| !sbp[a].is_broadcast() && placement.dims()[a] > 1);
        if split {
            let op = call.op.name();
            return Err(Error::denied(format!(
                "boxing is denied here: {op} would tell all ranks how long the parts of its result are, and exchange them"
            ))
            .help(format!("give {op} inputs that are B, or end the scope before")));
        }
    }
    Ok(())
}

/// The cheapest change of a call's inputs after which it boxes nothing, as advice.
fn way_out(call: &Call<'_>, plan: &Plan, placement: &Placement) -> String {
    let request = plan.boxings().find(|b| b.purpose == For::Result).map(|b| &b.boxing.to.sbp);
    let place = Where::Global(placement);
    let changes = call.with_request(place, None, |r| with_choice(r, placement, request, cheapest_change));
    let Ok(Some(changes)) = changes else {
        return "every way to carry this out communicates; end the scope before".into();
    };
    let layouts: Vec<String> = changes.iter().map(|(i, s)| format!("input {i} {s}")).collect();
    let layouts = layouts.join(" and ");
    if in_backward() {
        return format!(
            "with {layouts} nothing would move; end the scope before `backward()`, or change layouts in forward"
        );
    }
    let boxed: Vec<String> = changes.iter().map(|(_, s)| format!("`to_global(sbp!{s})`")).collect();
    let once = if changes.len() == 1 { "on it" } else { "on them" };
    format!("make {layouts} where it is created, or call {} {once} once, outside the scope", boxed.join(" and "))
}

/// Candidates that are priced for a piece of advice; a call may have many thousands.
const PRICED: usize = 1024;

/// Other layouts of as few inputs as possible, of equally few those of the call that is cheapest from then on. None if
/// every candidate communicates.
fn cheapest_change(c: &ChoiceInput<'_>) -> Result<Option<Vec<(usize, NdSbp)>>> {
    let moves = |i: usize, to: &NdSbp| -> Result<bool> {
        let (Some(from), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { return Ok(false) };
        let at = |n: &NdSbp| Layout::new(c.placement, n.clone());
        Ok(from != to && boxing_plan(&t.shape, t.dtype, &at(from), &at(to))?.bytes_sent() > 0)
    };
    let mut best = None;
    for candidate in candidates(c)?.take(PRICED) {
        let candidate = candidate?;
        if candidate.cost.lowering > 0 {
            continue;
        }
        let (mut needed, mut all) = (vec![], vec![]);
        for (i, to) in candidate.sig.inputs.iter().enumerate() {
            if c.sbps[i].as_ref().is_some_and(|from| from != to) {
                all.push((i, to.clone()));
                if moves(i, to)? {
                    needed.push((i, to.clone()));
                }
            }
        }
        // Inputs that would only be sliced may stay as they are if the choice, asked again, agrees.
        let changes = if !needed.is_empty() && boxes_nothing(c, &needed)? { needed } else { all };
        if changes.is_empty() {
            continue;
        }
        let price = candidate.cost.way_out + candidate.cost.adjoint;
        let key = (changes.len(), price, candidate.cost.forward);
        if best.as_ref().is_none_or(|(k, _)| key < *k) {
            best = Some((key, changes));
        }
    }
    Ok(best.map(|(_, changes)| changes))
}

/// Whether the call, with these inputs in other layouts, is chosen to move nothing between ranks.
fn boxes_nothing(c: &ChoiceInput<'_>, changes: &[(usize, NdSbp)]) -> Result<bool> {
    let mut sbps = c.sbps.to_vec();
    for (i, to) in changes {
        sbps[*i] = Some(to.clone());
    }
    let chosen = choose(&ChoiceInput { sbps: &sbps, ..*c })?.sig;
    let at = |n: &NdSbp| Layout::new(c.placement, n.clone());
    for ((have, want), t) in sbps.iter().zip(&chosen.inputs).zip(c.infer.inputs) {
        let (Some(have), Some(t)) = (have, t) else { continue };
        if have != want && boxing_plan(&t.shape, t.dtype, &at(have), &at(want))?.bytes_sent() > 0 {
            return Ok(false);
        }
    }
    Ok(chosen.lowering.is_none())
}
