//! Rules for `examples/`: an example is what a user would write.
//!
//! 1. A program has [`LONGEST`] lines at most. Programs are the `.rs` and `.py` files of `examples` and `examples/python`, and each
//!    `main.rs` of a folder; the files beside a `main.rs` and those in `common` are its modules.
//! 2. No file has an option that only tests and benches need ([`HARNESS`]). These read the lines that the programs print.

use super::{Fault, Rule};
use std::error::Error;
use std::fs;
use std::path::Path;

/// Largest number of lines of a program.
const LONGEST: usize = 120;

/// Options of programs that once served tests and benches only.
const HARNESS: [&str; 7] = ["--losses", "--compare", "--tolerance", "--warmup", "--log", "--json", "--report"];

/// Every place in the examples of a checkout that breaks a rule.
///
/// # Errors
/// A file or folder cannot be read.
pub fn faults(root: &Path) -> Result<Vec<Fault>, Box<dyn Error>> {
    let mut found = vec![];
    let mut folders = vec![root.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_some_and(|e| e == "rs" || e == "py") {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                found.extend(of_file(&name, &fs::read_to_string(&path)?));
            }
        }
    }
    Ok(found)
}

fn of_file(path: &str, text: &str) -> Vec<Fault> {
    let fault = |line, rule, text: &str| Fault { path: path.into(), line, rule, text: text.trim().into() };
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lines = text.lines().count();
    let mut found = vec![];
    if lines > LONGEST && (name == "main.rs" || folder == "examples" || folder == "examples/python") {
        found.push(fault(lines, Rule::LongExample, &format!("{lines} lines, at most {LONGEST} are allowed")));
    }
    // Comments may name options of `oflaunch` and `oflow`, which have some of the same names.
    let code = |line: &str| !line.trim_start().starts_with("//");
    for (i, line) in text.lines().enumerate().filter(|(_, line)| code(line)) {
        if words(line).any(|w| HARNESS.contains(&w)) {
            found.push(fault(i + 1, Rule::HarnessOption, line));
        }
    }
    found
}

/// The words of a line, where a dash belongs to a word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_short_and_have_no_options_for_tests() {
        let found = faults(&crate::root()).unwrap();
        let text: Vec<String> = found.iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.text)).collect();
        assert!(found.is_empty(), "{}", text.join("\n"));
    }

    #[test]
    fn broken_rules_are_found() {
        let long = "fn main() {}\n".repeat(LONGEST + 1);
        assert_eq!(of_file("examples/long.rs", &long)[0].rule, Rule::LongExample);
        assert_eq!(of_file("examples/python/long.py", &long)[0].rule, Rule::LongExample);
        assert_eq!(of_file("examples/words/main.rs", &long)[0].rule, Rule::LongExample);
        assert!(
            of_file("examples/words/model.rs", &long).is_empty()
                && of_file("examples/common/long.rs", &long).is_empty()
        );
        let options = "//! oflaunch --report x.rs\n  --log-every N    prints\n  --log N    reads\no.flag(\"--json\")\n";
        let found: Vec<usize> = of_file("examples/common/options.rs", options).iter().map(|f| f.line).collect();
        assert_eq!(found, [3, 4]);
    }
}
