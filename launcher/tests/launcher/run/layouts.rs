//! The same call on other meshes and in other layouts gives the same logical values and gradients; random ones too.

use serde_json::{Value, json};

use super::calls::{on, tensor};
use super::{close, eighths, numbers, outputs};
use oflow::testing::Random;

/// Kinds of calls that the random ones are made of: a function of one or two tensors of one shape, or a product.
const FUNCTIONS: &[&str] = &[
    "relu",
    "neg",
    "exp",
    "tanh",
    "square",
    "sum",
    "mean",
    "amax",
    "softmax",
    "log_softmax",
    "cumsum",
    "add",
    "sub",
    "mul",
    "maximum",
    "where",
    "matmul",
    "cat",
    "permute",
    "layer_norm",
    "slice",
    "sum_of_squares",
    "gelu",
    "abs",
];

/// A random layout on a mesh with that many axes.
fn layout(random: &mut Random, axes: usize, dims: usize, gradients: bool) -> Vec<String> {
    let one = |random: &mut Random| match random.below(6) {
        0 | 1 => format!("S({})", random.below(dims)),
        2 => "P".into(),
        // Its gradient goes to the members that have the value, so only the value is compared.
        3 if !gradients => (*random.of(&["P(max)", "P(min)"])).to_string(),
        _ => "B".into(),
    };
    (0..axes).map(|_| one(random)).collect()
}

struct Call {
    name: &'static str,
    args: Value,
    grad: bool,
    seed: usize,
}

fn random_call(random: &mut Random) -> Call {
    let name = *random.of(FUNCTIONS);
    let (m, k, n) = (1 + random.below(6), 1 + random.below(5), 1 + random.below(4));
    let dtype = if random.below(3) == 0 { "f32" } else { "f64" };
    let x = tensor(dtype, &[m, k], &eighths(random, m * k), &[]);
    let y = tensor(dtype, &[m, k], &eighths(random, m * k), &[]);
    let args = match name {
        "add" | "sub" | "mul" | "maximum" => json!({"a": x, "b": y}),
        "where" => {
            let cond: Vec<f64> = (0..m * k).map(|_| random.below(2) as f64).collect();
            json!({"cond": tensor("bool", &[m, k], &cond, &[]), "a": x, "b": y})
        }
        "matmul" => json!({"a": x, "b": tensor(dtype, &[k, n], &eighths(random, k * n), &[])}),
        "cat" => json!({"xs": [x, y], "dim": random.below(2)}),
        "sum_of_squares" => json!({"xs": [x, y]}),
        "sum" | "mean" | "amax" => json!({"x": x, "dims": [random.below(2)], "keepdim": random.below(2) == 1}),
        "softmax" | "log_softmax" | "cumsum" => json!({"x": x, "dim": random.below(2)}),
        "permute" => json!({"x": x, "dims": [1, 0]}),
        "slice" => json!({"x": x, "dim": 0, "start": 0, "end": 1 + random.below(m)}),
        _ => json!({"x": x}),
    };
    // At equal elements the gradient of a maximum is a matter of taste.
    let grad = !["amax", "maximum", "relu", "abs"].contains(&name) && random.below(2) == 1;
    Call { name, args, grad, seed: random.below(1000) }
}

/// The call on a mesh, each of its tensors in a random layout.
fn laid_out(call: &Call, mesh: &[usize], random: &mut Random) -> Value {
    fn visit(v: &mut Value, random: &mut Random, axes: usize, grad: bool) {
        match v {
            Value::Object(t) if t.contains_key("data") => {
                let dims = t["shape"].as_array().unwrap().len();
                let mut sbp = layout(random, axes, dims, grad);
                if t["dtype"] == "bool" {
                    sbp.iter_mut().filter(|s| *s == "P").for_each(|s| *s = "P(max)".into());
                }
                t.insert("sbp".into(), json!(sbp));
            }
            Value::Object(t) => t.values_mut().for_each(|v| visit(v, random, axes, grad)),
            Value::Array(all) => all.iter_mut().for_each(|v| visit(v, random, axes, grad)),
            _ => {}
        }
    }
    let mut args = call.args.clone();
    if !mesh.is_empty() {
        visit(&mut args, random, mesh.len(), call.grad);
    }
    let mut case = on(mesh, call.name, args);
    case["grad"] = json!(call.grad);
    case["seed"] = json!(call.seed);
    case
}

/// All data of an answer: outputs, then gradients.
fn data(answer: &Value) -> Vec<Vec<f64>> {
    let mut all: Vec<Vec<f64>> = answer["outputs"].as_array().unwrap().iter().map(|o| numbers(&o["data"])).collect();
    let grads = answer["grads"].as_object().into_iter().flatten();
    for (_, grad) in grads {
        let list = grad.as_array().cloned().unwrap_or_else(|| vec![grad.clone()]);
        all.extend(list.iter().filter(|g| !g.is_null()).map(|g| numbers(&g["data"])));
    }
    all
}

#[test]
fn random_calls_give_the_same_on_every_mesh_and_in_every_layout() {
    let mut random = Random::new(11);
    let meshes: [&[usize]; 6] = [&[], &[1], &[2], &[2, 2], &[3], &[2, 2]];
    let calls: Vec<Call> = (0..400).map(|_| random_call(&mut random)).collect();
    let cases: Vec<Value> = calls.iter().flat_map(|c| meshes.map(|mesh| laid_out(c, mesh, &mut random))).collect();
    let answers = outputs(&cases);
    let mut wrong = vec![];
    for (i, of_call) in answers.chunks(meshes.len()).enumerate() {
        let part = if calls[i].args.to_string().contains("f32") { 2e-5 } else { 1e-11 };
        let want = data(&of_call[0]);
        for (k, answer) in of_call.iter().enumerate().skip(1) {
            let got = data(answer);
            if got.len() != want.len() || !got.iter().zip(&want).all(|(a, b)| close(a, b, part)) {
                wrong.push(format!(
                    "{}\n    {answer}\n  without a mesh\n    {}",
                    cases[i * meshes.len() + k],
                    of_call[0]
                ));
            }
        }
    }
    println!("{} calls in {} layouts", calls.len(), cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn random_numbers_depend_on_the_seed_and_not_on_the_layout() {
    let mut cases = vec![];
    for seed in [0, 1, -7] {
        for (mesh, sbp) in [(&[1][..], &["B"][..]), (&[2], &["S(0)"]), (&[2, 2], &["S(1)", "S(0)"]), (&[4], &["P"])] {
            let mut case = on(mesh, "randn", json!({"shape": [5, 3], "target": {"sbp": sbp}}));
            case["seed"] = json!(seed);
            cases.push(case);
            let mut case = on(mesh, "dropout", json!({"x": tensor("f64", &[5, 3], &[1.0; 15], sbp), "p": 0.5}));
            case["seed"] = json!(seed);
            cases.push(case);
        }
    }
    let all: Vec<Vec<f64>> = outputs(&cases).iter().map(|a| numbers(&a["outputs"][0]["data"])).collect();
    for of_seed in all.chunks(8) {
        for one in of_seed.chunks(2).skip(1) {
            assert_eq!((&one[0], &one[1]), (&of_seed[0], &of_seed[1]));
        }
    }
    assert!(all[0] != all[8] && all[8] != all[16] && all[1] != all[9]);
}

/// Every pair of layouts of two axes, P of all dtypes that have it: what is read back has the bits that were given, whatever
/// boxing the way between takes.
#[test]
fn partial_tensors_have_the_bits_of_their_data() {
    let mut random = Random::new(5);
    let layouts = ["P", "P(max)", "P(min)", "S(0)", "B"];
    let mut cases = vec![];
    for dtype in ["u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"] {
        for (a, b) in layouts.iter().flat_map(|a| layouts.iter().map(move |b| (*a, *b))) {
            let values: Vec<f64> = match dtype {
                "u8" | "i8" => (0..7).map(|_| random.below(100) as f64).collect(),
                "i32" | "i64" => (0..7).map(|_| random.below(1 << 30) as f64 - 5e8).collect(),
                _ => (0..7).map(|_| (random.below(2001) as f64 - 1000.0) / 7.0).collect(),
            };
            for addends in ["like", "large"] {
                let mut case = on(
                    &[2, 2],
                    "to_global",
                    json!({"x": tensor(dtype, &[7], &values, &[a, b]), "placement": [2, 2], "sbp": [*random.of(&layouts), *random.of(&layouts)]}),
                );
                case["addends"] = json!(addends);
                case["seed"] = json!(random.below(1 << 20));
                let mut plain = case.clone();
                plain["args"]["x"]["sbp"] = json!(["B", "B"]);
                cases.extend([case, plain]);
            }
        }
    }
    let all = outputs(&cases);
    for (case, pair) in cases.chunks(2).zip(all.chunks(2)) {
        assert_eq!(pair[0]["outputs"][0]["data"], pair[1]["outputs"][0]["data"], "{}", case[0]);
    }
    println!("{} tensors", cases.len() / 2);
}

/// `oflow sbp` asks the choice by itself, without running anything.
/// An op, how many inputs it has, and its attributes.
type Row = (&'static str, usize, &'static [(&'static str, &'static str)]);

#[test]
fn signatures_are_those_that_oflow_sbp_chooses() {
    let mut random = Random::new(21);
    let ops: [Row; 7] = [
        ("relu", 1, &[]),
        ("add", 2, &[]),
        ("mul", 2, &[]),
        ("matmul", 2, &[]),
        ("softmax", 1, &[("dim", "1")]),
        ("sum", 1, &[("dims", "[0]")]),
        ("cumsum", 1, &[("dim", "0")]),
    ];
    let (mut cases, mut chosen) = (vec![], vec![]);
    for _ in 0..70 {
        let (op, inputs, attrs) = *random.of(&ops);
        let mesh = *random.of(&[&[2][..], &[3], &[2, 2]]);
        let mut args = vec![];
        let mut question = vec!["sbp".to_string(), op.into(), "--json".into(), "--mesh".into()];
        question.push(mesh.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        for _ in 0..inputs {
            let sbp = layout(&mut random, mesh.len(), 2, false);
            let words: Vec<&str> = sbp.iter().map(String::as_str).collect();
            args.push(tensor("f64", &[6, 6], &eighths(&mut random, 36), &words));
            question.extend(["--in".into(), format!("f64[6,6] [{}]", words.join(", "))]);
        }
        let mut case = on(mesh, op, json!(args));
        case["kwargs"] = json!({});
        for (name, value) in attrs {
            case["kwargs"][name] = serde_json::from_str(value).unwrap();
            question.extend(["--attr".into(), format!("{name}={value}")]);
        }
        cases.push(case);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_oflow")).args(&question).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{question:?}: {e}"));
        let first = &told["candidates"][0];
        let list = |name: &str| {
            let texts = first[name].as_array().unwrap().iter().map(|t| t.as_str().unwrap());
            texts.collect::<Vec<_>>().join(", ")
        };
        let lowered = if first["lowered"] == true { " (lowered)" } else { "" };
        chosen.push(format!("{} -> {}{lowered}", list("inputs"), list("outputs")));
    }
    for ((case, answer), want) in cases.iter().zip(outputs(&cases)).zip(&chosen) {
        assert_eq!(answer["signature"], *want, "{case}");
    }
}
