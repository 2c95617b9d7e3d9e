//! Ops on a GPU beside the CPU: their samples as they are and with strides, their gradients, and signatures over ranks.

use crate::gpus::cuda;
use crate::settle;
use oflow::ops::{Grad, Op};
use oflow::prelude::*;
use oflow::testing::{
    Function, Sample, check_device, differentiable, float_samples, reference, run_cases_on, signature_cases, variants,
};
use std::sync::Arc;

/// All samples of these ops on `Device::Cuda`, alone and over two ranks, and the gradients of each first one against finite differences.
/// Nothing where there is neither a GPU nor what the emulator needs.
///
/// # Panics
/// A result is not the CPU's.
pub fn ops_on_gpu(ops: &[&'static Op]) {
    if !cuda() {
        return;
    }
    let (mut wrong, mut total, mut cases) = (vec![], 0, vec![]);
    for op in ops {
        for (i, s) in Sample::all(op).expect("samples").iter().enumerate() {
            for (word, v) in variants(op, s) {
                let what = format!("{} sample {i} ({word})", op.name());
                // Sizes that the CPU refuses too are not tested.
                let Ok(plan) = reference(op, &what, &v, false, differentiable(op) && word != "small") else { continue };
                total += 1;
                let result = oflow::run_ranks(1, |_| Ok(check_device(Device::Cuda, &plan)));
                let result = result.unwrap_or_else(|e| vec![Err(e.to_string())]);
                wrong.extend(result.into_iter().filter_map(Result::err));
                if word == "as given" {
                    match signature_cases(&Arc::new(plan), &v, &[2], 2) {
                        Ok(c) => cases.extend(c),
                        Err(e) => wrong.push(format!("{what}: {e}")),
                    }
                }
            }
        }
        if matches!(op.grad, Grad::None | Grad::Missing) {
            continue;
        }
        for (k, s) in float_samples(op).expect("samples").iter().enumerate().take(1) {
            let result = oflow::run_ranks(1, |_| Ok(Function::new(Device::Cuda, op, s, k).first()));
            match result.map_err(|e| e.to_string()).and_then(|mut r| r.remove(0)) {
                Ok(n) => total += n,
                Err(e) => wrong.push(format!("{} sample {k}: {e}", op.name())),
            }
        }
    }
    wrong.extend(run_cases_on(Device::Cuda, &[2], &cases).into_iter().filter_map(Result::err));
    settle("on a GPU", total + cases.len(), &wrong);
}
