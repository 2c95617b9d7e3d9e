//! `python/oflow/_oflow.pyi`, `fft.pyi` and `linalg.pyi`: the types of the Python module, from the texts of the functions and `python_head.pyi`.

use super::functions::table;
use oflow::functional::{FnDef, FnReturn, ParamKind};
use oflow::ops::AttrKind;
use std::collections::BTreeMap;
use std::error::Error;

// The module itself writes its signatures with this file.
#[path = "../../../python/src/signature.rs"]
mod signature;

#[path = "../../../python/src/keywords.rs"]
mod keywords;

use signature::{Parameter, is_int_list, parameters, plain, result};

/// Names that PyTorch has for the parameters of its functions and methods: lists of overloads of [name, type, whether it is required].
const PYTORCH: &str = include_str!("../../../python/tests/pytorch_signatures.json");

/// The names of the parameters of PyTorch's functions, of all overloads and of methods.
type TheirNames = BTreeMap<String, Vec<String>>;

fn their_names() -> Result<TheirNames, Box<dyn Error>> {
    let recorded: serde_json::Value = serde_json::from_str(PYTORCH)?;
    let mut all = TheirNames::new();
    for (name, overloads) in ["functions", "methods"].iter().filter_map(|part| recorded[part].as_object()).flatten() {
        let named = overloads.as_array().into_iter().flatten().filter_map(|o| o.as_array()).flatten();
        let known = all.entry(name.clone()).or_default();
        // A word of the language cannot be given by name.
        for keyword in named.filter_map(|p| p[0].as_str()).filter(|word| *word != "from") {
            known.push(if keyword == "self" { "input" } else { keyword }.into());
        }
    }
    Ok(all)
}

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

/// The parameters under the names of PyTorch, if some are others.
fn pytorch_names(def: &FnDef, all: &[Parameter], theirs: &TheirNames) -> Option<Vec<Parameter>> {
    let theirs = theirs.get(&def.sig.name)?;
    let mut renamed = all.to_vec();
    for keyword in theirs.iter().filter(|keyword| all.iter().all(|p| p.name != **keyword)) {
        let Some(own) = keywords::parameter(&def.sig, keyword).map(|i| signature::name_of(&def.sig.params[i])) else {
            continue;
        };
        if let Some(p) = renamed.iter_mut().find(|p| p.name == own) {
            p.name.clone_from(keyword);
        }
    }
    let changed = renamed.iter().zip(all).any(|(renamed, own)| renamed.name != own.name);
    changed.then_some(renamed)
}

/// The parameter `out`, for functions that give new tensors.
fn out(def: &FnDef) -> Option<Parameter> {
    let of = match def.sig.returns {
        FnReturn::Tensor => "Tensor | None",
        FnReturn::TensorTuple | FnReturn::Named(_) => "Sequence[Tensor] | None",
        FnReturn::Void | FnReturn::Value(_) => return None,
    };
    let free = def.sig.params.iter().all(|p| p.name != "out");
    (free && !def.sig.name.ends_with('_')).then(|| Parameter {
        name: "out".into(),
        of: of.into(),
        default: Some("None".into()),
    })
}

/// The forms of an overload: as it is, with the names of PyTorch, and with sizes or tensors one by one where the last parameter by
/// position is a list of them.
fn forms(def: &FnDef, method: bool, theirs: &TheirNames) -> Vec<String> {
    let mut all: Vec<Parameter> = parameters(def);
    if let Some(out) = out(def).filter(|_| !method) {
        if all.iter().all(|p| p.name != "*") {
            all.push(Parameter { name: "*".into(), of: String::new(), default: None });
        }
        all.push(out);
    }
    let texts = |all: &[Parameter]| {
        let mut texts: Vec<String> = all.iter().map(parameter).collect();
        if method {
            texts[0] = "self".into();
        }
        texts
    };
    let renamed = pytorch_names(def, &all, theirs).map(|all| texts(&all));
    let mut texts = texts(&all);
    let by_position = |p: &&oflow::functional::FnParam| !p.keyword_only && p.kind != ParamKind::Target;
    let positional = def.sig.params.iter().take_while(by_position).count();
    let mut forms = vec![texts.clone()];
    forms.extend(renamed.filter(|renamed| *renamed != texts));
    if let Some(last) = positional.checked_sub(1) {
        let one = match def.sig.params[last].kind {
            _ if is_int_list(&def.sig.params[last]) => Some("builtins.int"),
            ParamKind::TensorTuple if keywords::is_variadic(&def.sig.name) => Some("Tensor"),
            _ => None,
        };
        if let Some(one) = one {
            texts[last] = format!("*{}: {one}", all[last].name);
            texts.retain(|t| t != "*");
            forms.push(texts);
        }
    }
    forms.into_iter().map(|f| format!("({}) -> {}", f.join(", "), returned(def))).collect()
}

/// A function or method with its overloads.
fn stub(name: &str, defs: &[&FnDef], method: bool, theirs: &TheirNames) -> String {
    let indent = if method { "    " } else { "" };
    let mut all: Vec<(String, &FnDef)> =
        defs.iter().flat_map(|d| forms(d, method, theirs).into_iter().map(|f| (f, *d))).collect();
    // Sizes one by one take calls without any, so forms without sizes stand before them.
    let one_by_one =
        |form: &str| form.split(", ").any(|p| p.trim_start_matches('(').starts_with('*') && p.contains(": "));
    all.sort_by_key(|(form, _)| one_by_one(form));
    let overloaded = if all.len() > 1 { format!("{indent}@overload\n") } else { String::new() };
    let mut text = String::new();
    let mut described: Vec<&FnDef> = vec![];
    for (form, def) in &all {
        // The other forms of an overload are described with its first.
        if described.iter().any(|d| std::ptr::eq(*d, *def)) {
            text += &format!("{overloaded}{indent}def {name}{form}: ...\n");
            continue;
        }
        described.push(def);
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
    let (table, theirs) = (table(), their_names()?);
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
            methods += &stub(name, &of_tensor, true, &theirs);
        }
        // `oflow.sbp` is a module.
        if !top.contains(name) && *name != "sbp" {
            functions += &stub(name, defs, false, &theirs);
        }
    }
    let text = format!(
        "# Made by `cargo xtask codegen` from the texts of the functions; do not edit.\n{before}{methods}{after}\n{}{functions}",
        tuples(table.iter())
    );
    let of = |domain: &str| (format!("python/oflow/{domain}.pyi"), domain_stub(domain, &theirs));
    Ok(vec![("python/oflow/_oflow.pyi".into(), text), of("fft"), of("linalg")])
}

/// The stub of `oflow.fft` and its like: the functions of a crate of its own. Ops that only these call have none.
fn domain_stub(domain: &str, theirs: &TheirNames) -> String {
    let all = oflow::functional::functions();
    let mut by_name: BTreeMap<&str, Vec<&FnDef>> = BTreeMap::new();
    for def in &all {
        if let Some(name) = def.sig.name.strip_prefix(&format!("{domain}.")) {
            by_name.entry(name).or_default().push(def);
        }
    }
    let functions: String = by_name.iter().map(|(name, defs)| stub(name, defs, false, theirs)).collect();
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
