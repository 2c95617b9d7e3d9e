//! Every op × every declared signature × meshes × sizes, forward and backward, against the same call on one device. Each sample runs
//! on two ranks, on a third of the other lines and a ninth of the meshes of several axes, others for each; with `OFLOW_CASES=all`
//! (`scripts/nightly.sh`) on all of them.

use oflow::testing::{Case, MESHES, SpecialTrial, run_cases, special_trials, trials};
use oflow_tests::{LARGE_MESHES, built_in_ops, settle};
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
    let ops = built_in_ops();
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
    let whole = oflow_tests::cases::whole();
    for (k, mesh) in MESHES.into_iter().chain(LARGE_MESHES).enumerate() {
        let large = LARGE_MESHES.contains(&mesh);
        let mut cases: Vec<Case> = vec![];
        let every = if mesh.len() == 1 { 9 } else { 25 };
        let here = |i: usize| whole || mesh == [2] || (i + k).is_multiple_of(every);
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

/// Infinities, NaN, zeros, numbers near zero and the ends of integers: every signature of every op, and layouts for which it must be
/// boxed. Each sample runs with one set of numbers on two ranks, and with others on a fifth of the other meshes; with
/// `OFLOW_CASES=all` with all sets on all of them.
#[test]
fn layouts_do_not_change_what_ops_make_of_special_numbers() {
    let (mut wrong, mut all): (Vec<String>, Vec<SpecialTrial>) = (vec![], vec![]);
    built_in_ops().into_iter().for_each(|op| all.extend(special_trials(op, &mut wrong).unwrap()));
    let whole = oflow_tests::cases::whole();
    let (mut total, mut backward) = (0, 0);
    for (k, mesh) in MESHES.into_iter().enumerate().skip(1) {
        let start = std::time::Instant::now();
        let here = |t: &SpecialTrial| {
            let turn = t.turn() + k;
            whole || (turn.is_multiple_of(3) && (mesh == [2] || (turn / 3).is_multiple_of(5)))
        };
        let mut cases: Vec<Case> = vec![];
        for trial in all.iter().filter(|t| here(t)) {
            cases.extend(trial.cases(mesh).unwrap());
        }
        backward += cases.iter().filter(|c| c.reference.backward).count();
        wrong.extend(run_cases(mesh, &cases).into_iter().filter_map(Result::err));
        total += cases.len();
        println!("mesh {mesh:?}: {} cases in {:.1?}", cases.len(), start.elapsed());
    }
    println!("{} samples, {total} cases, {backward} with gradients, {} wrong", all.len(), wrong.len());
    settle("special", total, &wrong);
}
