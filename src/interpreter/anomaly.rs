//! The search for the first NaN: under [`detect_anomaly`](crate::detect_anomaly) each call looks at what it has made.

use super::call::Call;
use super::dispatch::Outputs;
use super::read::local_bytes;
use super::receipts::in_backward;
use crate::context::{here, no_grad, undetected};
use crate::error::{Error, Result};
use crate::op;
use crate::ops::{AttrValue, Attrs};
use crate::tensor::{LocalTensor, Tensor};
use smallvec::smallvec;

/// An error if an output of the call has a NaN. Each rank looks at its own shard, so nothing is sent.
///
/// # Errors
/// The call, the output and its first NaN, and the inputs that have some already.
#[cold]
pub(super) fn look(call: &Call<'_>, outs: &Outputs) -> Result<()> {
    // What is called here is neither looked at nor recorded.
    let (_off, _unrecorded) = (undetected(), no_grad());
    for (o, out) in outs.iter().enumerate() {
        let Some((count, of)) = nans(out)? else { continue };
        let (mut before, mut other) = (vec![], "");
        for (i, input) in call.inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            // What was written in place is the output by now.
            if call.op.sig.mutates(i) || call.given.is_some_and(|g| std::ptr::eq(g, *input)) {
                other = "other ";
            } else if nans(input)?.is_some() {
                let name = call.op.sig.input_def(i).map_or("", |d| d.name.as_str());
                before.push(format!("input {i} `{name}`"));
            }
        }
        let name = call.op.sig.outputs.get(o).map_or(String::new(), |n| format!(" `{n}`"));
        let backward = if in_backward() { ", in backward" } else { "" };
        let shard = if out.is_global() { " in this rank's shard" } else { "" };
        let inputs = match before.is_empty() {
            true => format!("no {other}input has any"),
            false => format!("{} had some before", before.join(" and ")),
        };
        let why = format!("{count} of {of} elements of output {o}{name}{shard} are NaN{backward}; {inputs}");
        return Err(Error::value(why).help("the search for NaN is on: `oflow::detect_anomaly`"));
    }
    Ok(())
}

/// How many elements of a tensor are NaN, of how many, in this rank's shard; none where there is none, or no data.
fn nans(t: &Tensor) -> Result<Option<(i64, usize)>> {
    if !t.dtype().has_gradients() || t.is_meta() {
        return Ok(None);
    }
    let shard = |l: LocalTensor| if t.is_global() { l.into_shard() } else { l };
    let Some(shard) = t.data()?.map(shard).filter(|l| !l.dims().contains(&0)) else { return Ok(None) };
    let of = shard.dims().iter().product();
    let shard = Tensor::from_local(shard);
    let is_nan = Call::new(op!("isnan")?, &[Some(&shard)]).run1()?;
    let all: Attrs = smallvec![AttrValue::Ints(smallvec![]), false.into()];
    let count = Call::new(op!("sum")?, &[Some(&is_nan)]).attrs(all).run1()?;
    let Some(count) = count.data()? else { return Ok(None) };
    let bytes = local_bytes(&here(), &count)?;
    let count = bytes.try_into().map_or(0, i64::from_le_bytes);
    Ok((count > 0).then_some((count, of)))
}
