//! All programs of the kernels as data, to compile them without a GPU: the files of `kernels/cuda` with the macros of their usual
//! forms, which the module that launches a file declares ([`Source::forms`]). Generated programs (elementwise) come from the
//! expressions.

use super::compile::{Unit, compile};
use super::{SOURCES, Source};
use crate::Result;

/// A source and the macros that it is compiled with, `NAME=value` each.
#[derive(Clone, Debug)]
pub struct Program {
    /// Text of the program.
    pub source: Source,
    /// Macros that the program is compiled with.
    pub defines: Vec<String>,
}

impl Program {
    /// Compiles the program for an architecture such as `sm_90`, without the cache. Needs NVRTC and no GPU.
    ///
    /// # Errors
    /// Errors of the compiler, with lines.
    pub fn compile(&self, arch: &str) -> Result<Vec<u8>> {
        compile(&Unit {
            name: self.source.name(),
            text: self.source.text(),
            defines: self.defines.clone(),
            arch: arch.to_string(),
            gpu: "",
        })
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.source.name())?;
        self.defines.iter().try_for_each(|d| write!(f, " {d}"))
    }
}

/// Macros that are the same in the combinations that occur: a value's size differs from the query's only rarely.
const SAME: [&[&str]; 3] = [&["D=", "DV="], &["P=", "G=", "M=", "V="], &["T=", "O="]];

/// Returns the programs of files.
pub fn programs() -> Vec<Program> {
    let mut all = vec![];
    for source in SOURCES {
        for line in source.usual() {
            for text in alternatives(line) {
                let defines: Vec<String> = text.split_whitespace().map(str::to_string).collect();
                if !diagonal(line, &defines) {
                    continue;
                }
                all.push(Program { source: (*source).clone(), defines });
            }
        }
    }
    all
}

/// Whether macros that a line gives the same choices have the same value.
fn diagonal(line: &str, defines: &[String]) -> bool {
    let choices =
        |name: &str| line.split_whitespace().find_map(|d| d.strip_prefix(name)).filter(|v| v.starts_with('{'));
    let value = |name: &str| defines.iter().find_map(|d| d.strip_prefix(name));
    SAME.iter().all(|names| {
        let mut pairs = names.windows(2);
        pairs.all(|p| choices(p[0]).is_none() || choices(p[0]) != choices(p[1]) || value(p[0]) == value(p[1]))
    })
}

/// A text with `{a,b}` as all the texts it stands for.
fn alternatives(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_string()] };
    let (choices, after) = rest.split_once('}').unwrap_or((rest, ""));
    let after = alternatives(after);
    choices.split(',').flat_map(|c| after.iter().map(move |a| format!("{before}{c}{a}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_module() {
        // From `tests/units`, whose package compiles this.
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/cuda");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|f| Some(f.unwrap().file_name().to_str()?.strip_suffix(".cu")?.to_string()))
            .collect();
        files.sort();
        let mut named: Vec<&str> = SOURCES.iter().map(|source| source.name()).collect();
        named.sort();
        assert_eq!(files, named, "`kernels!` in kernels/src/cuda/mod.rs names what kernels/cuda has");
        let without: Vec<&str> = SOURCES.iter().filter(|s| s.usual().is_empty()).map(|s| s.name()).collect();
        assert!(without.is_empty(), "say `.forms(..)` of {without:?}");
    }

    #[test]
    fn braces_are_choices() {
        assert_eq!(alternatives("A={1,2} B={x}"), ["A=1 B=x", "A=2 B=x"]);
        assert_eq!(alternatives(""), [""]);
    }
}
