# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Iterable
from ..._oflow import Tensor

def parameters_to_vector(parameters: Tensor | Iterable[Tensor]) -> Tensor: ...
def vector_to_parameters(vec: Tensor, parameters: Tensor | Iterable[Tensor]) -> None: ...
