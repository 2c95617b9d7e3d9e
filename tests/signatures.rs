//! Every op × every declared signature × meshes × sizes, forward and backward, against the same call on one device.

mod common;

use common::check::differentiable;
use common::{
    Case, LARGE_MESHES, MESHES, Sample, local_outcome, mixed_cases, run_cases, settle, signature_cases, variants,
};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
struct Count {
    signatures: usize,
    mixed: usize,
    backward: usize,
    unreached: usize,
}

#[test]
fn every_signature_of_every_op_gives_the_single_device_result() {
    common::sample::derive_all();
    let ops: Vec<_> = oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && common::computes(o)).collect();
    let mut wrong: Vec<String> = vec![];
    let mut plans = vec![];
    for op in &ops {
        let samples = Sample::all(op);
        if samples.is_empty() {
            wrong.push(format!("{} has no samples", op.name()));
        }
        for (i, s) in samples.iter().enumerate() {
            for (word, v) in variants(op, s) {
                let what = format!("{} sample {i} ({word})", op.name());
                let backward = differentiable(op) && word != "small";
                match local_outcome(op, &what, &v, true, backward) {
                    Ok(p) => plans.push((Arc::new(p), v, word)),
                    // Some sizes an op refuses (a range without elements); the sample as given never.
                    Err(e) if word == "as given" => wrong.push(format!("{what}: {e}")),
                    Err(_) => {}
                }
            }
        }
    }
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for mesh in MESHES.into_iter().chain(LARGE_MESHES) {
        let large = LARGE_MESHES.contains(&mesh);
        let mut cases: Vec<Case> = vec![];
        for (plan, sample, word) in plans.iter().filter(|(_, _, word)| !large || *word == "as given") {
            let limit = match (mesh.len(), *word) {
                (1, _) => usize::MAX,
                (_, "as given") => 24,
                _ => 6,
            };
            match signature_cases(plan, sample, mesh, limit) {
                Ok(c) => cases.extend(c),
                Err(e) => wrong.push(format!("{} on {mesh:?}: {e}", plan.what)),
            }
            if mesh.iter().product::<usize>() > 1 {
                cases.extend(mixed_cases(plan, mesh, if *word == "as given" { 4 } else { 1 }));
            }
        }
        let start = std::time::Instant::now();
        for (case, result) in cases.iter().zip(run_cases(mesh, &cases)) {
            let n = counts.entry(case.plan.op.name().to_string()).or_default();
            match case.expect {
                Some(_) => n.signatures += 1,
                None => n.mixed += 1,
            }
            n.backward += usize::from(case.plan.backward);
            match result {
                Ok(reached) => n.unreached += usize::from(!reached),
                Err(e) => wrong.push(e),
            }
        }
        println!("mesh {mesh:?}: {} cases in {:.1?}", cases.len(), start.elapsed());
    }
    for (op, n) in &counts {
        let Count { signatures, mixed, backward, unreached } = n;
        println!("{op}: {signatures} signatures ({unreached} not chosen), {mixed} mixed, {backward} with gradients");
    }
    let total: usize = counts.values().map(|n| n.signatures + n.mixed).sum();
    println!("{} ops, {total} cases, {} wrong", counts.len(), wrong.len());
    wrong.extend(ops.iter().filter(|o| !counts.contains_key(o.name())).map(|o| format!("{} was not run", o.name())));
    settle("signatures", total, &wrong);
}
