//! Calls with indices and generators.

use oflow::Generator;
use oflow::prelude::*;
use serde_json::{Value, json};

use super::calls::{Check, LAYOUTS, X, gives, is, on, tensor};

/// Adds the cases with their checks.
pub fn indices_and_generators(all: &mut Vec<(Value, Check)>) {
    let rows = || json!({"data": [1, 0], "dtype": "i64"});
    let mask = || json!({"data": [[true, false, false], [false, true, true]]});
    for (mesh, sbp) in LAYOUTS {
        let x = || tensor("f64", &[2, 3], &X, sbp);
        let mut one = |call: &str, args: Value, want: &[f64]| {
            all.push((on(mesh, call, args), gives(vec![want.to_vec()], 0.0)));
        };
        one("index", json!({"x": x(), "index": [1, "::-1"]}), &[3.0, 1.0, -0.5]);
        one("index", json!({"x": x(), "index": [rows(), "1:"]}), &[1.0, 3.0, 0.25, 2.0]);
        one("index", json!({"x": x(), "index": mask()}), &[-1.5, 1.0, 3.0]);
        one("index", json!([x(), ["newaxis", "...", 0]]), &[-1.5, -0.5]);
        one("index_put", json!({"x": x(), "index": ["...", 0], "value": 7.0}), &[7.0, 0.25, 2.0, 7.0, 1.0, 3.0]);
        let value = json!({"data": [8.0, 9.0], "dtype": "f64"});
        one("index_put", json!([x(), [rows(), 1], value]), &[-1.5, 9.0, 2.0, -0.5, 8.0, 3.0]);
        one("flip", json!({"x": x(), "dims": 0}), &[-0.5, 1.0, 3.0, -1.5, 0.25, 2.0]);
    }
    let mut case = on(&[2], "index", json!({"x": tensor("f64", &[2, 3], &X, &["S(0)"]), "index": [0, "1:"]}));
    case["grad"] = json!(true);
    let check = |answer: &Value| is(answer, "/grads/x/data", json!([0.0, 1.0, 1.0, 0.0, 0.0, 0.0]));
    all.push((case, Box::new(check)));
    let drawn = rand([4], Device::Cpu.generator(&Generator::new(3))).unwrap();
    let drawn = drawn.to_f64_vec().unwrap();
    for mesh in [&[][..], &[2], &[2, 2]] {
        let case = on(mesh, "rand", json!({"shape": [4], "generator": 3}));
        all.push((case, gives(vec![drawn.clone()], 1e-6)));
    }
}
