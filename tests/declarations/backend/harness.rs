//! The op harness, on the other crate's device.

use super::{device, fenced};
use oflow::testing::{
    Case, Sample, check_device, differentiable, mixed_cases, reference, run_cases_on, signature_cases, variants,
};
use oflow_tests::{built_in_ops, cases, settle};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn the_backend_is_small() {
    let lines = include_str!("fenced.rs").lines().count();
    println!("a backend in {lines} lines");
    assert!(lines <= 150, "{lines} lines");
}

#[test]
fn every_op_gives_the_cpus_result() {
    let (mut wrong, mut total) = (vec![], 0);
    let before = fenced::KERNELS.load(Ordering::Relaxed);
    for op in built_in_ops() {
        for (i, s) in Sample::all(op).unwrap().iter().enumerate() {
            for (word, v) in variants(op, s) {
                let what = format!("{} sample {i} ({word})", op.name());
                // Sizes that the CPU refuses too are not tested.
                let Ok(plan) = reference(op, &what, &v, true, differentiable(op) && word != "small") else {
                    continue;
                };
                total += 1;
                let result = oflow::run_ranks(1, |_| Ok(check_device(device(), &plan)));
                wrong.extend(result.unwrap_or_else(|e| vec![Err(e.to_string())]).into_iter().filter_map(Result::err));
            }
        }
    }
    let ran = fenced::KERNELS.load(Ordering::Relaxed) - before;
    assert!(ran > total as u64, "{ran} kernels ran on the device for {total} cases");
    assert!(total > 0);
    settle("one device", total, &wrong);
}

/// One of three samples on each mesh; all with `OFLOW_CASES=all`.
#[test]
fn signatures_over_ranks_give_the_cpus_result() {
    let mut wrong: Vec<String> = vec![];
    let mut plans = vec![];
    for op in built_in_ops() {
        for (i, s) in Sample::all(op).unwrap().iter().enumerate() {
            let what = format!("{} sample {i}", op.name());
            match reference(op, &what, s, true, differentiable(op)) {
                Ok(p) => plans.push((Arc::new(p), s.clone())),
                Err(e) => wrong.push(format!("{what}: {e}")),
            }
        }
    }
    let mut total = 0;
    for mesh in [&[1][..], &[2], &[2, 2]] {
        let mut cases: Vec<Case> = vec![];
        let mut take = cases::one_in(3);
        for (plan, sample) in plans.iter().filter(|_| take()) {
            match signature_cases(plan, sample, mesh, if mesh.len() == 1 { usize::MAX } else { 3 }) {
                Ok(c) => cases.extend(c),
                Err(e) => wrong.push(format!("{} on {mesh:?}: {e}", plan.what)),
            }
            if mesh.iter().product::<usize>() > 1 {
                cases.extend(mixed_cases(plan, mesh, 1).unwrap());
            }
        }
        total += cases.len();
        wrong.extend(run_cases_on(device(), mesh, &cases).into_iter().filter_map(Result::err));
        println!("mesh {mesh:?}: {} cases, {} wrong so far", cases.len(), wrong.len());
    }
    assert!(total > 0);
    settle("over ranks", total, &wrong);
}
