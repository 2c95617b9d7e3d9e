//! Counts: the length of pages and files, and how many test binaries there are.

use crate::source::Source;
use std::fs;

/// Files with more lines than this are listed.
pub const LONG: usize = 600;

/// Counts of a checkout.
pub struct Counts {
    /// Words of `ARCHITECTURE.md`.
    pub architecture_words: usize,
    /// Files with more than [`LONG`] lines, with their lines; generated ones are left out.
    pub long: Vec<(String, usize)>,
    /// Test binaries: files and folders with a `main.rs` directly in the `tests` folders of the crates.
    pub test_binaries: usize,
    pub files: usize,
    pub lines: usize,
}

/// Counts a checkout.
pub fn counts(source: &Source) -> Counts {
    let page = fs::read_to_string(source.root.join("ARCHITECTURE.md")).unwrap_or_default();
    let generated = |path: &str| path.contains("/gen/") || path.contains("/generated/");
    let long = source.files.iter().filter(|f| f.lines > LONG && !generated(&f.path));
    let mut long: Vec<(String, usize)> = long.map(|f| (f.path.clone(), f.lines)).collect();
    long.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    let test_binaries = source.crates.iter().map(|c| {
        let tests = fs::read_dir(source.root.join(&c.folder).join("tests")).into_iter().flatten().flatten();
        tests.filter(|t| t.path().extension().is_some_and(|e| e == "rs") || t.path().join("main.rs").exists()).count()
    });
    Counts {
        architecture_words: page.split_whitespace().count(),
        long,
        test_binaries: test_binaries.sum(),
        files: source.files.len(),
        lines: source.files.iter().map(|f| f.lines).sum(),
    }
}
