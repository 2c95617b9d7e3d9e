//! `Device::Cuda`: every op, gradients, waits, training, against the CPU. On a machine with a GPU with `OFLOW_TEST_GPU=1` on
//! that; elsewhere on the emulator, which runs the same program and the same kernels in this process.

mod autocast;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/gpus.rs"]
mod gpus;
mod hooks;
mod ops;
mod training;
mod waits;

use gpus::{cuda, real};
