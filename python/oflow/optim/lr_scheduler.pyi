# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Sequence
from typing import Any
from ._cycles import CyclicLR as CyclicLR, OneCycleLR as OneCycleLR
from ._schedulers import LRScheduler as LRScheduler
from .optimizer import Optimizer

class LambdaLR(LRScheduler):
    lr_lambdas: list[Any] | Any
    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class MultiplicativeLR(LRScheduler):
    lr_lambdas: list[Any] | Any
    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class StepLR(LRScheduler):
    step_size: Any
    gamma: float
    def __init__(self, optimizer: Optimizer, step_size: Any, gamma: float = 0.1, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class MultiStepLR(LRScheduler):
    milestones: list[Any]
    gamma: float
    def __init__(self, optimizer: Optimizer, milestones: Any, gamma: float = 0.1, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class ConstantLR(LRScheduler):
    factor: float
    total_iters: int
    def __init__(self, optimizer: Optimizer, factor: float = ..., total_iters: int = 5, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class LinearLR(LRScheduler):
    start_factor: float
    end_factor: float
    total_iters: int
    def __init__(self, optimizer: Optimizer, start_factor: float = ..., end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class ExponentialLR(LRScheduler):
    gamma: Any
    def __init__(self, optimizer: Optimizer, gamma: Any, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class PolynomialLR(LRScheduler):
    total_iters: int
    power: float
    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class CosineAnnealingLR(LRScheduler):
    T_max: Any
    eta_min: float
    def __init__(self, optimizer: Optimizer, T_max: Any, eta_min: float = 0.0, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class CosineAnnealingWarmRestarts(LRScheduler):
    T_0: Any
    T_i: Any
    T_mult: int
    eta_min: float
    T_cur: int
    def __init__(self, optimizer: Optimizer, T_0: Any, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...
    def step(self, epoch: int | None = None) -> None: ...

class WarmupCosineLR(LRScheduler):
    warmup: Any
    total: Any
    floor: float
    def __init__(self, optimizer: Optimizer, warmup: Any, total: Any, floor: float = 0.0, last_epoch: int = -1) -> None: ...
    def get_lr(self) -> list[float]: ...

class _Several(LRScheduler):
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...

class ChainedScheduler(_Several):
    last_epoch: Any
    def __init__(self, schedulers: Any, optimizer: Optimizer | None = None) -> None: ...
    def step(self) -> None: ...  # type: ignore[override]

class SequentialLR(_Several):
    last_epoch: int
    def __init__(self, optimizer: Optimizer, schedulers: Any, milestones: Any, last_epoch: int = -1) -> None: ...
    def step(self) -> None: ...  # type: ignore[override]

class ReduceLROnPlateau(LRScheduler):
    optimizer: Optimizer
    factor: float
    patience: int
    cooldown: int
    eps: float
    mode: str
    threshold: float
    threshold_mode: str
    min_lrs: list[Any] | Any
    last_epoch: int
    best: Any
    cooldown_counter: int
    num_bad_epochs: int
    def __init__(self, optimizer: Optimizer, mode: str = 'min', factor: float = 0.1, patience: int = 10, threshold: float = 0.0001, threshold_mode: str = 'rel', cooldown: int = 0, min_lr: float | Sequence[float] = 0.0, eps: float = 1e-08) -> None: ...
    def step(self, metrics: Any, epoch: Any = None) -> None: ...  # type: ignore[override]
    @property
    def in_cooldown(self) -> bool: ...
