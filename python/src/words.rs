//! Texts about functions: the signature in messages, and `__doc__` with the signature that `inspect` reads.

use crate::signature::{Parameter, parameters, plain, result};
use oflow::functional::FnDef;

/// An overload as Python writes it.
pub fn python(name: &str, def: &FnDef) -> String {
    let one = |p: Parameter| match (p.name.as_str(), p.default) {
        ("*", _) => p.name,
        (_, Some(d)) => format!("{}: {} = {d}", p.name, p.of),
        (_, None) => format!("{}: {}", p.name, p.of),
    };
    let all: Vec<String> = parameters(def).into_iter().map(one).collect();
    format!("{name}({}) -> {}", all.join(", "), result(&def.sig.returns))
}

/// The parameters as `inspect` reads them, to which names of types mean nothing.
fn text_signature(def: &FnDef) -> String {
    let one = |p: Parameter| match p.default {
        Some(d) if p.of == "dtype" => format!("{}='{d}'", p.name),
        Some(d) => format!("{}={d}", p.name),
        None => p.name,
    };
    parameters(def).into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The text of `ml_doc`: the signature for `inspect`, where there is one overload, and the description.
pub fn doc(name: &str, overloads: &[&FnDef]) -> String {
    let plain_forms: Vec<&&FnDef> = overloads.iter().filter(|d| !d.variant).collect();
    let mut text = match plain_forms.as_slice() {
        [one] => format!("{name}({})\n--\n\n", text_signature(one)),
        _ => String::new(),
    };
    let mut said: Vec<&str> = vec![];
    for def in overloads {
        text += &format!("{}\n\n", python(name, def));
        if !said.contains(&def.doc.as_str()) {
            text += &format!("{}\n\n", plain(&def.doc));
            said.push(&def.doc);
        }
    }
    text.trim_end().to_string()
}
