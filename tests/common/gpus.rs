//! CUDA for tests: with `OFLOW_TEST_GPU=1` the machine's GPUs, elsewhere four emulated ones, which run the same program and the
//! same kernels in this process.

use oflow::kernels::cuda::probe::probe;
use std::sync::OnceLock;

/// Makes CUDA available to this process, or says why not: the test is then skipped.
pub fn cuda() -> bool {
    static THERE: OnceLock<Result<(), String>> = OnceLock::new();
    let there = THERE.get_or_init(|| match std::env::var("OFLOW_TEST_GPU").as_deref() {
        Ok("1") => probe().check().map(|_| ()).map_err(|e| e.to_string()),
        _ => {
            // SAFETY: what reads the environment by then is Rust's own, which locks it; the emulator reads this when it is
            // first used, and every test that uses it comes here first.
            unsafe { std::env::set_var("OFLOW_EMULATOR_GPUS", "4") };
            oflow_emulator::activate()
        }
    });
    if let Err(e) = there {
        assert!(!real(), "OFLOW_TEST_GPU is set, but {e}");
        println!("skipped: {e}");
    }
    there.is_ok()
}

/// Whether real GPUs are tested.
pub fn real() -> bool {
    std::env::var_os("OFLOW_TEST_GPU").is_some()
}

/// How many GPUs there are.
pub fn gpus() -> usize {
    probe().gpus.as_ref().map_or(0, Vec::len)
}
