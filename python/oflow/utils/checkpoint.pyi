# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar('_T')
def checkpoint(function: Callable[..., _T], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any) -> _T: ...
def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any: ...
