//! Advice about the layout of a tensor that lives longer than the call, such as a weight: which one would make the call cheaper.
//!
//! The choice of a signature takes inputs as they lie. A weight that lies badly costs something in every step: its boxing, that of another
//! input or of the result, or computing the same on several ranks. Here the call is priced once more for each layout that differs on one mesh axis.

use super::{ChoiceInput, PS_PER_FLOP, choose, price};
use crate::error::Result;
use crate::ops::NdSignature;
use crate::sbp::{NdSbp, Sbp, check_layout, dual_of, shard_box};

/// Savings that are not worth a word, in picoseconds of a call.
const NOTABLE: u64 = 2_000_000;

/// A layout of an input in which the call would be cheaper. Costs are of one forward pass and its backward, in picoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct InputAdvice {
    /// Name of the input in the op's signature.
    pub name: String,
    /// The present layout.
    pub now: NdSbp,
    /// The better one.
    pub better: NdSbp,
    /// Cost of communication now.
    pub taken: u64,
    /// Cost of communication in the better layout.
    pub asked: u64,
    /// Share of the op's work that a rank would do, of what it does now: below 1 where ranks compute the same now.
    pub work: f64,
    /// Bytes that a rank would hold more, or less.
    pub more_bytes: i64,
}

/// Communication of a call and of its gradients, and the ranks that share its work.
struct Costs {
    boxing: u64,
    shares: u64,
}

/// Costs of a signature, with the boxing of each gradient to the layout of its input.
fn costs(c: &ChoiceInput<'_>, sig: &NdSignature) -> Result<Costs> {
    let candidate = price(c, sig.clone())?.cost;
    // The adjoint of that price ends where the input's gradient may be P; a weight's gradient has the weight's layout.
    let mut boxing = candidate.forward.saturating_add(candidate.lowering).saturating_add(candidate.way_out);
    let alone = |a: usize, but: Option<usize>| {
        let inputs = sig.inputs.iter().enumerate().filter(|(i, _)| Some(*i) != but && c.sbps[*i].is_some());
        inputs.map(|(_, n)| n).chain(&sig.outputs).all(|n| n[a].is_broadcast())
    };
    for (i, want) in sig.inputs.iter().enumerate() {
        let (Some(have), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { continue };
        if !c.needs_grad(i) || !t.dtype.is_float() {
            continue;
        }
        let gradient: NdSbp = (0..want.len())
            .map(|a| match want[a] {
                Sbp::Broadcast if alone(a, Some(i)) => Sbp::Broadcast,
                other => dual_of(other),
            })
            .collect();
        let home = have.map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
        boxing = boxing.saturating_add(c.cost(t, &gradient, &home)?);
    }
    let axes = c.placement.dims();
    let shares = (0..axes.len()).filter(|a| !alone(*a, None)).map(|a| axes[a] as u64).product();
    Ok(Costs { boxing, shares })
}

/// The best other layout of an input, if one saves something. Layouts that differ from the present one on one mesh axis are looked at.
///
/// # Errors
/// When the op cannot tell its signatures.
pub fn input_advice(c: &ChoiceInput<'_>, input: usize) -> Result<Option<InputAdvice>> {
    let (Some(have), Some(t)) = (&c.sbps[input], &c.infer.inputs[input]) else { return Ok(None) };
    let flops = c.op.flops.as_ref().map_or(Ok(c.outs.first().map_or(0, |t| t.len() as u64)), |f| f(c.infer))?;
    // Backward of a product is two products of its size.
    let flops = if c.needs_grad(input) { flops.saturating_mul(3) } else { flops };
    let total = |costs: &Costs| (flops / costs.shares.max(1)).saturating_mul(PS_PER_FLOP).saturating_add(costs.boxing);
    let now = costs(c, &choose(c)?.sig)?;
    let mut best: Option<(NdSbp, Costs)> = None;
    for axis in 0..have.len() {
        let others = (0..t.shape.len()).map(Sbp::Split).chain([Sbp::Broadcast]);
        for sbp in others.filter(|s| *s != have[axis]) {
            let other: NdSbp = (0..have.len()).map(|a| if a == axis { sbp } else { have[a] }).collect();
            if check_layout(&t.shape, t.dtype, c.placement, &other).is_err() {
                continue;
            }
            let mut sbps = c.sbps.to_vec();
            sbps[input] = Some(other.clone());
            let asking = ChoiceInput { sbps: &sbps, ..*c };
            // A layout that the op refuses is no advice.
            let Ok(sig) = choose(&asking).map(|choice| choice.sig) else { continue };
            let costs = costs(&asking, &sig)?;
            if best.as_ref().is_none_or(|(_, b)| total(&costs) < total(b)) {
                best = Some((other, costs));
            }
        }
    }
    let Some((better, costs)) = best else { return Ok(None) };
    if total(&costs).saturating_add(NOTABLE) > total(&now) {
        return Ok(None);
    }
    let elements = |sbp: &NdSbp| shard_box(&t.shape, c.placement, sbp, 0).size.iter().product::<usize>();
    let bytes = |sbp: &NdSbp| (elements(sbp) * t.dtype.size()) as i64;
    let name = c.op.sig.input_def(input).map_or(String::new(), |d| d.name.to_string());
    Ok(Some(InputAdvice {
        name,
        more_bytes: bytes(&better) - bytes(have),
        now: have.clone(),
        better,
        taken: now.boxing,
        asked: costs.boxing,
        work: now.shares as f64 / costs.shares.max(1) as f64,
    }))
}
