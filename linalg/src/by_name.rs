//! Functions of this crate by name, beside those that are one op: in the domain `linalg`, and those that PyTorch has outside of it.

use crate::composed::{
    Tolerance, Tolerances, eigenvalues, lstsq_by, matrix_rank, pinv, pinv_by, rank_by, tensorsolve_along,
};
use crate::factors::{checked, checked_inv, checked_solve, lower_and_upper, permutation, with_pivots};
use crate::norms::{MatrixNorm, Order, norm, norm_named, vector_norm};
use crate::rules::Triangular;
use crate::{
    cholesky, cholesky_ex, cholesky_inverse, cholesky_solve, cholesky_upper, cond, det, eigvals, geqrf,
    householder_product, inv, inv_ex, ldl_factor_ex, ldl_solve, logdet, lu_factor_ex, lu_solve, lu_unpack, matrix_exp,
    matrix_norm, matrix_power, matrix_sqrth, multi_dot, ormqr, pca_lowrank, polar, qr, qr_complete, slogdet, solve_ex,
    solve_triangular, svd, svd_full, svd_lowrank, svdvals, tensorinv, tensorsolve, vecdot,
};
use oflow::functional::{Bound, FnBody, FnDef, register_function};
use oflow::prelude::*;
use std::sync::Arc;

fn tolerance(b: &Bound, first: usize) -> Result<Tolerance> {
    let of = |i: usize| b.attr(i).map(|_| b.float(i)).transpose();
    Ok(Tolerance { atol: of(first)?, rtol: of(first + 1)?, hermitian: b.bool(first + 2)? })
}

/// Tolerances of which one at least is a tensor.
fn tolerances(b: &Bound, first: usize) -> Result<Tolerances<'_>> {
    Ok(Tolerances { atol: b.tensor(first), rtol: b.tensor(first + 1), hermitian: b.bool(first + 2)? })
}

fn two_dims(b: &Bound, i: usize) -> Result<[i64; 2]> {
    let given = b.ints(i)?;
    given.try_into().map_err(|_| Error::argument(format!("matrix_norm: dim names two dims, not {given:?}")))
}

/// The dims of a list that may be left out: none for all.
fn dims(b: &Bound, i: usize) -> Result<&[i64]> {
    b.attr(i).map_or(Ok(&[][..]), |_| b.ints(i))
}

/// Tensor 0, converted to the dtype of parameter `i` if one is given.
fn converted(b: &Bound, i: usize) -> Result<Tensor> {
    let x = b.given(0)?;
    match b.attr(i) {
        Some(_) => x.cast(b.given_dtype(i)?),
        None => Ok(x.clone()),
    }
}

/// The norm of matrices of the order in parameter 1.
fn norm_of_matrices(b: &Bound, ord: MatrixNorm) -> Result<Vec<Tensor>> {
    Ok(vec![matrix_norm(&converted(b, 4)?, ord, two_dims(b, 2)?, b.bool(3)?)?])
}

/// `linalg.norm` of the order in parameter 1.
fn norm_of_any(b: &Bound, order: Order<'_>) -> Result<Vec<Tensor>> {
    let dims = b.attr(2).map(|_| b.ints(2)).transpose()?;
    Ok(vec![norm(&converted(b, 4)?, order, dims, b.bool(3)?)?])
}

/// Nothing, where a function's result is not asked for.
fn nothing(like: &Tensor) -> Result<Tensor> {
    like.detach().reshape([like.numel()])?.narrow(0, 0, 0)
}

type Code = fn(&Bound) -> Result<Vec<Tensor>>;

/// Functions of the domain `linalg`: signature, text and code.
const DOMAIN: &[(&str, &str, Code)] = &[
    ("svdvals(Tensor A) -> Tensor", "The singular values, from the greatest on.", |b| Ok(vec![svdvals(b.given(0)?)?])),
    (
        "eigvalsh(Tensor A, String UPLO=\"L\") -> Tensor",
        "The eigenvalues of Hermitian matrices, of which the lower (L) or the upper (U) triangle is read, from the least on.",
        |b| Ok(vec![eigenvalues(b.given(0)?, b.text(1)?)?]),
    ),
    (
        "eigvals(Tensor A) -> Tensor",
        "The eigenvalues of square matrices, which are complex and come in any order.",
        |b| Ok(vec![eigvals(b.given(0)?)?]),
    ),
    (
        "pinv(Tensor A, *, Float? atol, Float? rtol, Bool hermitian=false) -> Tensor",
        "The pseudo-inverse of each matrix of a batch.\n\nSingular values that are not above `atol` and `rtol` times the largest count \
         as zero; without both, `rtol` is the larger size times epsilon.",
        |b| Ok(vec![pinv(b.given(0)?, tolerance(b, 1)?)?]),
    ),
    (
        "pinv(Tensor A, *, Tensor? atol, Tensor? rtol, Bool hermitian=false) -> Tensor",
        "The pseudo-inverse by tolerances of each matrix.",
        |b| Ok(vec![pinv_by(b.given(0)?, tolerances(b, 1)?)?]),
    ),
    (
        "pinv(Tensor A, Float rcond, Bool hermitian=false) -> Tensor",
        "The pseudo-inverse by the relative tolerance `rcond`.",
        |b| Ok(vec![pinv(b.given(0)?, Tolerance { atol: None, rtol: Some(b.float(1)?), hermitian: b.bool(2)? })?]),
    ),
    (
        "pinv(Tensor A, Tensor rcond, Bool hermitian=false) -> Tensor",
        "The pseudo-inverse by a relative tolerance of each matrix.",
        |b| Ok(vec![pinv_by(b.given(0)?, Tolerances { atol: None, rtol: b.tensor(1), hermitian: b.bool(2)? })?]),
    ),
    (
        "matrix_rank(Tensor A, *, Float? atol, Float? rtol, Bool hermitian=false) -> Tensor",
        "How many singular values of each matrix are above the tolerance, which is as in `pinv`.",
        |b| Ok(vec![matrix_rank(b.given(0)?, tolerance(b, 1)?)?]),
    ),
    (
        "matrix_rank(Tensor A, *, Tensor? atol, Tensor? rtol, Bool hermitian=false) -> Tensor",
        "The rank by tolerances of each matrix.",
        |b| Ok(vec![rank_by(b.given(0)?, tolerances(b, 1)?)?]),
    ),
    (
        "matrix_rank(Tensor A, Float tol, Bool hermitian=false) -> Tensor",
        "The rank by the absolute tolerance `tol`.",
        |b| {
            let tolerance = Tolerance { atol: Some(b.float(1)?), rtol: Some(0.0), hermitian: b.bool(2)? };
            Ok(vec![matrix_rank(b.given(0)?, tolerance)?])
        },
    ),
    (
        "matrix_rank(Tensor A, Tensor tol, Bool hermitian=false) -> Tensor",
        "The rank by an absolute tolerance of each matrix.",
        |b| {
            let tol = b.given(1)?;
            let none = tol.detach().mul(0.0)?;
            let all = Tolerances { atol: Some(tol), rtol: Some(&none), hermitian: b.bool(2)? };
            Ok(vec![rank_by(b.given(0)?, all)?])
        },
    ),
    (
        "lstsq(Tensor A, Tensor B, Float? rcond, *, String? driver) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
        "The X with the least |A X - B|, and of several the least one.\n\nResiduals are there where A has more rows than columns, \
         whatever its rank. A `driver`, gels, gelsy, gelsd or gelss, leaves out what LAPACK's does not compute.",
        |b| {
            let (rcond, driver) =
                (b.attr(2).map(|_| b.float(2)).transpose()?, b.attr(3).map(|_| b.text(3)).transpose()?);
            let found = lstsq_by(b.given(0)?, b.given(1)?, rcond, driver)?;
            Ok(vec![found.solution, found.residuals, found.rank, found.singular_values])
        },
    ),
    (
        "matrix_power(Tensor A, Int n) -> Tensor",
        "The power of square matrices, of a negative n that of the inverse.",
        |b| Ok(vec![matrix_power(b.given(0)?, b.int(1)?)?]),
    ),
    ("matrix_exp(Tensor A) -> Tensor", "The exponential of square matrices.", |b| Ok(vec![matrix_exp(b.given(0)?)?])),
    (
        "logdet(Tensor A) -> Tensor",
        "The logarithms of determinants: of a negative one NaN, of 0 minus infinity.",
        |b| Ok(vec![logdet(b.given(0)?)?]),
    ),
    (
        "matrix_norm(Tensor A, Float ord, IntList dim=[-2, -1], Bool keepdim=false, *, DataType? dtype) -> Tensor",
        "The norm of matrices: 2 and -2 for the largest and least singular value, 1 and -1 for sums of columns, inf and -inf of rows.",
        |b| norm_of_matrices(b, MatrixNorm::P(b.float(1)?)),
    ),
    (
        "matrix_norm(Tensor A, String ord=\"fro\", IntList dim=[-2, -1], Bool keepdim=false, *, DataType? dtype) -> Tensor",
        "The norm of Frobenius (fro), or the sum of the singular values (nuc).",
        |b| norm_of_matrices(b, MatrixNorm::named(b.text(1)?)?),
    ),
    (
        "vector_norm(Tensor x, Float ord=2.0, IntList? dim, Bool keepdim=false, *, DataType? dtype) -> Tensor",
        "The norm of vectors along dims; none given: of all elements.",
        |b| Ok(vec![vector_norm(&converted(b, 4)?, b.float(1)?, dims(b, 2)?, b.bool(3)?)?]),
    ),
    (
        "norm(Tensor A, Float? ord, IntList? dim, Bool keepdim=false, *, DataType? dtype) -> Tensor",
        "The norm of vectors along one dim, or of matrices along two; without an order of all elements.",
        |b| norm_of_any(b, if b.attr(1).is_some() { Order::P(b.float(1)?) } else { Order::Usual }),
    ),
    (
        "norm(Tensor A, String ord, IntList? dim, Bool keepdim=false, *, DataType? dtype) -> Tensor",
        "The norm of matrices by its name, fro or nuc.",
        |b| norm_of_any(b, Order::Named(b.text(1)?)),
    ),
    ("cond(Tensor A, Float? p) -> Tensor", "The condition number in the norm p, 2 unless given.", |b| {
        let p = if b.attr(1).is_some() { b.float(1)? } else { 2.0 };
        Ok(vec![cond(b.given(0)?, MatrixNorm::P(p))?])
    }),
    ("cond(Tensor A, String p) -> Tensor", "The condition number in the norm fro or nuc.", |b| {
        Ok(vec![cond(b.given(0)?, MatrixNorm::named(b.text(1)?)?)?])
    }),
    (
        "multi_dot(TensorTuple tensors) -> Tensor",
        "The product of matrices, in the order of the fewest operations.",
        |b| Ok(vec![multi_dot(&b.tensors(0)?.iter().collect::<Vec<_>>())?]),
    ),
    ("tensorinv(Tensor A, Int ind=2) -> Tensor", "The inverse for `tensordot` over the last dims.", |b| {
        let ind = usize::try_from(b.int(1)?).map_err(|_| Error::argument("tensorinv: ind must be positive"))?;
        Ok(vec![tensorinv(b.given(0)?, ind)?])
    }),
    (
        "tensorsolve(Tensor A, Tensor B, IntList? dims) -> Tensor",
        "The X with `tensordot(A, X, X.ndim)` equal to B; the dims of A that are given are moved behind the others first.",
        |b| {
            let (x, y) = (b.given(0)?, b.given(1)?);
            Ok(vec![if b.attr(2).is_some() { tensorsolve_along(x, y, b.ints(2)?)? } else { tensorsolve(x, y)? }])
        },
    ),
    (
        "vecdot(Tensor x, Tensor y, Int dim=-1) -> Tensor",
        "The inner product along a dim: the sum of the products of y's elements and the conjugates of x's.",
        |b| Ok(vec![vecdot(b.given(0)?, b.given(1)?, b.int(2)?)?]),
    ),
    ("cross(Tensor x, Tensor y, *, Int dim=-1) -> Tensor", "The cross product along a dim of 3 elements.", |b| {
        Ok(vec![b.given(0)?.cross(b.given(1)?, b.int(2)?)?])
    }),
    (
        "diagonal(Tensor A, *, Int offset=0, Int dim1=-2, Int dim2=-1) -> Tensor",
        "The diagonals of matrices in two dims.",
        |b| Ok(vec![b.given(0)?.diagonal(b.int(1)?, b.int(2)?, b.int(3)?)?]),
    ),
    ("vander(Tensor x, *, Int? N) -> Tensor", "The powers 0 to N - 1 of the elements, along a new last dim.", |b| {
        let x = b.given(0)?;
        let n = match b.attr(1) {
            Some(_) => b.int(1)?,
            None => x.shape().last().map_or(1, |n| *n as i64),
        };
        if n < 2 && b.attr(1).is_some() {
            return Err(Error::argument(format!("vander needs an N of 2 or more, not {n}")));
        }
        let x = if x.dtype() == DType::Bool { x.cast(DType::I64)? } else { x.clone() };
        let x = if x.ndim() == 0 { x.unsqueeze(0)? } else { x };
        let mut powers = vec![oflow::functional::ones_like(&x.detach())?];
        for k in 1..n.max(0) as usize {
            powers.push(powers[k - 1].mul(&x)?);
        }
        powers.truncate(n.max(0) as usize);
        match powers.is_empty() {
            true => Ok(vec![x.unsqueeze(-1)?.narrow(-1, 0, 0)?]),
            false => Ok(vec![stack(&powers.iter().collect::<Vec<_>>(), -1)?]),
        }
    }),
    (
        "lu_factor(Tensor A, *, Bool pivot=true) -> (Tensor LU, Tensor pivots)",
        "L and U in one matrix, and the rows that changed places, counted from 1.\n\nSquare matrices that are singular are refused.",
        |b| {
            with_pivots("lu_factor", b.bool(1)?)?;
            let (lu, pivots, info) = lu_factor_ex(b.given(0)?)?;
            checked("lu_factor", &info)?;
            Ok(vec![lu, pivots])
        },
    ),
    (
        "lu_factor_ex(Tensor A, *, Bool pivot=true, Bool check_errors=false) -> (Tensor LU, Tensor pivots, Tensor info)",
        "`lu_factor`, and for each matrix 0 or the number of the pivot that is zero.",
        |b| {
            with_pivots("lu_factor_ex", b.bool(1)?)?;
            let (lu, pivots, info) = lu_factor_ex(b.given(0)?)?;
            if b.bool(2)? {
                checked("lu_factor_ex", &info)?;
            }
            Ok(vec![lu, pivots, info])
        },
    ),
    (
        "lu(Tensor A, *, Bool pivot=true) -> (Tensor P, Tensor L, Tensor U)",
        "The decomposition `A = P L U` of matrices of any rank: P a permutation, L lower triangular with ones, U upper triangular.",
        |b| {
            with_pivots("lu", b.bool(1)?)?;
            let (lu, pivots, _) = lu_factor_ex(b.given(0)?)?;
            let (p, l, u) = lu_unpack(&lu, &pivots)?;
            Ok(vec![p, l, u])
        },
    ),
    (
        "lu_solve(Tensor LU, Tensor pivots, Tensor B, *, Bool left=true, Bool adjoint=false) -> Tensor",
        "The x of `A x = B`, or of `x A = B` if not `left`, for the results of `lu_factor`; with `adjoint` of Aᴴ.",
        |b| Ok(vec![lu_solve(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?, b.bool(4)?)?]),
    ),
    (
        "cholesky_ex(Tensor A, *, Bool upper=false, Bool check_errors=false) -> (Tensor L, Tensor info)",
        "`cholesky`, and for each matrix 0 or the order of the leading minor that is not positive.",
        |b| {
            let (a, upper) = (b.given(0)?, b.bool(1)?);
            if b.bool(2)? {
                let _refused = if upper { cholesky_upper(&a.detach())? } else { cholesky(&a.detach())? };
            }
            let (l, info) = cholesky_ex(a, upper)?;
            Ok(vec![l, info])
        },
    ),
    (
        "inv_ex(Tensor A, *, Bool check_errors=false) -> (Tensor inverse, Tensor info)",
        "`inv`, and for each matrix 0 or the number of the pivot that is zero; then the inverse has infinities or NaN.",
        |b| {
            let (inverse, info) = if b.bool(1)? { checked_inv(b.given(0)?)? } else { inv_ex(b.given(0)?)? };
            Ok(vec![inverse, info])
        },
    ),
    (
        "solve_ex(Tensor A, Tensor B, *, Bool left=true, Bool check_errors=false) -> (Tensor result, Tensor info)",
        "`solve`, and for each matrix 0 or the number of the pivot that is zero; then the result has infinities or NaN.",
        |b| {
            let (x, y, left) = (b.given(0)?, b.given(1)?, b.bool(2)?);
            let (result, info) = if b.bool(3)? { checked_solve(x, y, left)? } else { solve_ex(x, y, left)? };
            Ok(vec![result, info])
        },
    ),
    (
        "ldl_factor(Tensor A, *, Bool hermitian=false) -> (Tensor LD, Tensor pivots)",
        "The decomposition `A = L D Lᵀ` of symmetric matrices, or `L D Lᴴ` of Hermitian ones, in LAPACK's form.",
        |b| {
            let (ld, pivots, info) = ldl_factor_ex(b.given(0)?, b.bool(1)?)?;
            checked("ldl_factor", &info)?;
            Ok(vec![ld, pivots])
        },
    ),
    (
        "ldl_factor_ex(Tensor A, *, Bool hermitian=false, Bool check_errors=false) -> (Tensor LD, Tensor pivots, Tensor info)",
        "`ldl_factor`, and for each matrix 0 or the number of the first block of D that is zero.",
        |b| {
            let (ld, pivots, info) = ldl_factor_ex(b.given(0)?, b.bool(1)?)?;
            if b.bool(2)? {
                checked("ldl_factor_ex", &info)?;
            }
            Ok(vec![ld, pivots, info])
        },
    ),
    (
        "ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, Bool hermitian=false) -> Tensor",
        "The x of `A x = B` for the results of `ldl_factor`.",
        |b| Ok(vec![ldl_solve(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?)?]),
    ),
    (
        "householder_product(Tensor A, Tensor tau) -> Tensor",
        "The first columns of the product of reflections, as `geqrf` gives them: Q of the reduced QR decomposition.",
        |b| Ok(vec![householder_product(b.given(0)?, b.given(1)?)?]),
    ),
    (
        "polar(Tensor A) -> (Tensor U, Tensor H)",
        "The decomposition `A = U H`: U with orthonormal columns, H Hermitian and positive semidefinite.",
        |b| {
            let (u, h) = polar(b.given(0)?)?;
            Ok(vec![u, h])
        },
    ),
    ("matrix_sqrth(Tensor A) -> Tensor", "The Hermitian square root of Hermitian positive definite matrices.", |b| {
        Ok(vec![matrix_sqrth(b.given(0)?)?])
    }),
];

/// Functions that PyTorch has outside of `linalg`.
const OUTSIDE: &[(&str, &str, Code)] = &[
    (
        "svd(Tensor x, Bool some=true, Bool compute_uv=true) -> (Tensor U, Tensor S, Tensor V)",
        "The singular values S, and the singular vectors as columns of U and V: `x = U diag(S) Vᴴ`; without `some` all vectors, without \
         `compute_uv` zeros. `linalg.svd` gives Vᴴ.",
        |b| {
            let x = b.given(0)?;
            let (u, s, vh) = if b.bool(1)? && b.bool(2)? { svd(x)? } else { svd_full(x)? };
            match b.bool(2)? {
                true => Ok(vec![u, s, vh.adjoint()?]),
                false => Ok(vec![u.detach().mul(0.0)?, s, vh.detach().mul(0.0)?]),
            }
        },
    ),
    (
        "qr(Tensor x, Bool some=true) -> (Tensor Q, Tensor R)",
        "Q with orthonormal columns and R upper triangular; without `some` a square Q. `linalg.qr` has more forms.",
        |b| {
            let (q, r) = if b.bool(1)? { qr(b.given(0)?)? } else { qr_complete(b.given(0)?)? };
            Ok(vec![q, r])
        },
    ),
    ("cholesky(Tensor x, Bool upper=false) -> Tensor", "The same as `linalg.cholesky`.", |b| {
        Ok(vec![if b.bool(1)? { cholesky_upper(b.given(0)?)? } else { cholesky(b.given(0)?)? }])
    }),
    (
        "cholesky_solve(Tensor x, Tensor L, Bool upper=false) -> Tensor",
        "The solution of the systems with the right sides x whose matrices have the Cholesky factors L, or U with `upper`.",
        |b| Ok(vec![cholesky_solve(b.given(0)?, b.given(1)?, b.bool(2)?)?]),
    ),
    (
        "cholesky_inverse(Tensor L, Bool upper=false) -> Tensor",
        "The inverses of matrices from their Cholesky factors L, or U with `upper`.",
        |b| Ok(vec![cholesky_inverse(b.given(0)?, b.bool(1)?)?]),
    ),
    (
        "triangular_solve(Tensor b, Tensor A, Bool upper=true, Bool transpose=false, Bool unitriangular=false) -> (Tensor solution, Tensor cloned_coefficient)",
        "The x of `A x = b` for a triangular A, and a copy of A. `linalg.solve_triangular` has more forms.",
        |b| {
            let (x, a) = (b.given(0)?, b.given(1)?);
            let (upper, transpose, unitriangular) = (b.bool(2)?, b.bool(3)?, b.bool(4)?);
            let how = Triangular { upper, left: true, unitriangular, transpose };
            Ok(vec![solve_triangular(a, x, how)?, a.copy()?])
        },
    ),
    (
        "geqrf(Tensor x) -> (Tensor a, Tensor tau)",
        "The QR decomposition in LAPACK's form: R with the vectors of reflections below its diagonal, and their factors.",
        |b| {
            let (a, tau) = geqrf(b.given(0)?)?;
            Ok(vec![a, tau])
        },
    ),
    ("orgqr(Tensor x, Tensor tau) -> Tensor", "The same as `linalg.householder_product`.", |b| {
        Ok(vec![householder_product(b.given(0)?, b.given(1)?)?])
    }),
    (
        "ormqr(Tensor x, Tensor tau, Tensor other, Bool left=true, Bool transpose=false) -> Tensor",
        "The product of the square Q of `geqrf`'s results and `other`, or of `other` and Q if not `left`; with `transpose` of Qᴴ.",
        |b| Ok(vec![ormqr(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?, b.bool(4)?)?]),
    ),
    (
        "lu(Tensor A, Bool pivot=true, Bool get_infos=false) -> TensorTuple",
        "`linalg.lu_factor` of matrices of any rank, and with `get_infos` for each 0 or the number of the pivot that is zero.",
        |b| {
            with_pivots("lu", b.bool(1)?)?;
            let (lu, pivots, info) = lu_factor_ex(b.given(0)?)?;
            Ok(if b.bool(2)? { vec![lu, pivots, info] } else { vec![lu, pivots] })
        },
    ),
    (
        "lu_solve(Tensor b, Tensor LU_data, Tensor LU_pivots) -> Tensor",
        "The solution for the results of `lu`. `linalg.lu_solve` has more forms.",
        |b| Ok(vec![lu_solve(b.given(1)?, b.given(2)?, b.given(0)?, true, false)?]),
    ),
    (
        "lu_unpack(Tensor LU_data, Tensor LU_pivots, Bool unpack_data=true, Bool unpack_pivots=true) -> (Tensor P, Tensor L, Tensor U)",
        "P, L and U with `A = P L U` of the results of `lu`; what is not asked for has no elements.",
        |b| {
            let (data, pivots) = (b.given(0)?, b.given(1)?);
            let p = if b.bool(3)? { permutation("lu_unpack", data, pivots)? } else { nothing(data)? };
            let (l, u) = if b.bool(2)? { lower_and_upper(data)? } else { (nothing(data)?, nothing(data)?) };
            Ok(vec![p, l, u])
        },
    ),
    (
        "pinverse(Tensor x, Float rcond=1e-15) -> Tensor",
        "The pseudo-inverse: `linalg.pinv` with the relative tolerance `rcond`.",
        |b| Ok(vec![pinv(b.given(0)?, Tolerance { atol: None, rtol: Some(b.float(1)?), hermitian: false })?]),
    ),
    ("inverse(Tensor x) -> Tensor", "The same as `linalg.inv`.", |b| Ok(vec![inv(b.given(0)?)?])),
    ("det(Tensor x) -> Tensor", "The same as `linalg.det`.", |b| Ok(vec![det(b.given(0)?)?])),
    ("slogdet(Tensor x) -> (Tensor sign, Tensor logabsdet)", "The same as `linalg.slogdet`.", |b| {
        let (sign, log) = slogdet(b.given(0)?)?;
        Ok(vec![sign, log])
    }),
    (
        "logdet(Tensor x) -> Tensor",
        "The logarithms of determinants: of a negative one NaN, of 0 minus infinity.",
        |b| Ok(vec![logdet(b.given(0)?)?]),
    ),
    ("matrix_exp(Tensor x) -> Tensor", "The same as `linalg.matrix_exp`.", |b| Ok(vec![matrix_exp(b.given(0)?)?])),
    ("matrix_power(Tensor x, Int n) -> Tensor", "The same as `linalg.matrix_power`.", |b| {
        Ok(vec![matrix_power(b.given(0)?, b.int(1)?)?])
    }),
    (
        "svd_lowrank(Tensor A, Int q=6, Int niter=2, Tensor? M) -> (Tensor U, Tensor S, Tensor V)",
        "About the q largest singular values of A less M, and their vectors as columns of U and V, by random projections.",
        |b| {
            let (u, s, v) = svd_lowrank(b.given(0)?, b.int(1)?, b.int(2)?, b.tensor(3))?;
            Ok(vec![u, s, v])
        },
    ),
    (
        "pca_lowrank(Tensor A, Int? q, Bool center=true, Int niter=2) -> (Tensor U, Tensor S, Tensor V)",
        "About the q first principal components of the rows of A, as columns of V, by random projections.",
        |b| {
            let q = b.attr(1).map(|_| b.int(1)).transpose()?;
            let (u, s, v) = pca_lowrank(b.given(0)?, q, b.bool(2)?, b.int(3)?)?;
            Ok(vec![u, s, v])
        },
    ),
    (
        "norm(Tensor x, String p, IntList? dim, Bool keepdim=false, DataType? dtype) -> Tensor",
        "The norm of Frobenius (fro) over dims, or the sum of the singular values (nuc) of matrices in two dims.",
        |b| Ok(vec![norm_named(&converted(b, 4)?, b.text(1)?, dims(b, 2)?, b.bool(3)?)?]),
    ),
];

/// Registers the functions.
///
/// # Errors
/// Another crate has registered functions of these names.
pub(crate) fn register() -> Result<()> {
    let full = |(text, doc, code): &(&str, &'static str, Code)| (format!("linalg.{text}"), *doc, *code);
    let outside = |(text, doc, code): &(&str, &'static str, Code)| (text.to_string(), *doc, *code);
    for (text, doc, code) in DOMAIN.iter().map(full).chain(OUTSIDE.iter().map(outside)) {
        let def = FnDef::new(&text, FnBody::Code(Arc::new(code)))?;
        register_function(def.doc(doc))?;
    }
    Ok(())
}
