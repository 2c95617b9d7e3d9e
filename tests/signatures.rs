//! Every op × every declared signature × meshes × sizes, forward and backward, against the same call on one device. Each sample runs
//! on two ranks and on a third of the other meshes, others for each; with `OFLOW_CASES=all` on all of them.

mod common;

use common::{LARGE_MESHES, settle};
use oflow::testing::{self, Case, MESHES, run_cases, trials};
use std::collections::BTreeMap;

#[derive(Default)]
struct Count {
    signatures: usize,
    mixed: usize,
    backward: usize,
    unreached: usize,
}

#[test]
fn every_signature_of_every_op_gives_the_single_device_result() {
    testing::derive_all().unwrap();
    let ops: Vec<_> = oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && testing::computes(o)).collect();
    let mut wrong: Vec<String> = vec![];
    let mut all = vec![];
    for op in &ops {
        let found = trials(op, &mut wrong).unwrap();
        if found.is_empty() {
            wrong.push(format!("{} has no samples", op.name()));
        }
        all.extend(found);
    }
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let whole = std::env::var("OFLOW_CASES").is_ok_and(|v| v == "all");
    for (k, mesh) in MESHES.into_iter().chain(LARGE_MESHES).enumerate() {
        let large = LARGE_MESHES.contains(&mesh);
        let mut cases: Vec<Case> = vec![];
        let here = |i: usize| whole || mesh == [2] || (i + k).is_multiple_of(3);
        for (_, trial) in all.iter().enumerate().filter(|(i, t)| here(*i) && (!large || t.size == "as given")) {
            match trial.cases(mesh) {
                Ok(c) => cases.extend(c),
                Err(e) => wrong.push(format!("{} on {mesh:?}: {e}", trial.reference.what)),
            }
        }
        let start = std::time::Instant::now();
        for (case, result) in cases.iter().zip(run_cases(mesh, &cases)) {
            let n = counts.entry(case.reference.op.name().to_string()).or_default();
            match case.expect {
                Some(_) => n.signatures += 1,
                None => n.mixed += 1,
            }
            n.backward += usize::from(case.reference.backward);
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
