//! Gradients against finite differences, in f64 on one device: every differentiable op, then second derivatives through
//! the recorded backward pass.

use oflow::ops::{Grad, Op};
use oflow::prelude::*;
use oflow::testing::{self, Function, Sample};

fn float_samples(op: &'static Op) -> Vec<Sample> {
    testing::float_samples(op).unwrap()
}

/// All ops with a value to differentiate.
fn ops() -> Vec<&'static Op> {
    testing::derive_all().unwrap();
    let value = |o: &&Op| o.domain == "oflow" && testing::computes(o) && !o.sig.inputs.iter().any(|i| i.mutable);
    oflow::ops::all().into_iter().filter(value).collect()
}

#[test]
fn every_gradient_equals_finite_differences() {
    let (mut wrong, mut total, mut tested) = (vec![], 0, 0);
    for op in ops() {
        match op.grad {
            Grad::None => continue,
            Grad::Missing => wrong.push(format!("op '{}' has no gradient rule", op.name())),
            _ => {}
        }
        tested += 1;
        for (k, s) in float_samples(op).iter().enumerate() {
            match Function::new(Device::Cpu, op, s, k).first() {
                Ok(n) => total += n,
                Err(e) => wrong.push(format!("sample {k}: {e}")),
            }
        }
    }
    println!("{tested} ops, {total} partial derivatives");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn second_derivatives_equal_finite_differences_of_the_first() {
    let (mut wrong, mut total, mut tested) = (vec![], 0, 0);
    for op in ops() {
        if matches!(op.grad, Grad::None) || op.traits.hidden {
            continue;
        }
        tested += 1;
        for (k, s) in float_samples(op).iter().enumerate() {
            match Function::new(Device::Cpu, op, s, k).second() {
                Ok(n) => total += n,
                Err(e) => wrong.push(format!("sample {k}: {e}")),
            }
        }
    }
    println!("{tested} ops, {total} second derivatives");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
