//! CUDA in software: the C functions of libcuda, libnvrtc, libcublasLt, libnccl, libcufft, libcusolver and libcudnn that oflow calls, so that the code that
//! ships runs `Device::Cuda` on a machine without a GPU. Built as a shared object; `oflow-emulator` makes a process load it.
//!
//! What is real: streams are threads, so copies and kernels run beside the caller and in no order but that of streams and
//! events; handles, contexts, pointers and limits are checked as a driver does, and more strictly where a GPU would only
//! give wrong numbers; kernels are compiled by the host's C++ compiler from the same source, with `kernels/cuda/emulator.h`
//! in place of CUDA's own words. What is not: time, and the bits of the GPU's fast approximations.
//!
//! Environment variables, read once a process:
//!
//! | variable | default | meaning |
//! |---|---|---|
//! | `OFLOW_EMULATOR_GPUS` | 1 | how many GPUs there are |
//! | `OFLOW_EMULATOR_MEMORY_MB` | 4096 | memory of each |
//! | `OFLOW_EMULATOR_DELAY_US` | 0 | each operation of a stream first sleeps up to so long, at random: missing waits show |
//! | `OFLOW_EMULATOR_ORDER` | 0 | in which order threads run, a sum of: 1 lanes from the last, 2 every thread as far as it gets before any goes on, 4 blocks from the last; 8: another order each launch |
//! | `OFLOW_EMULATOR_STRICT` | 1 | 0: host code may touch device memory while streams are idle; 2: as 1, without protection keys of the CPU |
//! | `OFLOW_EMULATOR_NCCL_TIMEOUT_S` | 120 | how long ranks wait for each other |
//! | `OFLOW_EMULATOR_CACHE` | a folder in the temporary one | where compiled kernels are kept |
//!
//! Where to start reading: `driver/mod.rs` for the state, `driver/stream.rs` for how work is ordered.
// The C functions carry the contract that CUDA documents for them; repeating it at each would say nothing.
#![allow(clippy::missing_safety_doc)]

mod cublaslt;
mod cudnn;
mod cufft;
mod cusolver;
mod driver;
mod nccl;
mod nvrtc;
