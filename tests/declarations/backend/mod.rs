//! A backend of another crate, with a device name and memory of its own that the host may not touch: every op on it, alone
//! and over ranks, boxings, and what goes wrong.

mod fenced;
mod harness;
mod surface;

use oflow::placement::Device;
use std::sync::LazyLock;

/// The device of this test program.
fn device() -> Device {
    static DEVICE: LazyLock<Device> =
        LazyLock::new(|| oflow::backend::register("fenced", fenced::Fenced).expect("a free name"));
    *DEVICE
}
