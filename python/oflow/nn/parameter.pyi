# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from typing_extensions import Self
from .._oflow import Tensor

class Parameter(Tensor):
    def __new__(cls, data: Any, requires_grad: bool = True) -> Self: ...

class Buffer(Tensor):
    persistent: bool
    def __new__(cls, data: Any, *, persistent: bool = True) -> Self: ...
