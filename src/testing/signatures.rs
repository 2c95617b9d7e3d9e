//! Cases of an op on a mesh: one for each signature that it declares, and random layouts.

use super::layout::Value;
use super::sample::Sample;
use super::{Case, Reference, mesh_of, mix, seed};
use crate::error::Result;
use crate::ops::{InferCtx, NdInferFn, NdSignature, Op, SbpHints, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, ReduceOp, Sbp, Signature, check_layout};
use std::sync::Arc;

/// The 1-d rows of a call, and its nd-signatures on a mesh: every product of rows that holds there, at most `limit`, spread
/// evenly.
///
/// # Errors
/// The op refuses the sample, or its sharding rule does not fit it.
pub fn nd_signatures(
    op: &Op,
    sample: &Sample,
    mesh: &Placement,
    limit: usize,
) -> Result<(Vec<Signature>, Vec<NdSignature>)> {
    let (attrs, runtime) = sample.attributes(op)?;
    let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
    let ins = sample.types();
    let ctx = InferCtx { op, inputs: &ins, attrs: &attrs, runtime_kinds: &kinds };
    let outs = op.infer(&ctx)?;
    let rows = match ins.is_empty() {
        false => op.signatures_1d(&ctx, &outs)?,
        // A source makes every layout.
        true => {
            let mut all: Vec<Sbp> = (0..outs[0].shape.len()).map(Sbp::Split).collect();
            all.extend([Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Partial(ReduceOp::Max)]);
            all.into_iter().map(|s| Signature::new(&[], &[s])).collect()
        }
    };
    let axes = mesh.axes() as u32;
    let total = rows.len().pow(axes);
    let mut found = vec![];
    for k in 0..total {
        let pick: Vec<&Signature> = (0..axes).map(|a| &rows[k / rows.len().pow(axes - 1 - a) % rows.len()]).collect();
        let mut lowering = None;
        if pick.iter().filter_map(|s| s.lowering).any(|l| *lowering.get_or_insert(l) != l) {
            continue;
        }
        let sig = NdSignature {
            inputs: (0..ins.len()).map(|i| pick.iter().map(|s| s.inputs[i]).collect()).collect(),
            outputs: (0..outs.len()).map(|o| pick.iter().map(|s| s.outputs[o]).collect()).collect(),
            lowering,
        };
        let valid = op.nd_valid.as_ref().is_none_or(|f| f(&ctx, mesh, &sig));
        let ok = |t: &TensorType, n: &NdSbp| check_layout(&t.shape, t.dtype, mesh, n).is_ok();
        if valid
            && ins.iter().zip(&sig.inputs).all(|(t, n)| t.as_ref().is_none_or(|t| ok(t, n)))
            && outs.iter().zip(&sig.outputs).all(|(t, n)| ok(t, n))
        {
            found.push(sig);
        }
    }
    if let Some(f) = &op.nd_infer {
        found = listed(f, &ctx, mesh)?;
    } else if let Some(f) = &op.nd_extra {
        found.extend(f(&ctx, mesh)?);
    }
    if found.len() > limit {
        let n = found.len();
        let start = seed(op.name()) as usize;
        found = (0..limit).map(|j| found[(j * n / limit + start % (n / limit).max(1)) % n].clone()).collect();
    }
    Ok((rows, found))
}

/// An op that lists its signatures by the layouts of a call is asked so often at most.
const ASKED: usize = 256;

/// Signatures that an op lists itself for inputs that lie as the signature takes them. The op is asked with whole inputs, and with the inputs
/// of each signature that it has listed so far.
fn listed(f: &NdInferFn, ctx: &InferCtx<'_>, mesh: &Placement) -> Result<Vec<NdSignature>> {
    let ask = |sbp: &dyn Fn(usize) -> NdSbp| {
        let inputs: Vec<_> = ctx.inputs.iter().enumerate().map(|(i, t)| t.as_ref().map(|_| sbp(i))).collect();
        f(ctx, mesh, &SbpHints { inputs: &inputs, output: None, keep: true })
    };
    let mut all = ask(&|_| NdSbp::broadcast(mesh.axes()))?;
    let (mut found, mut next) = (vec![], 0);
    while next < all.len().min(ASKED) {
        let sig = all[next].clone();
        let of_inputs = ask(&|i| sig.inputs.get(i).cloned().unwrap_or_default())?;
        if of_inputs.contains(&sig) {
            found.push(sig);
        }
        let new: Vec<NdSignature> = of_inputs.into_iter().filter(|s| !all.contains(s)).collect();
        all.extend(new);
        next += 1;
    }
    Ok(found)
}

/// One case per signature of the call on a mesh, at most `limit`.
///
/// # Errors
/// As [`nd_signatures`].
pub fn signature_cases(reference: &Arc<Reference>, sample: &Sample, mesh: &[usize], limit: usize) -> Result<Vec<Case>> {
    let (rows, sigs) = nd_signatures(reference.op, sample, &mesh_of(Device::Cpu, mesh)?, limit)?;
    let rows = Arc::new(rows);
    let case = |sig: NdSignature| {
        let both = reference.inputs.iter().zip(&sig.inputs);
        let mut sbps: Vec<Option<NdSbp>> = both.map(|(v, s)| v.as_ref().map(|_| s.clone())).collect();
        if sbps.is_empty() {
            sbps.extend(sig.outputs.first().map(|s| Some(s.clone())));
        }
        Case { reference: reference.clone(), sbps, expect: Some(sig), rows: rows.clone() }
    };
    Ok(sigs.into_iter().map(case).collect())
}

/// Cases of `count` random layouts of the inputs, which no signature need fit: the interpreter must box, and the value must stay.
/// None for an op that writes an input, because that is never boxed.
///
/// # Errors
/// The mesh has no ranks.
pub fn mixed_cases(reference: &Arc<Reference>, mesh: &[usize], count: usize) -> Result<Vec<Case>> {
    if reference.inputs.is_empty() || reference.op.writes_inputs() {
        return Ok(vec![]);
    }
    let place = mesh_of(Device::Cpu, mesh)?;
    let case = |k: usize| {
        let pick = |(i, v): (usize, &Option<Value>)| {
            let v = v.as_ref()?;
            let mut all: Vec<Sbp> = (0..v.ty.shape.len()).map(Sbp::Split).collect();
            all.push(Sbp::Broadcast);
            all.extend([ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min].map(Sbp::Partial));
            let one = |a: usize| {
                let r = mix(&[seed(&reference.what), k as u64, i as u64, a as u64, mesh.len() as u64]);
                all[r as usize % all.len()]
            };
            let nd: NdSbp = (0..place.axes()).map(one).collect();
            let fits = check_layout(&v.ty.shape, v.ty.dtype, &place, &nd).is_ok();
            Some(if fits { nd } else { NdSbp::broadcast(place.axes()) })
        };
        let sbps = reference.inputs.iter().enumerate().map(pick).collect();
        Case { reference: reference.clone(), sbps, expect: None, rows: Arc::default() }
    };
    Ok((0..count).map(case).collect())
}
