//! Checks of what kernels do with the memory of their inputs: they leave it as it is, read it through its strides, and give
//! the same result in each call.

use super::case::{half, run};
use super::exact::exact;
use super::layout::{Value, close, same};
use super::{Complaint, Trial, at_home, guarded, home, said};
use crate::error::{Error, Result};
use crate::interpreter::Target;
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// Calls the op once more, then on inputs with gaps between their rows; the first thing that is not as it must be.
///
/// # Errors
/// The call changes an input or gives another result than the first one.
pub(super) fn keeps_inputs(trial: &Trial) -> Result<(), Complaint> {
    let of = &trial.reference;
    if of.inputs.is_empty() || of.op.writes_inputs() {
        return Ok(());
    }
    let about = |e: Error| format!("{}: {}", of.what, said(&e));
    guarded(|| at_home(of.op, || called(trial, &Ok))).map_err(about)?;
    match of.op.traits.strided {
        // Others are given contiguous copies.
        false => Ok(()),
        true => {
            let about = |e: Error| format!("{} on strided inputs: {}", of.what, said(&e));
            guarded(|| at_home(of.op, || called(trial, &turned))).map_err(about)
        }
    }
}

/// The same tensor in memory whose dims lie in the other order.
fn turned(t: Tensor) -> Result<Tensor> {
    let order: Vec<i64> = (0..t.shape().len() as i64).rev().collect();
    t.permute(order.as_slice())?.copy()?.permute(order.as_slice())
}

fn called(trial: &Trial, placed: &dyn Fn(Tensor) -> Result<Tensor>) -> Result<()> {
    let of = &trial.reference;
    let inputs = of.inputs.iter().map(|v| v.as_ref().map(|v| placed(v.local(home(of.op))?)).transpose());
    let inputs: Vec<Option<Tensor>> = inputs.collect::<Result<_>>()?;
    let before: Vec<Option<Value>> = inputs.iter().map(read).collect::<Result<_>>()?;
    let results = run(of, &inputs, &Target::Local(home(of.op)), None)?.results;
    for (i, (before, after)) in before.iter().zip(&inputs).enumerate() {
        let (Some(before), Some(after)) = (before, read(after)?) else { continue };
        if let Some(k) = before.data.iter().zip(&after.data).position(|(a, b)| !same(*a, *b)) {
            let (from, to) = (before.data[k], after.data[k]);
            return Err(Error::registry(format!("the call writes its input {i}: element {k} was {from} and is {to}")));
        }
    }
    for (i, (have, want)) in results.iter().zip(&of.want.results).enumerate() {
        let have = Value::of(have)?;
        let dtype = if half(of) && want.ty.dtype.is_float() { DType::BF16 } else { want.ty.dtype };
        let differs = |(a, b): (&f64, &f64)| !close(dtype, exact(of), *a, *b, 1.0);
        if let Some(k) = have.data.iter().zip(&want.data).position(differs) {
            let (a, b) = (have.data[k], want.data[k]);
            return Err(Error::registry(format!("result {i}, element {k} is {a}, and was {b} in the first call")));
        }
    }
    Ok(())
}

fn read(t: &Option<Tensor>) -> Result<Option<Value>> {
    t.as_ref().map(Value::of).transpose()
}
