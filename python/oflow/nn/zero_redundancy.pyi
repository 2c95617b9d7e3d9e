# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any, TypeVar
from .._oflow import placement
from .module import Module

_M = TypeVar('_M', bound=Module)
def zero(module: _M, stage: int, axis: str = 'dp', min_elements: int = 1024) -> _M: ...

class Replicas:
    module: Module
    def __init__(self, module: Module, placement: placement | None = None, bucket_bytes: int = ...) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def reduce_gradients(self) -> list[str]: ...
