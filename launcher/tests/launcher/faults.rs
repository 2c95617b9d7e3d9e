//! One run of each case of the fault matrix. `cargo xtask faults` does each many times.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use oflow_faults::matrix::Matrix;
use oflow_faults::{Case, Setup, cases};

const AT_ONCE: usize = 4;

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
    let (wrong, next) = (Mutex::new(vec![]), AtomicUsize::new(0));
    let mistake = |case: &Case| match matrix().once(case, seed) {
        Ok(outcome) if outcome.skipped => {
            eprintln!("{}: cannot be planted here: not tested", case.title());
            None
        }
        Ok(outcome) if outcome.wrong.is_empty() => None,
        Ok(outcome) => Some(format!("{}: {}", case.title(), outcome.wrong.join("; "))),
        Err(e) => Some(e),
    };
    // Several at once: most of the time they wait.
    std::thread::scope(|s| {
        for _ in 0..AT_ONCE {
            s.spawn(|| {
                while let Some(case) = cases().get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mistake = mistake(case);
                    wrong.lock().unwrap().extend(mistake);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}
