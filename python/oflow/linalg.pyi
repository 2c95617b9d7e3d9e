# Made by `cargo xtask codegen` from the texts of the functions; do not edit.

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from ._oflow import Number, Sbp, Tensor, float32
from ._oflow import device as _device, dtype as _dtype, placement as _placement

class _EigenvaluesEigenvectors(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class _InverseInfo(NamedTuple):
    inverse: Tensor
    info: Tensor

class _LDPivots(NamedTuple):
    LD: Tensor
    pivots: Tensor

class _LDPivotsInfo(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor

class _LInfo(NamedTuple):
    L: Tensor
    info: Tensor

class _LQ(NamedTuple):
    L: Tensor
    Q: Tensor

class _LUPivots(NamedTuple):
    LU: Tensor
    pivots: Tensor

class _LUPivotsInfo(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class _PLU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class _QR(NamedTuple):
    Q: Tensor
    R: Tensor

class _QRTau(NamedTuple):
    QR: Tensor
    tau: Tensor

class _ResultInfo(NamedTuple):
    result: Tensor
    info: Tensor

class _SignLogabsdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class _SolutionResidualsRankSingular_values(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class _UH(NamedTuple):
    U: Tensor
    H: Tensor

class _USVh(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

@overload
def cholesky(A: Tensor, *, upper: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular L with `A = L Lᴴ`, for Hermitian positive definite matrices; with `upper` the Lᴴ."""
@overload
def cholesky(input: Tensor, *, upper: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def cholesky_decomposition(A: Tensor, upper: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _LInfo:
    """`cholesky` that refuses no matrix: `info` is 0, or the order of the first leading minor that is not positive, and L of no meaning."""
def cholesky_ex(A: Tensor, *, upper: builtins.bool = False, check_errors: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _LInfo:
    """`cholesky`, and for each matrix 0 or the order of the leading minor that is not positive."""
def cholesky_solution(L: Tensor, B: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The x of `L Lᴴ x = B` for lower triangular L, or with `upper` of `Uᴴ U x = B`."""
def cofactor(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrices of cofactors, which are the gradients of the determinants."""
@overload
def cond(A: Tensor, p: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number in the norm p, 2 unless given."""
@overload
def cond(input: Tensor, p: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cond(A: Tensor, p: str, *, out: Tensor | None = None) -> Tensor:
    """The condition number in the norm fro or nuc."""
@overload
def cond(input: Tensor, p: str, *, out: Tensor | None = None) -> Tensor: ...
def cross(x: Tensor, y: Tensor, *, dim: builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product along a dim of 3 elements."""
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of each matrix of a batch `[.., n, n]`."""
def diagonal(A: Tensor, *, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The diagonals of matrices in two dims."""
def eig(A: Tensor, *, out: Sequence[Tensor] | None = None) -> _EigenvaluesEigenvectors:
    """The eigenvalues of square matrices, which are complex, and the eigenvectors as columns of V: `A V = V diag(L)`."""
@overload
def eigh(A: Tensor, UPLO: str = "L", *, out: Sequence[Tensor] | None = None) -> _LQ:
    """The eigenvalues of Hermitian matrices, from the least on, and the eigenvectors as columns of Q: `A = Q diag(L) Qᴴ`."""
@overload
def eigh(input: Tensor, UPLO: str = "L", *, out: Sequence[Tensor] | None = None) -> _LQ: ...
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of square matrices, which are complex and come in any order."""
@overload
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, of which the lower (L) or the upper (U) triangle is read, from the least on."""
@overload
def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor: ...
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of the product of reflections, as `geqrf` gives them: Q of the reduced QR decomposition."""
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of each matrix of a batch `[.., n, n]`."""
def inv_ex(A: Tensor, *, check_errors: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _InverseInfo:
    """`inv`, and for each matrix 0 or the number of the pivot that is zero; then the inverse has infinities or NaN."""
def inverse(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of each matrix of a batch `[.., n, n]`."""
def ldl_decomposition(A: Tensor, hermitian: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _LDPivotsInfo:
    """The decomposition `A = L D Lᵀ` of symmetric matrices, or `L D Lᴴ` of Hermitian ones, of which the lower triangle is read, in LAPACK's form (sytrf, hetrf): D has blocks of one or two rows."""
def ldl_factor(A: Tensor, *, hermitian: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _LDPivots:
    """The decomposition `A = L D Lᵀ` of symmetric matrices, or `L D Lᴴ` of Hermitian ones, in LAPACK's form."""
def ldl_factor_ex(A: Tensor, *, hermitian: builtins.bool = False, check_errors: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _LDPivotsInfo:
    """`ldl_factor`, and for each matrix 0 or the number of the first block of D that is zero."""
def ldl_solution(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The x of `A x = B` for the results of `ldl_decomposition`; all inputs have the same batch dims."""
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The x of `A x = B` for the results of `ldl_factor`."""
def logdet(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithms of determinants: of a negative one NaN, of 0 minus infinity."""
@overload
def lstsq(A: Tensor, B: Tensor, rcond: builtins.float | None = None, *, driver: str | None = None, out: Sequence[Tensor] | None = None) -> _SolutionResidualsRankSingular_values:
    """The X with the least |A X - B|, and of several the least one."""
@overload
def lstsq(input: Tensor, B: Tensor, rcond: builtins.float | None = None, *, driver: str | None = None, out: Sequence[Tensor] | None = None) -> _SolutionResidualsRankSingular_values: ...
def lu(A: Tensor, *, pivot: builtins.bool = True, out: Sequence[Tensor] | None = None) -> _PLU:
    """The decomposition `A = P L U` of matrices of any rank: P a permutation, L lower triangular with ones, U upper triangular."""
def lu_decomposition(A: Tensor, *, out: Sequence[Tensor] | None = None) -> _LUPivotsInfo:
    """The LU decomposition with row pivots of each matrix of a batch `[.., m, n]`: U and, below its diagonal, L without its ones."""
def lu_factor(A: Tensor, *, pivot: builtins.bool = True, out: Sequence[Tensor] | None = None) -> _LUPivots:
    """L and U in one matrix, and the rows that changed places, counted from 1."""
def lu_factor_ex(A: Tensor, *, pivot: builtins.bool = True, check_errors: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _LUPivotsInfo:
    """`lu_factor`, and for each matrix 0 or the number of the pivot that is zero."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: builtins.bool = True, adjoint: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The x of `A x = B`, or of `x A = B` if not `left`, for the results of `lu_factor`; with `adjoint` of Aᴴ."""
def matmul(a: Tensor, b: Tensor, *, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The same as `matmul`."""
@overload
def matrix_exp(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential of square matrices."""
@overload
def matrix_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_norm(A: Tensor, ord: builtins.float, dim: builtins.int | Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of matrices: 2 and -2 for the largest and least singular value, 1 and -1 for sums of columns, inf and -inf of rows."""
@overload
def matrix_norm(input: Tensor, ord: builtins.float, dim: builtins.int | Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_norm(A: Tensor, ord: str = "fro", dim: builtins.int | Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of Frobenius (fro), or the sum of the singular values (nuc)."""
@overload
def matrix_norm(input: Tensor, ord: str = "fro", dim: builtins.int | Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_power(A: Tensor, n: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The power of square matrices, of a negative n that of the inverse."""
@overload
def matrix_power(input: Tensor, n: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_rank(A: Tensor, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """How many singular values of each matrix are above the tolerance, which is as in `pinv`."""
@overload
def matrix_rank(input: Tensor, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_rank(A: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The rank by tolerances of each matrix."""
@overload
def matrix_rank(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_rank(A: Tensor, tol: builtins.float, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The rank by the absolute tolerance `tol`."""
@overload
def matrix_rank(input: Tensor, tol: builtins.float, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def matrix_rank(A: Tensor, tol: Tensor, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The rank by an absolute tolerance of each matrix."""
@overload
def matrix_rank(input: Tensor, tol: Tensor, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def matrix_sqrth(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Hermitian square root of Hermitian positive definite matrices."""
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of matrices, in the order of the fewest operations."""
@overload
def norm(A: Tensor, ord: builtins.float | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of vectors along one dim, or of matrices along two; without an order of all elements."""
@overload
def norm(A: Tensor, ord: str, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of matrices by its name, fro or nuc."""
def permutation(pivots: Tensor, rows: builtins.int, dtype: _dtype, first: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """The permutation matrices P `[.., rows, rows]` with `A = P L U`, of pivots `[.., k]` in LAPACK's form: at step i row i and row `pivots[i]`, counted from `first`, change places."""
@overload
def pinv(A: Tensor, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse of each matrix of a batch."""
@overload
def pinv(input: Tensor, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def pinv(A: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse by tolerances of each matrix."""
@overload
def pinv(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def pinv(A: Tensor, rcond: builtins.float, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse by the relative tolerance `rcond`."""
@overload
def pinv(input: Tensor, rcond: builtins.float, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pinv(A: Tensor, rcond: Tensor, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse by a relative tolerance of each matrix."""
@overload
def pinv(input: Tensor, rcond: Tensor, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def polar(A: Tensor, *, out: Sequence[Tensor] | None = None) -> _UH:
    """The decomposition `A = U H`: U with orthonormal columns, H Hermitian and positive semidefinite."""
def pseudo_inverse(A: Tensor, atol: builtins.float = 0.0, rtol: builtins.float = 0.0, hermitian: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse (Moore and Penrose) `[.., n, m]` of each matrix of a batch `[.., m, n]`; singular values that are not above `atol` and `rtol` times the largest count as zero. With `hermitian` the matrices are Hermitian, and only their lower triangles are read."""
def qr(A: Tensor, mode: str = "reduced", *, out: Sequence[Tensor] | None = None) -> _QR:
    """Q with orthonormal columns and R upper triangular with `A = Q R`."""
def reflections(A: Tensor, *, out: Sequence[Tensor] | None = None) -> _QRTau:
    """The QR decomposition of matrices `[.., m, n]` in LAPACK's form (geqrf): R and, below its diagonal, the vectors v of reflections `I - tau v vᴴ` without their first element, which is 1."""
def slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> _SignLogabsdet:
    """The sign and the logarithm of the absolute value of each determinant, where the determinant itself may not be representable."""
def solve(A: Tensor, B: Tensor, *, left: builtins.bool = True, transpose: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The x of `A x = B`, or of `x A = B` if not `left`."""
def solve_ex(A: Tensor, B: Tensor, *, left: builtins.bool = True, check_errors: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _ResultInfo:
    """`solve`, and for each matrix 0 or the number of the pivot that is zero; then the result has infinities or NaN."""
@overload
def solve_triangular(A: Tensor, B: Tensor, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False, transpose: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The x of `A x = B`, or of `x A = B` if not `left`, for a triangular A."""
@overload
def solve_triangular(input: Tensor, B: Tensor, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False, transpose: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def svd(A: Tensor, full_matrices: builtins.bool = True, *, out: Sequence[Tensor] | None = None) -> _USVh:
    """The singular values S, from the greatest on, and the singular vectors: the columns of U and the rows of Vh, with `A = U diag(S) Vh`."""
def svdvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The singular values, from the greatest on."""
@overload
def tensorinv(A: Tensor, ind: builtins.int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse for `tensordot` over the last dims."""
@overload
def tensorinv(input: Tensor, ind: builtins.int = 2, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tensorsolve(A: Tensor, B: Tensor, dims: builtins.int | Sequence[builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """The X with `tensordot(A, X, X.ndim)` equal to B; the dims of A that are given are moved behind the others first."""
@overload
def tensorsolve(input: Tensor, other: Tensor, dims: builtins.int | Sequence[builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tensorsolve(A: Tensor, B: Tensor, *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
def vander(x: Tensor, *, N: builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """The powers 0 to N - 1 of the elements, along a new last dim."""
def vecdot(x: Tensor, y: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor:
    """The inner product along a dim: the sum of the products of y's elements and the conjugates of x's."""
@overload
def vector_norm(x: Tensor, ord: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of vectors along dims; none given: of all elements."""
@overload
def vector_norm(input: Tensor, ord: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
