# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any

e: float
pi: float
inf: float
nan: float
newaxis: None

class finfo:
    dtype: Any
    bits: Any
    eps: Any
    max: Any
    min: Any
    tiny: Any
    smallest_normal: Any
    resolution: Any
    def __init__(self, type: Any = None) -> None: ...

class iinfo:
    dtype: Any
    bits: Any
    min: Any
    max: Any
    def __init__(self, type: Any) -> None: ...
