//! Reads what `tests/golden/*.py` wrote, and compares tensors with it. Numbers that JSON lacks are strings: `"inf"`, `"nan"`.

use oflow::ops::TensorType;
use oflow::prelude::*;
use oflow::testing::Value;
use serde_json::Value as Json;

/// All cases of a file.
pub fn cases(text: &str) -> Vec<Json> {
    serde_json::from_str(text).unwrap()
}

/// A list of numbers. f64 has no exact place for the largest i64; both sides round alike.
pub fn numbers(v: &Json) -> Vec<f64> {
    let number = |x: &Json| x.as_f64().unwrap_or_else(|| x.as_str().unwrap().parse().unwrap());
    v.as_array().unwrap().iter().map(number).collect()
}

/// A list of sizes.
pub fn sizes(v: &Json) -> Vec<usize> {
    v.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

/// A tensor's dtype, shape and numbers; `None` for JSON without a shape.
pub fn value(v: &Json) -> Option<Value> {
    let ty = TensorType::new(&sizes(v.get("shape")?), v["dtype"].as_str()?.parse().unwrap());
    Some(Value { ty, data: numbers(&v["data"]) })
}

/// A tensor of this process.
pub fn tensor(v: &Json) -> Result<Tensor> {
    from_vec(numbers(&v["data"]), sizes(&v["shape"]), Device::Cpu)?.cast(v["dtype"].as_str().unwrap().parse()?)
}

/// Fails unless the numbers differ by at most `eps` times one plus their size.
pub fn near(what: &str, have: &Tensor, want: &Json, eps: f64) -> Result<()> {
    assert_eq!(have.shape(), sizes(&want["shape"]), "{what}");
    for (i, (a, b)) in have.to_f64_vec()?.iter().zip(tensor(want)?.to_f64_vec()?).enumerate() {
        assert!((a - b).abs() <= eps * (1.0 + b.abs()), "{what}: element {i} is {a} instead of {b}");
    }
    Ok(())
}
