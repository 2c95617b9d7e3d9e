//! Options of a build that stand at the top of a source, in comments:
//!
//! ```text
//! // oflow: flags = -O3 -march=native
//! // oflow: link = -lblas
//! // oflow: dependency = half = "2"
//! ```
//!
//! `flags` are for the compiler of this file (for a `.cu` file nvcc), `link` for the linker of the library, `dependency` is a line of the
//! manifest of a Rust source. They are part of the text of the source, and so of the key of the build.

use super::{Language, SourceFile};
use crate::error::{Error, Result};
use std::path::Path;

/// Start of a comment with build options.
const MARK: &str = "// oflow:";

/// The options of one source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InSource {
    pub(super) flags: Vec<String>,
    pub(super) links: Vec<String>,
    pub(super) dependencies: Vec<String>,
}

/// Reads the options of a source.
///
/// # Errors
/// A line cannot be read, stands behind code, or is of no use in this language; the message names file and line.
pub(super) fn read(source: &SourceFile) -> Result<InSource> {
    let text = String::from_utf8_lossy(&source.text);
    let mut found = InSource::default();
    // Whether code has come, and whether a comment of several lines is open.
    let (mut code, mut open) = (false, false);
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if open {
            open = !line.contains("*/");
        } else if let Some(option) = line.strip_prefix(MARK) {
            let bad = |why: String| {
                Error::parse(format!("{}:{}: {why}", source.shown, n + 1)).help(
                    "build options are lines at the top of the file: `// oflow: flags = -march=native`, `// oflow: link = -lblas`, or in \
                     Rust `// oflow: dependency = half = \"2\"`",
                )
            };
            if code {
                return Err(bad(format!("the build option '{line}' stands behind code")));
            }
            add(&mut found, source, option).map_err(bad)?;
        } else if let Some(comment) = line.strip_prefix("/*") {
            open = !comment.contains("*/");
        } else {
            code |= !(line.is_empty() || line.starts_with("//"));
        }
    }
    Ok(found)
}

fn add(found: &mut InSource, source: &SourceFile, option: &str) -> std::result::Result<(), String> {
    let (key, value) =
        option.split_once('=').ok_or_else(|| format!("the build option '{}' has no '='", option.trim()))?;
    let (key, value) = (key.trim(), value.trim());
    if value.is_empty() {
        return Err(format!("the build option '{key}' says nothing"));
    }
    match (key, source.language) {
        ("flags" | "link", Language::Rust) => Err(format!(
            "'{key}' is for C, C++ and CUDA; cargo reads RUSTFLAGS, and `#[link(name = \"…\")]` in the source"
        )),
        ("flags" | "link", Language::Cuda) if !source.is_compiled() => Err(format!(
            "'{key}' is for nvcc, and this file is compiled at its first use: its host code launches no kernel (`<<<`)"
        )),
        ("dependency", Language::Rust) => {
            found.dependencies.push(value.to_string());
            Ok(())
        }
        ("dependency", _) => Err("'dependency' is for Rust; name a library of C with 'link'".into()),
        ("flags", _) => {
            found.flags.extend(options(value, source.path.parent())?);
            Ok(())
        }
        ("link", _) => {
            let links = options(value, source.path.parent())?;
            let wrong = links.iter().find(|l| !["-l", "-L", "-Wl,"].iter().any(|start| l.starts_with(start)));
            if let Some(wrong) = wrong {
                return Err(format!("'{wrong}' is not an option of a linker: they start with -l, -L or -Wl,"));
            }
            found.links.extend(links);
            Ok(())
        }
        (other, _) => Err(format!("unknown build option '{other}'")),
    }
}

/// The words of a value; quotes hold spaces. Relative folders are those beside the source.
fn options(value: &str, folder: Option<&Path>) -> std::result::Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted) = (vec![], String::new(), false);
    for c in value.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    if quoted {
        return Err(format!("'{value}' has a quote that does not end"));
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    for word in &mut words {
        if !word.starts_with('-') || word.len() < 2 {
            return Err(format!(
                "'{word}' is not an option: options start with '-', and a path stands right behind (-Ifolder)"
            ));
        }
        let path = word.strip_prefix("-I").or_else(|| word.strip_prefix("-L")).filter(|p| !p.is_empty());
        if let (Some(path), Some(folder)) = (path, folder)
            && Path::new(path).is_relative()
        {
            *word = format!("{}{}", &word[..2], folder.join(path).display());
        }
    }
    Ok(words)
}
