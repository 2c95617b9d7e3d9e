//! Gradients against finite differences, in f64 on one device: every differentiable op, then second derivatives through
//! the recorded backward pass.

mod common;

use common::check::STATISTICS;
use common::layout::Value;
use common::{Sample, mix, seed};
use oflow::interpreter::{self, Call, Target, dispatch};
use oflow::ops::{Grad, Op};
use oflow::prelude::*;
use oflow::{BackwardOptions, CallSite};

/// A call whose float inputs are the variables of a function into one number: a fixed weighting of its float outputs.
struct Function {
    op: &'static Op,
    sample: Sample,
    inputs: Vec<Option<Value>>,
}

impl Function {
    fn new(op: &'static Op, sample: &Sample, k: usize) -> Function {
        let sample = sample.with_float(DType::F64);
        let inputs = sample.values(seed(op.name()) ^ k as u64, false);
        Function { op, sample, inputs }
    }

    fn tensors(&self, inputs: &[Option<Value>], grad: bool) -> Result<Vec<Option<Tensor>>> {
        let each = |v: &Option<Value>| {
            let t = v.as_ref().map(|v| v.local()).transpose()?;
            t.map(|t| if grad && t.dtype().is_float() { t.requires_grad_(true) } else { Ok(t) }).transpose()
        };
        inputs.iter().map(each).collect()
    }

    /// The weighted sum, as a tensor of one element.
    fn value(&self, inputs: &[Option<Tensor>]) -> Result<Tensor> {
        let (attrs, runtime) = self.sample.attributes(self.op)?;
        let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
        let target = Target::Local(Device::Cpu);
        let outs = dispatch(Call {
            op: self.op,
            inputs: &refs,
            attrs,
            runtime,
            target: refs.is_empty().then_some(&target),
            given: None,
            recording: false,
            site: CallSite::here(),
        })?;
        let mut sum = zeros([], Device::Cpu.dtype(DType::F64))?;
        let n = if STATISTICS.contains(&self.op.name()) { 1 } else { outs.len() };
        for (k, t) in outs[..n].iter().filter(|t| t.dtype().is_float()).enumerate() {
            sum = sum.add(&t.mul(&weights(t, k)?)?.sum(())?)?;
        }
        Ok(sum)
    }

    /// Gradients of the weighted sum; none for inputs that get none.
    fn gradients(&self, inputs: &[Option<Tensor>], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
        let y = self.value(inputs)?;
        if !y.requires_grad() {
            // No float output, as of a cast to integers.
            return Ok(vec![None; inputs.len()]);
        }
        let leaves: Vec<Tensor> = inputs.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
        let options = BackwardOptions { create_graph, ..Default::default() };
        let mut found = interpreter::grad(&[y], &leaves, &[None], &options, CallSite::here())?.into_iter();
        Ok(inputs
            .iter()
            .map(|t| t.as_ref().filter(|t| t.requires_grad()).and_then(|_| found.next().flatten()))
            .collect())
    }

    /// Finite differences of `f` in every element of every float input, against `have`.
    fn compare(
        &self,
        have: &[Option<Tensor>],
        f: impl Fn(&[Option<Value>]) -> Result<f64>,
        order: &str,
    ) -> std::result::Result<usize, String> {
        let err = |e: Error| e.to_string();
        let mut count = 0;
        for (i, v) in self.inputs.iter().enumerate() {
            let Some(v) = v.as_ref().filter(|v| v.ty.dtype.is_float()) else { continue };
            let grad = match &have[i] {
                Some(g) => g.to_f64_vec().map_err(err)?,
                None => vec![0.0; v.data.len()],
            };
            for (k, have) in grad.into_iter().enumerate() {
                // Central differences with Richardson's step: error h^4.
                let at = |h: f64| {
                    let mut moved = self.inputs.clone();
                    moved[i].as_mut().expect("input").data[k] += h;
                    f(&moved)
                };
                let h = 1e-3 * v.data[k].abs().clamp(0.02, 1.0);
                let slope = |h: f64| -> Result<f64> { Ok((at(h)? - at(-h)?) / (2.0 * h)) };
                let want = (4.0 * slope(h / 2.0).map_err(err)? - slope(h).map_err(err)?) / 3.0;
                let near = (have - want).abs() <= 1e-6 * (1.0 + want.abs());
                if !near {
                    let name = self.op.name();
                    return Err(format!(
                        "{name}: {order} of input {i}, element {k} is {}, differences give {want}",
                        have
                    ));
                }
                count += 1;
            }
        }
        Ok(count)
    }

    fn first(&self) -> std::result::Result<usize, String> {
        let err = |e: Error| e.to_string();
        let ins = self.tensors(&self.inputs, true).map_err(err)?;
        let g = self.gradients(&ins, false).map_err(err)?;
        self.compare(&g, |v| self.value(&self.tensors(v, false)?)?.item(), "the gradient")
    }

    /// A fixed weighting of all gradients, differentiated again.
    fn second(&self) -> std::result::Result<usize, String> {
        let weigh = |gs: &[Option<Tensor>]| -> Result<Option<Tensor>> {
            let mut sum: Option<Tensor> = None;
            for (k, g) in gs.iter().enumerate() {
                let Some(g) = g else { continue };
                let part = g.mul(&weights(g, k + 7)?)?.sum(())?;
                sum = Some(match sum {
                    Some(s) => s.add(&part)?,
                    None => part,
                });
            }
            Ok(sum)
        };
        let err = |e: Error| e.to_string();
        let ins = self.tensors(&self.inputs, true).map_err(err)?;
        let first = self.gradients(&ins, true).map_err(err)?;
        let Some(y) = weigh(&first).map_err(err)? else { return Ok(0) };
        let leaves: Vec<Tensor> = ins.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
        // A gradient that does not depend on the inputs (that of a sum) has none itself.
        let mut found = match y.requires_grad() {
            true => {
                interpreter::grad(&[y], &leaves, &[None], &BackwardOptions::default(), CallSite::here()).map_err(err)?
            }
            false => vec![None; leaves.len()],
        }
        .into_iter();
        let second: Vec<Option<Tensor>> =
            ins.iter().map(|t| t.as_ref().filter(|t| t.requires_grad()).and_then(|_| found.next().flatten())).collect();
        let f = |v: &[Option<Value>]| -> Result<f64> {
            match weigh(&self.gradients(&self.tensors(v, true)?, false)?)? {
                Some(y) => y.item(),
                None => Ok(0.0),
            }
        };
        self.compare(&second, f, "the second derivative")
    }
}

fn weights(t: &Tensor, k: usize) -> Result<Tensor> {
    let w: Vec<f64> = (0..t.numel() as u64).map(|i| (mix(&[i, k as u64, 3]) % 9) as f64 / 4.0 - 0.9).collect();
    from_vec(w, t.shape(), Device::Cpu)
}

fn float_samples(op: &'static Op) -> Vec<Sample> {
    Sample::all(op).into_iter().filter(|s| s.inputs.iter().flatten().any(|s| s.dtype.is_float())).collect()
}

/// Ops that are gradients themselves (or helpers of lowerings) and have no rule of their own yet: the second derivative of
/// what uses them is an error that says so. `prod` has none at all.
const MISSING: &[&str] =
    &["prod", "nll_pick", "cross_entropy_grad", "layer_norm_grad", "rms_norm_grad", "attention_grad"];

/// All ops with a value to differentiate.
fn ops() -> Vec<&'static Op> {
    common::sample::derive_all();
    oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && !o.sig.inputs.iter().any(|i| i.mutable)).collect()
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
                let e = Function::new(op, s, 0).first().expect_err("an op without a rule has no gradient");
                assert!(e.contains(&format!("op '{}' has no gradient rule", op.name())), "{e}");
                continue;
            }
            _ => {}
        }
        tested += 1;
        for (k, s) in float_samples(op).iter().enumerate() {
            match Function::new(op, s, k).first() {
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
    let through_missing = ["cross_entropy", "layer_norm", "rms_norm", "attention"];
    let (mut wrong, mut total, mut tested) = (vec![], 0, 0);
    for op in ops() {
        if matches!(op.grad, Grad::None | Grad::Missing) || op.traits.hidden {
            continue;
        }
        if through_missing.contains(&op.name()) {
            let e = Function::new(op, &float_samples(op)[0], 0).second().expect_err(op.name());
            assert!(e.contains("has no gradient rule"), "{e}");
            continue;
        }
        tested += 1;
        for (k, s) in float_samples(op).iter().enumerate() {
            match Function::new(op, s, k).second() {
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
    for name in STATISTICS {
        let op = oflow::ops::find(name).unwrap();
        let f = Function::new(op, &float_samples(op)[0], 0);
        let ins = f.tensors(&f.inputs, true).unwrap();
        let refs: Vec<Option<&Tensor>> = ins.iter().map(|t| t.as_ref()).collect();
        let (attrs, runtime) = f.sample.attributes(op).unwrap();
        let call = Call {
            op,
            inputs: &refs,
            attrs,
            runtime,
            target: None,
            given: None,
            recording: false,
            site: CallSite::here(),
        };
        let outs = dispatch(call).unwrap();
        let e = outs[1].sum(()).unwrap().backward().unwrap_err();
        assert_eq!(e.message(), "output 1 is a statistic kept for backward; it has no gradient", "{name}");
    }
}
