# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable
from typing import Any

class GradcheckError(RuntimeError): ...

def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-06, atol: float = 1e-05, rtol: float = 0.001, raise_exception: bool = True) -> bool: ...
