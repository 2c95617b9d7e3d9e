//! Every op of the registry, in layouts taken at random: outputs, gradients, comm records and memory.

use super::{same, told};
use oflow::functional::{IntoTarget, grad_at};
use oflow::interpreter::{Call, Target};
use oflow::ops::{Op, TensorType};
use oflow::prelude::*;
use oflow::sbp::{Sbp, check_layout};
use oflow::testing::{Sample, derive_all, differentiable, differentiable_outputs, mix, seed, variants};
use oflow::{BackwardOptions, CallSite, Tensor};

/// A layout that a tensor can have.
fn layout(ty: &TensorType, mesh: &Placement, seed: u64) -> NdSbp {
    let entry = |word: u64| match word % 6 {
        0 | 1 => Sbp::Broadcast,
        2 => Sbp::PARTIAL_SUM,
        d => Sbp::Split((d as usize - 3) % ty.shape.len().max(1)),
    };
    (0..20)
        .map(|k| (0..mesh.axes()).map(|a| entry(mix(&[seed, k, a as u64]) >> 8)).collect::<NdSbp>())
        .find(|n| check_layout(&ty.shape, ty.dtype, mesh, n).is_ok())
        .unwrap_or_else(|| NdSbp::broadcast(mesh.axes()))
}

/// One call, with gradients where there are any.
fn one(op: &'static Op, sample: &Sample, mesh: &Placement, seed: u64) -> Result<Vec<(String, Tensor)>> {
    let (attrs, runtime) = sample.attributes(op)?;
    let grads = differentiable(op);
    let mut inputs: Vec<Option<Tensor>> = vec![];
    for (i, v) in sample.values(seed, true).iter().enumerate() {
        let Some(v) = v else {
            inputs.push(None);
            continue;
        };
        let sbp = layout(&v.ty, mesh, mix(&[seed, i as u64]));
        let t = distribute(&v.local(mesh.device())?, (mesh, sbp))?;
        let float = t.dtype().is_float();
        inputs.push(Some(t.requires_grad_(grads && float)?));
    }
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
    let out = sample.infer(op)?;
    let target =
        Target::Global(mesh.clone(), out.first().map_or(NdSbp::broadcast(mesh.axes()), |t| layout(t, mesh, seed)));
    let target = refs.is_empty().then_some(&target);
    let outs = Call::new(op, &refs).attrs(attrs).runtime(runtime).target(target).run()?;
    let mut kept: Vec<(String, Tensor)> = outs.iter().map(|t| ("output".into(), t.clone())).collect();
    let floats: Vec<Tensor> = differentiable_outputs(&outs).cloned().collect();
    let leaves: Vec<Tensor> = inputs.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
    if grads && !floats.is_empty() && !leaves.is_empty() {
        let dys =
            floats.iter().map(|t| Ok(Some(ones(t.shape(), (mesh, NdSbp::broadcast(mesh.axes())).dtype(t.dtype()))?)));
        let dys: Vec<Option<Tensor>> = dys.collect::<Result<_>>()?;
        let found = grad_at(&floats, &leaves, &dys, &BackwardOptions::default(), CallSite::here())?;
        kept.extend(found.into_iter().flatten().map(|t| ("gradient".into(), t)));
    }
    Ok(kept)
}

/// What all calls tell, one after another.
fn all(cases: &[(&'static Op, Sample, u64)]) -> Result<Vec<String>> {
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("a", 2), ("b", 2)])?;
    let mut lines = vec![];
    for (op, sample, seed) in cases {
        lines.push(format!("{} {sample:?}", op.name()));
        match one(op, sample, &mesh, *seed) {
            Ok(kept) => lines.extend(told(Device::Cpu, &kept)?),
            Err(e) if e.is_logical() => lines.push(e.to_string().replace("meta ", "")),
            Err(e) => return Err(e),
        }
    }
    Ok(lines)
}

/// One of three calls; all with `OFLOW_CASES=all`.
#[test]
fn every_op_tells_what_it_tells_with_data() {
    derive_all().unwrap();
    let (mut cases, mut take) = (vec![], oflow_tests::cases::one_in(3));
    // Without values there is no length of the results of some ops, nor of the gradient of one: `tests/tensors/global/dynamic_shape.rs`.
    let known = |op: &&'static Op| op.length.is_none() && op.name() != "masked_spread";
    for op in oflow::ops::all().into_iter().filter(known) {
        for sample in Sample::all(op).unwrap() {
            for (word, s) in variants(op, &sample).into_iter().filter(|_| take()) {
                let seed = seed(&format!("{} {word} {s:?}", op.name()));
                cases.push((op, s, seed));
            }
        }
    }
    assert!(cases.len() > 500, "{}", cases.len());
    let real = crate::real(4, |_| all(&cases));
    for (rank, real) in real.iter().enumerate() {
        let dry = oflow::dry_run(4, rank, |_| all(&cases)).unwrap();
        same(&format!("rank {rank}"), real, &dry);
    }
    println!("{} calls, {} lines", cases.len(), real[0].len());
}
