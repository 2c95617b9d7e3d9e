//! Calls with bad arguments: an error that names the op, never a panic.
//!
//! What the grammar of the declaration shows (inputs that are missing, dtypes outside a class, attributes of another kind) must be
//! refused. Whether other shapes and values are wrong is known by the op alone; there only a panic is a finding.

use super::layout::{Value, same};
use super::sample::{Sample, Spec, Values};
use super::{Complaint, at_home, guarded, home, panicked};
use crate::error::{Error, Result};
use crate::functional::{IntoTarget, full};
use crate::interpreter::{Call, Target};
use crate::ops::{AttrKind, AttrValue, Attrs, InferCtx, Op, RuntimeAttrs, TensorType};
use crate::placement::Device;
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind, Scalar};

/// Results with more elements are not computed: only inference and the sharding rule are asked.
const MOST_ELEMENTS: usize = 1 << 18;

/// A call with one thing changed.
#[derive(Clone)]
struct Bad {
    /// Change of the call, in words.
    change: String,
    inputs: Vec<Option<Spec>>,
    attrs: Attrs,
    runtime: RuntimeAttrs,
    /// The grammar shows that it is wrong.
    must_fail: bool,
}

/// Makes bad calls of an op from its samples, and adds to `wrong` what is not as it must be. Returns how many calls there were.
///
/// # Errors
/// A sample cannot be read.
pub fn bad_arguments(op: &'static Op, wrong: &mut Vec<Complaint>) -> Result<usize> {
    let mut count = 0;
    for (i, sample) in Sample::all(op)?.iter().enumerate() {
        count += of_sample(op, &format!("{} sample {i}", op.name()), sample, wrong);
    }
    Ok(count)
}

fn of_sample(op: &'static Op, what: &str, sample: &Sample, wrong: &mut Vec<Complaint>) -> usize {
    let Ok((attrs, runtime)) = sample.attributes(op) else { return 0 };
    let good = Bad { change: String::new(), inputs: sample.inputs.clone(), attrs, runtime, must_fail: false };
    let mut all = vec![];
    missing_inputs(op, &good, &mut all);
    for i in 0..good.inputs.len() {
        other_input(op, &good, i, &mut all);
    }
    for (i, def) in op.sig.attrs.iter().enumerate() {
        let wrong_kind = [AttrValue::Str("text".into()), AttrValue::Bool(true), AttrValue::Int(1)];
        let wrong_kind = wrong_kind.into_iter().find(|v| !def.holds(v)).map(|v| (v, true));
        for (value, must_fail) in odd_values(def.kind).into_iter().map(|v| (v, false)).chain(wrong_kind) {
            let mut bad = good.clone();
            let Some(at) = bad.attrs.get_mut(i) else { continue };
            bad.change = format!("attribute '{}' is {value}", def.name);
            *at = value;
            all.push(Bad { must_fail, ..bad });
        }
    }
    for (i, def) in op.sig.runtime.iter().enumerate() {
        for value in odd_numbers(def.kind) {
            let mut bad = good.clone();
            bad.change = format!("attribute '{}' is {value:?}", def.name);
            bad.runtime[i] = value;
            all.push(bad);
        }
    }
    let mut more = Bad { change: "one plan attribute too many".into(), must_fail: true, ..good.clone() };
    more.attrs.push(AttrValue::Int(0));
    all.push(more);
    let mut more = Bad { change: "one runtime attribute too many".into(), must_fail: true, ..good };
    more.runtime.push(Scalar::Int(0));
    all.push(more);
    for bad in &all {
        if let Err(why) = judge(op, bad) {
            wrong.push(format!("{what} where {}: {why}", bad.change));
        }
    }
    all.len()
}

fn missing_inputs(op: &Op, good: &Bad, all: &mut Vec<Bad>) {
    let Some(last) = good.inputs.len().checked_sub(1) else { return };
    let needs = |i: usize| op.sig.input_def(i).is_some_and(|d| !d.optional);
    let fixed = op.sig.repeating() == 0;
    let mut fewer = good.clone();
    fewer.inputs.truncate(last);
    all.push(Bad { change: "the last input is left out".into(), must_fail: fixed && needs(last), ..fewer });
    let mut more = good.clone();
    more.inputs.push(good.inputs[last].clone());
    all.push(Bad { change: "there is one input too many".into(), must_fail: fixed, ..more });
    for i in (0..=last).filter(|i| good.inputs[*i].is_some()) {
        let mut absent = good.clone();
        absent.inputs[i] = None;
        all.push(Bad { change: format!("input {i} is absent"), must_fail: needs(i), ..absent });
    }
}

/// Another dtype, rank, size or index range of one input.
fn other_input(op: &Op, good: &Bad, i: usize, all: &mut Vec<Bad>) {
    let Some(spec) = &good.inputs[i] else { return };
    let mut add = |change: String, spec: Spec, must_fail: bool| {
        let mut bad = good.clone();
        bad.inputs[i] = Some(spec);
        all.push(Bad { change: format!("input {i} {change}"), must_fail, ..bad });
    };
    let accepts = |d: &DType| op.sig.input_def(i).is_none_or(|def| def.dtypes.contains(*d));
    for dtype in [DType::Bool, DType::I64, DType::F32, DType::F64, DType::BF16].into_iter().filter(|d| !accepts(d)) {
        add(format!("is {dtype}"), Spec { dtype, ..spec.clone() }, true);
    }
    let shaped = |shape: Vec<usize>| Spec { shape, ..spec.clone() };
    // A number of dims that the grammar excludes must be refused.
    let excluded = |rank: usize| op.sig.input_def(i).is_some_and(|def| !def.ranks.contains(rank));
    let rank = spec.shape.len();
    add("has one dim more".into(), shaped([&[2], spec.shape.as_slice()].concat()), excluded(rank + 1));
    if rank > 0 {
        add("has one dim less".into(), shaped(spec.shape[1..].to_vec()), excluded(rank - 1));
        add("has no dims".into(), shaped(vec![]), excluded(0));
    }
    for d in 0..spec.shape.len() {
        for (word, more) in [("longer", true), ("shorter", false)] {
            let mut shape = spec.shape.clone();
            let size = if more { shape[d].checked_add(1) } else { shape[d].checked_sub(1) };
            let Some(size) = size else { continue };
            shape[d] = size;
            add(format!("is {word} in dim {d}"), shaped(shape), false);
        }
    }
    if let Values::Below(n) = spec.values {
        add("has indices out of range".into(), Spec { values: Values::Below(2 * n + 7), ..spec.clone() }, false);
    }
}

fn odd_values(kind: AttrKind) -> Vec<AttrValue> {
    match kind {
        AttrKind::Int => [i64::MIN, -9, 9, i64::MAX].map(AttrValue::Int).to_vec(),
        AttrKind::Float => [f64::NAN, f64::INFINITY, -1.0].map(AttrValue::Float).to_vec(),
        AttrKind::Ints => {
            let lists: [&[i64]; 5] = [&[], &[0, 0], &[-9], &[i64::MIN], &[i64::MAX, 2]];
            lists.map(|l| AttrValue::Ints(l.into())).to_vec()
        }
        AttrKind::Shape => {
            let lists: [&[i64]; 3] = [&[], &[0], &[i64::MAX, i64::MAX]];
            lists.map(|l| AttrValue::Ints(l.into())).to_vec()
        }
        AttrKind::DType => [DType::Bool, DType::I64].map(AttrValue::DType).to_vec(),
        AttrKind::Str => vec![AttrValue::Str("no such word".into())],
        _ => vec![],
    }
}

fn odd_numbers(kind: AttrKind) -> Vec<Scalar> {
    match kind {
        AttrKind::Int => [i64::MIN, -1, i64::MAX].map(Scalar::Int).to_vec(),
        AttrKind::Bool => vec![],
        _ => [f64::NAN, f64::NEG_INFINITY, 0.0].map(Scalar::Float).to_vec(),
    }
}

fn judge(op: &'static Op, bad: &Bad) -> Result<(), String> {
    match guarded(|| at_home(op, || call(op, bad))) {
        Err(e) if panicked(&e) || e.message().starts_with(READS_BEYOND) => Err(e.message().to_string()),
        Err(e) if !e.to_string().contains(op.sig.name.as_str()) => Err(format!("the error does not name the op: {e}")),
        Ok(()) if bad.must_fail => Err("accepted, although its declaration says otherwise".into()),
        _ => Ok(()),
    }
}

/// Inference, the sharding rule, and the call itself where its result is small.
fn call(op: &'static Op, bad: &Bad) -> Result<()> {
    let named = |e: Error| e.in_call(|| op.name().to_string());
    let types: Vec<Option<TensorType>> =
        bad.inputs.iter().map(|s| s.as_ref().map(|s| TensorType::new(&s.shape, s.dtype))).collect();
    let kinds: Vec<DTypeKind> = bad.runtime.iter().map(|s| s.kind()).collect();
    let infer = InferCtx { op, inputs: &types, attrs: &bad.attrs, runtime_kinds: &kinds };
    let outs = op.infer(&infer).map_err(named)?;
    op.signatures_1d(&infer, &outs).map_err(named)?;
    if outs.iter().any(|t| t.len() > MOST_ELEMENTS) {
        return Ok(());
    }
    let run = |around: f64| -> Result<Vec<Value>> {
        let each = |s: &Option<Spec>| s.as_ref().map(|s| among(&s.exact_values(11), around, home(op))).transpose();
        let inputs: Vec<Option<Tensor>> = bad.inputs.iter().map(each).collect::<Result<_>>()?;
        let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
        let target = Target::Local(home(op));
        let call = Call::new(op, &refs).attrs(bad.attrs.clone()).runtime(bad.runtime.clone());
        let outs = call.target(refs.is_empty().then_some(&target)).run()?;
        outs.iter().map(Value::of).collect()
    };
    let same = |(a, b): (&Value, &Value)| a.ty == b.ty && a.data.iter().zip(&b.data).all(|(a, b)| same(*a, *b));
    let equal = |a: &[Value], b: &[Value]| a.iter().zip(b).all(same);
    let (one, other) = (run(0.0)?, run(1.0)?);
    // What draws numbers gives others each time.
    match equal(&one, &other) || !equal(&other, &run(1.0)?) {
        true => Ok(()),
        false => Err(Error::registry(format!("{READS_BEYOND} of the op {}", op.name()))),
    }
}

/// Complaint of [`call`] where results depend on memory around the inputs.
const READS_BEYOND: &str = "the result depends on memory outside of the inputs";

/// A value as a part of a larger buffer whose other elements are `around`.
fn among(value: &Value, around: f64, device: Device) -> Result<Tensor> {
    let whole = value.local(device)?;
    if value.ty.is_empty() || !(value.ty.dtype.is_float() || value.ty.dtype.integers().is_some()) {
        return Ok(whole);
    }
    let n = whole.numel();
    let room = full([3 * n + 64], around, device.dtype(whole.dtype()))?;
    let part = room.narrow(0, n as i64, n as i64)?;
    part.copy_(&whole.reshape([n as i64])?)?;
    part.reshape(value.ty.shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
}
