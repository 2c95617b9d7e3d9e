//! `python/oflow/optim/kinds.py`: the optimizers of Python, from the table of kinds in the library.

use oflow::optim::{OptimizerConfig, OptimizerKind, StateShape};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::error::Error;
use std::fmt;

const PATH: &str = "python/oflow/optim/kinds.py";

const HEAD: &str = r#""""The optimizers, as the library declares them. Written by `cargo xtask codegen`: edit `src/optim/kinds` instead."""

from .optimizer import Optimizer

"#;

const MASTERS: &str = "The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused.";

/// A default of Rust as Python writes it.
fn literal(of: &Value) -> Result<String, String> {
    match of {
        Value::Bool(true) => Ok("True".into()),
        Value::Bool(false) => Ok("False".into()),
        Value::Null => Ok("None".into()),
        Value::String(text) => Ok(format!("{text:?}")),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(literal).collect::<Result<_, _>>()?;
            Ok(format!("({})", all.join(", ")))
        }
        Value::Number(n) if n.is_u64() => Ok(n.to_string()),
        Value::Number(n) => n.as_f64().map(|x| format!("{x:?}")).ok_or_else(|| format!("{n} does not fit a float")),
        other => Err(format!("{other} is not an option that Python has")),
    }
}

/// The fields of an object in the order of its text; a map of `serde_json` sorts them.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Vec<(String, Value)>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = vec![];
        while let Some(field) = map.next_entry()? {
            all.push(field);
        }
        Ok(all)
    }
}

/// A tuple of strings.
fn tuple(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    match &quoted[..] {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

/// The options by name with their defaults, in the order of the settings' fields. `beta1` and `beta2` are PyTorch's `betas`. Those that are
/// passed by keyword are left out: `maximize`, and `master_weights`, which PyTorch lacks.
fn options(kind: &OptimizerKind) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let text = serde_json::to_string(&kind.config)?;
    let fields = serde_json::Deserializer::from_str(&text).deserialize_map(InOrder)?;
    let mut all = vec![];
    for (name, value) in fields.iter().filter(|(name, _)| name != "kind") {
        match name.as_str() {
            "beta1" => {
                let second = fields.iter().find(|(name, _)| name == "beta2");
                let (_, second) = second.ok_or_else(|| format!("{} has beta1 without beta2", kind.name))?;
                all.push(("betas".into(), format!("({}, {})", literal(value)?, literal(second)?)));
            }
            "beta2" | "maximize" | "master_weights" => {}
            _ => all.push((name.clone(), literal(value)?)),
        }
    }
    Ok(all)
}

fn class(kind: &OptimizerKind) -> Result<String, Box<dyn Error>> {
    let options = options(kind)?;
    let parameters: Vec<String> = options.iter().map(|(name, value)| format!("        {name}={value},\n")).collect();
    let by_keyword = [("maximize".into(), "False".into()), ("master_weights".into(), "True".into())];
    let all: Vec<&(String, String)> = options.iter().chain(&by_keyword).collect();
    let defaults: Vec<String> = all.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    let given: Vec<String> = all.iter().map(|(name, _)| format!("            \"{name}\": {name},\n")).collect();
    let names = kind.state.iter().map(|(name, _)| *name);
    let state: Vec<&str> = names.chain(["master"]).collect();
    // Of a matrix: from the last dim.
    let reduced = kind.state.iter().filter_map(|(name, shape)| match shape {
        StateShape::Reduced(dim) => Some(format!("\"{name}\": {}", *dim as i64 - 2)),
        _ => None,
    });
    let reduced: Vec<String> = reduced.collect();
    let reduced = match reduced.is_empty() {
        true => String::new(),
        false => format!("    _reduced = {{{}}}\n", reduced.join(", ")),
    };
    let values: &[&str] = if kind.counts_steps { &["steps"] } else { &[] };
    Ok(format!(
        "
class {class}(Optimizer):
    \"\"\"{doc}

    {MASTERS}\"\"\"

    _kind = \"{name}\"
    _state = {state}
{reduced}    _values = {values}
    _options = {{{defaults}}}

    def __init__(
        self,
        params,
{parameters}        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {{
{given}        }}
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)
",
        class = kind.class,
        doc = kind.doc,
        name = kind.name,
        state = tuple(&state),
        values = tuple(values),
        defaults = defaults.join(", "),
        parameters = parameters.concat(),
        given = given.concat(),
    ))
}

/// The generated file as (path, text).
pub fn generated() -> Result<(String, String), Box<dyn Error>> {
    let mut kinds = OptimizerConfig::kinds();
    kinds.sort_by_key(|k| k.class);
    let classes: Vec<String> = kinds.iter().map(class).collect::<Result<_, _>>()?;
    let mut names: Vec<&str> = kinds.iter().map(|k| k.class).collect();
    names.sort_unstable();
    Ok((PATH.into(), format!("{HEAD}__all__ = [{}]\n\n{}", tuple(&names).trim_matches(['(', ')']), classes.join("\n"))))
}
