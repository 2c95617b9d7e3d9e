# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable, Iterable
from typing import Any
from .._oflow import Tensor
from .optimizer import Optimizer

class LBFGS(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 1.0, max_iter: int = 20, max_eval: Any = None, tolerance_grad: float = 1e-07, tolerance_change: float = 1e-09, history_size: int = 100, line_search_fn: Any = None, *, maximize: bool = False) -> None: ...
    def step(self, closure: Callable[[], Any]) -> Any: ...  # type: ignore[override]
