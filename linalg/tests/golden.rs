//! Against PyTorch: `golden.json` holds what it gives, made by `golden.py`.

use oflow::functional::{Arg, call};
use oflow::ops::AttrValue;
use oflow::prelude::*;
use serde_json::Value as Json;

const GOLDEN: &str = include_str!("golden.json");

/// A number; NaN and infinities are texts.
fn number(v: &Json) -> f64 {
    v.as_f64().unwrap_or_else(|| v.as_str().and_then(|s| s.parse().ok()).expect("a number"))
}

fn numbers(v: &Json) -> Vec<f64> {
    v["data"].as_array().expect("data").iter().map(number).collect()
}

fn shape(v: &Json) -> Vec<usize> {
    v["shape"].as_array().expect("shape").iter().map(|n| n.as_u64().expect("a size") as usize).collect()
}

fn t(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}

/// The call by name, in the form that golden.py compares.
fn run(op: &str, xs: &[Tensor], attrs: &[(&str, Arg)]) -> Result<Vec<Tensor>> {
    let symmetric = |x: &Tensor| x.add(&t(x)?)?.mul(0.5);
    let named = |op: &str, xs: &[Tensor]| {
        let args: Vec<Arg> = xs.iter().map(|x| x.into()).collect();
        call(&format!("linalg.{op}"), &args, attrs)
    };
    let square = |x: &Tensor| x.ndim() >= 2 && x.shape()[x.ndim() - 2] == x.shape()[x.ndim() - 1];
    match op {
        "slogdet" => Ok(vec![named("slogdet", xs)?.swap_remove(1)]),
        "slogdet_sign" => Ok(vec![named("slogdet", xs)?.swap_remove(0)]),
        "cholesky" if square(&xs[0]) => named(op, &[symmetric(&xs[0])?]),
        "eigh" if square(&xs[0]) => {
            let out = named(op, &[symmetric(&xs[0])?])?;
            let (v, q) = (&out[0], &out[1]);
            Ok(vec![q.mul(&v.exp()?.unsqueeze(-2)?)?.matmul(&t(q)?)?, v.clone(), q.mul(q)?])
        }
        "matrix_rank" => Ok(vec![named(op, xs)?[0].cast(xs[0].dtype())?]),
        "lstsq" => Ok(vec![named(op, xs)?.swap_remove(0)]),
        "lstsq_residuals" => Ok(vec![named("lstsq", xs)?.swap_remove(1)]),
        "lstsq_rank" => Ok(vec![named("lstsq", xs)?[2].cast(xs[0].dtype())?]),
        "multi_dot" => call("linalg.multi_dot", &[Arg::Tensors(xs.to_vec())], attrs),
        "svd_values" => Ok(vec![named("svd", xs)?.swap_remove(1)]),
        "svd" => {
            let out = named(op, xs)?;
            let (u, s, vh) = (&out[0], &out[1], &out[2]);
            let k = s.shape()[s.ndim() - 1];
            let (u, vh) = (u.narrow(-1, 0, k)?, vh.narrow(-2, 0, k)?);
            let near = u.mul(&s.exp()?.unsqueeze(-2)?)?.matmul(&vh)?;
            Ok(vec![near, s.clone(), u.mul(&u)?, vh.mul(&vh)?])
        }
        "lu_parts" => Ok(vec![named("lu_factor_ex", xs)?.swap_remove(0)]),
        "lu_pivots" => Ok(vec![named("lu_factor_ex", xs)?[1].cast(xs[0].dtype())?]),
        "ldl_parts" => Ok(vec![named("ldl_factor_ex", &[symmetric(&xs[0])?])?.swap_remove(0)]),
        "ldl_pivots" => Ok(vec![named("ldl_factor_ex", &[symmetric(&xs[0])?])?[1].cast(xs[0].dtype())?]),
        "inv_ex" | "solve_ex" => Ok(vec![named(op, xs)?.swap_remove(0)]),
        "cholesky_ex" => Ok(vec![named(op, &[symmetric(&xs[0])?])?.swap_remove(0)]),
        "matrix_sqrth" => named(op, &[symmetric(&xs[0])?]),
        "householder_product" if xs[0].numel() > 0 => named(op, &[xs[0].clone(), xs[0].select(-2, 0)?.mul(0.5)?]),
        "householder_product" => Ok(xs.to_vec()),
        "torch.slogdet" => Ok(vec![call("slogdet", &[(&xs[0]).into()], attrs)?.swap_remove(1)]),
        _ => match op.strip_prefix("torch.") {
            Some(bare) => call(bare, &xs.iter().map(Arg::from).collect::<Vec<_>>(), attrs),
            None => named(op, xs),
        },
    }
}

fn near(what: &str, have: &Tensor, want: &Json, dtype: DType, f32_limit: f64) -> Result<()> {
    assert_eq!((have.shape(), have.dtype()), (shape(want).as_slice(), dtype), "{what}");
    let (have, want) = (have.to_f64_vec()?, numbers(want));
    // Numbers of one matrix are made together, so what is small among large ones has their rounding.
    let most = want.iter().filter(|x| x.is_finite()).fold(1.0, |m: f64, x| m.max(x.abs()));
    let limit = most * if dtype == DType::F64 { 1e-9 } else { f32_limit };
    for (i, (a, b)) in have.iter().zip(&want).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= limit;
        assert!(same, "{what}, element {i}: {a} and not {b} (limit {limit:e})\n{have:?}\n{want:?}");
    }
    Ok(())
}

#[test]
fn calls_give_what_pytorch_gives() -> Result<()> {
    oflow_linalg::register()?;
    let all: Vec<Json> = serde_json::from_str(GOLDEN).expect("golden.json");
    let (mut outputs, mut grads, mut errors) = (0, 0, 0);
    for (k, row) in all.iter().enumerate() {
        let op = row["op"].as_str().expect("op");
        let dtype: DType = row["dtype"].as_str().expect("dtype").parse()?;
        let wants_grad = row.get("grads").is_some_and(|g| g.as_array().is_some_and(|g| g.iter().any(|g| !g.is_null())));
        let input = |v: &Json| {
            let x = from_vec(numbers(v), shape(v), Device::Cpu)?.cast(dtype)?;
            if wants_grad { x.requires_grad_(true) } else { Ok(x) }
        };
        let xs: Vec<Tensor> = row["inputs"].as_array().expect("inputs").iter().map(input).collect::<Result<_>>()?;
        let attrs: Vec<(&str, Arg)> = row["attrs"]
            .as_object()
            .expect("attrs")
            .iter()
            .map(|(name, v)| {
                let value: AttrValue = match v {
                    Json::Bool(b) => (*b).into(),
                    Json::Number(n) => n.as_i64().map_or_else(|| number(v).into(), AttrValue::from),
                    Json::Array(all) => {
                        let ints: Vec<i64> = all.iter().map(|n| n.as_i64().expect("an integer")).collect();
                        ints.as_slice().into()
                    }
                    Json::String(s) if s.ends_with("inf") => number(v).into(),
                    other => other.as_str().expect("a word").into(),
                };
                (name.as_str(), Arg::Attr(value))
            })
            .collect();
        let shapes: Vec<Vec<usize>> = xs.iter().map(|x| x.shape().to_vec()).collect();
        let what = format!("call {k}, {op} {dtype}{shapes:?} {}", row["attrs"]);
        let made = run(op, &xs, &attrs);
        if let Some(error) = row.get("error") {
            let e = made.err().unwrap_or_else(|| panic!("{what}: PyTorch refuses it: {error}"));
            let named = if op.starts_with("slogdet") { "slogdet" } else { op };
            assert!(e.to_string().contains(named), "{what}: {e}");
            errors += 1;
            continue;
        }
        let made = made.map_err(|e| e.within(|| what.clone()))?;
        let wants = row["outputs"].as_array().expect("outputs");
        assert_eq!(made.len(), wants.len(), "{what}");
        for (i, (have, want)) in made.iter().zip(wants).enumerate() {
            near(&format!("{what}, output {i}"), have, want, dtype, 2e-5)?;
            outputs += 1;
        }
        if !wants_grad {
            continue;
        }
        let mut loss = from_vec(vec![0.0], [], Device::Cpu)?.cast(dtype)?;
        for (k, y) in made.iter().enumerate() {
            let w: Vec<f64> = (0..y.numel()).map(|i| ((5 * i + 3 * k) % 7) as f64 / 4.0 - 0.6).collect();
            loss = loss.add(&y.mul(&from_vec(w, y.shape(), Device::Cpu)?.cast(dtype)?)?.sum(())?)?;
        }
        loss.backward()?;
        for (i, (x, want)) in xs.iter().zip(row["grads"].as_array().expect("grads")).enumerate() {
            let have = x.grad().unwrap_or_else(|| panic!("{what}: input {i} has no gradient"));
            near(&format!("{what}, gradient {i}"), &have, want, dtype, 2e-3)?;
            grads += 1;
        }
    }
    println!("{} calls: {outputs} outputs, {grads} gradients, {errors} errors", all.len());
    assert!(outputs > 350 && grads > 250 && errors > 50, "{outputs} {grads} {errors}");
    Ok(())
}
