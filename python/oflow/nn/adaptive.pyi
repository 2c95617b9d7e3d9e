# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .containers import ModuleList
from .layers import Linear
from .module import Module

class AdaptiveLogSoftmaxWithLoss(Module):
    in_features: int
    n_classes: int
    cutoffs: list[Any]
    div_value: float
    head_bias: bool
    shortlist_size: Any
    n_clusters: Any
    head_size: Any
    head: Linear
    tail: ModuleList
    def __init__(self, in_features: int, n_classes: Any, cutoffs: Any, div_value: float = 4.0, head_bias: bool = False, device: device | str | None = None, dtype: Any = None, *, placement: placement | None = None, sbp: Any = None) -> None: ...
    def forward(self, input: Tensor, target_: Any) -> Tensor: ...
    def log_prob(self, input: Any) -> Any: ...
    def predict(self, input: Any) -> Any: ...
