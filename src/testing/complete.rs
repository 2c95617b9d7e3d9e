//! Completeness of a sharding rule: every assignment of S, B and P to the inputs and outputs of a small call is tried out on the
//! kernel, and what gives the right value although no signature says so is listed.
//!
//! The kernel runs on the shards of each position, one after the other, as a plan would have it: with localised attributes and
//! shard boxes, but without a choice, boxings or ranks. An assignment that is right on all sizes of a sample is likely a signature
//! that the declaration lacks; that is a hint for its author and no error, because values are no proof.

use super::layout::{Value, assemble, close, deal};
use super::{Reference, Sample, computes, guarded, home, mesh_of, reference, variants};
use crate::backend;
use crate::error::Result;
use crate::functional::{IntoTarget, zeros};
use crate::ops::{AttrKind, AttrValue, InferCtx, KernelCx, Op, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, ReduceOp, Sbp, Signature, shard_box};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar, ShardBox, View};
use std::fmt;
use std::sync::OnceLock;

/// Assignments of one sample beyond which nothing is tried: calls of many inputs of many dims.
const MOST: usize = 200_000;

/// A signature that gave the right values and is not declared.
#[derive(Clone, Debug, PartialEq)]
pub struct UndeclaredSignature {
    /// Number of the sample.
    pub sample: usize,
    /// The signature along one mesh axis.
    pub signature: Signature,
}

/// Findings of the search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completeness {
    /// Assignments of layouts to inputs that were tried, each with all layouts of the outputs.
    pub tried: usize,
    /// Declared signatures of the samples, all-B and lowered ones included.
    pub declared: usize,
    /// Right, but not declared.
    pub undeclared: Vec<UndeclaredSignature>,
    /// Why nothing, or not all, was tried.
    pub skipped: Option<String>,
}

impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.skipped {
            writeln!(f, "  completeness not searched: {why}")?;
        }
        if self.tried > 0 {
            let (n, right) = (self.undeclared.len(), self.declared);
            writeln!(
                f,
                "  completeness: {} layouts of the inputs tried, {right} signatures declared, {n} right ones not",
                self.tried
            )?;
        }
        self.undeclared.iter().try_for_each(|u| writeln!(f, "    sample {}: {}", u.sample, u.signature))
    }
}

/// Tries every assignment of layouts on the samples of an op.
///
/// # Errors
/// A sample cannot be read.
pub fn completeness(op: &'static Op) -> Result<Completeness> {
    let mut found = Completeness::default();
    let no = |why: &str| Completeness { skipped: Some(why.to_string()), ..Completeness::default() };
    if !computes(op) || op.sig.inputs.is_empty() {
        return Ok(no("the op has no inputs"));
    }
    if home(op) != Device::Cpu {
        return Ok(no("the op has no kernel for the CPU"));
    }
    if op.length.is_some() || op.writes_inputs() || op.traits.random {
        return Ok(no("the result is random, written in place, or of a length that depends on values"));
    }
    for (i, sample) in Sample::all(op)?.iter().enumerate() {
        if let Err(e) = guarded(|| search(op, i, sample, &mut found)) {
            found.skipped = Some(format!("sample {i}: {}", e.message()));
        }
    }
    Ok(found)
}

/// A call in one size and with numbers of its own, to try signatures on.
struct Size {
    /// Values and runtime numbers differ from size to size.
    call: Reference,
    types: Vec<Option<TensorType>>,
    outs: Vec<TensorType>,
}

fn search(op: &'static Op, number: usize, sample: &Sample, found: &mut Completeness) -> Result<()> {
    let mut sizes: Vec<Size> = vec![];
    for (word, s) in variants(op, sample).into_iter().filter(|(word, _)| *word != "empty") {
        for (k, s) in with_other_numbers(op, &s)?.into_iter().enumerate() {
            match reference(op, &format!("{} sample {number} ({word}), numbers {k}", op.name()), &s, true, false) {
                Ok(call) => sizes.push(Size { call, types: s.types(), outs: s.infer(op)? }),
                Err(e) if sizes.is_empty() => return Err(e),
                Err(_) => {}
            }
        }
    }
    let Some((first, others)) = sizes.split_first() else { return Ok(()) };
    // Zeros of both signs are one number.
    let varies = |v: &Value| v.data.iter().any(|x| (x + 0.0).to_bits() != (v.data[0] + 0.0).to_bits());
    if !first.call.want.results.iter().all(varies) {
        // One number everywhere: every rule seems right.
        return Ok(());
    }
    let kinds: Vec<_> = first.call.runtime.iter().map(|s| s.kind()).collect();
    let infer = InferCtx { op, inputs: &first.types, attrs: &first.call.attrs, runtime_kinds: &kinds };
    let declared = op.signatures_1d(&infer, &first.outs)?;
    found.declared += declared.len();
    let choices: Vec<Vec<Sbp>> = first.types.iter().map(|t| t.as_ref().map_or(vec![Sbp::Broadcast], layouts)).collect();
    let outputs: Vec<Vec<Sbp>> = first.outs.iter().map(layouts).collect();
    let count = |lists: &[Vec<Sbp>]| lists.iter().try_fold(1usize, |n, l| n.checked_mul(l.len()));
    if count(&choices).zip(count(&outputs)).and_then(|(a, b)| a.checked_mul(b)).is_none_or(|n| n > MOST) {
        found.skipped = Some(format!("sample {number} has more than {MOST} assignments"));
        return Ok(());
    }
    let (two, three) = (mesh_of(Device::Cpu, &[2])?, mesh_of(Device::Cpu, &[3])?);
    let mut right: Vec<Signature> = vec![];
    for inputs in products(&choices) {
        found.tried += 1;
        for signature in right_outputs(first, &two, &inputs, &outputs)? {
            let again = others.iter().map(|s| (s, &two)).chain(sizes.iter().map(|s| (s, &three)));
            let mut again = again.map(|(size, mesh)| holds(size, mesh, &signature));
            if again.all(|h| h.unwrap_or(false)) {
                right.push(signature);
            }
        }
    }
    let known = |s: &Signature, by: &[Signature]| by.iter().any(|d| follows(s, d));
    // Of those that follow from each other the first is told.
    let mut shown: Vec<Signature> = vec![];
    for (k, s) in right.iter().enumerate() {
        let stronger = right.iter().enumerate().any(|(j, d)| j != k && follows(s, d) && !(follows(d, s) && k < j));
        if !known(s, &declared) && !stronger {
            shown.push(s.clone());
        }
    }
    found.undeclared.extend(shown.into_iter().map(|signature| UndeclaredSignature { sample: number, signature }));
    Ok(())
}

/// The sample, and the same with other runtime numbers: a rule must hold for all of them, of either sign.
fn with_other_numbers(op: &Op, sample: &Sample) -> Result<Vec<Sample>> {
    let (_, runtime) = sample.attributes(op)?;
    let mut all = vec![sample.clone(), sample.clone()];
    let other = |by: f64, plus: f64| {
        let mut s = sample.clone();
        for (def, given) in op.sig.runtime.iter().zip(&runtime) {
            let kind = if let Scalar::Float(_) = given { def.kind } else { AttrKind::Int };
            if matches!(kind, AttrKind::Float | AttrKind::Scalar) {
                s.attrs.retain(|(name, _)| *name != def.name);
                s.attrs.push((def.name.to_string(), AttrValue::Float(by * given.to_f64() + plus)));
            }
        }
        s
    };
    if !runtime.is_empty() {
        all.extend([other(-1.0, 0.0), other(-0.5, 1.75)]);
    }
    Ok(all)
}

/// SBPs that a tensor may have along one mesh axis. A dim of size 1 is not split: nothing is gained.
fn layouts(t: &TensorType) -> Vec<Sbp> {
    let splits = t.shape.iter().enumerate().filter(|(_, n)| **n != 1).map(|(d, _)| Sbp::Split(d));
    let partials = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min].into_iter().filter(|op| t.dtype.reduces(*op));
    splits.chain([Sbp::Broadcast]).chain(partials.map(Sbp::Partial)).collect()
}

/// Every way to take one of each list.
fn products(lists: &[Vec<Sbp>]) -> Vec<Vec<Sbp>> {
    let mut all: Vec<Vec<Sbp>> = vec![vec![]];
    for list in lists {
        all = all.iter().flat_map(|p| list.iter().map(move |s| [p.as_slice(), &[*s]].concat())).collect();
    }
    all
}

/// Whether `s` says nothing that `d` does not: copies are parts of a maximum or minimum too, given or made.
fn follows(s: &Signature, d: &Signature) -> bool {
    let extreme = |s: Sbp| matches!(s, Sbp::Partial(ReduceOp::Max | ReduceOp::Min));
    let input = |s: Sbp, d: Sbp| s == d || (s == Sbp::Broadcast && extreme(d));
    let output = |s: Sbp, d: Sbp| s == d || (d == Sbp::Broadcast && extreme(s));
    s.inputs.iter().zip(&d.inputs).all(|(s, d)| input(*s, *d))
        && s.outputs.iter().zip(&d.outputs).all(|(s, d)| output(*s, *d))
}

/// All right signatures with these layouts of the inputs. A kernel writes the same for B and P, so outputs are tried by their
/// boxes first.
fn right_outputs(size: &Size, mesh: &Placement, inputs: &[Sbp], outputs: &[Vec<Sbp>]) -> Result<Vec<Signature>> {
    let boxed = |list: &Vec<Sbp>| list.iter().copied().filter(|s| !s.is_partial()).collect::<Vec<_>>();
    let mut found = vec![];
    for made in products(&outputs.iter().map(boxed).collect::<Vec<_>>()) {
        let Some(shards) = guarded(|| on_positions(size, mesh, inputs, &made)).ok().flatten() else { continue };
        let fitting: Vec<Vec<Sbp>> = (0..made.len())
            .map(|o| {
                let same_box = |s: &&Sbp| **s == made[o] || (made[o] == Sbp::Broadcast && s.is_partial());
                outputs[o]
                    .iter()
                    .filter(same_box)
                    .copied()
                    .filter(|s| is_value(size, mesh, o, *s, &shards[o]))
                    .collect()
            })
            .collect();
        found.extend(products(&fitting).iter().map(|outs| Signature::new(inputs, outs)));
    }
    Ok(found)
}

/// Whether a signature gives the right values on a call of that size.
fn holds(size: &Size, mesh: &Placement, s: &Signature) -> Result<bool> {
    let made: Vec<Sbp> = s.outputs.iter().map(|s| if s.is_partial() { Sbp::Broadcast } else { *s }).collect();
    let Some(shards) = guarded(|| on_positions(size, mesh, &s.inputs, &made))? else { return Ok(false) };
    Ok((0..made.len()).all(|o| is_value(size, mesh, o, s.outputs[o], &shards[o])))
}

fn is_value(size: &Size, mesh: &Placement, output: usize, sbp: Sbp, shards: &[Value]) -> bool {
    let (want, nd) = (&size.call.want.results[output], NdSbp::uniform(sbp, 1));
    let largest = shards.iter().flat_map(|s| &s.data).filter(|x| x.is_finite()).fold(1.0, |m: f64, x| m.max(x.abs()));
    let scale = if sbp == Sbp::PARTIAL_SUM { largest } else { 1.0 };
    assemble(&want.ty, mesh, &nd, shards)
        .is_ok_and(|have| have.iter().zip(&want.data).all(|(a, b)| close(want.ty.dtype, false, *a, *b, scale)))
}

/// Runs the kernel on the shards of every position. Returns for each output its shards; none where the op does not give outputs
/// of these sizes.
fn on_positions(size: &Size, mesh: &Placement, inputs: &[Sbp], outputs: &[Sbp]) -> Result<Option<Vec<Vec<Value>>>> {
    let mut shards: Vec<Vec<Value>> = vec![vec![]; outputs.len()];
    for position in 0..mesh.len() {
        let Some(values) = on_position(size, mesh, position, inputs, outputs)? else { return Ok(None) };
        shards.iter_mut().zip(values).for_each(|(all, v)| all.push(v));
    }
    Ok(Some(shards))
}

fn on_position(
    size: &Size,
    mesh: &Placement,
    position: usize,
    inputs: &[Sbp],
    outputs: &[Sbp],
) -> Result<Option<Vec<Value>>> {
    let Size { call, types, outs } = size;
    let op = call.op;
    let nd = |s: &Sbp| NdSbp::uniform(*s, 1);
    let boxed = |t: &TensorType, s: &Sbp| shard_box(&t.shape, mesh, &nd(s), position);
    let boxes_in: Vec<Option<ShardBox>> =
        types.iter().zip(inputs).map(|(t, s)| t.as_ref().map(|t| boxed(t, s))).collect();
    let boxes_out: Vec<ShardBox> = outs.iter().zip(outputs).map(|(t, s)| boxed(t, s)).collect();
    let kinds: Vec<_> = call.runtime.iter().map(|s| s.kind()).collect();
    let logical = InferCtx { op, inputs: types, attrs: &call.attrs, runtime_kinds: &kinds };
    let attrs = op.localized(&logical, &boxes_in, &boxes_out)?;
    let sized = |t: &TensorType, b: &ShardBox| TensorType::new(&b.size, t.dtype);
    let ins: Vec<Option<TensorType>> =
        types.iter().zip(&boxes_in).map(|(t, b)| Some(sized(t.as_ref()?, b.as_ref()?))).collect();
    let made: Vec<TensorType> = outs.iter().zip(&boxes_out).map(|(t, b)| sized(t, b)).collect();
    // A kernel relies on sizes that fit each other: only where inference agrees is it run.
    let infer = InferCtx { op, inputs: &ins, attrs: &attrs, runtime_kinds: &kinds };
    if op.infer(&infer).ok().is_none_or(|o| o.as_slice() != made.as_slice()) {
        return Ok(None);
    }
    let tensors: Vec<Option<Tensor>> = call
        .inputs
        .iter()
        .zip(inputs)
        .map(|(v, s)| v.as_ref().map(|v| deal(v, mesh, &nd(s), position).local(Device::Cpu)).transpose())
        .collect::<Result<_>>()?;
    let results: Vec<Tensor> =
        made.iter().map(|t| zeros(t.shape.as_slice(), Device::Cpu.dtype(t.dtype))).collect::<Result<_>>()?;
    if made.is_empty() || made.iter().any(|t| !t.is_empty()) || op.traits.run_empty {
        let kernel = backend::select(op, Device::Cpu, &infer, &made)?;
        let state = kernel.state.as_ref().map(|f| f(&infer, &made)).transpose()?;
        let scratch = kernel.workspace.as_ref().map_or(Ok(0), |f| f(&infer, &made))?;
        let workspace = zeros([scratch], Device::Cpu.dtype(DType::U8))?;
        let views: Vec<Option<View>> =
            tensors.iter().map(|t| t.as_ref().map_or(Ok(None), view)).collect::<Result<_>>()?;
        let outputs: Vec<View> = results.iter().filter_map(|t| view(t).transpose()).collect::<Result<_>>()?;
        (kernel.run)(&KernelCx {
            op,
            inputs: &views,
            outputs: &outputs,
            attrs: &attrs,
            runtime: &call.runtime,
            input_boxes: &boxes_in,
            output_boxes: &boxes_out,
            state: state.as_ref(),
            cache: &OnceLock::new(),
            workspace: view(&workspace)?.filter(|_| scratch > 0).as_ref(),
            stream: None,
        })?;
    }
    results.iter().map(Value::of).collect::<Result<_>>().map(Some)
}

/// The memory of a local tensor, which its handle keeps alive.
fn view(t: &Tensor) -> Result<Option<View>> {
    t.with_data(|local| local.map(|l| l.view()))
}
