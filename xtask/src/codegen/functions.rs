//! Files made from the table of functions: methods and functions of Rust by subject, code that reads the arguments of a call by
//! name, the list on the landing page of the documentation, and the reference.

use super::rust_form::{Form, adapter, forms};
use crate::root;
use oflow::functional::{FnDef, functions};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::fs;

/// Where the generated Rust lies.
pub const FOLDER: &str = "src/functional/generated";

const MADE: &str = "made by `cargo xtask codegen` from the texts of the functions; do not edit.";

/// The built-in functions in order, without those that tests of this process have registered.
pub(super) fn table() -> Vec<FnDef> {
    functions().into_iter().filter(|def| !def.sig.name.contains('.')).collect()
}

/// A subject as the name of a file.
fn file_of(subject: &str) -> String {
    subject.to_lowercase().replace(' ', "_")
}

/// Subjects in the order of their first functions.
fn subjects<'a>(forms: &[Form<'a>]) -> Vec<&'a str> {
    let mut all: Vec<&str> = vec![];
    for form in forms {
        if !all.contains(&form.subject()) {
            all.push(form.subject());
        }
    }
    all
}

/// The generated files as (path, text).
pub fn generated() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let table = table();
    let forms = forms(&table)?;
    let mut files = vec![];
    let mut modules = format!("//! Methods and functions by subject: {MADE}\n\n");
    let (mut re_exports, mut lists) = (String::new(), String::new());
    for subject in subjects(&forms) {
        let of_subject: Vec<&Form> = forms.iter().filter(|f| f.subject() == subject).collect();
        let file = file_of(subject);
        writeln!(modules, "mod {file};")?;
        let free: Vec<&str> = of_subject.iter().flat_map(|f| f.exported()).collect();
        match free.as_slice() {
            [] => {}
            [one] => writeln!(re_exports, "    pub use super::{file}::{one};")?,
            many => writeln!(re_exports, "    pub use super::{file}::{{{}}};", many.join(", "))?,
        }
        let rows: Vec<String> = table.iter().filter(|d| d.subject == subject).filter_map(adapter).collect();
        if !rows.is_empty() {
            writeln!(lists, "    {file}::BY_NAME,")?;
        }
        files.push((format!("{FOLDER}/{file}.rs"), rust_file(subject, &of_subject, &rows)?));
    }
    write!(
        modules,
        "\n/// Functions that are not methods of [`Tensor`](crate::Tensor).\npub mod functions {{\n{re_exports}}}\n\n/// Text of each function of several ops, and the code that reads \
         its arguments from a call by name.\npub(super) const BY_NAME: &[&[ByName]] = &[\n{lists}];\n\n/// Text of a function and its code.\n\
         pub(super) type ByName = (&'static str, fn(&crate::functional::Bound) -> crate::Result<Vec<crate::Tensor>>);\n"
    )?;
    files.push((format!("{FOLDER}/mod.rs"), modules));
    files.push((format!("{FOLDER}/subjects.md"), landing_page(&forms)));
    files.push((format!("{FOLDER}/reference.md"), reference(&table, &forms)?));
    Ok(files)
}

fn rust_file(subject: &str, forms: &[&Form], rows: &[String]) -> Result<String, Box<dyn Error>> {
    let mut body = String::new();
    for form in forms {
        body += &form.options();
    }
    for form in forms.iter().filter(|f| !f.is_method()) {
        body += &form.code(0);
    }
    if forms.iter().any(|f| f.is_method()) {
        body += "impl Tensor {\n";
        let methods: Vec<String> = forms.iter().filter(|f| f.is_method()).map(|f| f.code(1)).collect();
        body += methods.join("").trim_end();
        body += "\n}\n";
    }
    if !rows.is_empty() {
        body += "\n/// By name.\npub(super) const BY_NAME: &[super::ByName] = &[\n";
        body += &rows.concat();
        body += "];\n";
    }
    // Only what the code uses is imported.
    let mut text = format!("//! {subject}: {MADE}\n\n");
    for (path, names) in IMPORTS {
        let used: Vec<&str> = names.iter().copied().filter(|name| mentions(&body, name)).collect();
        match used.as_slice() {
            [] => {}
            [one] => writeln!(text, "use {path}{one};")?,
            many => writeln!(text, "use {path}{{{}}};", many.join(", "))?,
        }
    }
    Ok(format!("{text}\n{body}"))
}

/// Names that generated code may use.
const IMPORTS: &[(&str, &[&str])] = &[
    ("crate::context::", &["Generator"]),
    ("crate::error::", &["CallSite", "Result"]),
    (
        "crate::functional::",
        &["IntLike", "IntList", "IntoTarget", "Operand", "RightOperand", "invoke", "invoke1", "op"],
    ),
    ("crate::functional::inplace::", &["write_over"]),
    ("crate::ops::", &["AttrValue"]),
    ("crate::placement::", &["Device", "Placement"]),
    ("crate::sbp::", &["NdSbp"]),
    ("crate::tensor::", &["Tensor"]),
    ("oflow_kernels::", &["DType", "Scalar"]),
    ("smallvec::", &["SmallVec", "smallvec"]),
    ("std::borrow::", &["Borrow"]),
];

/// Whether code, apart from its documentation, has a word that stands for itself.
fn mentions(code: &str, word: &str) -> bool {
    let of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let own = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !of_name(before) && !matches!(before, Some('.' | ':')) && !of_name(after)
    };
    let code_lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    code_lines.into_iter().any(|line| line.match_indices(word).any(|(at, _)| own(line, at)))
}

/// The rows of the landing page of the documentation: every function, by subject.
fn landing_page(forms: &[Form]) -> String {
    let mut text = String::new();
    for subject in subjects(forms) {
        let links: Vec<String> = forms.iter().filter(|f| f.subject() == subject).flat_map(Form::links).collect();
        let row_end = if text.is_empty() { "" } else { "\n" };
        text += &format!("{row_end}| {} | {} |", subject.to_lowercase(), links.join(", "));
    }
    text
}

/// The reference: every function by name, its texts and its docs. The page `docs/ops.md` stands before it.
fn reference(table: &[FnDef], forms: &[Form]) -> Result<String, Box<dyn Error>> {
    let mut by_name: BTreeMap<&str, Vec<&FnDef>> = BTreeMap::new();
    for def in table {
        by_name.entry(&def.sig.name).or_default().push(def);
    }
    let mut page = format!(
        "{} functions, {} with their overloads. This file is made by `cargo xtask codegen`; do not edit it.\n",
        by_name.len(),
        table.len(),
    );
    for (name, defs) in &by_name {
        write!(page, "\n## {name}\n\n")?;
        for def in defs {
            write!(page, "```text\n{}\n```\n\n{}\n\n", def.sig, plain(&def.doc))?;
        }
        if let Some(example) = forms.iter().find_map(|f| f.options_example(name)) {
            write!(page, "In Rust with all options: `{example}`.\n\n")?;
        }
        page.pop();
    }
    Ok(page)
}

/// Documentation without its examples, links and headings.
fn plain(doc: &str) -> String {
    let mut paragraphs: Vec<String> = vec![];
    let mut in_code = false;
    for paragraph in doc.split("\n\n") {
        let fences = paragraph.matches("```").count();
        let code = in_code || fences > 0;
        in_code ^= fences % 2 == 1;
        if code {
            continue;
        }
        let text = paragraph.replace("# Errors\n", "Errors: ");
        // A link is its text alone; brackets outside of code are no links.
        let text = text.replace("[`", "`").replace("`]", "`");
        let pieces: Vec<String> = text
            .split('`')
            .enumerate()
            .map(|(i, piece)| match piece.strip_prefix("(crate::").and_then(|p| p.split_once(')')) {
                Some((_, after)) => after.replace('[', "\\["),
                None if i % 2 == 0 => piece.replace('[', "\\["),
                None => piece.to_string(),
            })
            .collect();
        paragraphs.push(pieces.join("`"));
    }
    paragraphs.join("\n\n")
}

/// How much is written by hand, and how much is made of it.
pub fn counts() -> Result<String, Box<dyn Error>> {
    let table = table();
    let forms = forms(&table)?;
    let names: std::collections::BTreeSet<&str> = table.iter().map(|d| d.sig.name.as_str()).collect();
    let lines = |folder: &str, of: &dyn Fn(&str) -> bool| -> Result<usize, Box<dyn Error>> {
        let mut lines = 0;
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "rs") && of(&path.to_string_lossy()) {
                lines += fs::read_to_string(&path)?.lines().count();
            }
        }
        Ok(lines)
    };
    let methods: usize = forms.iter().filter(|f| f.is_method()).map(|f| f.links().len()).sum();
    let free: usize = forms.iter().filter(|f| !f.is_method()).map(|f| f.links().len()).sum();
    Ok(format!(
        "{} names with {} overloads; {methods} methods and {free} functions of Rust in {} generated lines; {} lines of src/functional \
         are written by hand",
        names.len(),
        table.len(),
        lines(FOLDER, &|_| true)?,
        lines("src/functional", &|_| true)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_no_code_and_no_link() {
        let doc = "One of [`nn`](crate::nn) and [B, T] and `[C]`.\n\n```\nlet x = 1;\n\nlet y = 2;\n```\n\n# Errors\nIf x is [].";
        assert_eq!(plain(doc), "One of `nn` and \\[B, T] and `[C]`.\n\nErrors: If x is \\[].");
    }

    #[test]
    fn only_code_counts_as_use() {
        assert!(mentions("    op!(x)", "op") && mentions("fn f(d: DType)", "DType"));
        assert!(!mentions("    /// op!(x)", "op") && !mentions("x.op(y)", "op") && !mentions("MyDType", "DType"));
    }

    #[test]
    fn every_function_has_a_sentence_and_a_place() {
        for def in table() {
            assert!(!def.summary().is_empty(), "{} is without a sentence", def.sig);
            assert_ne!(def.subject, "Other", "{}", def.sig);
        }
    }
}
