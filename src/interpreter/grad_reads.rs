//! Which tensors the gradient of a call reads.

use super::call::Call;
use crate::error::Result;
use crate::ops::{Grad, GradArg, Numbers, derived_args};

/// Which inputs and outputs the gradient rule reads, given which inputs want a gradient.
pub(super) fn grad_reads(call: &Call<'_>, needs: impl Fn(usize) -> bool) -> Result<(u64, u64)> {
    let (op, n) = (call.op, call.inputs.len());
    let (mut ins, mut outs) = (0u64, 0u64);
    match &op.grad {
        Grad::Missing | Grad::None => {}
        Grad::FromExpr => {
            let numbers = Numbers::of(op, call.inputs.iter().flatten().map(|t| t.dtype()), &call.runtime);
            for i in (0..n).filter(|i| needs(*i)) {
                let reads = derived_args(op, i, numbers)?;
                ins |= reads.inputs.iter().fold(0, |m, i| m | 1 << i);
                outs |= reads.output as u64;
            }
        }
        Grad::Wiring(wires) => {
            op.check_gradient_once()?;
            for w in wires.iter().filter(|w| needs(w.input)) {
                for a in &w.args {
                    match a {
                        GradArg::Input(i) => ins |= 1 << i,
                        GradArg::Output(i) => outs |= 1 << i,
                        GradArg::OutGrad(_) => {}
                    }
                }
            }
        }
        Grad::Rule { saves_inputs, saves_outputs, .. } => (ins, outs) = (*saves_inputs, *saves_outputs),
    }
    Ok((ins, outs))
}
