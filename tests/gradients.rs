//! Gradients against finite differences, in f64 on one device: every differentiable op, then second derivatives through
//! the recorded backward pass.

use oflow::interpreter::Call;
use oflow::ops::{Grad, Op};
use oflow::prelude::*;
use oflow::testing::{self, Function, Sample};

/// Ops that are gradients themselves (or helpers of lowerings) and have no rule of their own yet: the second derivative of
/// what uses them is an error that says so.
const MISSING: &[&str] = &["layer_norm_grad", "rms_norm_grad", "attention_grad"];

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
    let (mut wrong, mut total, mut tested, mut missing) = (vec![], 0, 0, vec![]);
    for op in ops() {
        match op.grad {
            Grad::None => continue,
            Grad::Missing => {
                missing.push(op.name());
                let s = &float_samples(op)[0];
                let e = Function::new(Device::Cpu, op, s, 0).first().expect_err("an op without a rule has no gradient");
                assert!(e.contains(&format!("op '{}' has no gradient rule", op.name())), "{e}");
                continue;
            }
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
    println!("{tested} ops, {total} partial derivatives; without a rule: {missing:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut expected = MISSING.to_vec();
    expected.sort_unstable();
    missing.sort_unstable();
    assert_eq!(missing, expected);
}

#[test]
fn second_derivatives_equal_finite_differences_of_the_first() {
    // What goes through an op without a rule says so.
    let through_missing = ["layer_norm", "rms_norm", "attention"];
    let (mut wrong, mut total, mut tested) = (vec![], 0, 0);
    for op in ops() {
        if matches!(op.grad, Grad::None | Grad::Missing) || op.traits.hidden {
            continue;
        }
        if through_missing.contains(&op.name()) {
            let e = Function::new(Device::Cpu, op, &float_samples(op)[0], 0).second().expect_err(op.name());
            assert!(e.contains("has no gradient rule"), "{e}");
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

#[test]
fn a_gradient_through_a_statistic_is_an_error_and_not_left_out() {
    let statistics: Vec<_> = oflow::ops::all().into_iter().filter(|op| op.traits.statistics).collect();
    assert_eq!(statistics.iter().map(|op| op.name()).collect::<Vec<_>>(), ["layer_norm", "rms_norm", "attention"]);
    for op in statistics {
        let f = Function::new(Device::Cpu, op, &float_samples(op)[0], 0);
        let ins = f.tensors(&f.inputs, true).unwrap();
        let refs: Vec<Option<&Tensor>> = ins.iter().map(|t| t.as_ref()).collect();
        let (attrs, runtime) = f.sample.attributes(op).unwrap();
        let call = Call::new(op, &refs).attrs(attrs).runtime(runtime);
        let outs = call.run().unwrap();
        let e = outs[1].sum(()).unwrap().backward().unwrap_err();
        assert_eq!(e.message(), "output 1 is a statistic kept for backward; it has no gradient", "{}", op.name());
    }
}
