//! The kernels of the CPU.

pub(crate) mod acc;
pub mod attention;
pub(crate) mod bundle;
pub mod loss;
pub mod matmul;
pub mod norm;
pub mod optim;
pub(crate) mod rowmath;
pub(crate) mod rows;
#[cfg(test)]
pub(crate) mod samples;
pub mod softmax;
