//! The rule for messages: every string literal of the code outside of tests, and of the Python files.

use super::{Fault, Rule};
use crate::source::Source;
use proc_macro2::{TokenStream, TokenTree};
use std::error::Error;
use std::fs;
use std::path::Path;

/// Messages that a rule forbids.
///
/// # Errors
/// A file cannot be read.
pub fn faults(source: &Source) -> Result<Vec<Fault>, Box<dyn Error>> {
    let mut all = vec![];
    for file in &source.files {
        let text = fs::read_to_string(source.root.join(&file.path))?;
        let tokens: TokenStream = text.parse().map_err(|e| format!("{}: {e}", file.path))?;
        literals(tokens, &mut |line, text| {
            if says_is_no(text) {
                all.push(Fault { path: file.path.clone(), line, rule: Rule::IsNo, text: text.into() });
            }
        });
    }
    python(&source.root, Path::new("python/oflow"), &mut all)?;
    Ok(all)
}

/// Whether a text has "is no" or "are no" before a noun.
fn says_is_no(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).enumerate().any(|(n, w)| {
        let next = words.get(n + 2).map_or("", |w| w.trim_matches(|c: char| !c.is_alphanumeric()));
        matches!(w[0], "is" | "are" | "Is" | "Are" | "was" | "were")
            && w[1] == "no"
            && !matches!(next, "longer" | "more" | "less")
    })
}

/// Hands the string literals of code to `f` with their lines; not those of attributes, docs and tests.
fn literals(tokens: TokenStream, f: &mut dyn FnMut(usize, &str)) {
    let mut tokens = tokens.into_iter().peekable();
    let mut of_tests = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(p) if p.as_char() == '#' => {
                // An attribute; `#!` has a mark between.
                let mut next = tokens.peek();
                if matches!(next, Some(TokenTree::Punct(p)) if p.as_char() == '!') {
                    tokens.next();
                    next = tokens.peek();
                }
                if let Some(TokenTree::Group(g)) = next {
                    let text = g.stream().to_string().replace(' ', "");
                    of_tests |= text == "test" || text.starts_with("cfg(test") || text.starts_with("cfg(all(test");
                    tokens.next();
                }
            }
            TokenTree::Punct(p) if p.as_char() == ';' => of_tests = false,
            TokenTree::Group(g) => {
                let body = g.delimiter() == proc_macro2::Delimiter::Brace;
                if !of_tests {
                    literals(g.stream(), f);
                }
                of_tests &= !body;
            }
            TokenTree::Literal(l) => {
                if let syn::Lit::Str(s) = syn::Lit::new(l) {
                    f(s.span().start().line, &s.value());
                }
            }
            _ => {}
        }
    }
}

/// The same of the lines of Python files that have a quotation mark.
fn python(root: &Path, folder: &Path, all: &mut Vec<Fault>) -> Result<(), Box<dyn Error>> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let rel = path.strip_prefix(root)?.to_path_buf();
        if path.is_dir() {
            python(root, &rel, all)?;
        } else if path.extension().is_some_and(|e| e == "py") {
            for (n, line) in fs::read_to_string(&path)?.lines().enumerate() {
                let code = line.trim();
                if !code.starts_with('#') && code.contains('"') && says_is_no(code) {
                    let path = rel.to_string_lossy().replace('\\', "/");
                    all.push(Fault { path, line: n + 1, rule: Rule::IsNo, text: code.into() });
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_code_are_read_and_those_of_tests_and_docs_are_not() {
        let code = "/// a is no b\n#[doc = \"c is no d\"] fn f() { g(format!(\"x is no {y}\")); h(\"there are no\\n z\") }\n\
            #[cfg(test)] mod tests { const X: &str = \"y is no z\"; }\nconst K: &str = \"is no longer\";";
        let mut found = vec![];
        literals(code.parse().unwrap(), &mut |_, text| {
            if says_is_no(text) {
                found.push(text.to_string());
            }
        });
        assert_eq!(found, ["x is no {y}", "there are no\n z"]);
    }
}
