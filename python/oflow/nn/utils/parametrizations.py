"""Parametrizations of weights, as in PyTorch."""

from typing import TypeVar

import oflow

from ... import _core
from .. import functional as F
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from .parametrize import register_parametrization

_M = TypeVar("_M", bound=Module)


def _weight(module, name):
    weight = getattr(module, name, None)
    if not isinstance(weight, oflow.Tensor):
        raise ValueError(f"{type(module).__name__} has no parameter or buffer '{name}'")
    return weight


class _WeightNorm(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def _norm(self, weight):
        if self.dim is None or self.dim == -1:
            return weight.square().sum().sqrt()
        others = [d for d in range(weight.ndim) if d != self.dim % weight.ndim]
        return (weight.square().sum(others, keepdim=True) if others else weight.square()).sqrt()

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / self._norm(weight_v))

    def right_inverse(self, weight):
        return self._norm(weight), weight


def weight_norm(module: _M, name="weight", dim: int | None = 0) -> _M:
    """Makes a weight the product of a length, ``original0``, and a direction, ``original1`` divided by its norm over all dims but ``dim``; of
    all dims if that is None (Salimans and Kingma, 2016)."""
    _weight(module, name)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations, dim, eps):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"dim {dim} is not one of a weight of {weight.ndim} dims")
        if n_power_iterations <= 0:
            raise ValueError(f"n_power_iterations is a number above 0, not {n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            for name, size in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                drawn = oflow.zeros(size, dtype=weight.dtype, **_core.beside(weight)).normal_(0.0, 1.0)
                self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight):
        if self.dim:
            weight = weight.permute([self.dim, *(d for d in range(weight.ndim) if d != self.dim)])
        return weight.reshape(weight.shape[0], -1)

    def _iterate(self, matrix, times):
        with oflow.no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t() @ self._u, dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Copies: the next forward writes the buffers, and backward needs what this one read.
        u, v = self._u.detach().clone(), self._v.detach().clone()
        return weight / (u * (matrix @ v)).sum()

    def right_inverse(self, value):
        return value


def spectral_norm(module: _M, name="weight", n_power_iterations=1, eps=1e-12, dim=None) -> _M:
    """Divides a weight by its largest singular value, which each forward in training estimates by ``n_power_iterations`` (Miyato et al.,
    2018). ``dim`` is that of the outputs; the other dims count as columns."""
    weight = _weight(module, name)
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    def __init__(self, weight, orthogonal_map):
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.register_buffer("base", None)

    def forward(self, x):
        wide = x.shape[-2] < x.shape[-1]
        x = (x.transpose(-2, -1) if wide else x).tril()
        n, k = x.shape[-2:]
        if n != k:
            x = F.pad(x, (0, n - k))
        skew = x - x.transpose(-2, -1)
        if self.orthogonal_map == "matrix_exp":
            q = oflow.linalg.matrix_exp(skew)
        else:
            one = oflow.eye(n, dtype=x.dtype, **_core.beside(x))
            q = oflow.linalg.solve(one - skew * 0.5, one + skew * 0.5)
        q = self.base @ q.narrow(-1, 0, k)
        return q.transpose(-2, -1) if wide else q

    def right_inverse(self, q):
        given, wide = q, q.shape[-2] < q.shape[-1]
        q = q.transpose(-2, -1) if wide else q
        n, k = q.shape[-2:]
        if n != k:
            more = oflow.zeros([*q.shape[:-2], n, n - k], dtype=q.dtype, **_core.beside(q)).normal_(0.0, 1.0)
            q = oflow.cat([q, more], -1)
        q, r = oflow.linalg.qr(q)
        self.base = q * r.diagonal(0, -2, -1).sign().unsqueeze(-2)
        # The map of zeros is the identity.
        return oflow.zeros_like(given)


def orthogonal(module: _M, name="weight", orthogonal_map=None, *, use_trivialization=True) -> _M:
    """Makes a weight a matrix with orthogonal columns, or rows if there are fewer: the matrix with which it begins, made orthogonal, times the
    exponential (``matrix_exp``) or the Cayley map (``cayley``) of a skew-symmetric matrix that is trained (Lezcano-Casado, 2019)."""
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"an orthogonal weight has at least 2 dims, not {weight.ndim}")
    if not use_trivialization or orthogonal_map not in (None, "matrix_exp", "cayley"):
        raise ValueError(
            f"orthogonal_map={orthogonal_map!r} with use_trivialization={use_trivialization} is not supported: use 'matrix_exp' or 'cayley' with "
            "use_trivialization=True"
        )
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map or "matrix_exp"), unsafe=True)
