# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from typing import TypeVar
from ..module import Module

_M = TypeVar('_M', bound=Module)
def weight_norm(module: _M, name: str = 'weight', dim: int | None = 0) -> _M: ...
def spectral_norm(module: _M, name: str = 'weight', n_power_iterations: int = 1, eps: float = 1e-12, dim: Any = None) -> _M: ...
def orthogonal(module: _M, name: str = 'weight', orthogonal_map: Any = None, *, use_trivialization: bool = True) -> _M: ...
