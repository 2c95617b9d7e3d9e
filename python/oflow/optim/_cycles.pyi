# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Sequence
from typing import Any
from ._schedulers import LRScheduler
from .optimizer import Optimizer

class _WithMomentum(LRScheduler): ...

class CyclicLR(_WithMomentum):
    optimizer: Optimizer
    max_lrs: list[Any] | Any
    total_size: float
    step_ratio: Any
    mode: str
    gamma: float
    scale_mode: str
    cycle_momentum: bool
    base_lrs: list[Any] | Any
    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: Any = None, mode: str = 'triangular', gamma: float = 1.0, scale_fn: Any = None, scale_mode: str = 'cycle', cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1) -> None: ...
    def scale_fn(self, x: Any) -> float: ...
    def get_lr(self) -> list[float]: ...

class OneCycleLR(_WithMomentum):
    optimizer: Optimizer
    total_steps: Any
    anneal_strategy: str
    cycle_momentum: bool
    phases: list[Any]
    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: Any = None, epochs: Any = None, steps_per_epoch: Any = None, pct_start: float = 0.3, anneal_strategy: str = 'cos', cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85, max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 10000.0, three_phase: bool = False, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...
