//! `Device::Cuda`: every op, gradients, waits, training, against the CPU. On a machine with a GPU with `OFLOW_TEST_GPU=1` on
//! that; elsewhere on the emulator, which runs the same program and the same kernels in this process.

mod autocast;
mod boxing;
mod compile;
mod failure;
mod fusion;
mod graphs;
mod hooks;
mod ops;
mod times;
mod training;
mod waits;

use oflow_tests::gpus::{cuda, gpus, real};
