# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any

def __getattr__(name: str) -> Any: ...
