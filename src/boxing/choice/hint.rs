//! Advice where inputs that stay as they are make a result that is dear to reduce: row-parallel products, split embeddings.
//! The choice keeps what the program laid out; the hint tells what another layout of the result would cost.

use super::{ChoiceInput, cheapest, choose, price};
use crate::error::Result;
use crate::ops::NdSignature;
use crate::sbp::NdSbp;
use std::fmt;

/// Reductions that are cheaper are not worth a word, in picoseconds.
const NOTABLE: u64 = 10_000_000;

/// How many times less it must cost.
const FAR_LESS: u64 = 4;

/// A layout of output 0 that would cost far less than what the choice leaves to be reduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The nd-SBP to ask for with `with_sbp`.
    pub sbp: NdSbp,
    /// The inputs that would move, by name, and to what.
    pub moves: Vec<(String, NdSbp)>,
    /// Price of what is taken, in picoseconds: boxing, and the cheapest way out of P.
    pub taken: u64,
    /// Price of a call that asks for the layout.
    pub asked: u64,
}

/// The hint for a call that takes an assignment of its own choice, if there is one.
///
/// # Errors
/// When the op cannot tell its signatures.
pub fn hint(c: &ChoiceInput<'_>, taken: &NdSignature) -> Result<Option<Hint>> {
    let stays = c.sbps.iter().zip(&taken.inputs).all(|(have, want)| have.as_ref().is_none_or(|h| h == want));
    let partial = taken.outputs.first().is_some_and(NdSbp::has_partial);
    if !stays || !partial || taken.lowering.is_some() || c.request.is_some() || c.given_out.is_some() {
        return Ok(None);
    }
    let taken = price(c, taken.clone())?.cost.total();
    if taken < NOTABLE {
        return Ok(None);
    }
    let Some(best) = cheapest(c)? else { return Ok(None) };
    let sbp = &best.sig.outputs[0];
    if sbp.has_partial() {
        return Ok(None);
    }
    let asking = ChoiceInput { request: Some(sbp), ..*c };
    let sig = choose(&asking)?.sig;
    let asked = price(&asking, sig.clone())?.cost.total();
    if asked.saturating_mul(FAR_LESS) > taken {
        return Ok(None);
    }
    let name = |i: usize| c.op.sig.input_def(i).map_or(String::new(), |d| d.name.to_string());
    let both = c.sbps.iter().zip(&sig.inputs).enumerate();
    let moved = both.filter(|(_, (have, want))| have.as_ref().is_some_and(|h| h != *want));
    let moves = moved.map(|(i, (_, want))| (name(i), want.clone())).collect();
    Ok(Some(Hint { sbp: sbp.clone(), moves, taken, asked }))
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ps: u64| format!("{:.1} us", ps as f64 / 1e6);
        let moves: Vec<String> = self.moves.iter().map(|(name, sbp)| format!("{name} goes to {sbp}")).collect();
        write!(
            f,
            "to reduce the result costs {}; with_sbp(sbp!{}, || ...) costs {}: {}",
            us(self.taken),
            self.sbp,
            us(self.asked),
            if moves.is_empty() { "no input moves".to_string() } else { moves.join(", ") }
        )
    }
}
