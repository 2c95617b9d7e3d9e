//! Every op against PyTorch's numbers (`tests/golden/*.json`, made by `tests/golden/make.py`): values, gradients, dtypes,
//! numbers of another kind than the tensor, and extreme values.

use oflow::functional::grad_at;
use oflow::interpreter::{Call, Target};
use oflow::ops::resolve_attrs;
use oflow::ops::{AttrValue, Op, TensorType, find};
use oflow::prelude::*;
use oflow::testing::Value;
use oflow::{BackwardOptions, CallSite, ErrorKind};
use oflow_tests::golden::{numbers, value};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Ops without a counterpart there: the numbers of random ops are ours alone (`tests/builtin_ops/rng.rs` and the kernels' tests hold
/// them to their distributions), what takes a quantised tensor (`tests/builtin_ops/dtypes/quantized.rs`), and the parts of attention
/// (`tests/tensors/global/attention_split.rs`).
const OURS_ALONE: &[&str] = &[
    "rand",
    "randn",
    "bernoulli",
    "randint",
    "dropout",
    "int_repr",
    "attention_parts",
    "ring_attention_step",
    "ring_attention_step_grad",
    "ring_attention_return",
];

fn run(op: &'static Op, attrs: &Json, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
    let given: Vec<(&str, AttrValue)> = attrs
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
        // The distance to an infinity is no larger than that infinity.
        let near = b.is_finite() && (a - b).abs() <= eps * slack * (0.3 + b.abs());
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
    let outs = run(op, &case["attrs"], &inputs).map_err(err)?;
    let wants = case["outputs"].as_array().unwrap();
    // Further outputs of ours (statistics, second results) are compared where there is something to compare with.
    for (i, w) in wants.iter().enumerate() {
        let have = outs.get(i).ok_or("too few outputs")?;
        compare(&format!("output {i}"), have, &value(w).unwrap(), 1.0)?;
    }
    if !with_grad {
        return Ok(0);
    }
    let dy = value(&case["dy"]).unwrap().local(Device::Cpu).map_err(err)?;
    let leaves: Vec<Tensor> = inputs.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
    let found = grad_at(&outs[..1], &leaves, &[Some(dy)], &BackwardOptions::default(), CallSite::here());
    let mut found = found.map_err(err)?.into_iter();
    let mut count = 0;
    for (i, (t, w)) in inputs.iter().zip(case["grads"].as_array().unwrap()).enumerate() {
        if !t.as_ref().is_some_and(|t| t.requires_grad()) {
            continue;
        }
        let have = found.next().flatten();
        match (have, value(w)) {
            (Some(g), Some(w)) => compare(&format!("gradient {i}"), &g, &w, 4.0)?,
            (None, None) => {}
            (g, w) => return Err(format!("gradient {i}: {g:?} instead of {w:?}")),
        }
        count += 1;
    }
    Ok(count)
}

#[test]
fn every_op_gives_pytorchs_numbers_and_gradients() {
    let cases: Json = serde_json::from_str(include_str!("../golden/ops.json")).unwrap();
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
    // Those of complex numbers have a file of their own, which `tests/builtin_ops/dtypes` reads.
    let complex: Vec<Json> = serde_json::from_str(include_str!("../golden/complex.json")).unwrap();
    for row in &complex {
        count.entry(row["call"].as_str().unwrap()).or_default().0 += 1;
    }
    for op in oflow::ops::all().into_iter().filter(|o| o.domain == "oflow" && !o.traits.hidden && o.layout.is_none()) {
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
    let data: Json = serde_json::from_str(include_str!("../golden/promotion.json")).unwrap();
    let ones_of =
        |d: &Json, dims: &[usize]| ones(dims, Device::Cpu.dtype(d.as_str().unwrap().parse().unwrap())).unwrap();
    let (mut wrong, mut count) = (vec![], 0);
    let mut judge = |what: String, op: &str, inputs: &[Option<Tensor>], attrs: &Json, want: &Json| {
        count += 1;
        match run(find(op).unwrap(), attrs, inputs) {
            Ok(t) if t[0].dtype().to_string() == want.as_str().unwrap() => {}
            // PyTorch promotes u16 and u32 with floats alone.
            Err(e) if want == "refused" && e.kind() == ErrorKind::DType => {}
            Ok(_) if want == "refused" && inputs.iter().flatten().any(|t| t.dtype() == DType::Bool) => {}
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

/// A tensor of integers, halves or bools with a number of any kind: the result has PyTorch's dtype and values.
#[test]
fn numbers_take_part_as_in_pytorch() {
    let data: Json = serde_json::from_str(include_str!("../golden/scalars.json")).unwrap();
    let (mut wrong, mut count) = (vec![], 0);
    for table in data.as_array().unwrap() {
        let xs = numbers(&table["x"]);
        // i64 beyond 2^53 is read exactly.
        let ints: Vec<i64> = table["x"].as_array().unwrap().iter().filter_map(Json::as_i64).collect();
        let dtype: DType = table["dtype"].as_str().unwrap().parse().unwrap();
        let x = match dtype {
            DType::I64 => from_vec(ints, [xs.len()], Device::Cpu).unwrap(),
            d => Value { ty: TensorType::new(&[xs.len()], d), data: xs }.local(Device::Cpu).unwrap(),
        };
        let mask = full([], true, Device::Cpu.dtype(DType::Bool)).unwrap();
        for row in table["rows"].as_array().unwrap() {
            count += 1;
            let (name, s) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
            let mut inputs = vec![Some(x.clone())];
            inputs.extend((name == "masked_fill").then(|| Some(mask.clone())));
            let what = format!("{name}({x}, {s})");
            let have = match name {
                "clamp_min" => run(find(name).unwrap(), &serde_json::json!({ "min": s }), &inputs),
                "clamp_max" => run(find(name).unwrap(), &serde_json::json!({ "max": s }), &inputs),
                _ => run(find(name).unwrap(), &serde_json::json!({ "s": s }), &inputs),
            };
            let Some(want) = row[2].as_str() else {
                if let Ok(y) = have {
                    wrong.push(format!("{what} is refused by PyTorch, not {:?}", y[0].to_f64_vec()));
                }
                continue;
            };
            let want = Value { ty: TensorType::new(x.shape(), want.parse().unwrap()), data: numbers(&row[3]) };
            match have {
                Ok(y) => wrong.extend(compare(&what, &y[0], &want, 1.0).err()),
                Err(e) => wrong.push(format!("{what}: {e}")),
            }
        }
    }
    println!("{count} calls");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where PyTorch has NaN and we the limit, each with the reason.
const LIMITS: &[(&str, &str)] = &[
    ("gelu", "its vectorised f32 has NaN at infinity, its f64 infinity"),
    ("softsign", "its derivative is that of a quotient of infinities"),
    ("pow_scalar", "to the power 0.5 it takes the square root, which is NaN at minus infinity"),
    ("rdiv_scalar", "the square of x in its derivative overflows"),
];

/// Elementwise ops and their gradients at zeros of both signs, tiny, large, infinite values and NaN.
#[test]
fn extreme_values_give_pytorchs_values_and_gradients() {
    let data: Json = serde_json::from_str(include_str!("../golden/extremes.json")).unwrap();
    let grid = |name: &str| numbers(&data["grid"][name]);
    let pairs: Vec<(f64, f64)> =
        grid("pairs").iter().flat_map(|a| grid("pairs").into_iter().map(|b| (*a, b))).collect();
    let (mut wrong, mut count) = (vec![], 0);
    for case in data["cases"].as_array().unwrap() {
        let (name, dtype) = (case["op"].as_str().unwrap(), case["dtype"].as_str().unwrap());
        let inputs: Vec<Vec<f64>> = match case["inputs"].as_u64() {
            Some(1) => vec![grid(dtype)],
            _ => vec![pairs.iter().map(|p| p.0).collect(), pairs.iter().map(|p| p.1).collect()],
        };
        let dtype: DType = dtype.parse().unwrap();
        let ty = TensorType::new(&[inputs[0].len()], dtype);
        let with_grad = !case["grads"].is_null();
        let (eps, least) = if dtype == DType::F32 { (4e-6, 1e-6) } else { (1e-8, 1e-15) };
        let leaf = |data: &Vec<f64>| {
            Value { ty: ty.clone(), data: data.clone() }.local(Device::Cpu)?.requires_grad_(with_grad)
        };
        let found = || -> Result<Vec<Option<Tensor>>> {
            let xs: Vec<Option<Tensor>> = inputs.iter().map(|x| leaf(x).map(Some)).collect::<Result<_>>()?;
            let y = run(find(name)?, &case["attrs"], &xs)?.swap_remove(0);
            if !with_grad {
                return Ok(vec![Some(y)]);
            }
            let leaves: Vec<Tensor> = xs.into_iter().flatten().collect();
            let dy = ones(y.shape(), Device::Cpu.dtype(dtype))?;
            let grads =
                grad_at(std::slice::from_ref(&y), &leaves, &[Some(dy)], &BackwardOptions::default(), CallSite::here())?;
            Ok(std::iter::once(Some(y)).chain(grads).collect())
        };
        let found = match found() {
            Ok(f) => f,
            Err(e) => {
                wrong.push(format!("{name} {}: {e}", case["attrs"]));
                continue;
            }
        };
        let mut wants = vec![&case["y"]];
        wants.extend(case["grads"].as_array().into_iter().flatten());
        for (k, (have, want)) in found.iter().zip(wants).enumerate() {
            let what = if k == 0 { "value".to_string() } else { format!("gradient {}", k - 1) };
            let Some(have) = have else {
                wrong.push(format!("{name} {dtype} {}: no {what}", case["attrs"]));
                continue;
            };
            for (i, (a, b)) in have.to_f64_vec().unwrap().into_iter().zip(numbers(want)).enumerate() {
                count += 1;
                let limit =
                    b.is_nan() && inputs.iter().all(|x| !x[i].is_nan()) && LIMITS.iter().any(|(op, _)| *op == name);
                let same = limit || a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= eps * b.abs() + least;
                if !same {
                    let at: Vec<f64> = inputs.iter().map(|x| x[i]).collect();
                    wrong.push(format!("{name} {dtype} {}: {what} at {at:?} is {a:e} instead of {b:e}", case["attrs"]));
                }
            }
        }
    }
    println!("{count} numbers");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// f16 and bf16 are accumulated in f32 wherever elements are reduced, on one device and in any layout.
#[test]
fn halves_accumulate_in_f32() {
    for dtype in [DType::F16, DType::BF16] {
        let half = || Device::Cpu.dtype(dtype);
        let x = ones([70_000], half()).unwrap();
        assert_eq!(x.mean(()).unwrap().to_f64_vec().unwrap(), [1.0], "{dtype}");
        assert_eq!(x.var(()).unwrap().to_f64_vec().unwrap(), [0.0], "{dtype}");
        // One square is beyond f16, their mean is not.
        let mut spread = vec![0.0; 1024];
        (spread[0], spread[1]) = (300.0, -300.0);
        let y = from_vec(spread, [1024], Device::Cpu).unwrap().cast(dtype).unwrap();
        let var = y.var(()).unwrap().to_f64_vec().unwrap()[0];
        assert!((var - 175.95).abs() < 1.0, "{dtype}: {var}");
        // The gradient of a largest element that 70,000 others equal.
        let top = ones([70_000], half()).unwrap().requires_grad_(true).unwrap();
        top.amax(()).unwrap().mul(60_000.0).unwrap().backward().unwrap();
        let g = top.grad().unwrap().to_f64_vec().unwrap()[7];
        assert!((g - 60_000.0 / 70_000.0).abs() < 0.01, "{dtype}: {g}");
    }
    for ranks in [2, 3] {
        oflow::run_ranks(ranks, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            for dtype in [DType::F16, DType::BF16] {
                for (name, sbp) in [("S(0)", sbp![S(0)]), ("B", sbp![B]), ("P", sbp![P])] {
                    let x = ones([150_000], (&mesh, sbp.clone()).dtype(dtype))?;
                    // Each rank rounds its part of the mean.
                    let near = |y: f64| (y - 1.0).abs() <= if dtype == DType::F16 { 5e-4 } else { 4e-3 };
                    assert!(near(x.mean(())?.item()?), "{dtype} {name}");
                    let m = ones([100_000, 3], (&mesh, sbp).dtype(dtype))?.mean(0)?;
                    assert!(m.to_f64_vec()?.into_iter().all(near), "{dtype} {name}");
                }
                // A sum of exponentials beyond f16 and beyond the integers of bf16, over a split dim.
                let x = zeros([100_000], (&mesh, sbp![S(0)]).dtype(dtype))?;
                let y = x.log_softmax(0)?.to_f64_vec()?[5];
                assert!((y + 100_000f64.ln()).abs() < 0.05, "{dtype}: {y}");
                let y = x.softmax(0)?.to_f64_vec()?[5];
                assert!((y - 1e-5).abs() < 2e-7, "{dtype}: {y}");
            }
            Ok(())
        })
        .unwrap();
    }
}

/// Dims 0 and -1 of a tensor without dims, and dims that are not there.
#[test]
fn a_tensor_without_dims_takes_dims_0_and_minus_1() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let local = full([], 3.0, Device::Cpu)?;
        let global = distribute(&local, (&mesh, sbp![B]))?;
        for x in [local, global] {
            for d in [0, -1] {
                let all = [
                    x.sum(d)?,
                    x.sum_keepdim(d)?,
                    x.mean(d)?,
                    x.mean_keepdim(d)?,
                    x.prod(d)?,
                    x.amax(d)?,
                    x.amin(d)?,
                    x.cumsum(d)?,
                    x.squeeze(d)?,
                    x.flatten(d, d)?.squeeze(0)?,
                ];
                let biased = oflow::functional::VarOptions { correction: 0.0 };
                for (i, y) in all.iter().enumerate() {
                    assert_eq!((y.shape(), y.item()?), (&[][..], 3.0), "{i}");
                }
                let zeros = [x.argmax(d)?, x.argmin(d)?, x.var_with(d, &biased)?, x.log_softmax(d)?];
                assert!(x.var(d)?.item()?.is_nan());
                for (i, y) in zeros.iter().enumerate() {
                    assert_eq!((y.shape(), y.item()?), (&[][..], 0.0), "{i}");
                }
                let ones = [x.softmax(d)?, x.any(d)?, x.all(d)?];
                for (i, y) in ones.iter().enumerate() {
                    assert_eq!((y.shape(), y.item()?), (&[][..], 1.0), "{i}");
                }
            }
            for e in [x.sum(1), x.mean(-2), x.softmax(1), x.cumsum(1), x.argmax(1), x.sum([0, -1]), x.squeeze(1)] {
                let e = e.unwrap_err();
                assert!(matches!(e.kind(), oflow::ErrorKind::Argument | oflow::ErrorKind::Value), "{e}");
            }
        }
        Ok(())
    })
    .unwrap();
}

/// In place the result is converted to the tensor's dtype where PyTorch does so, and refused where it does.
#[test]
fn in_place_results_keep_the_tensors_dtype() {
    let held = |d: DType, x: f64| full([2], x, Device::Cpu.dtype(d)).unwrap();
    let value = |t: &Tensor| (t.dtype(), t.to_f64_vec().unwrap()[1]);
    assert_eq!(value(held(DType::I32, 1.0).add_(&held(DType::I64, 1099511627776.0)).unwrap()), (DType::I32, 1.0));
    assert_eq!(value(held(DType::U8, 1.0).add_(&held(DType::I64, 300.0)).unwrap()), (DType::U8, 45.0));
    assert_eq!(value(held(DType::U8, 1.0).add_(-3).unwrap()), (DType::U8, 254.0));
    assert_eq!(value(held(DType::F32, 1.0).add_(&held(DType::F64, 1.0)).unwrap()), (DType::F32, 2.0));
    assert_eq!(value(held(DType::F16, 1.0).mul_(&held(DType::F32, 3.0)).unwrap()), (DType::F16, 3.0));
    assert_eq!(value(held(DType::I64, 3.0).zero_().unwrap()), (DType::I64, 0.0));
    for e in [
        held(DType::I32, 1.0).add_(1.5).map(|_| ()),
        held(DType::Bool, 1.0).add_(1).map(|_| ()),
        held(DType::I64, 1.0).div_(2).map(|_| ()),
        held(DType::Bool, 1.0).mul_(&held(DType::I64, 2.0)).map(|_| ()),
        held(DType::I64, 1.0).mul_(&held(DType::F32, 2.0)).map(|_| ()),
    ] {
        let e = e.unwrap_err();
        assert_eq!(e.kind(), oflow::ErrorKind::DType);
        assert!(e.message().contains("cannot be written in place into"), "{e}");
    }
    // The gradient has the dtype of what it belongs to.
    let w = held(DType::F64, 2.0).requires_grad_(true).unwrap();
    let x = held(DType::F32, 3.0).requires_grad_(true).unwrap();
    let y = x.mul(1.0).unwrap();
    y.add_(&w).unwrap();
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(value(&w.grad().unwrap()), (DType::F64, 1.0));
    assert_eq!(value(&x.grad().unwrap()), (DType::F32, 1.0));
}

/// The gradient of a step function is a tensor of zeros, also where the step is a part of the way only.
#[test]
fn step_functions_have_gradients_of_zeros() {
    let x = from_vec(vec![1.5f32, -2.5, f32::INFINITY], [3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    x.sign().unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
    let y = x.floor().unwrap().mul(f32::INFINITY).unwrap();
    let g = oflow::functional::grad(&[y.sum(()).unwrap()], &[x], &BackwardOptions::default()).unwrap();
    assert_eq!(g[0].as_ref().unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
}
