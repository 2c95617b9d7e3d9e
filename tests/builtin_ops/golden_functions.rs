//! Functions of several ops against PyTorch's numbers (`tests/golden/functions.json`, made by `tests/golden/functions.py`): values and
//! gradients, of local tensors and of global ones on meshes of one and two axes, whatever their layouts.

use oflow::BackwardOptions;
use oflow::functional::{Arg, call, grad_from};
use oflow::graph::{Graph, GraphOptions};
use oflow::ops::{AttrValue, TensorType};
use oflow::prelude::*;
use oflow::testing::layout::deal;
use oflow::testing::{Value, mix};
use oflow_tests::{calls_selected, cases as part, golden::value, programs::round_trip};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// A layout for a tensor of that type, drawn: P of floats only.
fn layout(mesh: &Placement, ty: &TensorType, seed: u64) -> NdSbp {
    let one = |axis: u64| match mix(&[seed, axis]) % 5 {
        0 => Sbp::Broadcast,
        1 if ty.dtype.is_float() => Sbp::PARTIAL_SUM,
        r if !ty.shape.is_empty() => Sbp::Split(r as usize % ty.shape.len()),
        _ => Sbp::Broadcast,
    };
    (0..mesh.axes() as u64).map(one).collect()
}

/// A case's tensors: local ones, or global ones in layouts of the seed.
struct Leaves<'a> {
    place: Option<(&'a Placement, u64)>,
    rank: usize,
    with_grad: bool,
    made: Vec<Tensor>,
}

impl Leaves<'_> {
    fn place(&self, v: &Value, seed: u64) -> Result<Tensor> {
        let Some((mesh, of)) = self.place else { return v.local(Device::Cpu) };
        let sbp = layout(mesh, &v.ty, mix(&[of, seed]));
        // Not every NaN or infinity has parts.
        let sbp = if !sbp.has_partial() || v.data.iter().all(|x| x.is_finite()) {
            sbp
        } else {
            NdSbp::broadcast(mesh.axes())
        };
        match sbp.has_partial() {
            true => {
                let position = mesh.position(self.rank).unwrap();
                deal(v, mesh, &sbp, position).local(Device::Cpu)?.to_global((mesh, sbp))
            }
            false => distribute(&v.local(Device::Cpu)?, (mesh, sbp)),
        }
    }
    fn tensor(&mut self, v: &Json) -> Result<Tensor> {
        let v = value(v).unwrap();
        let t = self.place(&v, self.made.len() as u64)?;
        let t = if self.with_grad && t.dtype().is_float() { t.requires_grad_(true)? } else { t };
        self.made.push(t.clone());
        Ok(t)
    }
    fn arg(&mut self, a: &Json) -> Result<Arg> {
        let (kind, v) = a.as_object().unwrap().iter().next().unwrap();
        Ok(match kind.as_str() {
            "tensor" => Arg::Tensor(self.tensor(v)?),
            "tensors" => Arg::Tensors(v.as_array().unwrap().iter().map(|t| self.tensor(t)).collect::<Result<_>>()?),
            "int" => v.as_i64().unwrap().into(),
            "float" => v.as_str().unwrap().parse::<f64>().unwrap().into(),
            "bool" => v.as_bool().unwrap().into(),
            "text" => v.as_str().unwrap().into(),
            "ints" => Arg::Attr(AttrValue::from(
                &v.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect::<Vec<_>>()[..],
            )),
            "floats" => Arg::Attr(AttrValue::from(
                v.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect::<Vec<_>>(),
            )),
            other => panic!("{other}"),
        })
    }
}

fn compare(what: &str, have: &Tensor, want: &Value, slack: f64) -> std::result::Result<(), String> {
    if *have.ty() != want.ty {
        return Err(format!("{what} is {} instead of {}", have.ty(), want.ty));
    }
    let eps = match want.ty.dtype {
        DType::F64 => 1e-11,
        DType::F32 => 5e-6,
        DType::BF16 => 1.2e-2,
        _ => 0.0,
    };
    let data = have.to_f64_vec().map_err(|e| e.to_string())?;
    match data.iter().zip(&want.data).position(|(a, b)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        // The distance to an infinity is no larger than that infinity; to NaN it is not larger than anything.
        let near = b.is_finite() && (a - b).abs() <= eps * slack * (0.5 + b.abs());
        !same && !near
    }) {
        Some(i) => Err(format!("{what}: element {i} is {} instead of {}", data[i], want.data[i])),
        None => Ok(()),
    }
}

/// Results of a function, and the gradients of the tensors that have one.
type Computed = (Vec<Tensor>, Vec<Option<Tensor>>);

/// How the function of a case is computed.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Eager,
    /// Captured as a graph, which is run once.
    Graph,
}

impl How {
    fn compute(self, f: impl Fn() -> Result<Computed>) -> Result<Computed> {
        if self == How::Eager {
            return f();
        }
        let (mut results, mut there) = (0, vec![]);
        let mut graph = Graph::build(
            |_| {
                let (outs, grads) = f()?;
                results = outs.len();
                there = grads.iter().map(Option::is_some).collect();
                Ok(outs.into_iter().chain(grads.into_iter().flatten()).collect::<Vec<_>>())
            },
            GraphOptions::default(),
        )?;
        round_trip(graph.program());
        let mut all = graph.run(&[])?.into_iter();
        let outs = all.by_ref().take(results).collect();
        Ok((outs, there.iter().map(|there| if *there { all.next() } else { None }).collect()))
    }
}

/// Runs a case and compares; the number of gradients.
fn check(case: &Json, place: Option<(&Placement, u64)>, rank: usize, how: How) -> std::result::Result<usize, String> {
    let err = |e: Error| e.to_string();
    let with_grad = !case["grads"].is_null();
    let mut leaves = Leaves { place, rank, with_grad, made: vec![] };
    let args: Vec<Arg> =
        case["args"].as_array().unwrap().iter().map(|a| leaves.arg(a)).collect::<Result<_>>().map_err(err)?;
    let named: Vec<(&str, Arg)> = case["named"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(n, a)| Ok((n.as_str(), leaves.arg(a)?)))
        .collect::<Result<_>>()
        .map_err(err)?;
    let dy = with_grad.then(|| leaves.place(&value(&case["dy"]).unwrap(), 99)).transpose().map_err(err)?;
    let wrt: Vec<&Tensor> = leaves.made.iter().filter(|t| t.requires_grad()).collect();
    let compute = || {
        let outs = call(case["function"].as_str().unwrap(), &args, &named)?;
        let found = match &dy {
            Some(dy) => grad_from(&outs[..1], &wrt, &[Some(dy.clone())], &BackwardOptions::default())?,
            None => vec![],
        };
        Ok((outs, found))
    };
    let (outs, found) = how.compute(compute).map_err(err)?;
    let wants = case["outputs"].as_array().unwrap();
    if outs.len() != wants.len() {
        return Err(format!("{} results instead of {}", outs.len(), wants.len()));
    }
    for (i, w) in wants.iter().enumerate() {
        compare(&format!("result {i}"), &outs[i], &value(w).unwrap(), 1.0)?;
    }
    if !with_grad {
        return Ok(0);
    }
    let mut found = found.into_iter();
    let mut count = 0;
    for (i, (t, w)) in leaves.made.iter().zip(case["grads"].as_array().unwrap()).enumerate() {
        if !t.requires_grad() {
            continue;
        }
        match (found.next().flatten(), value(w)) {
            (Some(g), Some(w)) => compare(&format!("gradient {i}"), &g, &w, 4.0)?,
            (None, None) => {}
            // PyTorch leaves out what is zero by structure, or says so with zeros.
            (Some(g), None) if g.to_f64_vec().map_err(err)?.iter().all(|x| *x == 0.0) => {}
            (None, Some(w)) if w.data.iter().all(|x| *x == 0.0) => {}
            (g, w) => return Err(format!("gradient {i}: {g:?} instead of {w:?}")),
        }
        count += 1;
    }
    Ok(count)
}

/// The calls of the file; of ops that are selected, those that call one.
fn cases() -> Vec<Json> {
    let all: Json = serde_json::from_str(include_str!("../golden/functions.json")).unwrap();
    let all = all.as_array().unwrap().iter();
    all.filter(|case| calls_selected(|one| check(case, Some((one, 0)), 0, How::Eager))).cloned().collect()
}

fn told(k: usize, case: &Json, why: &str) -> String {
    let shown = |a: &Json| match a.as_object().and_then(|o| o.iter().next()) {
        Some((kind, v)) if kind == "tensor" => format!("{}{}", v["dtype"], v["shape"]),
        Some((_, v)) if !v.is_array() || v[0].is_number() => v.to_string(),
        _ => "tensors".into(),
    };
    let args: Vec<String> = case["args"].as_array().unwrap().iter().map(shown).collect();
    let named: Vec<String> =
        case["named"].as_object().unwrap().iter().map(|(n, a)| format!("{n}={}", shown(a))).collect();
    format!("case {k} {}({}; {}): {why}", case["function"], args.join(", "), named.join(", "))
}

#[test]
fn functions_give_pytorchs_numbers_and_gradients() {
    let (mut wrong, mut grads, mut names) = (vec![], 0, BTreeSet::new());
    let all = cases();
    for (k, case) in all.iter().enumerate() {
        names.insert(case["function"].to_string());
        match check(case, None, 0, How::Eager) {
            Ok(n) => grads += n,
            Err(e) => wrong.push(told(k, case, &e)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    println!("{} calls of {} functions, {grads} gradients", all.len(), names.len());
}

/// Every call in one layout on two ranks, one of three on the other meshes; in two layouts on all of them with `OFLOW_CASES=all`.
#[test]
fn and_so_they_do_on_every_mesh_in_any_layout() {
    let all = cases();
    for mesh in [&[1][..], &[2], &[3], &[2, 2]] {
        let n: usize = mesh.iter().product();
        let ranks = oflow::run_ranks(n, |world| {
            let place = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), mesh)?;
            let mut wrong = vec![];
            // Equal elements have no deviation only where their mean is not put together from rounded parts. The parts of a sum
            // are rounded to its dtype: too coarse for the result of a wider one, and where terms of halves cancel.
            let coarse = ["equal", "two dtypes", "bf16"];
            let fine = |case: &Json| !coarse.iter().any(|note| case["note"] == *note);
            // The same on each rank.
            let mut take = part::one_in(if mesh == [2] { 1 } else { 3 });
            for (k, case) in all.iter().enumerate().filter(|(_, case)| fine(case) && take()) {
                for draw in 0..part::draws(1, 2) as u64 {
                    if let Err(e) = check(case, Some((&place, mix(&[k as u64, draw]))), world.rank(), How::Eager) {
                        wrong.push(told(k, case, &e));
                    }
                }
            }
            Ok(wrong)
        })
        .unwrap();
        assert!(ranks[0].is_empty(), "{mesh:?}, {} wrong:\n{}", ranks[0].len(), ranks[0].join("\n"));
    }
}

/// Captured, every function gives the same, but those that read values or make tensors of lengths that depend on them.
#[test]
fn and_so_they_do_as_graphs() {
    let all = cases();
    let refused = |e: &str| e.contains("depends on values") || e.contains("has no value while its graph is captured");
    let run = |place: Option<(&Placement, u64)>, rank: usize| {
        let (mut wrong, mut skipped) = (vec![], BTreeSet::new());
        for (k, case) in all.iter().enumerate() {
            let eager = check(case, place, rank, How::Eager);
            match check(case, place, rank, How::Graph) {
                Err(e) if refused(&e) => drop(skipped.insert(case["function"].to_string())),
                graph if graph == eager => {}
                Ok(_) => wrong.push(told(k, case, "runs as a graph only")),
                Err(e) => wrong.push(told(k, case, &e)),
            }
        }
        (wrong, skipped)
    };
    let (wrong, skipped) = run(None, 0);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    println!("not captured: {skipped:?}");
    let ranks = oflow::run_ranks(2, |world| {
        let place = Placement::new(Device::Cpu, &[0, 1], &[2])?;
        Ok(run(Some((&place, 7)), world.rank()).0)
    });
    let wrong = ranks.unwrap().remove(0);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// What PyTorch gives in new memory shares none with its argument here either, also where nothing is left to do.
#[test]
fn results_that_are_no_views_share_no_memory() {
    let make = || arange(9, Device::Cpu.dtype(DType::F32)).unwrap().reshape([3, 3]).unwrap().copy().unwrap();
    type Function = fn(&Tensor) -> Result<Tensor>;
    let all: [(&str, Function); 9] = [
        ("repeat", |x| x.repeat([1, 1])),
        ("repeat with a dim more", |x| x.repeat([1, 1, 1])),
        ("tile", |x| x.tile([1, 1, 1])),
        ("repeat_interleave", |x| x.repeat_interleave(1)),
        ("diag", |x| x.diag(0)),
        ("roll", |x| x.roll(0, 0)),
        ("rot90", |x| x.rot90(4, [0, 1])),
        ("einsum", |x| einsum("ij->ij", [x])),
        ("gather", |x| x.gather(0, &zeros([3, 3], Device::Cpu.dtype(DType::I64))?)),
    ];
    let shared = all.iter().filter(|(_, f)| {
        let x = make();
        f(&x).unwrap().add_(1.0).unwrap();
        x.to_vec::<f32>().unwrap() != make().to_vec::<f32>().unwrap()
    });
    assert_eq!(shared.map(|(name, _)| *name).collect::<Vec<_>>(), [""; 0]);
}
