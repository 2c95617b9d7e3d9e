//! `python/oflow/_oflow.pyi`, `fft.pyi` and `linalg.pyi`: the types of the Python module, from the texts of the functions and `python_head.pyi`.

use super::functions::table;
use oflow::functional::{FnDef, FnReturn, ParamKind};
use oflow::ops::AttrKind;
use std::collections::BTreeMap;
use std::error::Error;

// The module itself writes its signatures with this file.
#[path = "../../../python/src/signature.rs"]
mod signature;

use signature::{Parameter, is_int_list, parameters, plain, result};

/// Text written by hand: classes, and methods that no row of the table says.
const HEAD: &str = include_str!("python_head.pyi");

/// Where the methods of the table go.
const METHODS: &str = "    # Methods of the table.\n";

/// Names of types that are names of the module too: `oflow.float` is a dtype, `Tensor.dtype` a property.
const TYPES: [(&str, &str); 6] = [
    ("int", "builtins.int"),
    ("float", "builtins.float"),
    ("bool", "builtins.bool"),
    ("dtype", "_dtype"),
    ("device", "_device"),
    ("placement", "_placement"),
];

/// A type as the stub writes it.
fn annotation(of: &str) -> String {
    let mut text = String::new();
    for word in of.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
        let end = word.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        let bare = &word[..word.len() - if end.len() == word.len() { 1 } else { 0 }];
        let renamed = TYPES.iter().find(|(name, _)| *name == bare).map_or(bare, |(_, to)| to);
        text += renamed;
        text += &word[bare.len()..];
    }
    text
}

fn returned(def: &FnDef) -> String {
    match &def.sig.returns {
        FnReturn::Named(names) => tuple_of(names),
        // An assignment to a number of one type takes it.
        FnReturn::Value(AttrKind::Scalar) => "Any".into(),
        returns => annotation(&result(returns)),
    }
}

/// The class of named results. One of the names of a tuple's methods cannot be a field.
fn tuple_of(names: &[String]) -> String {
    if names.iter().any(|name| matches!(name.as_str(), "index" | "count")) {
        return format!("tuple[{}]", vec!["Tensor"; names.len()].join(", "));
    }
    let capital = |name: &String| {
        let (first, rest) = name.split_at(name.len().min(1));
        first.to_uppercase() + rest
    };
    format!("_{}", names.iter().map(capital).collect::<String>())
}

/// The classes of the named results of these functions.
fn tuples<'a>(defs: impl Iterator<Item = &'a FnDef>) -> String {
    let mut classes: BTreeMap<String, String> = BTreeMap::new();
    for def in defs {
        if let FnReturn::Named(names) = &def.sig.returns {
            let fields: String = names.iter().map(|name| format!("    {name}: Tensor\n")).collect();
            let class = tuple_of(names);
            if class.starts_with('_') {
                classes.insert(class, fields);
            }
        }
    }
    classes.into_iter().map(|(class, fields)| format!("class {class}(NamedTuple):\n{fields}\n")).collect()
}

fn parameter(p: &Parameter) -> String {
    let default = p.default.as_deref().map(|d| match d {
        d if d.starts_with("float(") => "...",
        d => d.trim_start_matches("oflow."),
    });
    match (p.name.as_str(), default) {
        ("*", _) => "*".into(),
        (name, Some(d)) => format!("{name}: {} = {d}", annotation(&p.of)),
        (name, None) => format!("{name}: {}", annotation(&p.of)),
    }
}

/// The forms of an overload: as it is, and with sizes one by one where the last parameter by position is a list of integers.
fn forms(def: &FnDef, method: bool) -> Vec<String> {
    let all: Vec<Parameter> = parameters(def);
    let mut texts: Vec<String> = all.iter().map(parameter).collect();
    if method {
        texts[0] = "self".into();
    }
    let by_position = |p: &&oflow::functional::FnParam| !p.keyword_only && p.kind != ParamKind::Target;
    let positional = def.sig.params.iter().take_while(by_position).count();
    let mut forms = vec![texts.clone()];
    if let Some(last) = positional.checked_sub(1).filter(|i| is_int_list(&def.sig.params[*i])) {
        texts[last] = format!("*{}: builtins.int", all[last].name);
        texts.retain(|t| t != "*");
        forms.push(texts);
    }
    forms.into_iter().map(|f| format!("({}) -> {}", f.join(", "), returned(def))).collect()
}

/// A function or method with its overloads.
fn stub(name: &str, defs: &[&FnDef], method: bool) -> String {
    let indent = if method { "    " } else { "" };
    let mut all: Vec<(String, &FnDef)> =
        defs.iter().flat_map(|d| forms(d, method).into_iter().map(|f| (f, *d))).collect();
    // Sizes one by one take calls without any, so forms without sizes stand before them.
    let one_by_one =
        |form: &str| form.split(", ").any(|p| p.trim_start_matches('(').starts_with('*') && p.contains(": "));
    all.sort_by_key(|(form, _)| one_by_one(form));
    let overloaded = if all.len() > 1 { format!("{indent}@overload\n") } else { String::new() };
    let mut text = String::new();
    for (form, def) in &all {
        let doc = plain(def.summary()).replace('\\', "").replace('\n', " ");
        text += &format!("{overloaded}{indent}def {name}{form}:\n{indent}    \"\"\"{doc}\"\"\"\n");
    }
    text
}

/// Names that a part of the head defines, at that indentation.
fn named(part: &'static str, indent: &str) -> Vec<&'static str> {
    let defined = |line: &'static str| {
        let rest = line.strip_prefix(indent)?;
        let rest = rest.strip_prefix("def ").or_else(|| rest.strip_prefix("class "))?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    };
    part.lines().filter_map(defined).collect()
}

/// The generated file as (path, text).
pub fn generated() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    // Some of their functions are in no domain.
    oflow_fft::register()?;
    oflow_linalg::register()?;
    let table = table();
    let mut by_name: BTreeMap<&str, Vec<&FnDef>> = BTreeMap::new();
    for def in &table {
        by_name.entry(&def.sig.name).or_default().push(def);
    }
    let (before, after) = HEAD.split_once(METHODS).ok_or("python_head.pyi has no place for methods")?;
    let (_, class) = before.rsplit_once("\nclass Tensor:").ok_or("python_head.pyi has no class of tensors")?;
    let (own, top) = (named(class, "    "), named(HEAD, ""));
    let (mut methods, mut functions) = (String::new(), String::new());
    for (name, defs) in &by_name {
        let on_tensor = |d: &&&FnDef| d.sig.params.first().is_some_and(|p| p.kind == ParamKind::Tensor);
        let of_tensor: Vec<&FnDef> = defs.iter().filter(on_tensor).copied().collect();
        if !of_tensor.is_empty() && !own.contains(name) {
            methods += &stub(name, &of_tensor, true);
        }
        // `oflow.sbp` is a module.
        if !top.contains(name) && *name != "sbp" {
            functions += &stub(name, defs, false);
        }
    }
    let text = format!(
        "# Made by `cargo xtask codegen` from the texts of the functions; do not edit.\n{before}{methods}{after}\n{}{functions}",
        tuples(table.iter())
    );
    let of = |domain: &str| (format!("python/oflow/{domain}.pyi"), domain_stub(domain));
    Ok(vec![("python/oflow/_oflow.pyi".into(), text), of("fft"), of("linalg")])
}

/// The stub of `oflow.fft` and its like: the functions of a crate of its own. Ops that only these call have none.
fn domain_stub(domain: &str) -> String {
    let all = oflow::functional::functions();
    let mut by_name: BTreeMap<&str, Vec<&FnDef>> = BTreeMap::new();
    for def in &all {
        if let Some(name) = def.sig.name.strip_prefix(&format!("{domain}.")) {
            by_name.entry(name).or_default().push(def);
        }
    }
    let functions: String = by_name.iter().map(|(name, defs)| stub(name, defs, false)).collect();
    let tuples = tuples(by_name.values().flatten().copied());
    let named = if tuples.is_empty() { "" } else { "NamedTuple, " };
    format!(
        "# Made by `cargo xtask codegen` from the texts of the functions; do not edit.\n\nimport builtins\n\
         from collections.abc import Sequence\nfrom typing import Any, {named}overload\n\nfrom ._oflow import Number, Sbp, Tensor, float32\n\
         from ._oflow import device as _device, dtype as _dtype, placement as _placement\n\n{tuples}{functions}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_names_of_the_module_are_written_in_full() {
        assert_eq!(annotation("int | Sequence[int]"), "builtins.int | Sequence[builtins.int]");
        assert_eq!(annotation("dtype | None"), "_dtype | None");
        assert_eq!(annotation("tuple[int, ...]"), "tuple[builtins.int, ...]");
        assert_eq!(annotation("Sequence[Sbp | Sequence[Sbp] | str]"), "Sequence[Sbp | Sequence[Sbp] | str]");
    }
}
