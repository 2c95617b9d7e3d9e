//! Texts of the library in Python's words. The library is written in Rust, and what its errors advise is code of Rust: here it becomes
//! what a program in Python writes. A test reads every text of the sources and finds what is left.

use crate::signature::DTYPE_NAMES;
use oflow::DType;
use oflow::sbp::NdSbp;
use pyo3::pyfunction;
use std::cmp::Reverse;

/// Whole phrases whose counterpart has another form.
const PHRASES: &[(&str, &str)] = &[
    ("`oflow::apply_custom` in Rust", "`oflow.autograd.Function.apply`"),
    (
        "those are `DType::qint8(scale, zero)`, `quint8`, `qint16` and `qint32`, as text: qint8(scale=0.5, zero=3)",
        "those are `oflow.dtype(\"qint8(scale=0.5, zero=3)\")`, and `quint8`, `qint16` and `qint32` in the same way",
    ),
    ("`DType::register`", "oflow's library of Rust"),
    ("`oflow::ops::register`", "`oflow.op`"),
    ("`OpDef::grad`", "`gradient=` of `oflow.op`"),
    ("`module.to_global(&mesh, &[])`", "`module.to_global(placement)`"),
    ("`Placement::all`", "`oflow.placement.all`"),
    ("`Device::Cpu.dtype(dtype)`", "`dtype=...`"),
    ("`(&placement, sbp![...])`", "`placement=..., sbp=...`"),
    ("`from_vec(values, shape, target)?`", "`oflow.tensor(values)`"),
    ("`range(start, end, step, target)?`", "`oflow.arange(start, end, step)`"),
    ("`BackwardOptions { gradient: Some(..), .. }`", "`backward(gradient=...)`"),
    ("`CheckpointOptions::keep`", "`keep=` of `CheckpointManager`"),
    ("`BuildOptions::cache`", "`cache=`"),
    (", and `ctx.enter()` on helper threads", ""),
];

/// Paths of Rust and the modules of Python that have the same things.
const PATHS: &[(&str, &str)] = &[
    ("Tensor::", "Tensor."),
    ("Checkpoint::", "Checkpoint."),
    ("oflow::", "oflow."),
    ("nn::", "oflow.nn."),
    ("optim::", "oflow.optim."),
    ("Device::Cpu", "\"cpu\""),
    ("Device::Cuda", "\"cuda\""),
    ("y.shape()", "y.shape"),
    ("|| ...", "lambda: ..."),
];

/// A text of the library as Python says it.
pub fn in_python(text: &str) -> String {
    let mut text = text.to_string();
    for (rust, python) in PHRASES {
        text = text.replace(rust, python);
    }
    text = of_other_crate(text);
    text = dtypes(text);
    text = sbps(text);
    for (rust, python) in PATHS {
        text = text.replace(rust, python);
    }
    // Code stands between backticks: every second part.
    let parts = text.split('`').enumerate().map(|(i, part)| if i % 2 == 1 { code(part) } else { part.to_string() });
    parts.collect::<Vec<_>>().join("`")
}

/// Functions of crates of their own have a module here, which the text names last.
fn of_other_crate(text: String) -> String {
    match (text.find(" is in the crate oflow-"), text.find("; in Python ")) {
        (Some(start), Some(end)) if start < end => {
            format!("{} is here {}", &text[..start], &text[end + "; in Python ".len()..])
        }
        _ => text,
    }
}

/// `DType::F32` is `oflow.float32`.
fn dtypes(mut text: String) -> String {
    if text.contains("DType::") {
        let mut names: Vec<_> = DType::BUILTIN.iter().zip(DTYPE_NAMES).collect();
        // A name may begin with another one, as `F8E5M2FNUZ` would.
        names.sort_by_key(|(dtype, _)| Reverse(dtype.builtin().map_or(0, |b| format!("{b:?}").len())));
        for (dtype, name) in names {
            if let Some(builtin) = dtype.builtin() {
                text = text.replace(&format!("DType::{builtin:?}"), &format!("oflow.{name}"));
            }
        }
    }
    text
}

/// `sbp![S(0), B]` is `("S(0)", "B")`, and `sbp![B]` is `"B"`.
fn sbps(mut text: String) -> String {
    while let Some(start) = text.find("sbp![") {
        let inside = start + "sbp![".len();
        let Some(length) = text[inside..].find(']') else { break };
        let quoted = match text[inside..inside + length].parse::<NdSbp>() {
            Ok(all) => {
                let all: Vec<String> = all.iter().map(|s| format!("\"{s}\"")).collect();
                if let [one] = all.as_slice() { one.clone() } else { format!("({})", all.join(", ")) }
            }
            Err(_) => "...".to_string(),
        };
        text.replace_range(start..=inside + length, &quoted);
    }
    text
}

/// Code without what only Rust has: `?` behind a call, `&` before an argument, a pair as one argument of `to_global`.
fn code(text: &str) -> String {
    let mut text = text.replace(")?", ")").replace("(&", "(").replace(", &", ", ");
    if text.contains(".to_global((") || text.starts_with("to_global((") {
        text = text.replace("to_global((", "to_global(");
        text = text.strip_suffix("))").map_or(text.clone(), |rest| format!("{rest})"));
    }
    text
}

/// A text in Python's words, for tests.
#[pyfunction]
pub fn _in_python(text: &str) -> String {
    in_python(text)
}

/// The text of an error that names a line of this library's sources, with the line of the program instead.
pub fn at_line(text: &str, site: &str) -> String {
    let lines = text.split('\n').map(|line| match line.strip_prefix("  at ") {
        Some(place) if place.contains(".rs:") => format!("  at {site}"),
        _ => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
