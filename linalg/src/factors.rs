//! Functions of decompositions: systems that they solve, and the forms of PyTorch that tell whether a matrix was regular.

use crate::functions::{eigh, inv, output, outputs, registered, solve, solve_right, solve_triangular, svd};
use crate::rules::Triangular;
use crate::shapes::{diagonal_ones, matrices, named, size, square};
use oflow::CallSite;
use oflow::op;
use oflow::ops::broadcast_shapes;
use oflow::prelude::*;
use smallvec::smallvec;

/// The eigenvalues `[.., n]` of square matrices `[.., n, n]`, which are complex and come in any order, and the eigenvectors as columns.
///
/// # Errors
/// The matrices are not square; one has an infinity or a NaN.
#[track_caller]
pub fn eig(a: &Tensor) -> Result<(Tensor, Tensor)> {
    registered()?;
    let [values, vectors] = outputs(op!("linalg.eig")?, &[a], smallvec![])?;
    Ok((values, vectors))
}

/// The eigenvalues of [`eig`] alone.
///
/// # Errors
/// As [`eig`].
#[track_caller]
pub fn eigvals(a: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| Ok(named("eigvals", eig(a))?.0))
}

/// The LU decomposition with row pivots of matrices `[.., m, n]`, of any rank: L below the diagonal and U, the rows that changed places
/// (i32 `[.., k]`, counted from 1), and for each matrix 0 or the number of the first pivot that is zero.
///
/// # Errors
/// The tensor is no batch of matrices.
#[track_caller]
pub fn lu_factor_ex(a: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    registered()?;
    let [both, pivots, info] = outputs(op!("linalg.lu_decomposition")?, &[a], smallvec![])?;
    Ok((both, pivots, info))
}

/// Refuses PyTorch's `pivot=False`, which it has on GPUs only.
pub(crate) fn with_pivots(name: &str, pivot: bool) -> Result<()> {
    match pivot {
        true => Ok(()),
        false => {
            Err(Error::unsupported(format!("{name} without pivots is not there on the CPU")).help("leave `pivot` true"))
        }
    }
}

/// Refuses singular matrices, of which `info` says the pivot that is zero. The call waits for it.
pub(crate) fn checked(name: &str, info: &Tensor) -> Result<()> {
    let all = info.to_f64_vec()?;
    match all.iter().position(|i| *i != 0.0) {
        None => Ok(()),
        Some(at) => {
            let of = if info.ndim() == 0 { String::new() } else { format!(" {at} of the batch, counted in order,") };
            Err(Error::value(format!("{name}: the matrix{of} is singular: pivot {} is zero", all[at])))
        }
    }
}

/// P `[.., m, m]`, L `[.., m, k]` and U `[.., k, n]` of the results of [`lu_factor_ex`], k the smaller of m and n: `A = P L U`.
///
/// # Errors
/// Sizes do not fit.
#[track_caller]
pub fn lu_unpack(both: &Tensor, pivots: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    CallSite::here().run(|| {
        let (l, u) = lower_and_upper(both)?;
        Ok((permutation("lu_unpack", both, pivots)?, l, u))
    })
}

/// L with its ones, and U.
pub(crate) fn lower_and_upper(both: &Tensor) -> Result<(Tensor, Tensor)> {
    matrices("lu_unpack", both)?;
    let k = size(both, 1).min(size(both, 2)) as i64;
    let low = both.narrow(-1, 0, k)?.tril(-1)?;
    Ok((low.add(&diagonal_ones(&low)?)?, both.narrow(-2, 0, k)?.triu(0)?))
}

/// The permutation matrices of pivots.
pub(crate) fn permutation(name: &str, both: &Tensor, pivots: &Tensor) -> Result<Tensor> {
    registered()?;
    matrices(name, both)?;
    let lead = both.ndim() - 2;
    let fits = pivots.ndim() == lead + 1 && pivots.shape()[..lead] == both.shape()[..lead];
    if !fits || pivots.shape()[lead] != size(both, 1).min(size(both, 2)) {
        return Err(Error::shape(format!("{name}: the pivots {pivots:?} are not those of {both:?}")));
    }
    let attrs = smallvec![(size(both, 2) as i64).into(), both.dtype().into(), 1i64.into()];
    named(name, output(op!("linalg.permutation")?, &[pivots], attrs))
}

/// The x of `A x = B` for the results of [`lu_factor_ex`] of square matrices A, or of `x A = B` if not `left`; with `adjoint` Aᴴ stands
/// in the place of A. Batch dims broadcast.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn lu_solve(both: &Tensor, pivots: &Tensor, b: &Tensor, left: bool, adjoint: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        square("lu_solve", both)?;
        let p = permutation("lu_solve", both, pivots)?;
        let factor = if adjoint && both.dtype().is_complex() { both.conj()? } else { both.clone() };
        let lower = Triangular { upper: false, left, unitriangular: true, transpose: adjoint };
        let upper = Triangular { upper: true, unitriangular: false, ..lower };
        let solved = |b: &Tensor, how: Triangular| named("lu_solve", solve_triangular(&factor, b, how));
        // A = P L U, Aᴴ = Uᴴ Lᴴ Pᵀ.
        match (left, adjoint) {
            (true, false) => solved(&solved(&p.transpose(-2, -1)?.matmul(b)?, lower)?, upper),
            (true, true) => p.matmul(&solved(&solved(b, upper)?, lower)?),
            (false, false) => solved(&solved(b, upper)?, lower)?.matmul(&p.transpose(-2, -1)?),
            (false, true) => solved(&solved(&b.matmul(&p)?, lower)?, upper),
        }
    })
}

/// The identity matrices beside square ones.
fn identities(a: &Tensor) -> Result<Tensor> {
    diagonal_ones(a)
}

/// The inverses, and for each matrix 0 or the number of the pivot that is zero.
///
/// # Errors
/// The matrices are not square.
#[track_caller]
pub fn inv_ex(a: &Tensor) -> Result<(Tensor, Tensor)> {
    CallSite::here().run(|| {
        square("inv_ex", a)?;
        let (both, pivots, info) = named("inv_ex", lu_factor_ex(a))?;
        Ok((lu_solve(&both, &pivots, &identities(a)?, true, false)?, info))
    })
}

/// The solutions of [`solve`](crate::solve), or of [`solve_right`](crate::solve_right) if not `left`, and for each matrix of A 0 or the
/// number of the pivot that is zero.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn solve_ex(a: &Tensor, b: &Tensor, left: bool) -> Result<(Tensor, Tensor)> {
    CallSite::here().run(|| {
        square("solve_ex", a)?;
        let vectors = left && (b.ndim() == 1 || b.shape() == &a.shape()[..a.ndim() - 1]);
        let (both, pivots, info) = named("solve_ex", lu_factor_ex(a))?;
        let x = lu_solve(&both, &pivots, &if vectors { b.unsqueeze(-1)? } else { b.clone() }, left, false)?;
        Ok((if vectors { x.squeeze(-1)? } else { x }, info))
    })
}

/// The Cholesky factors, and for each matrix 0 or the order of the leading minor that is not positive.
///
/// # Errors
/// The matrices are not square.
#[track_caller]
pub fn cholesky_ex(a: &Tensor, upper: bool) -> Result<(Tensor, Tensor)> {
    registered()?;
    let [l, info] = outputs(op!("linalg.cholesky_decomposition")?, &[a], smallvec![upper.into()])?;
    Ok((l, info))
}

/// The x of `A x = B` for the Cholesky factors L of A, or U with `upper`. Batch dims broadcast.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn cholesky_solve(b: &Tensor, l: &Tensor, upper: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        square("cholesky_solve", l)?;
        matrices("cholesky_solve", b)?;
        registered()?;
        named("cholesky_solve", output(op!("linalg.cholesky_solution")?, &[l, b], smallvec![upper.into()]))
    })
}

/// The inverses of matrices from their Cholesky factors L, or U with `upper`.
///
/// # Errors
/// The factors are not square.
#[track_caller]
pub fn cholesky_inverse(l: &Tensor, upper: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        square("cholesky_inverse", l)?;
        cholesky_solve(&identities(l)?, l, upper)
    })
}

/// The decomposition `A = L D Lᵀ` of symmetric matrices, or `L D Lᴴ` of `hermitian` ones, in LAPACK's form: D and L in one matrix, the
/// pivots, and for each matrix 0 or the number of the first block of D that is zero. It has no gradient.
///
/// # Errors
/// The matrices are not square.
#[track_caller]
pub fn ldl_factor_ex(a: &Tensor, hermitian: bool) -> Result<(Tensor, Tensor, Tensor)> {
    registered()?;
    let [both, pivots, info] = outputs(op!("linalg.ldl_decomposition")?, &[a], smallvec![hermitian.into()])?;
    Ok((both, pivots, info))
}

/// The x of `A x = B` for the results of [`ldl_factor_ex`]. Batch dims broadcast. It has no gradient.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn ldl_solve(both: &Tensor, pivots: &Tensor, b: &Tensor, hermitian: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        square("ldl_solve", both)?;
        matrices("ldl_solve", b)?;
        let lead = |x: &Tensor, own: usize| x.shape()[..x.ndim().saturating_sub(own)].to_vec();
        let batch = named("ldl_solve", broadcast_shapes([&lead(both, 2)[..], &lead(b, 2)]))?;
        let wide = |x: &Tensor, own: usize| {
            let to: Vec<usize> = batch.iter().chain(&x.shape()[x.ndim().saturating_sub(own)..]).copied().collect();
            named("ldl_solve", x.expand(to))
        };
        let (both, pivots, b) = (wide(both, 2)?, wide(pivots, 1)?, wide(b, 2)?);
        named("ldl_solve", output(op!("linalg.ldl_solution")?, &[&both, &pivots, &b], smallvec![hermitian.into()]))
    })
}

/// The polar decomposition of matrices `[.., m, n]` with m >= n: U with orthonormal columns and H, Hermitian and positive
/// semidefinite, with `A = U H`.
///
/// # Errors
/// There are fewer rows than columns; as [`svd`](crate::svd).
#[track_caller]
pub fn polar(a: &Tensor) -> Result<(Tensor, Tensor)> {
    CallSite::here().run(|| {
        matrices("polar", a)?;
        if size(a, 2) < size(a, 1) {
            return Err(Error::shape(format!("polar needs at least as many rows as columns, not {a:?}")));
        }
        let (u, s, vh) = named("polar", svd(a))?;
        Ok((u.matmul(&vh)?, vh.adjoint()?.mul(&s.unsqueeze(-2)?)?.matmul(&vh)?))
    })
}

/// The Hermitian positive square roots of Hermitian positive definite matrices, of which the lower triangle is read.
///
/// # Errors
/// As [`eigh`](crate::eigh).
#[track_caller]
pub fn matrix_sqrth(a: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| {
        let (l, q) = named("matrix_sqrth", eigh(a))?;
        q.mul(&l.sqrt()?.unsqueeze(-2)?)?.matmul(&q.adjoint()?)
    })
}

/// The inverse or the solution that refuses singular matrices, for PyTorch's `check_errors`.
pub(crate) fn checked_inv(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let (_, _, info) = lu_factor_ex(&a.detach())?;
    Ok((inv(a)?, info))
}

pub(crate) fn checked_solve(a: &Tensor, b: &Tensor, left: bool) -> Result<(Tensor, Tensor)> {
    let (_, _, info) = lu_factor_ex(&a.detach())?;
    Ok((if left { solve(a, b)? } else { solve_right(a, b)? }, info))
}
