//! Calls with every kind of argument, compared with values that are computed here.

use serde_json::{Value, json};

use super::indices::indices_and_generators;
use super::{answers, close, number, numbers};

/// What an answer must be.
pub type Check = Box<dyn Fn(&Value)>;

/// A tensor. Numbers that JSON does not have are texts.
pub fn tensor(dtype: &str, shape: &[usize], data: &[f64], sbp: &[&str]) -> Value {
    let one = |x: &f64| match x {
        x if x.is_nan() => json!("nan"),
        x if x.is_infinite() => json!(if *x > 0.0 { "inf" } else { "-inf" }),
        x if dtype.starts_with('f') || dtype == "bf16" => json!(x),
        x => json!(*x as i64),
    };
    let mut t = json!({"shape": shape, "dtype": dtype, "data": data.iter().map(one).collect::<Vec<_>>()});
    if !sbp.is_empty() {
        t["sbp"] = json!(sbp);
    }
    t
}

/// Meshes, each with layouts of a tensor of two dims; first without a mesh.
pub const LAYOUTS: &[(&[usize], &[&str])] = &[
    (&[], &[]),
    (&[1], &["S(0)"]),
    (&[2], &["S(0)"]),
    (&[2], &["S(1)"]),
    (&[3], &["P"]),
    (&[2, 2], &["S(0)", "S(1)"]),
    (&[2, 2], &["P", "S(0)"]),
    (&[2, 2], &["B", "P(sum)"]),
    (&[2], &["P(max)"]),
    (&[2], &["P(min)"]),
];

/// A call on that mesh.
pub fn on(mesh: &[usize], call: &str, args: Value) -> Value {
    let mut case = json!({"call": call, "args": args});
    if !mesh.is_empty() {
        case["mesh"] = json!(mesh);
    }
    case
}

/// The data of the outputs, in order.
pub fn gives(all: Vec<Vec<f64>>, part: f64) -> Check {
    Box::new(move |answer| {
        let outs = answer["outputs"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(outs.len(), all.len(), "{answer}");
        for (out, want) in outs.iter().zip(&all) {
            assert!(close(&numbers(&out["data"]), want, part), "{answer}\nwanted {want:?}");
        }
    })
}

pub fn is(answer: &Value, at: &str, want: Value) {
    let got = answer.pointer(at).unwrap_or_else(|| panic!("no {at} in {answer}"));
    assert_eq!(*got, want, "{at} of {answer}");
}

pub const X: [f64; 6] = [-1.5, 0.25, 2.0, -0.5, 1.0, 3.0];
const Y: [f64; 6] = [0.5, 2.0, -1.0, 4.0, 1.0, -2.0];

/// Every case with its check.
pub fn cases() -> Vec<(Value, Check)> {
    let mut all: Vec<(Value, Check)> = vec![];
    elementwise(&mut all);
    reductions_and_products(&mut all);
    shapes_and_lists(&mut all);
    factories(&mut all);
    layouts(&mut all);
    changes_and_gradients(&mut all);
    indices_and_generators(&mut all);
    all
}

fn elementwise(all: &mut Vec<(Value, Check)>) {
    type F = fn(f64) -> f64;
    let functions: [(&str, F); 9] = [
        ("relu", |x| x.max(0.0)),
        ("neg", |x| -x),
        ("abs", f64::abs),
        ("exp", f64::exp),
        ("square", |x| x * x),
        ("tanh", f64::tanh),
        ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("floor", f64::floor),
        ("softsign", |x| x / (1.0 + x.abs())),
    ];
    for (name, f) in functions {
        for (mesh, sbp) in LAYOUTS {
            let case = on(mesh, name, json!({"x": tensor("f64", &[2, 3], &X, sbp)}));
            all.push((case, gives(vec![X.map(f).to_vec()], 1e-12)));
        }
    }
    type F2 = fn(f64, f64) -> f64;
    let functions: [(&str, F2); 5] = [
        ("add", |a, b| a + b),
        ("sub", |a, b| a - b),
        ("mul", |a, b| a * b),
        ("div", |a, b| a / b),
        ("maximum", f64::max),
    ];
    for (name, f) in functions {
        for (mesh, sbp) in LAYOUTS {
            let want: Vec<f64> = X.iter().zip(&Y).map(|(a, b)| f(*a, *b)).collect();
            let (x, y) = (
                tensor("f64", &[2, 3], &X, sbp),
                tensor("f64", &[2, 3], &Y, &sbp.iter().map(|_| "B").collect::<Vec<_>>()),
            );
            all.push((on(mesh, name, json!({"a": x, "b": y})), gives(vec![want], 1e-12)));
        }
        if name == "maximum" {
            continue;
        }
        // Scalars of both kinds, by place and by name, before and after the tensor.
        let x = tensor("f32", &[6], &X, &[]);
        all.push((on(&[], name, json!([x, 2])), gives(vec![X.map(|v| f(v, 2.0)).to_vec()], 1e-6)));
        all.push((on(&[2], name, json!({"x": x, "s": 0.5})), gives(vec![X.map(|v| f(v, 0.5)).to_vec()], 1e-6)));
        // By name `s` and `x` are taken by the overload with the tensor first.
        if ["sub", "div"].contains(&name) {
            all.push((on(&[2], name, json!([2, x])), gives(vec![X.map(|v| f(2.0, v)).to_vec()], 1e-6)));
        }
    }
    let x = |dtype: &str| tensor(dtype, &[3], &[0.0, 1.0, 5.0], &["S(0)"]);
    // DataType: from and to each.
    let dtypes = ["u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"];
    for from in dtypes {
        for to in ["bool", "i64", "bf16", "f64"] {
            let want = if to == "bool" { vec![0.0, 1.0, 1.0] } else { vec![0.0, 1.0, 5.0] };
            let check = gives(vec![want], 0.0);
            let named = move |answer: &Value| {
                is(answer, "/outputs/0/dtype", json!(to));
                check(answer);
            };
            all.push((on(&[2], "cast", json!({"x": x(from), "dtype": to})), Box::new(named)));
        }
    }
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    for (mesh, sbp) in [(&[2][..], "P"), (&[2], "S(0)"), (&[4], "P"), (&[2], "P(max)")] {
        for dtype in ["f16", "bf16", "f32", "f64"] {
            let check = move |answer: &Value| is(answer, "/outputs/0/data", json!(["nan", "inf", "-inf", -0.0]));
            all.push((on(mesh, "copy", json!({"x": tensor(dtype, &[4], &special, &[sbp])})), Box::new(check)));
        }
    }
    // Every digit of an i64, also through addends.
    for (dtype, ends) in [("i64", [i64::MIN, i64::MAX, 9007199254740993]), ("i32", [-2147483648, 2147483647, 7])] {
        for sbp in ["S(0)", "P", "P(min)", "B"] {
            for addends in ["like", "large"] {
                let mut case = on(&[3], "copy", json!({"x": {"data": ends, "dtype": dtype, "sbp": [sbp]}}));
                case["addends"] = json!(addends);
                all.push((case, Box::new(move |answer| is(answer, "/outputs/0/data", json!(ends)))));
            }
        }
    }
    // Float, Bool, keyword-only arguments.
    let leaky = X.map(|v| if v > 0.0 { v } else { 0.2 * v }).to_vec();
    all.push((
        on(&[], "leaky_relu", json!({"x": tensor("f64", &[6], &X, &[]), "alpha": 0.2})),
        gives(vec![leaky.clone()], 1e-12),
    ));
    let mut case = on(&[], "leaky_relu", json!([tensor("f64", &[6], &X, &[])]));
    case["kwargs"] = json!({"alpha": 0.2});
    all.push((case, gives(vec![leaky], 1e-12)));
    let clamped = X.map(|v| v.min(1.0)).to_vec();
    all.push((
        on(&[2], "clamp", json!({"x": tensor("f64", &[6], &X, &["S(0)"]), "lo": "-inf", "hi": 1})),
        gives(vec![clamped], 0.0),
    ));
    let case = json!({"cond": tensor("bool", &[3], &[1.0, 0.0, 1.0], &["S(0)"]), "a": tensor("f32", &[3], &[1., 2., 3.], &["P"]), "b": tensor("f32", &[], &[9.0], &[])});
    all.push((on(&[2], "where", case), gives(vec![vec![1.0, 9.0, 3.0]], 0.0)));
}

fn reductions_and_products(all: &mut Vec<(Value, Check)>) {
    for (mesh, sbp) in LAYOUTS {
        let x = || tensor("f64", &[2, 3], &X, sbp);
        all.push((on(mesh, "sum", json!({"x": x()})), gives(vec![vec![X.iter().sum()]], 1e-12)));
        all.push((
            on(mesh, "mean", json!({"x": x(), "dims": [1], "keepdim": true})),
            gives(vec![vec![0.25, 3.5 / 3.0]], 1e-12),
        ));
        all.push((on(mesh, "amax", json!({"x": x(), "dims": 0})), gives(vec![vec![-0.5, 1.0, 3.0]], 0.0)));
        all.push((
            on(mesh, "cumsum", json!({"x": x(), "dim": 0, "reverse": true})),
            gives(vec![vec![-2.0, 1.25, 5.0, -0.5, 1.0, 3.0]], 1e-12),
        ));
        all.push((on(mesh, "argmax", json!({"x": x(), "dim": 1})), gives(vec![vec![2.0, 2.0]], 0.0)));
        let y: &[&str] = match sbp.len() {
            2 => &["B", "B"],
            n => &["B"][..n],
        };
        let b = tensor("f64", &[3, 2], &Y, y);
        let mut want = vec![0.0; 4];
        (0..12).for_each(|i| want[i / 6 * 2 + i % 2] += X[i / 6 * 3 + i % 6 / 2] * Y[i % 6 / 2 * 2 + i % 2]);
        all.push((on(mesh, "matmul", json!({"a": x(), "b": b})), gives(vec![want], 1e-12)));
        let transposed = tensor("f64", &[2, 3], &[1., 0., 0., 0., 1., 0.], y);
        let case = json!({"a": x(), "b": transposed, "transpose_b": true});
        all.push((on(mesh, "matmul", case), gives(vec![vec![-1.5, 0.25, -0.5, 1.0]], 1e-12)));
        let rows = |row: &[f64]| {
            let total: f64 = row.iter().map(|v| v.exp()).sum();
            row.iter().map(move |v| v.exp() / total).collect::<Vec<_>>()
        };
        let want = [rows(&X[..3]), rows(&X[3..])].concat();
        all.push((on(mesh, "softmax", json!({"x": x(), "dim": -1})), gives(vec![want], 1e-12)));
    }
    // An optional tensor that is null.
    let norm = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / 3.0;
        let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 3.0;
        x.iter().map(|v| (v - mean) / (var + 1e-5).sqrt()).collect::<Vec<_>>()
    };
    let want = vec![[norm(&X[..3]), norm(&X[3..])].concat()];
    let case = json!({"x": tensor("f64", &[2, 3], &X, &["S(0)"]), "weight": null, "bias": null});
    all.push((on(&[2], "layer_norm", case), gives(want, 1e-9)));
    let case = json!({"logits": tensor("f64", &[2, 2], &[0.0; 4], &["S(0)"]), "target": tensor("i64", &[2], &[0.0, 1.0], &[])});
    all.push((on(&[2], "cross_entropy", case), gives(vec![vec![2f64.ln()]], 1e-12)));
    let case = json!({"x": tensor("f64", &[1, 2], &[1., 2.], &[]), "weight": tensor("f64", &[1, 2], &[3., 4.], &[]), "bias": tensor("f64", &[1], &[5.], &[])});
    all.push((on(&[2], "linear", case), gives(vec![vec![16.0]], 1e-12)));
    let case = json!({"q": tensor("f64", &[1, 1, 1, 2], &[1., 2.], &[]), "k": tensor("f64", &[1, 1, 1, 2], &[3., 4.], &[]), "v": tensor("f64", &[1, 1, 1, 2], &[5., 6.], &[]), "causal": true, "scale": 0.5});
    all.push((on(&[], "attention", case), gives(vec![vec![5.0, 6.0]], 1e-6)));
}

fn shapes_and_lists(all: &mut Vec<(Value, Check)>) {
    let x = || tensor("f64", &[2, 3], &X, &["S(0)"]);
    let same = || gives(vec![X.to_vec()], 0.0);
    all.push((on(&[2], "reshape", json!({"x": x(), "shape": [3, -1]})), same()));
    all.push((on(&[2], "reshape", json!([x(), [6]])), same()));
    let transposed = vec![X[0], X[3], X[1], X[4], X[2], X[5]];
    all.push((on(&[2], "permute", json!({"x": x(), "dims": [1, 0]})), gives(vec![transposed], 0.0)));
    all.push((
        on(&[2], "expand", json!({"x": tensor("i64", &[1], &[7.0], &[]), "shape": [2, 2]})),
        gives(vec![vec![7.0; 4]], 0.0),
    ));
    all.push((
        on(&[2], "slice", json!({"x": x(), "dim": 1, "start": 1, "end": 3})),
        gives(vec![vec![X[1], X[2], X[4], X[5]]], 0.0),
    ));
    for (mesh, sbp) in [(&[][..], &[][..]), (&[2], &["S(0)"]), (&[2], &["P"])] {
        let (a, b) = (tensor("f64", &[3], &X[..3], sbp), tensor("f64", &[3], &X[3..], sbp));
        all.push((on(mesh, "cat", json!({"xs": [a, b], "dim": 0})), same()));
        let mut case = on(mesh, "concat", json!([[a, b]]));
        case["kwargs"] = json!({"dim": 0});
        all.push((case, same()));
        all.push((
            on(mesh, "sum_of_squares", json!({"xs": [a, b]})),
            gives(vec![vec![X.iter().map(|v| v * v).sum()]], 1e-12),
        ));
    }
    all.push((
        on(&[2], "one_hot", json!({"ids": tensor("i64", &[2], &[2.0, 0.0], &["S(0)"]), "classes": 3, "dtype": "f16"})),
        gives(vec![vec![0., 0., 1., 1., 0., 0.]], 0.0),
    ));
    let case =
        json!({"weight": tensor("f64", &[3, 2], &Y, &["S(0)"]), "ids": tensor("i64", &[2], &[2.0, 1.0], &["S(0)"])});
    all.push((on(&[2], "embedding", case), gives(vec![vec![Y[4], Y[5], Y[2], Y[3]]], 0.0)));
    all.push((
        on(&[2], "nonzero", json!({"x": tensor("i64", &[4], &[0., 5., 0., 7.], &["S(0)"])})),
        gives(vec![vec![1.0, 3.0]], 0.0),
    ));
    all.push((
        on(&[2], "unique", json!({"x": tensor("i64", &[4], &[3., 1., 3., 1.], &["S(0)"])})),
        gives(vec![vec![1.0, 3.0]], 0.0),
    ));
    let case = json!({"x": x(), "mask": tensor("bool", &[2, 3], &[1., 0., 0., 0., 0., 1.], &["S(0)"])});
    all.push((on(&[2], "masked_select", case), gives(vec![vec![X[0], X[5]]], 0.0)));
    let case = json!({"x": x(), "mask": tensor("bool", &[3], &[1., 0., 0.], &[]), "s": -1});
    all.push((on(&[2], "masked_fill", case), gives(vec![vec![-1.0, X[1], X[2], -1.0, X[4], X[5]]], 0.0)));
    all.push((on(&[2], "tril", json!({"x": x(), "diagonal": -1})), gives(vec![vec![0., 0., 0., X[3], 0., 0.]], 0.0)));
    // Nested data, no shape, no dtype; the usual dtypes.
    for (data, dtype, want) in [
        (json!([[1, 2], [3, 4]]), "i64", vec![1., 2., 3., 4.]),
        (json!([[1, 2.5]]), "f32", vec![1., 2.5]),
        (json!(true), "bool", vec![1.0]),
        (json!([]), "f32", vec![]),
        (json!([[[]]]), "f32", vec![]),
    ] {
        let check = gives(vec![want], 0.0);
        let check = move |answer: &Value| {
            is(answer, "/outputs/0/dtype", json!(dtype));
            check(answer);
        };
        all.push((on(&[2], "copy", json!({"x": {"data": data}})), Box::new(check)));
    }
}

fn factories(all: &mut Vec<(Value, Check)>) {
    // Target: where the line is, a device, a layout, another mesh; Shape, Scalar, DataType.
    for (mesh, target, sbp) in [
        (&[][..], json!(null), json!(null)),
        (&[], json!("cpu"), json!(null)),
        (&[], json!({"mesh": [2], "sbp": ["S(1)"]}), json!(["S(1)"])),
        (&[2], json!(null), json!(["B"])),
        (&[2], json!("cpu"), json!(null)),
        (&[2], json!({"sbp": null}), json!(null)),
        (&[2], json!({"sbp": ["P(max)"]}), json!(["P(max)"])),
        (&[2, 2], json!({"sbp": ["S(0)", "P"]}), json!(["S(0)", "P(sum)"])),
        (&[2, 2], json!({"sbp": "[S(0), S(0)]"}), json!(["S(0)", "S(0)"])),
    ] {
        let mut args = json!({"shape": [2, 3], "value": 4, "dtype": "i32"});
        if !target.is_null() {
            args["target"] = target.clone();
        }
        let mut case = on(mesh, "full", args);
        if mesh.is_empty() && target.is_object() {
            case["ranks"] = json!(2);
        }
        let check = move |answer: &Value| {
            is(answer, "/outputs/0/data", json!([4, 4, 4, 4, 4, 4]));
            is(answer, "/outputs/0/sbp", sbp.clone());
        };
        all.push((case, Box::new(check)));
    }
    all.push((
        on(&[2], "arange", json!({"start": 1, "end": 3, "step": 0.5, "dtype": "f32"})),
        gives(vec![vec![1., 1.5, 2., 2.5]], 0.0),
    ));
    let split = || tensor("f64", &[2, 3], &X, &["S(1)"]);
    for (call, args, want) in [
        ("numel", json!([split()]), json!(6)),
        ("size", json!([split(), -1]), json!(3)),
        ("shape", json!([split()]), json!([2, 3])),
        ("sbp", json!([split()]), json!("[S(1)]")),
        ("is_global", json!([split()]), json!(true)),
    ] {
        all.push((on(&[2], call, args), Box::new(move |answer| is(answer, "/value", want.clone()))));
    }
    all.push((on(&[3], "randint", json!({"shape": [5], "lo": 3, "hi": 4})), gives(vec![vec![3.0; 5]], 0.0)));
    for (name, p) in [("bernoulli", 1), ("rand", 0)] {
        let mut case = on(&[2], name, json!({"shape": [50]}));
        if p == 1 {
            case["args"]["p"] = json!(1);
        }
        let check = move |answer: &Value| {
            let all = numbers(&answer["outputs"][0]["data"]);
            assert!(all.iter().all(|x| if p == 1 { *x == 1.0 } else { (0.0..1.0).contains(x) }) && all.len() == 50);
        };
        all.push((case, Box::new(check)));
    }
}

fn layouts(all: &mut Vec<(Value, Check)>) {
    let x = |sbp: &str| tensor("f64", &[2, 3], &X, &[sbp]);
    let same = |sbp: &'static str| -> Check {
        let data = gives(vec![X.to_vec()], 0.0);
        Box::new(move |answer| {
            is(answer, "/outputs/0/sbp", json!([sbp]));
            data(answer);
        })
    };
    // Placement, Sbp.
    for from in ["S(0)", "S(1)", "B", "P", "P(max)"] {
        for to in ["S(0)", "B", "P(sum)"] {
            all.push((on(&[2], "to_global", json!({"x": x(from), "placement": [2], "sbp": [to]})), same(to)));
        }
    }
    let mut case = on(
        &[2],
        "to_global",
        json!({"x": x("P"), "placement": {"mesh": "tp=2", "ranks": [3, 1]}, "sbp": ["S(0)"], "grad_sbp": ["P"]}),
    );
    case["ranks"] = json!(4);
    all.push((
        case,
        Box::new(|answer| {
            is(answer, "/outputs/0/mesh", json!("cpu[tp=2] of ranks [3, 1]"));
            is(answer, "/outputs/0/sbp", json!(["S(0)"]));
            assert_eq!(numbers(&answer["outputs"][0]["data"]), X);
        }),
    ));
    // PlacementList, SbpList with an absent member, TensorTuple.
    let case = json!({"xs": [x("P"), x("S(0)")], "placements": [[2], [2]], "sbps": [["S(1)"], ["B"]], "grad_sbps": [null, ["P"]]});
    all.push((on(&[2], "box_many", case), gives(vec![X.to_vec(), X.to_vec()], 0.0)));
    // IntLists: every rank has both boxes.
    let local = |data: &[f64]| {
        let mut t = tensor("f64", &[data.len()], data, &[]);
        t["sbp"] = json!(null);
        t
    };
    let case = json!({"boxes": [local(&X[..2]), local(&X[2..])], "offsets": [[0], [2]], "shape": [6], "placement": [2], "sbp": ["S(0)"]});
    all.push((on(&[2], "from_boxes", case), same("S(0)")));
    // Local tensors on several ranks, and back.
    all.push((on(&[2], "distribute", json!({"x": local(&X), "placement": [2], "sbp": ["S(0)"]})), same("S(0)")));
    all.push((
        on(&[2], "shards_to_global", json!({"x": local(&X[..3]), "placement": [2], "sbp": ["S(0)"]})),
        gives(vec![[&X[..3], &X[..3]].concat()], 0.0),
    ));
    all.push((
        on(&[2], "to_local", json!({"x": x("S(0)")})),
        Box::new(|answer| {
            is(answer, "/outputs/0/sbp", json!(null));
            is(answer, "/outputs/0/shape", json!([1, 3]));
        }),
    ));
    // Device.
    all.push((
        on(&[], "to_device", json!({"x": tensor("f64", &[2, 3], &X, &[]), "device": "cpu"})),
        gives(vec![X.to_vec()], 0.0),
    ));
}

fn changes_and_gradients(all: &mut Vec<(Value, Check)>) {
    let x = || tensor("f64", &[3], &X[..3], &["S(0)"]);
    all.push((
        on(&[2], "assign", json!({"x": x(), "y": tensor("f64", &[3], &[1., 2., 3.], &["S(0)"])})),
        Box::new(|answer| {
            is(answer, "/outputs", json!([]));
            is(answer, "/changed/x/data", json!([1.0, 2.0, 3.0]));
        }),
    ));
    let case =
        json!({"param": x(), "grad": tensor("f64", &[3], &[1., 1., 1.], &["S(0)"]), "momentum": null, "lr": 0.5});
    all.push((
        on(&[2], "sgd_step", case),
        Box::new(|answer| is(answer, "/changed/param/data", json!([-2.0, -0.25, 1.5]))),
    ));
    let case = json!({"s": tensor("f64", &[], &[2.0], &[]), "xs": [x(), x()]});
    all.push((
        on(&[2], "scale_many", case),
        Box::new(|answer| {
            is(answer, "/changed/xs[0]/data", json!([-3.0, 0.5, 4.0]));
            is(answer, "/changed/xs[1]/data", json!([-3.0, 0.5, 4.0]));
        }),
    ));
    let with = |mut case: Value, more: Value| {
        more.as_object().unwrap().iter().for_each(|(name, value)| case[name] = value.clone());
        case
    };
    for (mesh, sbp) in LAYOUTS {
        let y: Vec<&str> = sbp.iter().map(|_| "B").collect();
        let case = on(mesh, "mul", json!({"a": tensor("f64", &[2, 3], &X, sbp), "b": tensor("f64", &[2, 3], &Y, &y)}));
        let sbp = *sbp;
        all.push((
            with(case, json!({"grad": true})),
            Box::new(move |answer| {
                assert!(close(&numbers(&answer["grads"]["a"]["data"]), &Y, 1e-12), "{answer}");
                assert!(close(&numbers(&answer["grads"]["b"]["data"]), &X, 1e-12), "{answer}");
                // A leaf's gradient has the leaf's layout.
                let layout: Vec<String> =
                    sbp.iter().map(|s| if *s == "P" { "P(sum)".into() } else { s.to_string() }).collect();
                is(answer, "/grads/a/sbp", if sbp.is_empty() { json!(null) } else { json!(layout) });
            }),
        ));
    }
    let square = on(&[2], "square", json!({"x": x()}));
    let more = json!({"grad": ["x"], "grad_outputs": [[1, 10, 100]]});
    all.push((with(square.clone(), more), Box::new(|answer| is(answer, "/grads/x/data", json!([-3.0, 5.0, 400.0])))));
    let more = json!({"grad": true, "grad_outputs": [{"data": [1, 10, 100], "sbp": ["P"]}]});
    all.push((with(square, more), Box::new(|answer| is(answer, "/grads/x/data", json!([-3.0, 5.0, 400.0])))));
    // Of a list; of one of two; of none that the output depends on; of integers.
    let (a, b) = (tensor("f64", &[1], &[1.0], &[]), tensor("f64", &[2], &[1.0, 2.0], &[]));
    let case =
        with(on(&[2], "cat", json!({"xs": [a, b], "dim": 0})), json!({"grad": true, "grad_outputs": [[1, 2, 3]]}));
    all.push((
        case,
        Box::new(|answer| {
            is(answer, "/grads/xs/0/data", json!([1.0]));
            is(answer, "/grads/xs/1/data", json!([2.0, 3.0]));
        }),
    ));
    let case = with(on(&[2], "mul", json!({"a": b, "b": b})), json!({"grad": ["b"]}));
    all.push((
        case,
        Box::new(|answer| {
            assert_eq!(answer["grads"], json!({"b": {"data": [1.0, 2.0], "shape": [2], "dtype": "f64", "sbp": ["B"]}}))
        }),
    ));
    let case = with(on(&[], "eq", json!({"a": b, "b": b})), json!({"grad": true}));
    all.push((case, Box::new(|answer| assert_eq!(answer["grads"], json!({"a": null, "b": null})))));
    let case = with(on(&[], "neg", json!({"x": {"data": [1, 2]}})), json!({"grad": true}));
    all.push((case, Box::new(|answer| assert_eq!(answer["grads"], json!({})))));
}

/// Lines that are wrong, with a part of what is said about them.
const MALFORMED: &[(&str, &str, &str)] = &[
    ("{", "json", "the line is not JSON: EOF"),
    ("relu", "json", "the line is not JSON"),
    ("{\"call\":\"relu\",\"call\":\"neg\"}", "json", "stands twice in one object"),
    ("[1,2]", "argument", "a line is an object"),
    ("{\"args\":{}}", "argument", "\"call\" is missing"),
    ("{\"call\":\"rleu\"}", "registry", "did you mean 'relu'?"),
    ("{\"call\":\"relu\"}", "argument", "'x' is missing"),
    ("{\"call\":\"relu\",\"args\":{\"y\":{\"data\":1}}}", "argument", "has no parameter 'y'"),
    ("{\"call\":\"relu\",\"args\":[{\"data\":[1]},1]}", "argument", "takes 1 positional arguments, 2 given"),
    ("{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[[1],[2,3]]}}}", "argument", "ragged"),
    (
        "{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[1,2],\"shape\":[3]}}}",
        "argument",
        "has 2 values, its shape [3] takes 3",
    ),
    (
        "{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[1],\"sbp\":[\"S(0)\"]}}}",
        "argument",
        "neither the tensor nor the line has a mesh",
    ),
    (
        "{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[300],\"dtype\":\"u8\"}}}",
        "argument",
        "300 is beyond the range of u8",
    ),
    ("{\"call\":\"sum\",\"args\":{\"x\":{\"data\":[1]},\"dims\":[3]}}", "argument|shape", "dim"),
    ("{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[1.5]}},\"grad\":[\"y\"]}", "argument", "\"grad\" names 'y'"),
    (
        "{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[1.5]}},\"grad\":true,\"grad_outputs\":[[1,2]]}",
        "argument",
        "\"grad_outputs[0]\" has 2 values",
    ),
    (
        "{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[1.5]}},\"grad\":true,\"grad_outputs\":[[1],[1]]}",
        "argument",
        "has 2 gradients",
    ),
    (
        "{\"call\":\"add\",\"args\":{\"a\":{\"data\":[1]},\"b\":{\"data\":[1],\"sbp\":null}},\"mesh\":[2]}",
        "placement",
        "local and global",
    ),
];

#[test]
fn calls_with_every_kind_of_argument_give_what_they_should() {
    let cases = cases();
    // A malformed line after each handful.
    let every = cases.len() / MALFORMED.len();
    let mut lines: Vec<Vec<u8>> = vec![];
    let mut bad: Vec<(usize, usize)> = vec![];
    let mut good: Vec<(usize, usize)> = vec![];
    for (i, (case, _)) in cases.iter().enumerate() {
        let mut case = case.clone();
        case["id"] = json!(i);
        good.push((lines.len(), i));
        lines.push(case.to_string().into_bytes());
        if i % every == every - 1 && bad.len() < MALFORMED.len() {
            bad.push((lines.len(), bad.len()));
            lines.push(MALFORMED[bad.len() - 1].0.as_bytes().to_vec());
        }
    }
    let (all, code) = answers(&lines, &[]);
    assert_eq!((all.len(), code), (lines.len(), 0));
    let mut wrong = vec![];
    for (line, i) in &good {
        let answer = &all[*line];
        assert_eq!((&answer["id"], &answer["line"]), (&json!(i), &json!(line + 1)));
        let check = std::panic::AssertUnwindSafe(|| (cases[*i].1)(answer));
        if !answer["error"].is_null() || std::panic::catch_unwind(check).is_err() {
            wrong.push(format!("{}\n    {answer}", cases[*i].0));
        }
    }
    assert!(wrong.is_empty(), "{} of {} calls:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    for (line, i) in &bad {
        let (text, kinds, why) = MALFORMED[*i];
        let answer = &all[*line];
        let kind = answer["kind"].as_str().unwrap_or_else(|| panic!("{text}: {answer}"));
        assert!(kinds.split('|').any(|k| k == kind), "{text}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(why), "{text}: {answer}");
    }
    println!("{} calls, {} malformed lines between them", cases.len(), bad.len());
    assert!(cases.len() >= 200 && bad.len() >= 10);
}

#[test]
fn the_signature_is_what_the_dispatcher_chose() {
    let x = |sbp: &[&str]| tensor("f32", &[2, 2], &[1., 2., 3., 4.], sbp);
    let cases = [
        on(&[2], "matmul", json!([x(&["S(1)"]), x(&["S(0)"])])),
        // Long rows, so that moving them costs more than what the lowering sends.
        on(&[2], "softmax", json!([tensor("f32", &[2, 32768], &[0.0; 65536], &["S(1)"]), 1])),
        on(&[2, 2], "add", json!([x(&["S(0)", "B"]), x(&["S(0)", "B"])])),
        on(&[2], "layer_norm", json!([x(&["S(0)"])])),
        on(&[2], "zeros", json!({"shape": [2], "target": {"sbp": ["S(0)"]}})),
        on(&[2], "linear", json!([x(&["B"]), x(&["B"]), {"data": [1.5, 2], "sbp": ["B"]}])),
        on(&[], "relu", json!([x(&[])])),
        on(&[2], "cross_entropy", json!([x(&["S(0)"]), {"data": [0, 1]}])),
        on(&[2], "to_global", json!([x(&["B"]), [2], ["S(0)"]])),
    ];
    let all: Vec<Value> = super::outputs(&cases).iter().map(|a| a["signature"].clone()).collect();
    assert_eq!(all[0], "[S(1)], [S(0)] -> [P(sum)]");
    assert_eq!(all[1], "[S(1)] -> [S(1)] (lowered)");
    assert_eq!(all[2], "[S(0), B], [S(0), B] -> [S(0), B]");
    assert_eq!(all[3], "[S(0)], -, - -> [S(0)], [S(0)], [S(0)]");
    assert_eq!(all[4], "-> [S(0)]");
    assert_eq!(all[5], "[B], [B], [B] -> [B]");
    assert_eq!((&all[6], &all[8]), (&Value::Null, &Value::Null));
    let several: Vec<&str> = all[7].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(
        several.len() > 1 && several[0].starts_with("cross_entropy: [S(0)], [S(0)] -> [S(0)], [S(0)]"),
        "{several:?}"
    );
}

#[test]
fn numbers_are_written_so_that_they_read_back() {
    let mut random = oflow::testing::Random::new(3);
    for dtype in ["f16", "bf16", "f32", "f64"] {
        let data: Vec<f64> = (0..500)
            .map(|_| (random.below(1 << 30) as f64 - 5e8) / 3.0 * 10f64.powi(random.below(8) as i32 - 12))
            .collect();
        let first = super::outputs(&[on(&[], "copy", json!([tensor(dtype, &[500], &data, &[])]))]).remove(0);
        let again = super::outputs(&[on(
            &[2],
            "copy",
            json!([first["outputs"][0].clone()].map(|mut t| {
                t["sbp"] = json!(["P"]);
                t
            })),
        )])
        .remove(0);
        assert_eq!(first["outputs"][0]["data"], again["outputs"][0]["data"], "{dtype}");
        let part =
            [("f16", 1e-3), ("bf16", 8e-3), ("f32", 1e-7), ("f64", 1e-16)].iter().find(|(d, _)| *d == dtype).unwrap().1;
        for (got, want) in first["outputs"][0]["data"].as_array().unwrap().iter().zip(&data) {
            assert!((number(got) - want).abs() <= part * want.abs() + 1e-7, "{dtype}: {got} of {want}");
        }
    }
}
