# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .module import Module
from .parameter import Parameter

class _BatchNorm(Module):
    num_features: int
    eps: float
    momentum: Any
    affine: bool
    track_running_stats: bool
    weight: Parameter | Any
    bias: Parameter | Any
    running_mean: Tensor | Any
    running_var: Tensor | Any
    num_batches_tracked: Tensor | Any
    def __init__(self, num_features: int, eps: float = 1e-05, momentum: Any = 0.1, affine: bool = True, track_running_stats: bool = True, *, bias: bool = True, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class BatchNorm1d(_BatchNorm): ...

class BatchNorm2d(_BatchNorm): ...

class BatchNorm3d(_BatchNorm): ...

class _InstanceNorm(_BatchNorm):
    def __init__(self, num_features: int, eps: float = 1e-05, momentum: Any = 0.1, affine: bool = False, track_running_stats: bool = False, **layout: Any) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class InstanceNorm1d(_InstanceNorm): ...

class InstanceNorm2d(_InstanceNorm): ...

class InstanceNorm3d(_InstanceNorm): ...

class GroupNorm(Module):
    num_groups: int
    num_channels: int
    eps: float
    affine: bool
    weight: Parameter | Any
    bias: Parameter | Any
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True, *, bias: bool = True, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class LocalResponseNorm(Module):
    size: int
    alpha: float
    beta: float
    k: float
    def __init__(self, size: Any, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...
