//! Linear algebra for [oflow]: determinants, solving, least squares, norms, and the Cholesky, QR, eigenvalue and singular value
//! decompositions, with the names and the meaning of `torch.linalg`.
//!
//! ```
//! use oflow::prelude::*;
//! use oflow_linalg as linalg;
//!
//! let a = from_vec(vec![4.0, 1.0, 1.0, 3.0], [2, 2], Device::Cpu)?.requires_grad_(true)?;
//! let b = from_vec(vec![1.0, 2.0], [2], Device::Cpu)?;
//! let x = linalg::solve(&a, &b)?;
//! let (_, s, _) = linalg::svd(&a)?;
//! x.sum(())?.add(&s.sum(())?)?.backward()?;
//! assert!(a.grad().is_some_and(|g| g.shape() == [2, 2]));
//! # Ok::<(), oflow::Error>(())
//! ```
//!
//! All functions take batches `[.., m, n]` of f32 or f64; the other dtypes are an error. A global tensor may be split along its batch dims;
//! along the others it is gathered first. All are differentiable, to any order. The kernels run on the CPU, by the crate
//! [`faer`](https://docs.rs/faer), a matrix on one thread and a batch on all threads of the rank. The ops are also functions by name:
//! `oflow::functional::call("linalg.svd", ..)`.
//!
//! A crate of its own, because faer takes long to compile: programs that need no linear algebra do not build it.
//!
//! A value that an op refuses (a singular matrix in [`solve`], NaN in [`svd`]) is an error of the rank that has it, and ends a job of
//! several ranks. It names the matrix by its index in the whole batch.

mod batch;
mod cholesky;
mod composed;
mod eigh;
mod exponential;
mod functions;
mod lu;
mod pinv;
mod qr;
mod rules;
mod signs;
mod svd;
mod triangular;

pub use composed::{
    LeastSquares, MatrixNorm, Tolerance, cond, eigvalsh, lstsq, matrix_norm, matrix_power, matrix_rank, multi_dot,
    pinv, svdvals, tensorinv, tensorsolve, vecdot,
};
pub use exponential::{logdet, matrix_exp};
pub use functions::{
    cholesky, cholesky_upper, det, eigh, inv, qr, qr_complete, register, slogdet, solve, solve_right, solve_triangular,
    svd, svd_full,
};
pub use rules::Triangular;
