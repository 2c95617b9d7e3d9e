//! Ranks need the same programs at the same time, and one of them compiles.

use oflow::prelude::*;
use oflow_tests::again::{again, passes};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FOLDER: &str = "OFLOW_TEST_FOLDER";

/// A compiler that counts: a file for each program it gets.
const COUNTS: &str = "#!/bin/sh\ncase \" $* \" in *\" -E \"*) mktemp \"$OFLOW_TEST_FOLDER/compiled-XXXXXX\" >/dev/null;; esac\nexec c++ \"$@\"\n";

#[test]
fn a_program_that_four_ranks_need_is_compiled_once() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return four_ranks(Path::new(&folder));
    }
    if super::real() || std::env::var_os("CXX").is_some() {
        println!("skipped: what the compiler is asked is counted with the emulated GPU and c++");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("c++");
    std::fs::write(&counts, COUNTS).unwrap();
    std::fs::set_permissions(&counts, PermissionsExt::from_mode(0o700)).unwrap();
    let mut test = again("compile::a_program_that_four_ranks_need_is_compiled_once");
    test.env(FOLDER, folder.path()).env("CXX", counts).env("OFLOW_KERNELS_AHEAD", "0");
    test.env("OFLOW_KERNEL_CACHE", folder.path().join("kernels"));
    test.env("OFLOW_EMULATOR_CACHE", folder.path().join("emulator"));
    passes(test);
}

fn four_ranks(folder: &Path) {
    if !super::cuda() {
        return;
    }
    let ranks = oflow::run_ranks(4, |_| {
        let x = full([1000], 2f32, Device::Cuda)?;
        x.mul(&x)?.add(&x)?.to_vec::<f32>()
    });
    assert!(ranks.unwrap().iter().flatten().all(|x| *x == 6.0));
    let files = |folder: &Path, is: fn(&str) -> bool| {
        std::fs::read_dir(folder).unwrap().filter(|e| is(&e.as_ref().unwrap().file_name().to_string_lossy())).count()
    };
    let programs = files(&folder.join("kernels"), |name| name.ends_with(".cubin"));
    let compiled = files(folder, |name| name.starts_with("compiled-"));
    assert!(programs >= 3, "{programs}");
    assert_eq!(compiled, programs);
}
