# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable
from typing import Any

def function(signature: str, body: Any = None, *, doc: str | None = None) -> Callable[..., Any]: ...
