//! Factor rules of ops: in which inputs an op is linear, and the check that all dims of one factor have the same size.

use super::def::{OpDef, SbpRule};
use super::infer::InferCtx;
use crate::error::{Error, Result};
use crate::sbp::FactorRule;
use oflow_kernels::Dims;
use smol_str::SmolStr;

/// The size of a factor, and the dim where it first occurred: whether that is of an input, number of the input or output, dim.
type Seen = (char, usize, (bool, usize, usize));

impl OpDef {
    /// Parses a factor text to a rule, and adds the inputs in which the op is linear.
    ///
    /// # Errors
    /// If the text cannot be parsed, or if the op is declared as linear in an input or output that it does not have.
    pub(super) fn factor_rule(&self, text: &str) -> Result<FactorRule> {
        let mut rule = FactorRule::parse(text)?;
        for (input, outputs) in &self.linear {
            let known = |names: &[SmolStr]| names.join(", ");
            let inputs: Vec<SmolStr> = self.sig.inputs.iter().map(|i| i.name.clone()).collect();
            let no = |what: &str, name: &str, has: String| {
                Error::registry(format!("it is linear in {what} '{name}', but it has {has}"))
            };
            let i = self.sig.input(input).ok_or_else(|| no("input", input, known(&inputs)))?;
            let place = |o: &SmolStr| {
                let at = self.sig.outputs.iter().position(|n| n == o);
                at.ok_or_else(|| no("output", o, known(&self.sig.outputs)))
            };
            let outputs = outputs.as_ref().map(|all| all.iter().map(place).collect::<Result<Vec<_>>>()).transpose()?;
            rule = rule.linear_in(i, outputs.as_deref());
        }
        Ok(rule)
    }

    /// Checks that all dims of one factor have the same size, and that batch dims broadcast. Kernels rely on it for their bounds.
    ///
    /// # Errors
    /// A shape error if an input does not fit; a registry error if an output does not, because then the declaration is wrong.
    pub(super) fn check_factor_sizes(&self, ctx: &InferCtx<'_>, outs: &[Dims]) -> Result<()> {
        let SbpRule::Factors(text) = &self.sbp else { return Ok(()) };
        let rule = self.factor_rule(text)?.repeated(ctx.inputs.len(), self.sig.repeating());
        let inputs = ctx.inputs.iter().enumerate().filter_map(|(i, t)| Some((true, i, t.as_ref()?.shape.as_slice())));
        // If the length of the output depends on values, it is not known yet, and outputs are not checked.
        let known = if self.length.is_some() { 0 } else { outs.len() };
        let outputs = outs[..known].iter().enumerate().map(|(o, s)| (false, o, s.as_slice()));
        let declared = || format!("the op declares the factors {text}");
        let wrong = |is_input: bool, what: String, help: String| match is_input {
            true => Error::shape(what).help(help),
            false => Error::registry(format!("{} declares the factors {text}, but {what}", self.sig.name))
                .help("its shape rule gives another size, or it has none and the output is like the first input"),
        };
        let (mut seen, mut batch): (Vec<Seen>, Vec<usize>) = (vec![], vec![]);
        for (is_input, i, shape) in inputs.chain(outputs) {
            let Some((has_batch, factors)) = rule.dims_of(is_input, i) else { continue };
            let name = self.part(is_input, i);
            let fits = if has_batch { shape.len() >= factors.len() } else { shape.len() == factors.len() };
            if !fits {
                let least = if has_batch { "at least " } else { "" };
                let what = format!("{name} has the shape {shape:?}: {least}{} dims are needed", factors.len());
                return Err(wrong(is_input, what, declared()));
            }
            let lead = shape.len() - factors.len();
            for (d, (factor, size)) in factors.iter().zip(&shape[lead..]).enumerate() {
                match seen.iter().find(|(f, ..)| f == factor) {
                    None => seen.push((*factor, *size, (is_input, i, lead + d))),
                    Some((_, first, _)) if first == size => {}
                    Some((_, first, (from_input, n, dim))) => {
                        let other = self.part(*from_input, *n);
                        let what = format!(
                            "{name} has the shape {shape:?}, but dim {} of it must be {first}, as dim {dim} of {other}",
                            lead + d
                        );
                        return Err(wrong(is_input, what, format!("{}: dims of one letter have one size", declared())));
                    }
                }
            }
            // Batch dims, from the last to the first. A batch dim of an output has the broadcast size of the inputs.
            for (d, size) in shape[..lead].iter().rev().enumerate() {
                match batch.get_mut(d) {
                    None => batch.push(*size),
                    Some(other) if *other == 1 && is_input => *other = *size,
                    Some(other) if *other == *size || (*size == 1 && is_input) => {}
                    Some(other) => {
                        let what =
                            format!("{name} has the shape {shape:?}, whose batch dims do not broadcast with {other}");
                        return Err(wrong(is_input, what, declared()));
                    }
                }
            }
        }
        Ok(())
    }
}
