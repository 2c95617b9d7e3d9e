//! `Device::Cuda`: every op, gradients, waits, training, against the CPU. On a machine with a GPU with `OFLOW_TEST_GPU=1` on
//! that; elsewhere on the emulator, which runs the same program and the same kernels in this process.

mod autocast;
#[path = "../common/mod.rs"]
mod common;
mod ops;
mod training;
mod waits;

use std::sync::OnceLock;

/// Makes CUDA available to this process, or says why not: the test is then skipped.
pub fn cuda() -> bool {
    static THERE: OnceLock<Result<(), String>> = OnceLock::new();
    let there = THERE.get_or_init(|| match std::env::var("OFLOW_TEST_GPU").as_deref() {
        Ok("1") => oflow::kernels::cuda::probe::probe().check().map(|_| ()).map_err(|e| e.to_string()),
        _ => oflow_emulator::activate(),
    });
    if let Err(e) = there {
        assert!(std::env::var_os("OFLOW_TEST_GPU").is_none(), "OFLOW_TEST_GPU is set, but {e}");
        println!("skipped: {e}");
    }
    there.is_ok()
}

/// Whether a real GPU is tested.
pub fn real() -> bool {
    std::env::var_os("OFLOW_TEST_GPU").is_some()
}
