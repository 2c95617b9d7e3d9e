# Made by `python python/stubs` from the source beside it; do not edit.

import typing
from typing import Any

class SbpHints(typing.NamedTuple):
    mesh: tuple[int, ...]
    shapes: list[tuple[int, ...] | None]
    inputs: list[str | None]
    output: str | None
    keep: bool

def op(signature: str, *, expression: Any = None, kernel: Any = None, domain: str = 'user', inputs: Any = None, shape: Any = None, dtype: Any = None, factors: Any = None, sbp: Any = None, linear: Any = None, nd_infer: Any = None, nd_extra: Any = None, nd_valid: Any = None, nd_choose: Any = None, params: type | None = None, gradient: Any = None, samples: Any = ..., doc: Any = None) -> typing.Callable[..., typing.Any]: ...
