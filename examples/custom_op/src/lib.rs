//! Ops of another crate than oflow, with its public API only.
//!
//! `leaky_relu` is one scalar expression; kernels, sharding and gradient are derived ([`ops`]). `matmul_scale` has kernels of its own for
//! the CPU and for CUDA, a factor rule for its sharding, and a gradient op with two outputs ([`matmul`]). [`Mlp`] is a module that
//! trains with both.
//!
//! The tests call `oflow::testing::conformance` on every op.

mod cuda;
pub mod matmul;
mod model;
pub mod ops;

pub use model::{Mlp, train};
pub use ops::{leaky_relu, matmul_scale, register};
