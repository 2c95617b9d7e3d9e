//! One run of each case of the fault matrix. `cargo xtask faults` does each many times.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use oflow_faults::matrix::Matrix;
use oflow_faults::{Setup, cases};

fn matrix() -> &'static Matrix {
    static MATRIX: OnceLock<Matrix> = OnceLock::new();
    MATRIX.get_or_init(|| {
        let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        std::fs::create_dir_all(&work).unwrap();
        let oflaunch = PathBuf::from(env!("CARGO_BIN_EXE_oflaunch"));
        let matrix = Matrix::new(Setup { oflaunch, work }, None).unwrap_or_else(|e| panic!("{e}"));
        // Other tests may run beside.
        matrix.patience(3)
    })
}

#[test]
fn every_fault_is_reported_as_what_it_is_and_leaves_nothing() {
    // Another moment, rank and step each time; what fails says which.
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut wrong = vec![];
    for case in cases() {
        match matrix().once(case, seed) {
            Ok(outcome) if outcome.skipped => eprintln!("{}: cannot be planted here: not tested", case.title()),
            Ok(outcome) if outcome.wrong.is_empty() => {}
            Ok(outcome) => wrong.push(format!("{}: {}", case.title(), outcome.wrong.join("; "))),
            Err(e) => wrong.push(e),
        }
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}
