//! Whether tests that compile C++ can run: the library needs a C compiler at most.

/// Whether there is a compiler of C++; if not, that is printed, and the test is skipped.
pub fn cpp() -> bool {
    let found = oflow_emulator::compiler_runs();
    if let Err(e) = &found {
        println!("skipped: {e}");
    }
    found.is_ok()
}
