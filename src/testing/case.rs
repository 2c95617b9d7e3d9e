//! A call with values: what it gives on one device ([`Reference`]), and the same with layouts on a mesh ([`Case`]).

use super::exact::exact;
use super::layout::{Value, close, parts_of};
use super::sample::Sample;
use super::{Complaint, at_home, home, mix, seed};
use crate::error::{CallSite, Result};
use crate::functional::{distribute, grad_at};
use crate::interpreter::{BackwardOptions, Call, Target, take_comm_trace};
use crate::ops::{Attrs, Grad, NdSignature, Op, RuntimeAttrs, TensorType};
use crate::placement::Device;
use crate::sbp::{NdSbp, Signature};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use std::sync::Arc;

/// Result of a call on one device.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Outputs, then the mutable inputs as they are afterwards.
    pub results: Vec<Value>,
    /// Gradients of the inputs, where asked for.
    pub grads: Vec<Option<Value>>,
}

/// A call with the values of its inputs, and what it gives on the CPU: what every mesh and every other device must reproduce.
#[derive(Clone)]
pub struct Reference {
    /// The op that is called.
    pub op: &'static Op,
    /// The call in words, for complaints: `matmul sample 0 (uneven)`.
    pub what: String,
    /// Values of the inputs; absent ones `None`.
    pub inputs: Vec<Option<Value>>,
    /// Plan attributes of the call.
    pub attrs: Attrs,
    /// Runtime attributes of the call.
    pub runtime: RuntimeAttrs,
    /// Gradients are compared too.
    pub backward: bool,
    /// The inputs are small numbers whose sums and products are exact.
    pub small: bool,
    /// Result of the reference.
    pub want: Outcome,
}

/// A call with the layouts of its inputs.
#[derive(Clone)]
pub struct Case {
    /// The call with its reference result.
    pub reference: Arc<Reference>,
    /// nd-SBP per present input; for a source op that of its output.
    pub sbps: Vec<Option<NdSbp>>,
    /// The signature that must carry it out without boxing; none where any may, with boxings.
    pub expect: Option<NdSignature>,
    /// The 1-d rows that the signature may be made of.
    pub rows: Arc<Vec<Signature>>,
}

impl Case {
    /// The case in words, for complaints: op, sample, layouts, mesh.
    pub fn describe(&self, mesh: &[usize]) -> String {
        let sbps: Vec<String> = self.sbps.iter().flatten().map(|s| s.to_string()).collect();
        let outs = self.expect.as_ref().map_or(String::new(), |e| format!(" -> {:?}", e.outputs));
        let grad = if self.reference.backward { " with gradients" } else { "" };
        format!("{} with {}{outs} on {mesh:?}{grad}", self.reference.what, sbps.join(", "))
    }
}

/// Whether gradients of this op are to be compared: it has a rule, and writes no input.
pub fn differentiable(op: &Op) -> bool {
    !matches!(op.grad, Grad::Missing | Grad::None) && !op.writes_inputs()
}

/// The outputs that gradients may come from.
pub fn differentiable_outputs(outs: &[Tensor]) -> impl Iterator<Item = &Tensor> {
    outs.iter().filter(|t| t.dtype().has_gradients() && t.requires_grad())
}

/// A fixed out-gradient.
fn weights(ty: &TensorType) -> Value {
    let data = (0..(ty.len() * parts_of(ty.dtype)) as u64).map(|i| (mix(&[i, 99]) % 5) as f64 - 2.0).collect();
    Value { ty: ty.clone(), data }
}

/// Results of a call: tensors of one device, or of one rank of a mesh.
pub(super) struct Pieces {
    /// Outputs, then the mutable inputs.
    pub(super) results: Vec<Tensor>,
    pub(super) grads: Vec<Option<Tensor>>,
    /// How many boxings the forward call needed.
    pub(super) boxings: usize,
}

/// Runs the call, and its gradients with fixed out-gradients. `given`: the result is written into that tensor.
pub(super) fn run(
    of: &Reference,
    inputs: &[Option<Tensor>],
    target: &Target,
    given: Option<&Tensor>,
) -> Result<Pieces> {
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
    take_comm_trace();
    let call = Call::new(of.op, &refs).attrs(of.attrs.clone()).runtime(of.runtime.clone());
    let outs = call.target(refs.is_empty().then_some(target)).given(given).run()?.into_vec();
    let boxings = take_comm_trace().iter().filter(|r| r.plan().is_some()).count();
    let mut grads = vec![None; inputs.len()];
    if of.backward && given.is_none() {
        let floats: Vec<Tensor> = differentiable_outputs(&outs).cloned().collect();
        let dys = floats.iter().map(|t| {
            let w = weights(t.ty());
            Ok(Some(match target {
                Target::Local(d) => w.local(*d)?,
                Target::Global(p, _) => distribute(&w.local(p.device())?, (p, NdSbp::broadcast(p.axes())))?,
            }))
        });
        let dys: Vec<Option<Tensor>> = dys.collect::<Result<_>>()?;
        let at: Vec<usize> = (0..inputs.len()).filter(|i| refs[*i].is_some_and(|t| t.requires_grad())).collect();
        let leaves: Vec<Tensor> = at.iter().filter_map(|i| inputs[*i].clone()).collect();
        if !floats.is_empty() && !leaves.is_empty() {
            let found = grad_at(&floats, &leaves, &dys, &BackwardOptions::default(), CallSite::here())?;
            for (i, g) in at.into_iter().zip(found) {
                grads[i] = g;
            }
        }
    }
    let mut results = outs;
    for (i, t) in inputs.iter().enumerate() {
        if of.op.sig.mutates(i) {
            results.extend(t.clone());
        }
    }
    Ok(Pieces { results, grads, boxings })
}

/// An input, as a leaf of the graph where its gradient is compared.
pub(super) fn leaf(of: &Reference, t: Tensor) -> Result<Tensor> {
    if of.backward && t.dtype().has_gradients() { t.requires_grad_(true) } else { Ok(t) }
}

/// Runs a sample on the CPU, or where the op has its kernels. `what` names it in complaints and seeds its values, which are `exact` ones or generic ones.
///
/// # Errors
/// The op refuses these inputs.
pub fn reference(op: &'static Op, what: &str, sample: &Sample, exact: bool, backward: bool) -> Result<Reference> {
    reference_of(op, what, sample, sample.values(seed(what), exact), exact, backward)
}

/// Runs a sample on given values; `small`: they are small numbers whose sums and products are exact.
///
/// # Errors
/// The op refuses these inputs.
pub(super) fn reference_of(
    op: &'static Op,
    what: &str,
    sample: &Sample,
    inputs: Vec<Option<Value>>,
    small: bool,
    backward: bool,
) -> Result<Reference> {
    let (attrs, runtime) = sample.attributes(op)?;
    let want = Outcome { results: vec![], grads: vec![] };
    let mut of = Reference { op, what: what.to_string(), inputs, attrs, runtime, backward, small, want };
    of.want = at_home(op, || outcome_on(home(op), &of))?;
    Ok(of)
}

fn outcome_on(device: Device, of: &Reference) -> Result<Outcome> {
    let leaf = |v: &Option<Value>| v.as_ref().map(|v| leaf(of, v.local(device)?)).transpose();
    let tensors: Vec<Option<Tensor>> = of.inputs.iter().map(leaf).collect::<Result<_>>()?;
    let p = run(of, &tensors, &Target::Local(device), None)?;
    Ok(Outcome {
        results: p.results.iter().map(Value::of).collect::<Result<_>>()?,
        grads: p.grads.iter().map(|g| g.as_ref().map(Value::of).transpose()).collect::<Result<_>>()?,
    })
}

/// Whether an input has half precision: then results are as near as bf16 is.
pub(super) fn half(of: &Reference) -> bool {
    of.inputs.iter().flatten().any(|v| v.ty.dtype.is_half())
}

/// Runs the call on another device, local, and compares with the CPU's outcome. A GPU needs a rank: call it inside
/// [`run_ranks`](crate::run_ranks).
///
/// # Errors
/// The first result or gradient that differs.
pub fn check_device(device: Device, of: &Reference) -> Result<(), Complaint> {
    let have = outcome_on(device, of).map_err(|e| format!("{}: {e}", of.what))?;
    let near = |what: String, have: &Value, want: &Value, exact: bool, slack: f64| {
        if have.ty != want.ty {
            return Err(format!("{}: {what} is {} instead of {}", of.what, have.ty, want.ty));
        }
        let dtype = if half(of) && want.ty.dtype.is_float() { DType::BF16 } else { want.ty.dtype };
        match have.data.iter().zip(&want.data).position(|(a, b)| !close(dtype, exact, *a, *b, slack)) {
            Some(i) => {
                let (a, b) = (have.data[i], want.data[i]);
                Err(format!("{}: {what}, element {i} is {a} instead of {b}", of.what))
            }
            None => Ok(()),
        }
    };
    // Sums of gradients cancel, whoever asks for them.
    let slack = if of.op.name().ends_with("_grad") { 20.0 } else { 1.0 };
    for (i, (a, b)) in have.results.iter().zip(&of.want.results).enumerate() {
        near(format!("result {i}"), a, b, exact(of), slack)?;
    }
    for (i, (a, b)) in have.grads.iter().zip(&of.want.grads).enumerate() {
        match (a, b) {
            (Some(a), Some(b)) => near(format!("gradient {i}"), a, b, false, 20.0)?,
            (None, None) => {}
            _ => return Err(format!("{}: gradient {i} is there on one device only", of.what)),
        }
    }
    Ok(())
}
