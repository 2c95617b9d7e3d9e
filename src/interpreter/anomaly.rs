//! The search for the first NaN: under [`detect_anomaly`](crate::detect_anomaly) each call looks at what it has made. And the search for
//! infinities that meet parts of a value: under `OFLOW_CHECK=1`.

use super::call::{Call, Outputs};
use super::comm_trace::in_backward;
use super::copy::local_bytes;
use crate::context::{here, no_grad, undetected};
use crate::error::{Error, Result};
use crate::op;
use crate::ops::{AttrValue, Attrs, Op};
use crate::plan::Plan;
use crate::tensor::{LocalTensor, Tensor};
use oflow_kernels::Scalar;
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

/// An error if the call has combined the parts of a P input with a number that is not finite, of another input or of the call. The
/// result may then differ from that on one device: the parts of 2 may be 3, -1 and 0, and 0 times infinity is NaN. Each rank
/// looks at its own shard.
///
/// # Errors
/// The call, the P input, and the input or number that is not finite.
#[cold]
pub(super) fn look_at_partials(call: &Call<'_>, plan: &Plan, boxed: &[Option<Tensor>]) -> Result<()> {
    let Some(signature) = &plan.chosen else { return Ok(()) };
    let is_partial = |i: usize| call.inputs[i].is_some() && signature.inputs.get(i).is_some_and(|n| n.has_partial());
    let name = |i: usize| call.op.sig.input_def(i).map_or("", |d| d.name.as_str());
    // What an op adds does not multiply.
    let added = &call.op.addends;
    let Some(p) = (0..call.inputs.len()).find(|i| is_partial(*i) && !added.contains(i)) else { return Ok(()) };
    let (_off, _unrecorded) = (undetected(), no_grad());
    let mut met = None;
    for (i, input) in call.inputs.iter().enumerate() {
        let Some(t) = boxed.get(i).and_then(Option::as_ref).or(*input) else { continue };
        if !is_partial(i) && !added.contains(&i) && !call.op.sig.mutates(i) {
            let finite = counted(t, op!("isfinite")?)?;
            if let Some((finite, of)) = finite.filter(|(finite, of)| *finite < *of as i64) {
                let count = of as i64 - finite;
                met = Some(format!("{count} of {of} elements of input {i} `{}` in this rank's shard are", name(i)));
            }
        }
    }
    let is_finite = |s: &Scalar| matches!(s.to_complex(), (re, im) if re.is_finite() && im.is_finite());
    let number = call.runtime.iter().position(|s| !is_finite(s));
    let met = met.or_else(|| Some(format!("the number `{}` is", call.op.sig.runtime.get(number?)?.name)));
    let Some(met) = met else { return Ok(()) };
    let why = format!("input {p} `{}` is {}, and {met} not finite", name(p), signature.inputs[p]);
    Err(Error::value(why).help(
        "an infinity times each part of a value does not give the parts of the product; box the input first: \
         `to_global((&placement, sbp![B]))`. OFLOW_CHECK=1 looks for this",
    ))
}

/// How many elements of a tensor are NaN, of how many, in this rank's shard; none where there is none, or no data.
fn nans(t: &Tensor) -> Result<Option<(i64, usize)>> {
    Ok(counted(t, op!("isnan")?)?.filter(|(count, _)| *count > 0))
}

/// How many elements of a float tensor an op finds true, of how many, in this rank's shard; none where there is none, or no data.
fn counted(t: &Tensor, found: &'static Op) -> Result<Option<(i64, usize)>> {
    if !t.dtype().has_gradients() || t.is_meta() {
        return Ok(None);
    }
    let shard = |l: LocalTensor| if t.is_global() { l.into_shard() } else { l };
    let Some(shard) = t.data()?.map(shard).filter(|l| !l.dims().contains(&0)) else { return Ok(None) };
    let of = shard.dims().iter().product();
    let shard = Tensor::from_local(shard);
    let found_true = Call::new(found, &[Some(&shard)]).run1()?;
    let all: Attrs = smallvec![AttrValue::Ints(smallvec![]), false.into()];
    let count = Call::new(op!("sum")?, &[Some(&found_true)]).attrs(all).run1()?;
    let Some(count) = count.data()? else { return Ok(None) };
    let bytes = local_bytes(&here(), &count)?;
    let count = bytes.try_into().map_or(0, i64::from_le_bytes);
    Ok(Some((count, of)))
}
