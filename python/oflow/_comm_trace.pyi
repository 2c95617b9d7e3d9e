# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

_T = TypeVar('_T')

class CommRecord(NamedTuple):
    op: str
    file: str
    line: int
    scope: str
    backward: bool
    plan: str
    bytes: int
    links: list[tuple[str, int]]
    predicted: float
    measured: float | None

def with_sbp(sbp: Any, function: Callable[[], _T]) -> _T: ...
def with_grad_sbp(sbp: Any, function: Callable[[], _T]) -> _T: ...
