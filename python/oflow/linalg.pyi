# Made by `cargo xtask codegen` from the texts of the functions; do not edit.

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from ._oflow import Number, Sbp, Tensor, float32
from ._oflow import device as _device, dtype as _dtype, placement as _placement

class _LQ(NamedTuple):
    L: Tensor
    Q: Tensor

class _QR(NamedTuple):
    Q: Tensor
    R: Tensor

class _SignLogabsdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class _SolutionResidualsRankSingular_values(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class _USVh(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

def cholesky(A: Tensor, *, upper: builtins.bool = False) -> Tensor:
    """The lower triangular L with `A = L Lᵀ`, for symmetric positive definite matrices; with `upper` its transpose."""
def cofactor(A: Tensor) -> Tensor:
    """The matrices of cofactors, which are the gradients of the determinants."""
@overload
def cond(A: Tensor, p: builtins.float = 2.0) -> Tensor:
    """The condition number in the norm p."""
@overload
def cond(A: Tensor, p: str) -> Tensor:
    """The condition number in the norm fro or nuc."""
def det(A: Tensor) -> Tensor:
    """The determinant of each matrix of a batch `[.., n, n]`."""
def eigh(A: Tensor, UPLO: str = "L") -> _LQ:
    """The eigenvalues of symmetric matrices, from the least on, and the eigenvectors as columns of Q: `A = Q diag(L) Qᵀ`."""
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, of which the lower (L) or the upper (U) triangle is read, from the least on."""
def inv(A: Tensor) -> Tensor:
    """The inverse of each matrix of a batch `[.., n, n]`."""
def inverse(A: Tensor) -> Tensor:
    """The inverse of each matrix of a batch `[.., n, n]`."""
def logdet(A: Tensor) -> Tensor:
    """The logarithms of determinants: of a negative one NaN, of 0 minus infinity."""
def lstsq(A: Tensor, B: Tensor, rcond: builtins.float | None = None) -> _SolutionResidualsRankSingular_values:
    """The X with the least |A X - B|, and of several the least one."""
def matmul(a: Tensor, b: Tensor, *, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Tensor:
    """The same as `matmul`."""
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of square matrices."""
@overload
def matrix_norm(A: Tensor, ord: builtins.float, dim: builtins.int | Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False) -> Tensor:
    """The norm of matrices: 2 and -2 for the largest and least singular value, 1 and -1 for sums of columns, inf and -inf of rows."""
@overload
def matrix_norm(A: Tensor, ord: str = "fro", dim: builtins.int | Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False) -> Tensor:
    """The norm of Frobenius (fro), or the sum of the singular values (nuc)."""
def matrix_power(A: Tensor, n: builtins.int) -> Tensor:
    """The power of square matrices, of a negative n that of the inverse."""
def matrix_rank(A: Tensor, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, hermitian: builtins.bool = False) -> Tensor:
    """How many singular values of each matrix are above the tolerance, which is as in `pinv`."""
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the order of the fewest operations."""
def pinv(A: Tensor, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, hermitian: builtins.bool = False) -> Tensor:
    """The pseudo-inverse of each matrix of a batch."""
def pseudo_inverse(A: Tensor, atol: builtins.float = 0.0, rtol: builtins.float = 0.0, hermitian: builtins.bool = False) -> Tensor:
    """The pseudo-inverse (Moore and Penrose) `[.., n, m]` of each matrix of a batch `[.., m, n]`; singular values that are not above `atol` and `rtol` times the largest count as zero. With `hermitian` the matrices are symmetric, and only their lower triangles are read."""
def qr(A: Tensor, mode: str = "reduced") -> _QR:
    """Q with orthonormal columns and R upper triangular with `A = Q R`."""
def slogdet(A: Tensor) -> _SignLogabsdet:
    """The sign and the logarithm of the absolute value of each determinant, where the determinant itself may not be representable."""
def solve(A: Tensor, B: Tensor, *, left: builtins.bool = True, transpose: builtins.bool = False) -> Tensor:
    """The x of `A x = B`, or of `x A = B` if not `left`."""
def solve_triangular(A: Tensor, B: Tensor, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False, transpose: builtins.bool = False) -> Tensor:
    """The x of `A x = B`, or of `x A = B` if not `left`, for a triangular A."""
def svd(A: Tensor, full_matrices: builtins.bool = True) -> _USVh:
    """The singular values S, from the greatest on, and the singular vectors: the columns of U and the rows of Vh, with `A = U diag(S) Vh`."""
def svdvals(A: Tensor) -> Tensor:
    """The singular values, from the greatest on."""
def tensorinv(A: Tensor, ind: builtins.int = 2) -> Tensor:
    """The inverse for `tensordot` over the last dims."""
def tensorsolve(A: Tensor, B: Tensor) -> Tensor:
    """The X with `tensordot(A, X, X.ndim)` equal to B."""
def vecdot(x: Tensor, y: Tensor, dim: builtins.int = -1) -> Tensor:
    """The inner product along a dim: the sum of the products of y's elements and the conjugates of x's."""
def vector_norm(x: Tensor, ord: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
    """The norm of vectors along dims; none given: of all elements."""
