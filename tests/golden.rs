//! Every op against PyTorch's numbers (`tests/golden/*.json`, made by `tests/golden/make.py`): values, gradients, dtypes.

mod common;

use common::layout::Value;
use oflow::boxing::resolve_attrs;
use oflow::interpreter::{self, Call, Target};
use oflow::ops::{AttrValue, Op, TensorType, find};
use oflow::prelude::*;
use oflow::{BackwardOptions, CallSite};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Ops without a counterpart there: the numbers of random ops are ours alone (`tests/rng.rs` and the kernels' tests hold
/// them to their distributions).
const OURS_ALONE: &[&str] = &["rand", "randn", "bernoulli", "randint", "dropout"];

fn value(v: &Json) -> Option<Value> {
    let shape: Vec<usize> = v.get("shape")?.as_array()?.iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let dtype: DType = v["dtype"].as_str()?.parse().unwrap();
    let number = |x: &Json| match x {
        Json::String(s) => s.parse().unwrap(),
        // f64 has no exact place for the largest i64; both sides round alike.
        x => x.as_f64().unwrap(),
    };
    let data = v["data"].as_array()?.iter().map(number).collect();
    Some(Value { ty: TensorType::new(&shape, dtype), data })
}

fn run(op: &'static Op, case: &Json, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
    let given: Vec<(&str, AttrValue)> = case["attrs"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(n, v)| {
            let def = op.sig.attrs.iter().chain(&op.sig.runtime).find(|a| a.name == *n);
            let kind = def.unwrap_or_else(|| panic!("{} has no attribute '{n}'", op.name())).kind;
            Ok((n.as_str(), kind.parse_value(v.as_str().unwrap())?))
        })
        .collect::<Result<_>>()?;
    let (attrs, runtime) = resolve_attrs(op, &given)?;
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
    let target = Target::Local(Device::Cpu);
    let outs = Call::new(op, &refs).attrs(attrs).runtime(runtime).target(refs.is_empty().then_some(&target)).run()?;
    let mutated = inputs.iter().enumerate().filter(|(i, _)| op.sig.mutates(*i));
    let mutated: Vec<Tensor> = mutated.filter_map(|(_, t)| t.clone()).collect();
    Ok(outs.into_iter().chain(mutated).collect())
}

fn compare(what: &str, have: &Tensor, want: &Value, slack: f64) -> std::result::Result<(), String> {
    if *have.ty() != want.ty {
        return Err(format!("{what} is {} instead of {}", have.ty(), want.ty));
    }
    let eps = match want.ty.dtype {
        DType::F64 => 1e-12,
        DType::F32 => 3e-6,
        DType::F16 => 2e-3,
        DType::BF16 => 1.2e-2,
        _ => 0.0,
    };
    let data = have.to_f64_vec().map_err(|e| e.to_string())?;
    for (i, (a, b)) in data.iter().zip(&want.data).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan());
        let near = (a - b).abs() <= eps * slack * (0.3 + b.abs());
        if !same && !near {
            return Err(format!("{what}: element {i} is {a} instead of {b}"));
        }
    }
    Ok(())
}

fn check(op: &'static Op, case: &Json) -> std::result::Result<usize, String> {
    let err = |e: Error| e.to_string();
    let with_grad = !case["grads"].is_null();
    let inputs = case["inputs"].as_array().unwrap().iter().map(|v| {
        let t = value(v).map(|v| v.local(Device::Cpu)).transpose()?;
        t.map(|t| if with_grad && t.dtype().is_float() { t.requires_grad_(true) } else { Ok(t) }).transpose()
    });
    let inputs: Vec<Option<Tensor>> = inputs.collect::<Result<_>>().map_err(err)?;
    let outs = run(op, case, &inputs).map_err(err)?;
    let wants = case["outputs"].as_array().unwrap();
    // Further outputs of ours (statistics, second results) are compared where there is something to compare with.
    for (i, w) in wants.iter().enumerate() {
        let have = outs.get(i).ok_or("too few outputs")?;
        compare(&format!("output {i}"), have, &value(w).unwrap(), 1.0)?;
    }
    if !with_grad {
        return Ok(0);
    }
    if !outs[0].requires_grad() {
        // The derivative is zero by declaration (floor, sign): nothing is recorded.
        let zero = |w: &Json| value(w).is_none_or(|w| w.data.iter().all(|x| *x == 0.0));
        let all = case["grads"].as_array().unwrap().iter().all(zero);
        return if all { Ok(inputs.len()) } else { Err("no gradient is recorded".into()) };
    }
    let dy = value(&case["dy"]).unwrap().local(Device::Cpu).map_err(err)?;
    let leaves: Vec<Tensor> = inputs.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
    let found = interpreter::grad(&outs[..1], &leaves, &[Some(dy)], &BackwardOptions::default(), CallSite::here());
    let mut found = found.map_err(err)?.into_iter();
    let mut count = 0;
    for (i, (t, w)) in inputs.iter().zip(case["grads"].as_array().unwrap()).enumerate() {
        if !t.as_ref().is_some_and(|t| t.requires_grad()) {
            continue;
        }
        let have = found.next().flatten();
        match (have, value(w)) {
            (Some(g), Some(w)) => compare(&format!("gradient {i}"), &g, &w, 4.0)?,
            // No gradient and a gradient of zeros are the same statement.
            (None, Some(w)) if w.data.iter().all(|x| *x == 0.0) => {}
            (None, None) => {}
            (g, w) => return Err(format!("gradient {i}: {g:?} instead of {w:?}")),
        }
        count += 1;
    }
    Ok(count)
}

#[test]
fn every_op_gives_pytorchs_numbers_and_gradients() {
    let cases: Json = serde_json::from_str(include_str!("golden/ops.json")).unwrap();
    let (mut wrong, mut count): (Vec<String>, BTreeMap<&str, (usize, usize)>) = (vec![], BTreeMap::new());
    for (k, case) in cases.as_array().unwrap().iter().enumerate() {
        let name = case["op"].as_str().unwrap();
        let n = count.entry(name).or_default();
        n.0 += 1;
        match find(name).map_err(|e| e.to_string()).and_then(|op| check(op, case)) {
            Ok(g) => n.1 += g,
            Err(e) => wrong.push(format!("case {k}, {name}{} {}: {e}", case["attrs"], case["name"].as_str().unwrap())),
        }
    }
    for op in oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && !o.traits.hidden) {
        if !OURS_ALONE.contains(&op.name()) && !count.contains_key(op.name()) {
            wrong.push(format!("{} has no golden value", op.name()));
        }
    }
    let (calls, grads) = count.values().fold((0, 0), |t, n| (t.0 + n.0, t.1 + n.1));
    println!("{} ops, {calls} calls, {grads} gradients", count.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn dtypes_of_results_are_pytorchs() {
    let data: Json = serde_json::from_str(include_str!("golden/promotion.json")).unwrap();
    let ones_of =
        |d: &Json, dims: &[usize]| ones(dims, Device::Cpu.dtype(d.as_str().unwrap().parse().unwrap())).unwrap();
    let (mut wrong, mut count) = (vec![], 0);
    let mut judge = |what: String, op: &str, inputs: &[Option<Tensor>], attrs: &Json, want: &Json| {
        count += 1;
        let case = serde_json::json!({ "attrs": attrs });
        match run(find(op).unwrap(), &case, inputs) {
            Ok(t) if t[0].dtype().to_string() == want.as_str().unwrap() => {}
            Ok(t) => wrong.push(format!("{what} gives {} instead of {want}", t[0].dtype())),
            Err(e) => wrong.push(format!("{what}: {e}")),
        }
    };
    for row in data["tensors"].as_array().unwrap() {
        let zero = row["zero"].as_str().unwrap();
        let a = ones_of(&row["a"], if zero == "a" { &[] } else { &[2] });
        let b = ones_of(&row["b"], if zero == "b" { &[] } else { &[2] });
        for (op, want) in row["dtypes"].as_object().unwrap() {
            judge(format!("{op}({a}, {b})"), op, &[Some(a.clone()), Some(b.clone())], &serde_json::json!({}), want);
        }
    }
    for row in data["scalars"].as_array().unwrap() {
        let a = ones_of(&row["a"], &[2]);
        for (op, want) in row["dtypes"].as_object().unwrap() {
            judge(
                format!("{op}({a}, {})", row["s"]),
                op,
                &[Some(a.clone())],
                &serde_json::json!({ "s": row["s"] }),
                want,
            );
        }
    }
    println!("{count} dtypes");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
