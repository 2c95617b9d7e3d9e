# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Iterable
from typing import Any
from .._oflow import Tensor
from .optimizer import Optimizer

class ASGD(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.01, lambd: float = 0.0001, alpha: float = 0.75, t0: float = 1000000.0, weight_decay: float = 0.0, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Adadelta(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-06, weight_decay: float = 0.0, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Adafactor(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.01, beta2_decay: float = -0.8, eps: Any = ..., d: float = 1.0, weight_decay: float = 0.0, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Adagrad(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0, initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Adam(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = ..., eps: float = 1e-08, weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class AdamW(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = ..., eps: float = 1e-08, weight_decay: float = 0.01, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Adamax(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.002, betas: tuple[float | Tensor, float | Tensor] = ..., eps: float = 1e-08, weight_decay: float = 0.0, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Lamb(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = ..., eps: float = 1e-06, weight_decay: float = 0.0, bias_correction: bool = True, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Lion(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.0001, betas: tuple[float | Tensor, float | Tensor] = ..., weight_decay: float = 0.0, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Muon(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.001, weight_decay: float = 0.1, momentum: Any = 0.95, nesterov: bool = True, ns_coefficients: Any = ..., eps: float = 1e-07, ns_steps: int = 5, adjust_lr_fn: Any = None, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class NAdam(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.002, betas: tuple[float | Tensor, float | Tensor] = ..., eps: float = 1e-08, weight_decay: float = 0.0, momentum_decay: float = 0.004, decoupled_weight_decay: bool = False, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class RAdam(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = ..., eps: float = 1e-08, weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class RMSprop(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.01, alpha: float = 0.99, eps: float = 1e-08, weight_decay: float = 0.0, momentum: Any = 0.0, centered: bool = False, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class Rprop(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.01, etas: Any = ..., step_sizes: Any = ..., *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...

class SGD(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.001, momentum: Any = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, fused: bool | None = None, capturable: bool = False, differentiable: bool = False, master_weights: bool = True) -> None: ...
