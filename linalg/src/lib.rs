//! Linear algebra for [oflow]: determinants, solving, least squares, norms, and the LU, LDL, Cholesky, QR, eigenvalue and singular value
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
//! All functions take batches `[.., m, n]` of f32, f64, c64 or c128; the other dtypes are an error. c64 is computed in double precision.
//! A global tensor may be split along its batch dims; along the others it is gathered first. All are differentiable, to any order, but
//! [`geqrf`], [`ldl_factor_ex`] and [`ldl_solve`]; gradients of complex numbers are conjugate derivatives, as in PyTorch. On the CPU
//! the crate [`faer`](https://docs.rs/faer) computes, a matrix on one thread and a batch on all threads of the rank; on GPUs cuSOLVER, where it
//! is installed (`docs/cuda.md`), in the precision of the input. The ops are also
//! functions by name: `oflow::functional::call("linalg.svd", ..)`, and so are PyTorch's functions outside of `torch.linalg`, as `lu` and
//! `svd_lowrank`.
//!
//! A crate of its own, because faer takes long to compile: programs that need no linear algebra do not build it.
//!
//! A value that an op refuses (a singular matrix in [`solve`], NaN in [`svd`]) is an error of the rank that has it, and ends a job of
//! several ranks. It names the matrix by its index in the whole batch.

mod batch;
mod by_name;
mod cholesky;
mod composed;
mod cuda;
mod det;
mod eig;
mod eigh;
mod exponential;
mod factors;
mod functions;
mod householder;
mod ldl;
mod low_rank;
mod lu;
mod norms;
mod pinv;
mod qr;
mod reflections;
mod register;
mod rules;
mod shapes;
mod signs;
mod solve;
mod svd;
mod triangular;

pub use composed::{
    LeastSquares, Tolerance, eigvalsh, lstsq, matrix_power, matrix_rank, multi_dot, pinv, svdvals, tensorinv,
    tensorsolve, vecdot,
};
pub use exponential::{logdet, matrix_exp};
pub use factors::{
    cholesky_ex, cholesky_inverse, cholesky_solve, eig, eigvals, inv_ex, ldl_factor_ex, ldl_solve, lu_factor_ex,
    lu_solve, lu_unpack, matrix_sqrth, polar, solve_ex,
};
pub use functions::{
    cholesky, cholesky_upper, det, eigh, inv, qr, qr_complete, slogdet, solve, solve_right, solve_triangular, svd,
    svd_full,
};
pub use householder::{geqrf, householder_product, ormqr};
pub use low_rank::{pca_lowrank, svd_lowrank};
pub use norms::{MatrixNorm, cond, matrix_norm};
pub use register::register;
pub use rules::Triangular;
