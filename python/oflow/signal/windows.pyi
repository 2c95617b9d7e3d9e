# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable
from .._oflow import Tensor

def __getattr__(name: str) -> Callable[..., Tensor]: ...
