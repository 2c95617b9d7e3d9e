//! The kernels of the CPU.

pub(crate) mod acc;
pub mod matmul;
#[cfg(test)]
pub(crate) mod testing;
