//! Ops from libraries and source files: built, loaded, called, trained, replaced, unloaded.

use oflow::ops::{BuildOptions, Library, build_and_load};
use oflow::prelude::*;
use std::path::{Path, PathBuf};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ops").join(name)
}

/// A cache of this test's own, kept for the process.
fn cache() -> &'static Path {
    static FOLDER: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

fn build(files: &[PathBuf]) -> Result<Library> {
    build_and_load(files, BuildOptions::new().cache(cache()))
}

#[test]
fn an_op_in_rust() {
    let library = build(&[example("softsign.rs")]).unwrap();
    assert_eq!(library.name(), "demo");
    for op in library.ops() {
        println!("{}", oflow::testing::conformance(op).unwrap());
    }
}

#[test]
fn an_op_in_cpp() {
    let library = build(&[example("matmul_scale.cc"), example("matmul_scale.cu")]).unwrap();
    for op in library.ops() {
        println!("{}", oflow::testing::conformance(op).unwrap());
    }
}
