//! Sharding rules of contractions as factor text: `"bmk, bkn -> bmn"` gives every S, B and P signature.
//!
//! A letter is a factor: a loop of the op. Splitting a factor over a mesh axis splits every tensor that carries it and
//! leaves the others whole; a factor that the output lacks is summed over, so the output becomes P(sum). The letters do not say
//! whether the op is linear: that one input may be P(sum) while the others are B is said for each such input
//! ([`FactorRule::linear_in`]). A product is linear in each operand alone ([`FactorRule::product`]). `...` stands for broadcast
//! batch dims, aligned at the right.

use super::{Sbp, Signature};
use crate::error::{Error, Result};

/// A parsed factor rule.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorRule {
    inputs: Vec<Term>,
    outputs: Vec<Term>,
    linear: Vec<Linear>,
}

/// An input in which the op is linear while the other inputs are whole.
#[derive(Clone, Debug, PartialEq)]
struct Linear {
    input: usize,
    /// The outputs that are linear in it; the others do not depend on it. None: all.
    outputs: Option<Vec<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    batch: bool,
    factors: Vec<char>,
}

/// Output dim `dim` of a broadcast result of rank `out_rank`, seen from an input of shape `shape`: the input's dim to split,
/// or none where the input repeats (missing dim or size 1 against a larger one) and stays B.
pub fn broadcast_dim(shape: &[usize], out: &[usize], dim: usize) -> Option<usize> {
    let lead = out.len().checked_sub(shape.len())?;
    let d = dim.checked_sub(lead)?;
    (shape[d] == out[dim]).then_some(d)
}

impl FactorRule {
    /// Reads `"...mk, ...kn -> ...mn"`.
    pub fn parse(text: &str) -> Result<FactorRule> {
        let (i, o) = text.split_once("->").ok_or_else(|| Error::parse(format!("factor rule '{text}' has no '->'")))?;
        let term = |t: &str| {
            let t = t.trim();
            let rest = t.strip_prefix("...");
            Term { batch: rest.is_some(), factors: rest.unwrap_or(t).chars().collect() }
        };
        let (inputs, outputs) = (i.split(',').map(term).collect(), o.split(',').map(term).collect());
        Ok(FactorRule { inputs, outputs, linear: vec![] })
    }

    /// Reads the rule of a product: its one output is linear in each input alone.
    pub fn product(text: &str) -> Result<FactorRule> {
        let rule = FactorRule::parse(text)?;
        let n = rule.inputs.len();
        Ok((0..n).fold(rule, |rule, i| rule.linear_in(i, None)))
    }

    /// Says that these outputs (none: all) are linear in an input while the others are whole. Outputs that are not named do not
    /// depend on the input.
    #[must_use]
    pub fn linear_in(mut self, input: usize, outputs: Option<&[usize]>) -> FactorRule {
        self.linear.push(Linear { input, outputs: outputs.map(<[usize]>::to_vec) });
        self
    }

    /// For a call of so many inputs, of which the last `repeating` of the rule stand for a list: the rule with as many.
    #[must_use]
    pub fn repeated(mut self, inputs: usize, repeating: usize) -> FactorRule {
        while self.inputs.len() < inputs && (1..=self.inputs.len()).contains(&repeating) {
            self.inputs.push(self.inputs[self.inputs.len() - repeating].clone());
        }
        self
    }

    /// How many inputs and outputs the rule has.
    pub fn counts(&self) -> (usize, usize) {
        (self.inputs.len(), self.outputs.len())
    }

    /// Dims of a tensor: whether batch dims come first, and the factors of the others.
    pub(crate) fn dims_of(&self, is_input: bool, i: usize) -> Option<(bool, &[char])> {
        let terms = if is_input { &self.inputs } else { &self.outputs };
        terms.get(i).map(|t| (t.batch, t.factors.as_slice()))
    }

    /// All signatures along one mesh axis for inputs (none: absent) and outputs of these shapes, which have as many dims as their factors at
    /// least, in order: batch dims, factors in order
    /// of first appearance, a P row for each input in which the op is linear. (All-B is added by the caller, last.)
    pub fn signatures(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Vec<Signature> {
        let mut found = Vec::new();
        // Batch dims, named by the first output that carries them.
        if let Some(k) = self.outputs.iter().position(|t| t.batch) {
            let out_batch = &outputs[k][..outputs[k].len() - self.outputs[k].factors.len()];
            for d in 0..out_batch.len() {
                let side = |t: &Term, shape: &[usize]| match t.batch {
                    true => broadcast_dim(&shape[..shape.len() - t.factors.len()], out_batch, d)
                        .map_or(Sbp::Broadcast, Sbp::Split),
                    false => Sbp::Broadcast,
                };
                found.push(Signature {
                    inputs: self
                        .inputs
                        .iter()
                        .zip(inputs)
                        .map(|(t, s)| s.map_or(Sbp::Broadcast, |s| side(t, s)))
                        .collect(),
                    outputs: self.outputs.iter().zip(outputs).map(|(t, s)| side(t, s)).collect(),
                    lowering: None,
                });
            }
        }
        let mut letters: Vec<char> = Vec::new();
        for c in self.outputs.iter().chain(&self.inputs).flat_map(|t| &t.factors) {
            if !letters.contains(c) {
                letters.push(*c);
            }
        }
        for c in letters {
            let side = |t: &Term, shape: &[usize], missing: Sbp| match t.factors.iter().position(|f| *f == c) {
                Some(p) => Sbp::Split(shape.len() - t.factors.len() + p),
                None => missing,
            };
            let input = |(t, s): (&Term, &Option<&[usize]>)| s.map_or(Sbp::Broadcast, |s| side(t, s, Sbp::Broadcast));
            found.push(Signature {
                inputs: self.inputs.iter().zip(inputs).map(input).collect(),
                outputs: self.outputs.iter().zip(outputs).map(|(t, s)| side(t, s, Sbp::PARTIAL_SUM)).collect(),
                lowering: None,
            });
        }
        for l in self.linear.iter().filter(|l| l.input < self.inputs.len()) {
            let mut s = Signature::broadcast(self.inputs.len(), self.outputs.len());
            s.inputs[l.input] = Sbp::PARTIAL_SUM;
            for (o, out) in s.outputs.iter_mut().enumerate() {
                if l.outputs.as_ref().is_none_or(|all| all.contains(&o)) {
                    *out = Sbp::PARTIAL_SUM;
                }
            }
            found.push(s);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rule: &str, ins: &[&[usize]], outs: &[&[usize]]) -> Vec<String> {
        let ins: Vec<_> = ins.iter().copied().map(Some).collect();
        FactorRule::product(rule).unwrap().signatures(&ins, outs).iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn matmul_2d_is_oneflows_table() {
        assert_eq!(
            text("...mk, ...kn -> ...mn", &[&[4, 5], &[5, 6]], &[&[4, 6]]),
            [
                "S(0), B -> S(0)",
                "B, S(1) -> S(1)",
                "S(1), S(0) -> P(sum)",
                "P(sum), B -> P(sum)",
                "B, P(sum) -> P(sum)"
            ]
        );
    }

    #[test]
    fn what_is_not_said_to_be_linear_takes_no_partial_sum() {
        let (ins, outs): (&[Option<&[usize]>], &[&[usize]]) = (&[Some(&[4]), Some(&[4])], &[&[4], &[]]);
        let rule = FactorRule::parse("m, m -> m,").unwrap();
        let text = |rule: FactorRule| rule.signatures(ins, outs).iter().map(|s| s.to_string()).collect::<Vec<_>>();
        assert_eq!(text(rule.clone()), ["S(0), S(0) -> S(0), P(sum)"]);
        let linear = rule.linear_in(0, None).linear_in(1, Some(&[1]));
        assert_eq!(text(linear)[1..], ["P(sum), B -> P(sum), P(sum)", "B, P(sum) -> B, P(sum)"]);
    }

    #[test]
    fn absent_inputs_are_whole_and_lists_repeat_their_last_factors() {
        let rule = FactorRule::parse("mk, n, kn -> mn").unwrap();
        let all = rule.signatures(&[Some(&[4, 5]), None, Some(&[5, 6])], &[&[4, 6]]);
        let all: Vec<String> = all.iter().map(|s| s.to_string()).collect();
        assert_eq!(all, ["S(0), B, B -> S(0)", "B, B, S(1) -> S(1)", "S(1), B, S(0) -> P(sum)"]);
        let list = FactorRule::parse("m, mn -> m").unwrap().repeated(4, 1);
        let shapes: [Option<&[usize]>; 4] = [Some(&[4]), Some(&[4, 2]), Some(&[4, 2]), Some(&[4, 2])];
        assert_eq!(list.signatures(&shapes, &[&[4]])[0].to_string(), "S(0), S(0), S(0), S(0) -> S(0)");
    }

    #[test]
    fn batch_dims_broadcast() {
        let s = text("...mk, ...kn -> ...mn", &[&[7, 1, 4, 5], &[3, 5, 6]], &[&[7, 3, 4, 6]]);
        assert_eq!(&s[..3], ["S(0), B -> S(0)", "B, S(0) -> S(1)", "S(2), B -> S(2)"]);
    }
}
