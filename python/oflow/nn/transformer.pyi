# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .dropout import Dropout
from .layers import LayerNorm, Linear
from .module import Module

class SelfAttention(Module):
    heads: int
    causal: bool
    q: Linear
    k: Linear
    v: Linear
    o: Linear
    def __init__(self, width: int, heads: int, *, causal: bool = True, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class MLP(Module):
    fc: Linear
    pr: Linear
    def __init__(self, width: int, hidden: int, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...

class TransformerBlock(Module):
    ln1: LayerNorm
    attn: SelfAttention
    ln2: LayerNorm
    mlp: MLP
    drop: Dropout
    def __init__(self, width: int, heads: int, hidden: int, dropout: float = 0.0, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
