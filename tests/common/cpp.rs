//! Whether tests that compile C++ can run: the library needs a C compiler at most.

/// Whether there is a compiler of C++; if not, that is printed, and the test is skipped.
pub fn cpp() -> bool {
    let program = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let found = std::process::Command::new(&program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: {program} does not run, so there is no compiler of C++");
    }
    found
}
