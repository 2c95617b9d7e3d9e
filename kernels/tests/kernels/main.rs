//! What is public in the crate, and computes: kernels of the CPU against their definitions, kernels of the emulated GPU against those of the CPU.
//! Tests of private items stand beside them and are compiled by `tests/units`, without optimisation.

mod cpu;
mod cuda;
mod dtype;
mod expr;
mod owned;
mod parallel;
mod resample;
mod rig;
mod samples;
mod single;
mod special;
mod threads;
mod view;
mod vmath;
