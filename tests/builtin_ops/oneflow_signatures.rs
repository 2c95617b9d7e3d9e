//! Our 1-d signatures against OneFlow's (`tests/data/oneflow_sbp_signatures.json`, enumerated by running its inference and
//! read from its declarations): every sound one of an op that we have too must be offered; none of those known to be
//! unsound may be.

use oflow::ops::{AttrValue, InferCtx, Numbers, TensorType, derived_grad_op, find};
use oflow::sbp::{Sbp, Signature};
use oflow::{DType, Scalar};
use serde_json::Value as Json;

/// How an op of OneFlow's maps to ours.
struct Map {
    theirs: &'static str,
    ours: &'static str,
    /// Per input of ours the index of theirs; negative: an input that theirs does not have (then any SBP does), absent if
    /// it is optional.
    inputs: &'static [i32],
}

const fn map(theirs: &'static str, ours: &'static str, inputs: &'static [i32]) -> Map {
    Map { theirs, ours, inputs }
}

const ONE: &[i32] = &[0];
const TWO: &[i32] = &[0, 1];
const THREE: &[i32] = &[0, 1, 2];

const MAPS: &[Map] = &[
    map("relu", "relu", ONE),
    map("gelu", "gelu", ONE),
    map("silu", "silu", ONE),
    map("tanh", "tanh", ONE),
    map("sigmoid", "sigmoid", ONE),
    map("exp", "exp", ONE),
    map("log", "log", ONE),
    map("abs", "abs", ONE),
    map("negative", "neg", ONE),
    map("sqrt", "sqrt", ONE),
    map("rsqrt", "rsqrt", ONE),
    map("square", "square", ONE),
    map("erf", "erf", ONE),
    map("floor", "floor", ONE),
    map("sign", "sign", ONE),
    map("reciprocal", "reciprocal", ONE),
    map("logical_not", "logical_not", ONE),
    map("mish", "mish", ONE),
    map("selu", "selu", ONE),
    map("softsign", "softsign", ONE),
    map("log_sigmoid", "log_sigmoid", ONE),
    map("hardswish", "hardswish", ONE),
    map("hardsigmoid", "hardsigmoid", ONE),
    map("isnan", "isnan", ONE),
    map("isinf", "isinf", ONE),
    map("fast_gelu", "gelu_tanh", ONE),
    map("quick_gelu", "quick_gelu", ONE),
    map("log1p", "log1p", ONE),
    map("expm1", "expm1", ONE),
    map("sin", "sin", ONE),
    map("cos", "cos", ONE),
    map("leaky_relu", "leaky_relu", ONE),
    map("elu", "elu", ONE),
    map("hardtanh", "hardtanh", ONE),
    map("softplus", "softplus", ONE),
    map("cast", "cast", ONE),
    map("identity", "copy", ONE),
    map("copy", "copy", ONE),
    map("clip_by_scalar", "clamp", ONE),
    map("clip_by_scalar_min", "clamp_min", ONE),
    map("scalar_pow", "pow_scalar", ONE),
    map("scalar_reverse_pow", "rpow_scalar", ONE),
    map("scalar_add", "add_scalar", ONE),
    map("scalar_mul", "mul_scalar", ONE),
    map("scalar_fmod", "fmod_scalar", ONE),
    map("scalar_floordiv", "floor_divide_scalar", ONE),
    map("scalar_logical_greater", "gt_scalar", ONE),
    map("scalar_logical_equal", "eq_scalar", ONE),
    map("broadcast_add", "add", TWO),
    map("broadcast_sub", "sub", TWO),
    map("broadcast_mul", "mul", TWO),
    map("broadcast_div", "div", TWO),
    map("add_n", "add", TWO),
    map("pow", "pow", TWO),
    map("elementwise_maximum", "maximum", TWO),
    map("elementwise_minimum", "minimum", TWO),
    map("broadcast_fmod", "fmod", TWO),
    map("broadcast_equal", "eq", TWO),
    map("broadcast_less", "lt", TWO),
    map("broadcast_logical_and", "logical_and", TWO),
    map("bias_add", "add", TWO),
    map("matmul", "matmul", TWO),
    map("batch_matmul", "matmul", TWO),
    map("broadcast_matmul", "matmul", TWO),
    map("softmax", "softmax", ONE),
    map("log_softmax", "log_softmax", ONE),
    map("softmax_grad", "softmax_grad", &[1, 0]),
    map("log_softmax_grad", "log_softmax_grad", &[1, 0]),
    map("relu_grad", "relu.grad.x", &[1, 0]),
    map("gelu_grad", "gelu.grad.x", &[1, 0]),
    map("fast_gelu_grad", "gelu_tanh.grad.x", &[1, 0]),
    map("layer_norm", "layer_norm", THREE),
    map("layer_norm_grad", "layer_norm_grad", &[0, 1, 2, 3, 4]),
    map("fuse_layer_norm_grad", "layer_norm_grad", &[0, 1, 2, 3, 4]),
    map("rms_norm", "rms_norm", TWO),
    map("rms_norm_grad", "rms_norm_grad", &[0, 1, 2, 3]),
    map("reduce_sum", "sum", ONE),
    map("reduce_max", "amax", ONE),
    map("reduce_min", "amin", ONE),
    map("reduce_prod", "prod", ONE),
    map("reduce_any", "any", ONE),
    map("reduce_all", "all", ONE),
    map("argmax", "argmax", ONE),
    map("cumsum", "cumsum", ONE),
    map("transpose", "permute", ONE),
    map("reshape", "reshape", ONE),
    map("expand_dims", "reshape", ONE),
    map("squeeze", "reshape", ONE),
    map("expand", "expand", ONE),
    map("slice", "slice", ONE),
    map("narrow", "slice", ONE),
    map("concat", "concat", TWO),
    map("tril", "tril", ONE),
    map("triu", "triu", ONE),
    map("gather", "embedding", TWO),
    map("embedding", "embedding", TWO),
    map("embedding_grad", "embedding_grad", &[0, 2]),
    map("one_hot", "one_hot", ONE),
    map("where", "where", THREE),
    map("masked_fill", "masked_fill", TWO),
    map("sparse_cross_entropy", "cross_entropy", TWO),
    map("sparse_cross_entropy_ms", "cross_entropy", TWO),
    map("sparse_cross_entropy_grad", "cross_entropy_grad", &[0, 1, -1, 2]),
    map("sparse_cross_entropy_ms_grad", "cross_entropy_grad", &[0, 1, -1, 2]),
    map("nll", "nll_pick", TWO),
    map("dropout", "dropout", ONE),
    map("sgd_update", "sgd_step", &[0, 1, -1]),
    map("momentum_update", "sgd_step", &[0, 1, 2]),
    map("adam_update", "adamw_step", &[0, 1, 2, 3]),
    map("assign", "assign", TWO),
];

/// Theirs that we do not offer, each with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[(
    "sparse_cross_entropy_ms",
    "S(1), B -> P(sum)",
    "our lowering reduces the statistics inside and gives B, which is stronger",
)];

fn shapes(e: &Json) -> Option<Vec<Vec<usize>>> {
    let list =
        |v: &Json| v.as_array().map(|a| a.iter().filter_map(|n| n.as_u64().map(|n| n as usize)).collect::<Vec<_>>());
    if let Some(s) = e["call_shapes"].as_array() {
        return s.iter().map(list).collect();
    }
    Some(list(&e["ndim"])?.into_iter().map(|n| vec![4; n]).collect())
}

fn ints(v: &Json) -> Vec<i64> {
    v.as_array().map(|a| a.iter().filter_map(|n| n.as_i64()).collect()).unwrap_or_default()
}

/// Our attributes for a case of theirs; none where the case is not one of ours (a gather along another dim).
fn attributes(ours: &str, e: &Json, shapes: &[Vec<usize>]) -> Option<Vec<(&'static str, AttrValue)>> {
    let a = &e["attrs"];
    let list = |v: Vec<i64>| AttrValue::from(v);
    let x = shapes.first().cloned().unwrap_or_default();
    let int = |k: &str| a[k].as_i64();
    Some(match ours {
        "cast" => vec![("dtype", DType::I64.into())],
        "matmul" => ["transpose_a", "transpose_b"].map(|k| (k, a[k].as_bool().unwrap_or(false).into())).to_vec(),
        "sum" | "amax" | "amin" | "prod" | "any" | "all" => {
            vec![("dims", list(ints(&a["axis"]))), ("keepdim", a["keepdims"].as_bool()?.into())]
        }
        "softmax_grad" | "log_softmax_grad" | "argmax" => vec![("dim", (-1i64).into())],
        "cumsum" => vec![("dim", int("dim")?.into())],
        "permute" => vec![("dims", list(ints(&a["perm"])))],
        "reshape" => {
            let mut shape: Vec<i64> = x.iter().map(|n| *n as i64).collect();
            if a["shape"].is_array() {
                shape = ints(&a["shape"]);
            } else if let Some(d) = int("axis") {
                shape.insert(d as usize, 1);
            } else {
                shape.remove(ints(&a["axes"])[0] as usize);
            }
            vec![("shape", list(shape))]
        }
        "expand" => vec![("shape", list(ints(&a["expand_shape"])))],
        "slice" => match int("dim") {
            Some(d) => {
                let (s, n) = (int("start")?, int("length")?);
                vec![("dim", d.into()), ("start", s.into()), ("end", (s + n).into())]
            }
            None => {
                // One dim is cut, the others are whole.
                let (start, stop) = (ints(&a["start"]), ints(&a["stop"]));
                let d = (0..x.len()).find(|d| start[*d] != 0 || stop[*d] != x[*d] as i64)?;
                vec![("dim", d.into()), ("start", start[d].into()), ("end", stop[d].into())]
            }
        },
        "concat" => vec![("dim", int("axis")?.into())],
        "one_hot" => vec![("classes", int("depth")?.into())],
        "embedding" if int("axis").is_some_and(|d| d != 0) => return None,
        "embedding_grad" => vec![("rows", 4i64.into())],
        "layer_norm" => vec![("axes", (x.len() as i64 - int("begin_norm_axis")?).into())],
        "assign" | "copy" => vec![],
        _ => vec![],
    })
}

fn sbp(text: &Json) -> Option<Sbp> {
    text.as_str()?.parse().ok()
}

#[test]
fn every_sound_signature_of_oneflow_is_offered() {
    for name in ["relu", "gelu", "gelu_tanh"] {
        derived_grad_op(find(name).unwrap(), 0, Numbers::Real).unwrap();
    }
    let data: Json = serde_json::from_str(include_str!("../data/oneflow_sbp_signatures.json")).unwrap();
    let entries = data["entries"].as_array().unwrap();
    let (mut missing, mut unsound, mut compared, mut rows, mut beyond) = (vec![], vec![], 0, 0, vec![]);
    let mut used = std::collections::BTreeSet::new();
    let mut used_allowed = std::collections::BTreeSet::new();
    for e in entries {
        let name = e["op"].as_str().unwrap();
        let Some(m) = MAPS.iter().find(|m| m.theirs == name) else { continue };
        let Some(shapes) = shapes(e) else { continue };
        let case = e["case"].as_str().unwrap_or(name);
        let op = find(m.ours).unwrap();
        let theirs = e["inputs"].as_array().unwrap().len();
        let at = |i: i32| usize::try_from(i).ok().filter(|i| *i < theirs.min(shapes.len()));
        // Three and more addends, and biases along another dim than the last, are compositions of ours.
        if name == "add_n" && theirs > 2 || case == "bias_add_ax1_4d" {
            continue;
        }
        // Cases whose call did not note the shapes of all inputs.
        if m.inputs
            .iter()
            .enumerate()
            .any(|(k, i)| *i >= 0 && at(*i).is_none() && !op.sig.inputs[k.min(op.sig.inputs.len() - 1)].optional)
        {
            continue;
        }
        let Some(given) = attributes(m.ours, e, &shapes) else { continue };
        let needs: Vec<(&str, AttrValue)> = op
            .sig
            .attrs
            .iter()
            .chain(&op.sig.runtime)
            .filter(|a| a.default.is_none() && !given.iter().any(|(n, _)| *n == a.name))
            .map(|a| {
                (
                    a.name.as_str(),
                    AttrValue::Scalar(if a.kind.name() == "int" { Scalar::Int(1) } else { Scalar::Float(2.0) }),
                )
            })
            .collect();
        let given: Vec<(&str, AttrValue)> = given.into_iter().chain(needs).collect();
        let (attrs, runtime) = oflow::ops::resolve_attrs(op, &given).unwrap_or_else(|e| panic!("{case}: {e}"));
        let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
        let mut ins: Vec<Option<TensorType>> = vec![];
        for (k, i) in m.inputs.iter().enumerate() {
            let def = &op.sig.inputs[k.min(op.sig.inputs.len() - 1)];
            let dtype = match (&*def.name, def.dtypes.to_string().as_str()) {
                ("cond" | "mask", _) | (_, "bool") => DType::Bool,
                ("target", _) => DType::I64,
                _ if !def.dtypes.contains(DType::F32) => DType::I64,
                _ if ["any", "all", "logical_and", "logical_not"].contains(&m.ours) => DType::Bool,
                _ => DType::F32,
            };
            ins.push(match at(*i) {
                Some(i) => Some(TensorType::new(&shapes[i], dtype)),
                None if def.optional => None,
                // The logsumexp that only ours takes has the target's shape.
                None => Some(TensorType::new(shapes.get(1).expect("target"), dtype)),
            });
        }
        while ins.len() > 1 && ins.last().is_some_and(|t| t.is_none()) && !op.sig.inputs[ins.len() - 1].optional {
            ins.pop();
        }
        let ctx = InferCtx { op, inputs: &ins, attrs: &attrs, runtime_kinds: &kinds };
        let outs = match op.infer(&ctx) {
            Ok(o) => o,
            Err(why) => panic!("{case} does not map to {}: {why}", m.ours),
        };
        let ours = op.signatures_1d(&ctx, &outs).unwrap();
        compared += 1;
        used.insert(m.theirs);
        let fits = |s: &Signature, want_in: &[Sbp], want_out: &[Sbp]| {
            m.inputs.iter().enumerate().all(|(k, i)| {
                ins.get(k).is_none_or(|t| t.is_none()) || at(*i).is_none_or(|i| want_in.get(i) == Some(&s.inputs[k]))
            }) && s.outputs.iter().zip(want_out).all(|(a, b)| a == b)
        };
        let mut seen: Vec<&Signature> = vec![];
        for row in e["signatures"].as_array().unwrap() {
            let side = |k: &str| row[k].as_array().map(|a| a.iter().map(sbp).collect::<Option<Vec<_>>>());
            let (Some(Some(i)), Some(Some(o))) = (side("in"), side("out")) else { continue };
            rows += 1;
            let found: Vec<&Signature> = ours.iter().filter(|s| fits(s, &i, &o)).collect();
            let text = Signature::new(&i, &o).to_string();
            if !row["unsound"].is_null() {
                unsound.extend((!found.is_empty()).then(|| format!("{case}: {text}")));
            } else if found.is_empty() {
                match ALLOWED.iter().find(|(op, row, _)| *op == name && *row == text) {
                    Some(a) => {
                        used_allowed.insert(a.1);
                    }
                    None => missing.push(format!("{case} ({}): {text}", m.ours)),
                }
            }
            seen.extend(found);
        }
        let more: Vec<String> = ours.iter().filter(|s| !seen.contains(s)).map(|s| s.to_string()).collect();
        if !more.is_empty() {
            beyond.push(format!("{case} ({}): {}", m.ours, more.join("; ")));
        }
    }
    println!("{compared} cases, {rows} signatures; beyond theirs:\n{}", beyond.join("\n"));
    assert!(missing.is_empty(), "not offered:\n{}", missing.join("\n"));
    assert!(unsound.is_empty(), "unsound, yet offered:\n{}", unsound.join("\n"));
    let unused: Vec<&str> = MAPS.iter().map(|m| m.theirs).filter(|t| !used.contains(t)).collect();
    assert!(unused.is_empty(), "no case of {unused:?} was compared");
    let stale: Vec<&str> = ALLOWED.iter().map(|a| a.1).filter(|t| !used_allowed.contains(t)).collect();
    assert!(stale.is_empty(), "allowed without need: {stale:?}");
}

/// The table in `docs/oneflow-ops.md`: each of OneFlow's ops once; what is said to be here is a function or an op of that name, and what
/// is not has a reason.
#[test]
fn every_op_of_oneflow_is_here_or_has_a_reason() {
    let json: Json = serde_json::from_str(include_str!("../data/oneflow_sbp_signatures.json")).unwrap();
    let theirs: std::collections::BTreeSet<&str> =
        json["entries"].as_array().unwrap().iter().filter_map(|e| e["op"].as_str()).collect();
    let functions: std::collections::BTreeSet<String> =
        oflow::functional::functions().iter().map(|f| f.sig.name.to_string()).collect();
    let (mut told, mut here, mut wrong) = (std::collections::BTreeSet::new(), 0, vec![]);
    for line in include_str!("../../docs/oneflow-ops.md").lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, ours, remark] = cells[..] else { panic!("three columns: {line}") };
        let name = name.trim_matches('`');
        wrong.extend((!theirs.contains(name) || !told.insert(name)).then(|| format!("unknown or twice: {name}")));
        if ours == "–" {
            wrong.extend(remark.is_empty().then(|| format!("{name} is missing without a reason")));
            continue;
        }
        here += 1;
        for f in ours.split(' ').map(|f| f.trim_matches('`')) {
            let known = functions.contains(f) || find(f).is_ok();
            wrong.extend((!known).then(|| format!("{name} is said to be {f}, which is not here")));
        }
    }
    wrong.extend(theirs.iter().filter(|n| !told.contains(*n)).map(|n| format!("{n} is not in the table")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(here >= 200, "{here}");
}
