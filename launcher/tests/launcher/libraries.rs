//! Ops from libraries in real jobs: built once, trained with, and refused where ranks have different ones.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::*;
use crate::cpp::cpp;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A job of two ranks that load the library of `hostile.c`.
fn job(folder: &Folder, cache: &Path, mode: &str) -> Output {
    let source = root().join("tests/libraries/sources/hostile.c");
    let args = ["--", cache.to_str().unwrap(), source.to_str().unwrap()];
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/libraries.rs");
    let program = built(&script, &[&args[..], &["same"]].concat());
    run(folder, &[&["-n", "2", "--threads", "1", &program], &args[..], &[mode]].concat())
}

#[test]
fn ranks_with_different_libraries_are_refused() {
    let (folder, cache) = (Folder::new(), tempfile::tempdir().unwrap());
    let same = job(&folder, cache.path(), "same");
    assert_eq!((code(&same), stdout(&same).contains("sum 8")), (0, true), "{}{}", stdout(&same), stderr(&same));
    let builds = std::fs::read_dir(cache.path()).unwrap().filter_map(|e| e.ok()).map(|e| e.file_name());
    let builds = builds.filter(|n| n.to_string_lossy().starts_with("hostile-")).count();
    assert_eq!(builds, 2, "one build and its lock");
    let other = job(&folder, cache.path(), "other");
    let text = stderr(&other);
    assert_ne!(code(&other), 0, "{}{text}", stdout(&other));
    assert!(text.contains("they were built with different ops or load different plug-ins"), "{text}");
    // Loaded after the start: the first call tells.
    let late = job(&folder, cache.path(), "late");
    let text = stderr(&late);
    assert!(code(&late) != 0 && text.contains("issued different ops"), "{text}");
}

#[test]
fn the_example_trains_on_two_ranks() {
    if !cpp() {
        return;
    }
    let folder = Folder::new();
    let (example, sources) = (root().join("examples/ops/main.rs"), root().join("examples/ops"));
    let program = built(&example, &["--", sources.to_str().unwrap()]);
    let losses = |n: &str| {
        let output = run(&folder, &["-n", n, "--threads", "1", &program, "--", sources.to_str().unwrap()]);
        assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
        let lines: Vec<String> =
            stdout(&output).lines().filter_map(|l| l.split_once("loss ")).map(|l| l.1.into()).collect();
        assert_eq!(lines.len(), 2, "{}", stdout(&output));
        lines
    };
    let (one, two) = (losses("1"), losses("2"));
    println!("{one:?} {two:?}");
    assert_eq!(one, two);
    let (first, last) = one[0].split_once(" -> ").unwrap();
    assert!(last.parse::<f64>().unwrap() < first.parse::<f64>().unwrap(), "{one:?}");
}
