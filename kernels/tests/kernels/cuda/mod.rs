//! Kernels on the emulated GPU against those of the CPU.

mod attention;
mod copy;
mod elementwise;
mod embedding;
mod index;
mod matmul;
mod norm;
mod optim;
mod random;
mod reduce;
mod softmax;
mod steps;
mod take;
