//! Every op on `Device::Cuda` against the CPU: alone, over ranks, and its gradients against finite differences.

use oflow::backend::kernels_of;
use oflow::ops::{Grad, Op};
use oflow::prelude::*;
use oflow::testing::{
    Case, Function, Sample, check_device, differentiable, float_samples, mixed_cases, reference, run_cases_on, seed,
    signature_cases, variants,
};
use oflow_tests::{built_in_ops, cases, selected, settle};
use std::sync::Arc;

/// Those that a GPU can run. Of those whose kernel is generated from an expression one of six on
/// the emulator, which compiles every text anew: that takes most of the time. All with `OFLOW_CASES=all`.
fn ops() -> Vec<&'static Op> {
    let whole = super::real() || selected() || cases::whole();
    let here = |o: &&Op| whole || o.expr.is_none() || seed(o.name()).is_multiple_of(6);
    built_in_ops().into_iter().filter(|o| !o.traits.cpu_only).filter(here).collect()
}

#[test]
fn every_op_has_a_kernel_or_says_that_it_has_none() {
    let has = |o: &Op| kernels_of(o).iter().any(|k| k.device == Device::Cuda);
    let (mut without, mut needless) = (vec![], vec![]);
    for op in built_in_ops() {
        match (has(op), op.traits.cpu_only) {
            (false, false) if !kernels_of(op).is_empty() => without.push(op.name()),
            (true, true) => needless.push(op.name()),
            _ => {}
        }
    }
    assert!(without.is_empty(), "no CUDA kernel and no reason: {}", without.join(", "));
    assert!(needless.is_empty(), "listed as CPU only, but with a kernel: {}", needless.join(", "));
}

/// Whether a sample of op number `k` runs daily: complex numbers only for every fourth op and as c64, because the emulator compiles every
/// text for them anew. `OFLOW_CASES=all` runs all, and so does a real GPU.
fn runs(k: usize, s: &Sample) -> bool {
    let whole = super::real() || cases::whole();
    let mut complex = s.inputs.iter().flatten().map(|s| s.dtype).filter(|d| d.is_complex()).peekable();
    whole || complex.peek().is_none() || (k.is_multiple_of(4) && complex.all(|d| d == DType::C64))
}

/// The first sample of each op and one of four of the others and of their variants. All with `OFLOW_CASES=all`.
#[test]
fn every_op_gives_the_cpus_result() {
    if !super::cuda() {
        return;
    }
    let whole = cases::whole();
    let (mut wrong, mut total, mut take) = (vec![], 0, cases::one_in(4));
    for (k, op) in ops().into_iter().enumerate() {
        let samples = Sample::all(op).unwrap();
        for (i, s) in samples.iter().enumerate().filter(|(_, s)| runs(k, s)) {
            let first = |word: &str| i == 0 && word == "as given";
            for (word, v) in variants(op, s).into_iter().filter(|(word, _)| first(word) || take()) {
                // Exact numbers or random ones, in turn.
                let even = total % 2 == 0;
                for exact in [true, false].into_iter().filter(|exact| whole || *exact == even) {
                    let what = format!("{} sample {i} ({word})", op.name());
                    let backward = differentiable(op) && word != "small";
                    // Sizes that the CPU refuses too are not tested.
                    let Ok(plan) = reference(op, &what, &v, exact, backward) else { continue };
                    total += 1;
                    let result = oflow::run_ranks(1, |_| Ok(check_device(Device::Cuda, &plan)));
                    wrong.extend(
                        result.unwrap_or_else(|e| vec![Err(e.to_string())]).into_iter().filter_map(Result::err),
                    );
                }
            }
        }
    }
    settle("one device", total, &wrong);
}

/// i16, u16 and u32 have kernels of their own on a GPU: each op that takes them in one of them, of few of the ops, because every
/// text is compiled anew. All of them with `OFLOW_CASES=all`.
#[test]
fn narrow_integers_give_the_cpus_result() {
    if !super::cuda() {
        return;
    }
    const NARROW: [DType; 3] = [DType::I16, DType::U16, DType::U32];
    let whole = cases::whole();
    let (mut wrong, mut total) = (vec![], 0);
    let expressions = |o: &&'static Op| !o.name().contains(".grad.");
    for (k, op) in ops().into_iter().filter(expressions).enumerate() {
        for (i, s) in Sample::all(op).unwrap().iter().enumerate().filter(|_| whole || k.is_multiple_of(18)) {
            let narrow = s.with_integer(NARROW[(k / 18 + i) % NARROW.len()]);
            if narrow == *s || narrow.infer(op).is_err() {
                continue;
            }
            let what = format!("{} sample {i} in {:?}", op.name(), narrow.types());
            let Ok(plan) = reference(op, &what, &narrow, true, false) else { continue };
            total += 1;
            let result = oflow::run_ranks(1, |_| Ok(check_device(Device::Cuda, &plan)));
            wrong.extend(result.unwrap_or_else(|e| vec![Err(e.to_string())]).into_iter().filter_map(Result::err));
        }
    }
    assert!(total > 3 || selected(), "{total}");
    settle("narrow integers", total, &wrong);
}

#[test]
fn every_gradient_equals_finite_differences() {
    if !super::cuda() {
        return;
    }
    let (mut wrong, mut total) = (vec![], 0);
    let whole = super::real() || cases::whole();
    // Gradients are calls of ops, whose values the test above compares: those of every fourth op, unless all are asked for.
    for (number, op) in ops().into_iter().enumerate().filter(|(number, _)| whole || number % 4 == 0) {
        if matches!(op.grad, Grad::None | Grad::Missing) || op.sig.inputs.iter().any(|i| i.mutable) {
            continue;
        }
        for (k, s) in float_samples(op).unwrap().iter().enumerate().filter(|(_, s)| runs(number, s)) {
            let result = oflow::run_ranks(1, |_| Ok(Function::new(Device::Cuda, op, s, k).first()));
            match result.map_err(|e| e.to_string()).and_then(|mut r| r.remove(0)) {
                Ok(n) => total += n,
                Err(e) => wrong.push(format!("{} sample {k}: {e}", op.name())),
            }
        }
    }
    settle("gradients", total, &wrong);
}

/// A test for each mesh, so that they compile at the same time.
const MESHES: [&[usize]; 4] = [&[1], &[2], &[4], &[2, 2]];

#[test]
fn signatures_on_one_rank_give_the_cpus_result() {
    signatures(0);
}

#[test]
fn signatures_over_two_ranks_give_the_cpus_result() {
    signatures(1);
}

#[test]
fn signatures_over_four_ranks_give_the_cpus_result() {
    signatures(2);
}

#[test]
fn signatures_over_two_by_two_ranks_give_the_cpus_result() {
    signatures(3);
}

/// Emulated kernels are slow to compile: one of two samples runs on one of the meshes, unless `OFLOW_CASES=all` asks for all.
fn signatures(k: usize) {
    if !super::cuda() {
        return;
    }
    let mesh = MESHES[k];
    let whole = super::real() || cases::whole();
    let (mut wrong, mut cases, mut number): (Vec<String>, Vec<Case>, usize) = (vec![], vec![], 0);
    for (n, op) in ops().into_iter().enumerate() {
        for (i, s) in Sample::all(op).unwrap().iter().enumerate().filter(|(_, s)| runs(n, s)) {
            for (word, v) in variants(op, s) {
                number += 1;
                if !whole && number % (2 * MESHES.len()) != k {
                    continue;
                }
                let what = format!("{} sample {i} ({word})", op.name());
                let Ok(plan) = reference(op, &what, &v, true, differentiable(op) && word != "small") else { continue };
                let plan = Arc::new(plan);
                let limit = match (mesh.len(), word, super::real()) {
                    (1, _, true) => usize::MAX,
                    (_, "as given", true) => 8,
                    (_, _, true) => 2,
                    // Emulated kernels are slow, and the host's run of this test takes every signature.
                    (_, "as given", false) => 3,
                    _ => 1,
                };
                match signature_cases(&plan, &v, mesh, limit) {
                    Ok(c) => cases.extend(c),
                    Err(e) => wrong.push(format!("{} on {mesh:?}: {e}", plan.what)),
                }
                if mesh.iter().product::<usize>() > 1 {
                    cases.extend(mixed_cases(&plan, mesh, usize::from(word == "as given")).unwrap());
                }
            }
        }
    }
    wrong.extend(run_cases_on(Device::Cuda, mesh, &cases).into_iter().filter_map(Result::err));
    settle(&format!("over {mesh:?}"), cases.len(), &wrong);
}

/// More elements than one piece of the kernels has, with a piece that is not full and one without anything chosen.
#[test]
fn what_is_chosen_over_many_pieces_is_the_cpus() {
    if !super::cuda() {
        return;
    }
    let n = 9_001;
    let run = |device: Device| {
        let ranks = oflow::run_ranks(1, |_| {
            let x: Vec<f32> = (0..n).map(|i| if i / 2048 == 2 { 0.0 } else { ((i * 7) % 5) as f32 }).collect();
            let x = from_vec(x, [n], device)?.requires_grad_(true)?;
            let y = x.masked_select(&x.detach().gt(1.5)?)?;
            y.mul(&y)?.sum(())?.backward()?;
            let at = x.detach().reshape([n as i64, 1])?.nonzero()?;
            let count = x.detach().count_nonzero(())?.item()?;
            let dx = x.grad().expect("gradient").to_f64_vec()?;
            Ok((y.detach().to_f64_vec()?, at.to_vec::<i64>()?, count, dx))
        });
        ranks.unwrap().remove(0)
    };
    let (gpu, cpu) = (run(Device::Cuda), run(Device::Cpu));
    assert!(cpu.0.len() > 3000 && cpu.1.len() as f64 == 2.0 * cpu.2);
    assert!(gpu == cpu, "{} {} {}", gpu.0.len(), gpu.1.len(), gpu.2);
}
